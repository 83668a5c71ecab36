/*
 * lock/local/grant.h - giving the lock to waiters, telling them, taking back. Under the guard.
 */
#ifndef LOCK_LOCAL_GRANT_H
#define LOCK_LOCAL_GRANT_H

#include "hf/lock/local/guard.h"

/*
 * Tells the two waiters behind `ticket` to look again: what they watch has changed. Two, because
 * the first may be stopped, and the second must know that it is second (wait.c).
 */
void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket);

/*
 * Tells those who were given the lock, and may not know, to look; not `except`. For
 * whoever finds that the one who gave it died before it told.
 */
void hf_queue_retell(struct hf_guard *guard, uint64_t except);

/*
 * Gives the lock to the waiters whose turn it is, as many as the record admits, and
 * writes the record (always, also when there is nobody). Then tells them. Returns as
 * hf_guard_write.
 */
int hf_queue_admit(struct hf_guard *guard, struct hf_err *err);

/*
 * Has a holder been given the lock less than HF_LOCK_TURN_NS ago, while it waited, and not noticed
 * it? Returns after how many nanoseconds it may be revoked, with its token, or -1.
 */
int64_t hf_queue_unclaimed(struct hf_guard *guard, uint64_t *ret_token);

/*
 * Takes the message with `token` out of the channel of a waiter that was given the lock, so that
 * it queues again. 1, or 0: it has read it, or did not wait (ticket 0).
 */
int hf_queue_take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token);

/*
 * Takes the lock back from waiters that were given it HF_LOCK_TURN_NS ago and have not
 * noticed, because they are stopped. They queue again when they are continued. The age is
 * wall time and may be wrong; so also the one of token `overdue` (0: none), of which the caller
 * has seen for that long that it is not claimed. Returns how many. The caller finishes the guard,
 * which writes the record.
 */
int hf_queue_revoke(struct hf_guard *guard, uint64_t overdue);

#endif
