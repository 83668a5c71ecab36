/*
 * lock/queue.c - the waiters of one lock, first come first served, and waking them.
 *
 * Everything here runs under the guard. A waiter's place is its ticket; its
 * entry stands in the ring behind the record, at ticket modulo the ring's size.
 * Whoever comes upon an entry whose process has died takes it out.
 *
 * While somebody patient waits in front, others come and give up, and more tickets may be given
 * than the ring has places; those whose place is taken by one who waits are passed over.
 * So between two who wait there can be any number of tickets that are nobody's: after NEAR of
 * them, the ring is looked through at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/types.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define NEAR  64  /* tickets that are looked at one by one */
#define CHUNK 128 /* entries that are read at once */

static off_t entry_at(uint64_t ticket)
{
	return HF_LOCK_RECORD_MAX + (off_t)(ticket % HF_LOCK_QUEUE_MAX * HF_LOCK_ENTRY_SIZE);
}

int hf_queue_read(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	ssize_t n;

	if (guard->record.has_front && guard->record.front.ticket == ticket) {
		*ret = guard->record.front;
		return 0;
	}
	n = hf_pread_all(guard->fd, (char *)bytes, sizeof(bytes), entry_at(ticket));
	if (n < 0)
		return (int)n;
	return n == sizeof(bytes) ? hf_lock_entry_decode(bytes, ticket, ret) : HF_E_FORMAT;
}

static int write_entry(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	size_t done;

	if (!hf_local_may_write(guard->locks, sizeof(bytes), entry_at(entry->ticket)))
		return -EFBIG;
	hf_lock_entry_encode(entry, bytes);
	return hf_pwrite_all(guard->fd, (const char *)bytes, sizeof(bytes),
			     entry_at(entry->ticket), &done);
}

void hf_queue_leave(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	struct hf_lock_entry gone = *entry;

	/* First: whoever dies after this leaves a waiter without a channel, which is passed
	 * over; the other way round a channel would stay behind for ever. */
	hf_channel_remove(guard->locks, guard->key, entry->ticket);
	gone.state = HF_ENTRY_GONE;
	/* An entry that cannot be written is found out by the death of its process. */
	(void)write_entry(guard, &gone);
	if (guard->record.first == entry->ticket) {
		guard->record.first++;
		guard->record.has_front = 0;
	}
}

/* The living waiter of `ticket`: 1; 0 none (a dead one is taken out). */
static int examine(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret)
{
	char evidence[HF_EVIDENCE_MAX];
	int r = hf_queue_read(guard, ticket, ret);

	if (r == 0 && ret->state == HF_ENTRY_WAITING) {
		int verdict = hf_local_judge(guard->locks, &ret->waiter, NULL, evidence);

		if (verdict == 0 || verdict == HF_E_UNKNOWN)
			return 1;
		hf_queue_leave(guard, ret);
		return 0;
	}
	/* Gone, so the front moves past it. A read error says nothing, so that one stays. */
	if ((r == 0 || r == HF_E_FORMAT) && guard->record.first == ticket)
		guard->record.first++;
	return 0;
}

/* Reads the ring from `ticket` on, at most up to its end. Returns entries read or -errno. */
static ssize_t read_run(struct hf_guard *guard, uint64_t ticket, uint64_t end, uint8_t *to)
{
	uint64_t index = ticket % HF_LOCK_QUEUE_MAX, run = end - ticket;
	ssize_t n;

	if (run > HF_LOCK_QUEUE_MAX - index)
		run = HF_LOCK_QUEUE_MAX - index;
	n = hf_pread_all(guard->fd, (char *)to, run * HF_LOCK_ENTRY_SIZE, entry_at(ticket));
	return n < 0 ? n : n / HF_LOCK_ENTRY_SIZE;
}

/*
 * Looks through the whole ring for the lowest ticket from `from` to before `to` that seems to
 * wait, or the highest. 1, or 0 none.
 */
__attribute__((noinline)) /* those who do not need it keep their stack small */
static int search_ring(struct hf_guard *guard, uint64_t from, uint64_t to, int highest,
		       uint64_t *ret)
{
	uint8_t bytes[CHUNK * HF_LOCK_ENTRY_SIZE];
	int found = 0;

	for (uint64_t at = 0; at < HF_LOCK_QUEUE_MAX; at += CHUNK) {
		ssize_t got = read_run(guard, at, at + CHUNK, bytes);

		if (got <= 0)
			break;
		for (ssize_t i = 0; i < got; i++) {
			uint64_t ticket = hf_lock_entry_waiting(bytes + i * HF_LOCK_ENTRY_SIZE);

			if (ticket == 0 || ticket < from || ticket >= to ||
			    (found && (highest ? ticket < *ret : ticket > *ret)))
				continue;
			*ret = ticket;
			found = 1;
		}
	}
	return found;
}

