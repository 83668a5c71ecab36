/* run/session/notes/seen.h - the run that a person has seen: sessions/KEY/seen, its token in 20 digits and a newline. */
#ifndef RUN_SESSION_NOTES_SEEN_H
#define RUN_SESSION_NOTES_SEEN_H

#include "hf/run/session/record/store.h"

/* 1 when the run `token` was seen (hf_session_set_seen). */
int hf_session_is_seen(struct hf_sessions *sessions, const char *name, uint64_t token);

#endif
