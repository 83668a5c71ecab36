/* sys/fd/flock.c - one back-off for every flock. */
#include <errno.h>
#include <sched.h>
#include <sys/file.h>

#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"
#include "holdfast/err.h"

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Half of `pause` and a part of the other half: waiters that started together must drift apart. */
static int64_t jittered(int64_t pause)
{
	return pause / 2 + hf_mono_now().ns % (pause / 2);
}

static int flock_blocking(int fd, int operation)
{
	while (hf_sys.flock(fd, operation) < 0)
		if (errno != EINTR)
			return -errno;
	return 1;
}

/* Sleeps so long, or until it is cancelled: 1. */
static int pause_or_cancel(const struct hf_backoff *backoff, int64_t ns)
{
	struct pollfd cancel = { .fd = backoff->cancel_fd, .events = POLLIN };

	if (backoff->cancel_fd <= 0) {
		hf_pause((long)ns);
		return 0;
	}
	return hf_poll_until(&cancel, 1, hf_mono_in(ns)) > 0 &&
	       !(backoff->go_on && backoff->go_on(backoff->go_on_arg));
}

int hf_flock_until(int fd, int operation, struct hf_mono deadline, const struct hf_backoff *backoff)
{
	struct hf_mono start = { 0 };
	int64_t pause = backoff->min_ns;

	for (int try = 0;; try++) {
		int64_t left, most = backoff->max_ns;

		if (hf_sys.flock(fd, operation | LOCK_NB) == 0)
			return try > 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (deadline.ns == INT64_MAX && backoff->cancel_fd <= 0)
			return flock_blocking(fd, operation);
		left = hf_mono_left(deadline);
		if (left == 0)
			return -ETIMEDOUT;
		if (try < backoff->yields) {
			(void)sched_yield();
			continue;
		}
		if (start.ns == 0)
			start = hf_mono_now();
		if (pause_or_cancel(backoff, smaller(jittered(pause), left)))
			return HF_E_CANCELLED;
		if (backoff->crowd_ns > 0 && hf_mono_now().ns - start.ns > backoff->crowd_after_ns)
			most = backoff->crowd_ns;
		pause = smaller(pause * 3 / 2, most);
	}
}
