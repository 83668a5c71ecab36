/* file/commit/meta.h - what a new file takes over from the old one. */
#ifndef FILE_COMMIT_META_H
#define FILE_COMMIT_META_H

#include "hf/file/file.h"

/* Owner, mode, extended attributes and ACL of `from` for `to`. */
int hf_meta_carry(const struct hf_file *file, int from, int to, struct hf_err *err);

#endif
