/*
 * lock/local/local.h - the local store: locks as files below locks/ of the state directory.
 *
 *   <key>            the record (record.h), one page; behind it, once somebody had to
 *                    wait, the queue as a ring of entries
 *   .wait/<key>.<ticket>   the wake-up channel of one waiter: a FIFO, its own
 *   .token           the highest token given here, of all names (token.c)
 *
 * A key has no dot in it, so it never meets these. The guard of a lock is
 * flock(LOCK_EX) on its record, held for a few system calls; record and queue are
 * read and changed under it only. Nothing but the FIFOs is ever unlinked.
 */
#ifndef LOCK_LOCAL_LOCAL_H
#define LOCK_LOCAL_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "hf/lock/store.h"
#include "hf/proc/here.h"

#define HF_LATE_MAX 16

struct hf_local {
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	int dirfd;                  /* locks/ */
	int wait_fd;                /* locks/.wait/ */
	unsigned judge_flags;       /* HF_PROC_SHARED on network file systems */
	uint64_t fsize_limit;       /* RLIMIT_FSIZE at opening */
	struct hf_here here;        /* of this process: constant for its life */
	struct hf_proc_id self;
	int64_t boot_offset_ns;     /* hf_boot_offset */
	int64_t guard_wait_ns;      /* how long a call without a deadline of its own waits for a guard */
	_Atomic uint64_t noted;     /* the highest token known to stand in .token (token.c) */
	atomic_int masks_pipe; /* this kernel has no write_quiet: SIGPIPE is held back instead */
	pthread_mutex_t mutex; /* of the descriptors below */
	int spare_fd;          /* given up when a wake-up would fail with EMFILE */
	int late[HF_LATE_MAX]; /* no longer needed, to be closed when nobody waits for it */
	size_t n_late;
};

/* The boot time of leases and waits: the machine's, so that all time namespaces agree on it. */
int64_t hf_local_now(const struct hf_local *locks);

/*
 * 1 when the limit of this process allows the write. Beyond it the kernel writes a part, or
 * kills us (L13).
 */
int hf_local_may_write(const struct hf_local *locks, size_t len, off_t at);

/* Closes *fd with the next guard that is finished, or with the store. */
void hf_local_close_late(struct hf_local *locks, int *fd);

/* Closes what was left for later. */
void hf_local_close_now(struct hf_local *locks);

/* hf_proc_judge with what this process knows of itself. */
int hf_local_judge(const struct hf_local *locks, const struct hf_proc_id *id, int *ret_pidfd,
		   char evidence[HF_EVIDENCE_MAX]);

#endif
