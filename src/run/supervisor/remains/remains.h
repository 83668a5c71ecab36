/*
 * run/supervisor/remains/remains.h - what a session left whose supervisor and keeper are gone, or lost its lock.
 *
 * The process that holds the lock of that name now ends it before anything else is started:
 * there are never two agents of one name.
 */
#ifndef RUN_SUPERVISOR_REMAINS_REMAINS_H
#define RUN_SUPERVISOR_REMAINS_REMAINS_H

#include "hf/run/session/record/store.h"

/*
 * Brings the record of an earlier run to its end, as the holder of `token`. *ret_old is
 * what it came to; its token is 0 when there was none. Returns 0, or as hf_remains_end.
 */
int hf_remains_settle(struct hf_sessions *sessions, const char *name, uint64_t token,
		      struct hf_session_record *ret_old, int *ret_killed, struct hf_err *err);

#endif
