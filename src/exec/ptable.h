/* exec/ptable.h - the processes there are, and which of them stand below one. */
#ifndef EXEC_PTABLE_H
#define EXEC_PTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "hf/proc/stat.h"

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

/* Is it this process, or one that it descends from? 1, or 0; also when that cannot be read. */
int hf_ptable_is_above(int32_t pid);

#endif
