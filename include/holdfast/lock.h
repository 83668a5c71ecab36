/*
 * holdfast/lock.h - named locks with a proven owner, fencing tokens, leases and a fair queue.
 *
 * Calling sequence:
 *
 *     struct hf_locks *locks;                                 // once
 *     hf_locks_open(state, journal, &locks, &err);
 *
 *     struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 5 * HF_SEC };
 *     struct hf_lock *lock;
 *     struct hf_holder blocker;
 *     r = hf_lock_acquire(locks, "build", &opts, &lock, &blocker, &err);
 *     if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
 *             printf("held by pid %d: %s\n", blocker.id.pid, blocker.evidence);
 *     if (r < 0)
 *             return r;
 *     work(hf_lock_token(lock));
 *     hf_lock_release(lock, &err);
 *     hf_lock_free(lock);
 *
 * Owner. A lock belongs to a process identity (proc.h), not to a descriptor: fork and
 * exec neither release nor prolong it, a child cannot release it, and it can be taken
 * for another process (a shell). Two threads are two contenders; a handle may be
 * passed between threads.
 *
 * States of a holder: holding; dead (gone, zombie, recycled, other boot): the next
 * process that asks for the lock replaces it at once, with a lock_taken_over event; expired (its
 * lease ran out): replaced when another process asks for the lock, and from then on its token is
 * refused everywhere (L5). A holder that cannot be judged counts as alive (L4).
 *
 * Tokens rise strictly for each name, for ever (L2): max(last + 1, token clock in microseconds).
 * The token clock follows the wall clock and never goes back, so neither a deleted record, nor an
 * older copy put back, nor a clock set back repeats a token. It is kept twice beside the records
 * (.token, .token.copy); a damaged copy goes to quarantine. What is not noticed: an older record that
 * is put back in the second after another process saw the clock ahead; and the loss of both copies together with that of the record.
 *
 * Waiting is first come, first served, among waiters of one priority. A waiter sleeps in one poll on its own channel,
 * on the death of the process before it (and of the owner, if it waits for another), and
 * on its deadline; a release wakes exactly one.
 *
 * Waiters that are stopped (SIGSTOP) when their turn comes delay the others by at most twice
 * HF_LOCK_TURN_NS, at any place of the queue and however many they are; then all of them are passed
 * over, and queue again when they are continued. That a process was stopped is no event, so each
 * waiter behind another one peeks at the record every HF_LOCK_TURN_NS; the first makes no system
 * call. A waiter that is frozen in another way (a debugger, the cgroup freezer, another pid
 * namespace) cannot be told from one that runs: each such waiter delays the others by one more
 * HF_LOCK_TURN_NS. A waiter whose wake-up failed for an error of the file system looks within 10 s.
 *
 * Cancelling. A signal does not end a wait: no call returns -EINTR. A program that wants to stop
 * waiting (Ctrl-C) passes a descriptor, cancel_fd, and makes it readable, for example the read end
 * of a pipe that its handler writes to, or a signalfd. The wait then ends with HF_E_CANCELLED; the
 * descriptor is not read. Where only some signals end the wait, go_on decides: the waiter calls it,
 * and while it returns 1 keeps its place in the queue. hf_session_wait (run.h) has the descriptor alone.
 *
 * A process that is stopped in the microseconds in which it changes the record keeps all others
 * from it. A release then waits, however long: it is never lost. An acquisition waits as long
 * as it was told to, for ever if that was said; without waiting it says HF_E_BUSY after 10 s. The
 * other calls give up after 10 s with -ETIMEDOUT, and have changed nothing.
 *
 * Deadlock is looked for while waiting, after 50 ms and then with growing pauses of at most a
 * minute, and given to the waiter that closed the cycle. A cycle is made of these:
 *   - a waiter waits for each holder that keeps it out; in a lock with slots, for all of them; and
 *     for a waiter of another mode before it in the queue;
 *   - an owner waits when its thread sleeps in hf_lock_acquire, or any thread of a process that has
 *     only one;
 *   - a process of one thread waits for its child while it sleeps in wait4 or waitid for that child,
 *     or for any child and all its children are stuck; this finds `lock run A` below `lock run A`;
 *   - a supervisor waits for its keeper, a keeper, `lock run --ttl` and `file edit` for their children;
 *   - a session keeps its name until its tree is gone, so a process of the tree never gets it.
 * Not found, because the parent may go on by itself: below a program of several threads, or one
 * that waits for its child in poll, in sigsuspend (the `wait` of dash) or through a pipe; a shell
 * with other children in the background; a holder whose lease nobody renews. Nor where /proc does not
 * show the processes. Such a wait lasts as long as wait_ns says. What is reported is proven: all of
 * it was so at one moment, and only a timeout, a signal or a break could have ended it.
 *
 * Ownership: handles are freed by their _free functions, before the context, which is freed
 * before the state and the journal it was opened with. Freeing a handle does not release.
 * Threads: a context may be shared; a handle is used by one thread at a time. No call is
 * a point where a thread can be cancelled: a guard or a place in the queue would stay behind.
 * Fork: a child may only free what it inherited (HF_E_FORKED). It gets no share in a guard: a
 * handler of pthread_atfork replaces, in the child, the descriptors that this library has
 * flocked. The same holds for journal.h and file.h. Not for a child of a raw clone() or _Fork() that does not exec.
 * Crash: a record is changed by one write of at most one page under a short flock
 * guard; a record that fails its checksum is quarantined and never acted upon.
 * Descriptors: what a wait needed (up to 16 per context) is closed by the next call, so
 * that the new holder can go to work at once.
 * Kinds: what is opened are the locks that users name; hf_locks_kind gives those of groups, files,
 * plans and targets, which no name reaches.
 * Limits of the local store: one machine and flock(2). 64 holders of one lock, 16,384 waiters.
 */
