/*
 * lock/etcd/acquire.c - taking a lock: now, or when it is our turn.
 *
 * Everything is decided on what was read at one revision, and done by a transaction that compares it.
 * What wakes a waiter only makes it read again, so no event is needed for safety, only for speed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/holder.h"
#include "hf/proc/judge.h"
#include "hf/sys/io.h"

#define SEARCH_EARLY_NS (50 * HF_MSEC)
#define SEARCH_LATE_NS  HF_SEC
#define SEARCH_MAX_NS   (600 * HF_SEC)
#define DOWN_PAUSE_NS   (300 * HF_MSEC)

static int places_before(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state)
{
	int n = 0;

	for (size_t i = 0; i < state->n_places; i++)
		n += !a->queued || state->places[i].create < a->mine.create;
	return n;
}

/* Those that hold are before all that wait, so the place before ours decides. */
static int is_turn(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state)
{
	const struct hf_place *before = &state->before;
	enum hf_lock_mode mode = a->request->mode;

	if (mode == HF_LOCK_EXCLUSIVE && !a->queued)
		return state->n_places == 0;
	if (before->create == 0)
		return 1;
	if (mode == HF_LOCK_EXCLUSIVE || !before->holds || !before->readable || before->mode != mode ||
	    before->slots != a->request->slots)
		return 0;
	return places_before(a, state) < (mode == HF_LOCK_SHARED ? HF_LOCK_SLOTS_MAX : (int)a->request->slots);
}

/* Does what the owner has cover what it asks for? Shared never becomes exclusive. */
static int covers(const struct hf_etcd_hold *own, enum hf_lock_mode mode)
{
	if (own->mode == HF_LOCK_SLOTS)
		return mode == HF_LOCK_SLOTS;
	return mode == HF_LOCK_SHARED || (mode == HF_LOCK_EXCLUSIVE && own->mode == HF_LOCK_EXCLUSIVE);
}

/* Enters again: counted. 1, 0: it changed meanwhile, or a failure. */
static int take_again(struct hf_etcd_attempt *a, const struct hf_etcd_hold *own, struct hf_err *err)
{
	struct hf_etcd_hold more = *own;
	int r;

	more.count++;
	r = hf_etcd_hold_rewrite(a->etcd, &a->keys, own, &more, err);
	if (r != 1)
		return r;
	/* When the lease began is known to the holder that took it first, perhaps another process. */
	r = hf_etcd_prove(a->etcd, &a->keys, own, &a->hold_lease, err);
	if (r < 0)
		return r == HF_E_STALE ? 0 : r;
	a->token = own->token;
	return 1;
}

static int check_own(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err)
{
	for (size_t i = 0; i < state->n_holds; i++) {
		const struct hf_etcd_hold *hold = &state->holds[i];
		int own = 0;

		for (unsigned k = 0; k < hold->n_owners; k++)
			own |= hf_etcd_owner_equal(&hold->owners[k].owner, &a->mine.owner.owner);
		if (!own || hold->create == 0)
			continue;
		if (a->request->flags & HF_LOCK_REENTRANT && covers(hold, a->request->mode)) {
			int r = take_again(a, hold, err);

			return r == 0 ? 2 : r;
		}
		if (hold->mode == a->request->mode && hold->mode != HF_LOCK_EXCLUSIVE)
			return 0;
		return FAIL(err, HF_E_DEADLOCK, "acquire", a->request->lock.name, "you already hold it (token %llu)",
			    (unsigned long long)hold->token);
	}
	return 0;
}

static int check_slots(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err)
{
	for (size_t i = 0; i < state->n_holds; i++)
		if (state->holds[i].create != 0 && a->request->mode == HF_LOCK_SLOTS &&
		    state->holds[i].mode == HF_LOCK_SLOTS && state->holds[i].slots != a->request->slots)
			return FAIL(err, HF_E_MODE, "acquire", a->request->lock.name, "%u, not %u", state->holds[i].slots,
				    a->request->slots);
	return 0;
}

static int may_not_wait(const struct hf_etcd_attempt *a)
{
	return a->request->wait_ns == 0 || (a->request->wait_ns > 0 && hf_mono_left(a->deadline) == 0);
}

static int refuse(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_holder *ret_blocker,
		  struct hf_err *err)
{
	char text[HF_HOLDER_TEXT_MAX] = "free, but other waiters are first";
	struct hf_holder blocker = { 0 };

	for (size_t i = 0; i < state->n_holds; i++)
		if (state->holds[i].create != 0) {
			hf_etcd_show(a->etcd, &state->holds[i], 0, 1, &blocker);
			hf_holder_text(&blocker, text, sizeof(text));
			break;
		}
	if (ret_blocker)
		*ret_blocker = blocker;
	return FAIL(err, a->request->wait_ns == 0 ? HF_E_BUSY : HF_E_TIMEOUT, "acquire", a->request->lock.name, "%.*s", 250,
		    text);
}

/* -- deadlock ---------------------------------------------------------------------------- */