/* 1 after every NEAR tickets. */
static int is_far(int *looked)
{
	if ((*looked)++ < NEAR)
		return 0;
	*looked = 0;
	return 1;
}

int hf_queue_first(struct hf_guard *guard, uint64_t from, struct hf_lock_entry *ret)
{
	struct hf_lock_record *record = &guard->record;
	uint64_t ticket = from > record->first ? from : record->first;

	for (int looked = 0; ticket < record->next; ticket++) {
		int at_front = ticket == record->first;

		if (is_far(&looked) && !search_ring(guard, ticket, record->next, 0, &ticket))
			ticket = record->next;
		if (at_front)
			record->first = ticket;
		if (ticket < record->next && examine(guard, ticket, ret))
			return 1;
	}
	return 0;
}

int hf_queue_previous(struct hf_guard *guard, uint64_t before, struct hf_lock_entry *ret)
{
	uint64_t ticket = before;

	for (int looked = 0; ticket > guard->record.first;) {
		ticket--;
		if (is_far(&looked) &&
		    !search_ring(guard, guard->record.first, ticket + 1, 1, &ticket))
			return 0;
		if (examine(guard, ticket, ret))
			return 1;
	}
	return 0;
}

/* 1 when the place of that ticket in the ring belongs to somebody else who waits. */
static int place_is_taken(struct hf_guard *guard, uint64_t ticket)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	struct hf_lock_entry entry;
	uint64_t other;

	if (hf_pread_all(guard->fd, (char *)bytes, sizeof(bytes), entry_at(ticket)) !=
	    sizeof(bytes))
		return 0;
	other = hf_lock_entry_waiting(bytes);
	return other >= guard->record.first && other < guard->record.next &&
	       examine(guard, other, &entry);
}

int hf_queue_join(struct hf_guard *guard, struct hf_lock_entry *entry, struct hf_err *err)
{
	uint64_t now_us = (uint64_t)(hf_wall_now().ns / HF_USEC);
	uint64_t passed = 0;
	int r;

	while (guard->record.next - guard->record.first >= HF_LOCK_QUEUE_MAX &&
	       place_is_taken(guard, guard->record.next)) {
		guard->record.next++;
		if (++passed == HF_LOCK_QUEUE_MAX)
			return FAIL(err, -EAGAIN, "queue", guard->name, "%d waiters are the most",
				    HF_LOCK_QUEUE_MAX);
	}
	/* Like tokens, so that waiters of a record that was deleted are never taken for these. */
	if (guard->record.first == guard->record.next && guard->record.next < now_us)
		guard->record.first = guard->record.next = now_us;
	entry->ticket = guard->record.next;
	entry->state = HF_ENTRY_WAITING;
	r = write_entry(guard, entry);
	if (r < 0)
		return hf_fail_sys(err, -r, "queue", guard->name);
	if (guard->record.first == guard->record.next) {
		guard->record.front = *entry;
		guard->record.has_front = 1;
	}
	guard->record.next++;
	return 0;
}

static int by_ticket(const void *a, const void *b)
{
	const struct hf_lock_entry *x = a, *y = b;

	return x->ticket < y->ticket ? -1 : x->ticket > y->ticket;
}

