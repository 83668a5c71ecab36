/* cli/cmd_ps.c - ps: what the sessions are doing. */
#include <poll.h>
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "hf/view/session.h"
#include "session.h"

struct show {
	const struct cli *cli;
	json_t *list;
	int count;
};

static void print_row(struct show *show, const struct hf_session_info *info)
{
	struct hf_buf cells[HF_VIEW_SESSION_COLUMNS];

	for (int i = 0; i < HF_VIEW_SESSION_COLUMNS; i++)
		cells[i] = (struct hf_buf)HF_BUF_INIT;
	if (show->count++ == 0)
		cli_print_head(hf_view_session_columns, HF_VIEW_SESSION_COLUMNS);
	hf_view_session_cells(info, cells);
	cli_print_row(show->cli, hf_view_session_columns, cells, HF_VIEW_SESSION_COLUMNS, HF_VIEW_SESSION_STATE,
		      hf_view_session_tone(info->state));
}

static void show_one(void *arg, const struct hf_session_info *info)
{
	struct show *show = arg;

	if (!show->cli->json)
		print_row(show, info);
	else if (json_array_append_new(show->list, hf_view_session(info)) < 0)
		cli_die_oom();
}

static int show_all(struct cli *cli, struct session_context *context, const char *name)
{
	struct show show = { .cli = cli, .list = json_array() };
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE;
	int r = name ? hf_session_look(context->sessions, name, show_one, &show, &err)
		     : hf_session_list(context->sessions, show_one, &show, &err);

	if (r < 0) {
		status = cli_fail(cli, &err);
	} else if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "sessions", json_incref(show.list));
		cli_print_json(object);
	}
	json_decref(show.list);
	return status;
}

int cmd_ps(struct cli *cli, int argc, char **argv)
{
	int64_t interval_ns = 2 * HF_SEC;
	uint64_t times = 0;
	int watch = 0;
	const struct option_spec specs[] = {
		{ "watch", 0, OPTION_FLAG, &watch, NULL, "again and again, until interrupted" },
		{ "interval", 0, OPTION_DURATION, &interval_ns, "DUR", "with --watch: how often (2s)" },
		{ "times", 0, OPTION_COUNT, &times, "N", "with --watch: at most N times" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	int status, n = cli_options(cli, specs, argc, argv, 0, 1);

	if (n < 0)
		return cli_options_status(n);
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	for (uint64_t i = 1;; i++) {
		if (watch && cli->colour)
			fputs("\033[H\033[2J", stdout);
		status = show_all(cli, &context, n > 0 ? argv[0] : NULL);
		if (!watch || status != HF_EXIT_DONE || i == times || fflush(stdout) != 0)
			return status;
		(void)poll(NULL, 0, (int)(interval_ns / HF_MSEC < 86400000 ? interval_ns / HF_MSEC : 86400000));
	}
}
