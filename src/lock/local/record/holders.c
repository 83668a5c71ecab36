/* lock/local/record/holders.c - the holders of a lock: which may join, and which have lost it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/record/token.h"
#include "hf/proc/judge.h"
#include "hf/sys/io.h"

int hf_local_judge(const struct hf_local *locks, const struct hf_proc_id *id, int *ret_pidfd,
		   char evidence[HF_EVIDENCE_MAX])
{
	return hf_proc_judge_at(id, &locks->here, locks->judge_flags, ret_pidfd, evidence);
}

int hf_record_find(const struct hf_lock_record *record, uint64_t token)
{
	for (uint32_t i = 0; i < record->n_holders; i++)
		if (record->holders[i].token == token)
			return (int)i;
	return -1;
}

int hf_record_shares_token(const struct hf_lock_record *record, uint32_t index)
{
	for (uint32_t i = 0; i < record->n_holders; i++)
		if (i != index && record->holders[i].token == record->holders[index].token)
			return 1;
	return 0;
}

void hf_record_remove_token(struct hf_guard *guard, uint64_t token)
{
	int index;

	while ((index = hf_record_find(&guard->record, token)) >= 0)
		hf_record_remove(guard, (uint32_t)index);
}

void hf_record_remove(struct hf_guard *guard, uint32_t index)
{
	struct hf_lock_record *record = &guard->record;

	guard->dirty = 1;
	record->n_holders--;
	memmove(&record->holders[index], &record->holders[index + 1],
		(record->n_holders - index) * sizeof(record->holders[0]));
}

uint64_t hf_record_add(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	struct hf_lock_record *record = &guard->record;
	struct hf_lock_holder *holder = &record->holders[record->n_holders];

	guard->dirty = 1;
	record->token = hf_token_next(guard);
	*holder = (struct hf_lock_holder){
		.id = entry->owner,
		.thread = entry->owner_thread,
		.flags = entry->flags,
		.count = 1,
		.ttl_ms = entry->ttl_ms,
		.lease_end_ns = entry->ttl_ms ? hf_lease_end(guard->locks, entry->ttl_ms) : 0,
		.since_ms = hf_wall_now().ns / HF_MSEC,
		.token = record->token,
		.ticket = entry->ticket,
	};
	if (record->n_holders++ == 0)
		record->slots = entry->slots;
	return record->token;
}

int hf_record_admits(const struct hf_lock_record *record, enum hf_lock_mode mode)
{
	if (record->n_holders == 0)
		return 1;
	switch (mode) {
	case HF_LOCK_SHARED:
		/* All are shared or there is one that is not. */
		return record->slots == 0 && record->holders[0].flags & HF_HOLDER_SHARED &&
		       record->n_holders < HF_LOCK_SLOTS_MAX;
	case HF_LOCK_SLOTS:
		return record->slots > 0 && hf_record_holds(record) < record->slots &&
		       record->n_holders < HF_LOCK_SLOTS_MAX;
	case HF_LOCK_EXCLUSIVE:
	default:
		return 0;
	}
}

int64_t hf_lease_end(const struct hf_local *locks, uint32_t ttl_ms)
{
	int64_t end = hf_local_now(locks) + (int64_t)ttl_ms * HF_MSEC;

	return (end + HF_MSEC - 1) / HF_MSEC * HF_MSEC;
}

int64_t hf_holder_lease_left(const struct hf_local *locks, const struct hf_lock_holder *holder)
{
	int64_t ttl = (int64_t)holder->ttl_ms * HF_MSEC;
	int64_t left = holder->lease_end_ns - hf_local_now(locks);

	if (holder->ttl_ms == 0)
		return -1;
	/* Boot times of another boot cannot be compared; that holder is dead or unknown. */
	if (strcmp(holder->id.boot_id, locks->here.boot_id) != 0)
		return ttl;
	if (left < 0)
		return 0;
	return left < ttl ? left : ttl;
}

