/* lock/local/record/guard.c - the short critical section around one lock's record. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/record/put_away.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

/*
 * Waiting for the guard. It is held for microseconds, so give way first, then sleep in
 * growing steps of random length: a thousand processes that all look every millisecond
 * would leave no time to the one that has it.
 */
#define YIELDS       4
#define PAUSE_MIN_NS (20 * HF_USEC)
#define PAUSE_MAX_NS   (2 * HF_MSEC)
#define CROWDED_NS     (300 * HF_MSEC) /* a waiter of that long is one of very many, */
#define PAUSE_CROWD_NS (50 * HF_MSEC)  /* and looks less often; a holder that releases does so */
#define STUCK_NS       (10 * HF_SEC)   /* only after this: a process is stopped inside the guard */

/* Files replaced or quarantined under us before we give up. */
#define MAX_TRIES 16

#define USUAL_RECORD 512

static void let_go(struct hf_guard *guard)
{
	if (guard->fd >= 0)
		(void)hf_sys.flock(guard->fd, LOCK_UN);
}

static void journal_losses(struct hf_guard *guard)
{
	for (size_t i = 0; i < guard->n_lost && guard->written; i++) {
		char holder[HF_HOLDER_TEXT_MAX];
		struct hf_field fields[] = { HF_FIELD_TEXT("holder", holder),
					     HF_FIELD_TEXT("reason", guard->lost[i].reason) };

		hf_holder_text(&guard->lost[i].holder, holder, sizeof(holder));
		hf_lock_event(guard->locks->journal, guard->lost[i].event, &guard->lock, fields, 2);
	}
}

int hf_guard_finish(struct hf_guard *guard, struct hf_err *err)
{
	int r;

	if (guard->fd < 0)
		return 0;
	r = guard->dirty ? hf_guard_write(guard, err) : 0;
	let_go(guard);
	/*
	 * A pipe wakes its reader on our own processor, expecting us to sleep soon: give
	 * way to it, before anything that can wait.
	 */
	if (guard->told_fd >= 0)
		(void)sched_yield();
	hf_auto_close(&guard->told_fd);
	hf_local_close_now(guard->locks);
	hf_record_close(guard);
	hf_local_refill(guard->locks);
	journal_losses(guard);
	hf_guard_drop(guard);
	return r;
}

void hf_guard_drop(struct hf_guard *guard)
{
	let_go(guard);
	hf_auto_close(&guard->told_fd);
	hf_record_close(guard);
	free(guard->lost);
	guard->lost = NULL;
	guard->n_lost = 0;
	guard->dirty = 0;
}

void hf_guard_note_loss(struct hf_guard *guard, enum hf_event event,
			const struct hf_lock_holder *holder, const char *reason)
{
	struct hf_lost_holder *grown, *lost;

	if (!guard->locks->journal)
		return;
	grown = realloc(guard->lost, (guard->n_lost + 1) * sizeof(*guard->lost));
	if (!grown)
		return; /* the record is right all the same; only the event is missing */
	guard->lost = grown;
	lost = &grown[guard->n_lost++];
	lost->event = event;
	if (event == HF_EV_LOCK_TAKEN_OVER)
		hf_holder_show_dead(guard->locks, &guard->record, holder, reason, &lost->holder);
	else
		hf_holder_show(guard->locks, &guard->record, holder, &lost->holder);
	hf_copy_text(lost->reason, sizeof(lost->reason), reason);
}

static long shorter(int64_t a, int64_t b)
{
	return (long)(a < b ? a : b);
}

static int is_cancelled(int fd)
{
	struct pollfd cancel = { .fd = fd, .events = POLLIN };

	return fd > 0 && hf_sys.poll(&cancel, 1, 0) > 0;
}

/* Returns 0 at once, 1 after waiting, -errno or HF_E_CANCELLED. */
static int take_flock(int fd, int wants, int cancel_fd, struct hf_mono deadline)
{
	struct hf_mono crowded = hf_mono_in(CROWDED_NS), stuck = hf_mono_in(STUCK_NS);
	int64_t pause = PAUSE_MIN_NS, left;

	for (int try = 0;; try++) {
		int is_long;

		if (hf_sys.flock(fd, LOCK_EX | LOCK_NB) == 0)
			return try > 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (try < YIELDS) {
			(void)sched_yield();
			continue;
		}
		left = hf_mono_left(deadline);
		if (left == 0)
			return -ETIMEDOUT;
		is_long = hf_mono_left(crowded) == 0;
		if (is_long && is_cancelled(cancel_fd))
			return HF_E_CANCELLED;
		is_long = is_long && (wants || hf_mono_left(stuck) == 0);
		hf_pause(shorter(pause / 2 + hf_mono_now().ns % (pause / 2), left));
		pause = shorter(pause * 3 / 2, is_long ? PAUSE_CROWD_NS : PAUSE_MAX_NS);
	}
}

