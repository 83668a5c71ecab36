/*
 * plan/target/census.h - which names a target's directories had at T0, and with which inodes.
 *
 * Taken in the background after the first enter. A directory is in it only when its ctime was
 * below T0 before and after it was read: then what was read is what stood there at T0. A directory
 * that is not in it is not known; the check then takes the careful answer. So a census that
 * was cut short or is missing makes conflicts, never a wrong "unchanged".
 *
 * File, native byte order: struct hf_census_head; then for each directory a struct
 * hf_census_dir, its path (relative to the target, "" for itself) and its entries, each a struct
 * hf_row and the name. All are packed, without NULs. The head's sum is XXH3-64 of all
 * behind the head. It is written to "census.new" (which its writer has flocked) and renamed.
 */
#ifndef PLAN_TARGET_CENSUS_H
#define PLAN_TARGET_CENSUS_H

#include <stdint.h>
#include <sys/types.h>

#include "hf/plan/registry/registry.h"
#include "hf/plan/tree/rows.h"

#define HF_CENSUS     "census"
#define HF_CENSUS_NEW "census.new"

struct hf_census_head {
	char magic[8]; /* "hfcensus" */
	uint32_t version;
	uint32_t partial; /* 1: it was cut at the limit */
	int64_t t0_ns;    /* must be the sandbox's */
	uint64_t n_dirs, n_entries;
	uint64_t bytes;   /* behind the head */
	uint64_t sum;
};

struct hf_census_dir {
	uint64_t ino;
	uint32_t mode;
	uint32_t n_entries;
	uint32_t bytes; /* of all its entries */
	uint16_t path_len;
	uint16_t zero;
} __attribute__((packed));

struct hf_census; /* a census that was read */

/*
 * Reads the census of a sandbox. One that is being taken is waited for, at most `wait_ns`.
 * Returns 0; -ENOENT: there is none (or not of this T0, or it is damaged: it is then removed).
 */
int hf_census_load(int sandbox_fd, const struct hf_t0 *t0, int64_t wait_ns,
		   struct hf_census **ret_census, struct hf_err *err);
void hf_census_free(struct hf_census *census);

/*
 * A census that is read when it is asked for first. Most questions are answered by times, so a commit neither reads it nor waits for
 * one that is being taken, which takes as long as the target is large.
 */
struct hf_census_source {
	int sandbox_fd;
	const struct hf_t0 *t0;
	int64_t wait_ns;
	int is_read;
	struct hf_census *census; /* freed by the caller; NULL: there is none, or it cannot be read: the answers are more careful then */
};

const struct hf_census *hf_census_ask(struct hf_census_source *source);

/* The directory of that path (relative, "" for the target), or NULL: not known. */
const struct hf_census_dir *hf_census_find(const struct hf_census *census, const char *path,
					   size_t len);

/* The entry `name` of that directory, or NULL: it had none of that name at T0. */
const struct hf_row *hf_census_entry(const struct hf_census *census,
					const struct hf_census_dir *dir, const char *name);

/*
 * Starts taking the census of a target that was opened before, in a process that belongs to
 * init, at the lowest priority. Needs no memory of the caller's, so it may be called after fork.
 * With `ret_child` it is the caller's child instead, without a signal at its end (waitid with __WCLONE):
 * a subreaper would get it back, and take it for an orphan of something else. Returns 0 or -errno.
 */
int hf_census_start(int target_fd, int sandbox_fd, const struct hf_t0 *t0, pid_t *ret_child);

/* Takes it here and now; what the process above does. For tests as well. */
int hf_census_take(int target_fd, int sandbox_fd, const struct hf_t0 *t0, uint64_t max_entries);

#endif
