/*
 * exec/ptable.h - the processes there are, and which of them are of a session.
 *
 * A process belongs to a session if it is a descendant of its keeper, is in its cgroup,
 * or bears its mark: an entry "<inode of the state directory>.<key>.<token>" in its
 * environment variable HOLDFAST_RUNS, which has one entry for each session around it.
 * The mark is what finds the rest of a tree when supervisor and keeper are gone.
 */
#ifndef EXEC_PTABLE_H
#define EXEC_PTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "hf/proc/stat.h"
#include "holdfast/name.h"

#define HF_MARK_VARIABLE "HOLDFAST_RUNS"
#define HF_MARK_MAX      (24 + HF_NAME_KEY_MAX + 24)

struct hf_ptable {
	struct hf_stat *stats;
	size_t n;
};

/* All processes that /proc shows. -ENOTSUP when that is not our pid namespace's. */
int hf_ptable_read(struct hf_ptable *ret);
void hf_ptable_done(struct hf_ptable *scan);

/*
 * Keeps only the descendants of `root` that are not below (nor among) the `n_not`
 * processes of `not`.
 */
void hf_ptable_keep_descendants(struct hf_ptable *scan, int32_t root, const struct hf_stat *not,
			      size_t n_not);

/* Processes that were killed, each counted once however often it was hit. */
struct hf_victims {
	struct hf_victim {
		int32_t pid;
		uint64_t start_ticks;
	} *list;
	size_t n, room;
};

/* 1 when it was not among them yet. */
int hf_victims_add(struct hf_victims *victims, int32_t pid, uint64_t start_ticks);
void hf_victims_done(struct hf_victims *victims);

/* The mark of `name` in the state directory of that inode, up to the token, "2f01.fix-160."; returns its length. */
size_t hf_mark_prefix(uint64_t dir_inode, const char *name, char out[HF_MARK_MAX]);

/*
 * Does the environment of `pid` hold a mark with that prefix, the token `only` (0: any) and
 * another one than `not` (0: none)? Means something only while the pid is pinned.
 */
int hf_mark_found(int32_t pid, const char *prefix, uint64_t only, uint64_t not);

#endif