static struct hf_local_file record_file(const struct hf_guard *guard)
{
	return (struct hf_local_file){ guard->locks, guard->dir, guard->key, guard->name };
}

/* 1 when the guarded file still is the one of that name. */
static int is_current(const struct hf_guard *guard, const struct stat *st)
{
	const struct hf_local_file file = record_file(guard);

	return hf_local_is_current(&file, st);
}

/* Moves what stands in the record's place away, and says so once (L8). */
static int put_away(const struct hf_guard *guard, const char *why, struct hf_err *err)
{
	const struct hf_local_file file = record_file(guard);

	return hf_local_put_away(&file, why, err);
}

/* Reads the record. Returns 1 good, 0 quarantined (again), -errno. */
static int read_record(struct hf_guard *guard, const struct stat *st, struct hf_err *err)
{
	uint64_t size = (uint64_t)st->st_size;
	const char *why = "too large for a lock record";
	/* With one holder and a waiter, which is nearly always, the first part is all of it. */
	size_t part = USUAL_RECORD;
	int r;

	guard->is_new = size == 0;
	guard->n_old = 0;
	if (size == 0) {
		memset(&guard->record, 0, offsetof(struct hf_lock_record, holders));
		return 1;
	}
	for (; size <= HF_LOCK_FILE_MAX; part = HF_LOCK_RECORD_MAX) {
		ssize_t n = hf_pread_all(guard->fd, (char *)guard->page, part, 0);

		if (n < 0)
			return hf_fail_sys(err, (int)-n, "pread", guard->name);
		guard->n_old = (size_t)n;
		if (hf_lock_record_decode(guard->page, (size_t)n, &guard->record, &why) == 0)
			return 1;
		if (part == HF_LOCK_RECORD_MAX)
			break;
	}
	/* Another process may have moved it away already, and a good one have its name. */
	r = is_current(guard, st) ? put_away(guard, why, err) : 0;
	return r < 0 ? r : 0;
}

/*
 * Reads the record of a lock that the caller holds. A sound record with its token is the one
 * that gave it to us, so it is not asked first what kind of file it is in. 1, or 0: look closer.
 */
static int read_held(struct hf_guard *guard, uint64_t token)
{
	ssize_t n = hf_pread_all(guard->fd, (char *)guard->page, USUAL_RECORD, 0);
	const char *why;

	guard->is_new = 0;
	guard->n_old = n > 0 ? (size_t)n : 0;
	return n > 0 && hf_lock_record_decode(guard->page, (size_t)n, &guard->record, &why) == 0 &&
	       hf_record_find(&guard->record, token) >= 0;
}

/* Opens the file of that name and takes its flock. As take_flock; HF_E_UNTRUSTED. */
static int open_and_lock(struct hf_guard *guard, int create, struct hf_mono deadline,
			 struct hf_err *err)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0);
	int r = hf_record_open(guard, flags);

	/* Made under a umask that took the owner's bits, by a process that was then killed. */
	if (r == -EACCES && hf_mend_mode(guard->dir->fd, guard->key, S_IFREG, 0600) > 0)
		r = hf_noinherit_open_noatime(guard->dir->fd, guard->key, flags, 0600);
	/* On a file system that is read-only, looking is still possible; writing fails as it should. */
	guard->is_read_only = r == -EROFS && !create;
	if (guard->is_read_only)
		r = hf_noinherit_open_noatime(guard->dir->fd, guard->key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	/* A symlink, a socket, a directory: not ours, whatever it is. */
	if (r == -ELOOP || r == -ENXIO || r == -EISDIR)
		return HF_E_UNTRUSTED;
	if (r < 0)
		return hf_fail_sys(err, -r, "openat", guard->name);
	guard->fd = r;
	r = take_flock(guard->fd, create, guard->cancel_fd, deadline);
	if (r == HF_E_CANCELLED)
		return FAIL(err, r, "wait", guard->name, "%s", "");
	if (r == -ETIMEDOUT)
		return FAIL(err, r, "flock", guard->name,
			    "a process is stopped while it changes the record");
	return r < 0 ? hf_fail_sys(err, -r, "flock", guard->name) : r;
}

/* Returns 0 when what was opened is a file that may be trusted. */
static int check_file(const struct hf_guard *guard, struct stat *ret_st, struct hf_err *err)
{
	int r = hf_stat_at(guard->fd, "", ret_st);

	if (r < 0)
		return hf_fail_sys(err, -r, "statx", guard->name);
	/* Deleted while we waited is not distrusted, only no longer current. */
	if (ret_st->st_nlink == 0)
		return 0;
	r = hf_check_private(ret_st, guard->name, err);
	/* The umask of the process that made it took the owner's bits. */
	if (r == 0 && (ret_st->st_mode & 0600) != 0600 && hf_sys.fchmod(guard->fd, 0600) < 0)
		return FAIL_SYS(err, "fchmod", guard->name);
	return r;
}

