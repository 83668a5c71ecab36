/*
 * run/session/record/stored.h - what a resume needs of a session: command, options, directory, environment.
 *
 *     {"v":2,"argv":[…],"cwd":"/src/app","env":["K=V"],"options":{"deadline_ns":…,"verify":"make test"}}
 *
 * The record has the checksum of it. So a file that was changed, or that is an older one because a
 * power cut came before the new one was on disk, is not taken for what the session ran with: a resume
 * without its verifier could succeed (L14).
 *
 * They are written before the record that names them, and beside those of the run before: a run that
 * never comes to its record changes nothing of what a resume gets.
 */
#ifndef RUN_SESSION_RECORD_STORED_H
#define RUN_SESSION_RECORD_STORED_H

#include "hf/run/session/record/store.h"

struct hf_stored {
	struct hf_run_opts o; /* given options; all that they point to is owned here */
	int has_options;      /* 0: of a version that stored the command alone */
	uint64_t sum;
};

void hf_stored_done(struct hf_stored *stored);

/*
 * Writes given options, with argv and cwd, beside those that are stored; `before` is the checksum
 * that the record has now (0: not known). *ret_sum is for the record. Returns 1, or 0 when the same
 * are stored already.
 */
int hf_stored_stage(struct hf_sessions *sessions, const char *name, const struct hf_run_opts *given, uint64_t before,
		    uint64_t *ret_sum, struct hf_err *err);

/* After a 1: puts them in the place of the stored ones, or (`keep` 0) drops them. */
void hf_stored_settle(struct hf_sessions *sessions, const char *name, int keep);

/*
 * Reads those with the checksum `sum` (0: whichever are stored); believes nothing. HF_E_FORMAT when
 * there are none, or they fail their checks: with `put_away` damaged ones are then in quarantine,
 * with one event.
 */
int hf_stored_load(struct hf_sessions *sessions, const char *name, uint64_t sum, int put_away, struct hf_stored *ret,
		   struct hf_err *err);

#endif
