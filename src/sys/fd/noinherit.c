/* sys/fd/noinherit.c - the table of descriptors that a forked child must not carry. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"
#include "holdfast/clock.h"

/* One bit for each number that the kernel gives by default (fs.nr_open): 128 KiB, of which only
 * the pages that are used exist. */
#define FDS_MAX (1 << 20)
#define BITS    64
#define WORDS   (FDS_MAX / BITS)

/* How long a fork waits for openings; longer only where a file system hangs, or when a signal
 * handler that interrupted an opening forks. */
#define FORK_WAIT_NS (100 * HF_MSEC)

static _Atomic uint64_t table[WORDS];
static _Atomic unsigned words_used; /* words from here on were never touched */

/* Openings share it, a fork has it alone. */
static pthread_rwlock_t openings = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int has_openings; /* this thread has it, for a fork */
static _Atomic unsigned impatient;     /* forks that did not wait */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error;

void hf_noinherit_before_fork(void)
{
	struct hf_mono until = hf_mono_in(FORK_WAIT_NS);
	struct timespec at = { .tv_sec = until.ns / HF_SEC, .tv_nsec = until.ns % HF_SEC };

	has_openings = pthread_rwlock_clockwrlock(&openings, CLOCK_MONOTONIC, &at) == 0;
	if (!has_openings)
		(void)atomic_fetch_add(&impatient, 1);
}

void hf_noinherit_after_fork(void)
{
	if (has_openings)
		(void)pthread_rwlock_unlock(&openings);
	has_openings = 0;
}

/* A descriptor without meaning, in the number of `fd`; failing that, the number is closed. */
static void replace(int fd)
{
	int nothing = (int)syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);

	if (nothing < 0) {
		/* No number is left but this one. */
		(void)syscall(SYS_close, fd);
		nothing = (int)syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
	}
	if (nothing >= 0 && nothing != fd) {
		if (syscall(SYS_dup3, nothing, fd, O_CLOEXEC) < 0)
			(void)syscall(SYS_close, fd);
		(void)syscall(SYS_close, nothing);
	}
}

/* Only what is safe in a signal handler: other threads may have held any lock. */
void hf_noinherit_child(void)
{
	unsigned used = atomic_load(&words_used);
	int saved = errno;

	for (unsigned i = 0; i < used; i++) {
		uint64_t word = atomic_exchange(&table[i], 0);

		for (; word != 0; word &= word - 1)
			replace((int)(i * BITS) + __builtin_ctzll(word));
	}
	/* Threads that had it are not here to give it back. */
	(void)pthread_rwlock_init(&openings, NULL);
	has_openings = 0;
	errno = saved;
}

static void register_handlers(void)
{
	once_error = pthread_atfork(hf_noinherit_before_fork, hf_noinherit_after_fork,
				    hf_noinherit_child);
}

static uint64_t bit_of(int fd)
{
	return UINT64_C(1) << (fd % BITS);
}

static void note(int fd)
{
	unsigned word = (unsigned)fd / BITS, used = atomic_load(&words_used);

	while (used <= word && !atomic_compare_exchange_weak(&words_used, &used, word + 1))
		continue;
	(void)atomic_fetch_or(&table[word], bit_of(fd));
}

static void forget(int fd)
{
	if (fd < FDS_MAX)
		(void)atomic_fetch_and(&table[fd / BITS], ~bit_of(fd));
}

int hf_noinherit_begin(struct hf_opening *ret)
{
	(void)pthread_once(&once, register_handlers);
	if (once_error != 0)
		return -once_error;
	/* Fails only in a handler of the fork itself, whose thread has it already. */
	ret->locked = pthread_rwlock_rdlock(&openings) == 0;
	ret->impatient = atomic_load(&impatient);
	return 0;
}

static int note_opened(int *fd, unsigned before)
{
	if (*fd < 0)
		return *fd;
	if (*fd >= FDS_MAX) {
		hf_auto_close(fd);
		return -EMFILE;
	}
	note(*fd);
	if (atomic_load(&impatient) == before)
		return 1;
	hf_noinherit_close(fd);
	return 0;
}

int hf_noinherit_note(int *fd, struct hf_opening *opening)
{
	int r = note_opened(fd, opening->impatient);

	if (opening->locked)
		(void)pthread_rwlock_unlock(&openings);
	opening->locked = 0;
	return r;
}

typedef int open_fn(int dirfd, const char *path, int flags, mode_t mode);

static int open_noted(open_fn *open_it, int dirfd, const char *path, int flags, mode_t mode)
{
	struct hf_opening opening = { 0 };
	int fd, r;

	do {
		r = hf_noinherit_begin(&opening);
		if (r < 0)
			return r;
		fd = open_it(dirfd, path, flags, mode);
		r = hf_noinherit_note(&fd, &opening);
	} while (r == 0);
	return r < 0 ? r : fd;
}

int hf_noinherit_open(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_noted(hf_open_at, dirfd, path, flags, mode);
}

int hf_noinherit_open_noatime(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_noted(hf_open_noatime, dirfd, path, flags, mode);
}

static int dup_above_stdio(int fd, const char *path, int flags, mode_t mode)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	(void)path, (void)flags, (void)mode;
	return r < 0 ? -errno : r;
}

int hf_noinherit_dup(int fd)
{
	return open_noted(dup_above_stdio, fd, NULL, 0, 0);
}

void hf_noinherit_close(int *fd)
{
	if (*fd >= 0)
		forget(*fd);
	hf_auto_close(fd);
}

int hf_noinherit_turn(int *fd, int other)
{
	if (*fd >= 0)
		forget(*fd);
	if (*fd >= 0 && dup3(other, *fd, O_CLOEXEC) < 0)
		hf_auto_close(fd);
	return fd_take(fd);
}

void hf_noinherit_unlock_close(int *fd)
{
	if (*fd >= 0)
		(void)hf_sys.flock(*fd, LOCK_UN);
	hf_noinherit_close(fd);
}

void hf_noinherit_close_shared(int *fd, int other)
{
	if (*fd >= 0)
		(void)dup3(other, *fd, O_CLOEXEC);
	hf_noinherit_close(fd);
}
