/*
 * lock/local/queue/grant.c - whose turn it is: giving the lock to waiters, telling them, and taking back
 * what they have not noticed.
 *
 * Everything here runs under the guard.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/proc/here.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"

/* Tells the waiter of that ticket to look. */
static void ring(struct hf_guard *guard, uint64_t ticket)
{
	AUTO_FD fd = hf_channel_open(guard, ticket, O_WRONLY);

	if (fd >= 0)
		(void)hf_channel_send(guard->locks, fd, HF_LOOK_AGAIN);
}

void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket)
{
	struct hf_lock_entry entry;

	if (hf_queue_first(guard, ticket + 1, &entry))
		ring(guard, entry.ticket);
}

void hf_queue_retell(struct hf_guard *guard, uint64_t except)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		uint64_t ticket = guard->record.holders[i].ticket;

		if (ticket != 0 && ticket != except)
			ring(guard, ticket);
	}
}

/*
 * Waiters that are let in together: the last `count` holders of the record, with their
 * channels held open until they are told. Small, like all that a release has on the
 * stack: a page of it that this process has not touched since it last forked costs as much
 * as several system calls.
 */
struct grants {
	uint32_t count;
	int channels[HF_LOCK_SLOTS_MAX];
};

static int held_alone(const struct hf_lock_record *record)
{
	return record->n_holders > 0 && record->slots == 0 &&
	       !(record->holders[0].flags & HF_HOLDER_SHARED);
}

/* Takes a waiter that is let in out of the queue. */
static void pull(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	/* Out of its turn: that is written before the record makes it a holder. If we die between, it finds that it has no place, and queues again. */
	if (guard->record.first != entry->ticket)
		hf_queue_strike(guard, entry);
	else
		guard->record.first++;
}

/* Adds those whose turn it is to the record, in order; the first that must wait ends it. */
static void choose(struct hf_guard *guard, struct grants *grants)
{
	struct hf_lock_record *record = &guard->record;
	int looked = 0;

	while (record->first < record->next && !held_alone(record) &&
	       grants->count < HF_LOCK_SLOTS_MAX) {
		struct hf_lock_entry entry;
		int channel, r = record->ranked ? hf_queue_best(guard, &entry) : hf_queue_read(guard, record->first, &entry);

		if (record->ranked && r <= 0)
			return;
		if (r == HF_E_FORMAT || (r == 0 && entry.state == HF_ENTRY_GONE)) {
			hf_queue_pass(guard, &looked);
			continue;
		}
		if (r < 0 || !hf_record_admits(record, entry.mode) ||
		    (record->n_holders > 0 && entry.slots != record->slots))
			return;
		channel = hf_channel_open(guard, entry.ticket, O_WRONLY);
		if (channel == -ENXIO || channel == -ENOENT) {
			hf_queue_leave(guard, &entry);
			continue;
		}
		if (channel < 0)
			return;
		pull(guard, &entry);
		(void)hf_record_add(guard, &entry);
		grants->channels[grants->count++] = channel;
	}
}

/*
 * Sends them their tokens, or "look again" from `given` on; the last in the queue first. If we die
 * on the way, the first of them, which watches the holders before it, looks, and tells the others.
 * A waiter whose channel has no reader has died: it is no holder.
 */
static void tell(struct hf_guard *guard, struct grants *grants, uint32_t base, uint32_t given)
{
	struct hf_lock_holder *holders = &guard->record.holders[base];

	for (uint32_t i = grants->count; i-- > 0;) {
		uint64_t token = i < given ? holders[i].token : HF_LOOK_AGAIN;

		/* Alive, and its channel fails: its own clock makes it look, and find its token. */
		if (hf_channel_send(guard->locks, grants->channels[i], token) != -EPIPE)
			continue;
		hf_channel_remove(guard->dir, guard->key, holders[i].ticket);
		/* Those before it stay where they are. */
		if (i < given)
			hf_record_remove(guard, base + i);
	}
}

/*
 * Wakes those that watch the wrong process now: the waiter behind one that was let in out of its turn, and the first in the
 * queue, if it watches a process that no longer holds the lock.
 */
static void nudge_ranked(struct hf_guard *guard, uint32_t base, uint32_t given)
{
	hf_queue_nudge(guard, 0);
	for (uint32_t i = 0; i < given; i++)
		hf_queue_nudge(guard, guard->record.holders[base + i].ticket);
}

