/*
 * cli/session/terminal/attach.c - attach: connects this terminal to the terminal of a background session.
 *
 * Output comes from the log, so the output since the start is shown first, and a slow viewer delays no process. Typed text goes to the
 * keeper. This terminal is restored at every exit except SIGKILL.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "session/terminal/detach_keys.h"
#include "session/terminal/replay.h"
#include "session/session.h"

#define HELD_MS   1000
#define LONG_LOG  (1 << 20) /* of a larger log only the last lines are shown again */
#define LAST_LINES 2000

/* Resets what a full-screen program may have left set: its screen, hidden cursor, mouse, paste and key modes, colours. */
#define LEAVE_SCREEN "\033[?1049l\033[?47l\033[?25h\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?1004l\033[?2004l\033[?1l\033>\033[<u\033[0m\r\n"

struct attached {
	struct cli *cli;
	const char *name;
	struct session_context context;
	struct hf_attach *attach;
	struct hf_log *log;
	int notify;            /* there may be more output */
	int signals;
	sigset_t mask;         /* the mask to restore */
	int raw;               /* this terminal is in raw mode */
	struct termios modes;  /* the modes to restore */
	struct detach_keys keys;
	struct replay replay;
	int live;              /* the whole history has been shown */
	int known, types;      /* the keeper has answered; it permits typing */
	int wants;             /* this viewer wants to type */
	char typed[1024];      /* text that the keeper has not accepted yet */
	size_t n_typed;
	int input_ended;       /* standard input has ended or is not read */
	int leaves_at_end;     /* leave when standard input ends */
};

/* -- this terminal ------------------------------------------------------------------ */

static void set_raw(struct attached *a)
{
	struct termios raw;

	if (a->raw || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &a->modes) < 0)
		return;
	raw = a->modes;
	cfmakeraw(&raw);
	a->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void restore(struct attached *a)
{
	if (a->raw && a->cli->terminal)
		(void)!write(STDOUT_FILENO, LEAVE_SCREEN, sizeof(LEAVE_SCREEN) - 1);
	if (a->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &a->modes);
	a->raw = 0;
}

static struct winsize own_size(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
		(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size;
}

static int take_signals(struct attached *a)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < 7; i++)
		sigaddset(&set, ((const int[]){ SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGPIPE })[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &a->mask);
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->signals < 0 ? -errno : 0;
}

/* -- output -------------------------------------------------------------------------- */

/* Writes to standard output. Returns 0, or -1 if its reader is gone. */
static int put(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, bytes, n);

		if (done < 0 && (errno == EINTR || errno == EAGAIN)) {
			struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };

			(void)poll(&fd, 1, 1000);
			continue;
		}
		if (done < 0)
			return -1;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Shows the next part of the log. Returns 1; 0 at its present end; -1 if the log cannot be read or the reader of stdout is gone. */
static int show_some(struct attached *a)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;
	struct hf_err err = HF_ERR_INIT;
	char chunk[16384];
	int n = hf_log_read(a->log, chunk, sizeof(chunk), &err);

	if (n < 0) {
		restore(a);
		(void)cli_fail(a->cli, &err);
		return -1;
	}
	if (n == 0) {
		a->live = 1;
		return 0;
	}
	if (a->live)
		return put(chunk, (size_t)n) < 0 ? -1 : 1;
	replay_add(&a->replay, chunk, (size_t)n, &shown);
	if (shown.err)
		cli_die_oom();
	return put(shown.s, shown.len) < 0 ? -1 : 1;
}

/* -- input --------------------------------------------------------------------------- */

static void hand_over(struct attached *a)
{
	while (a->n_typed > 0) {
		int n = hf_attach_type(a->attach, a->typed, a->n_typed);

		if (n <= 0)
			return;
		a->n_typed -= (size_t)n;
		memmove(a->typed, a->typed + n, a->n_typed);
	}
}

