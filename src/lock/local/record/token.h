/* lock/local/record/token.h - the next fencing token. */
#ifndef LOCK_LOCAL_RECORD_TOKEN_H
#define LOCK_LOCAL_RECORD_TOKEN_H

#include "hf/lock/local/record/guard.h"

/*
 * The token of the next acquisition under this guard: higher than all that were given for this
 * name before (L2). The caller puts it into the record.
 */
uint64_t hf_token_next(struct hf_guard *guard);

/*
 * The name of a damaged note in `dirfd`, the directory of a kind; NULL: there is none. Changes nothing:
 * the next acquisition puts it away.
 */
const char *hf_token_damaged_note(int dirfd);

#endif