int hf_queue_admit(struct hf_guard *guard, struct hf_err *err)
{
	struct hf_lock_record *record = &guard->record;
	uint32_t given, base = record->n_holders;
	struct grants grants;
	int r;

	grants.count = 0;
	choose(guard, &grants);
	given = grants.count;
	if (given > 0) {
		const struct hf_lock_holder *last = &record->holders[base + given - 1];

		/*
		 * The one behind watches only the last of them; it must know of the others,
		 * and of leases. It is told first, and looks when we are done or dead.
		 */
		if (record->ranked)
			nudge_ranked(guard, base, given);
		else if (!held_alone(record) || last->ttl_ms > 0)
			hf_queue_nudge(guard, last->ticket);
	}
	r = hf_guard_write(guard, err);
	/* Holders of too many places: then without the new ones, which will ask again. */
	if (r == -E2BIG && given > 0) {
		record->n_holders = base;
		given = 0;
		r = hf_guard_write(guard, err);
	}
	if (r < 0)
		record->n_holders = base;
	else
		tell(guard, &grants, base, given);
	if (guard->dirty)
		r = hf_guard_write(guard, err);
	if (grants.count > 0) {
		hf_auto_close(&guard->told_fd);
		guard->told_fd = fd_take(&grants.channels[grants.count - 1]);
	}
	for (uint32_t i = 0; i < grants.count; i++)
		hf_auto_close(&grants.channels[i]);
	return r;
}

int hf_grant_is_unread(struct hf_guard *guard, const struct hf_lock_holder *holder)
{
	AUTO_FD fd = holder->ticket ? hf_channel_open(guard, holder->ticket, O_RDONLY) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && hf_sys.poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

int64_t hf_grant_age(const struct hf_lock_holder *holder)
{
	int64_t age = hf_wall_now().ns - holder->since_ms * HF_MSEC;

	return age > 0 ? age : 0;
}

int64_t hf_queue_unclaimed(struct hf_guard *guard, uint64_t *ret_token)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		const struct hf_lock_holder *holder = &guard->record.holders[i];
		int64_t age = hf_grant_age(holder);

		if (holder->ticket == 0 || age >= HF_LOCK_TURN_NS || !hf_grant_is_unread(guard, holder))
			continue;
		*ret_token = holder->token;
		return HF_LOCK_TURN_NS - age;
	}
	return -1;
}

int hf_queue_take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token)
{
	AUTO_FD fd = ticket ? hf_channel_open(guard, ticket, O_RDWR) : -1;
	uint64_t message;

	/*
	 * First, and so that one stays behind in any case: the waiter shall look and find that it
	 * has to queue again. If we are killed before the record says so, it finds that it
	 * has the lock, although its token is gone.
	 */
	if (fd < 0 || hf_channel_send(guard->locks, fd, HF_LOOK_AGAIN_MARK) < 0 ||
	    hf_channel_send(guard->locks, fd, HF_LOOK_AGAIN) < 0)
		return 0;
	do {
		if (hf_sys.read(fd, &message, sizeof(message)) != sizeof(message))
			return 0;
	} while (message != token && message != HF_LOOK_AGAIN_MARK);
	return message == token;
}

/* Proven to be stopped by SIGSTOP or the like? One that cannot be judged is not. */
static int is_stopped(const struct hf_local *locks, const struct hf_proc_id *id)
{
	char evidence[HF_EVIDENCE_MAX];
	AUTO_FD pidfd = -1;
	struct hf_stat stat;
	int32_t number;

	/* What stands below that number is believed because the process still has it afterwards. */
	return hf_local_judge(locks, id, &pidfd, evidence) == 0 &&
	       hf_proc_number(pidfd, id->pid, &number) == 0 && hf_stat_read(number, &stat) == 0 &&
	       stat.state == 'T' && hf_pidfd_exited(pidfd) == 0;
}

/*
 * Passes over all waiters that are stopped, wherever they are: each would cost those behind it
 * another turn. They queue again when they are continued. The waiter behind a struck one is told,
 * for it watches the wrong process.
 */
static void pass_over_stopped(struct hf_guard *guard)
{
	AUTO_FREE struct hf_lock_entry *entries = NULL;
	int struck_before = 0;
	size_t n;

	if (hf_queue_snapshot(guard, &entries, &n) < 0)
		return; /* one by one, then */
	for (size_t i = 0; i < n; i++) {
		int struck = is_stopped(guard->locks, &entries[i].waiter);

		if (struck)
			hf_queue_strike(guard, &entries[i]);
		if (struck || struck_before)
			ring(guard, entries[i].ticket);
		struck_before = struck;
	}
}

int hf_queue_revoke(struct hf_guard *guard, uint64_t overdue)
{
	int revoked = 0;

	for (uint32_t i = 0; i < guard->record.n_holders;) {
		const struct hf_lock_holder *holder = &guard->record.holders[i];

		if (holder->ticket != 0 &&
		    (holder->token == overdue || hf_grant_age(holder) >= HF_LOCK_TURN_NS) &&
		    hf_queue_take_back(guard, holder->ticket, holder->token)) {
			hf_record_remove(guard, i);
			revoked++;
		} else {
			i++;
		}
	}
	if (revoked > 0)
		pass_over_stopped(guard);
	return revoked;
}