int hf_queue_snapshot(struct hf_guard *guard, struct hf_lock_entry **ret_entries, size_t *ret_n)
{
	uint64_t first = guard->record.first, next = guard->record.next;
	/* Each place in the ring once. */
	uint64_t from = next - first > HF_LOCK_QUEUE_MAX ? next - HF_LOCK_QUEUE_MAX : first;
	size_t room = (size_t)(next - from), n = 0;
	AUTO_FREE struct hf_lock_entry *entries = calloc(room + 1, sizeof(*entries));
	AUTO_FREE uint8_t *bytes = malloc((room + 1) * HF_LOCK_ENTRY_SIZE);

	if (!entries || !bytes)
		return -ENOMEM;
	for (uint64_t ticket = from; ticket < next;) {
		ssize_t got = read_run(guard, ticket, next, bytes);

		if (got < 0)
			return (int)got;
		if (got == 0) /* the file is shorter than the ring: on with its begin */
			ticket += HF_LOCK_QUEUE_MAX - ticket % HF_LOCK_QUEUE_MAX;
		for (ssize_t i = 0; i < got; i++, ticket++) {
			const uint8_t *at = bytes + i * HF_LOCK_ENTRY_SIZE;
			uint64_t found = hf_lock_entry_waiting(at);

			if (found >= first && found < next &&
			    found % HF_LOCK_QUEUE_MAX == ticket % HF_LOCK_QUEUE_MAX &&
			    hf_lock_entry_decode(at, found, &entries[n]) == 0)
				n++;
		}
	}
	qsort(entries, n, sizeof(*entries), by_ticket);
	*ret_entries = ptr_take(&entries);
	*ret_n = n;
	return 0;
}

void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket)
{
	struct hf_lock_entry entry;

	if (hf_queue_first(guard, ticket + 1, &entry)) {
		AUTO_FD fd = hf_channel_open(guard, entry.ticket, O_WRONLY);

		if (fd >= 0)
			(void)hf_channel_send(guard->locks, fd, 0);
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
			(void)hf_channel_send(guard->locks, fd, 0);
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
			if (!is_far(&looked))
				record->first++;
			else if (!search_ring(guard, record->first + 1, record->next, 0,
					      &record->first))
				record->first = record->next;
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

/* Sends them their tokens, or 0 to those from `given` on. Who cannot be told is no holder. */
static int tell(struct hf_guard *guard, struct grants *grants, uint32_t base, uint32_t given)
{
	struct hf_lock_holder *holders = &guard->record.holders[base];
	uint64_t untold = 0;

	for (uint32_t i = 0; i < grants->count; i++) {
		uint64_t token = i < given ? holders[i].token : 0;

		if (hf_channel_send(guard->locks, grants->items[i].channel, token) == 0)
			continue;
		/* It has just died, and its place is passed. */
		hf_channel_remove(guard->locks, guard->key, holders[i].ticket);
		untold |= UINT64_C(1) << i;
	}
	/* From the end, so that those to be removed stay where they are. */
	for (uint32_t i = given; i-- > 0;)
		if (untold >> i & 1)
			hf_record_remove(&guard->record, base + i);
	return untold != 0;
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
	else if (tell(guard, &grants, base, given))
		r = hf_guard_write(guard, err);
	if (grants.count > 0) {
		hf_auto_close(&guard->told_fd);
		guard->told_fd = fd_take(&grants.items[grants.count - 1].channel);
	}
	for (uint32_t i = 0; i < grants.count; i++)
		hf_auto_close(&grants.items[i].channel);
	return r;
}

int hf_queue_unclaimed(struct hf_guard *guard)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		uint64_t ticket = guard->record.holders[i].ticket;
		AUTO_FD fd = ticket ? hf_channel_open(guard, ticket, O_RDONLY) : -1;
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (fd >= 0 && hf_sys.poll(&p, 1, 0) > 0 && p.revents & POLLIN)
			return 1;
	}
	return 0;
}

int hf_queue_take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token)
{
	AUTO_FD fd = ticket ? hf_channel_open(guard, ticket, O_RDWR) : -1;
	uint64_t message;

	while (fd >= 0 && hf_sys.read(fd, &message, sizeof(message)) == sizeof(message))
		if (message == token) {
			/* It will find that it has to queue again. */
			(void)hf_channel_send(guard->locks, fd, 0);
			return 1;
		}
	return 0;
}

int hf_queue_revoke(struct hf_guard *guard)
{
	struct hf_lock_record *record = &guard->record;
	uint64_t now_us = (uint64_t)(hf_wall_now().ns / HF_USEC);
	int revoked = 0;

	for (uint32_t i = 0; i < record->n_holders;) {
		const struct hf_lock_holder *holder = &record->holders[i];

		/* The age is wall time and may be wrong; then it is only asked early. */
		if (holder->ticket != 0 && now_us - holder->token >= HF_LOCK_TURN_NS / HF_USEC &&
		    hf_queue_take_back(guard, holder->ticket, holder->token)) {
			hf_record_remove(record, i);
			revoked++;
		} else {
			i++;
		}
	}
	return revoked;
}
