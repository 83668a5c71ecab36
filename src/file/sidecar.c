/*
 * file/sidecar.c - ".<leaf>.lock" beside the file: how we and tools that know nothing of
 * Holdfast keep each other out. Always flock(2), always empty, unlinked by hook uninstall alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/file/sidecar.h"
#include "hf/lock/flocked.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

#define REPLACED_MAX   16 /* replaced under us that often: give up */

/* Ours, root's or the directory owner's: no other user has a reason to have made it. */
static int check_sidecar(const struct hf_file *file, const struct stat *st, const char *shown,
			 struct hf_err *err)
{
	if (!S_ISREG(st->st_mode))
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "not a regular file");
	if (st->st_uid != geteuid() && st->st_uid != file->dir_uid && st->st_uid != 0)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "owned by uid %u, which is neither yours nor that of the directory's owner",
			    (unsigned)st->st_uid);
	if (st->st_nlink > 1)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "has %lu names (hard links)",
			    (unsigned long)st->st_nlink);
	return 0;
}

static int is_to_be_made(const struct hf_file *file)
{
	return file->flags & HF_FILE_SIDECAR || file->is_shared;
}

/* Opens the file, or makes it; *made becomes 1 when it did. */
static int open_or_make(const struct hf_file *file, const char *name, int *made)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
	int fd = hf_open_at(file->dirfd, name, flags, 0);

	if (fd == -ENOENT && is_to_be_made(file)) {
		fd = hf_create_at(file->dirfd, name, flags, 0600);
		*made |= fd >= 0;
		if (fd == -EEXIST) /* another process was faster */
			fd = hf_open_at(file->dirfd, name, flags, 0);
	}
	/* Ours, but made under a umask that took the owner's bits. */
	if (fd == -EACCES && hf_mend_mode(file->dirfd, name, S_IFREG, 0600) > 0)
		fd = hf_open_at(file->dirfd, name, flags, 0);
	return fd;
}

static int open_sidecar(struct hf_file *file, const char *name, const char *shown,
			struct stat *ret_st, struct hf_err *err)
{
	AUTO_FLOCK_FD fd = -1;
	int r, made = 0;
	struct hf_opening opening;

	do {
		r = hf_noinherit_begin(&opening);
		if (r < 0)
			return hf_fail_sys(err, -r, "atfork", shown);
		fd = open_or_make(file, name, &made);
	} while ((r = hf_noinherit_note(&fd, &opening)) == 0);
	if (r == -ENOENT && !is_to_be_made(file))
		return r;
	if (r < 0)
		return hf_fail_open(err, r, shown);
	file->made_sidecar |= made;
	/* Made by root in a user's directory it would lock that user out for ever. */
	if (made && geteuid() == 0 && file->dir_uid != 0)
		(void)hf_sys.fchown(fd, file->dir_uid, (gid_t)-1);
	r = hf_stat_at(fd, "", ret_st);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", shown);
	r = ret_st->st_nlink == 0 ? 0 : check_sidecar(file, ret_st, shown, err);
	return r < 0 ? r : fd_take(&fd);
}

static void name_of(const struct hf_file *file, char name[NAME_MAX + 1])
{
	(void)snprintf(name, NAME_MAX + 1, ".%.*s.lock", HF_LEAF_MAX, file->leaf);
}

int hf_sidecar_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		    struct hf_err *err)
{
	struct hf_mono deadline = hf_mono_in(wait_ns < 0 ? INT64_MAX : wait_ns);
	struct hf_lock_opts opts = file->wait;
	char name[NAME_MAX + 1], shown[PATH_MAX];

	name_of(file, name);
	(void)snprintf(shown, sizeof(shown), "%.*s.%s.lock",
		       (int)(strlen(file->path) - strlen(file->leaf)), file->path, file->leaf);
	for (int i = 0; i < REPLACED_MAX; i++) {
		struct stat st;
		AUTO_FLOCK_FD fd = open_sidecar(file, name, shown, &st, err);
		int r;

		if (fd < 0)
			return fd == -ENOENT && !is_to_be_made(file) ? 0 : fd;
		opts.wait_ns = wait_ns > 0 ? hf_mono_left(deadline) : wait_ns;
		r = hf_flocked(fd, shown, &opts, ret_blocker, err);
		if (r < 0)
			return r;
		/* Unlinked while we waited, by a tool that does so: that lock is nobody's. */
		if (hf_is_named(file->dirfd, name, &st)) {
			file->sidecar = fd_take(&fd);
			return 0;
		}
	}
	return FAIL(err, -EAGAIN, "flock", shown, "it keeps being replaced");
}

void hf_sidecar_remove(struct hf_file *file)
{
	char name[NAME_MAX + 1];
	struct stat st;

	name_of(file, name);
	if (file->sidecar >= 0 && hf_stat_at(file->sidecar, "", &st) == 0 && st.st_size == 0 &&
	    hf_is_named(file->dirfd, name, &st))
		(void)hf_sys.unlinkat(file->dirfd, name, 0);
}
