/*
 * journal/write/counters.h - two numbers beside the journal, in journal/counters:
 *
 *     seq 00000000000000000042\n      the highest number ever acknowledged
 *     lost 00000000000000000003\n     records that could not be written
 *
 * Both are overwritten in place: an existing block can be written on a full
 * disk. `seq` is changed under the journal's guard. `lost` has a lock of its own
 * (an OFD lock on its bytes), because a writer that counts a loss could not get the
 * guard. Plain writes, no mapping: a mapped page that the file system cannot
 * back would kill the process with SIGBUS.
 */
#ifndef JOURNAL_WRITE_COUNTERS_H
#define JOURNAL_WRITE_COUNTERS_H

#include <stdint.h>

#include "holdfast/err.h"
#include "holdfast/state.h"

/* Bytes of the file; a process that may not write that many goes without it. */
#define HF_COUNTERS_LEN 51

struct hf_counters {
	uint64_t seq;
	uint64_t lost;
};

/*
 * Opens the file in the journal's directory; with `create` makes it, else a
 * missing one is -ENOENT.
 */
int hf_counters_open(int dirfd, int create, int *ret_fd, struct hf_err *err);

/* Reads both. A damaged number reads as 0: it is a lower bound at all times. */
int hf_counters_read(int fd, struct hf_counters *ret);

/* Stores `seq`. Caller holds the journal's guard. */
int hf_counters_set_seq(int fd, uint64_t seq);

/* Adds to `lost`, waiting a few milliseconds at most. Returns 0 or -errno. */
int hf_counters_add_lost(int fd, uint64_t more);

#endif
