/* cli/cmd_logs.c - logs: what a session put out, and what it puts out next. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "session.h"

#define LOOK_AGAIN_MS 50

/* Copies from the file's position to its end. Returns 0, or -1 when nobody reads it. */
static int copy_rest(int fd)
{
	char chunk[65536];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (fwrite(chunk, 1, (size_t)n, stdout) != (size_t)n)
			return -1;
	return fflush(stdout) == 0 ? 0 : -1;
}

/* Puts the position so that `lines` lines are left. */
static void seek_lines(int fd, uint64_t lines)
{
	off_t at = lseek(fd, 0, SEEK_END);
	char chunk[4096], last = '\n';
	uint64_t seen = 0;

	/* A last line without its newline counts as one. */
	if (at > 0 && pread(fd, &last, 1, at - 1) == 1 && last != '\n')
		seen = 1;
	while (at > 0) {
		off_t from = at > (off_t)sizeof(chunk) ? at - (off_t)sizeof(chunk) : 0;
		ssize_t n = pread(fd, chunk, (size_t)(at - from), from);

		if (n <= 0)
			break;
		for (ssize_t i = n - 1; i >= 0; i--)
			if (chunk[i] == '\n' && seen++ == lines) {
				(void)lseek(fd, from + i + 1, SEEK_SET);
				return;
			}
		at = from;
	}
	(void)lseek(fd, 0, SEEK_SET);
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
static int follow(struct cli *cli, struct session_context *context, const char *name, int fd)
{
	AUTO_FD notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct follow state = { 0 };
	struct hf_err err = HF_ERR_INIT;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (notify < 0 || inotify_add_watch(notify, path, IN_MODIFY) < 0) {
		cli_say(cli, "the log cannot be watched: %s", strerrordesc_np(errno));
		return EXIT_OS;
	}
	for (;;) {
		AUTO_FD pidfd = -1;
		struct pollfd fds[2];
		char events[4096];

		if (hf_session_look(context->sessions, name, note_state, &state, &err) < 0)
			return cli_fail(cli, &err);
		/* What was written before it ended is there now. */
		if (copy_rest(fd) < 0 || state.ended)
			return EXIT_DONE;
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
			while (read(notify, events, sizeof(events)) > 0)
				continue;
			if (copy_rest(fd) < 0)
				return EXIT_DONE;
		} while (!(fds[1].revents & POLLIN));
	}
}

int cmd_logs(struct cli *cli, int argc, char **argv)
{
	uint64_t lines = UINT32_MAX;
	int follows = 0, previous = 0;
	const struct option_spec specs[] = {
		{ "follow", 'f', OPTION_FLAG, &follows, NULL, "show what comes, until the session has ended" },
		{ "lines", 'n', OPTION_COUNT, &lines, "LINES", "only the last LINES" },
		{ "previous", 0, OPTION_FLAG, &previous, NULL, "the log of the run before" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	AUTO_FD fd = -1;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (follows && previous)
		return cli_usage(cli, "the log of the run before does not grow");
	status = session_open(cli, &context);
	if (status != EXIT_DONE)
		return status;
	r = hf_session_log(context.sessions, argv[0], previous ? 1 : 0, &fd, &err);
	if (r == -ENOENT) {
		cli_say(cli, "session '%s' has no log; run it with --log or --detach", argv[0]);
		return EXIT_NO;
	}
	if (r < 0)
		return cli_fail(cli, &err);
	if (lines != UINT32_MAX)
		seek_lines(fd, lines);
	if (follows)
		return follow(cli, &context, argv[0], fd);
	return copy_rest(fd) < 0 ? EXIT_OS : EXIT_DONE;
}
