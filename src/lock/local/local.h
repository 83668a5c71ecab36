/*
 * lock/local/local.h - the local store: locks as files below locks/ of the state directory.
 *
 *   <kind>/<key>     the record (record.h), one page; behind it, once a process had to
 *                    wait, the queue as a ring of entries
 *   <kind>/.wait/<key>.<ticket>   the wake-up channel of one waiter: a FIFO, its own
 *   <kind>/.token    the clock of its tokens (token.c), and .token.copy
 *
 * A kind is a directory: name, group, file, plan, target. A key has no dot in it, so it never meets the
 * others. The guard of a lock is
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

/* The locks of one kind. */
struct hf_kind_dir {
	enum hf_lock_kind kind;
	atomic_int is_open;     /* the two below are: from then on they do not change */
	int fd;                 /* locks/<kind>/ */
	int wait_fd;            /* locks/<kind>/.wait/ */
	_Atomic int64_t offset_us; /* of the token clock to the boot clock, as noted (token.c) */
	_Atomic int64_t noted_us;  /* the token clock as it stands in .token */
};

#define HF_FORGET_MARGIN_US (2 * INT64_C(1000000)) /* more than the note of the token clock may lag (token.c) */

struct hf_local {
	struct hf_store base;
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	struct hf_kind_dir kinds[HF_LOCK_KINDS];
	unsigned judge_flags;       /* HF_PROC_SHARED on network file systems */
	uint64_t fsize_limit;       /* RLIMIT_FSIZE at opening */
	struct hf_here here;        /* of this process: constant for its life */
	struct hf_proc_id self;
	int64_t boot_offset_ns;     /* hf_boot_offset */
	int64_t guard_wait_ns;      /* how long a call without a deadline of its own waits for a guard */
	int64_t forget_margin_us;   /* how far the token clock must be ahead of a record that is forgotten */
	int64_t lost_clock_ns;      /* the first waiter looks after this, should its message be lost */
	atomic_int masks_pipe; /* this kernel has no write_quiet: SIGPIPE is held back instead */
	pthread_mutex_t mutex; /* of the descriptors below */
	int spare_fd;          /* locks/ itself; given up when a wake-up would fail with EMFILE */
	pthread_mutex_t release_mutex; /* held by the thread that uses release_fd */
	int release_fd;        /* reserves a number for a release in a process without free descriptors */
	int late[HF_LATE_MAX]; /* no longer needed, to be closed when nobody waits for it */
	size_t n_late;
};

static inline struct hf_local *hf_local_of(struct hf_store *store)
{
	return (struct hf_local *)store; /* its first member */
}

/*
 * The directory of a kind, opened when it is needed first. With `create` it is made; without, one
 * that is not there is -ENOENT, without an error filled in.
 */
int hf_local_dir(struct hf_local *locks, enum hf_lock_kind kind, int create,
		 struct hf_kind_dir **ret_dir, struct hf_err *err);

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

/*
 * Frees the reserved descriptor for the release in this thread; other threads wait. hf_local_give_back
 * reserves the number of *fd (or a new one) again; the caller has unlocked it.
 */
void hf_local_borrow(struct hf_local *locks);
void hf_local_give_back(struct hf_local *locks, int *fd);

/* Opens the spare descriptor again if it was used. */
void hf_local_refill(struct hf_local *locks);

/* hf_proc_judge with what this process knows of itself. */
int hf_local_judge(const struct hf_local *locks, const struct hf_proc_id *id, int *ret_pidfd,
		   char evidence[HF_EVIDENCE_MAX]);

#endif
