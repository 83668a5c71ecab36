/* lock/local/queue/queue.h - the waiters of one lock. Everything here runs under the guard. */
#ifndef LOCK_LOCAL_QUEUE_QUEUE_H
#define LOCK_LOCAL_QUEUE_QUEUE_H

#include "hf/lock/local/record/guard.h"

/* Adds a waiter. The record is changed, not yet written. */
int hf_queue_join(struct hf_guard *guard, struct hf_lock_entry *entry, struct hf_err *err);

/* Takes the waiter out and removes its channel. The record is changed, not yet written. */
void hf_queue_leave(struct hf_guard *guard, const struct hf_lock_entry *entry);

/* Takes the waiter out, and leaves its channel: a message makes it look, and queue again. */
void hf_queue_strike(struct hf_guard *guard, const struct hf_lock_entry *entry);

/*
 * The channel of the ticket that was just joined with belongs to another waiter: the record is an
 * older copy that was put back while that one waits. Gives the ticket up, and leaves the channel;
 * the next ticket is one that is not in use.
 */
void hf_queue_skip(struct hf_guard *guard, const struct hf_lock_entry *entry);

/* Reads the entry of `ticket`; HF_E_FORMAT when there is none. */
int hf_queue_read(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret);

/*
 * The first living waiter with a ticket of `from` or later; dead ones are taken out.
 * 1, or 0 none.
 */
int hf_queue_first(struct hf_guard *guard, uint64_t from, struct hf_lock_entry *ret);

/*
 * All that wait, as they stand in the queue: whether they live is not asked, so this is
 * quick under the guard. Returns 0 with an array to free, or -errno.
 */
int hf_queue_snapshot(struct hf_guard *guard, struct hf_lock_entry **ret_entries, size_t *ret_n);

/* Sorts them as they are let in: by the time they have waited, to which each step of priority adds HF_LOCK_PRIORITY_NS. */
void hf_queue_rank(struct hf_lock_entry *entries, size_t n);

/* Of all that wait, the one whose turn it is by that order. 1; 0: none; -errno. */
int hf_queue_best(struct hf_guard *guard, struct hf_lock_entry *ret);

/* The first ticket is nobody's: on to the next that may be. `*looked` is 0 before the first call. */
void hf_queue_pass(struct hf_guard *guard, int *looked);

/* The last living waiter before `before`, which the one behind it watches. 1, or 0 none. */
int hf_queue_previous(struct hf_guard *guard, uint64_t before, struct hf_lock_entry *ret);

#endif
