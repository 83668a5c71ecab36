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
 * Owner. A lock belongs to a process identity (proc.h), not to a descriptor. Fork and exec
 * neither release nor prolong it, a child cannot release it, and it can be taken for another
 * process (a shell). Two threads are two contenders; they may pass a handle to each other.
 *
 * States of a holder:
 *
 *   - holding;
 *   - dead (gone, zombie, recycled, other boot): the next request replaces it
 *     immediately, with a lock_taken_over event;
 *   - expired (its lease ran out): the next request replaces it, and from then
 *     on its token is refused everywhere (L5).
 *
 * A holder that cannot be judged counts as alive (L4).
 *
 * The tokens of a name always rise strictly (L2): max(last + 1, token clock in
 * microseconds). The token clock follows the wall clock and never goes back, so tokens do not
 * repeat after a record is deleted, an older copy is restored or the clock is set back. It is
 * stored twice next to the records (.token, .token.copy); a damaged copy is quarantined. Not
 * detected: an older record that is restored in the second after another process saw the clock
 * ahead; the loss of both copies together with the record.
 *
 * Waiting is first come, first served, among waiters of one priority. A waiter sleeps in one
 * poll on its channel, on the death of the process before it (and of the owner, if that is
 * another process), and on its deadline. A release wakes exactly one waiter.
 *
 * Stopped waiters. Waiters that are stopped (SIGSTOP) when their turn comes delay the others
 * by at most twice HF_LOCK_TURN_NS, wherever and however many they are. Then they are skipped,
 * and queue again when they continue. A stop causes no event, so each waiter except the first
 * reads the record every HF_LOCK_TURN_NS; the first makes no system call. A waiter that is
 * frozen in another way (debugger, cgroup freezer, other pid namespace) looks alive: each one
 * delays the others by one more HF_LOCK_TURN_NS. A waiter whose wake-up failed on a file
 * system error checks again within 10 s.
 *
 * Cancelling. A signal does not end a wait; no call returns -EINTR. To stop waiting (Ctrl-C),
 * pass a descriptor as cancel_fd and make it readable: a signalfd, or the read end of a pipe
 * to which a handler writes. The wait ends with HF_E_CANCELLED; the descriptor is not read. To
 * end it for some signals only, set go_on: while it returns 1, the waiter keeps its place.
 * hf_session_wait (run.h) has only the descriptor.
 *
 * A process that is stopped in the microseconds in which it changes the record blocks the
 * others:
 *
 *   - A release waits without limit: it is never lost.
 *   - An acquisition waits for wait_ns; with 0 it returns HF_E_BUSY after 10 s.
 *   - Other calls fail after 10 s with -ETIMEDOUT and have changed nothing.
 *
 * Deadlock. Waiters search for a cycle after 50 ms, and then with growing pauses of at most a
 * minute. The waiter that closed the cycle gets HF_E_DEADLOCK. These are the edges:
 *
 *   - A waiter waits for each holder that excludes it (all holders of a lock
 *     with slots), and for a waiter of another mode before it.
 *   - An owner waits while its thread sleeps in hf_lock_acquire; of a process
 *     with one thread, any wait counts.
 *   - A process with one thread waits for its child while it sleeps in wait4 or
 *     waitid for that child, or for any child and all its children are stuck.
 *     This finds `lock run A` below `lock run A`.
 *   - A supervisor waits for its keeper; a keeper, `lock run --ttl` and `file
 *     edit` wait for their children.
 *   - A session keeps its name until its process tree is gone, so a process of
 *     the tree never gets it.
 *
 * Not found, because the parent may continue alone: a wait below a program that has several
 * threads, or that waits for its child in poll, in sigsuspend (the `wait` of dash) or through
 * a pipe; a shell with other children in the background; a holder whose lease is not renewed.
 * Processes that /proc does not show are not found either. Such a wait lasts for wait_ns. A
 * reported deadlock is proven: all edges existed at one moment, and only a timeout, a signal
 * or a break could have ended it.
 *
 * Ownership: free handles before their context, and a context before its state and journal, by
 * their _free functions. Freeing a handle does not release the lock.
 * Threads: threads may share a context; one thread at a time uses a handle. No call is a
 * thread cancellation point: a cancelled thread would leave a guard or a place in the queue.
 * Fork: a child may only free inherited handles and contexts (HF_E_FORKED). It has no share in
 * a guard: in the child, a pthread_atfork handler replaces the descriptors that this library
 * has flocked. The same holds for journal.h and file.h, but not after a raw clone() or _Fork()
 * without exec.
 * Crash: one write of at most one page, under a short flock guard, changes a record. A record
 * with a wrong checksum is quarantined and never used.
 * Descriptors: a release needs no free descriptor; each context reserves one. The next call
 * closes those of a wait (up to 16 per context), so that the new holder can start immediately.
 * Kinds: hf_locks_open opens the locks that users name. hf_locks_kind returns those of groups,
 * files, plans and targets, which a user's name cannot reach.
 * Limits of the local store: one machine and flock(2); 64 holders of one lock; 16,384 waiters.
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
#define HF_LOCK_PRIORITY_NS (60 * HF_SEC) /* of waiting, for each step of a priority */

