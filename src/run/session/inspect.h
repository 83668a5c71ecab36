/* run/session/inspect.h - what look.c tells stop.c. */
#ifndef RUN_SESSION_INSPECT_H
#define RUN_SESSION_INSPECT_H

#include "hf/run/session/store.h"

/* 1 while its keeper or supervisor lives, or may; with the evidence. */
int hf_session_is_kept(const struct hf_sessions *sessions, const struct hf_session_record *record,
		       char evidence[HF_EVIDENCE_MAX]);

/* Calls `fn` with the session of that record. */
void hf_session_show(struct hf_sessions *sessions, const struct hf_session_record *record,
		     hf_session_fn *fn, void *arg);

#endif
