/* cli/session/forget.c - rm, prune: forgets ended sessions, unless their work has not landed. */
#include <limits.h>
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "session/session.h"
#include "session/unlanded.h"

/* Removes one session; with --discard its work first. HF_EXIT_DONE, or the status after printing the reason. */
static int remove_session(struct cli *cli, struct session_context *context, const char *name, uint64_t token, int discard)
{
	struct hf_tx_unlanded work = { .size = sizeof(work) };
	struct hf_err err = HF_ERR_INIT;
	int status, r = hf_session_remove(context->sessions, name, token, &err);

	if (r == HF_E_DIRTY && discard) {
		r = unlanded_drop(cli, name, context->journal, &err);
		if (r >= 0)
			r = hf_session_remove(context->sessions, name, token, &err);
	}
	if (r >= 0)
		return HF_EXIT_DONE;
	status = cli_fail(cli, &err);
	if (r == HF_E_DIRTY && !cli->json && hf_tx_unlanded(cli->state, name, &work, NULL) > 0)
		unlanded_say_commands(cli, name, &work, 0);
	return status;
}

int cmd_rm(struct cli *cli, int argc, char **argv)
{
	uint64_t token = 0;
	int discard = 0;
	const struct option_spec specs[] = {
		SESSION_TOKEN_SPEC(token),
		{ "discard", 0, OPTION_FLAG, &discard, NULL, "also drop work that did not land: its sandbox and its candidate" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	int status, n = cli_options(cli, specs, argc, argv, 1, INT_MAX - 1);

	if (n < 0)
		return cli_options_status(n);
	if (token && n != 1)
		return cli_usage(cli, "--token needs exactly one NAME");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	for (int i = 0; i < n; i++) {
		int one = remove_session(cli, &context, argv[i], token, discard);

		if (one == HF_EXIT_DONE && cli->json)
			session_print_done(argv[i], "removed");
		status = one > status ? one : status;
	}
	return status;
}

struct pruning {
	struct cli *cli;
	struct session_context *context;
	json_t *list, *kept; /* with --json */
	int64_t bytes;
	int discard, dry_run, n_discarded, n_kept, status;
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

/* Called for a session whose work has not landed; with --discard, drops both. */
static void report_kept(void *arg, const char *name)
{
	struct hf_tx_unlanded work = { .size = sizeof(work) };
	struct pruning *pruning = arg;
	struct hf_err err = HF_ERR_INIT;
	int r = hf_tx_unlanded(pruning->cli->state, name, &work, &err);
	json_t *object;

	if (r <= 0)
		(void)snprintf(work.text, sizeof(work.text), "%s", r < 0 ? "it cannot be read" : "its change is part of the branch, but its sandbox still exists");
	if (pruning->discard) {
		cli_say(pruning->cli, "session '%s': %s its work: %s", name, pruning->dry_run ? "would drop" : "dropping", work.text);
		r = pruning->dry_run ? 0 : hf_tx_drop(pruning->cli->state, pruning->context->journal, name, &err);
		if (r >= 0 && !pruning->dry_run)
			r = hf_session_remove(pruning->context->sessions, name, 0, &err);
		if (r < 0) {
			pruning->status = cli_fail(pruning->cli, &err);
			return;
		}
		pruning->n_discarded++;
		report(pruning, name, 0);
		return;
	}
	pruning->n_kept++;
	if (!pruning->kept) {
		cli_say(pruning->cli, "session '%s' is kept: its work has not landed: %s", name, work.text);
		return;
	}
	object = json_object();
	cli_set(object, "name", cli_text(name));
	cli_set(object, "work", cli_text(work.text));
	if (json_array_append_new(pruning->kept, object) < 0)
		cli_die_oom();
}

int cmd_prune(struct cli *cli, int argc, char **argv)
{
	struct pruning pruning = { .cli = cli };
	struct hf_prune_opts opts = { .size = sizeof(opts), .older_ns = INT64_C(7) * 86400 * HF_SEC, .removed = report, .arg = &pruning, .kept = report_kept };
	uint64_t keep = 0;
	const struct option_spec specs[] = {
		{ "older-than", 0, OPTION_DURATION, &opts.older_ns, "DUR", "sessions that ended more than DUR ago (7d)" },
		{ "max-bytes", 0, OPTION_SIZE, &opts.max_bytes, "SIZE", "also the oldest sessions, until all logs fit in SIZE" },
		{ "keep", 0, OPTION_COUNT, &keep, "N", "keep the newest N" },
		{ "discard", 0, OPTION_FLAG, &pruning.discard, NULL, "also sessions whose work did not land; drop that work" },
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
	pruning.context = &context;
	pruning.dry_run = opts.dry_run;
	pruning.list = cli->json ? json_array() : NULL;
	pruning.kept = cli->json ? json_array() : NULL;
	n = hf_sessions_prune(context.sessions, &opts, &err);
	if (n < 0) {
		json_decref(pruning.list);
		json_decref(pruning.kept);
		return cli_fail(cli, &err);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "pruned", pruning.list);
		cli_set(object, "kept", pruning.kept);
		cli_set(object, "dry_run", json_boolean(opts.dry_run));
		cli_print_json(object);
	}
	n += pruning.n_discarded;
	hf_view_size(&size, pruning.bytes);
	cli_say(cli, "%d %s %s, with %s of logs", n, n == 1 ? "session" : "sessions", opts.dry_run ? "would be forgotten" : "forgotten", size.s);
	if (pruning.n_kept > 0)
		cli_say(cli, "%d kept: land or drop their work first, or drop it with --discard", pruning.n_kept);
	return pruning.status;
}
