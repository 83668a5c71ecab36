/*
 * lock/local/grant.h - giving the lock to waiters, telling them, taking back. Under the guard.
 */
#ifndef LOCK_LOCAL_GRANT_H
#define LOCK_LOCAL_GRANT_H

#include "hf/lock/local/guard.h"

/* Tells the first waiter behind `ticket` to look again: what it watches has changed. */
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

/* 1 when a holder was given the lock while it waited and may not have noticed yet. */
int hf_queue_unclaimed(struct hf_guard *guard);

/*
 * Takes the message with `token` out of the channel of a waiter that was given the lock, so that
 * it queues again. 1, or 0: it has read it, or did not wait (ticket 0).
 */
int hf_queue_take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token);

/*
 * Takes the lock back from waiters that were given it HF_LOCK_TURN_NS ago and have not
 * noticed, because they are stopped. They queue again when they are continued.
 * Returns how many.
 */
int hf_queue_revoke(struct hf_guard *guard);

#endif
