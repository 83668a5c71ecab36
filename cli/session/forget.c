/* cli/session/forget.c - rm, prune: forgets ended sessions. */
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "session/session.h"

int cmd_rm(struct cli *cli, int argc, char **argv)
{
	return session_each_named(cli, argc, argv, "removed", hf_session_remove);
}

struct pruning {
	struct cli *cli;
	json_t *list; /* with --json */
	int64_t bytes;
};

static void report(void *arg, const char *name, int64_t bytes)
{
	struct pruning *pruning = arg;
	json_t *object;

	pruning->bytes += bytes;
	if (!pruning->list) {
		cli_print_shown(name);
		putchar('\n');
		return;
	}
	object = json_object();
	cli_set(object, "name", cli_text(name));
	cli_set(object, "log_bytes", json_integer(bytes));
	if (json_array_append_new(pruning->list, object) < 0)
		cli_die_oom();
}

int cmd_prune(struct cli *cli, int argc, char **argv)
{
	struct pruning pruning = { .cli = cli };
	struct hf_prune_opts opts = { .size = sizeof(opts), .older_ns = INT64_C(7) * 86400 * HF_SEC, .removed = report, .arg = &pruning };
	uint64_t keep = 0;
	const struct option_spec specs[] = {
		{ "older-than", 0, OPTION_DURATION, &opts.older_ns, "DUR", "sessions that ended more than DUR ago (7d)" },
		{ "max-bytes", 0, OPTION_SIZE, &opts.max_bytes, "SIZE", "also the oldest sessions, until all logs fit in SIZE" },
		{ "keep", 0, OPTION_COUNT, &keep, "N", "keep the newest N" },
		{ "dry-run", 0, OPTION_FLAG, &opts.dry_run, NULL, "print them, but remove nothing" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	AUTO(hf_buf_done) struct hf_buf size = HF_BUF_INIT;
	struct hf_err err = HF_ERR_INIT;
	int status, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	opts.keep = (uint32_t)keep;
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	pruning.list = cli->json ? json_array() : NULL;
	n = hf_sessions_prune(context.sessions, &opts, &err);
	if (n < 0) {
		json_decref(pruning.list);
		return cli_fail(cli, &err);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "pruned", pruning.list);
		cli_set(object, "dry_run", json_boolean(opts.dry_run));
		cli_print_json(object);
	}
	hf_view_size(&size, pruning.bytes);
	cli_say(cli, "%d %s %s, with %s of logs", n, n == 1 ? "session" : "sessions", opts.dry_run ? "would be forgotten" : "forgotten", size.s);
	return HF_EXIT_DONE;
}
