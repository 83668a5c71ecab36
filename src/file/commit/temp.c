/* file/commit/temp.c - names of the temporary files, making one, and sweeping what was never exchanged. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/intent.h"
#include "hf/file/commit/temp.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

#define MAKE_TRIES  64
#define LITERAL_MAX (NAME_MAX - (int)sizeof("..holdfast-0-swap.tmp"))

static void temp_name(const struct hf_file *file, const char *which, char out[NAME_MAX + 1])
{
	if (strlen(file->leaf) <= (size_t)LITERAL_MAX)
		(void)snprintf(out, NAME_MAX + 1, ".%.*s.holdfast-%s.tmp", LITERAL_MAX, file->leaf,
			       which);
	else
		(void)snprintf(out, NAME_MAX + 1, ".holdfast-%016llx-%s.tmp",
			       (unsigned long long)XXH3_64bits(file->leaf, strlen(file->leaf)),
			       which);
}

void hf_temp_name(const struct hf_file *file, int slot, char out[NAME_MAX + 1])
{
	char which[] = { (char)('0' + slot), '\0' };

	temp_name(file, which, out);
}

void hf_temp_intent_name(const struct hf_file *file, int slot, char out[NAME_MAX + 1])
{
	char which[] = { (char)('0' + slot), '-', 's', 'w', 'a', 'p', '\0' };

	temp_name(file, which, out);
}

void hf_temp_old_name(const struct hf_file *file, char out[NAME_MAX + 1])
{
	temp_name(file, "old", out);
}

int hf_temp_claim(const struct hf_file *file, const char *name)
{
	AUTO_FLOCK_FD fd = -1;
	struct stat st;

	if (hf_stat_at(file->dirfd, name, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (st.st_uid != geteuid() && geteuid() != 0))
		return -1;
	fd = hf_noinherit_open(file->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	/* The umask of its writer took the right to read it. */
	if (fd == -EACCES && hf_mend_mode(file->dirfd, name, S_IFREG, 0400) > 0)
		fd = hf_noinherit_open(file->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0 || hf_stat_at(fd, "", &st) < 0 ||
	    !hf_is_named(file->dirfd, name, &st))
		return -1;
	return fd_take(&fd);
}

void hf_temp_sweep(const struct hf_file *file, int slot)
{
	char name[NAME_MAX + 1], intent[NAME_MAX + 1];
	AUTO_FLOCK_FD fd = -1;
	struct stat st;

	hf_temp_name(file, slot, name);
	hf_temp_intent_name(file, slot, intent);
	fd = hf_temp_claim(file, name);
	/*
	 * A living writer could have exchanged its file between our look for an intent and the
	 * flock: then there is an intent now.
	 */
	if (fd >= 0 && hf_stat_at(file->dirfd, intent, &st) == -ENOENT)
		(void)hf_sys.unlinkat(file->dirfd, name, 0);
}

/* Makes the file of one slot. Returns 1; 0 when the slot is taken; -errno. */
static int make_in(struct hf_file *file, int slot, mode_t mode)
{
	char name[NAME_MAX + 1], intent[NAME_MAX + 1];
	AUTO_FLOCK_FD fd = -1;
	struct hf_opening opening;
	struct stat st;
	int r, made;

	hf_temp_name(file, slot, name);
	hf_temp_intent_name(file, slot, intent);
	r = hf_noinherit_begin(&opening);
	if (r < 0)
		return r;
	fd = hf_open_at(file->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	made = fd >= 0;
	r = hf_noinherit_note(&fd, &opening);
	/* A child has it too: made again, with the next name. */
	if (r <= 0 && made)
		(void)hf_sys.unlinkat(file->dirfd, name, 0);
	if (r <= 0)
		return r == -EEXIST ? 0 : r;
	r = hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : hf_stat_at(fd, "", &st);
	/* An intent without its file is of a process between its last two steps. */
	if (r == 0 && st.st_nlink > 0) {
		r = hf_stat_at(file->dirfd, intent, &(struct stat){ 0 });
		r = r == 0 ? -EWOULDBLOCK : r == -ENOENT ? 0 : r;
	}
	if (r < 0) {
		(void)hf_sys.unlinkat(file->dirfd, name, 0);
		return r == -EWOULDBLOCK ? 0 : r;
	}
	/* A sweeper that came between open and flock took it for a leftover. */
	if (st.st_nlink == 0)
		return 0;
	file->new_fd = fd_take(&fd);
	file->slot = slot;
	hf_copy_text(file->temp, sizeof(file->temp), name);
	return 1;
}

int hf_temp_make(struct hf_file *file, mode_t mode, struct hf_err *err)
{
	char name[NAME_MAX + 1];

	for (int try = 0; try < MAKE_TRIES; try++) {
		int r = make_in(file, try % HF_TEMP_SLOTS, mode);

		if (r > 0)
			return 0;
		if (r < 0)
			return hf_fail_sys(err, -r, "temporary file", file->path);
	}
	hf_temp_name(file, 0, name);
	return FAIL(err, -EBUSY, "temporary file", file->path,
		    "%d other processes are writing it without the lock, or the names "
		    "%s (and 1 to %d) are taken",
		    HF_TEMP_SLOTS, name, HF_TEMP_SLOTS - 1);
}
