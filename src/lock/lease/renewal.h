/*
 * lock/lease/renewal.h - a lease that is renewed in time by a program with a poll loop of its own.
 *
 *     hf_renewal_begin(&renewal, lock, ttl_ns);          // right after the lock was taken
 *     for (;;) {
 *             poll(…, hf_mono_left(renewal.next));
 *             if (hf_renewal_step(&renewal, &err) < 0)   // HF_E_STALE, or the last error
 *                     … the lease is lost: end the work
 *     }
 *
 * It renews after a third of the lease. A renewal that fails is tried again every tenth, until the
 * lease counted from the last that worked has run out: from then on the lock may be another's,
 * whatever the error was. Counted on this side of the store and before it was asked, so that the
 * holder never believes in its lease for longer than the store does.
 */
#ifndef LOCK_LEASE_RENEWAL_H
#define LOCK_LEASE_RENEWAL_H

#include "holdfast/clock.h"
#include "holdfast/lock.h"

struct hf_renewal {
	struct hf_lock *lock; /* NULL: there is nothing to renew */
	int64_t ttl_ns;
	struct hf_mono next;  /* when hf_renewal_step has something to do; far away when not */
	struct hf_mono ends;  /* the lease, if no renewal works */
	int lost;
};

/* Begins with a lease of `ttl_ns` that was given just now. `lock` may be NULL. */
void hf_renewal_begin(struct hf_renewal *renewal, struct hf_lock *lock, int64_t ttl_ns);

/* Makes the next step renew at once: something else says that the lock may be lost. */
void hf_renewal_hurry(struct hf_renewal *renewal);

/*
 * Renews if it is time. Returns 1 when it was renewed; 0 when there was nothing to do or it is to
 * be tried again; negative, once, when the lease is lost. After that it returns 0 and does nothing.
 */
int hf_renewal_step(struct hf_renewal *renewal, struct hf_err *err);

#endif
