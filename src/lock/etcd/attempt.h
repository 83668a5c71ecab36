/* lock/etcd/attempt.h - one acquisition on its way: the place in the queue, the leases, the grant. */
#ifndef LOCK_ETCD_ATTEMPT_H
#define LOCK_ETCD_ATTEMPT_H

#include "hf/lock/etcd/record/record.h"

/* A waiter that is dead or stopped holds up the queue for as long as this, if no waiter of its host sees that it is dead. */
#define HF_ETCD_WAITER_NS (10 * HF_SEC)

struct hf_etcd_attempt {
	struct hf_etcd *etcd;
	const struct hf_lock_request *request;
	struct hf_etcd_keys keys;
	struct hf_mono deadline;
	int queued;
	struct hf_place mine;      /* its id is given at the start */
	struct hf_lease place_lease; /* of the place; id 0: none */
	struct hf_mono next_keep;
	struct hf_lease hold_lease; /* of the hold */
	struct hf_mono next_search; /* for a deadlock */
	int64_t search_pause_ns;
	int direct;                 /* it seems to be our turn: take it without looking */
	uint64_t token;
};

/* Takes a place at the end of the queue. 0 or a failure. */
int hf_attempt_enqueue(struct hf_etcd_attempt *a, int64_t ttl_ns, struct hf_err *err);

/*
 * It is our turn, as `state` says: takes the lock. 1: it is ours, with a->token and a->hold_lease; 0: something changed, read
 * again; or a failure.
 */
int hf_attempt_grant(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err);

/*
 * Takes the lock without having looked, if it is free: nobody is in the queue or, of one that waits, nobody was before it. Returns as
 * hf_attempt_grant; 0: it is not free, or has never been taken.
 */
int hf_attempt_take(struct hf_etcd_attempt *a, struct hf_err *err);

/* Gives back what was taken on the way. */
void hf_attempt_leave(struct hf_etcd_attempt *a);

/* Removes the places of owners and waiters of this host that are dead. Returns how many. */
int hf_attempt_reap(struct hf_etcd_attempt *a, const struct hf_etcd_state *state);

/* Sleeps until the place before us may have changed. 0: read again; or a failure that ends the wait. */
int hf_attempt_wait(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err);

/*
 * Renews the lease of a hold and proves it: the renewal counts only if our place is still there in a linearizable read of the
 * same raft term, because an old leader that was paused answers keepalives too. 0 with the time from which the
 * lease runs; HF_E_STALE; HF_E_STORE.
 */
int hf_etcd_prove(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *hold,
		  struct hf_lease *ret, struct hf_err *err);

/* The same, with the place as it was read for it. */
int hf_etcd_prove_place(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *hold,
			struct hf_place *ret_place, struct hf_lease *ret, struct hf_err *err);

/*
 * The owner of the hold has died. One whose exit is its release has released it; of another the lease is ended, and the next holder
 * tells that it took over. 0, HF_E_STALE or another failure.
 */
int hf_etcd_abandon(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_err *err);

/* Keeps a hold in mind, and recalls it: 1, or 0 when it is not known. What has changed meanwhile makes a transaction with it fail. */
void hf_etcd_remember(struct hf_etcd *etcd, const struct hf_etcd_hold *hold);
int hf_etcd_recall(struct hf_etcd *etcd, uint64_t token, struct hf_etcd_hold *ret);

/* A hold that is renewed again and again: what was read of it once need not be read again. { 0 }: nothing was. */
struct hf_etcd_kept {
	int known;
	struct hf_etcd_keys keys;
	struct hf_etcd_hold hold;
	struct hf_place place; /* as the last proof read it */
};

/* hf_etcd_prove for the hold of `token`, whatever lease it has by now. */
int hf_etcd_renew_proven(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_etcd_kept *kept,
			 struct hf_lease *ret, struct hf_err *err);

/*
 * Writes `to` in place of `from`, if that is still what is stored and its place is there. 1: done; 0: it has changed; or a failure.
 */
int hf_etcd_hold_rewrite(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *from,
			 const struct hf_etcd_hold *to, struct hf_err *err);

/* What others may see of the owner `index` of a hold; with `ask`, the server says how long its lease lasts. */
void hf_etcd_show(struct hf_etcd *etcd, const struct hf_etcd_hold *hold, unsigned index, int ask, struct hf_holder *ret);

/* Is the request part of a cycle that it is to break? 1 with the cycle in words. */
int hf_etcd_deadlock(struct hf_etcd *etcd, const struct hf_place *mine, char *ret_cycle, size_t cap);

#endif
