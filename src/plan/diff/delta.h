/*
 * plan/diff/delta.h - how a sandbox differs from its target, entry by entry, with a verdict on each.
 *
 * A delta is what a commit does to one entry of the target. A new directory is one delta with all
 * that is in it, and so is a directory that goes; hf_plan_diff lists what is inside them, too.
 *
 * An upper directory of overlayfs is read as the kernel reads it: a character device 0:0, or
 * an empty file with the attribute "whiteout" in a directory marked for it, is a deletion; a
 * directory marked opaque hides the target's; any other directory is merged with it.
 */
#ifndef PLAN_DIFF_DELTA_H
#define PLAN_DIFF_DELTA_H

#include "hf/plan/target/base.h"
#include "hf/plan/recovery/intent.h"

/* Why an entry cannot be committed. */
/* clang-format off */
#define HF_CONFLICT_LIST(X)                                 \
	X(NONE,             "")                             \
	X(CHANGED,          "changed")                      \
	X(DELETED,          "deleted-meanwhile")            \
	X(PARENT_UNKNOWN,   "parent-unknown")               \
	X(NAME_UNKNOWN,     "name-unknown")                 \
	X(BELOW,            "changed-below")                \
	X(MODE,             "mode")                         \
	X(OPEN_FOR_WRITING, "open-for-writing")             \
	X(GIT_BUSY,         "git-busy")                     \
	X(MERGE_CONFLICT,   "merge-conflict")               \
	X(DEPENDS,          "depends")                      \
	X(STRICT,           "strict")                       \
	X(UNSUPPORTED,      "unsupported")
/* clang-format on */

enum hf_verdict {
#define HF_CONFLICT_ENUM(name, word) HF_VERDICT_##name,
	HF_CONFLICT_LIST(HF_CONFLICT_ENUM)
#undef HF_CONFLICT_ENUM
};

const char *hf_verdict_word(enum hf_verdict verdict);

/* An entry as it was looked at. mode 0: there is none. */
struct hf_side {
	uint64_t ino, size, nlink;
	int64_t mtime_ns, ctime_ns;
	uint32_t mode, uid, gid;
};

struct hf_delta {
	char *path; /* below the target */
	char *slot; /* where the new version is, below the sandbox's directory */
	char *shown; /* what a verdict is about, where that is not `path`; or NULL */
	enum hf_change_kind kind;
	uint8_t op;    /* enum hf_op_kind; 0: nothing is done */
	int inner;     /* belongs to a directory that lands as a whole: not listed by itself */
	int same;      /* both sides made the same change: nothing is done */
	int forced;    /* its verdict was overruled */
	int outside_link; /* a file that has names outside of the sandbox: must be copied */
	enum hf_verdict verdict;
	struct hf_side old, new;
	uint64_t parent_ino;
	char *attrs;
	size_t attrs_len;
	char *merged;          /* the new version is this file below the sandbox's directory; or NULL */
	const char *base_kind; /* of the merge: "kept" or "git" */
	char *base;            /* a plan's name, or a commit's */
	const char *unmerged;  /* why it was not merged, though that was asked for; or NULL */
};

struct hf_deltas {
	struct hf_delta *list;
	size_t n, room;
};

void hf_deltas_done(struct hf_deltas *deltas);

/* Adds an empty one for `path`; NULL when there is no memory. */
struct hf_delta *hf_deltas_add(struct hf_deltas *deltas, const char *path);

enum hf_delta_flags {
	HF_DELTA_INSIDE = 1 << 0, /* for a commit: also what is inside of new directories */
};

struct hf_delta_walk {
	int sandbox_fd, target_fd;
	const char *top;    /* HF_SANDBOX_UPPER or HF_SANDBOX_TREE */
	const char *prefix; /* of overlayfs' attributes; NULL: clone or copy */
	const struct hf_base *base;
	const char *const *ignore; /* NULL-ended globs, or NULL */
	unsigned flags;
	struct hf_deltas *out;
	struct hf_err *err; /* of a failure: filled in */
};

/* Finds all deltas of an overlay, sorted by path. 0, or -errno with `err` filled in. */
int hf_delta_overlay(struct hf_delta_walk *walk);

/* The same for a clone or copy. */
int hf_delta_tree(struct hf_delta_walk *walk);

/* -- parts of it (delta_inner.c, delta_same.c, ignore.c) ---------------------------- */

void hf_side_take(struct hf_side *side, const struct stat *st);

/* Names are `path` behind `len` bytes, after the call. */
int hf_path_set(struct hf_buf *path, size_t len, const char *name);

/*
 * Looks through a directory that lands as a whole, open as `fd`: adds inner deltas for what must not
 * land with it and for attributes of overlayfs. `path` is its own.
 */
int hf_delta_inside(struct hf_delta_walk *walk, int fd, struct hf_buf *path);

/*
 * Are the two entries the same, by type, mode, owner, content and attributes? Directories are not.
 * 1, 0 or -errno.
 */
int hf_same_entry(int a_fd, const char *a_name, const struct stat *a, int b_fd, const char *b_name,
		  const struct stat *b, const char *prefix_of_a);

/* 1 when `path` (a directory or not) is matched by one of the globs. */
int hf_ignored(const char *const *globs, const char *path, int is_dir);

#endif
