/* file/commit/backup.h - earlier versions. */
#ifndef FILE_COMMIT_BACKUP_H
#define FILE_COMMIT_BACKUP_H

#include "hf/file/file.h"

/* Keeps the old version under a second name until the rename has happened. */
int hf_backup_keep(const struct hf_file *file, struct hf_err *err);

/* The rename happened: what was kept becomes leaf.~1~. */
int hf_backup_rotate(const struct hf_file *file, struct hf_err *err);

/* The rename did not happen. */
void hf_backup_forget(const struct hf_file *file);

/* What a crash left between keep and rotate: finished, or forgotten. */
void hf_backup_recover(const struct hf_file *file);

#endif
