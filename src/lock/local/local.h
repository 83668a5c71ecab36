/*
 * lock/local/local.h - the local store: locks as files below locks/ of the state directory.
 *
 *   <key>            the record (record.h), one page; behind it, once somebody had to
 *                    wait, the queue as a ring of entries
 *   .wait/<key>.<ticket>   the wake-up channel of one waiter: a FIFO, its own
 *
 * A key has no dot in it, so it never meets .wait. The guard of a lock is
 * flock(LOCK_EX) on its record, held for a few system calls; record and queue are
 * read and changed under it only. Nothing but the FIFOs is ever unlinked.
 */
#ifndef LOCK_LOCAL_LOCAL_H
#define LOCK_LOCAL_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "hf/base/cleanup.h"
#include "hf/lock/store.h"
#include "hf/lock/local/record.h"
#include "hf/proc/here.h"
#include "holdfast/name.h"

#define HF_HOLDER_TEXT_MAX 384
#define HF_LATE_MAX        16

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

/* Closes *fd with the next guard that is dropped, or with the store. */
void hf_local_close_late(struct hf_local *locks, int *fd);

/* Closes what was left for later. */
void hf_local_close_now(struct hf_local *locks);

/* A holder that lost the lock under this guard; told when the guard is dropped. */
struct hf_lost_holder {
	enum hf_event event; /* HF_EV_LOCK_TAKEN_OVER, _EXPIRED, _BROKEN */
	char holder[HF_HOLDER_TEXT_MAX];
	char reason[HF_EVIDENCE_MAX];
};

/* A lock under its guard. */
struct hf_guard {
	struct hf_local *locks;
	const char *name;
	char key[HF_NAME_KEY_MAX];
	int fd;
	int is_new;   /* the record file is empty */
	struct hf_lock_record record;
	struct hf_lost_holder *lost; /* events to be written; NULL: none */
	size_t n_lost;
	int written; /* the record was: only then they are true */
	int changed; /* reaping or clamping changed the record: worth writing */
	uint64_t told_ticket; /* the last waiter that was sent its token; 0: none */
	int32_t told_pid;
	int told_fd; /* its channel, to be closed when it has been given way to */
	size_t n_old; /* bytes of the file that stand in `page`; behind them it is written anew */
	uint8_t page[2 * HF_LOCK_RECORD_MAX];
};

/*
 * Opens the record of `name` and takes its guard, at most until `deadline`; a record
 * that fails its checks is quarantined and a new one begun. With `create` 0 a
 * missing one is -ENOENT. -ETIMEDOUT: somebody is stopped inside the guard.
 */
int hf_guard_take(struct hf_local *locks, const char *name, int create, struct hf_mono deadline,
		  struct hf_guard *ret, struct hf_err *err);

/*
 * The same for the release of a lock that is held with `token` (0: none is known). Where the
 * record has that token, the file itself is not looked at: one system call less, before others
 * can go on. A file deleted between the opening and the flock is then not noticed, so
 * this is not for what a token must be current for (L5).
 */
int hf_guard_take_held(struct hf_local *locks, const char *name, uint64_t token,
		       struct hf_guard *ret, struct hf_err *err);

/*
 * Writes the record. Returns 0, or -errno with err filled in: then the file is as it was, also
 * when only a part of it could be written.
 */
int hf_guard_write(struct hf_guard *guard, struct hf_err *err);

/*
 * Lets go, gives way to whoever was sent its token, and journals what was decided, which
 * must not hold up others under the guard. Idempotent; accepts one that was never taken
 * (hf_guard_init).
 */
void hf_guard_drop(struct hf_guard *guard);

/* Marks it as not taken; the rest is filled in by hf_guard_take. */
static inline void hf_guard_init(struct hf_guard *guard)
{
	guard->fd = guard->told_fd = -1;
	guard->lost = NULL;
	guard->n_lost = 0;
	guard->told_ticket = 0;
}

/* A guard that is dropped at the end of its scope. Not zeroed: its record is large. */
#define AUTO_GUARD(name)                           \
	AUTO(hf_guard_drop) struct hf_guard name;  \
	hf_guard_init(&name)

/* How long a call without a deadline of its own waits for the guard. */
#define HF_GUARD_WAIT_NS (10 * HF_SEC)

/* -- channels (channel.c) -----------------------------------------------------
 *
 * A waiter's channel carries messages of 8 bytes: a token, which is then its own, or
 * 0: look again. The message is the lock: it is written once, after the record says
 * so, and whoever reads it has it. So a waiter that got its token needs no guard, and
 * one that is stopped before it can read can still be passed over: whoever is next
 * takes the message out of the channel, or finds that it has been read.
 */

/*
 * Makes and opens a waiter's channel. After the record is written, so that a crash in between
 * leaves a waiter without a channel, which is passed over, and never a stray channel.
 */
int hf_channel_make(struct hf_guard *guard, uint64_t ticket, int *ret_channel, struct hf_err *err);

/*
 * Opens a channel. For writing, success means that its waiter lives (or just died, which
 * the next one sees): a FIFO that nobody has open for reading gives -ENXIO. When
 * descriptors have run out, the spare one is given up for it.
 */
int hf_channel_open(struct hf_guard *guard, uint64_t ticket, int flags);

/* Sends a token, or 0. Returns 0, or -1: nobody reads it. Never raises SIGPIPE (L13). */
int hf_channel_send(struct hf_local *locks, int fd, uint64_t token);

/* Removes a channel; ticket 0 has none. Needs no guard. */
void hf_channel_remove(struct hf_local *locks, const char *key, uint64_t ticket);

