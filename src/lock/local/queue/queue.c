/*
 * lock/local/queue/queue.c - the waiters of one lock, in the order in which they came.
 *
 * Everything here runs under the guard. A waiter's place is its ticket; its
 * entry stands in the ring behind the record, at ticket modulo the ring's size.
 * A process that comes upon an entry whose process has died takes it out.
 *
 * While a patient waiter stands in front, others come and give up, and more tickets may be given
 * than the ring has places; those whose place is taken by a waiter are passed over.
 * So between two waiters there can be any number of tickets that are nobody's: after NEAR of
 * them, the ring is looked through at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/queue/queue.h"
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

void hf_queue_strike(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	struct hf_lock_entry gone = *entry;

	gone.state = HF_ENTRY_GONE;
	/* An entry that cannot be written is found out by the death of its process. */
	(void)write_entry(guard, &gone);
	if (guard->record.first == entry->ticket) {
		guard->record.first++;
		guard->record.has_front = 0;
		guard->dirty = 1;
	}
}

void hf_queue_leave(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	/* First: if we die after this, a waiter without a channel stays, which is passed over;
	 * the other way round a channel would stay behind for ever. */
	hf_channel_remove(guard->dir, guard->key, entry->ticket);
	hf_queue_strike(guard, entry);
}

void hf_queue_skip(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	uint64_t now_us = (uint64_t)(hf_wall_now().ns / HF_USEC);

	hf_queue_strike(guard, entry);
	if (guard->record.next < now_us)
		guard->record.next = now_us;
	guard->dirty = 1;
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
	if ((r == 0 || r == HF_E_FORMAT) && guard->record.first == ticket) {
		guard->record.first++;
		guard->dirty = 1;
	}
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
__attribute__((noinline)) /* callers that do not need it keep their stack small */
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

void hf_queue_pass(struct hf_guard *guard, int *looked)
{
	struct hf_lock_record *record = &guard->record;

	guard->dirty = 1;
	if (!is_far(looked))
		record->first++;
	else if (!search_ring(guard, record->first + 1, record->next, 0, &record->first))
		record->first = record->next;
}

int hf_queue_first(struct hf_guard *guard, uint64_t from, struct hf_lock_entry *ret)
{
	struct hf_lock_record *record = &guard->record;
	uint64_t ticket = from > record->first ? from : record->first;

	for (int looked = 0; ticket < record->next; ticket++) {
		int at_front = ticket == record->first;

		if (is_far(&looked) && !search_ring(guard, ticket, record->next, 0, &ticket))
			ticket = record->next;
		if (at_front && record->first != ticket) {
			record->first = ticket;
			guard->dirty = 1;
		}
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

/* 1 when the place of that ticket in the ring belongs to another waiter. */
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

	guard->dirty = 1;
	while (guard->record.next - guard->record.first >= HF_LOCK_QUEUE_MAX &&
	       place_is_taken(guard, guard->record.next)) {
		guard->record.next++;
		if (++passed == HF_LOCK_QUEUE_MAX)
			return FAIL(err, -EAGAIN, "queue", guard->name, "at most %d waiters are possible",
				    HF_LOCK_QUEUE_MAX);
	}
	/* Like tokens, so that waiters of a record that was deleted are never taken for these. */
	if (guard->record.first == guard->record.next && guard->record.next < now_us)
		guard->record.first = guard->record.next = now_us;
	if (guard->record.first == guard->record.next)
		guard->record.ranked = 0;
	if (entry->priority > 0)
		guard->record.ranked = 1;
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

/* When it would have come without its priority: each step of that counts as a minute of waiting. */
static int64_t rank(const struct hf_lock_entry *entry)
{
	return entry->since_ns - (int64_t)entry->priority * HF_LOCK_PRIORITY_NS;
}

/*
 * By a time that does not change while they wait, so that all processes find the same order at any moment, and no waiter
 * starves: those that come later than its priority's worth stand behind it.
 */
static int by_rank(const void *a, const void *b)
{
	int64_t x = rank(a), y = rank(b);

	return x != y ? (x < y ? -1 : 1) : by_ticket(a, b);
}

void hf_queue_rank(struct hf_lock_entry *entries, size_t n)
{
	qsort(entries, n, sizeof(*entries), by_rank);
}

int hf_queue_best(struct hf_guard *guard, struct hf_lock_entry *ret)
{
	AUTO_FREE struct hf_lock_entry *entries = NULL;
	size_t n, best = 0;
	int r = hf_queue_snapshot(guard, &entries, &n);

	if (r < 0 || n == 0)
		return r;
	for (size_t i = 1; i < n; i++)
		if (by_rank(&entries[i], &entries[best]) < 0)
			best = i;
	*ret = entries[best];
	return 1;
}
