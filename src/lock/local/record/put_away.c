/* lock/local/record/put_away.c - moving to quarantine what stands in the place of a file of this store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/lock/local/record/put_away.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/state/state.h"
#include "holdfast/name.h"

int hf_local_is_current(const struct hf_local_file *file, const struct stat *st)
{
	struct stat named;

	return hf_stat_at(file->dir->fd, file->file, &named) == 0 && named.st_ino == st->st_ino &&
	       named.st_dev == st->st_dev;
}

int hf_local_is_private(const struct hf_local_file *file)
{
	struct stat st;

	return hf_stat_at(file->dir->fd, file->file, &st) == 0 &&
	       hf_check_private(&st, file->file, NULL) == 0;
}

int hf_local_put_away(const struct hf_local_file *file, const char *why, struct hf_err *err)
{
	const char *kind = hf_lock_kind_word(file->dir->kind);
	char shown[HF_NAME_KEY_MAX + 32], label[32];
	const struct hf_put_away what = { .state = file->locks->state,
					  .journal = file->locks->journal,
					  .subject = file->name,
					  .shown = shown,
					  .label = label,
					  .reason = why };
	int r;

	(void)snprintf(label, sizeof(label), "locks.%s", kind);
	(void)snprintf(shown, sizeof(shown), "locks/%s/%s", kind, file->file);
	r = hf_put_away(&what, file->dir->fd, file->file, err);
	return r == -ENOENT ? 0 : r;
}

int hf_local_put_away_unopened(const struct hf_local_file *file, int cancel_fd, struct hf_mono deadline,
			       struct hf_err *err)
{
	const struct hf_backoff backoff = { .yields = 4,
					    .min_ns = 20 * HF_USEC,
					    .max_ns = 2 * HF_MSEC,
					    .cancel_fd = cancel_fd };
	AUTO_FLOCK_FD dir = hf_noinherit_open(file->dir->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int r = dir < 0 ? dir : hf_flock_until(dir, LOCK_EX, deadline, &backoff);

	if (r == HF_E_CANCELLED)
		return FAIL(err, r, "wait", file->name, "%s", "");
	if (r < 0)
		return hf_fail_sys(err, -r, "flock", "locks");
	return hf_local_is_private(file) ? 0
					 : hf_local_put_away(file, "not a regular file owned by this user", err);
}
