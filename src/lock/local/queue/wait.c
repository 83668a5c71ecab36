/*
 * lock/local/queue/wait.c - a waiter: its place in the queue, and what it sleeps on.
 *
 * What is watched makes a lost wake-up impossible even when processes die at any point:
 *
 *   - our own channel: a token, or "look again";
 *   - first in the queue: the holders' pidfds, and the earliest end of a lease;
 *   - behind another waiter: the pidfd of that one. When it gets the lock it is the holder that
 *     we then have to watch, so nothing needs to be told; where more than its death
 *     matters (several holders, leases) we are told to look;
 *   - the owner, if that is another process: nobody would release what it is given.
 *
 * That is enough as long as the waiters run. One that is stopped neither takes its turn nor dies, and
 * that it was stopped is no event: only a clock can find it. So a waiter that is not the first peeks
 * at the record (peek.c) every HF_LOCK_TURN_NS: a few system calls, no guard, no other process woken.
 * Nearly always a living process has the lock, and the waiter sleeps on. If not, it looks: lets a
 * dead holder's lock go to the first waiter, and revokes it there if it is not noticed within
 * HF_LOCK_TURN_NS, passing over all that are stopped (grant.c). Which of the running waiters does so
 * does not matter. So the wait for stopped processes ends after twice HF_LOCK_TURN_NS, however many they are.
 *
 * The first waiter needs no such clock. It has a slow one for a message that could not be sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/deadlock/deadlock.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/peek.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/lock/local/queue/wait.h"
#include "hf/proc/judge.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/fd/poll.h"

/* For a process that cannot be watched: of another namespace, or we have no descriptors left. */
#define UNKNOWN_CLOCK_NS (5 * HF_SEC)

void hf_attempt_stop_watching(struct hf_attempt *a)
{
	for (nfds_t i = HF_WATCH_FIRST; i < a->n_watch; i++)
		hf_local_close_late(a->locks, &a->watch[i].fd);
	a->n_watch = HF_WATCH_FIRST;
}

