/* sys/flock.c - one back-off for every flock. */
#include <errno.h>
#include <sched.h>
#include <sys/file.h>

#include "hf/sys/calls.h"
#include "hf/sys/flock.h"
#include "hf/sys/io.h"

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
		if (deadline.ns == INT64_MAX)
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
		hf_pause((long)smaller(jittered(pause), left));
		if (backoff->crowd_ns > 0 && hf_mono_now().ns - start.ns > backoff->crowd_after_ns)
			most = backoff->crowd_ns;
		pause = smaller(pause * 3 / 2, most);
	}
}
