/* sys/fd/poll.c - one poll with a deadline for every wait. */
#include <errno.h>
#include <limits.h>

#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"

int hf_poll_until(struct pollfd *fds, nfds_t n, struct hf_mono deadline)
{
	for (;;) {
		int64_t left = hf_mono_left(deadline), ms = left / HF_MSEC + (left % HF_MSEC != 0);
		int ready;

		if (deadline.ns == HF_MONO_NEVER.ns)
			ms = -1;
		ready = hf_sys.poll(fds, n, ms > INT_MAX ? INT_MAX : (int)ms);
		if (ready != 0 || ms <= INT_MAX)
			return ready < 0 ? -errno : ready;
	}
}
