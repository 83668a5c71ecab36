/*
 * lock/local/wait.c - what a waiter sleeps on.
 *
 * What is watched makes a lost wake-up impossible even when processes die at any point:
 *
 *   - our own channel: a token, or "look again";
 *   - first in the queue: the holders' pidfds, and the earliest end of a lease;
 *   - behind somebody: that waiter's pidfd. When it gets the lock it is the holder that
 *     we then have to watch, so nothing needs to be told; where more than its death
 *     matters (several holders, leases) we are told to look.
 *   - whom we wait for, if that is not ourselves: nobody would release what it is given;
 *   - behind somebody, or while a token is on its way: also a slow clock, in case
 *     whoever it was sent to is stopped and does not notice.
 */
#include <limits.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/grant.h"
#include "hf/lock/local/guard.h"
#include "hf/lock/local/holders.h"
#include "hf/lock/local/queue.h"
#include "hf/lock/local/wait.h"
#include "hf/sys/calls.h"

/*
 * For those further back in the queue: they move up without being told, and if the one
 * before them is stopped in the moment it is given the lock, nothing else wakes them.
 */
#define SLOW_CLOCK_NS (60 * HF_SEC)

/* For who cannot be watched: of another namespace, or we have no descriptors left. */
#define UNKNOWN_CLOCK_NS (5 * HF_SEC)

void hf_attempt_stop_watching(struct hf_attempt *a)
{
	for (nfds_t i = 1; i < a->n_watch; i++)
		hf_auto_close(&a->watch[i].fd);
	a->n_watch = 1;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

/* Adds a process to what we sleep on. Returns 0 when it has ended meanwhile. */
static int watch_process(struct hf_attempt *a, const struct hf_proc_id *id)
{
	char evidence[HF_EVIDENCE_MAX];
	int fd = -1;
	int verdict = hf_local_judge(a->locks, id, &fd, evidence);

	if (verdict == 0)
		a->watch[a->n_watch++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	else if (verdict == HF_E_UNKNOWN)
		a->clock_ns = smaller(a->clock_ns, UNKNOWN_CLOCK_NS);
	return verdict != HF_E_GONE && verdict != HF_E_RECYCLED;
}

int hf_attempt_watch(struct hf_guard *guard, struct hf_attempt *a)
{
	const struct hf_lock_record *record = &guard->record;
	struct hf_lock_entry previous, further;

	a->clock_ns = -1;
	if (!hf_proc_same(&a->entry.owner, &a->entry.waiter) && !watch_process(a, &a->entry.owner))
		return 0;
	if (hf_queue_previous(guard, a->entry.ticket, &previous)) {
		a->clock_ns = hf_queue_previous(guard, previous.ticket, &further) ? SLOW_CLOCK_NS
										   : HF_LOCK_TURN_NS;
		return watch_process(a, &previous.waiter);
	}
	/* Free, and those before us turned out to be gone: there is nothing else to wake us. */
	if (record->n_holders == 0)
		a->clock_ns = HF_MSEC;
	if (hf_queue_unclaimed(guard))
		a->clock_ns = HF_LOCK_TURN_NS;
	for (uint32_t i = 0; i < record->n_holders; i++) {
		int64_t left = hf_holder_lease_left(guard->locks, &record->holders[i]);

		a->clock_ns = smaller(a->clock_ns, left);
		if (!watch_process(a, &record->holders[i].id))
			return 0;
	}
	return 1;
}

int hf_attempt_read_channel(struct hf_attempt *a)
{
	uint64_t message;

	while (hf_sys.read(a->watch[0].fd, &message, sizeof(message)) == sizeof(message))
		if (message != 0) {
			a->token = message;
			return 1;
		}
	return 0;
}

int hf_attempt_sleep(struct hf_attempt *a)
{
	int64_t ns = a->request->wait_ns < 0 ? -1 : hf_mono_left(a->deadline);
	int ms;

	ns = smaller(ns, a->clock_ns);
	if (!a->suspected)
		ns = smaller(ns, hf_mono_left(a->suspect));
	/* Rounded up, so that the deadline has passed when we wake for it. */
	ms = ns < 0 ? -1 : ns / HF_MSEC < INT_MAX ? (int)((ns + HF_MSEC - 1) / HF_MSEC) : INT_MAX;
	(void)hf_sys.poll(a->watch, a->n_watch, ms);
	return hf_attempt_read_channel(a);
}
