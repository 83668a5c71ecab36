/* file/commit.h - replacing the file by what was written. */
#ifndef FILE_COMMIT_H
#define FILE_COMMIT_H

#include "hf/file/file.h"

/* As hf_file_commit, which drops the temporary file afterwards. */
int hf_commit(struct hf_file *file, struct hf_err *err);

#endif
