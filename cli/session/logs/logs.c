/* cli/session/logs/logs.c - logs: shows and follows the output of sessions. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "session/fleet/elsewhere.h"
#include "session/logs/log_show.h"

#define LOOK_AGAIN_MS 50
#define NAMES_MAX     64

struct logs {
	struct cli *cli;
	struct session_context context;
	struct log_show show;
	struct log_source sources[NAMES_MAX];
	size_t n;
	uint64_t lines; /* UINT32_MAX: all */
	int follows, previous;
};

static void say_no_log(struct logs *logs, const char *name)
{
	struct hf_log *earlier = NULL;

	if (!logs->previous && hf_session_log(logs->context.sessions, name, 1, &earlier, NULL) == 0)
		cli_say(logs->cli, "the last run of session '%s' was not logged; 'holdfast logs "
			"--previous %s' shows an earlier one", name, cli_word(name));
	else
		cli_say(logs->cli, "session '%s' has no log%s", name, logs->previous ? " of an earlier run" : "; it ran with --no-log");
	hf_log_free(earlier);
}

static int open_source(struct logs *logs, struct log_source *source)
{
	struct hf_err err = HF_ERR_INIT;
	int r;

	hf_log_free(source->log);
	source->log = NULL;
	r = hf_session_log(logs->context.sessions, source->name, logs->previous ? 1 : 0, &source->log, &err);
	if (r == -ENOENT) {
		say_no_log(logs, source->name);
		return HF_EXIT_NO;
	}
	return r < 0 ? cli_fail(logs->cli, &err) : HF_EXIT_DONE;
}

static void note_attempt(void *arg, const struct hf_session_info *info)
{
	*(uint32_t *)arg = info->attempt;
}

/* Reports an attempt that does not exist. With --follow it may still come. */
static int check_attempt(struct logs *logs, const char *name)
{
	uint64_t wanted = logs->show.format.attempt;
	uint32_t last = UINT32_MAX;

	if (wanted == 0 || logs->previous || logs->follows ||
	    hf_session_look(logs->context.sessions, name, note_attempt, &last, NULL) < 0 || wanted <= last)
		return HF_EXIT_DONE;
	cli_say(logs->cli, "session '%s' has no attempt %" PRIu64 "; its last is %u", name, wanted, last);
	return HF_EXIT_NO;
}

/* Selected lines can be counted only from the start of the log. */
static int skip_lines(struct logs *logs, struct log_source *source)
{
	struct log_show count = { .format = logs->show.format, .count_only = 1, .text = HF_BUF_INIT };
	int gone, status = log_show_rest(&count, source, &gone);

	log_show_done(&count);
	logs->show.skip = count.lines > logs->lines ? count.lines - logs->lines : 0;
	source->unknown = source->shown = 0;
	return status == HF_EXIT_DONE ? open_source(logs, source) : status;
}

/* Goes to the first line to show. */
static int go_to_start(struct logs *logs, struct log_source *source)
{
	const struct log_format *f = &logs->show.format;
	struct hf_err err = HF_ERR_INIT;

	logs->show.skip = 0;
	if (logs->lines == UINT32_MAX)
		return HF_EXIT_DONE;
	if (f->since_ns >= 0 || f->until_ns >= 0 || f->attempt || f->only_err || f->only_out)
		return skip_lines(logs, source);
	return hf_log_tail(source->log, logs->lines, &err) < 0 ? cli_fail(logs->cli, &err) : HF_EXIT_DONE;
}

/* -- following ------------------------------------------------------------------- */

struct look {
	int ended;
	struct hf_proc_id keeper, supervisor;
};

static void note_state(void *arg, const struct hf_session_info *info)
{
	struct look *look = arg;

	look->ended = info->ended.ns != 0 || info->state == HF_SESSION_DEAD_UNREAPED ||
		      info->state == HF_SESSION_FAILED || info->state == HF_SESSION_DONE;
	look->keeper = info->keeper;
	look->supervisor = info->supervisor;
}

/* Shows the rest of a log and records the session's end. *ret_pidfd belongs to a process that ends with the session, or is -1. */
static int follow_one(struct logs *logs, struct log_source *source, int *ret_pidfd, int *ret_gone)
{
	struct look look = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status;

	*ret_gone = 0;
	if (hf_session_look(logs->context.sessions, source->name, note_state, &look, &err) < 0)
		return cli_fail(logs->cli, &err);
	/* If the session has ended, its log is complete now. */
	status = log_show_rest(&logs->show, source, ret_gone);
	source->ended = look.ended;
	if (!look.ended && hf_proc_open(&look.keeper, 0, ret_pidfd, NULL) < 0 &&
	    hf_proc_open(&look.supervisor, 0, ret_pidfd, NULL) < 0)
		*ret_pidfd = -1;
	return status;
}

/* Sleeps until a log or session may have changed, and shows new output. Returns 1 if the states must be checked again. */
static int await_more(struct logs *logs, struct pollfd *fds, nfds_t n, int timeout, int *ret_status, int *ret_gone)
{
	(void)poll(fds, n, timeout);
	for (size_t i = 0; i < logs->n && *ret_status == HF_EXIT_DONE && !*ret_gone; i++)
		if (!logs->sources[i].ended)
			*ret_status = log_show_rest(&logs->show, &logs->sources[i], ret_gone);
	if (*ret_status != HF_EXIT_DONE || *ret_gone || timeout >= 0)
		return 1;
	for (nfds_t i = 1; i < n; i += 2)
		if (fds[i].revents & POLLIN)
			return 1;
	return 0;
}

