/* lock/local/peek.c - reading a lock without its guard. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/queue/grant.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/peek.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/sys/io.h"

#define READ_TRIES 8 /* a write is over in microseconds */

int hf_peek_record(int fd, struct hf_lock_record *ret)
{
	uint8_t page[HF_LOCK_RECORD_MAX];
	const char *why;
	int r = HF_E_FORMAT;

	for (int try = 0; try < READ_TRIES && r < 0; try++) {
		ssize_t n;

		if (try > 0)
			(void)sched_yield();
		n = hf_pread_all(fd, (char *)page, sizeof(page), 0);
		if (n < 0)
			return (int)n;
		r = hf_lock_record_decode(page, (size_t)n, ret, &why);
	}
	return r;
}

/* Could the first in the queue enter beside the holders? Then its message was lost. */
static int admits_first(struct hf_guard *reading)
{
	const struct hf_lock_record *record = &reading->record;
	struct hf_lock_entry entry;

	/* An exclusive holder, or as many as there may be: nearly always. */
	if (!hf_record_admits(record, HF_LOCK_SHARED) && !hf_record_admits(record, HF_LOCK_SLOTS))
		return 0;
	return hf_queue_read(reading, record->first, &entry) < 0 || entry.state != HF_ENTRY_WAITING ||
	       hf_record_admits(record, entry.mode);
}

/*
 * Is there a grant that its waiter has not noticed for HF_LOCK_TURN_NS? Shortens *ns until that may
 * be so. A young grant is not judged: its message may not have been sent yet.
 */
static int is_overdue(struct hf_attempt *a, struct hf_guard *reading, int64_t *ns)
{
	for (uint32_t i = 0; i < reading->record.n_holders; i++) {
		const struct hf_lock_holder *holder = &reading->record.holders[i];
		int64_t left;

		/* Tokens rise from holder to holder. */
		if (holder->ticket == 0 || holder->token <= a->claimed)
			continue;
		left = HF_LOCK_TURN_NS - hf_grant_age(holder);
		hf_attempt_note_unread(a, holder->token, left > HF_MSEC ? left : HF_MSEC);
		left = hf_mono_left(a->unread_until);
		if (left > 0) {
			*ns = left < *ns ? left : *ns;
			return 0;
		}
		if (hf_grant_is_unread(reading, holder))
			return 1;
		a->claimed = holder->token;
	}
	return 0;
}

static int is_due(struct hf_attempt *a, struct hf_guard *reading, int64_t *ns)
{
	const struct hf_lock_record *record = &reading->record;
	char evidence[HF_EVIDENCE_MAX];

	if (a->entry.ticket < record->first || a->entry.ticket >= record->next ||
	    record->n_holders == 0)
		return 1;
	for (uint32_t i = 0; i < record->n_holders; i++) {
		const struct hf_lock_holder *holder = &record->holders[i];
		int64_t lease = hf_holder_lease_left(a->locks, holder);
		int verdict = hf_local_judge(a->locks, &holder->id, NULL, evidence);

		if (verdict == HF_E_GONE || verdict == HF_E_RECYCLED || lease == 0)
			return 1;
		if (lease > 0 && lease < *ns)
			*ns = lease;
	}
	return admits_first(reading) || is_overdue(a, reading, ns);
}

/* Reads the record; `reading` is no guard, and only its descriptor, names and record are looked at. The descriptor, or less than 0. */
static int open_reading(const struct hf_attempt *a, struct hf_guard *reading)
{
	const char *name = a->request->lock.name;
	AUTO_FD fd = -1;

	hf_guard_init(reading);
	reading->locks = a->locks;
	reading->dir = &a->locks->kinds[a->request->lock.kind];
	if (hf_name_key(name, strlen(name), reading->key, NULL) < 0)
		return -1;
	fd = hf_open_noatime(reading->dir->fd, reading->key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || hf_peek_record(fd, &reading->record) < 0)
		return -1;
	reading->fd = fd;
	return fd_take(&fd);
}

int hf_peek(struct hf_attempt *a, int64_t *ret_ns)
{
	AUTO_FREE struct hf_guard *reading = malloc(sizeof(*reading));
	AUTO_FD fd = -1;

	*ret_ns = HF_LOCK_TURN_NS;
	if (!reading)
		return 1;
	fd = open_reading(a, reading);
	return fd < 0 ? 1 : is_due(a, reading, ret_ns);
}

/* Of a longer queue the dead are counted as well until their turn comes. */
#define JUDGED_MAX 64

/* Our place among those that wait, and how many they are. */
static void find_place(const struct hf_attempt *a, struct hf_guard *reading, struct hf_lock_waiting *ret)
{
	AUTO_FREE struct hf_lock_entry *entries = NULL;
	char evidence[HF_EVIDENCE_MAX];
	size_t n;

	if (hf_queue_snapshot(reading, &entries, &n) < 0)
		return;
	hf_queue_rank(entries, n);
	for (size_t i = 0; i < n; i++) {
		int verdict = n > JUDGED_MAX ? 0 : hf_local_judge(a->locks, &entries[i].waiter, NULL, evidence);

		if (verdict != 0 && verdict != HF_E_UNKNOWN)
			continue;
		ret->of++;
		if (entries[i].ticket == a->entry.ticket)
			ret->place = ret->of;
	}
}

void hf_peek_waiting(const struct hf_attempt *a, struct hf_lock_waiting *ret)
{
	AUTO_FREE struct hf_guard *reading = malloc(sizeof(*reading));
	AUTO_FD fd = -1;

	memset(ret, 0, sizeof(*ret));
	ret->kind = a->request->lock.kind;
	hf_copy_text(ret->name, sizeof(ret->name), a->request->lock.name);
	ret->waited_ns = hf_local_now(a->locks) - a->entry.since_ns;
	fd = reading ? open_reading(a, reading) : -1;
	if (fd < 0)
		return;
	ret->slots = reading->record.slots;
	if (reading->record.n_holders > 0)
		ret->holder = reading->record.holders[0].id;
	find_place(a, reading, ret);
	/* It left the queue meanwhile: its turn has come. */
	if (ret->place == 0)
		ret->of = 0;
}