/* As hf_local_judge. A waiter that saw the holder's pidfd end need not open another one. */
static int judge_holder(const struct hf_guard *guard, const struct hf_proc_id *id,
			char evidence[HF_EVIDENCE_MAX])
{
	if (guard->died == 0 || id->pidfs_inode != guard->died ||
	    strcmp(id->boot_id, guard->locks->here.boot_id) != 0)
		return hf_local_judge(guard->locks, id, NULL, evidence);
	(void)snprintf(evidence, HF_EVIDENCE_MAX, "pid %d has exited", (int)id->pid);
	return HF_E_GONE;
}

int hf_record_reap(struct hf_guard *guard, int expired_too)
{
	struct hf_lock_record *record = &guard->record;
	int64_t now = hf_local_now(guard->locks);
	int removed = 0;

	for (uint32_t i = 0; i < record->n_holders;) {
		struct hf_lock_holder *holder = &record->holders[i];
		int64_t ttl = (int64_t)holder->ttl_ms * HF_MSEC;
		char evidence[HF_EVIDENCE_MAX];
		int verdict;

		/* A lease that ends later than it can have been given: from now on, then. */
		if (holder->ttl_ms > 0 && holder->lease_end_ns - now > ttl + HF_MSEC) {
			holder->lease_end_ns = hf_lease_end(guard->locks, holder->ttl_ms);
			guard->dirty = 1;
		}
		verdict = judge_holder(guard, &holder->id, evidence);
		/* Of two owners the first to go loses nothing: the other still has it. */
		if (verdict == HF_E_GONE || verdict == HF_E_RECYCLED) {
			/* Its exit was its release, as agreed: nothing was taken from anybody. */
			if (!(holder->flags & HF_HOLDER_FREE_ON_EXIT) &&
			    !hf_record_shares_token(record, i))
				hf_guard_note_loss(guard, HF_EV_LOCK_TAKEN_OVER, holder, evidence);
		} else if (expired_too && hf_holder_lease_left(guard->locks, holder) == 0) {
			/* A waiter that never noticed that it was given the lock loses nothing. */
			if (!hf_queue_take_back(guard, holder->ticket, holder->token) &&
			    !hf_record_shares_token(record, i))
				hf_guard_note_loss(guard, HF_EV_LOCK_EXPIRED, holder,
						   "the lease expired, and another process wants the lock");
		} else {
			i++;
			continue;
		}
		/* One that died before it could remove its channel. */
		hf_channel_remove(guard->dir, guard->key, holder->ticket);
		hf_record_remove(guard, i);
		removed++;
	}
	return removed;
}

enum hf_lock_mode hf_holder_mode(const struct hf_lock_record *record,
				 const struct hf_lock_holder *holder)
{
	if (record->slots > 0)
		return HF_LOCK_SLOTS;
	return holder->flags & HF_HOLDER_SHARED ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE;
}

/* All but its liveness. */
static void describe(const struct hf_local *locks, const struct hf_lock_record *record,
		     const struct hf_lock_holder *holder, struct hf_holder *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->id = holder->id;
	ret->thread = holder->thread;
	ret->token = holder->token;
	ret->since.ns = holder->since_ms * HF_MSEC;
	ret->lease_left_ns = hf_holder_lease_left(locks, holder);
	ret->mode = hf_holder_mode(record, holder);
	ret->count = holder->count;
}

void hf_holder_show_dead(const struct hf_local *locks, const struct hf_lock_record *record,
			 const struct hf_lock_holder *holder, const char *evidence,
			 struct hf_holder *ret)
{
	describe(locks, record, holder, ret);
	ret->liveness = HF_DEAD;
	hf_copy_text(ret->evidence, sizeof(ret->evidence), evidence);
}

void hf_holder_show(const struct hf_local *locks, const struct hf_lock_record *record,
		    const struct hf_lock_holder *holder, struct hf_holder *ret)
{
	int verdict;

	describe(locks, record, holder, ret);
	verdict = hf_local_judge(locks, &holder->id, NULL, ret->evidence);
	ret->liveness = hf_holder_liveness(verdict);
}
