/*
 * lock/local/acquire.c - taking a lock: now, or when it is our turn.
 *
 * Under the guard: enter if the holders admit us and no waiter that can run is before us
 * in the queue; else take a place, decide what to watch, and sleep (wait.c). The process that releases
 * gives the lock to the first waiter and sends it its token, which is all that a
 * woken waiter needs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/ops.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/lock/local/queue/wait.h"
#include "hf/proc/judge.h"
#include "hf/sys/fd/poll.h"

/*
 * Bound on leaving the queue after a timeout. If it is exceeded, the entry is skipped later, because
 * its channel has no reader.
 */
#define LEAVE_WAIT_NS (200 * HF_MSEC)

/* The holder that is the same owner as the request's, or NULL. */
static struct hf_lock_holder *own_holder(struct hf_guard *guard,
					 const struct hf_lock_request *request)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		struct hf_lock_holder *h = &guard->record.holders[i];

		if (h->thread == request->owner.thread && hf_proc_equal(&h->id, &request->owner.id))
			return h;
	}
	return NULL;
}

/* Nobody is before us: enters at once. */
static int grant(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	uint64_t token = hf_record_add(guard, &a->entry);
	int r = hf_guard_write(guard, err);

	if (r == 0)
		a->token = token;
	return r;
}

/*
 * The lock is free and we are the first in the queue: as hf_queue_admit does, but we need not tell
 * ourselves. 1 entered, 0 it is not that simple, negative on error.
 */
static int grant_first(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	int r;

	if (!a->queued || guard->record.first != a->entry.ticket || guard->record.n_holders > 0 || guard->record.ranked ||
	    a->entry.mode != HF_LOCK_EXCLUSIVE)
		return 0;
	if (a->entry.ttl_ms > 0)
		hf_queue_nudge(guard, a->entry.ticket);
	guard->record.first++;
	r = grant(guard, a, err);
	return r < 0 ? r : 1;
}

/* Enters again: counted. */
static int grant_again(struct hf_guard *guard, struct hf_lock_holder *holder, struct hf_attempt *a,
		       struct hf_err *err)
{
	int r;

	if (holder->count >= UINT16_MAX)
		return FAIL(err, -EOVERFLOW, "acquire", a->request->lock.name, "acquired too many times");
	holder->count++;
	r = hf_guard_write(guard, err);
	if (r == 0)
		a->token = holder->token;
	return r;
}

/* Was the lock given to us while we slept? */
static int was_granted(struct hf_guard *guard, struct hf_attempt *a)
{
	for (uint32_t i = 0; a->queued && i < guard->record.n_holders; i++) {
		const struct hf_lock_holder *h = &guard->record.holders[i];

		if (h->ticket == a->entry.ticket && hf_proc_equal(&h->id, &a->entry.owner)) {
			a->token = h->token;
			return 1;
		}
	}
	return 0;
}

/* Is our place still ours? Not if the record was lost, or our turn passed while stopped. */
static int has_place(struct hf_guard *guard, const struct hf_attempt *a)
{
	struct hf_lock_entry entry;

	return a->entry.ticket >= guard->record.first && a->entry.ticket < guard->record.next &&
	       hf_queue_read(guard, a->entry.ticket, &entry) == 0 &&
	       entry.state == HF_ENTRY_WAITING && hf_proc_equal(&entry.waiter, &a->entry.waiter);
}

/* Does what the owner has cover what it asks for? Shared never becomes exclusive. */
static int covers(const struct hf_guard *guard, const struct hf_lock_holder *own,
		  enum hf_lock_mode mode)
{
	if (guard->record.slots > 0)
		return mode == HF_LOCK_SLOTS;
	return mode == HF_LOCK_SHARED || (mode == HF_LOCK_EXCLUSIVE &&
					  !(own->flags & HF_HOLDER_SHARED));
}

static int check_own(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	const struct hf_lock_request *request = a->request;
	struct hf_lock_holder *own = own_holder(guard, request);
	int r;

	/* One whose lease ran out is no longer a claim, not even against ourselves. */
	if (!own || hf_holder_lease_left(guard->locks, own) == 0)
		return 0;
	if (request->flags & HF_LOCK_REENTRANT && covers(guard, own, request->mode)) {
		r = grant_again(guard, own, a, err);
		return r < 0 ? r : 1;
	}
	if (hf_record_admits(&guard->record, request->mode))
		return 0;
	return FAIL(err, HF_E_DEADLOCK, "acquire", request->lock.name, "you already hold it (token %llu)",
		    (unsigned long long)own->token);
}

/*
 * Do the holders keep us out, or the first in the queue, behind which we wait? A reader could enter beside readers,
 * but not before a writer that waits for one of them; and that writer may be stopped.
 */
static int is_kept_out(struct hf_guard *guard, const struct hf_attempt *a)
{
	struct hf_lock_entry first;

	if (!hf_record_admits(&guard->record, a->request->mode))
		return 1;
	return guard->record.n_holders > 0 && a->queued && hf_queue_first(guard, 0, &first) &&
	       !hf_record_admits(&guard->record, first.mode);
}