/* Reads typed text. Returns 1 if the keys to detach were typed. */
static int take_typed(struct attached *a)
{
	char typed[sizeof(a->typed) / 2];
	size_t n_out;
	ssize_t n = read(STDIN_FILENO, typed, sizeof(typed));
	int leaves;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		a->input_ended = 1;
		return 0;
	}
	leaves = detach_keys_feed(&a->keys, typed, (size_t)n, a->typed + a->n_typed, &n_out);
	if (a->types)
		a->n_typed += n_out;
	hand_over(a);
	return leaves;
}

static void release_held(struct attached *a)
{
	size_t n;

	detach_keys_release(&a->keys, a->typed + a->n_typed, &n);
	if (a->types)
		a->n_typed += n;
	hand_over(a);
}

/* -- the poll ------------------------------------------------------------------------ */

enum leaving { STAYS, LEAVES, ENDED, FAILED };

static enum leaving hear_signals(struct attached *a)
{
	struct signalfd_siginfo info;
	enum leaving leaving = STAYS;

	while (read(a->signals, &info, sizeof(info)) == sizeof(info)) {
		struct winsize size = own_size();

		if (info.ssi_signo == SIGWINCH)
			(void)hf_attach_resize(a->attach, size.ws_row, size.ws_col);
		else if (info.ssi_signo != SIGTSTP && info.ssi_signo != SIGPIPE)
			leaving = LEAVES;
	}
	return leaving;
}

static enum leaving hear_keeper(struct attached *a)
{
	int32_t writer;
	int r = hf_attach_hear(a->attach);

	if (r < 0)
		return ENDED;
	if (r == 0)
		return STAYS;
	a->known = 1;
	a->types = hf_attach_types(a->attach, &writer);
	if (a->types || !a->wants)
		return STAYS;
	cli_say(a->cli, "pid %d has the keyboard; you can only watch until it leaves (--take takes over)", (int)writer);
	/* In raw mode a newline does not return to the first column. */
	if (a->raw && a->cli->terminal)
		(void)put("\r", 1);
	/* With a pipe or file no user can wait. */
	return isatty(STDIN_FILENO) ? STAYS : FAILED;
}

/* Input is read only after the history has been shown, because users type what fits the screen they see. */
static int reads_input(const struct attached *a)
{
	return a->live && a->known && !a->input_ended && a->n_typed <= sizeof(a->typed) / 4;
}

static enum leaving turn(struct attached *a)
{
	int some = show_some(a), n;
	struct pollfd fds[4] = { { .fd = a->signals, .events = POLLIN },
				 { .fd = hf_attach_fd(a->attach), .events = (short)(POLLIN | (a->n_typed > 0 ? POLLOUT : 0)) },
				 { .fd = a->notify, .events = POLLIN },
				 { .fd = reads_input(a) ? STDIN_FILENO : -1, .events = POLLIN } };
	enum leaving leaving;

	if (some < 0)
		return FAILED;
	n = poll(fds, 4, some > 0 ? 0 : a->keys.held > 0 ? HELD_MS : -1);
	if (n == 0 && some == 0)
		release_held(a);
	leaving = hear_signals(a);
	if (leaving == STAYS && fds[1].revents & POLLOUT)
		hand_over(a);
	if (leaving == STAYS && fds[3].revents && take_typed(a))
		leaving = LEAVES;
	if (leaving == STAYS && fds[1].revents & ~POLLOUT)
		leaving = hear_keeper(a);
	/* Leave when a pipe or file has ended and all of it is delivered. */
	if (leaving == STAYS && a->input_ended && a->leaves_at_end && a->n_typed == 0 && a->keys.held == 0)
		leaving = LEAVES;
	return leaving;
}

/* -- all of it ----------------------------------------------------------------------- */

struct last {
	int exit_status;
	enum hf_outcome outcome;
	int64_t log_bytes;
};

static void note_last(void *arg, const struct hf_session_info *info)
{
	struct last *last = arg;

	last->outcome = info->outcome;
	last->exit_status = info->exit_status;
	last->log_bytes = info->log_bytes;
}