/* Follows until all sessions have ended and all output is shown. */
static int follow(struct logs *logs)
{
	int gone = 0, status = HF_EXIT_DONE;

	for (;;) {
		struct pollfd fds[2 * NAMES_MAX];
		int pidfds[NAMES_MAX], timeout = -1;
		nfds_t n = 0;

		for (size_t i = 0; i < logs->n && status == HF_EXIT_DONE && !gone; i++) {
			struct log_source *source = &logs->sources[i];

			pidfds[n / 2] = -1;
			if (source->ended)
				continue;
			status = follow_one(logs, source, &pidfds[n / 2], &gone);
			if (source->ended)
				continue;
			/* The session is just ending, or its processes cannot be checked from here. */
			if (pidfds[n / 2] < 0)
				timeout = LOOK_AGAIN_MS;
			fds[n] = (struct pollfd){ .fd = source->notify, .events = POLLIN };
			fds[n + 1] = (struct pollfd){ .fd = pidfds[n / 2], .events = POLLIN };
			n += 2;
		}
		while (n > 0 && status == HF_EXIT_DONE && !gone && !await_more(logs, fds, n, timeout, &status, &gone))
			continue;
		for (nfds_t i = 0; i < n / 2; i++)
			hf_auto_close(&pidfds[i]);
		if (n == 0 || status != HF_EXIT_DONE || gone)
			return status;
	}
}

/* -- all of it ------------------------------------------------------------------- */

static int start_following(struct logs *logs, struct log_source *source)
{
	struct hf_err err = HF_ERR_INIT;

	source->notify = hf_log_fd(source->log, &err);
	return source->notify < 0 ? cli_fail(logs->cli, &err) : HF_EXIT_DONE;
}

/* Shows the logs one after the other, then follows all of them with --follow. A name without a log does not stop the others. */
static int show_all(struct logs *logs, char **names, size_t n)
{
	int worst = HF_EXIT_DONE, status;

	for (size_t i = 0; i < n; i++) {
		struct log_source *source = &logs->sources[logs->n];
		int gone = 0;

		*source = (struct log_source){ .name = names[i], .notify = -1 };
		status = open_source(logs, source);
		if (status == HF_EXIT_DONE)
			status = check_attempt(logs, names[i]);
		if (status == HF_EXIT_DONE)
			status = go_to_start(logs, source);
		if (status == HF_EXIT_DONE && logs->follows)
			status = start_following(logs, source);
		if (status == HF_EXIT_DONE)
			status = log_show_rest(&logs->show, source, &gone);
		if (source->log)
			logs->n++;
		if (status != HF_EXIT_DONE)
			worst = status;
		if (gone)
			return HF_EXIT_OS;
	}
	status = logs->follows && logs->n > 0 ? follow(logs) : HF_EXIT_DONE;
	return status != HF_EXIT_DONE ? status : worst;
}

static int check(struct logs *logs)
{
	const struct log_format *f = &logs->show.format;

	if (logs->follows && logs->previous)
		return cli_usage(logs->cli, "--follow and --previous cannot be combined");
	if (logs->follows && f->until_ns >= 0)
		return cli_usage(logs->cli, "--follow and --until cannot be combined");
	if (f->only_err && f->only_out)
		return cli_usage(logs->cli, "--stderr and --stdout cannot be combined");
	return HF_EXIT_DONE;
}

int cmd_logs(struct cli *cli, int argc, char **argv)
{
	struct logs logs = { .cli = cli, .lines = UINT32_MAX };
	struct log_format *f = &logs.show.format;
	int raw = 0;
	const struct option_spec specs[] = {
		{ "follow", 'f', OPTION_FLAG, &logs.follows, NULL, "follow the output until the session ends" },
		{ "lines", 'n', OPTION_COUNT, &logs.lines, "LINES", "show only the last LINES" },
		{ "times", 't', OPTION_FLAG, &f->times, NULL, "print the time before each line" },
		{ "since", 0, OPTION_WHEN, &f->since_ns, "WHEN", "only output since WHEN: 10m (ago), 14:05, yesterday, a date" },
		{ "until", 0, OPTION_WHEN, &f->until_ns, "WHEN", "only output until WHEN" },
		{ "attempt", 0, OPTION_COUNT, &f->attempt, "N", "only attempt N" },
		{ "stderr", 0, OPTION_FLAG, &f->only_err, NULL, "only standard error" },
		{ "stdout", 0, OPTION_FLAG, &f->only_out, NULL, "only standard output" },
		{ "previous", 0, OPTION_FLAG, &logs.previous, NULL, "the log of the previous run" },
		{ "raw", 0, OPTION_FLAG, &raw, NULL, "print control characters unchanged on a terminal, too" },
		{ 0 },
	};
	int status, n;

	f->cli = cli;
	f->since_ns = f->until_ns = -1;
	logs.show.text = (struct hf_buf)HF_BUF_INIT;
	n = cli_options(cli, specs, argc, argv, 1, NAMES_MAX);
	if (n < 0)
		return cli_options_status(n);
	status = check(&logs);
	if (status != HF_EXIT_DONE)
		return status;
	f->safe = cli->terminal && !raw;
	f->colour = cli->colour && !raw && !cli->json;
	for (int i = 0; n > 1 && i < n; i++)
		if ((int)strlen(argv[i]) > f->name_width)
			f->name_width = (int)strlen(argv[i]);
	status = session_open(cli, &logs.context);
	for (int i = 0; status == HF_EXIT_DONE && i < n; i++)
		status = elsewhere_log(cli, &logs.context, argv[i]);
	if (status == HF_EXIT_DONE)
		status = show_all(&logs, argv, (size_t)n);
	for (size_t i = 0; i < logs.n; i++) {
		log_show_end(&logs.show, &logs.sources[i]);
		hf_log_free(logs.sources[i].log);
	}
	log_show_done(&logs.show);
	session_close(&logs.context);
	return status;
}