/*
 * Makes all who sleep in the queue look again: the record is gone (deleted by hand, or
 * quarantined), and with it their places. With a record, those of its holders are left
 * alone: they do not wait. With `sweep`, channels that nobody has open are removed; only under the
 * guard, for a channel that is just being made is not open yet.
 */
void hf_channel_recall(struct hf_local *locks, const char *key, const struct hf_lock_record *record,
		       int sweep);

/* -- queue (all under the guard) -------------------------------------------- */

/* Adds a waiter. The record is changed, not yet written. */
int hf_queue_join(struct hf_guard *guard, struct hf_lock_entry *entry, struct hf_err *err);

/* Takes the waiter out and removes its channel. The record is changed, not yet written. */
void hf_queue_leave(struct hf_guard *guard, const struct hf_lock_entry *entry);

/* Reads the entry of `ticket`; HF_E_FORMAT when there is none. */
int hf_queue_read(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret);

/*
 * The first living waiter with a ticket of `from` or later; dead ones are taken out.
 * 1, or 0 none.
 */
int hf_queue_first(struct hf_guard *guard, uint64_t from, struct hf_lock_entry *ret);

/*
 * All that wait, as they stand in the queue: whether they live is not asked, so this is
 * quick under the guard. Returns 0 with an array to free, or -errno.
 */
int hf_queue_snapshot(struct hf_guard *guard, struct hf_lock_entry **ret_entries, size_t *ret_n);

/* The first ticket is nobody's: on to the next that may be. `*looked` is 0 before the first call. */
void hf_queue_pass(struct hf_guard *guard, int *looked);

/* The last living waiter before `before`: whom the one behind it watches. 1, or 0 none. */
int hf_queue_previous(struct hf_guard *guard, uint64_t before, struct hf_lock_entry *ret);

/* -- turns: who gets it, and tells them (turn.c, under the guard) --------------- */

/* Tells the first waiter behind `ticket` to look again: what it watches has changed. */
void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket);

/*
 * Tells those who were given the lock, and may not know, to look; not `except`. For
 * whoever finds that the one who gave it died before it told.
 */
void hf_queue_retell(struct hf_guard *guard, uint64_t except);

/*
 * Gives the lock to the waiters whose turn it is, as many as the record admits, and
 * writes the record (always, also when there is nobody). Then tells them. Returns as
 * hf_guard_write.
 */
int hf_queue_admit(struct hf_guard *guard, struct hf_err *err);

/* 1 when a holder was given the lock while it waited and may not have noticed yet. */
int hf_queue_unclaimed(struct hf_guard *guard);

/*
 * Takes the message with `token` out of the channel of a waiter that was given the lock, so that
 * it queues again. 1, or 0: it has read it, or did not wait (ticket 0).
 */
int hf_queue_take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token);

/*
 * Takes the lock back from waiters that were given it HF_LOCK_TURN_NS ago and have not
 * noticed, because they are stopped. They queue again when they are continued.
 * Returns how many.
 */
int hf_queue_revoke(struct hf_guard *guard);

/* -- holders ------------------------------------------------------------------ */

/* Could a request of that mode be let in beside the present holders? */
int hf_record_admits(const struct hf_lock_record *record, enum hf_lock_mode mode);

/*
 * Removes holders that are dead, and with `expired_too` those whose lease has run
 * out; one event each (L8). Returns how many.
 */
int hf_record_reap(struct hf_guard *guard, int expired_too);

/* Nanoseconds of lease left: -1 none, 0 expired; an absurd end is clamped. */
int64_t hf_holder_lease_left(const struct hf_local *locks, const struct hf_lock_holder *holder);

/* Index of the holder of `token`, or -1. */
int hf_record_find(const struct hf_lock_record *record, uint64_t token);

/* Adds a holder with a new token, which is returned. There must be room. */
uint64_t hf_record_add(struct hf_guard *guard, const struct hf_lock_entry *entry);

void hf_record_remove(struct hf_lock_record *record, uint32_t index);

/* Removes the hold of `token`: its owner, or both of them. */
void hf_record_remove_token(struct hf_lock_record *record, uint64_t token);

/* 1 when another holder has the same token: the second owner of one hold. */
int hf_record_shares_token(const struct hf_lock_record *record, uint32_t index);

/* Fills in what others may see of a holder, with its liveness. */
void hf_holder_show(const struct hf_local *locks, const struct hf_lock_record *record,
		    const struct hf_lock_holder *holder, struct hf_holder *ret);

/* "pid 4711 (make) since 12:03:10, alive: pid 4711 runs (…)" for messages and events. */
void hf_holder_text(const struct hf_holder *holder, char *out, size_t cap);

/* Are the two the same process? Compares every part that is known. */
int hf_proc_same(const struct hf_proc_id *a, const struct hf_proc_id *b);

/* Remembers that `holder` lost the lock, for the journal. */
void hf_guard_note_loss(struct hf_guard *guard, enum hf_event event,
			const struct hf_lock_holder *holder, const char *reason);

/* hf_proc_judge with what this process knows of itself. */
int hf_local_judge(const struct hf_local *locks, const struct hf_proc_id *id, int *ret_pidfd,
		   char evidence[HF_EVIDENCE_MAX]);

/* Calls `fn` with the name of every lock there is, until it gives something else than 0. */
int hf_local_each(struct hf_local *locks, int (*fn)(void *arg, const char *name), void *arg,
		  struct hf_err *err);

/* Looks for a cycle from `entry`, which waits for `guard`'s lock. See deadlock.c. */
int hf_deadlock_check(struct hf_local *locks, const char *name, const struct hf_lock_entry *entry,
		      char *ret_cycle, size_t cap);

#endif
