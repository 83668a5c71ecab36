/*
 * lock/local/queue/grant.h - giving the lock to waiters, telling them, taking back. Under the guard.
 */
#ifndef LOCK_LOCAL_QUEUE_GRANT_H
#define LOCK_LOCAL_QUEUE_GRANT_H

#include "hf/lock/local/record/guard.h"

/* Tells the waiter behind `ticket` to look again: what it watches has changed. */
void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket);

/*
 * Tells the waiters that were given the lock, and may not know, to look; not `except`. For a
 * process that finds that the releaser died before it told them.
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

/* How long ago a holder was given the lock, as far as the wall clock can tell: 0 if that makes no sense. */
int64_t hf_grant_age(const struct hf_lock_holder *holder);

/* Has the holder a message in its channel that it did not read? Of the guard, only the names are used. */
int hf_grant_is_unread(struct hf_guard *guard, const struct hf_lock_holder *holder);

/*
 * Takes the lock back from waiters that were given it HF_LOCK_TURN_NS ago and have not
 * noticed, because they are stopped; then passes over all other waiters that are stopped at this
 * moment, so that any number of them costs one turn. They queue again when they are continued. The age is
 * wall time and may be wrong; so also the one of token `overdue` (0: none), of which the caller
 * has seen for that long that it is not claimed. Returns how many. The caller finishes the guard,
 * which writes the record.
 */
int hf_queue_revoke(struct hf_guard *guard, uint64_t overdue);

#endif
