/* cli/session/logs.c - logs: what a session put out, and what it puts out next. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "session/session.h"
#include "visible.h"

#define LOOK_AGAIN_MS 50

struct logs {
	struct cli *cli;
	struct session_context *context;
	const char *name;
	struct hf_log *log;
	int safe;      /* on a terminal: control bytes are shown, not obeyed */
	struct visible visible;
	uint64_t told; /* of what was dropped */
	int shown;     /* something was */
};

/* Once for what was gone when it was opened; again for what went while nobody took it. */
static void tell_dropped(struct logs *logs)
{
	AUTO(hf_buf_done) struct hf_buf size = HF_BUF_INIT;
	uint64_t dropped = hf_log_dropped(logs->log);

	if (dropped == logs->told)
		return;
	hf_view_size(&size, (int64_t)(dropped - logs->told));
	cli_say(logs->cli, "%s %s of the output were dropped (--log-max)",
		logs->shown ? "here" : "the first", size.s);
	logs->told = dropped;
}

/* 0, or -1 when nobody reads it. */
static int put(struct logs *logs, const char *bytes, size_t n)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	if (!logs->safe)
		return fwrite(bytes, 1, n, stdout) == n ? 0 : -1;
	visible_add(&logs->visible, bytes, n, &out);
	if (out.err)
		cli_die_oom();
	return fwrite(out.s, 1, out.len, stdout) == out.len ? 0 : -1;
}

static void put_end(struct logs *logs)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	visible_end(&logs->visible, &out);
	if (out.err)
		cli_die_oom();
	(void)fwrite(out.s, 1, out.len, stdout);
}

/* Copies what there is. HF_EXIT_DONE, or the status after saying why; *ret_gone: nobody reads it. */
static int copy_rest(struct logs *logs, int *ret_gone)
{
	struct hf_err err = HF_ERR_INIT;
	char chunk[65536];
	int n;

	*ret_gone = 0;
	while ((n = hf_log_read(logs->log, chunk, sizeof(chunk), &err)) > 0) {
		tell_dropped(logs);
		logs->shown = 1;
		*ret_gone = put(logs, chunk, (size_t)n) < 0;
		if (*ret_gone)
			return HF_EXIT_DONE;
	}
	*ret_gone = fflush(stdout) != 0;
	return n < 0 ? cli_fail(logs->cli, &err) : HF_EXIT_DONE;
}

struct follow {
	int ended;
	struct hf_proc_id keeper, supervisor;
};

static void note_state(void *arg, const struct hf_session_info *info)
{
	struct follow *follow = arg;

	follow->ended = info->ended.ns != 0 || info->state == HF_SESSION_DEAD_UNREAPED ||
			info->state == HF_SESSION_FAILED || info->state == HF_SESSION_DONE;
	follow->keeper = info->keeper;
	follow->supervisor = info->supervisor;
}

/* Until the session has ended and all of it is shown. */
static int follow(struct logs *logs)
{
	struct follow state = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int gone, status, notify = hf_log_fd(logs->log, &err);

	if (notify < 0)
		return cli_fail(logs->cli, &err);
	for (;;) {
		AUTO_FD pidfd = -1;
		struct pollfd fds[2];

		if (hf_session_look(logs->context->sessions, logs->name, note_state, &state, &err) < 0)
			return cli_fail(logs->cli, &err);
		/* What was written before it ended is there now. */
		status = copy_rest(logs, &gone);
		if (status != HF_EXIT_DONE || gone || state.ended)
			return status;
		if (hf_proc_open(&state.keeper, 0, &pidfd, NULL) < 0 &&
		    hf_proc_open(&state.supervisor, 0, &pidfd, NULL) < 0) {
			/* It ends just now, or cannot be judged from here: look again. */
			(void)poll(NULL, 0, LOOK_AGAIN_MS);
			continue;
		}
		fds[0] = (struct pollfd){ .fd = notify, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
		do {
			(void)poll(fds, 2, -1);
			status = copy_rest(logs, &gone);
			if (status != HF_EXIT_DONE || gone)
				return status;
		} while (!(fds[1].revents & POLLIN));
	}
}

static int show(struct logs *logs, uint64_t lines, int follows)
{
	struct hf_err err = HF_ERR_INIT;
	int gone, status;

	if (lines != UINT32_MAX && hf_log_tail(logs->log, lines, &err) < 0)
		return cli_fail(logs->cli, &err);
	if (follows)
		return follow(logs);
	status = copy_rest(logs, &gone);
	return status == HF_EXIT_DONE && gone ? HF_EXIT_OS : status;
}

static void say_no_log(struct logs *logs, int previous)
{
	struct hf_log *earlier = NULL;

	if (!previous && hf_session_log(logs->context->sessions, logs->name, 1, &earlier, NULL) == 0)
		cli_say(logs->cli, "the last run of session '%s' was not logged; 'holdfast logs %s "
			"--previous' shows an earlier one", logs->name, logs->name);
	else
		cli_say(logs->cli, "session '%s' has no log; run it with --log or --detach",
			logs->name);
	hf_log_free(earlier);
}

int cmd_logs(struct cli *cli, int argc, char **argv)
{
	uint64_t lines = UINT32_MAX;
	int follows = 0, previous = 0, raw = 0;
	const struct option_spec specs[] = {
		{ "follow", 'f', OPTION_FLAG, &follows, NULL, "show what comes, until the session has ended" },
		{ "lines", 'n', OPTION_COUNT, &lines, "LINES", "only the last LINES" },
		{ "previous", 0, OPTION_FLAG, &previous, NULL, "the log of the run before" },
		{ "raw", 0, OPTION_FLAG, &raw, NULL, "all bytes as they are, on a terminal too" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	struct logs logs = { .cli = cli, .context = &context };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (follows && previous)
		return cli_usage(cli, "the log of the run before does not grow");
	logs.name = argv[0];
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_session_log(context.sessions, logs.name, previous ? 1 : 0, &logs.log, &err);
	if (r == -ENOENT) {
		say_no_log(&logs, previous);
		return HF_EXIT_NO;
	}
	if (r < 0)
		return cli_fail(cli, &err);
	logs.safe = cli->terminal && !raw;
	status = show(&logs, lines, follows);
	put_end(&logs);
	hf_log_free(logs.log);
	return status;
}
