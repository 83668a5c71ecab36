/*
 * lock/local/grant.c - whose turn it is: giving the lock to waiters, telling them, and taking back
 * what they have not noticed.
 *
 * Everything here runs under the guard.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/channel.h"
#include "hf/lock/local/grant.h"
#include "hf/lock/local/guard.h"
#include "hf/lock/local/holders.h"
#include "hf/lock/local/queue.h"
#include "hf/sys/calls.h"

void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket)
{
	struct hf_lock_entry entry;

	for (int i = 0; i < 2 && hf_queue_first(guard, ticket + 1, &entry); i++) {
		AUTO_FD fd = hf_channel_open(guard, entry.ticket, O_WRONLY);

		if (fd >= 0)
			(void)hf_channel_send(guard->locks, fd, HF_LOOK_AGAIN);
		ticket = entry.ticket;
	}
}

void hf_queue_retell(struct hf_guard *guard, uint64_t except)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		uint64_t ticket = guard->record.holders[i].ticket;
		AUTO_FD fd = ticket != 0 && ticket != except
				     ? hf_channel_open(guard, ticket, O_WRONLY)
				     : -1;

		if (fd >= 0)
			(void)hf_channel_send(guard->locks, fd, HF_LOOK_AGAIN);
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
	struct {
		int32_t pid; /* of the waiter */
		int channel;
	} items[HF_LOCK_SLOTS_MAX];
};

static int held_alone(const struct hf_lock_record *record)
{
	return record->n_holders > 0 && record->slots == 0 &&
	       !(record->holders[0].flags & HF_HOLDER_SHARED);
}

/* Adds those whose turn it is to the record, in order; the first that must wait ends it. */
static void choose(struct hf_guard *guard, struct grants *grants)
{
	struct hf_lock_record *record = &guard->record;
	int looked = 0;

	while (record->first < record->next && !held_alone(record) &&
	       grants->count < HF_LOCK_SLOTS_MAX) {
		struct hf_lock_entry entry;
		int channel, r = hf_queue_read(guard, record->first, &entry);

		if (r == HF_E_FORMAT || (r == 0 && entry.state == HF_ENTRY_GONE)) {
			hf_queue_pass(guard, &looked);
			continue;
		}
		if (r < 0 || !hf_record_admits(record, entry.mode) ||
		    (record->n_holders > 0 && entry.slots != record->slots))
			return;
		channel = hf_channel_open(guard, record->first, O_WRONLY);
		if (channel == -ENXIO || channel == -ENOENT) {
			hf_queue_leave(guard, &entry);
			continue;
		}
		if (channel < 0)
			return;
		record->first++;
		(void)hf_record_add(guard, &entry);
		grants->items[grants->count].pid = entry.waiter.pid;
		grants->items[grants->count++].channel = channel;
	}
}

/*
 * Sends them their tokens, or "look again" from `given` on; the last in the queue first. If we die
 * on the way, the first of them, which watches the holders before it, looks, and tells the others.
 * A waiter that cannot be told has died: it is no holder.
 */
static void tell(struct hf_guard *guard, struct grants *grants, uint32_t base, uint32_t given)
{
	struct hf_lock_holder *holders = &guard->record.holders[base];

	for (uint32_t i = grants->count; i-- > 0;) {
		uint64_t token = i < given ? holders[i].token : HF_LOOK_AGAIN;

		if (hf_channel_send(guard->locks, grants->items[i].channel, token) == 0)
			continue;
		hf_channel_remove(guard->dir, guard->key, holders[i].ticket);
		/* Those before it stay where they are. */
		if (i < given)
			hf_record_remove(guard, base + i);
	}
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
		if (!held_alone(record) || last->ttl_ms > 0)
			hf_queue_nudge(guard, last->ticket);
		guard->told_ticket = last->ticket;
		guard->told_pid = grants.items[given - 1].pid;
	}
	r = hf_guard_write(guard, err);
	/* Holders of too many places: then without the new ones, who will ask again. */
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
		guard->told_fd = fd_take(&grants.items[grants.count - 1].channel);
	}
	for (uint32_t i = 0; i < grants.count; i++)
		hf_auto_close(&grants.items[i].channel);
	return r;
}

/* Has the holder a message in its channel that it did not read? */
static int is_unread(struct hf_guard *guard, const struct hf_lock_holder *holder)
{
	AUTO_FD fd = holder->ticket ? hf_channel_open(guard, holder->ticket, O_RDONLY) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && hf_sys.poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

/* How long ago it was given the lock, as far as the wall clock can tell: 0 if that makes no sense. */
static int64_t age_ns(const struct hf_lock_holder *holder)
{
	int64_t age = hf_wall_now().ns - holder->since_ms * HF_MSEC;

	return age > 0 ? age : 0;
}

int64_t hf_queue_unclaimed(struct hf_guard *guard, uint64_t *ret_token)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		const struct hf_lock_holder *holder = &guard->record.holders[i];
		int64_t age = age_ns(holder);

		if (holder->ticket == 0 || age >= HF_LOCK_TURN_NS || !is_unread(guard, holder))
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

int hf_queue_revoke(struct hf_guard *guard, uint64_t overdue)
{
	int revoked = 0;

	for (uint32_t i = 0; i < guard->record.n_holders;) {
		const struct hf_lock_holder *holder = &guard->record.holders[i];

		if (holder->ticket != 0 &&
		    (holder->token == overdue || age_ns(holder) >= HF_LOCK_TURN_NS) &&
		    hf_queue_take_back(guard, holder->ticket, holder->token)) {
			hf_record_remove(guard, i);
			revoked++;
		} else {
			i++;
		}
	}
	return revoked;
}
