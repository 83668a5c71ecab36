/* cli/session/ps.c - ps: lists sessions and their states. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hf/base/cleanup.h"
#include "hf/view/session/session.h"
#include "hf/view/session/work.h"
#include "session/fleet/elsewhere.h"
#include "session/session.h"
#include "screen/table.h"

#define RECENT_NS (INT64_C(86400) * HF_SEC)

static const int usual[] = { HF_SESSION_COLUMN_NAME, HF_SESSION_COLUMN_STATE, HF_SESSION_COLUMN_AGE, HF_SESSION_COLUMN_LEFT,
			     HF_SESSION_COLUMN_CPU,  HF_SESSION_COLUMN_MEM,   HF_SESSION_COLUMN_TRY, HF_SESSION_COLUMN_COMMAND };

/* A session to show. */
struct seen {
	int ended;
	struct hf_view_rank rank;
	json_t *json;
	struct table_row *row;
};

struct show {
	const struct cli *cli;
	int all;              /* include sessions that ended long ago */
	int shown[HF_VIEW_SESSION_COLUMNS];
	int n_shown;
	int chosen;           /* columns from -o: none is dropped */
	struct seen *seen;
	struct hf_view_work *work; /* NULL: not needed, or not available */
	struct hf_facts *facts;
	size_t n, running, needing, hidden;
	int status;           /* exit status for unknown names */
};

static void show_done(struct show *show)
{
	for (size_t i = 0; i < show->n; i++) {
		json_decref(show->seen[i].json);
		if (show->seen[i].row)
			table_row_free(show->seen[i].row);
	}
	free(show->seen);
	show->seen = NULL;
	hf_view_work_free(show->work);
	show->work = NULL;
	hf_facts_free(show->facts);
	show->facts = NULL;
	show->n = show->running = show->needing = show->hidden = 0;
}

/* -- columns ----------------------------------------------------------------------------- */

static int find_column(const char *name, size_t len)
{
	for (int i = 0; i < HF_VIEW_SESSION_COLUMNS; i++)
		if (strlen(hf_view_session_columns[i].title) == len && strncasecmp(hf_view_session_columns[i].title, name, len) == 0)
			return i;
	return -1;
}

/* Parses "wide" or a comma-separated list of columns. Returns 0, or the exit status after reporting an error. */
static int choose_columns(const struct cli *cli, const char *text, struct show *show)
{
	show->n_shown = (int)(sizeof(usual) / sizeof(usual[0]));
	memcpy(show->shown, usual, sizeof(usual));
	show->chosen = text != NULL;
	if (!text)
		return 0;
	show->n_shown = 0;
	if (strcmp(text, "wide") == 0) {
		for (int i = 0; i < HF_VIEW_SESSION_COLUMNS; i++)
			show->shown[show->n_shown++] = i;
		return 0;
	}
	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		int column = find_column(at, len);

		if (column < 0)
			return cli_usage(cli, "no column '%.*s'; use wide, or some of name,state,pid,age,left,procs,mem,cpu,"
					      "output,try,token,cwd,peak,bytes,needs,command", (int)len, at);
		if (show->n_shown == HF_VIEW_SESSION_COLUMNS)
			return cli_usage(cli, "too many columns");
		show->shown[show->n_shown++] = column;
		at += len;
		if (!*at)
			return 0;
	}
}

/* -- sessions ------------------------------------------------------------------------------ */

