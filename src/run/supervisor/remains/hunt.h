/* run/supervisor/remains/hunt.h - ending what is left of a run whose supervisor and keeper are gone. */
#ifndef RUN_SUPERVISOR_REMAINS_HUNT_H
#define RUN_SUPERVISOR_REMAINS_HUNT_H

#include "hf/run/session/record/store.h"

/*
 * Ends all that is left of earlier runs of `name`: the keeper on record if it still lives
 * (it lost the lock by its lease) with all below it, the group, and every process that bears
 * a mark of that run (exec/marks.h) or of a session inside it. Each is proven after its pidfd
 * was opened (L6). `old` may be NULL: then every mark of that name counts but the one with
 * `token`, which is the caller's own.
 * Returns how many were killed, when none is left; HF_E_REMAINS when some would not end, or may
 * not be signalled by this user.
 */
int hf_remains_end(struct hf_sessions *sessions, const char *name,
		   const struct hf_session_record *old, uint64_t token, struct hf_err *err);

#endif