#ifndef HOLDFAST_LOCK_H
#define HOLDFAST_LOCK_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/name.h"
#include "holdfast/proc.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_LOCK_SLOTS_MAX 64
#define HF_LOCK_TTL_MAX   (INT64_C(30) * 24 * 3600 * HF_SEC) /* longer leases are refused */
#define HF_LOCK_TURN_NS   (2 * HF_SEC)
#define HF_LOCK_PRIORITY_MAX 1000
#define HF_LOCK_PRIORITY_NS (60 * HF_SEC) /* of waiting, that each step of a priority counts for */

#define HF_LOCK_CLAIMS_MAX 256
#define HF_HOST_NAME_MAX   64

struct hf_locks; /* the locks of one store and one kind */
struct hf_lock;  /* one that is held */

/*
 * What a lock protects. A name of one kind never meets the same name of another, whatever the user
 * types; a kind is no part of the name.
 */
enum hf_lock_kind {
	HF_LOCK_KIND_NAME = 0,  /* what users name: lock run, sessions */
	HF_LOCK_KIND_GROUP = 1, /* the places of a group (run --max-active) */
	HF_LOCK_KIND_FILE = 2,  /* the directory entries of shared files (file.h) */
	HF_LOCK_KIND_PLAN = 3,  /* plans (plan.h) */
	HF_LOCK_KIND_TARGET = 4, /* the directories that plans are committed to */
	HF_LOCK_KIND_LAND = 5,   /* branches that are landed on, and their candidates (land.h) */
};

#define HF_LOCK_KINDS 6

enum hf_lock_mode {
	HF_LOCK_EXCLUSIVE = 0,
	HF_LOCK_SHARED = 1, /* any number of these, and no exclusive one */
	HF_LOCK_SLOTS = 2,  /* at most `slots` at once */
};

enum hf_lock_flags {
	HF_LOCK_REENTRANT = 1 << 0,     /* the same owner may take it again; counted */
	HF_LOCK_FREE_ON_EXIT = 1 << 1,  /* the owner's exit is its release, not a take-over */
};

/* Where an acquisition stands that waits. */
struct hf_lock_waiting {
	enum hf_lock_kind kind;
	char name[HF_NAME_MAX + 1];
	int64_t waited_ns;
	uint32_t place, of;    /* in the queue, from 1; 0: not known */
	unsigned slots;        /* 0: not a slots lock */
	struct hf_proc_id holder; /* the first of them; pid 0: none, or not known */
};

