/* cli/journal/check.c - journal stats and verify: counts records, and checks that all are intact. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "cli.h"
#include "holdfast/journal.h"

struct stats {
	struct hf_journal_totals totals;
	uint64_t records, damaged;
	struct hf_wall first, last;
	json_t *events;     /* event: count */
	json_t *fail_opens; /* name: count */
	json_t *skips;      /* name: count */
};

static void count(json_t *object, const char *key)
{
	cli_set(object, key,
		json_integer(json_integer_value(json_object_get(object, key)) + 1));
}

static void count_record(struct stats *stats, const struct hf_record *record)
{
	if (stats->records++ == 0)
		stats->first = record->time;
	stats->last = record->time;
	count(stats->events, record->event);
	if (!record->info || !record->name)
		return;
	if (record->info->event == HF_EV_LOCK_FAIL_OPEN)
		count(stats->fail_opens, record->name);
	else if (record->info->event == HF_EV_LOCK_SKIPPED)
		count(stats->skips, record->name);
}

static void print_counts(const char *title, json_t *counts)
{
	const char *key;
	json_t *value;

	if (json_object_size(counts) == 0)
		return;
	printf("\n%s\n", title);
	json_object_foreach(counts, key, value) {
		AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

		hf_buf_add_shown(&shown, key, strlen(key));
		printf("  %-24s %8lld\n", shown.s, (long long)json_integer_value(value));
	}
}

static void print_stats(const struct stats *stats)
{
	AUTO(hf_buf_done) struct hf_buf span = HF_BUF_INIT;
	char first[HF_WALL_TEXT_MAX] = "-", last[HF_WALL_TEXT_MAX] = "-";

	if (stats->records > 0) {
		hf_wall_format(stats->first, first);
		hf_wall_format(stats->last, last);
		hf_buf_add_duration(&span, stats->last.ns - stats->first.ns);
	}
	printf("records   %llu in %llu segment(s), %llu bytes\n", (unsigned long long)stats->records,
	       (unsigned long long)stats->totals.segments, (unsigned long long)stats->totals.bytes);
	printf("from      %s\nto        %s%s%s\n", first, last, span.len ? "  over " : "", span.s);
	printf("sequence  %llu\n", (unsigned long long)stats->totals.seq);
	printf("lost      %llu\n", (unsigned long long)stats->totals.lost);
	printf("damaged   %llu\n", (unsigned long long)stats->damaged);
	print_counts("events", stats->events);
	print_counts("worked without the lock (lock_fail_open), by name", stats->fail_opens);
	print_counts("skipped (lock_skipped), by name", stats->skips);
}

static void print_stats_json(struct stats *stats)
{
	json_t *object = json_object();
	char text[HF_WALL_TEXT_MAX];

	cli_set(object, "records", json_integer((json_int_t)stats->records));
	if (stats->records > 0) {
		hf_wall_format(stats->first, text);
		cli_set(object, "first", json_string(text));
		hf_wall_format(stats->last, text);
		cli_set(object, "last", json_string(text));
	}
	cli_set(object, "seq", json_integer((json_int_t)stats->totals.seq));
	cli_set(object, "lost", json_integer((json_int_t)stats->totals.lost));
	cli_set(object, "damaged", json_integer((json_int_t)stats->damaged));
	cli_set(object, "bytes", json_integer((json_int_t)stats->totals.bytes));
	cli_set(object, "segments", json_integer((json_int_t)stats->totals.segments));
	cli_set(object, "events", json_incref(stats->events));
	cli_set(object, "fail_opens", json_incref(stats->fail_opens));
	cli_set(object, "skips", json_incref(stats->skips));
	cli_print_json(object);
}

static void stats_done(struct stats *stats)
{
	json_decref(stats->events);
	json_decref(stats->fail_opens);
	json_decref(stats->skips);
}