#define HF_LOCK_CLAIMS_MAX 256
#define HF_HOST_NAME_MAX   64

struct hf_locks; /* the locks of one store and one kind */
struct hf_lock;  /* a held lock */

/*
 * The object that a lock protects. The same name in two kinds is two locks; the kind is not
 * part of the name.
 */
enum hf_lock_kind {
	HF_LOCK_KIND_NAME = 0,  /* user names: lock run, sessions */
	HF_LOCK_KIND_GROUP = 1, /* the places of a group (run --max-active) */
	HF_LOCK_KIND_FILE = 2,  /* the directory entries of shared files (file.h) */
	HF_LOCK_KIND_PLAN = 3,  /* plans (plan.h) */
	HF_LOCK_KIND_TARGET = 4, /* the target directories of plan commits */
	HF_LOCK_KIND_LAND = 5,   /* branches that changes land on, and their candidates (land.h) */
};

#define HF_LOCK_KINDS 6

enum hf_lock_mode {
	HF_LOCK_EXCLUSIVE = 0,
	HF_LOCK_SHARED = 1, /* any number of holders, without an exclusive one */
	HF_LOCK_SLOTS = 2,  /* at most `slots` holders */
};

enum hf_lock_flags {
	HF_LOCK_REENTRANT = 1 << 0,     /* the owner may take it several times; counted */
	HF_LOCK_FREE_ON_EXIT = 1 << 1,  /* the owner's exit is a release, not a takeover */
};

/* The position of a waiting acquisition. */
struct hf_lock_waiting {
	enum hf_lock_kind kind;
	char name[HF_NAME_MAX + 1];
	int64_t waited_ns;
	uint32_t place, of;    /* in the queue, from 1; 0: unknown */
	unsigned slots;        /* 0: a lock without slots */
	struct hf_proc_id holder; /* the first holder; pid 0: none, or unknown */
};

/* All zero: exclusive, do not wait, no lease, owned by the caller. */
struct hf_lock_opts {
	size_t size;            /* sizeof(struct hf_lock_opts) */
	enum hf_lock_mode mode;
	unsigned slots;         /* HF_LOCK_SLOTS: 1 to HF_LOCK_SLOTS_MAX */
	int64_t wait_ns;        /* 0: do not wait; negative: no limit */
	int64_t ttl_ns;         /* lease; 0: none */
	unsigned flags;         /* enum hf_lock_flags */
	const struct hf_proc_id *owner; /* NULL: the calling process and thread */
	int cancel_fd;          /* ends the wait when readable; 0: none, so never descriptor 0 */
	/*
	 * Called by the waiting thread when cancel_fd is readable. Returns 1 to continue the
	 * wait, after it has emptied the descriptor; 0 to end it. NULL: the wait ends.
	 */
	int (*go_on)(void *arg);
	void *go_on_arg;
	/*
	 * Called by the waiting thread about every waiting_ns (0: a second) with its position.
	 * The thread holds no guard then; a slow function delays the acquisition. A store
	 * without positions never calls it. NULL: no call.
	 */
	void (*waiting)(void *arg, const struct hf_lock_waiting *waiting);
	void *waiting_arg;
	int64_t waiting_ns;
	/*
	 * Puts a waiter ahead as if it had come priority * HF_LOCK_PRIORITY_NS earlier, so a
	 * low priority does not starve; at most HF_LOCK_PRIORITY_MAX. A store may treat it as
	 * 0.
	 */
	unsigned priority;
};

/* A holder, as other processes see it. */
struct hf_holder {
	struct hf_proc_id id;
	int32_t thread;        /* 0: the process as a whole */
	uint64_t token;
	struct hf_wall since;  /* time of the acquisition, in milliseconds */
	int64_t lease_left_ns; /* -1: no lease; 0: expired */
	enum hf_lock_mode mode;
	unsigned count;        /* number of acquisitions by a reentrant owner */
	enum hf_liveness liveness;
	char evidence[HF_EVIDENCE_MAX];
	char host[HF_HOST_NAME_MAX + 1]; /* the name of its machine; "": a store of this machine only */
};

