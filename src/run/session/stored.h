/*
 * run/session/stored.h - what a resume needs of a session: command, options, directory, environment.
 *
 *     {"v":2,"argv":[…],"cwd":"/src/app","env":["K=V"],"options":{"deadline_ns":…,"verify":"make test"}}
 *
 * The record has the checksum of it. So a file that was changed, or that is an older one because a
 * power cut came before the new one was on disk, is not taken for what the session ran with: a resume
 * without its verifier could succeed (L14).
 */
#ifndef RUN_SESSION_STORED_H
#define RUN_SESSION_STORED_H

#include "hf/run/session/store.h"

struct hf_stored {
	struct hf_run_opts o; /* given options; all that they point to is owned here */
	int has_options;      /* 0: of a version that stored the command alone */
	uint64_t sum;
};

void hf_stored_done(struct hf_stored *stored);

/* Stores given options, with argv and cwd. *ret_sum is for the record. */
int hf_stored_save(struct hf_sessions *sessions, const char *name, const struct hf_run_opts *given,
		   uint64_t *ret_sum, struct hf_err *err);

/*
 * Reads them; believes nothing. HF_E_FORMAT when there are none, or they fail their checks: with
 * `put_away` they are then in quarantine, with one event.
 */
int hf_stored_load(struct hf_sessions *sessions, const char *name, int put_away, struct hf_stored *ret,
		   struct hf_err *err);

#endif