/* The earlier of two spans of time; a negative one is never. */
static int64_t sooner(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

/* Adds a process to what we sleep on. Returns 0 when it has ended meanwhile. */
static int watch_process(struct hf_attempt *a, const struct hf_proc_id *id)
{
	char evidence[HF_EVIDENCE_MAX];
	int fd = -1;
	int verdict = hf_local_judge(a->locks, id, &fd, evidence);

	if (verdict == 0) {
		a->inodes[a->n_watch] = id->pidfs_inode;
		a->watch[a->n_watch++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	} else if (verdict == HF_E_UNKNOWN) {
		a->clock_ns = sooner(a->clock_ns, UNKNOWN_CLOCK_NS);
	}
	return verdict != HF_E_GONE && verdict != HF_E_RECYCLED;
}

void hf_attempt_note_unread(struct hf_attempt *a, uint64_t token, int64_t ns)
{
	if (token == a->unread)
		return;
	a->unread = token;
	a->unread_until = hf_mono_in(ns);
}

/* The clock of the first waiter: leases, and a token that is on its way to a stopped process. */
static void set_clock(struct hf_guard *guard, struct hf_attempt *a)
{
	const struct hf_lock_record *record = &guard->record;
	uint64_t token = 0;
	int64_t left = hf_queue_unclaimed(guard, &token);

	if (left >= 0)
		hf_attempt_note_unread(a, token, left);
	/* One that was tried to be revoked when its time was over has been claimed. */
	if (left >= 0 && hf_mono_left(a->unread_until) > 0)
		a->clock_ns = sooner(a->clock_ns, hf_mono_left(a->unread_until));
	/* Free, and those before us turned out to be gone: there is nothing else to wake us. */
	if (record->n_holders == 0)
		a->clock_ns = HF_MSEC;
	for (uint32_t i = 0; i < record->n_holders; i++)
		a->clock_ns = sooner(a->clock_ns,
				      hf_holder_lease_left(guard->locks, &record->holders[i]));
}

uint64_t hf_attempt_overdue(const struct hf_attempt *a)
{
	return a->unread != 0 && hf_mono_left(a->unread_until) == 0 ? a->unread : 0;
}

static int decide(struct hf_guard *guard, struct hf_attempt *a)
{
	const struct hf_lock_record *record = &guard->record;
	struct hf_lock_entry previous;

	a->clock_ns = a->locks->lost_clock_ns;
	a->peeks = 0;
	if (!hf_proc_equal(&a->entry.owner, &a->entry.waiter) && !watch_process(a, &a->entry.owner))
		return 0;
	if (hf_queue_previous(guard, a->entry.ticket, &previous)) {
		a->clock_ns = HF_LOCK_TURN_NS;
		a->peeks = 1;
		return watch_process(a, &previous.waiter);
	}
	set_clock(guard, a);
	for (uint32_t i = 0; i < record->n_holders; i++)
		if (!watch_process(a, &record->holders[i].id))
			return 0;
	return 1;
}

int hf_attempt_watch(struct hf_guard *guard, struct hf_attempt *a)
{
	int r;

	/* There may be no descriptors left but those. */
	hf_local_close_now(a->locks);
	r = decide(guard, a);
	a->look_at = hf_mono_in(a->clock_ns);
	return r;
}

int hf_attempt_read_channel(struct hf_attempt *a)
{
	uint64_t message;

	while (hf_sys.read(a->watch[HF_WATCH_CHANNEL].fd, &message, sizeof(message)) ==
	       sizeof(message))
		if (message != HF_LOOK_AGAIN && message != HF_LOOK_AGAIN_MARK) {
			a->token = message;
			return 1;
		}
	return 0;
}

/* The inode of a process among the watched that has ended, or 0. */
static uint64_t find_dead(const struct hf_attempt *a)
{
	for (nfds_t i = HF_WATCH_FIRST; i < a->n_watch; i++)
		if (a->watch[i].revents & POLLIN)
			return a->inodes[i];
	return 0;
}

/* The caller's descriptor is readable: does that end the wait? */
static int goes_on(const struct hf_lock_request *request)
{
	return request->go_on && request->go_on(request->go_on_arg);
}

/* Tells the caller where it stands, when it is time to. */
static void tell_waiting(struct hf_attempt *a)
{
	struct hf_lock_waiting waiting;

	if (!a->request->waiting || hf_mono_left(a->tell_at) > 0)
		return;
	hf_peek_waiting(a, &waiting);
	a->request->waiting(a->request->waiting_arg, &waiting);
	a->tell_at = hf_mono_in(a->request->waiting_ns);
}

/* Is it time for anything that this waiter does by the clock? */
static int is_time(const struct hf_attempt *a)
{
	return hf_mono_left(a->look_at) == 0 || hf_mono_left(a->suspect) == 0 ||
	       (a->request->wait_ns >= 0 && hf_mono_left(a->deadline) == 0);
}

/* One poll. 1 when it gave a reason to look; *ret_n: what poll returned. */
static int sleep_once(struct hf_attempt *a, int *ret_n)
{
	struct hf_mono until = a->request->wait_ns < 0 ? HF_MONO_NEVER : a->deadline;
	int64_t pause;
	int n;

	until = hf_mono_earlier(hf_mono_earlier(until, a->look_at), hf_mono_earlier(a->suspect, a->tell_at));
	a->watch[HF_WATCH_CANCEL].revents = 0;
	n = hf_poll_until(a->watch, a->n_watch, until);
	*ret_n = n;
	a->died = n > 0 ? find_dead(a) : 0;
	a->cancelled = n > 0 && a->watch[HF_WATCH_CANCEL].revents != 0 && !goes_on(a->request);
	tell_waiting(a);
	if (n == 0 && !is_time(a))
		return 0;
	if (n == 0 && a->peeks && hf_mono_left(a->look_at) == 0 && !hf_peek(a, &pause)) {
		a->look_at = hf_mono_in(pause);
		return hf_mono_left(a->suspect) == 0 ||
		       (a->request->wait_ns >= 0 && hf_mono_left(a->deadline) == 0);
	}
	/* A signal is the caller's business: it has the cancel descriptor for that. */
	return n != -EINTR;
}

enum woken {
	WOKEN_LOOK,    /* something watched happened, or it is time */
	WOKEN_GRANTED, /* we were given the lock */
	WOKEN_SUSPECT, /* nothing happened: is it a deadlock? If not, sleep on */
};

static enum woken sleep_until_woken(struct hf_attempt *a)
{
	int n;

	while (!sleep_once(a, &n))
		;
	if ((n <= 0 || a->watch[HF_WATCH_CHANNEL].revents != 0) && hf_attempt_read_channel(a))
		return WOKEN_GRANTED;
	/* Where it is time for something else as well, that comes first. */
	return n == 0 && hf_mono_left(a->suspect) == 0 && hf_mono_left(a->look_at) > 0 &&
			       (a->request->wait_ns < 0 || hf_mono_left(a->deadline) > 0)
		       ? WOKEN_SUSPECT
		       : WOKEN_LOOK;
}

static int check_deadlock(struct hf_attempt *a, struct hf_err *err)
{
	char cycle[2 * HF_EVIDENCE_MAX];

	a->suspect_pause_ns *= HF_DEADLOCK_GROWS;
	if (a->suspect_pause_ns > HF_DEADLOCK_PAUSE_MAX_NS)
		a->suspect_pause_ns = HF_DEADLOCK_PAUSE_MAX_NS;
	a->suspect = hf_mono_in(a->suspect_pause_ns);
	if (!hf_deadlock_check(a->locks, &a->request->lock, &a->entry, cycle, sizeof(cycle)))
		return 0;
	hf_lock_event(a->locks->journal, HF_EV_LOCK_DEADLOCK, &a->request->lock,
		      (struct hf_field[]){ HF_FIELD_TEXT("cycle", cycle) }, 1);
	return FAIL(err, HF_E_DEADLOCK, "wait", a->request->lock.name, "%s", cycle);
}

int hf_attempt_sleep(struct hf_attempt *a, struct hf_err *err)
{
	enum woken woken;
	int r = 0;

	while (r == 0 && (woken = sleep_until_woken(a)) == WOKEN_SUSPECT)
		r = check_deadlock(a, err);
	return r < 0 ? r : woken == WOKEN_GRANTED;
}

/* -- its place ---------------------------------------------------------------------- */

/* Tickets that turn out to be in use, before we give up. */
#define MAX_TICKETS 16

/* Takes a place and makes its channel. -EEXIST: another waiter has that ticket. */
static int take_place(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	int r = hf_queue_join(guard, &a->entry, err);

	if (r == 0)
		r = hf_guard_write(guard, err);
	if (r < 0)
		return r;
	r = hf_channel_make(guard, a->entry.ticket, &a->watch[HF_WATCH_CHANNEL].fd, err);
	if (r == -EEXIST)
		hf_queue_skip(guard, &a->entry);
	else if (r < 0)
		hf_queue_leave(guard, &a->entry);
	return r;
}

int hf_attempt_join(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	int r = -EEXIST;

	hf_noinherit_close(&a->watch[HF_WATCH_CHANNEL].fd);
	a->entry.since_ns = hf_local_now(a->locks);
	/* Nobody waits, so what channels there are were left by processes that were killed. */
	if (guard->record.first == guard->record.next)
		hf_channel_recall(a->locks, guard->dir, guard->key, &guard->record, 1);
	for (int i = 0; i < MAX_TICKETS && r == -EEXIST; i++) {
		r = take_place(guard, a, err);
		/* An older record was put back, and knows nothing of the waiters. */
		if (r == -EEXIST)
			hf_channel_recall(a->locks, guard->dir, guard->key, &guard->record, 0);
	}
	if (r == -EEXIST)
		return hf_fail_sys(err, EEXIST, "mkfifo", guard->name);
	if (r < 0)
		return r;
	a->queued = 1;
	a->suspect_pause_ns = hf_deadlock_first_ns;
	a->suspect = hf_mono_in(a->suspect_pause_ns);
	return 0;
}

void hf_attempt_done(struct hf_attempt *a)
{
	for (nfds_t i = 0; i < a->n_watch; i++)
		if (i != HF_WATCH_CANCEL)
			hf_noinherit_close(&a->watch[i].fd);
}
