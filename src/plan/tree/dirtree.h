/*
 * plan/tree/dirtree.h - directories that other processes change and may have laid out to mislead.
 *
 * Everything is relative to a descriptor, no symlink is followed and no mount is crossed
 * (L12). An entry is named by (directory, leaf); a path below a root has '/' between its
 * parts, none of them "." or "..", and "" is the root itself.
 */
#ifndef PLAN_TREE_DIRTREE_H
#define PLAN_TREE_DIRTREE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "holdfast/err.h"

/* One entry as the directory itself names it: no stat was needed. */
struct hf_dent {
	const char *name;
	uint64_t ino;
	unsigned char type; /* DT_... */
};

struct hf_listing {
	struct hf_dent *entries; /* sorted by name, without "." and ".." */
	size_t n;
	char *text;
};

/* Reads the whole directory `fd` from its beginning. Returns 0 or -errno. */
int hf_listing_read(int fd, struct hf_listing *ret);
void hf_listing_done(struct hf_listing *listing);

/* The entry of that name, or NULL. */
const struct hf_dent *hf_listing_find(const struct hf_listing *listing, const char *name);

/* Opens the directory `name` of `dirfd` for reading. -ENOTDIR, -ELOOP, -EXDEV for what is none. */
int hf_dirtree_open(int dirfd, const char *name);

/*
 * Opens the directory at `path` below `rootfd` as a place (O_PATH). A path may be longer than
 * the kernel takes at once. Returns the descriptor or -errno.
 */
int hf_dirtree_descend(int rootfd, const char *path, size_t len);

/* 1 when `path` may stand in a record: relative, no "", ".", ".." between its slashes; "" too. */
int hf_dirtree_path_ok(const char *path, size_t len);

/* 1 when `path` may be a target's: absolute, and no "", "." or ".." on the way. */
int hf_dirtree_target_ok(const char *path);

/* The leaf of a path: behind its last slash. */
const char *hf_dirtree_leaf(const char *path);

/* As fstatat of the entry itself. Returns 1, 0 when there is none, or -errno. */
int hf_dirtree_look(int dirfd, const char *name, struct stat *ret);

/*
 * "/proc/self/fd/N/name" for the calls that know no directory descriptor; "" names the
 * directory itself. `out` has HF_ENTRY_PATH_MAX bytes.
 */
#define HF_ENTRY_PATH_MAX (NAME_MAX + 48)
void hf_dirtree_proc_path(int dirfd, const char *name, char *out);

/* chmod of the entry itself, which must not be a symlink and must have that inode. */
int hf_dirtree_chmod(int dirfd, const char *name, uint64_t ino, mode_t mode);

#endif