int cmd_journal_stats(struct cli *cli, int argc, char **argv)
{
	AUTO(stats_done) struct stats stats = { .events = json_object(),
						.fail_opens = json_object(),
						.skips = json_object() };
	int64_t since_ns = 0;
	const struct option_spec specs[] = {
		{ "since", 'S', OPTION_WHEN, &since_ns, "WHEN", "only records since WHEN (5m, yesterday, 07:30, 2026-11-18)" },
		{ 0 },
	};
	struct hf_journal_reader *reader;
	struct hf_err err = HF_ERR_INIT;
	struct hf_record record;
	struct hf_state *state;
	int status = HF_EXIT_DONE, r;
	int n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	state = cli_state(cli, 0, &status);
	if (!state)
		return status;
	if (hf_journal_totals(state, &stats.totals, &err) < 0 ||
	    hf_journal_read(state, &reader, &err) < 0)
		return cli_fail(cli, &err);
	while ((r = hf_journal_next(reader, &record, &err)) > 0)
		if (record.time.ns >= since_ns)
			count_record(&stats, &record);
	stats.damaged = hf_journal_reader_damaged(reader);
	hf_journal_reader_free(reader);
	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->json)
		print_stats_json(&stats);
	else
		print_stats(&stats);
	return HF_EXIT_DONE;
}

static const char *const problem_words[] = {
	[HF_PROBLEM_DAMAGED] = "damaged", [HF_PROBLEM_TORN] = "torn",
	[HF_PROBLEM_GAP] = "gap",	  [HF_PROBLEM_REPEAT] = "repeat",
	[HF_PROBLEM_EVENT] = "event",	  [HF_PROBLEM_TAIL] = "tail",
	[HF_PROBLEM_FILE] = "file",	  [HF_PROBLEM_COUNTERS] = "counters",
};

struct report {
	const struct cli *cli;
	json_t *list;
};

static void report_problem(void *arg, const struct hf_problem_info *problem)
{
	struct report *report = arg;

	if (report->cli->json) {
		json_t *item = json_object();

		cli_set(item, "problem", json_string(problem_words[problem->problem]));
		cli_set(item, "file", cli_text(problem->file));
		cli_set(item, "line", json_integer((json_int_t)problem->line));
		cli_set(item, "offset", json_integer((json_int_t)problem->offset));
		cli_set(item, "seq", json_integer((json_int_t)problem->seq));
		cli_set(item, "text", cli_text(problem->text));
		if (json_array_append_new(report->list, item) < 0)
			cli_die_oom();
		return;
	}
	printf("journal/%s", problem->file);
	if (problem->line > 0)
		printf(":%llu", (unsigned long long)problem->line);
	printf(": %s: ", problem_words[problem->problem]);
	{
		AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

		hf_buf_add_shown(&shown, problem->text, strlen(problem->text));
		puts(shown.s);
	}
}

int cmd_journal_verify(struct cli *cli, int argc, char **argv)
{
	struct report report = { .cli = cli, .list = NULL };
	struct hf_verify_result result;
	struct hf_err err = HF_ERR_INIT;
	struct hf_state *state;
	int status = HF_EXIT_DONE;
	int n = cli_options(cli, NULL, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	state = cli_state(cli, 0, &status);
	if (!state)
		return status;
	report.list = json_array();
	if (hf_journal_verify(state, report_problem, &report, &result, &err) < 0) {
		json_decref(report.list);
		return cli_fail(cli, &err);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "records", json_integer((json_int_t)result.records));
		cli_set(object, "first", json_integer((json_int_t)result.first));
		cli_set(object, "last", json_integer((json_int_t)result.last));
		cli_set(object, "lost", json_integer((json_int_t)result.lost));
		cli_set(object, "torn", json_integer((json_int_t)result.torn));
		cli_set(object, "problems", report.list);
		cli_print_json(object);
	} else {
		json_decref(report.list);
		printf("%llu record(s), sequence %llu to %llu: ", (unsigned long long)result.records,
		       (unsigned long long)result.first, (unsigned long long)result.last);
		cli_colour(cli, result.problems ? "1;31" : "1;32");
		if (result.problems)
			printf("%llu problem(s)", (unsigned long long)result.problems);
		else
			printf("whole");
		cli_colour(cli, NULL);
		if (result.torn)
			printf(", %llu unfinished line(s), never reported as written",
			       (unsigned long long)result.torn);
		if (result.lost)
			printf(", %llu counted as lost", (unsigned long long)result.lost);
		putchar('\n');
	}
	return result.problems ? HF_EXIT_NO : HF_EXIT_DONE;
}