static void note_session(void *arg, const struct hf_session_info *info)
{
	struct show *show = arg;
	int ended = info->outcome != HF_OUTCOME_NONE;
	struct seen seen = { .ended = ended };
	struct hf_view_facts facts;
	struct seen *grown;

	hf_facts_of(show->facts, info, &facts);
	seen.rank = hf_view_session_rank(info, &facts);
	if (ended && !show->all && seen.rank.group != 0 && hf_wall_now().ns - info->ended.ns > RECENT_NS) {
		show->hidden++;
		return;
	}
	if (show->cli->json) {
		seen.json = hf_view_session(info, &facts);
		hf_view_work_set(show->work, info, &seen.json);
		if (!seen.json)
			cli_die_oom();
	} else {
		seen.row = table_row_new();
		seen.row->tone = hf_view_session_tone(info->state);
		seen.row->note_end = hf_view_session_cells(info, &facts, seen.row->cells, &seen.row->note);
		if (show->shown[show->n_shown - 1] != HF_SESSION_COLUMN_COMMAND) {
			hf_buf_reset(&seen.row->note);
			seen.row->note_end = 0;
		}
	}
	grown = reallocarray(show->seen, show->n + 1, sizeof(*grown));
	if (!grown)
		cli_die_oom();
	show->seen = grown;
	grown[show->n++] = seen;
	show->running += !ended;
	show->needing += seen.rank.group == 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return hf_view_rank_compare(&x->rank, &y->rank);
}

static void print_json(const struct show *show)
{
	json_t *list = json_array(), *object = json_object();

	for (size_t i = 0; i < show->n; i++)
		if (json_array_append(list, show->seen[i].json) < 0)
			cli_die_oom();
	cli_set(object, "sessions", list);
	cli_print_json(object);
}

/* Columns to drop on a narrow screen, so that the last one has room for why a session needs a person. */
static const int spare[] = { HF_SESSION_COLUMN_MEM, HF_SESSION_COLUMN_CPU, HF_SESSION_COLUMN_TRY, HF_SESSION_COLUMN_LEFT };

static void print_table(const struct cli *cli, struct show *show, int no_cut, int lines, const char *end)
{
	AUTO(table_done) struct table table = { .columns = hf_view_session_columns, .shown = show->shown,
						.n_shown = show->n_shown, .toned = HF_SESSION_COLUMN_STATE,
						.no_cut = no_cut, .spare = spare, .n_spare = show->chosen ? 0 : 4 };

	for (size_t i = 0; i < show->n; i++) {
		table_add(&table, show->seen[i].row);
		show->seen[i].row = NULL;
	}
	table_print(cli, &table, lines, end);
}

/* Draws over the previous screen, to avoid flicker, and never more than fits. */
static void draw(const struct cli *cli, struct show *show, int no_cut, int64_t interval_ns)
{
	AUTO(hf_buf_done) struct hf_buf every = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf title = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf cut = HF_BUF_INIT;
	int columns, lines;
	char clock[16] = "";
	time_t now = time(NULL);
	struct tm local;

	table_screen(&columns, &lines);
	if (localtime_r(&now, &local))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	hf_view_duration(&every, interval_ns);
	if (every.err)
		cli_die_oom();
	hf_buf_add_format(&title, "holdfast: %zu running, %zu ended", show->running, show->n - show->running);
	if (show->needing > 0)
		hf_buf_add_format(&title, ", %zu %s you", show->needing, show->needing == 1 ? "needs" : "need");
	hf_buf_add_format(&title, "; every %s; %s", every.s, clock);
	if (title.err)
		cli_die_oom();
	(void)table_cut(&cut, title.s, columns);
	if (cut.err)
		cli_die_oom();
	printf("\033[H%s\033[K\n\033[K\n", cut.s);
	if (show->n > 0)
		print_table(cli, show, no_cut, lines > 4 ? lines - 3 : 1, "\033[K");
	fputs("\033[J", stdout);
}

static void count_hidden(void *arg, const struct hf_session_info *info)
{
	(void)info;
	++*(size_t *)arg;
}

static void say_none(const struct cli *cli, struct session_context *context, struct show *show)
{
	if (!show->all)
		(void)!hf_session_list(context->sessions, count_hidden, &show->hidden, NULL);
	if (show->hidden > 0)
		cli_say(cli, "no session is running or ended within a day; 'holdfast ps -a' shows %zu older", show->hidden);
	else
		cli_say(cli, "no sessions yet: 'holdfast run NAME -- CMD...' makes one");
}

