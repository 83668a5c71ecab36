/*
 * holdfast/fleet.h - sessions on all machines of a store.
 *
 * A session that is started with a store (store in struct hf_run_opts) writes its state and outcome to that store. Any
 * machine that opens the store (hf_locks_open_store) can inspect the session, wait for it and ask for its end. Records,
 * logs and files stay on the session's machine.
 *
 * All functions use the network; the store's call-timeout limits each call. HF_E_STORE: no answer. -ENOTSUP: the store
 * covers only this machine.
 * Threads and fork: as for the struct hf_locks argument.
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

/* A session, in the state that its machine last wrote to the store. */
struct hf_fleet_session {
	char name[HF_NAME_MAX + 1];
	char host[HF_HOST_NAME_MAX + 1];
	uint64_t token;
	/* HF_SESSION_DEAD_UNREAPED: its lease expired before its machine wrote an outcome. */
	enum hf_session_state state;
	enum hf_outcome outcome;  /* HF_OUTCOME_NONE: it has not ended, or the outcome is unknown */
	int exit_status;
	char cause[HF_RUN_CAUSE_MAX];
	int32_t pid;              /* of its supervisor, on that machine */
	uint32_t attempt;
	struct hf_wall started;
	struct hf_wall ended;     /* ns 0: it has not */
	char command[HF_RUN_COMMAND_MAX + 1];
};

/* Returns the last session of that name. HF_E_NO_SESSION: the store has none. */
HF_API int hf_fleet_look(struct hf_locks *locks, const char *name, struct hf_fleet_session *ret, struct hf_err *err) HF_MUST_CHECK;

/* Calls `fn` with each session in the store, as of one moment, ordered by name. */
HF_API int hf_fleet_list(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_fleet_session *session), void *arg,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Asks the machine of `session` to end it, as hf_session_stop does: TERM, then KILL after `grace_ns` (0: the session's
 * own; negative: at once). Returns when the request is written; use hf_fleet_wait to wait for the end. HF_E_STALE: another
 * run has the name, or none.
 */
HF_API int hf_fleet_stop(struct hf_locks *locks, const struct hf_fleet_session *session, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Waits until that run has ended, at most `wait_ns` (negative: without limit), and writes its outcome to `session`.
 * HF_E_TIMEOUT. HF_E_STALE: another run has the name now; only the session's machine knows the outcome of this run.
 */
HF_API int hf_fleet_wait(struct hf_locks *locks, struct hf_fleet_session *session, int64_t wait_ns, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