/* All zero means: exclusive, do not wait, no lease, owned by the caller. */
struct hf_lock_opts {
	size_t size;            /* sizeof(struct hf_lock_opts) */
	enum hf_lock_mode mode;
	unsigned slots;         /* HF_LOCK_SLOTS: 1 to HF_LOCK_SLOTS_MAX */
	int64_t wait_ns;        /* 0: do not wait; negative: for ever */
	int64_t ttl_ns;         /* lease; 0: none */
	unsigned flags;         /* enum hf_lock_flags */
	const struct hf_proc_id *owner; /* NULL: the calling process and thread */
	int cancel_fd;          /* ends the wait when it is readable; 0: none, so never descriptor 0 */
	/* Called by the waiting thread when cancel_fd is readable. 1: it has emptied the descriptor, and
	 * the wait goes on; 0: the wait ends. NULL: the wait ends. */
	int (*go_on)(void *arg);
	void *go_on_arg;
	/* Called by the waiting thread about every waiting_ns (0: a second) while it waits, with where it stands. It holds no guard
	 * then; what it does delays the acquisition. A store that does not tell never calls it. NULL: nothing is called. */
	void (*waiting)(void *arg, const struct hf_lock_waiting *waiting);
	void *waiting_arg;
	int64_t waiting_ns;
	/* A waiter stands as if it had come priority * HF_LOCK_PRIORITY_NS earlier, so a high one is let in first and a low one
	 * does not starve; at most HF_LOCK_PRIORITY_MAX. A store may take it for 0. */
	unsigned priority;
};

/* One holder, as others see it. */
struct hf_holder {
	struct hf_proc_id id;
	int32_t thread;        /* 0: the process as a whole */
	uint64_t token;
	struct hf_wall since;  /* when it got the lock, in milliseconds */
	int64_t lease_left_ns; /* -1: no lease; 0: expired */
	enum hf_lock_mode mode;
	unsigned count;        /* how often a reentrant owner has it */
	enum hf_liveness liveness;
	char evidence[HF_EVIDENCE_MAX];
	char host[HF_HOST_NAME_MAX + 1]; /* the name of its machine; "": the store has only this one */
};

/* Opens the locks of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_locks_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_locks **ret_locks, struct hf_err *err) HF_MUST_CHECK;

/*
 * The same in the store that `url` names, "SCHEME:REST"; NULL and "local:" are the files of `state`,
 * which hf_locks_open means. -EINVAL: there is no such store. A store may lack some of what
 * this header describes: -ENOTSUP for slots, -EINVAL for a lock without a lease where the store
 * does not see the death of owners, or for a lease that is too short for it.
 */
HF_API int hf_locks_open_store(const char *url, struct hf_state *state, struct hf_journal *journal,
			       struct hf_locks **ret_locks, struct hf_err *err) HF_MUST_CHECK;

/*
 * The locks of another kind in the same store; what is opened has HF_LOCK_KIND_NAME. Not to be freed
 * by itself: it lives as long as `locks`. NULL: there is no such kind.
 */
HF_API struct hf_locks *hf_locks_kind(struct hf_locks *locks, enum hf_lock_kind kind);

/*
 * How long a lease is in this store when the caller has no better idea; 0 where a lock needs none, as in the local one. In a store of
 * several machines each lock needs a lease (ttl_ns), because nobody elsewhere sees the death of its owner, and its holder renews it (hf_lock_renew).
 */
HF_API int64_t hf_locks_lease(const struct hf_locks *locks);

/* "name", "group", "file", "plan", "target", "land"; NULL: there is no such kind. */
HF_API const char *hf_lock_kind_word(enum hf_lock_kind kind);

/* Frees all its kinds. NULL is fine. Locks that are held stay held. After fork: allowed in the child. */
HF_API void hf_locks_free(struct hf_locks *locks);

