/*
 * lock/local/peek.h - reading a lock without its guard.
 *
 * A record or an entry that is just being written fails its checksum and is read again. What is read
 * may be out of date a moment later: good for a hint, for a list, for the search of a deadlock. A decision is made
 * under the guard.
 */
#ifndef LOCK_LOCAL_PEEK_H
#define LOCK_LOCAL_PEEK_H

#include "hf/lock/local/queue/wait.h"

/* Reads the record in the file `fd`. Returns 0, HF_E_FORMAT, or -errno. */
int hf_peek_record(int fd, struct hf_lock_record *ret);

/*
 * Is there something that a waiter behind others should see to, because those before it have not:
 * a lock that is free, a holder that is dead or whose lease has run out, a grant that was not noticed for
 * HF_LOCK_TURN_NS, a place that is lost? 1: look, under the guard. 0: no, sleep for another *ret_ns.
 */
int hf_peek(struct hf_attempt *a, int64_t *ret_ns);

/* Where the waiter stands, for people. */
void hf_peek_waiting(const struct hf_attempt *a, struct hf_lock_waiting *ret);

#endif
