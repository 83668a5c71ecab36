/*
 * lock/local/deadlock.c - would this wait ever end?
 *
 * A waiter waits for holders, a holder may itself be a waiter elsewhere, and so on. If
 * that leads back to the owner for whom we wait, nobody in the circle moves again.
 * The search reads the records of the locks one by one, without a guard over all of
 * them: a circle that is real does not change any more, so it is seen whole; what is
 * in motion is no circle. Before it is believed, each step is read once more.
 *
 * Of all in the circle the one that began to wait last is told; it closed it. So
 * exactly one gives up, and waits that began after ours are not followed: a circle
 * through one of them is that one's to find, and must not hide another that is ours. A thread is
 * a party of its own; a lock owned by a process as a whole (thread 0) belongs to all
 * its threads.
 *
 * Each party is followed once: with many holders of many locks the ways multiply.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/lock/local/deadlock.h"
#include "hf/lock/local/guard.h"
#include "hf/lock/local/holders.h"
#include "hf/lock/local/inspect.h"
#include "hf/lock/local/ops.h"
#include "hf/lock/local/queue.h"

#define MAX_DEPTH 16

/* Who waits for what, as found in the queues. */
struct wait_edge {
	char name[HF_NAME_MAX + 1];
	struct hf_proc_id owner;
	int32_t thread;
	int64_t since_ns;
};

struct party {
	struct hf_proc_id id;
	int32_t thread;
	int stuck; /* as far as it is known */
};

struct search {
	struct hf_local *locks;
	const struct hf_lock_entry *us;
	struct wait_edge path[MAX_DEPTH];
	int depth;
	struct party *seen; /* to be freed */
	size_t n_seen;
};

static int same_party(const struct hf_proc_id *a, int32_t a_thread, const struct hf_proc_id *b,
		      int32_t b_thread)
{
	return hf_proc_same(a, b) && (a_thread == b_thread || a_thread == 0 || b_thread == 0);
}

/* The place of that party among those seen, added if it is new; -1 no memory. */
static ssize_t find_party(struct search *search, const struct hf_lock_holder *holder)
{
	struct party *grown;

	for (size_t i = 0; i < search->n_seen; i++)
		if (search->seen[i].thread == holder->thread &&
		    hf_proc_same(&search->seen[i].id, &holder->id))
			return (ssize_t)i;
	grown = realloc(search->seen, (search->n_seen + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	search->seen = grown;
	grown[search->n_seen] = (struct party){ holder->id, holder->thread, 0 };
	return (ssize_t)search->n_seen++;
}

/* Reads holders and queue of a lock under its guard, into a copy. */
static int read_lock(struct hf_local *locks, const char *name, struct hf_guard *ret)
{
	return hf_guard_take(locks, name, 0, hf_mono_in(100 * HF_MSEC), ret, NULL);
}

struct find_wait {
	struct search *search;
	const struct hf_lock_holder *holder;
	struct wait_edge found;
};

/* 1 when the holder waits in the queue of that lock. */
static int look_for_wait(void *arg, const char *name)
{
	struct find_wait *find = arg;
	AUTO_FREE struct hf_lock_entry *entries = NULL;
	size_t n;
	AUTO_GUARD(guard);

	if (read_lock(find->search->locks, name, &guard) < 0 ||
	    hf_queue_snapshot(&guard, &entries, &n) < 0)
		return 0;
	hf_guard_drop(&guard);
	for (size_t i = 0; i < n; i++) {
		if (!same_party(&entries[i].owner, entries[i].owner_thread, &find->holder->id,
				find->holder->thread) ||
		    entries[i].since_ns > find->search->us->since_ns)
			continue;
		(void)snprintf(find->found.name, sizeof(find->found.name), "%s", name);
		find->found.owner = entries[i].owner;
		find->found.thread = entries[i].owner_thread;
		find->found.since_ns = entries[i].since_ns;
		return 1;
	}
	return 0;
}

static int leads_back(struct search *search, const char *name);

/* Does this holder wait for something that leads back to us? */
static int holder_is_stuck(struct search *search, const struct hf_lock_holder *holder)
{
	struct find_wait find = { .search = search, .holder = holder };
	size_t known;
	ssize_t party;

	if (same_party(&holder->id, holder->thread, &search->us->owner, search->us->owner_thread))
		return 1;
	if (search->depth == MAX_DEPTH)
		return 0;
	known = search->n_seen;
	party = find_party(search, holder);
	if (party < 0 || search->n_seen == known)
		return party >= 0 && search->seen[party].stuck;
	if (hf_local_each(search->locks, look_for_wait, &find, NULL) != 1)
		return 0;
	search->path[search->depth++] = find.found;
	if (!leads_back(search, find.found.name)) {
		search->depth--;
		return 0;
	}
	search->seen[party].stuck = 1;
	return 1;
}

/* Slots: all holders must be stuck. Else one that never lets go is enough. */
static int leads_back(struct search *search, const char *name)
{
	AUTO_GUARD(guard);
	struct hf_lock_record record;
	uint32_t stuck = 0;

	if (read_lock(search->locks, name, &guard) < 0)
		return 0;
	record = guard.record;
	hf_guard_drop(&guard);
	/* Meanwhile it was given to us, and the message is on its way. */
	for (uint32_t i = 0; i < record.n_holders && search->depth == 0; i++)
		if (record.holders[i].ticket != 0 && record.holders[i].ticket == search->us->ticket &&
		    hf_proc_same(&record.holders[i].id, &search->us->owner))
			return 0;
	for (uint32_t i = 0; i < record.n_holders; i++) {
		if (!holder_is_stuck(search, &record.holders[i]))
			continue;
		if (record.slots == 0)
			return 1;
		stuck++;
	}
	return record.n_holders > 0 && stuck == record.n_holders;
}

static void search_done(struct search *search)
{
	free(search->seen);
}

/* Goes round once. 1 when there is a circle; its way is in search->path. */
static int go_round(struct search *search, const char *name)
{
	search->depth = 0;
	search->n_seen = 0;
	return leads_back(search, name);
}

int hf_deadlock_check(struct hf_local *locks, const char *name, const struct hf_lock_entry *entry,
		      char *ret_cycle, size_t cap)
{
	AUTO(search_done) struct search search = { .locks = locks, .us = entry };
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	/* Real circles stand still: what is one now must be one a moment later. */
	if (!go_round(&search, name) || !go_round(&search, name))
		return 0;
	hf_buf_add_format(&text, "pid %d waits for '%s'", (int)entry->owner.pid, name);
	for (int i = 0; i < search.depth; i++)
		hf_buf_add_format(&text, ", held by pid %d which waits for '%s'",
				  (int)search.path[i].owner.pid, search.path[i].name);
	hf_buf_add_format(&text, ", held by pid %d", (int)entry->owner.pid);
	(void)snprintf(ret_cycle, cap, "%s", text.s);
	return 1;
}
