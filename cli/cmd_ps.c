/* cli/cmd_ps.c - ps: what the sessions are doing. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "session.h"

struct show {
	const struct cli *cli;
	json_t *list;
	int count;
};

static const char *colour_of(enum hf_session_state state)
{
	switch (state) {
	case HF_SESSION_RUNNING:
	case HF_SESSION_STARTING:
	case HF_SESSION_VERIFYING:
	case HF_SESSION_DONE:
		return "32";
	case HF_SESSION_FAILING:
	case HF_SESSION_FAILED:
	case HF_SESSION_VERIFY_FAILED:
	case HF_SESSION_DEAD_UNREAPED:
	case HF_SESSION_UNREADABLE:
		return "31";
	case HF_SESSION_HUNG:
	case HF_SESSION_STOPPING:
	case HF_SESSION_STOPPED:
	case HF_SESSION_WAITING:
	default:
		return "33";
	}
}

static void print_row(struct show *show, const struct hf_session_info *info)
{
	AUTO(hf_buf_done) struct hf_buf name = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf left = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf memory = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf cpu = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf output = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf tail = HF_BUF_INIT;
	const char *cause;

	if (show->count++ == 0)
		printf("%-20s  %-13s  %7s  %7s  %7s  %5s  %6s  %7s  %7s  %3s  %-16s  %s\n", "NAME",
		       "STATE", "PID", "AGE", "LEFT", "PROCS", "MEM", "CPU", "OUTPUT", "TRY", "TOKEN",
		       "COMMAND");
	hf_buf_add_shown(&name, info->name, strlen(info->name));
	session_add_duration(&age, info->age_ns);
	session_add_duration(&left, info->deadline_left_ns);
	session_add_size(&memory, info->memory_bytes);
	session_add_duration(&cpu, info->cpu_ns);
	session_add_duration(&output, info->output_age_ns);
	hf_buf_add_shown(&tail, info->command, strlen(info->command));
	cause = info->outcome != HF_OUTCOME_NONE ? info->cause : info->pid == 0 ? info->last.cause : "";
	if (cause[0]) {
		hf_buf_add_text(&tail, "  (");
		hf_buf_add_shown(&tail, cause, strlen(cause));
		hf_buf_add_char(&tail, ')');
	}
	if (info->log_dropped_bytes > 0) {
		hf_buf_add_text(&tail, "  [log: the first ");
		session_add_size(&tail, info->log_dropped_bytes);
		hf_buf_add_text(&tail, " dropped]");
	}
	printf("%-20s  ", name.s);
	cli_colour(show->cli, colour_of(info->state));
	printf("%-13s", hf_session_word(info->state));
	cli_colour(show->cli, NULL);
	if (info->pid)
		printf("  %7d", (int)info->pid);
	else
		printf("  %7s", "-");
	printf("  %7s  %7s  ", age.s, left.s);
	if (info->processes >= 0)
		printf("%5lld", (long long)info->processes);
	else
		printf("%5s", "-");
	printf("  %6s  %7s  %7s  %3u  %-16llu  %s\n", memory.s, cpu.s, output.s, info->attempt,
	       (unsigned long long)info->token, tail.s);
}

static void show_one(void *arg, const struct hf_session_info *info)
{
	struct show *show = arg;

	if (!show->cli->json)
		print_row(show, info);
	else if (json_array_append_new(show->list, session_json(info)) < 0)
		cli_die_oom();
}

static int show_all(struct cli *cli, struct session_context *context, const char *name)
{
	struct show show = { .cli = cli, .list = json_array() };
	struct hf_err err = HF_ERR_INIT;
	int status = EXIT_DONE;
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
	if (status != EXIT_DONE)
		return status;
	for (uint64_t i = 1;; i++) {
		if (watch && cli->colour)
			fputs("\033[H\033[2J", stdout);
		status = show_all(cli, &context, n > 0 ? argv[0] : NULL);
		if (!watch || status != EXIT_DONE || i == times || fflush(stdout) != 0)
			return status;
		(void)poll(NULL, 0, (int)(interval_ns / HF_MSEC < 86400000 ? interval_ns / HF_MSEC : 86400000));
	}
}