/* 1 entered, 0 not now, negative on error. */
static int try_enter(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err)
{
	const struct hf_lock_request *request = a->request;
	struct hf_lock_record *record = &guard->record;
	struct hf_lock_entry before;
	int r;

	if (was_granted(guard, a)) {
		hf_queue_retell(guard, a->entry.ticket);
		return 1;
	}
	r = check_own(guard, a, err);
	if (r != 0)
		return r;
	if (is_kept_out(guard, a))
		(void)hf_record_reap(guard, 1);
	if (is_kept_out(guard, a))
		(void)hf_queue_revoke(guard, hf_attempt_overdue(a));
	if (request->mode == HF_LOCK_SLOTS && record->n_holders > 0 && record->slots > 0 &&
	    record->slots != request->slots)
		return FAIL(err, HF_E_MODE, "acquire", request->lock.name, "%u, not %u", record->slots,
			    request->slots);
	if (!hf_record_admits(record, request->mode))
		return 0;
	if (!a->queued && !hf_queue_first(guard, 0, &before)) {
		r = grant(guard, a, err);
		return r < 0 ? r : 1;
	}
	r = grant_first(guard, a, err);
	if (r != 0)
		return r;
	/* Everybody in their turn; it may be ours. */
	r = hf_queue_admit(guard, err);
	return r < 0 ? r : was_granted(guard, a);
}

/* Out of the queue, and what was given to us meanwhile goes to the next. */
static void give_up(struct hf_attempt *a)
{
	AUTO_GUARD(guard);

	if (!a->queued || hf_guard_take(a->locks, &a->request->lock, 0, hf_mono_in(LEAVE_WAIT_NS),
					&guard, NULL) < 0)
		return; /* the entry is found to be dead later */
	if (was_granted(&guard, a)) {
		hf_record_remove_token(&guard, a->token);
		hf_queue_retell(&guard, a->entry.ticket);
	}
	if (has_place(&guard, a))
		hf_queue_leave(&guard, &a->entry);
	hf_channel_remove(guard.dir, guard.key, a->entry.ticket);
	(void)hf_queue_admit(&guard, NULL);
	hf_queue_nudge(&guard, a->entry.ticket); /* they watched us */
	(void)hf_guard_finish(&guard, NULL);
	a->queued = 0;
}

static void tell_blocker(struct hf_guard *guard, struct hf_attempt *a, struct hf_holder *ret,
			 char *text, size_t cap)
{
	struct hf_holder blocker;

	memset(&blocker, 0, sizeof(blocker));
	if (guard->record.n_holders > 0) {
		hf_holder_show(a->locks, &guard->record, &guard->record.holders[0], &blocker);
		hf_holder_text(&blocker, text, cap);
	} else {
		(void)snprintf(text, cap, "free, but other waiters are first");
	}
	if (ret)
		*ret = blocker;
}

/* The lock is not free in time. */
static int refuse(struct hf_guard *guard, struct hf_attempt *a, struct hf_holder *ret_blocker,
		  struct hf_err *err)
{
	char text[HF_HOLDER_TEXT_MAX];

	tell_blocker(guard, a, ret_blocker, text, sizeof(text));
	return FAIL(err, a->request->wait_ns == 0 ? HF_E_BUSY : HF_E_TIMEOUT, "acquire",
		    a->request->lock.name, "%.*s", 250, text);
}

/* Does the owner still live? */
static int check_owner(const struct hf_attempt *a, struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX];
	int verdict;

	if (hf_proc_equal(&a->entry.owner, &a->entry.waiter))
		return 0;
	verdict = hf_local_judge(a->locks, &a->entry.owner, NULL, evidence);
	return verdict == HF_E_GONE || verdict == HF_E_RECYCLED
		       ? FAIL(err, HF_E_GONE, "owner", a->request->lock.name, "%s", evidence)
		       : 0;
}

/* Time is over, or there was none. */
static int may_not_wait(const struct hf_attempt *a)
{
	return a->request->wait_ns == 0 ||
	       (a->request->wait_ns > 0 && hf_mono_left(a->deadline) == 0);
}

static void empty_channel(struct hf_attempt *a)
{
	uint64_t token = a->token;

	while (hf_attempt_read_channel(a))
		;
	a->token = token;
}

/* Under the guard, which the caller finishes. As look_once. */
static int enter_or_queue(struct hf_guard *guard, struct hf_attempt *a,
			  struct hf_holder *ret_blocker, struct hf_err *err)
{
	int r;