/* Collects the named sessions, in that order; without names, the recent ones. */
static int collect(struct session_context *context, struct show *show, char **names, int n, struct hf_err *err)
{
	int r = 0;

	show->facts = hf_facts_open(show->cli->state, context->sessions);
	if (n == 0) {
		r = show->all ? hf_session_list(context->sessions, note_session, show, err)
			      : hf_session_list_recent(context->sessions, RECENT_NS, note_session, show, err);
		if (show->n > 1)
			qsort(show->seen, show->n, sizeof(*show->seen), by_rank);
	}
	for (int i = 0; r == 0 && i < n; i++) {
		r = hf_session_look(context->sessions, names[i], note_session, show, err);
		/* Show the others anyway. JSON is a single answer, so there an unknown name is an error. */
		if (r == HF_E_NO_SESSION && n > 1 && !show->cli->json) {
			show->status = cli_fail(show->cli, err);
			r = 0;
		}
	}
	return r;
}

/* An empty handler: the signal only ends the sleep. */
static void wake(int signal)
{
	(void)signal;
}

/* From now on SIGWINCH is delivered only during a sleep with this mask, and ends the sleep. */
static void hear_resize(sigset_t *ret_asleep)
{
	sigset_t resize;

	(void)sigaction(SIGWINCH, &(struct sigaction){ .sa_handler = wake }, NULL);
	(void)sigemptyset(&resize);
	(void)sigaddset(&resize, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &resize, ret_asleep);
	(void)sigdelset(ret_asleep, SIGWINCH);
}

int cmd_ps(struct cli *cli, int argc, char **argv)
{
	int64_t interval_ns = 2 * HF_SEC;
	uint64_t times = 0;
	const char *columns = NULL;
	int watch = 0, no_cut = 0, all_hosts = 0;
	AUTO(show_done) struct show show = { .cli = cli };
	const struct option_spec specs[] = {
		{ "all", 'a', OPTION_FLAG, &show.all, NULL, "include sessions that ended more than a day ago and do not need you" },
		{ "output", 'o', OPTION_TEXT, &columns, "COLUMNS", "wide, or a comma-separated list of columns" },
		{ "all-hosts", 0, OPTION_FLAG, &all_hosts, NULL, "sessions of all machines of the store (--store)" },
		{ "no-trunc", 0, OPTION_FLAG, &no_cut, NULL, "do not cut lines at the width of the terminal" },
		{ "watch", 0, OPTION_FLAG, &watch, NULL, "repeat until interrupted" },
		{ "interval", 0, OPTION_DURATION, &interval_ns, "DUR", "with --watch: the time between two screens (2s)" },
		{ "times", 0, OPTION_COUNT, &times, "N", "with --watch: at most N times" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	const char *term = getenv("TERM");
	struct timespec sleep = { 0 };
	sigset_t asleep;
	int screen = cli->terminal && term && strcmp(term, "dumb") != 0;
	int status, n = cli_options(cli, specs, argc, argv, 0, INT_MAX - 1);

	if (n < 0)
		return cli_options_status(n);
	if (all_hosts && (watch || columns))
		return cli_usage(cli, "--all-hosts cannot be combined with --watch or --output");
	if (all_hosts)
		return elsewhere_list(cli, show.all, no_cut, argv, n);
	status = choose_columns(cli, columns, &show);
	if (status == 0)
		status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	show.all |= n > 0;
	sleep.tv_sec = interval_ns / HF_SEC;
	sleep.tv_nsec = interval_ns % HF_SEC;
	if (watch && screen)
		hear_resize(&asleep);
	for (uint64_t i = 1;; i++) {
		struct hf_err err = HF_ERR_INIT;

		show.work = cli->json ? hf_view_work_open(cli->state) : NULL;
		if (collect(&context, &show, argv, n, &err) < 0)
			return cli_fail(cli, &err);
		if (cli->json)
			print_json(&show);
		else if (watch && screen)
			draw(cli, &show, no_cut, interval_ns);
		else if (show.n > 0)
			print_table(cli, &show, no_cut, 0, "");
		else if (n == 0)
			say_none(cli, &context, &show);
		show_done(&show);
		if (!watch || i == times || fflush(stdout) != 0)
			return show.status;
		/* A change of the screen's size ends the sleep. */
		(void)ppoll(NULL, 0, &sleep, watch && screen ? &asleep : NULL);
	}
}
