/* lock/local/record/put_away.h - files of this store that failed their checks go to quarantine. */
#ifndef LOCK_LOCAL_RECORD_PUT_AWAY_H
#define LOCK_LOCAL_RECORD_PUT_AWAY_H

#include <sys/stat.h>

#include "hf/lock/local/local.h"

/* A file of a kind's directory. */
struct hf_local_file {
	struct hf_local *locks;
	const struct hf_kind_dir *dir;
	const char *file;
	const char *name; /* of the lock that it belongs to; NULL: of none */
};

/* 1 when the file that `st` describes still has its name. */
int hf_local_is_current(const struct hf_local_file *file, const struct stat *st);

/* 1 when what has the name now is a file that may be trusted. */
int hf_local_is_private(const struct hf_local_file *file);

/*
 * Moves what has that name to quarantine, and journals it once (L8). The caller has flocked it, so
 * that nobody moves it twice.
 */
int hf_local_put_away(const struct hf_local_file *file, const char *why, struct hf_err *err);

/*
 * The same for what cannot be opened, and so cannot be flocked either (a symlink, a directory). Of two
 * processes that see it, the second would move away the good file that the first has begun by
 * then. So one at a time looks and moves, under a flock on the directory. HF_E_CANCELLED: `cancel_fd`
 * (0: none) became readable.
 */
int hf_local_put_away_unopened(const struct hf_local_file *file, int cancel_fd, struct hf_mono deadline,
			       struct hf_err *err);

#endif
