/* cli/journal/read.c - journal query and follow. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "cli.h"
#include "hf/view/history.h"
#include "holdfast/journal.h"

struct filter {
	struct hf_history what;
	json_t *name_root; /* has what.name */
};

static void filter_done(struct filter *filter)
{
	json_decref(filter->name_root);
}

#define TAIL_LINES 10

/* Reads the options that query, tail and follow share. Returns as cli_options(). */
static int read_filter(struct cli *cli, int argc, char **argv, struct filter *ret, const char *limit_help)
{
	const char *name = NULL;
	const struct option_spec specs[] = {
		{ "event", 'e', OPTION_TEXT, &ret->what.event, "EVENT", "only this event" },
		{ "name", 0, OPTION_TEXT, &name, "NAME", "only records about this name" },
		{ "since", 'S', OPTION_WHEN, &ret->what.since.ns, "WHEN", "only records since WHEN (5m, yesterday, 07:30, 2026-11-18)" },
		{ "until", 'U', OPTION_WHEN, &ret->what.until.ns, "WHEN", "only records up to WHEN" },
		{ "limit", 'n', OPTION_COUNT, &ret->what.limit, "N", limit_help },
		{ 0 },
	};
	int n;

	n = cli_options(cli, specs, argc, argv, 0, 0);
	if (n < 0)
		return n;
	if (ret->what.event && !hf_event_find(ret->what.event, strlen(ret->what.event))) {
		(void)cli_usage(cli, "no event '%s'; see 'holdfast journal events'",
				ret->what.event);
		return -1;
	}
	/* The journal stores names with invalid UTF-8 replaced; compare in that form. */
	if (name) {
		ret->name_root = cli_text(name);
		ret->what.name = json_string_value(ret->name_root);
	}
	return n;
}

/* Returns the output format: a line for people, or the stored line. */
static hf_history_format_fn *format_of(const struct cli *cli)
{
	return cli->json ? hf_view_event_json : hf_view_event_line;
}

static void print_event(void *arg, const char *line, size_t len)
{
	(void)arg;
	(void)fwrite(line, 1, len, stdout);
}

static void say_damaged(const struct cli *cli, const struct hf_journal_reader *reader)
{
	uint64_t damaged = hf_journal_reader_damaged(reader);

	if (damaged > 0)
		cli_say(cli, "skipped %llu damaged or torn line(s); see 'holdfast journal verify'",
			(unsigned long long)damaged);
}

/* Reads the options and opens the journal. Returns the exit status if *ret_reader stays NULL. */
static int open_reader(struct cli *cli, int argc, char **argv, struct filter *filter, const char *limit_help,
		       struct hf_journal_reader **ret_reader)
{
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE, r = read_filter(cli, argc, argv, filter, limit_help);
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

static int query(struct cli *cli, int argc, char **argv, uint64_t limit)
{
	AUTO(filter_done) struct filter filter = { .what = { .limit = limit } };
	struct hf_journal_reader *reader = NULL;
	struct hf_err err = HF_ERR_INIT;
	int status = open_reader(cli, argc, argv, &filter, limit ? "the last N (10)" : "the last N", &reader);

	if (!reader)
		return status;
	if (hf_view_history(reader, &filter.what, format_of(cli), print_event, NULL, &err) < 0)
		status = cli_fail(cli, &err);
	say_damaged(cli, reader);
	hf_journal_reader_free(reader);
	return status;
}

int cmd_journal_query(struct cli *cli, int argc, char **argv)
{
	return query(cli, argc, argv, 0);
}

int cmd_journal_tail(struct cli *cli, int argc, char **argv)
{
	return query(cli, argc, argv, TAIL_LINES);
}

void journal_history(struct cli *cli, const char *name, const char *kind, size_t n,
		     void (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	AUTO(filter_done) struct filter filter = { .what = { .kind = kind, .limit = n } };
	struct hf_journal_reader *reader;
	int status;
	struct hf_state *state = cli_state(cli, 0, &status);

	filter.name_root = cli_text(name);
	filter.what.name = json_string_value(filter.name_root);
	if (!state || hf_journal_read(state, &reader, NULL) < 0)
		return;
	(void)hf_view_history(reader, &filter.what, format_of(cli), fn, arg, NULL);
	hf_journal_reader_free(reader);
}

int cmd_journal_follow(struct cli *cli, int argc, char **argv)
{
	AUTO(filter_done) struct filter filter = { 0 };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_journal_reader *reader = NULL;
	struct hf_err err = HF_ERR_INIT;
	struct hf_record record;
	uint64_t shown = 0, restarts = 0;
	int r, fresh = 0, status = open_reader(cli, argc, argv, &filter, "end after N", &reader);

	if (!reader)
		return status;
	for (;;) {
		while ((r = hf_journal_next(reader, &record, &err)) > 0) {
			/* Without --since, only new records. */
			if ((!fresh && filter.what.since.ns == 0) || !hf_history_means(&filter.what, &record))
				continue;
			hf_buf_reset(&out);
			format_of(cli)(&record, &out);
			if (out.err)
				cli_die_oom();
			print_event(NULL, out.s, out.len);
			if (++shown == filter.what.limit)
				break;
		}
		if (r < 0 || (filter.what.limit && shown >= filter.what.limit))
			break;
		if (fflush(stdout) != 0)
			break; /* the reader has gone */
		fresh = 1;
		r = hf_journal_wait(reader, -1, &err);
		if (r < 0 && r != -EINTR)
			break;
		if (hf_journal_reader_restarts(reader) > restarts)
			cli_say(cli, "the journal was truncated or replaced; continuing with its present content; "
				     "see 'holdfast journal verify'");
		restarts = hf_journal_reader_restarts(reader);
	}
	if (r < 0)
		status = cli_fail(cli, &err);
	say_damaged(cli, reader);
	hf_journal_reader_free(reader);
	return status;
}
