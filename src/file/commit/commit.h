/* file/commit/commit.h - replacing the file by what was written. */
#ifndef FILE_COMMIT_COMMIT_H
#define FILE_COMMIT_COMMIT_H

#include "hf/file/file.h"

/*
 * Calls `action` under the guards of the file's own lock and of the fence, with both tokens
 * proven (L5). Returns what it returns, or why it was not called, then also in *ret_refusal
 * (may be NULL).
 */
int hf_commit_guarded(struct hf_file *file, int (*action)(struct hf_file *file, void *arg), void *arg,
		      struct hf_err *ret_refusal);

/* As hf_file_commit, which drops the temporary file afterwards. */
int hf_commit(struct hf_file *file, struct hf_err *err);

#endif
