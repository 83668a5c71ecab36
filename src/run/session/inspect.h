/* run/session/inspect.h - what inspect.c tells control.c. */
#ifndef RUN_SESSION_INSPECT_H
#define RUN_SESSION_INSPECT_H

#include "hf/run/session/owner.h"
#include "hf/run/session/record/store.h"

/* What a session is that has ended like that. */
enum hf_session_state hf_session_state_of(enum hf_outcome outcome);

/* 1 while its keeper or supervisor lives, or may; with the evidence. */
int hf_session_is_kept(const struct hf_sessions *sessions, const struct hf_session_record *record,
		       char evidence[HF_EVIDENCE_MAX]);

/* A keeper holds the name, and the record is not that keeper's: */
enum hf_kept {
	HF_KEPT_BEFORE = 1,    /* it is of a run before; the new one is just starting */
	HF_KEPT_NO_RECORD = 2, /* there is none yet */
	HF_KEPT_DAMAGED = 3,   /* it was damaged and has been put away, now or before, or is gone */
};

/*
 * Loads the record, and asks the lock where that says nothing of the present holder of the name.
 * Returns 0 with the record; an enum hf_kept with the owner (and for HF_KEPT_BEFORE the record);
 * or what hf_session_load fails with, when no keeper holds the name.
 */
int hf_session_load_kept(struct hf_sessions *sessions, const char *name, struct hf_session_record *ret,
			 struct hf_session_owner *ret_owner, struct hf_err *err);

/* Loads one and calls `fn` with it, by its record or by its lock. */
int hf_session_show_one(struct hf_sessions *sessions, const char *name, hf_session_fn *fn, void *arg, struct hf_err *err);

/* Calls `fn` with the session of that record. */
void hf_session_show(struct hf_sessions *sessions, const struct hf_session_record *record,
		     hf_session_fn *fn, void *arg);

#endif
