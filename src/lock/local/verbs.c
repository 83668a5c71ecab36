/* lock/local/verbs.c - releasing, renewing, checking and breaking: what owners and tokens may do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/ops.h"
#include "hf/proc/judge.h"

static int fail_to_take(const char *name, int r, struct hf_err *err)
{
	return r == -ENOENT ? FAIL(err, HF_E_NOT_HELD, "lock", name, "it has no holder") : r;
}

/* Takes the guard; a lock that never existed is not held. */
static int take(struct hf_store *store, const struct hf_lock_ref *lock, struct hf_guard *ret,
		struct hf_err *err)
{
	struct hf_local *locks = hf_local_of(store);
	int r = hf_guard_take(locks, lock, 0, hf_mono_in(locks->guard_wait_ns), ret, err);

	return r < 0 ? fail_to_take(lock->name, r, err) : r;
}

/* Refuses, names the holder, and leaves one event (L3, L8). Nothing is changed. */
static int refuse(struct hf_guard *guard, int code, const char *action, const char *why,
		  struct hf_err *err)
{
	struct hf_local *locks = guard->locks;
	const struct hf_lock_ref lock = guard->lock;
	char holder[HF_HOLDER_TEXT_MAX] = "nobody";
	struct hf_holder shown;

	/* The dead do not count: the next one to ask would have it. */
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		hf_holder_show(locks, &guard->record, &guard->record.holders[i], &shown);
		if (shown.liveness == HF_DEAD)
			continue;
		hf_holder_text(&shown, holder, sizeof(holder));
		break;
	}
	(void)hf_guard_finish(guard, NULL);
	hf_lock_event(locks->journal, HF_EV_LOCK_REFUSED, &lock,
		      (struct hf_field[]){ HF_FIELD_TEXT("action", action), HF_FIELD_TEXT("reason", why),
					   HF_FIELD_TEXT("holder", holder) },
		      3);
	return FAIL(err, code, action, lock.name, "%s; it is held by %.180s", why, holder);
}

/* Index of the holder that `token` (or else `owner`) means; refuses otherwise. */
static int find_holder(struct hf_guard *guard, const char *action, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err)
{
	struct hf_lock_record *record = &guard->record;
	char evidence[HF_EVIDENCE_MAX];
	int index;

	if (token != 0) {
		index = hf_record_find(record, token);
		return index >= 0 ? index
				  : refuse(guard, HF_E_STALE, action, "that token is not current", err);
	}
	for (uint32_t i = 0; i < record->n_holders; i++)
		if (hf_proc_equal(&record->holders[i].id, owner))
			return (int)i;
	/* What only the dead hold is not held: the next one to ask would get it. */
	for (uint32_t i = 0; i < record->n_holders; i++) {
		int verdict = hf_local_judge(guard->locks, &record->holders[i].id, NULL, evidence);

		if (verdict == 0 || verdict == HF_E_UNKNOWN)
			return refuse(guard, HF_E_NOT_OWNER, action, "you are not its owner", err);
	}
	return FAIL(err, HF_E_NOT_HELD, action, guard->name, "it has no holder");
}

/* Releases the hold of index `index`. The caller finishes the guard. */
static int release(struct hf_guard *guard, uint32_t index, struct hf_err *err)
{
	struct hf_lock_holder *holder = &guard->record.holders[index];
	uint64_t ticket = holder->ticket;
	int r;

	if (!hf_proc_equal(&holder->id, &guard->locks->self)) {
		/*
		 * The first waiter watches the holder. If we are another process and die between
		 * the record and the message, only this makes it look.
		 */
		hf_queue_nudge(guard, 0);
		/* And a holder that waited and has not noticed must not believe later that it has it. */
		(void)hf_queue_take_back(guard, ticket, holder->token);
	}
	if (--holder->count == 0)
		hf_record_remove_token(guard, holder->token);
	else
		ticket = 0;
	r = hf_queue_admit(guard, err);
	if (r == 0)
		hf_channel_remove(guard->dir, guard->key, ticket);
	return r;
}

