/*
 * lock/local/record/guard.h - a lock under its guard: its record, read, and not to be changed by others.
 *
 * The guard is flock(LOCK_EX) on the record, held for a few system calls.
 */
#ifndef LOCK_LOCAL_RECORD_GUARD_H
#define LOCK_LOCAL_RECORD_GUARD_H

#include "hf/base/cleanup.h"
#include "hf/lock/local/local.h"
#include "hf/lock/local/record/record.h"
#include "holdfast/name.h"

/* A holder that lost the lock under this guard; journalled by hf_guard_finish. */
struct hf_lost_holder {
	enum hf_event event; /* HF_EV_LOCK_TAKEN_OVER, _EXPIRED, _BROKEN */
	struct hf_holder holder;
	char reason[HF_EVIDENCE_MAX];
};

/* A lock under its guard. */
struct hf_guard {
	struct hf_local *locks;
	struct hf_kind_dir *dir;
	struct hf_lock_ref lock;
	const char *name; /* lock.name */
	char key[HF_NAME_KEY_MAX];
	int fd;
	int is_new;   /* the record file is empty */
	int is_read_only; /* the file system is: writing the record is -EROFS */
	struct hf_lock_record record;
	struct hf_lost_holder *lost; /* events to be written; NULL: none */
	size_t n_lost;
	int written; /* the record was: only then they are true */
	int dirty;   /* the record was changed and not yet written; hf_guard_finish does it */
	uint64_t died; /* the pidfs inode of a process whose end the caller has seen; 0: none */
	int cancel_fd; /* ends the wait for the guard when it is readable; 0: none */
	int is_release; /* must succeed without a free descriptor */
	int borrowed;   /* fd uses the number of release_fd */
	int told_fd; /* channel of the last waiter that was sent its token, closed when it has been given way to */
	size_t n_old; /* bytes of the file that stand in `page`; behind them it is written anew */
	uint8_t page[2 * HF_LOCK_RECORD_MAX];
};

/*
 * Opens the record of `lock` and takes its guard, at most until `deadline`; a record
 * that fails its checks is quarantined and a new one begun. With `create` 0 a
 * missing one is -ENOENT. -ETIMEDOUT: a process is stopped inside the guard. HF_E_CANCELLED:
 * guard->cancel_fd became readable meanwhile.
 */
int hf_guard_take(struct hf_local *locks, const struct hf_lock_ref *lock, int create,
		  struct hf_mono deadline, struct hf_guard *ret, struct hf_err *err);

/*
 * The same for the release of a lock that is held with `token` (0: none is known). Where the
 * record has that token, the file itself is not looked at: one system call less, before others
 * can go on. A file deleted between the opening and the flock is then not noticed, so
 * this is not for what a token must be current for (L5).
 *
 * Without a deadline: a release that is given up would leave a lock that only the end of its owner
 * frees, and while a process is stopped inside the guard nobody else can take it either.
 */
int hf_guard_take_held(struct hf_local *locks, const struct hf_lock_ref *lock, uint64_t token,
		       struct hf_guard *ret, struct hf_err *err);

/*
 * Writes the record. Returns 0, or -errno with err filled in: then the file is as it was, also
 * when only a part of it could be written.
 */
int hf_guard_write(struct hf_guard *guard, struct hf_err *err);

/*
 * The end of every step under the guard: writes the record if it was changed and not written yet,
 * lets go, gives way to a waiter that was sent its token, and journals what was decided, which must not hold up others under the guard. Returns as
 * hf_guard_write; a second call does nothing. Its callers have one way out, through this.
 */
int hf_guard_finish(struct hf_guard *guard, struct hf_err *err);

/*
 * Undoes hf_guard_take and nothing else: what was changed and not written is as if it had not been.
 * Idempotent; accepts one that was never taken (hf_guard_init).
 */
void hf_guard_drop(struct hf_guard *guard);

/* Marks it as not taken; the rest is filled in by hf_guard_take. */
static inline void hf_guard_init(struct hf_guard *guard)
{
	guard->fd = guard->told_fd = -1;
	guard->lost = NULL;
	guard->n_lost = 0;
	guard->dirty = 0;
	guard->cancel_fd = 0;
	guard->died = 0;
	guard->is_release = guard->borrowed = 0;
}

/* A guard that is dropped at the end of its scope. Not zeroed: its record is large. */
#define AUTO_GUARD(name)                           \
	AUTO(hf_guard_drop) struct hf_guard name;  \
	hf_guard_init(&name)

/* Opens the record. A release succeeds without a free descriptor. Returns the descriptor or -errno. */
int hf_record_open(struct hf_guard *guard, int flags);

/* Closes the record, which is unlocked. */
void hf_record_close(struct hf_guard *guard);

/*
 * Remembers that `holder` lost the lock, for the journal. The reason of a takeover is the evidence
 * of its death.
 */
void hf_guard_note_loss(struct hf_guard *guard, enum hf_event event,
			const struct hf_lock_holder *holder, const char *reason);

#endif
