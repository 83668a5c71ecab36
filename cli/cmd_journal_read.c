/* cli/cmd_journal_read.c - journal query and follow. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "cli.h"
#include "hf/view/event.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

struct filter {
	const char *event;
	const char *name;  /* as the journal writes it; lives in name_root */
	json_t *name_root;
	const char *kind; /* of the lock that the name is; NULL: of any */
	int64_t since_ns; /* < 0: from the beginning */
	uint64_t limit;   /* 0: none */
};

static void filter_done(struct filter *filter)
{
	json_decref(filter->name_root);
}

/* Reads the options that query and follow share. Returns as cli_options(). */
static int read_filter(struct cli *cli, int argc, char **argv, struct filter *ret)
{
	const char *name = NULL;
	const struct option_spec specs[] = {
		{ "event", 'e', OPTION_TEXT, &ret->event, "EVENT", "only this event" },
		{ "name", 'n', OPTION_TEXT, &name, "NAME", "only what is about this name" },
		{ "since", 's', OPTION_DURATION, &ret->since_ns, "DUR", "only the last DUR" },
		{ "limit", 'l', OPTION_COUNT, &ret->limit, "N",
		  "query: the last N; follow: end after N" },
		{ 0 },
	};
	int n;

	ret->since_ns = -1;
	n = cli_options(cli, specs, argc, argv, 0, 0);
	if (n < 0)
		return n;
	if (ret->event && !hf_event_find(ret->event, strlen(ret->event))) {
		(void)cli_usage(cli, "there is no event '%s'; see 'holdfast journal events'",
				ret->event);
		return -1;
	}
	/* Compare with what is stored: bytes that are not UTF-8 were replaced there. */
	if (name) {
		ret->name_root = cli_text(name);
		ret->name = json_string_value(ret->name_root);
	}
	return n;
}

/* Only other kinds than names are told. */
static int is_of_kind(const struct hf_record *record, const char *kind)
{
	const char *told = hf_record_text(record, "kind");

	return strcmp(told ? told : hf_lock_kind_word(HF_LOCK_KIND_NAME), kind) == 0;
}

static int wanted(const struct filter *filter, const struct hf_record *record)
{
	if (filter->event && strcmp(filter->event, record->event) != 0)
		return 0;
	if (filter->name && (!record->name || strcmp(filter->name, record->name) != 0))
		return 0;
	if (filter->kind && !is_of_kind(record, filter->kind))
		return 0;
	return filter->since_ns < 0 || record->time.ns >= hf_wall_now().ns - filter->since_ns;
}

/* One line for people or the stored line itself. */
static void format_record(const struct cli *cli, const struct hf_record *record, struct hf_buf *out)
{
	(cli->json ? hf_view_event_json : hf_view_event_line)(record, out);
}

static void print_and_reset(struct hf_buf *out)
{
	if (out->err)
		cli_die_oom();
	(void)fwrite(out->s, 1, out->len, stdout);
	hf_buf_reset(out);
}

static void say_damaged(const struct cli *cli, const struct hf_journal_reader *reader)
{
	uint64_t damaged = hf_journal_reader_damaged(reader);

	if (damaged > 0)
		cli_say(cli, "%llu damaged or torn line(s) passed over; see 'holdfast journal verify'",
			(unsigned long long)damaged);
}

/* Reads the options and opens the journal. Without a reader the status is the result. */
static int open_reader(struct cli *cli, int argc, char **argv, struct filter *filter,
		       struct hf_journal_reader **ret_reader)
{
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE, r = read_filter(cli, argc, argv, filter);
	struct hf_state *state;

	if (r < 0)
		return cli_options_status(r);
	state = cli_state(cli, 0, &status);
	if (state && hf_journal_read(state, ret_reader, &err) < 0) {
		*ret_reader = NULL;
		status = cli_fail(cli, &err);
	}
	return status;
}

/* The last records as they are printed: a ring that grows to `limit`. */
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
		ring->room = ring->room ? 2 * ring->room : 16;
		ring->slots = reallocarray(ring->slots, ring->room, sizeof(*ring->slots));
		if (!ring->slots)
			cli_die_oom();
	}
	slot = &ring->slots[ring->size++];
	*slot = (struct hf_buf)HF_BUF_INIT;
	return slot;
}

/* Reads to the end; what is wanted goes to the ring, or to stdout where that has no limit. */
static int read_wanted(const struct cli *cli, struct hf_journal_reader *reader,
		       const struct filter *filter, struct ring *ring, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_record record;
	int r;

	while ((r = hf_journal_next(reader, &record, err)) > 0) {
		if (!wanted(filter, &record))
			continue;
		format_record(cli, &record, ring->limit ? ring_slot(ring) : &out);
		if (!ring->limit)
			print_and_reset(&out);
	}
	return r;
}

int cmd_journal_query(struct cli *cli, int argc, char **argv)
{
	AUTO(filter_done) struct filter filter = { 0 };
	AUTO(ring_done) struct ring ring = { 0 };
	struct hf_journal_reader *reader = NULL;
	struct hf_err err = HF_ERR_INIT;
	int status = open_reader(cli, argc, argv, &filter, &reader);

	if (!reader)
		return status;
	ring.limit = filter.limit;
	if (read_wanted(cli, reader, &filter, &ring, &err) < 0)
		status = cli_fail(cli, &err);
	for (size_t i = 0; i < ring.size; i++)
		print_and_reset(&ring.slots[(ring.next + i) % ring.size]);
	say_damaged(cli, reader);
	hf_journal_reader_free(reader);
	return status;
}

void journal_history(struct cli *cli, const char *name, const char *kind, size_t n,
		     void (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	AUTO(filter_done) struct filter filter = { .since_ns = -1 };
	AUTO(ring_done) struct ring ring = { .limit = n };
	struct hf_journal_reader *reader;
	int status;
	struct hf_state *state = cli_state(cli, 0, &status);

	filter.name_root = cli_text(name);
	filter.name = json_string_value(filter.name_root);
	filter.kind = kind;
	if (!state || hf_journal_read(state, &reader, NULL) < 0)
		return;
	(void)read_wanted(cli, reader, &filter, &ring, NULL);
	for (size_t i = 0; i < ring.size; i++) {
		const struct hf_buf *slot = &ring.slots[(ring.next + i) % ring.size];

		if (slot->err)
			cli_die_oom();
		fn(arg, slot->s, slot->len);
	}
	hf_journal_reader_free(reader);
}

int cmd_journal_follow(struct cli *cli, int argc, char **argv)
{
	AUTO(filter_done) struct filter filter = { 0 };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_journal_reader *reader = NULL;
	struct hf_err err = HF_ERR_INIT;
	struct hf_record record;
	uint64_t shown = 0;
	int r, fresh = 0, status = open_reader(cli, argc, argv, &filter, &reader);

	if (!reader)
		return status;
	for (;;) {
		while ((r = hf_journal_next(reader, &record, &err)) > 0) {
			/* Without --since only what comes from now on. */
			if ((!fresh && filter.since_ns < 0) || !wanted(&filter, &record))
				continue;
			format_record(cli, &record, &out);
			print_and_reset(&out);
			if (++shown == filter.limit)
				break;
		}
		if (r < 0 || (filter.limit && shown >= filter.limit))
			break;
		if (fflush(stdout) != 0)
			break; /* the reader has gone */
		fresh = 1;
		r = hf_journal_wait(reader, -1, &err);
		if (r < 0 && r != -EINTR)
			break;
	}
	if (r < 0)
		status = cli_fail(cli, &err);
	say_damaged(cli, reader);
	hf_journal_reader_free(reader);
	return status;
}
