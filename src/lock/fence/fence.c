/* lock/fence/fence.c - the highest token that has acted on a resource of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/lock/fence/fence.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/state/state.h"
#include "holdfast/name.h"

#define DIR_NAME "fences"

/* "<kind>.<key>": a key has no dot. */
#define FILE_NAME_MAX (HF_NAME_KEY_MAX + 8)

/* Fences that are replaced under us before we give up. */
#define MAX_TRIES 16

/* The number, and its complement: half a write, or another file's bytes, are not believed. */
struct note {
	uint64_t token;
	uint64_t inverted;
};

/* Opens the directory of the series, and keeps it: a session acts on its record several times. */
static int open_series(struct hf_fences *fences, struct hf_err *err)
{
	AUTO_FD all = -1;
	AUTO_FD fd = -1;
	char shown[64];
	int kept = -1, r = hf_state_subdir(fences->state, DIR_NAME, 1, &all, err);

	(void)snprintf(shown, sizeof(shown), DIR_NAME "/%.40s", fences->series);
	if (r == 0)
		r = hf_private_subdir(all, fences->series, shown, 1, &fd, err);
	if (r < 0)
		return r;
	if (atomic_compare_exchange_strong(&fences->dirfd, &kept, fd))
		(void)fd_take(&fd);
	/* There is one, and other threads may be using its number: the new directory comes to stand under that. */
	else if (dup3(fd, kept, O_CLOEXEC) < 0)
		return hf_fail_sys(err, errno, "dup3", shown);
	return 0;
}

void hf_fences_done(struct hf_fences *fences)
{
	int fd = atomic_exchange(&fences->dirfd, -1);

	hf_auto_close(&fd);
}

static int file_name(const struct hf_lock_ref *lock, char out[FILE_NAME_MAX], struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(lock->name, strlen(lock->name), key, err);

	if (r >= 0)
		(void)snprintf(out, FILE_NAME_MAX, "%s.%s", hf_lock_kind_word(lock->kind), key);
	return r < 0 ? r : 0;
}

/* 1 when it is whole; 0 when not. An empty one is whole: it was just made. */
static int read_note(int fd, uint64_t *ret_token)
{
	struct note note = { 0 };
	ssize_t n = hf_pread_all(fd, (char *)&note, sizeof(note), 0);

	*ret_token = 0;
	if (n < 0)
		return (int)n;
	if (n == 0)
		return 1;
	*ret_token = note.token;
	return n == sizeof(note) && note.token == ~note.inverted;
}

static int put_away(const struct hf_fences *fences, struct hf_journal *journal, int dirfd,
		    const char *file, const char *why, struct hf_err *err)
{
	char shown[FILE_NAME_MAX + 64];
	const struct hf_put_away what = { .state = fences->state,
					  .journal = journal,
					  .shown = shown,
					  .label = DIR_NAME,
					  .reason = why };
	int r;

	(void)snprintf(shown, sizeof(shown), DIR_NAME "/%.40s/%s", fences->series, file);
	r = hf_put_away(&what, dirfd, file, err);
	return r == -ENOENT ? 0 : r; /* another process was faster, and has told it */
}

/* 1 when the file that was flocked still has its name. */
static int is_current(int dirfd, const char *file, int fd)
{
	struct stat named, open;

	return hf_stat_at(dirfd, file, &named) == 0 && hf_stat_at(fd, "", &open) == 0 &&
	       named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

static int open_fence(int dirfd, const char *file, int create, const char *shown, int *ret_fd,
		      struct hf_err *err)
{
	struct hf_opening opening;
	int fd, r, noted;

	do {
		fd = -1;
		r = hf_noinherit_begin(&opening);
		if (r < 0)
			return hf_fail_sys(err, -r, "open", shown);
		r = hf_open_private(dirfd, file, O_RDWR | (create ? O_CREAT : 0), shown, &fd, NULL,
				    err);
		noted = hf_noinherit_note(&fd, &opening);
	} while (r == 0 && noted == 0);
	if (r == 0 && noted < 0)
		return hf_fail_sys(err, -noted, "open", shown);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

/* 1 taken, 0 try again, negative: no. */
static int try_take(const struct hf_fences *fences, struct hf_journal *journal, int dirfd,
		    const char *file, const struct hf_lock_ref *lock, int create,
		    struct hf_mono deadline, struct hf_fence *ret, struct hf_err *err)
{
	static const struct hf_backoff backoff = { .yields = 4,
						   .min_ns = 20 * HF_USEC,
						   .max_ns = 5 * HF_MSEC };
	struct hf_err why = HF_ERR_INIT;
	AUTO_FLOCK_FD fd = -1;
	int r = open_fence(dirfd, file, create, lock->name, &fd, &why);

	if (r == -ENOENT && !create)
		return 1;
	if (r == HF_E_UNTRUSTED)
		return put_away(fences, journal, dirfd, file, "not a regular file owned by this user", err);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	r = hf_flock_until(fd, LOCK_EX, deadline, &backoff);
	if (r == -ETIMEDOUT)
		return FAIL(err, r, "fence", lock->name,
			    "a process is stopped while it acts on what the lock protects");
	if (r < 0)
		return hf_fail_sys(err, -r, "flock", lock->name);
	if (!is_current(dirfd, file, fd))
		return 0;
	r = read_note(fd, &ret->admitted);
	if (r == 0)
		return put_away(fences, journal, dirfd, file, "damaged", err);
	if (r < 0)
		return hf_fail_sys(err, -r, "pread", lock->name);
	ret->fd = fd_take(&fd);
	return 1;
}

int hf_fence_take(struct hf_fences *fences, struct hf_journal *journal,
		  const struct hf_lock_ref *lock, int create, struct hf_mono deadline,
		  struct hf_fence *ret, struct hf_err *err)
{
	char file[FILE_NAME_MAX];
	int r = file_name(lock, file, err);

	*ret = (struct hf_fence)HF_FENCE_INIT;
	if (r == 0 && atomic_load(&fences->dirfd) < 0)
		r = open_series(fences, err);
	if (r < 0)
		return r;
	for (int try = 0; try < MAX_TRIES; try++) {
		r = try_take(fences, journal, atomic_load(&fences->dirfd), file, lock, create, deadline, ret, err);
		/* The directory was deleted by hand since it was opened. */
		if (r == -ENOENT)
			r = open_series(fences, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return FAIL(err, -EAGAIN, "fence", lock->name, "its file keeps being replaced");
}

int hf_fence_raise(struct hf_fence *fence, const struct hf_lock_ref *lock, uint64_t token,
		   struct hf_err *err)
{
	struct note note = { token, ~token };
	struct rlimit limit;
	size_t done;
	int r;

	if (token <= fence->admitted)
		return 0;
	/* Beyond this limit the kernel would kill us (L13). */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(note))
		return hf_fail_sys(err, EFBIG, "pwrite", lock->name);
	r = hf_pwrite_all(fence->fd, (const char *)&note, sizeof(note), 0, &done);
	if (r < 0)
		return hf_fail_sys(err, -r, "pwrite", lock->name);
	fence->admitted = token;
	return 0;
}

void hf_fence_drop(struct hf_fence *fence)
{
	hf_noinherit_unlock_close(&fence->fd);
}
