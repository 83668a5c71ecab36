/* lock/flocked.h - flock(2) on a descriptor: waiting, cancelling, and the process that has it. */
#ifndef LOCK_FLOCKED_H
#define LOCK_FLOCKED_H

#include "holdfast/lock.h"

/* As hf_lock_fd; `shown` is what messages call the file, and the options are known to be sound. */
int hf_flocked(int fd, const char *shown, const struct hf_lock_opts *opts,
	       struct hf_holder *ret_blocker, struct hf_err *err);

#endif
