/*
 * holdfast/fleet.h - sessions on all machines of a store.
 *
 * A session that was started with a store (struct hf_run_opts, store) tells there what it does and what it came to. Any machine that
 * opens the store (hf_locks_open_store) can look at it, wait for it and ask for its end. Records, logs and files stay with the
 * session's machine.
 *
 * All functions make calls over the network, each bounded by the store's call-timeout. HF_E_STORE: no answer. -ENOTSUP: the store has only this machine.
 * Threads and fork: as the struct hf_locks that they are given.
 */
#ifndef HOLDFAST_FLEET_H
#define HOLDFAST_FLEET_H

#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/lock.h"
#include "holdfast/name.h"
#include "holdfast/run.h"

HF_C_BEGIN

/* A session, as its machine told it last. */
struct hf_fleet_session {
	char name[HF_NAME_MAX + 1];
	char host[HF_HOST_NAME_MAX + 1];
	uint64_t token;
	/* HF_SESSION_DEAD_UNREAPED: its lease is over, and its machine did not come to say what became of it. */
	enum hf_session_state state;
	enum hf_outcome outcome;  /* HF_OUTCOME_NONE: it has not ended, or that is not known */
	int exit_status;
	char cause[HF_RUN_CAUSE_MAX];
	int32_t pid;              /* its supervisor's, on that machine */
	uint32_t attempt;
	struct hf_wall started;
	struct hf_wall ended;     /* ns 0: it has not */
	char command[HF_RUN_COMMAND_MAX + 1];
};

/* The last session of that name. HF_E_NO_SESSION when the store knows none. */
HF_API int hf_fleet_look(struct hf_locks *locks, const char *name, struct hf_fleet_session *ret, struct hf_err *err) HF_MUST_CHECK;

/* All that the store knows, at one moment, by name. */
HF_API int hf_fleet_list(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_fleet_session *session), void *arg,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Asks the machine of `session` to end it, as hf_session_stop does there: TERM, and KILL after `grace_ns` (0: the session's own; negative: at
 * once). Returns when the request is written; hf_fleet_wait tells when it was obeyed. HF_E_STALE: that run holds the name no longer.
 */
HF_API int hf_fleet_stop(struct hf_locks *locks, const struct hf_fleet_session *session, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Waits until that run has ended, at most `wait_ns` (negative: for ever), and writes to `session` what it came to. HF_E_TIMEOUT; HF_E_STALE: another
 * run has the name by now, and what became of this one only its machine knows.
 */
HF_API int hf_fleet_wait(struct hf_locks *locks, struct hf_fleet_session *session, int64_t wait_ns, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
