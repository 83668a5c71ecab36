/* lock/local/deadlock.h - would this wait ever end? */
#ifndef LOCK_LOCAL_DEADLOCK_H
#define LOCK_LOCAL_DEADLOCK_H

#include "hf/lock/local/local.h"
#include "hf/lock/local/record.h"

/* Looks for a cycle from `entry`, which waits for `guard`'s lock. See deadlock.c. */
int hf_deadlock_check(struct hf_local *locks, const char *name, const struct hf_lock_entry *entry,
		      char *ret_cycle, size_t cap);

#endif