static int guard_fill(struct hf_guard *guard, int create, uint64_t token, struct hf_mono deadline,
		      struct hf_err *err)
{
	for (int try = 0; try < MAX_TRIES; try++) {
		struct stat st;
		int r, waited;

		hf_noinherit_unlock_close(&guard->fd);
		r = waited = open_and_lock(guard, create, deadline, err);
		if (r == 0 && token != 0 && read_held(guard, token))
			return 0;
		if (r >= 0)
			r = check_file(guard, &st, err);
		if (r == HF_E_UNTRUSTED) {
			const struct hf_local_file file = record_file(guard);

			/* What was distrusted may have been replaced by something good. */
			if (guard->fd >= 0 ? !is_current(guard, &st) : hf_local_is_private(&file))
				continue;
			r = guard->fd < 0 ? hf_local_put_away_unopened(&file, guard->cancel_fd, deadline, err)
					  : put_away(guard, "not a regular file owned by this user", err);
			if (r < 0)
				return r;
			continue;
		}
		if (r < 0)
			return r;
		/*
		 * Deleted, renamed or replaced by hand while we waited? If we did not wait, the
		 * link count says it, except of a file that was renamed in just that moment;
		 * in the next one nothing would say so either.
		 */
		if ((waited || st.st_nlink != 1) && !is_current(guard, &st))
			continue;
		r = read_record(guard, &st, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return FAIL(err, -EAGAIN, "guard", guard->name, "its file keeps being replaced");
}

static int guard_take(struct hf_local *locks, const struct hf_lock_ref *lock, int create,
		      uint64_t token, struct hf_mono deadline, struct hf_guard *ret,
		      struct hf_err *err)
{
	int r;

	/* Not by assignment: the record is large, and what it holds is written by reading. */
	ret->locks = locks;
	ret->lock = *lock;
	ret->name = lock->name;
	ret->fd = ret->told_fd = -1;
	ret->written = ret->dirty = 0;
	r = hf_name_key(lock->name, strlen(lock->name), ret->key, err);
	if (r >= 0)
		r = hf_local_dir(locks, lock->kind, create, &ret->dir, err);
	if (r >= 0)
		r = guard_fill(ret, create, token, deadline, err);
	if (r < 0)
		hf_guard_drop(ret);
	return r;
}

int hf_guard_take(struct hf_local *locks, const struct hf_lock_ref *lock, int create,
		  struct hf_mono deadline, struct hf_guard *ret, struct hf_err *err)
{
	return guard_take(locks, lock, create, 0, deadline, ret, err);
}

int hf_guard_take_held(struct hf_local *locks, const struct hf_lock_ref *lock, uint64_t token,
		       struct hf_guard *ret, struct hf_err *err)
{
	ret->is_release = 1;
	return guard_take(locks, lock, 0, token, hf_mono_in(INT64_MAX), ret, err);
}

/*
 * One write, all or nothing. A part of a record would be a damaged one, and the holder would
 * lose it; so what was there comes back, and the rest is not even tried, which might kill us
 * (SIGXFSZ) before it could.
 */
static int write_page(struct hf_guard *guard, const uint8_t *page, size_t len)
{
	size_t done;
	ssize_t n;

	if (guard->is_read_only)
		return -EROFS;
	if (!hf_local_may_write(guard->locks, len, 0))
		return -EFBIG;
	do {
		n = hf_sys.pwrite(guard->fd, page, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 0;
	if (n < 0)
		return -errno;
	if (guard->is_new)
		(void)hf_sys.ftruncate(guard->fd, 0);
	else
		(void)hf_pwrite_all(guard->fd, (const char *)guard->page,
				    guard->n_old < (size_t)n ? guard->n_old : (size_t)n, 0, &done);
	return -EIO;
}

int hf_guard_write(struct hf_guard *guard, struct hf_err *err)
{
	uint8_t *page = guard->page + guard->n_old;
	int r, n = hf_lock_record_encode(&guard->record, page);

	/* Also if it fails: then the file is as it was, and stays so. */
	guard->dirty = 0;
	if (n < 0)
		return FAIL(err, n, "record", guard->name,
			    "its holders come from too many namespaces");
	/*
	 * The length is part of the record: what stands behind it from before is
	 * ignored. A new file gets its whole page at once, so that no later change
	 * can fail for want of space.
	 */
	if (guard->is_new)
		memset(page + n, 0, HF_LOCK_RECORD_MAX - (size_t)n);
	r = write_page(guard, page, guard->is_new ? HF_LOCK_RECORD_MAX : (size_t)n);
	if (r < 0)
		return hf_fail_sys(err, -r, "pwrite", guard->name);
	memmove(guard->page, page, (size_t)n);
	guard->n_old = (size_t)n;
	guard->is_new = 0;
	guard->written = 1;
	return 0;
}
