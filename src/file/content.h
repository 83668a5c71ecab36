/* file/content.h - which version a file is, copying parts of it, and comparing two. */
#ifndef FILE_CONTENT_H
#define FILE_CONTENT_H

#include "hf/file/file.h"

/* The version of an entry that was looked at; `fd` is -1 for none or a symlink. */
int hf_version_take(const struct stat *st, int fd, int kind, struct hf_version *ret);

/* Is the entry still that? 1 yes, 0 no, -errno. */
int hf_version_is_current(const struct hf_file *file);

/* Is the content still that? Only looks where the times prove nothing. 1, 0, -errno. */
int hf_version_same_content(const struct hf_file *file);

struct hf_stamp hf_stamp_of(const struct stat *st);
int hf_stamp_equal(const struct hf_stamp *a, const struct hf_stamp *b);

/* Copies [at, at + len) of `from` to the end of `to`. A shorter file is fine. 0 or -errno. */
int hf_content_copy(int from, off_t at, off_t len, int to);

/* Do both hold the same bytes? 1, 0, -errno. */
int hf_content_equal(int a, int b);

#endif