	if (guard->is_new)
		hf_channel_recall(a->locks, guard->dir, guard->key, NULL, 1);
	if (a->queued && !was_granted(guard, a) && !has_place(guard, a)) {
		hf_channel_remove(guard->dir, guard->key, a->entry.ticket);
		/* An older record was put back. It does not know the other waiters either. */
		if (a->entry.ticket >= guard->record.next)
			hf_channel_recall(a->locks, guard->dir, guard->key, &guard->record, 0);
		a->entry.ticket = 0;
		a->queued = 0;
	}
	r = try_enter(guard, a, err);
	/*
	 * Found by looking, our token may still be in the channel, from where a revoke
	 * would take it back although we have it: it is read before we let go of the guard.
	 * The record says which token is ours, not what an earlier one left there.
	 */
	if (r == 1 && a->queued)
		empty_channel(a);
	if (r != 0)
		return r;
	if (may_not_wait(a))
		return refuse(guard, a, ret_blocker, err);
	if (!a->queued)
		r = hf_attempt_join(guard, a, err);
	return r < 0 ? r : hf_attempt_watch(guard, a) ? 0 : 2;
}

/* One look under the guard. 1 entered, 0 sleep, 2 look again, negative: give up. */
static int look_once(struct hf_attempt *a, struct hf_holder *ret_blocker, struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r;

	guard.cancel_fd = a->request->cancel_fd;
	guard.died = a->died;
	/* A wait without a deadline is one for the guard as well. */
	r = hf_guard_take(a->locks, &a->request->lock, 1,
			  a->request->wait_ns != 0 ? a->deadline
						   : hf_mono_in(a->locks->guard_wait_ns),
			  &guard, err);
	if (r == -ETIMEDOUT) {
		if (ret_blocker)
			memset(ret_blocker, 0, sizeof(*ret_blocker));
		return FAIL(err, a->request->wait_ns != 0 ? HF_E_TIMEOUT : HF_E_BUSY, "guard",
			    a->request->lock.name, "a process is stopped while it changes the record");
	}
	if (r < 0)
		return r;
	r = enter_or_queue(&guard, a, ret_blocker, err);
	/* Of what was found on the way (the dead, an absurd lease) nothing depends on the write. */
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

static uint32_t to_ttl_ms(int64_t ns)
{
	return (uint32_t)((ns + HF_MSEC - 1) / HF_MSEC);
}

int hf_local_acquire(struct hf_store *store, const struct hf_lock_request *request,
		     uint64_t *ret_token, struct hf_holder *ret_blocker, struct hf_err *err)
{
	AUTO(hf_attempt_done) struct hf_attempt a = { .locks = hf_local_of(store), .request = request,
					      .n_watch = HF_WATCH_FIRST };
	char key[HF_NAME_KEY_MAX];
	int r;

	if (request->owner.id.start_ticks > HF_LOCK_START_MAX)
		return FAIL(err, -EINVAL, "owner", request->lock.name, "its start time is out of range");
	hf_local_close_now(a.locks);
	a.watch[HF_WATCH_CHANNEL] = (struct pollfd){ .fd = -1, .events = POLLIN };
	a.watch[HF_WATCH_CANCEL] = (struct pollfd){ .fd = request->cancel_fd > 0 ? request->cancel_fd
										  : -1,
						    .events = POLLIN };
	a.deadline = hf_mono_in(request->wait_ns < 0 ? INT64_MAX : request->wait_ns);
	a.entry = (struct hf_lock_entry){
		.mode = request->mode,
		.waiter = a.locks->self,
		.waiter_thread = (int32_t)gettid(),
		.owner = request->owner.id,
		.owner_thread = request->owner.thread,
		.flags = (request->mode == HF_LOCK_SHARED ? HF_HOLDER_SHARED : 0) |
			 (request->flags & HF_LOCK_FREE_ON_EXIT ? HF_HOLDER_FREE_ON_EXIT : 0),
		.ttl_ms = to_ttl_ms(request->ttl_ns),
		.slots = request->slots,
		.priority = request->priority,
	};
	a.tell_at = request->waiting ? hf_mono_in(request->waiting_ns) : HF_MONO_NEVER;
	while ((r = look_once(&a, ret_blocker, err)) == 0 || r == 2) {
		r = r == 0 ? hf_attempt_sleep(&a, err) : 0;
		if (r != 0)
			break;
		hf_attempt_stop_watching(&a);
		r = a.cancelled ? FAIL(err, HF_E_CANCELLED, "wait", request->lock.name, "%s", "")
				: check_owner(&a, err);
		if (r < 0)
			break;
	}
	/* It may have been given to us while we could not look. */
	if (r < 0 && !(a.queued && hf_attempt_read_channel(&a))) {
		give_up(&a);
		/* Or while we could not even leave: the process that has the guard may be about to tell us. */
		if (!a.queued || !hf_attempt_read_channel(&a))
			return r;
	}
	/*
	 * We have it; what is not needed any more can wait. Our channel is closed and removed
	 * with the release, off this path; unless there will be none.
	 */
	for (nfds_t i = 0; i < a.n_watch; i++)
		if (i != HF_WATCH_CANCEL)
			hf_local_close_late(a.locks, &a.watch[i].fd);
	if (a.queued && request->flags & HF_LOCK_FREE_ON_EXIT &&
	    hf_name_key(request->lock.name, strlen(request->lock.name), key, NULL) >= 0)
		hf_channel_remove(&a.locks->kinds[request->lock.kind], key, a.entry.ticket);
	*ret_token = a.token;
	return 0;
}