/* The session has ended: shows the rest of its output and returns its exit status. */
static int finish(struct attached *a)
{
	struct last last = { .exit_status = HF_EXIT_AROUND };
	struct hf_err err = HF_ERR_INIT;

	if (hf_session_wait(a->context.sessions, a->name, NULL, note_last, &last, &err) < 0) {
		restore(a);
		return cli_fail(a->cli, &err);
	}
	while (show_some(a) > 0)
		continue;
	restore(a);
	cli_say(a->cli, "session '%s' has ended: %s", a->name, hf_outcome_word(last.outcome));
	return last.exit_status;
}

static int open_all(struct attached *a, unsigned flags)
{
	struct winsize size = own_size();
	struct hf_attach_opts opts = { .size = sizeof(opts), .flags = flags, .rows = size.ws_row, .columns = size.ws_col };
	struct last last = { .log_bytes = 0 };
	struct hf_err err = HF_ERR_INIT;
	int status = session_open(a->cli, &a->context);

	if (status != HF_EXIT_DONE)
		return status;
	/* Watch the log before the first read, so that no output is missed. */
	if (hf_session_attach(a->context.sessions, a->name, &opts, &a->attach, &err) < 0 ||
	    hf_session_log(a->context.sessions, a->name, 0, &a->log, &err) < 0)
		return cli_fail(a->cli, &err);
	a->notify = hf_log_fd(a->log, &err);
	if (a->notify < 0)
		return cli_fail(a->cli, &err);
	if (hf_session_look(a->context.sessions, a->name, note_last, &last, NULL) == 0 && last.log_bytes > LONG_LOG &&
	    hf_log_tail(a->log, LAST_LINES, &err) < 0)
		return cli_fail(a->cli, &err);
	return take_signals(a) < 0 ? HF_EXIT_OS : HF_EXIT_DONE;
}

static int stay(struct attached *a)
{
	enum leaving leaving = STAYS;

	while (leaving == STAYS)
		leaving = turn(a);
	if (leaving == ENDED)
		return finish(a);
	restore(a);
	if (leaving == LEAVES && a->live)
		cli_say(a->cli, "detached from session '%s', which keeps running", a->name);
	return leaving == LEAVES ? HF_EXIT_DONE : a->wants && !a->types ? HF_EXIT_NO : HF_EXIT_OS;
}

int cmd_attach(struct cli *cli, int argc, char **argv)
{
	struct attached a = { .cli = cli, .notify = -1, .signals = -1 };
	const char *keys = getenv("HOLDFAST_DETACH_KEYS");
	int read_only = 0, take = 0, status;
	const struct option_spec specs[] = {
		{ "detach-keys", 0, OPTION_TEXT, &keys, "KEYS", "keys that detach (ctrl-p,ctrl-q; $HOLDFAST_DETACH_KEYS)" },
		{ "read-only", 'r', OPTION_FLAG, &read_only, NULL, "watch without typing" },
		{ "take", 0, OPTION_FLAG, &take, NULL, "take the keyboard from another viewer" },
		{ 0 },
	};
	int n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (read_only && take)
		return cli_usage(cli, "--read-only and --take cannot be combined");
	if (detach_keys_parse(&a.keys, keys ? keys : DETACH_KEYS_DEFAULT) < 0)
		return cli_usage(cli, "--detach-keys: '%s' is not a list of keys such as ctrl-p,ctrl-q", keys);
	a.name = argv[0];
	status = open_all(&a, (read_only ? HF_ATTACH_READ_ONLY : 0) | (take ? HF_ATTACH_TAKE : 0));
	/* A viewer that cannot type can still use the keys to detach. */
	a.wants = !read_only;
	a.leaves_at_end = !read_only;
	a.input_ended = read_only && !isatty(STDIN_FILENO);
	if (status == HF_EXIT_DONE) {
		set_raw(&a);
		status = stay(&a);
	}
	hf_attach_free(a.attach);
	hf_log_free(a.log);
	hf_auto_close(&a.signals);
	session_close(&a.context);
	cli_keep_status(cli);
	return status;
}
