/*
 * fleet/clock.c - a clock that stands still, or runs too slowly, for one host of a fleet: loaded with LD_PRELOAD into the real programs.
 *
 * HF_TEST_CLOCK names a file. While it is there, all clocks of the process run at its first number, in percent, since the file was last
 * written. "0": they stand still. A second number is how far behind they fall at most, in milliseconds; then they run as they should. Without
 * the file they are right again, so they jump. A kernel cannot do this: time namespaces only shift clocks.
 *
 * What a machine with such a clock would not do is not done here: a poll does not time out and a timerfd does not become readable
 * before their time has come by this clock. nanosleep(2) is left alone, and so are the clocks of the processes that make no use of
 * this: the machine works on, only its time is wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what stands in front of the C library's must be seen */

#define SEC     INT64_C(1000000000)
#define MSEC    INT64_C(1000000)
#define SLICE   (20 * MSEC)
#define FDS_MAX 1024

/* What each timerfd waits for, on its own clock as we show it; 0: it is not set. */
static struct timer {
	int clock;
	int64_t at;
} timers[FDS_MAX];

/* The C library's, which we stand in front of as well. */
static long kernel(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*real)(long number, ...);

	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"); /* NOLINT */
	return real(number, a, b, c, d, e, f);
}

static int64_t real_now(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)kernel(SYS_clock_gettime, id, (long)&ts, 0, 0, 0, 0);
	return (int64_t)ts.tv_sec * SEC + ts.tv_nsec;
}

/* How far the clocks are behind. */
static int64_t behind(void)
{
	const char *path = getenv("HF_TEST_CLOCK");
	int64_t percent = 100, most_ms = INT64_MAX / MSEC, since, late;
	int saved = errno, fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[64] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		errno = saved;
		return 0;
	}
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0 || fstat(fd, &st) < 0 || sscanf(text, "%" SCNd64 " %" SCNd64, &percent, &most_ms) < 1) {
		(void)close(fd);
		errno = saved;
		return 0;
	}
	(void)close(fd);
	errno = saved;
	since = real_now(CLOCK_REALTIME) - ((int64_t)st.st_mtim.tv_sec * SEC + st.st_mtim.tv_nsec);
	late = since > 0 ? since / 100 * (100 - percent) : 0;
	return late < most_ms * MSEC ? late : most_ms * MSEC;
}

static int64_t shown_now(clockid_t id)
{
	return real_now(id) - behind();
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t now;

	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_BOOTTIME:
		now = shown_now(id);
		*ts = (struct timespec){ now / SEC, now % SEC };
		return 0;
	default: /* of the processor */
		return (int)kernel(SYS_clock_gettime, id, (long)ts, 0, 0, 0, 0);
	}
}

/* -- timers ------------------------------------------------------------------------------------- */

int timerfd_create(int clock, int flags)
{
	int fd = (int)kernel(SYS_timerfd_create, clock, flags, 0, 0, 0, 0);

	if (fd >= 0 && fd < FDS_MAX)
		timers[fd] = (struct timer){ .clock = clock };
	return fd;
}

/* The kernel's timer is never set; poll tells when it is time. Our programs neither read one nor repeat it. */
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	int64_t at = (int64_t)new->it_value.tv_sec * SEC + new->it_value.tv_nsec;

	if (fd < 0 || fd >= FDS_MAX || old || new->it_interval.tv_sec || new->it_interval.tv_nsec) {
		errno = EINVAL;
		return -1;
	}
	timers[fd].at = at && !(flags & TFD_TIMER_ABSTIME) ? at + shown_now(timers[fd].clock) : at;
	return 0;
}

/* A number may have become another file's. */
static int is_timer(int fd)
{
	char path[32], to[32] = "";

	if (fd < 0 || fd >= FDS_MAX || timers[fd].at == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, to, sizeof(to) - 1) > 0 && strcmp(to, "anon_inode:[timerfd]") == 0;
}

/* Marks those that are due. How many. */
static int look_at_timers(struct pollfd *fds, nfds_t n)
{
	int due = 0;

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].events & POLLIN && is_timer(fds[i].fd) && shown_now(timers[fds[i].fd].clock) >= timers[fds[i].fd].at) {
			due += fds[i].revents == 0;
			fds[i].revents |= POLLIN;
		}
	return due;
}

/* -- waiting ------------------------------------------------------------------------------------ */

static int poll_for(struct pollfd *fds, nfds_t n, int64_t limit, const sigset_t *mask)
{
	int64_t begun = shown_now(CLOCK_MONOTONIC);

	for (;;) {
		int64_t left = limit < 0 ? SLICE : limit - (shown_now(CLOCK_MONOTONIC) - begun);
		int64_t ns = left < 0 ? 0 : left < SLICE ? left : SLICE;
		struct timespec slice = { 0, ns };
		int ready = (int)kernel(SYS_ppoll, (long)fds, (long)n, (long)&slice, (long)mask, 8, 0);

		if (ready < 0)
			return ready;
		ready += look_at_timers(fds, n);
		if (ready > 0 || left <= 0)
			return ready;
	}
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	return poll_for(fds, n, ms < 0 ? -1 : ms * MSEC, NULL);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
	return poll_for(fds, n, limit ? (int64_t)limit->tv_sec * SEC + limit->tv_nsec : -1, mask);
}

/* sys/calls.c calls the kernel by number. */
long syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_ppoll)
		return ppoll((struct pollfd *)a[0], (nfds_t)a[1], (const struct timespec *)a[2], (const sigset_t *)a[3]);
	return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* What callers with a checked buffer are compiled to. */
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t size);

int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size)
{
	(void)size;
	return poll(fds, n, ms);
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask, size_t size)
{
	(void)size;
	return ppoll(fds, n, limit, mask);
}
