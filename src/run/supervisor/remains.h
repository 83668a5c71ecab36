/*
 * run/supervisor/remains.h - what a session left whose supervisor and keeper are gone, or lost its lock.
 *
 * Whoever holds the lock of that name now ends it before anything else is started:
 * there are never two agents of one name.
 */
#ifndef RUN_SUPERVISOR_REMAINS_H
#define RUN_SUPERVISOR_REMAINS_H

#include "hf/run/session/store.h"

/*
 * Ends all that is left of earlier runs of `name`: the keeper on record if it still lives
 * (it lost the lock by its lease) with all below it, the group, and every process that bears
 * the mark of that run. Each is proven after its pidfd was opened (L6). `old` may be NULL:
 * then every mark of that name counts but the one with `token`, which is the caller's own.
 * Returns how many were killed, when none is left; HF_E_REMAINS when some would not end.
 */
int hf_remains_end(struct hf_sessions *sessions, const char *name,
		   const struct hf_session_record *old, uint64_t token, struct hf_err *err);

/*
 * Brings the record of an earlier run to its end, as the holder of `token`. *ret_old is
 * what it came to; its token is 0 when there was none. Returns 0 or as above.
 */
int hf_remains_settle(struct hf_sessions *sessions, const char *name, uint64_t token,
		      struct hf_session_record *ret_old, int *ret_killed, struct hf_err *err);

#endif
