/*
 * sys/fd/flock.h - flock(2) with a deadline, which the call itself does not know.
 *
 * It is tried without blocking, in steps that grow: the caller says how, because a guard that is
 * held for microseconds and a file that an editor holds for seconds need different steps.
 */
#ifndef SYS_FD_FLOCK_H
#define SYS_FD_FLOCK_H

#include <stdint.h>

#include "holdfast/clock.h"

struct hf_backoff {
	int yields;             /* first it only gives way to others, so often */
	int64_t min_ns;         /* then it sleeps this long, */
	int64_t max_ns;         /* each time half as long again, up to this */
	int64_t crowd_after_ns; /* a waiter of that long is one of very many: */
	int64_t crowd_ns;       /* it sleeps up to this (0: no such rule) */
	int cancel_fd;          /* as in struct hf_lock_opts, with the two below; 0: none */
	int (*go_on)(void *arg);
	void *go_on_arg;
};

/*
 * Takes the flock (`operation`: LOCK_EX or LOCK_SH) before `deadline`; one that has passed tries
 * once, the end of time (INT64_MAX) leaves the waiting to the kernel, unless there is a cancel_fd. EINTR is
 * retried. Returns 0 at once, 1 after waiting, -ETIMEDOUT, HF_E_CANCELLED, or -errno.
 */
int hf_flock_until(int fd, int operation, struct hf_mono deadline, const struct hf_backoff *backoff);

#endif
