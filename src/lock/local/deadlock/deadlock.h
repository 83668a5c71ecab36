/* lock/local/deadlock/deadlock.h - would this wait ever end? */
#ifndef LOCK_LOCAL_DEADLOCK_DEADLOCK_H
#define LOCK_LOCAL_DEADLOCK_DEADLOCK_H

#include "hf/lock/local/local.h"
#include "hf/lock/local/record/record.h"

/*
 * How long a waiter waits before it looks for a deadlock, and how the pauses grow after that: a
 * parent may come to wait for its child long after the child began to wait for the lock. Only
 * tests write it.
 */
extern int64_t hf_deadlock_first_ns;
#define HF_DEADLOCK_GROWS        4
#define HF_DEADLOCK_PAUSE_MAX_NS (60 * HF_SEC)

/*
 * 1 when the wait of `entry` for `name` closed a cycle, which is then in `ret_cycle` in words;
 * 0 when it did not, or when that cannot be proven. Takes no guard. See deadlock.c.
 */
int hf_deadlock_check(struct hf_local *locks, const struct hf_lock_ref *lock,
		      const struct hf_lock_entry *entry, char *ret_cycle, size_t cap);

#endif
