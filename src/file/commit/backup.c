/*
 * file/commit/backup.c - earlier versions: leaf.~1~ is the last one, leaf.~2~ the one before.
 *
 * Before the rename the old file gets a second name, ".<leaf>.holdfast-old.tmp"; after it,
 * the backups move up by one and that name becomes leaf.~1~. The next holder of the
 * lock sees a crash between the two: if that name still is the file itself, the rename
 * never happened and the name goes; else it is finished. So a version is neither lost nor
 * kept twice, and a failure before the rename has not touched the backups.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/backup.h"
#include "hf/file/content.h"
#include "hf/file/commit/meta.h"
#include "hf/file/commit/temp.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

static void backup_name(const struct hf_file *file, unsigned number, char out[NAME_MAX + 1])
{
	(void)snprintf(out, NAME_MAX + 1, "%.*s.~%u~", HF_LEAF_MAX, file->leaf, number % 100);
}

/* What stands in the places of backups must be files: anything else is not ours to move. */
static int check_places(const struct hf_file *file, struct hf_err *err)
{
	char name[NAME_MAX + 1];
	struct stat st;

	for (unsigned i = 1; i <= file->backups; i++) {
		int r;

		backup_name(file, i, name);
		r = hf_stat_at(file->dirfd, name, &st);
		if (r == -ENOENT)
			break;
		if (r < 0)
			return hf_fail_sys(err, -r, "statx", name);
		if (!S_ISREG(st.st_mode))
			return FAIL(err, HF_E_KIND, "backup", name,
				    "it has the name of a backup and is not a file");
	}
	return 0;
}

/* A copy, where a second name cannot be made (another owner's file, some file systems). */
static int keep_copy(const struct hf_file *file, const char *name, struct hf_err *err)
{
	AUTO_FD fd = hf_create_at(file->dirfd, name, O_RDWR, 0600);
	int r;

	if (fd < 0)
		return hf_fail_sys(err, -fd, "backup", file->path);
	r = hf_content_copy(file->old_fd, 0, file->version.size, fd);
	if (r == 0 && hf_sys.fsync(fd) < 0)
		r = -errno;
	if (r < 0)
		r = hf_fail_sys(err, -r, "backup", file->path);
	else
		r = hf_meta_carry(file, file->old_fd, fd, err);
	if (r < 0)
		(void)hf_sys.unlinkat(file->dirfd, name, 0);
	return r;
}

int hf_backup_keep(const struct hf_file *file, struct hf_err *err)
{
	char name[NAME_MAX + 1];
	int r = check_places(file, err);

	if (r < 0)
		return r;
	hf_temp_old_name(file, name);
	if (hf_sys.linkat(file->dirfd, file->leaf, file->dirfd, name, 0) == 0)
		return 0;
	if (errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP || errno == ENOSYS)
		return keep_copy(file, name, err);
	/* Replaced or removed in that moment by an editor. */
	if (errno == ENOENT)
		return FAIL(err, HF_E_CHANGED, "backup", file->path,
			    "it is no longer the file that was read");
	return FAIL_SYS(err, "backup", file->path);
}

void hf_backup_forget(const struct hf_file *file)
{
	char name[NAME_MAX + 1];

	hf_temp_old_name(file, name);
	(void)hf_sys.unlinkat(file->dirfd, name, 0);
}

/* Moves up those that are in the way: up to the first free number, or over the last. */
static int make_room(const struct hf_file *file, unsigned keep)
{
	char from[NAME_MAX + 1], to[NAME_MAX + 1];
	struct stat st;
	unsigned free = 1;

	for (; free < keep; free++) {
		backup_name(file, free, to);
		if (hf_stat_at(file->dirfd, to, &st) == -ENOENT)
			break;
	}
	for (; free > 1; free--) {
		backup_name(file, free - 1, from);
		backup_name(file, free, to);
		if (hf_sys.renameat2(file->dirfd, from, file->dirfd, to, 0) < 0)
			return -errno;
	}
	return 0;
}

int hf_backup_rotate(const struct hf_file *file, struct hf_err *err)
{
	unsigned keep = file->backups ? file->backups : HF_FILE_BACKUPS_MAX;
	char old[NAME_MAX + 1], first[NAME_MAX + 1];
	int r = make_room(file, keep);

	hf_temp_old_name(file, old);
	backup_name(file, 1, first);
	if (r == 0 && hf_sys.renameat2(file->dirfd, old, file->dirfd, first, 0) < 0)
		r = -errno;
	return r < 0 ? hf_fail_sys(err, -r, "backup", file->path) : 0;
}

void hf_backup_recover(const struct hf_file *file)
{
	char name[NAME_MAX + 1];
	struct stat kept;

	hf_temp_old_name(file, name);
	if (hf_stat_at(file->dirfd, name, &kept) < 0 || !S_ISREG(kept.st_mode))
		return;
	if (hf_is_named(file->dirfd, file->leaf, &kept))
		hf_backup_forget(file);
	else
		(void)hf_backup_rotate(file, NULL);
}
