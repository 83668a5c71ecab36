/* view/history.c - the last events are kept formatted, in a ring that grows to their number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/view/history.h"
#include "holdfast/lock.h"

/* An event of the kind "name" has no field "kind", or one that is about something else: a conflict, a plan. */
static int is_of_kind(const struct hf_record *record, const char *kind)
{
	const char *told = hf_record_text(record, "kind"), *word = hf_lock_kind_word(HF_LOCK_KIND_NAME);

	for (int i = 0; told && i < HF_LOCK_KINDS; i++)
		if (strcmp(told, hf_lock_kind_word((enum hf_lock_kind)i)) == 0)
			word = told;
	return strcmp(word, kind) == 0;
}

int hf_history_means(const struct hf_history *what, const struct hf_record *record)
{
	if (what->event && strcmp(what->event, record->event) != 0)
		return 0;
	if (what->name && (!record->name || strcmp(what->name, record->name) != 0))
		return 0;
	if (what->kind && !is_of_kind(record, what->kind))
		return 0;
	return record->time.ns >= what->since.ns && (what->until.ns == 0 || record->time.ns <= what->until.ns);
}

struct ring {
	struct hf_buf *slots;
	size_t limit, size, room;
	size_t next; /* the oldest, once it is full */
};

static void ring_done(struct ring *ring)
{
	for (size_t i = 0; i < ring->size; i++)
		hf_buf_done(&ring->slots[i]);
	free(ring->slots);
}

/* NULL: no memory. */
static struct hf_buf *ring_slot(struct ring *ring)
{
	struct hf_buf *slot;

	if (ring->size == ring->limit) {
		slot = &ring->slots[ring->next];
		ring->next = (ring->next + 1) % ring->limit;
		hf_buf_reset(slot);
		return slot;
	}
	if (ring->size == ring->room) {
		size_t room = ring->room ? 2 * ring->room : 16;

		slot = reallocarray(ring->slots, room, sizeof(*slot));
		if (!slot)
			return NULL;
		ring->slots = slot;
		ring->room = room;
	}
	slot = &ring->slots[ring->size++];
	*slot = (struct hf_buf)HF_BUF_INIT;
	return slot;
}

int hf_view_history(struct hf_journal_reader *reader, const struct hf_history *what, hf_history_format_fn *format,
		    hf_history_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf all = HF_BUF_INIT;
	AUTO(ring_done) struct ring ring = { .limit = what->limit };
	struct hf_record record;
	int r;

	while ((r = hf_journal_next(reader, &record, err)) > 0) {
		struct hf_buf *out = &all;

		if (!hf_history_means(what, &record))
			continue;
		if (what->limit)
			out = ring_slot(&ring);
		else
			hf_buf_reset(&all);
		if (out)
			format(&record, out);
		if (!out || out->err)
			return FAIL(err, -ENOMEM, "event", "journal", "out of memory");
		if (!what->limit)
			fn(arg, all.s, all.len);
	}
	for (size_t i = 0; i < ring.size; i++) {
		const struct hf_buf *slot = &ring.slots[(ring.next + i) % ring.size];

		fn(arg, slot->s, slot->len);
	}
	return r;
}
