/* exec/ptable.c - reading the process table. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/ptable.h"
#include "hf/sys/io.h"

#define ANCESTORS_MAX 64

int hf_ptable_read(struct hf_ptable *ret)
{
	struct hf_ptable scan = { 0 };
	struct dirent *entry;
	size_t room = 0;
	DIR *dir;

	if (!hf_proc_is_ours())
		return -ENOTSUP;
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		uint64_t pid;

		if (hf_parse_u64(entry->d_name, strlen(entry->d_name), INT32_MAX, &pid) < 0)
			continue;
		if (scan.n == room) {
			struct hf_stat *more =
				realloc(scan.stats, (room = room * 2 + 256) * sizeof(*more));

			if (!more) {
				(void)closedir(dir);
				hf_ptable_done(&scan);
				return -ENOMEM;
			}
			scan.stats = more;
		}
		/* One that ended since readdir is no longer of interest. */
		if (hf_stat_read((int32_t)pid, &scan.stats[scan.n]) == 0)
			scan.n++;
	}
	(void)closedir(dir);
	*ret = scan;
	return 0;
}

void hf_ptable_done(struct hf_ptable *scan)
{
	free(scan->stats);
	scan->stats = NULL;
	scan->n = 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct hf_stat *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Index of `pid` in the sorted table, or -1. */
static ssize_t find(const struct hf_ptable *scan, int32_t pid)
{
	struct hf_stat key = { .pid = pid };
	const struct hf_stat *at =
		scan->n ? bsearch(&key, scan->stats, scan->n, sizeof(key), by_pid) : NULL;

	return at ? at - scan->stats : -1;
}

enum kin { UNDECIDED, BELOW, OTHER };

static int is_among(const struct hf_stat *st, const struct hf_stat *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (set[i].pid == st->pid && set[i].start_ticks == st->start_ticks)
			return 1;
	return 0;
}

/* Walks up from `i` until something is known, and writes that to all on the way. */
static void decide(const struct hf_ptable *scan, unsigned char *kin, size_t i, int32_t root,
		   const struct hf_stat *not, size_t n_not)
{
	enum kin answer = OTHER;
	size_t at = i, steps;

	for (steps = 0; steps <= scan->n; steps++) {
		ssize_t parent;

		if (kin[at] != UNDECIDED) {
			answer = (enum kin)kin[at];
			break;
		}
		if (is_among(&scan->stats[at], not, n_not))
			break;
		if (scan->stats[at].ppid == root) {
			answer = BELOW;
			break;
		}
		parent = find(scan, scan->stats[at].ppid);
		if (parent < 0)
			break;
		at = (size_t)parent;
	}
	for (at = i; kin[at] == UNDECIDED;) {
		ssize_t parent = find(scan, scan->stats[at].ppid);

		kin[at] = (unsigned char)answer;
		if (parent < 0 || scan->stats[at].ppid == root)
			break;
		at = (size_t)parent;
	}
}

void hf_ptable_keep_descendants(struct hf_ptable *scan, int32_t root, const struct hf_stat *not,
			      size_t n_not)
{
	AUTO_FREE unsigned char *kin = calloc(scan->n + 1, 1);
	size_t kept = 0;

	if (!kin) {
		scan->n = 0;
		return;
	}
	if (scan->n > 0)
		qsort(scan->stats, scan->n, sizeof(*scan->stats), by_pid);
	for (size_t i = 0; i < scan->n; i++)
		if (kin[i] == UNDECIDED)
			decide(scan, kin, i, root, not, n_not);
	for (size_t i = 0; i < scan->n; i++)
		if (kin[i] == BELOW && scan->stats[i].pid != root)
			scan->stats[kept++] = scan->stats[i];
	scan->n = kept;
}

int hf_victims_add(struct hf_victims *victims, int32_t pid, uint64_t start_ticks)
{
	/* From the end: the ones that are hit again are the last ones. */
	for (size_t i = victims->n; i > 0; i--)
		if (victims->list[i - 1].pid == pid && victims->list[i - 1].start_ticks == start_ticks)
			return 0;
	if (victims->n == victims->room) {
		size_t room = victims->room * 2 + 64;
		struct hf_victim *more = realloc(victims->list, room * sizeof(*more));

		if (!more)
			return 1; /* better counted twice than not at all */
		victims->list = more;
		victims->room = room;
	}
	victims->list[victims->n++] = (struct hf_victim){ pid, start_ticks };
	return 1;
}

void hf_victims_done(struct hf_victims *victims)
{
	free(victims->list);
	*victims = (struct hf_victims){ 0 };
}

int hf_ptable_is_above(int32_t pid)
{
	int32_t at = (int32_t)getpid();

	for (int i = 0; i < ANCESTORS_MAX && at > 0; i++) {
		struct hf_stat stat;

		if (at == pid)
			return 1;
		if (hf_stat_read(at, &stat) < 0)
			return 0;
		at = stat.ppid;
	}
	return 0;
}
