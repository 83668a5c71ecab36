/* file/entry.h - from a path to a directory entry. */
#ifndef FILE_ENTRY_H
#define FILE_ENTRY_H

#include "hf/file/file.h"

/* Fills dirfd, leaf, path and name from the path given; checks root and kind. */
int hf_entry_resolve(struct hf_file *file, const char *path, const char *root, struct hf_err *err);

/*
 * Follows the path of the open again. Returns 0: it leads to the pinned directory and the same name;
 * HF_E_MOVED; -errno when that cannot be found out.
 */
int hf_entry_check_path(const struct hf_file *file, struct hf_err *err);

/*
 * Looks at the entry. Returns 1 a regular file, 2 a symlink that may be replaced, 0 nothing
 * there and that is fine; -ENOENT; HF_E_KIND; -errno.
 */
int hf_entry_look(const struct hf_file *file, struct stat *ret_st, struct hf_err *err);

/* The lock's name of a directory entry. */
void hf_entry_name(dev_t dev, ino_t ino, const char *leaf, char out[HF_NAME_MAX + 1]);

/* The lock by which the edits inside one "file with" take turns. */
void hf_entry_inner_name(const struct hf_file *file, char out[HF_NAME_MAX + 1]);

#endif
