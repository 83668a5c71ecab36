/*
 * plan/recovery/restored.h - entries of a target that a commit moved and put back.
 *
 * A rename changes the ctime of what it moves and of the directories that it moves between. After a
 * commit that was undone the entries are as they were, but look changed; without this list the next
 * attempt would find conflicts with ourselves. It says which ctime each of them was left with: an
 * entry that still has it was not changed since. It is written when the undoing is done, and an
 * entry is in it only if inode, size and mtime are those that were checked.
 *
 * File "restored" of a sandbox, native byte order: a head, then for each entry a row and its path. The
 * sum is XXH3-64 of all behind the head. One that is damaged counts as empty: conflicts, nothing worse.
 */
#ifndef PLAN_RECOVERY_RESTORED_H
#define PLAN_RECOVERY_RESTORED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "hf/base/buf.h"

#define HF_RESTORED "restored"

struct hf_restored_entry {
	const char *path;
	uint64_t ino;
	int64_t ctime_ns;
};

struct hf_restored {
	struct hf_restored_entry *entries; /* sorted by path */
	size_t n;
	char *memory;
};

/* Reads it; none, or a damaged one, is empty. 0 or -errno. */
int hf_restored_load(int sandbox_fd, struct hf_restored *ret);
void hf_restored_done(struct hf_restored *restored);

/* 1 when the entry is one that was put back and not changed since. */
int hf_restored_is(const struct hf_restored *restored, const char *path, const struct stat *st);

/* Adds an entry to rows that are to be written. */
void hf_restored_add(struct hf_buf *rows, const char *path, const struct stat *st);

/* Writes `rows`, with those entries of before that they do not name. 0 or -errno. */
int hf_restored_write(int sandbox_fd, const struct hf_buf *rows);

#endif
