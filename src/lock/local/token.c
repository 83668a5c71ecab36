/*
 * lock/local/token.c - tokens that rise for ever, whatever happens to the record and the clock (L2).
 *
 * A token is the wall clock in microseconds, or one more than the last of its record where that is
 * higher. A record that is deleted, or replaced by an older copy, forgets its last token; then the
 * clock is still past it, unless it was ahead when that token was given and is right now. For that
 * case the file .token keeps the highest token that was given for any name of this directory, at
 * most LAG_US too low: so it is looked at once in LAG_US, and for each new record, and is nothing
 * on the path of the others. A token that would be lower by more than LAG_US shows that the clock
 * went back, and begins behind it.
 *
 * What remains: a clock that goes back by less than twice LAG_US, within the same time as the loss
 * of the record. And all of it is as good as can be had: where .token cannot be read or written,
 * the clock has to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/token.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/noinherit.h"

#define FILE_NAME ".token"
#define LAG_US    (UINT64_C(1000000))

/* No clock is that far ahead (the year 2112); a file that says so is damaged. */
#define HIGHEST_US (UINT64_C(1) << 52)

/* The number, and its complement: half a write, or another file's bytes, are not believed. */
struct note {
	uint64_t token;
	uint64_t inverted;
};

static uint64_t read_note(int fd)
{
	struct note note;

	if (hf_pread_all(fd, (char *)&note, sizeof(note), 0) != sizeof(note) ||
	    note.token != ~note.inverted || note.token > HIGHEST_US)
		return 0;
	return note.token;
}

/* Notes `token`, unless a higher one is there. 0, or -1: another process is at it. */
static int write_note(const struct hf_local *locks, int fd, uint64_t token)
{
	struct note note = { token, ~token };
	size_t done;
	int r = 0;

	if (!hf_local_may_write(locks, sizeof(note), 0) ||
	    hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	if (read_note(fd) < token)
		r = hf_pwrite_all(fd, (const char *)&note, sizeof(note), 0, &done);
	(void)hf_sys.flock(fd, LOCK_UN);
	return r < 0 ? -1 : 0;
}

static int open_note(const struct hf_kind_dir *dir)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
	AUTO_FLOCK_FD fd = hf_noinherit_open_noatime(dir->fd, FILE_NAME, flags, 0600);
	struct stat st;

	/* A umask took the owner's bits: the token would be noted once and never again. */
	if (fd == -EACCES && hf_mend_mode(dir->fd, FILE_NAME, S_IFREG, 0600) > 0)
		fd = hf_noinherit_open_noatime(dir->fd, FILE_NAME, flags, 0600);
	/* Not a private file of ours: then not to be believed, either. */
	if (fd < 0 || hf_stat_at(fd, "", &st) < 0 || hf_check_private(&st, FILE_NAME, NULL) < 0)
		return -1;
	if ((st.st_mode & 0600) != 0600)
		(void)hf_sys.fchmod(fd, 0600);
	return fd_take(&fd);
}

/* Compares with what was given in this directory. Returns the token to give. */
static uint64_t compare(const struct hf_local *locks, struct hf_kind_dir *dir, uint64_t token)
{
	AUTO_FLOCK_FD fd = open_note(dir);
	uint64_t highest = fd < 0 ? 0 : read_note(fd);

	if (fd < 0)
		return token;
	if (token + LAG_US < highest)
		token = highest + LAG_US + 1;
	if (token < highest + LAG_US)
		dir->noted = highest;
	else if (write_note(locks, fd, token) == 0)
		dir->noted = token;
	return token;
}

uint64_t hf_token_next(struct hf_guard *guard)
{
	uint64_t now = (uint64_t)(hf_wall_now().ns / HF_USEC), noted = guard->dir->noted;
	uint64_t token = guard->record.token + 1 > now ? guard->record.token + 1 : now;

	if (!guard->is_new && token >= noted && token - noted < LAG_US)
		return token;
	return compare(guard->locks, guard->dir, token);
}
