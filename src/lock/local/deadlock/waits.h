/*
 * lock/local/deadlock/waits.h - all locks that are waited for, read without their guards.
 *
 * A process that is stopped inside a guard must not stop the search for a deadlock, and the
 * search must not hold up others. A record or an entry that is just being written fails its checksum
 * and is read again. What is read is not of one moment; deadlock.c says why that is enough.
 */
#ifndef LOCK_LOCAL_DEADLOCK_WAITS_H
#define LOCK_LOCAL_DEADLOCK_WAITS_H

#include "hf/lock/local/local.h"
#include "hf/lock/local/record/record.h"
#include "holdfast/name.h"

struct hf_waited_lock {
	struct hf_kind_dir *dir;
	char name[HF_NAME_MAX + 1];
	char key[HF_NAME_KEY_MAX];
	struct hf_lock_record record;
	struct hf_lock_entry *entries; /* its waiters, first come first */
	size_t n_entries;
};

struct hf_waits {
	struct hf_waited_lock **locks;
	size_t n;
};

/*
 * Reads the locks, of every kind, that have a channel in locks/<kind>/.wait. One that cannot be read is left out, as if
 * nobody waited for it. Returns 0 or -errno; to be freed in both cases.
 */
int hf_waits_read(struct hf_local *locks, struct hf_waits *ret);
void hf_waits_done(struct hf_waits *waits);

#endif