int hf_local_release(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		     const struct hf_proc_id *owner, struct hf_err *err)
{
	struct hf_local *locks = hf_local_of(store);
	AUTO_GUARD(guard);
	int r, index;

	r = hf_guard_take_held(locks, lock, token, &guard, err);
	if (r < 0)
		r = fail_to_take(lock->name, r, err);
	if (r == HF_E_NOT_HELD && token != 0) {
		struct hf_kind_dir *dir;
		char key[HF_NAME_KEY_MAX];

		/* The waiters behind us would sleep on. */
		if (hf_name_key(lock->name, strlen(lock->name), key, NULL) >= 0 &&
		    hf_local_dir(locks, lock->kind, 0, &dir, NULL) == 0)
			hf_channel_recall(locks, dir, key, NULL, 0);
		return FAIL(err, HF_E_STALE, "release", lock->name, "its file is gone");
	}
	if (r < 0)
		return r;
	index = find_holder(&guard, "release", token, owner, err);
	/* As above: a record without a holder, and that knows of no waiter. */
	if (index < 0 && guard.record.n_holders == 0)
		hf_channel_recall(locks, guard.dir, guard.key, &guard.record, 0);
	r = index < 0 ? index : release(&guard, (uint32_t)index, err);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

/* Sets the end of the lease of `token`. The caller finishes the guard. */
static int renew(struct hf_guard *guard, uint64_t token, int64_t ttl_ns, struct hf_err *err)
{
	int64_t before, end;
	uint32_t ttl_ms;
	int r, index = find_holder(guard, "renew", token, NULL, err);

	if (index < 0)
		return index;
	ttl_ms = guard->record.holders[index].ttl_ms;
	before = ttl_ms ? guard->record.holders[index].lease_end_ns : INT64_MAX;
	if (ttl_ns > 0)
		ttl_ms = (uint32_t)((ttl_ns + HF_MSEC - 1) / HF_MSEC);
	if (ttl_ms == 0)
		return FAIL(err, -EINVAL, "renew", guard->name, "it has no lease; give a length");
	end = hf_lease_end(guard->locks, ttl_ms);
	for (uint32_t i = 0; i < guard->record.n_holders; i++)
		if (guard->record.holders[i].token == token) {
			guard->record.holders[i].ttl_ms = ttl_ms;
			guard->record.holders[i].lease_end_ns = end;
		}
	r = hf_guard_write(guard, err);
	/* A waiter that sleeps until the old end must learn of an earlier one. */
	if (r == 0 && end < before)
		hf_queue_nudge(guard, 0);
	return r;
}

int hf_local_renew(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		   int64_t ttl_ns, struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = take(store, lock, &guard, err);

	if (r == HF_E_NOT_HELD)
		return FAIL(err, HF_E_STALE, "renew", lock->name, "its file is gone");
	if (r < 0)
		return r;
	r = renew(&guard, token, ttl_ns, err);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

int hf_local_raise(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, uint64_t to, struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = take(store, lock, &guard, err);

	if (r == 0)
		r = find_holder(&guard, "raise", token, NULL, err);
	if (r < 0)
		return r == HF_E_NOT_HELD ? FAIL(err, HF_E_STALE, "raise", lock->name, "its file is gone") : r;
	/* Not past the last that was given (L2). */
	if (to <= guard.record.token)
		return FAIL(err, -EINVAL, "raise", lock->name, "the token would not be higher");
	for (uint32_t i = 0; i < guard.record.n_holders; i++)
		if (guard.record.holders[i].token == token)
			guard.record.holders[i].token = to;
	guard.record.token = to;
	r = hf_guard_write(&guard, err);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

/* Adds `owner` to the hold of `token`. The caller finishes the guard. */
static int add_owner(struct hf_guard *guard, uint64_t token, const struct hf_owner *owner,
		     struct hf_err *err)
{
	struct hf_lock_record *record = &guard->record;
	struct hf_lock_holder *first;
	uint32_t free_slots;
	int r, index = find_holder(guard, "add owner", token, NULL, err);

	if (index < 0)
		return index;
	if (owner->id.start_ticks > HF_LOCK_START_MAX)
		return FAIL(err, -EINVAL, "add owner", guard->name, "its start time is out of range");
	first = &record->holders[index];
	if (first->flags & HF_HOLDER_SHARED || hf_record_shares_token(record, (uint32_t)index))
		return FAIL(err, -EINVAL, "add owner", guard->name,
			    "only an exclusive lock or a slot with one owner accepts a second owner");
	/* Each holder that may still come needs its place in the record, too. */
	free_slots = record->slots > 0 ? record->slots - hf_record_holds(record) : 0;
	if (record->n_holders + free_slots >= HF_LOCK_SLOTS_MAX)
		return FAIL(err, -ENOSPC, "add owner", guard->name,
			    "no room for a second owner with that many slots");
	memmove(first + 2, first + 1, (record->n_holders - (uint32_t)index - 1) * sizeof(*first));
	first->flags &= ~(unsigned)HF_HOLDER_JOINT;
	first[1] = first[0];
	first[1].flags |= HF_HOLDER_JOINT;
	first[1].id = owner->id;
	first[1].thread = 0; /* the process as a whole, whichever thread asked */
	first[1].ticket = 0;
	record->n_holders++;
	r = hf_guard_write(guard, err);
	/* A waiter watches the owners it knows of. */
	if (r == 0)
		hf_queue_nudge(guard, 0);
	return r;
}

int hf_local_add_owner(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		       const struct hf_owner *owner, struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = take(store, lock, &guard, err);

	if (r == HF_E_NOT_HELD)
		return FAIL(err, HF_E_STALE, "add owner", lock->name, "its file is gone");
	if (r < 0)
		return r;
	r = add_owner(&guard, token, owner, err);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

/* Returns 0 and its mode when the token is current. */
static int prove(struct hf_guard *guard, const char *action, uint64_t token,
		 enum hf_lock_mode *ret_mode, struct hf_err *err)
{
	int index = hf_record_find(&guard->record, token);

	if (index < 0)
		return refuse(guard, HF_E_STALE, action, "that token is not current", err);
	if (ret_mode)
		*ret_mode = hf_holder_mode(&guard->record, &guard->record.holders[index]);
	return 0;
}

int hf_local_check(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		   enum hf_lock_mode *ret_mode, struct hf_err *err)
{
	AUTO_GUARD(guard);
	char evidence[HF_EVIDENCE_MAX];
	int r = take(store, lock, &guard, err);

	if (r == HF_E_NOT_HELD && token != 0)
		return FAIL(err, HF_E_STALE, "check", lock->name, "its file is gone");
	if (r < 0)
		return r;
	if (token != 0)
		return prove(&guard, "check", token, ret_mode, err);
	for (uint32_t i = 0; i < guard.record.n_holders; i++) {
		int verdict =
			hf_local_judge(guard.locks, &guard.record.holders[i].id, NULL, evidence);

		if (verdict == 0 || verdict == HF_E_UNKNOWN)
			return 0;
	}
	return FAIL(err, HF_E_NOT_HELD, "check", lock->name, "it has no holder");
}

/* A lock that is kept as it is: its guard. */
struct local_hold {
	struct hf_hold base;
	struct hf_guard guard;
};

int hf_local_hold(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		  struct hf_hold **ret_hold, struct hf_err *err)
{
	struct local_hold *hold = malloc(sizeof(*hold));
	int r;

	if (!hold)
		return hf_fail_sys(err, ENOMEM, "memory", lock->name);
	hold->base.store = store;
	hf_guard_init(&hold->guard);
	r = take(store, lock, &hold->guard, err);
	if (r == HF_E_NOT_HELD)
		r = FAIL(err, HF_E_STALE, "guarded action", lock->name, "its file is gone");
	if (r == 0)
		r = prove(&hold->guard, "guarded action", token, &hold->base.mode, err);
	if (r < 0) {
		hf_local_let_go(&hold->base);
		return r;
	}
	*ret_hold = &hold->base;
	return 0;
}

void hf_local_let_go(struct hf_hold *hold)
{
	struct local_hold *own = (struct local_hold *)hold; /* its first member */

	hf_guard_drop(&own->guard);
	free(own);
}

/* Removes all holders. The caller finishes the guard. Returns how many lost it. */
static int take_away(struct hf_guard *guard, const char *reason, struct hf_err *err)
{
	int r, count = 0;

	if (guard->record.n_holders == 0)
		return FAIL(err, HF_E_NOT_HELD, "break", guard->name, "it has no holder");
	/* As in a release by another process; before a token may be taken back. */
	hf_queue_nudge(guard, 0);
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		const struct hf_lock_holder *holder = &guard->record.holders[i];

		/* One hold of two owners is lost once. */
		if (!(holder->flags & HF_HOLDER_JOINT) ||
		    !hf_record_shares_token(&guard->record, i)) {
			hf_guard_note_loss(guard, HF_EV_LOCK_BROKEN, holder, reason);
			count++;
		}
		/* One that waited and has not noticed must not believe later that it has it. */
		(void)hf_queue_take_back(guard, holder->ticket, holder->token);
	}
	while (guard->record.n_holders > 0) {
		hf_channel_remove(guard->dir, guard->key, guard->record.holders[0].ticket);
		hf_record_remove(guard, 0);
	}
	r = hf_queue_admit(guard, err);
	return r < 0 ? r : count;
}

int hf_local_take_away(struct hf_store *store, const struct hf_lock_ref *lock, const char *reason,
		       struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = take(store, lock, &guard, err);

	if (r < 0)
		return r;
	r = take_away(&guard, reason, err);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}
