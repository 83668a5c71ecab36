/*
 * tx/land/status/remembered.h - what git said of a work tree, and whether that still holds.
 *
 * `git status` looks at each file of a work tree, and lists each directory for new ones: it is most of what the start of a landing costs. Its answer
 * depends on HEAD, the index, git's settings and the entries that git does not ignore, and on nothing else. So these are remembered with the answer: HEAD, the
 * identity of index and settings, inode and ctime of each directory and of each such entry. While all of them are the same, so is the answer, and no git is
 * started. In any doubt git is asked.
 *
 *     r = hf_moment_take(&place, &moment);                               before git is asked, or not
 *     if (hf_remembered_open(dirfd, place.top, &moment, &remembered))    threads look at the tree, beside what the caller does
 *             r = hf_remembered_end(remembered, &counts);                1: as it was, with these counts; 0: ask git
 *     else
 *             ... git is asked, and later, when there is time:
 *             r = hf_remember_start(&remember, &pid);                    a child looks at the tree and writes it down
 *
 * Why it is sound. The moment is taken before git is asked. What the child finds has a ctime from before the moment, or nothing is written; so git saw it as the
 * child did. A ctime cannot be set, and each change of a file's content or mode, or of a directory's names, gives another one; it is compared exactly, so that
 * a clock that was set back changes nothing. A directory is ignored only if git said so.
 * Files that settings name (core.excludesFile, core.attributesFile) count as settings; where these include others, nothing is remembered.
 *
 * File "landings/.status-DEV-INO" (of the work tree, hexadecimal), native byte order: struct hf_remembered_head; then for each directory a struct
 * hf_remembered_dir, its path (relative, "" for the top) with a NUL, and its entries, each a struct hf_remembered_entry and its name with a NUL. All are packed. It is
 * written under the name with ".new" (which its writer has flocked) and renamed. One that is damaged is as good as none.
 */
#ifndef TX_LAND_STATUS_REMEMBERED_H
#define TX_LAND_STATUS_REMEMBERED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "hf/base/buf.h"
#include "hf/plan/registry/registry.h"
#include "holdfast/land.h"

#define HF_REMEMBERED_NAME_MAX 64

/* What an answer of git depends on besides the tree, as it was at one moment. */
struct hf_moment {
	struct hf_t0 t0;
	uint64_t dev, ino; /* of the work tree's top */
	uint64_t around;   /* XXH3-64 of HEAD's commit and the identity of index and settings */
};

/*
 * 1; 0: index or settings were changed just now, and could change once more without that being seen; -ENOTSUP, with *ret filled: settings name others in a way that
 * is not understood; or -errno.
 */
int hf_moment_take(const struct hf_land_place *place, struct hf_moment *ret);

/* What git said. */
struct hf_dirty {
	uint64_t n;         /* paths that differ from HEAD, untracked ones included */
	uint64_t untracked; /* of these */
};

struct hf_remembered_head {
	char magic[8]; /* "hfstatus" */
	uint32_t version;
	uint32_t n_dirs;
	uint64_t n_entries;
	uint64_t dev, ino, around; /* of the moment */
	struct hf_dirty dirty;
	uint64_t bytes; /* behind the head */
	uint64_t sum;   /* XXH3-64 of these, with that of the head before this field as the seed */
};

uint64_t hf_remembered_sum(const struct hf_remembered_head *head, const char *body);

struct hf_remembered_dir {
	uint64_t ino;
	int64_t ctime_ns;
	uint32_t n_entries;
	uint32_t bytes; /* of its path and its entries, with their NULs */
} __attribute__((packed));

struct hf_remembered_entry {
	uint64_t ino;
	int64_t ctime_ns;
	uint8_t name_len;
} __attribute__((packed));

/* A time as it is written there. */
static inline int64_t hf_stamp_ns(struct timespec stamp)
{
	return (int64_t)stamp.tv_sec * HF_SEC + stamp.tv_nsec;
}

void hf_remembered_name(const struct hf_moment *moment, const char *suffix, char out[HF_REMEMBERED_NAME_MAX]);

/* -- remembered.c: does it still hold? --------------------------------------------------------- */

struct hf_remembered;

/* 1: something is remembered that fits the moment, and the tree is being looked at; 0: nothing is. */
int hf_remembered_open(int dirfd, const char *top, const struct hf_moment *moment, struct hf_remembered **ret);

/* Waits for the threads. 1: the tree is as it was; 0: it is not, or that is not known. */
int hf_remembered_end(struct hf_remembered *remembered, struct hf_dirty *ret);
void hf_remembered_free(struct hf_remembered *remembered);

/* -- remember.c: writing it down ----------------------------------------------------------------- */

struct hf_remember {
	int dirfd;           /* landings/; -1: there is nothing to remember */
	char *top;           /* of the work tree */
	struct hf_moment moment;
	struct hf_dirty dirty;
	struct hf_buf said;  /* by git status --porcelain=v2 -z --ignored=matching --untracked-files=all */
};

#define HF_REMEMBER_INIT { .dirfd = -1, .said = HF_BUF_INIT }

void hf_remember_done(struct hf_remember *remember);

/*
 * Starts a child that looks at the tree at the lowest priority and writes down what it found. It has no signal at its end (waitid with __WCLONE) and
 * may be killed at any moment. 0; -EWOULDBLOCK: another process is at it; or -errno.
 */
int hf_remember_start(const struct hf_remember *remember, pid_t *ret_child);

/* Does it here and now; what that child does. For tests as well. */
int hf_remember_now(const struct hf_remember *remember);

#endif
