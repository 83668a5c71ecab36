/* sys/fd/poll.h - sleeping on descriptors until a deadline: one idea of "never", one rounding. */
#ifndef SYS_FD_POLL_H
#define SYS_FD_POLL_H

#include <poll.h>

#include "holdfast/clock.h"

/* What hf_mono_in makes of INT64_MAX: the end of time, later than all else. */
#define HF_MONO_NEVER ((struct hf_mono){ INT64_MAX })

/* The moment `ns` from now; never when that is negative, as in options. */
static inline struct hf_mono hf_mono_limit(int64_t ns)
{
	return ns < 0 ? HF_MONO_NEVER : hf_mono_in(ns);
}

static inline struct hf_mono hf_mono_earlier(struct hf_mono a, struct hf_mono b)
{
	return a.ns < b.ns ? a : b;
}

/*
 * poll(2) until `deadline`; HF_MONO_NEVER: without one. Rounded up to milliseconds, so that what it wakes for is due.
 * Returns how many descriptors are ready, 0 when the deadline has passed, -errno (also -EINTR).
 */
int hf_poll_until(struct pollfd *fds, nfds_t n, struct hf_mono deadline);

#endif
