/*
 * run/stage.h - the places of a session where a layer above acts: before, inside and after each attempt.
 *
 * The layer `tx` fills these with plans: run and plan do not know each other. A callback that is NULL
 * is not called. All but `enter` are called by the keeper, which holds the session's lock:
 *
 *     recover(token)   once, before anything else: the run of that token was the last one of this name.
 *                      Its tree is proven empty. It may have been killed anywhere, so this is to finish
 *                      or undo what it began, and finds nothing to do after an ordinary end.
 *     begin(attempt)   the intent to start is on disk, nothing is forked yet
 *     enter()          in the child, after it was let go and before its exec: the command, then the verifier.
 *                      Only what is safe after fork; it may take on namespaces, mounts, a directory
 *     end(outcome)     once for each begin that returned 0: the tree is empty, the verifier has spoken, nothing is recorded yet
 *
 * Each returns 0 or -errno. If recover fails, nothing is started. If begin or enter fails, the attempt is
 * not-started. If end fails, a success becomes a failure (L14). When the keeper is killed, end is not called;
 * recover is, by the next run of that name.
 *
 * The keeper does nothing else meanwhile: a callback that may take longer than a third of the lease (HF_RUN_TTL_NS)
 * has to renew it (hf_lock_renew_token), and signals wait until it returns.
 */
#ifndef RUN_STAGE_H
#define RUN_STAGE_H

#include "holdfast/run.h"

struct hf_stage {
	int (*recover)(void *arg, uint64_t token);
	int (*begin)(void *arg, uint32_t attempt);
	int (*enter)(void *arg);
	int (*end)(void *arg, enum hf_outcome outcome);
	void *arg;
};

/* hf_run_supervise with a stage; NULL: none. */
int hf_run_supervise_staged(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			    const struct hf_stage *stage, struct hf_run_report *ret_report,
			    struct hf_err *err);

#endif