/* Opens the locks of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_locks_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_locks **ret_locks, struct hf_err *err) HF_MUST_CHECK;

/*
 * Like hf_locks_open, in the store that `url` names, "SCHEME:REST". NULL and "local:" are the
 * files of `state`, as in hf_locks_open. -EINVAL: no such store. A store may lack features of
 * this header: -ENOTSUP for slots; -EINVAL for a lock without a lease if the store does not
 * detect the death of owners, or for a lease that is too short for it.
 */
HF_API int hf_locks_open_store(const char *url, struct hf_state *state, struct hf_journal *journal,
			       struct hf_locks **ret_locks, struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the locks of another kind in the same store; an opened context has
 * HF_LOCK_KIND_NAME. Do not free the result: it lives as long as `locks`. NULL: no such kind.
 */
HF_API struct hf_locks *hf_locks_kind(struct hf_locks *locks, enum hf_lock_kind kind);

/*
 * Returns the default lease of this store, or 0 if its locks need no lease, as in the local
 * store. In a store of several machines each lock needs a lease (ttl_ns), because other
 * machines cannot see the death of its owner, and its holder renews it (hf_lock_renew).
 */
HF_API int64_t hf_locks_lease(const struct hf_locks *locks);

/* Returns "name", "group", "file", "plan", "target", "land", or NULL for an unknown kind. */
HF_API const char *hf_lock_kind_word(enum hf_lock_kind kind);

/*
 * Frees a context with all its kinds. NULL is allowed. Held locks stay held. Allowed in the
 * child after fork.
 */
HF_API void hf_locks_free(struct hf_locks *locks);

/*
 * Takes the lock `name`. Blocks up to wait_ns. A failure leaves nothing behind. Returns 0, or:
 *
 *   HF_E_BUSY       held, and wait_ns was 0; *ret_blocker (may be NULL) is the holder
 *   HF_E_TIMEOUT    still held after wait_ns; the same
 *   HF_E_DEADLOCK   the owner has it already, or a cycle; the detail names it
 *   HF_E_MODE       held with another number of slots
 *   HF_E_CANCELLED  cancel_fd became readable before the lock was acquired
 *   HF_E_GONE       the given owner ended before or during the wait
 *   HF_E_NAME, -EINVAL, -errno
 */
HF_API int hf_lock_acquire(struct hf_locks *locks, const char *name,
			   const struct hf_lock_opts *opts, struct hf_lock **ret_lock,
			   struct hf_holder *ret_blocker, struct hf_err *err) HF_MUST_CHECK;

/* Returns the fencing token, constant for the life of the handle. */
HF_API uint64_t hf_lock_token(const struct hf_lock *lock);

/* Returns 0 while the token is current, HF_E_STALE after the lock was lost. */
HF_API int hf_lock_check(struct hf_lock *lock, struct hf_err *err) HF_MUST_CHECK;

/* Renews the lease for `ttl_ns` from now (0: its original length). HF_E_STALE if lost. */
HF_API int hf_lock_renew(struct hf_lock *lock, int64_t ttl_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Releases the lock and wakes the next waiter. Blocks while a process is stopped inside the
 * guard. HF_E_STALE if the lock was lost: the successor is not affected (L3). The caller frees
 * the handle in each case.
 */
HF_API int hf_lock_release(struct hf_lock *lock, struct hf_err *err);

/*
 * Adds a second owner to an exclusive lock or to a slot, for a pair of processes that watch
 * each other. The holder is then dead only if both owners are, and either may renew or release
 * it by its token. Returns 0; HF_E_STALE if it was lost; HF_E_GONE if `owner` has ended;
 * -EINVAL if it is shared or has two owners already; -ENOSPC if there is no room: in a lock
 * with more than HF_LOCK_SLOTS_MAX / 2 slots, not every slot can have two owners.
 */
HF_API int hf_lock_add_owner(struct hf_lock *lock, const struct hf_proc_id *owner,
			     struct hf_err *err) HF_MUST_CHECK;

/* Frees the handle and nothing else. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_lock_free(struct hf_lock *lock);

/* -- a descriptor of the caller's --------------------------------------------- */

/*
 * Takes flock(2) on an open file, with a deadline and cancellation, which the call itself
 * lacks. It excludes every process that uses flock(2) on that file, including flock(1). It has
 * no name, record, token or queue: the lock belongs to the open file, and ends when its last
 * descriptor is closed, or by flock(LOCK_UN). Blocks up to wait_ns.
 *
 * Of `opts` (NULL: exclusive, do not wait) it uses mode, wait_ns, cancel_fd and go_on; slots,
 * a lease, flags or an owner are -EINVAL. Returns 0; HF_E_BUSY, HF_E_TIMEOUT, with
 * *ret_blocker (may be NULL; pid 0 if unknown); HF_E_CANCELLED; -errno.
 */
HF_API int hf_lock_fd(int fd, const struct hf_lock_opts *opts, struct hf_holder *ret_blocker,
		      struct hf_err *err) HF_MUST_CHECK;

/* -- without a handle: by name and token, or by name and owner --------------- */

/*
 * Like hf_lock_check, for a process that was given the token. With token 0 it returns 0 if any
 * process holds the lock, otherwise HF_E_NOT_HELD.
 */
HF_API int hf_lock_check_token(struct hf_locks *locks, const char *name, uint64_t token,
			       struct hf_err *err) HF_MUST_CHECK;

/* Like hf_lock_renew, for a process that was given the token. */
HF_API int hf_lock_renew_token(struct hf_locks *locks, const char *name, uint64_t token,
			       int64_t ttl_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Releases the holding with `token`, without checking `owner`, or with token 0 the holding of
 * `owner`. Returns 0; HF_E_NOT_HELD: no process holds the lock; HF_E_NOT_OWNER: another owner
 * does (the detail names it, nothing changed, L3); HF_E_STALE: the token was lost.
 */
HF_API int hf_lock_release_as(struct hf_locks *locks, const char *name, uint64_t token,
			      const struct hf_proc_id *owner, struct hf_err *err) HF_MUST_CHECK;

/*
 * Breaks the lock: withdraws it from its holders, journalled with `reason` (lock_broken). The
 * old tokens are refused from then on. Returns the number of holders that lost it, or
 * HF_E_NOT_HELD.
 */
HF_API int hf_lock_break(struct hf_locks *locks, const char *name, const char *reason,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Runs `action`, which must be short, while `token` is proven current and cannot be lost:
 * under the guard of the record (L5). Returns its result, or HF_E_STALE without running it.
 * Once an exclusive holder has acted in this way, lower tokens of that lock are refused
 * permanently, even if its record is lost (the fence: fences/ of the state directory).
 */
HF_API int hf_lock_guarded(struct hf_locks *locks, const char *name, uint64_t token,
			   int (*action)(void *arg), void *arg, struct hf_err *err) HF_MUST_CHECK;

struct hf_lock_claim {
	enum hf_lock_kind kind;
	const char *name;
	uint64_t token;
};

/*
 * Like hf_lock_guarded for several locks, of any kind: proves all tokens, then runs `action`
 * once, or not at all. All callers take the guards in one order (kind, then name), so the
 * order of `claims` does not matter, and two callers never wait for each other in a cycle. An
 * action must not itself call hf_lock_guarded. A claim may appear twice. Two tokens for one
 * lock, or more than HF_LOCK_CLAIMS_MAX claims, are -EINVAL. `locks` may be of any kind. Each
 * claim uses two descriptors.
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
	uint64_t token; /* the last assigned token */
	unsigned slots; /* 0: a lock without slots */
	const struct hf_holder *holders;
	size_t n_holders;
	const struct hf_waiter *waiters; /* in the order of their turns */
	size_t n_waiters;
};

/* Calls `fn` with the state of `name`. HF_E_NOT_HELD if it never existed. */
HF_API int hf_lock_look(struct hf_locks *locks, const char *name,
			void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Calls `fn` for every lock of the kind of `locks`, in no particular order. A lock that cannot
 * be read (a process is stopped while it changes it: after 500 ms) does not hide the others:
 * they are reported, and the first error is returned.
 */
HF_API int hf_lock_list(struct hf_locks *locks,
			void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Calls `fn` for each lock, of every kind, that has waiters, without reading any other lock.
 * -ENOTSUP: the store does not know.
 */
HF_API int hf_lock_list_waited(struct hf_locks *locks,
			       void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			       struct hf_err *err) HF_MUST_CHECK;

/* -- forgetting ----------------------------------------------------------------- */

/*
 * Removes the stored data of a lock without holder or waiter. A dead holder does not count;
 * its takeover is journalled. Tokens of the name keep rising (L2). Safe while other processes
 * take the lock. Returns 1: forgotten; 0: not yet, because the last acquisition is less than
 * two seconds ago; HF_E_BUSY; HF_E_NOT_HELD: nothing is stored; -ENOTSUP: the store forgets
 * automatically.
 */
HF_API int hf_lock_forget(struct hf_locks *locks, const char *name, struct hf_err *err) HF_MUST_CHECK;

/*
 * Like hf_lock_forget for all locks of the kind of `locks` that no process took for
 * `quiet_ns`, for at most `limit_ns` (negative: no limit). Returns the number of forgotten
 * locks.
 */
HF_API int hf_locks_forget_idle(struct hf_locks *locks, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