static int search(struct hf_etcd_attempt *a, struct hf_err *err)
{
	char cycle[256];

	if (!a->queued || hf_mono_left(a->next_search) > 0)
		return 0;
	if (hf_etcd_deadlock(a->etcd, &a->mine, cycle, sizeof(cycle))) {
		hf_lock_event(a->etcd->journal, HF_EV_LOCK_DEADLOCK, &a->request->lock,
			      (struct hf_field[]){ HF_FIELD_TEXT("cycle", cycle) }, 1);
		return FAIL(err, HF_E_DEADLOCK, "acquire", a->request->lock.name, "%s", cycle);
	}
	a->next_search = hf_mono_in(a->search_pause_ns);
	/* It reads every holder of the fleet. A wait that closes a circle finds it early; later ones are rare. */
	a->search_pause_ns = a->search_pause_ns < SEARCH_MAX_NS / 4 ? a->search_pause_ns * 4 : SEARCH_MAX_NS;
	return 0;
}

/* -- the way ------------------------------------------------------------------------------ */

/* Our place is gone: stopped for too long, or removed. It begins again at the end of the queue. */
static void lose_place(struct hf_etcd_attempt *a)
{
	a->queued = 0;
	a->place_lease.id = 0;
	a->mine.id[0] = '\0';
	a->mine.create = 0;
}

static int check_owner(const struct hf_etcd_attempt *a, struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX];
	int verdict;

	if (hf_proc_equal(&a->mine.owner.owner.id, &a->etcd->self))
		return 0;
	verdict = hf_etcd_judge(a->etcd, &a->mine.owner.owner, NULL, evidence);
	return verdict == HF_E_GONE || verdict == HF_E_RECYCLED
		       ? FAIL(err, HF_E_GONE, "owner", a->request->lock.name, "%s", evidence)
		       : 0;
}

static int64_t waiter_ttl(const struct hf_etcd_attempt *a)
{
	return a->request->ttl_ns < HF_ETCD_WAITER_NS ? a->request->ttl_ns : HF_ETCD_WAITER_NS;
}

/* One look at what was read. 1: the lock is ours; 0: read again; 2: sleep; or a failure. */
static int decide(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_holder *ret_blocker,
		  struct hf_err *err)
{
	int r, turn;

	if (a->queued && state->mine.create != a->mine.create) {
		lose_place(a);
		return 0;
	}
	/* A grant that was not answered had been done. */
	if (a->queued && state->mine.holds && state->mine.readable && a->hold_lease.id == state->mine.lease) {
		a->token = state->mine.token;
		return 1;
	}
	r = check_own(a, state, err);
	if (r != 0)
		return r == 2 ? 0 : r;
	turn = is_turn(a, state);
	if (!turn && hf_attempt_reap(a, state) > 0)
		return 0;
	r = check_slots(a, state, err);
	if (r < 0)
		return r;
	/* Beside holders, or behind one that came in between, there is an order to keep. */
	if (turn && (a->queued || state->n_places == 0))
		return hf_attempt_grant(a, state, err);
	if (turn || (!a->queued && !may_not_wait(a))) {
		r = hf_attempt_enqueue(a, turn ? a->request->ttl_ns : waiter_ttl(a), err);
		return r < 0 ? r : 0;
	}
	if (may_not_wait(a))
		return refuse(a, state, ret_blocker, err);
	r = search(a, err);
	return r < 0 ? r : 2;
}

/* One round. As decide. */
static int step(struct hf_etcd_attempt *a, struct hf_holder *ret_blocker, struct hf_err *err)
{
	AUTO(hf_etcd_state_free) struct hf_etcd_state state = { 0 };
	int64_t limit = a->request->mode == HF_LOCK_EXCLUSIVE ? HF_ETCD_FEW : HF_ETCD_HOLDS_MAX;
	int r = 0;

	if (a->direct)
		r = hf_attempt_take(a, err);
	a->direct = 0;
	if (r == 0)
		r = hf_etcd_state_read(a->etcd, &a->keys, a->queued ? &a->mine : NULL, limit, &state, err);
	if (r == 0)
		r = decide(a, &state, ret_blocker, err);
	if (r == 2)
		r = hf_attempt_wait(a, &state, err);
	/* The store may be away for a while; a waiter that has its place waits on. */
	if (r == HF_E_STORE && a->queued && !may_not_wait(a)) {
		hf_pause(DOWN_PAUSE_NS);
		r = check_owner(a, err);
	}
	return r;
}

int hf_etcd_acquire(struct hf_store *store, const struct hf_lock_request *request, uint64_t *ret_token,
		    struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	struct hf_etcd_attempt a = { .etcd = etcd, .request = request };
	struct hf_owner waiter = { .id = etcd->self, .thread = (int32_t)gettid() };
	int r = hf_etcd_keys_of(etcd, &request->lock, &a.keys, err);

	if (r < 0)
		return r;
	a.deadline = hf_mono_in(request->wait_ns < 0 ? INT64_MAX : request->wait_ns);
	a.search_pause_ns = etcd->n_taken > 0 ? SEARCH_EARLY_NS : SEARCH_LATE_NS;
	a.next_search = hf_mono_in(a.search_pause_ns);
	a.mine = (struct hf_place){ .mode = request->mode, .slots = request->slots,
				    .owner = hf_etcd_owner_here(etcd, &request->owner),
				    .waiter = hf_etcd_owner_here(etcd, &waiter) };
	/* Of one that enters again it is not free. */
	a.direct = !(request->flags & HF_LOCK_REENTRANT);
	if (ret_blocker)
		*ret_blocker = (struct hf_holder){ 0 };
	while ((r = step(&a, ret_blocker, err)) == 0)
		continue;
	if (r < 0) {
		hf_attempt_leave(&a);
		return r;
	}
	etcd->n_taken++;
	*ret_token = a.token;
	if (request->ret_since)
		*request->ret_since = a.hold_lease.since;
	return 0;
}
