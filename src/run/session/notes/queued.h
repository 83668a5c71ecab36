/*
 * run/session/notes/queued.h - what a session is to run that waits for a place in its group: queued.json of its directory.
 *
 * For those that look: nothing of the run is on record until it has its place. Its keeper removes it; one that a killed keeper left behind
 * has the token of no holder of the name, and is nobody's.
 */
#ifndef RUN_SESSION_NOTES_QUEUED_H
#define RUN_SESSION_NOTES_QUEUED_H

#include "hf/run/session/record/store.h"

/* Writes it. For the holder of the lock. 0, or an error. */
int hf_queued_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_run_opts *given, struct hf_err *err);

/* Removes it, and the directory if there is nothing else in it. */
void hf_queued_remove(struct hf_sessions *sessions, const char *name);

/* Reads that of the run `token`; hf_options_free frees it. 1; 0: there is none. */
int hf_queued_load(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_run_opts *ret);

#endif