/*
 * Takes the lock `name`. Returns 0, or:
 *   HF_E_BUSY       held, and wait_ns was 0; *ret_blocker (may be NULL) is the holder
 *   HF_E_TIMEOUT    still held after wait_ns; the same
 *   HF_E_DEADLOCK   the owner has it already, or a cycle; the detail names it
 *   HF_E_MODE       held as another number of slots
 *   HF_E_CANCELLED  cancel_fd became readable before the lock was acquired
 *   HF_E_GONE       the owner given has ended, before or while it was waited for
 *   HF_E_NAME, -EINVAL, -errno
 * Nothing is left behind by a failure. Blocks: up to wait_ns.
 */
HF_API int hf_lock_acquire(struct hf_locks *locks, const char *name,
			   const struct hf_lock_opts *opts, struct hf_lock **ret_lock,
			   struct hf_holder *ret_blocker, struct hf_err *err) HF_MUST_CHECK;

/* The fencing token; constant for the life of the handle. */
HF_API uint64_t hf_lock_token(const struct hf_lock *lock);

/* Returns 0 while the token is current; HF_E_STALE when the lock was lost. */
HF_API int hf_lock_check(struct hf_lock *lock, struct hf_err *err) HF_MUST_CHECK;

/* Prolongs the lease by `ttl_ns` from now (0: by its own length). HF_E_STALE when lost. */
HF_API int hf_lock_renew(struct hf_lock *lock, int64_t ttl_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Gives it back; the next waiter is woken. Blocks while a process is stopped inside the guard.
 * HF_E_STALE when it was lost meanwhile: the successor is untouched (L3). The caller still frees the handle.
 */
HF_API int hf_lock_release(struct hf_lock *lock, struct hf_err *err);

/*
 * Adds a second owner to an exclusive lock or to a slot: from then on it counts as dead only
 * when both are, and either may renew or release it by its token. For a pair of processes
 * that watch over each other. Returns 0; HF_E_STALE when it was lost; HF_E_GONE when `owner`
 * has ended; -EINVAL when it is shared or has two owners already; -ENOSPC when there is no
 * room for one: of a lock with more than HF_LOCK_SLOTS_MAX / 2 slots not every slot can have two.
 */
HF_API int hf_lock_add_owner(struct hf_lock *lock, const struct hf_proc_id *owner,
			     struct hf_err *err) HF_MUST_CHECK;

/* Frees the handle and nothing else. NULL is fine. After fork: allowed in the child. */
HF_API void hf_lock_free(struct hf_lock *lock);

/* -- a descriptor of the caller's --------------------------------------------- */

/*
 * flock(2) on an open file, with a deadline and a way out, which the call itself lacks. It keeps out
 * every process that uses flock(2) on that file, flock(1) included. No name, record, token or queue: the
 * lock belongs to the open file, and ends when its last descriptor is closed, or with flock(LOCK_UN).
 * Of `opts` (NULL: exclusive, do not wait) mode, wait_ns, cancel_fd and go_on count; slots, a lease, flags or an
 * owner are -EINVAL. Returns 0; HF_E_BUSY, HF_E_TIMEOUT, with *ret_blocker (may be NULL; pid 0
 * when unknown); HF_E_CANCELLED; -errno. Blocks: up to wait_ns.
 */
HF_API int hf_lock_fd(int fd, const struct hf_lock_opts *opts, struct hf_holder *ret_blocker,
		      struct hf_err *err) HF_MUST_CHECK;

/* -- without a handle: by name and token, or by name and owner --------------- */

/*
 * As hf_lock_check, for a process that was given the token. With token 0: is it held at
 * all? 0 yes, HF_E_NOT_HELD no.
 */
HF_API int hf_lock_check_token(struct hf_locks *locks, const char *name, uint64_t token,
			       struct hf_err *err) HF_MUST_CHECK;

/* As hf_lock_renew, for a process that was given the token. */
HF_API int hf_lock_renew_token(struct hf_locks *locks, const char *name, uint64_t token,
			       int64_t ttl_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Releases what `token` holds (then `owner` is not looked at) or, with token 0, what
 * `owner` holds. Returns 0; HF_E_NOT_HELD nobody has it; HF_E_NOT_OWNER another owner
 * does (named in the detail, nothing changed, L3); HF_E_STALE the token was lost.
 */
HF_API int hf_lock_release_as(struct hf_locks *locks, const char *name, uint64_t token,
			      const struct hf_proc_id *owner, struct hf_err *err) HF_MUST_CHECK;

/*
 * Takes the lock away from its holders, journalled with `reason` (lock_broken). The old
 * tokens are refused from then on. Returns how many holders lost it; HF_E_NOT_HELD.
 */
HF_API int hf_lock_break(struct hf_locks *locks, const char *name, const char *reason,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Runs `action` while `token` is proven current and cannot be lost: under the guard of
 * the record (L5). It must be short. Returns its result, or HF_E_STALE without running it.
 * Once an exclusive holder has acted in this way, lower tokens of that lock are refused here for
 * ever, whatever becomes of its record (the fence: fences/ of the state directory).
 */
HF_API int hf_lock_guarded(struct hf_locks *locks, const char *name, uint64_t token,
			   int (*action)(void *arg), void *arg, struct hf_err *err) HF_MUST_CHECK;

struct hf_lock_claim {
	enum hf_lock_kind kind;
	const char *name;
	uint64_t token;
};

/*
 * The same for several locks, of any kind: all tokens are proven, then `action` runs once, or not at
 * all. The guards are taken in one order for all callers (kind, then name), so the order of `claims`
 * does not matter, and two callers never wait for each other in a cycle; but an action must not
 * itself call hf_lock_guarded. A claim may stand there twice; two tokens for one lock, or more
 * than HF_LOCK_CLAIMS_MAX claims, are -EINVAL. `locks` may be of any kind. Each claim takes two descriptors.
 */
HF_API int hf_lock_guarded_many(struct hf_locks *locks, const struct hf_lock_claim *claims, size_t n,
				int (*action)(void *arg), void *arg, struct hf_err *err) HF_MUST_CHECK;

/* -- looking ------------------------------------------------------------------ */

struct hf_waiter {
	struct hf_proc_id id;
	int32_t thread;
	enum hf_lock_mode mode;
	int64_t waited_ns;
	unsigned priority;
	char host[HF_HOST_NAME_MAX + 1]; /* as in struct hf_holder */
};

struct hf_lock_info {
	enum hf_lock_kind kind;
	const char *name;
	uint64_t token; /* the last one given */
	unsigned slots; /* 0: not a slots lock */
	const struct hf_holder *holders;
	size_t n_holders;
	const struct hf_waiter *waiters; /* in the order in which they get it */
	size_t n_waiters;
};

/* Calls `fn` with the state of `name`. HF_E_NOT_HELD when it never existed. */
HF_API int hf_lock_look(struct hf_locks *locks, const char *name,
			void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * The same for every lock of the kind of `locks`, in no particular order. One that cannot be read (a
 * process is stopped while it changes it: after 500 ms) does not hide the others: they are
 * shown, and the first error is returned.
 */
HF_API int hf_lock_list(struct hf_locks *locks,
			void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* The same for the locks, of every kind, that are waited for: it costs nothing for all others. -ENOTSUP: the store cannot tell. */
HF_API int hf_lock_list_waited(struct hf_locks *locks,
			       void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			       struct hf_err *err) HF_MUST_CHECK;

/* -- forgetting ----------------------------------------------------------------- */

/*
 * Removes what is stored of a lock that nobody holds or waits for; a dead holder counts as none, and its takeover is told. Tokens of
 * the name rise all the same (L2). Safe beside processes that take the lock in the same moment. 1: it is forgotten; 0: not yet, the
 * last acquisition is less than two seconds ago; HF_E_BUSY; HF_E_NOT_HELD: there is nothing stored; -ENOTSUP: the store forgets by itself.
 */
HF_API int hf_lock_forget(struct hf_locks *locks, const char *name, struct hf_err *err) HF_MUST_CHECK;

/*
 * The same for all locks of the kind of `locks` that nobody took for `quiet_ns`, for at most `limit_ns` (negative: for as long as
 * it takes). Returns how many.
 */
HF_API int hf_locks_forget_idle(struct hf_locks *locks, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
