/*
 * run/keeper/notifier.c - the process that runs the notify command.
 *
 * A notice must not delay the next attempt or the end of the session: a mail server may hang for a minute. So the first
 * notice of a run forks the notifier, which gets this one and all later ones through a socket and runs the command for one after
 * the other. It outlives the keeper until all are told.
 *
 * It is no part of the session: it has none of its marks and is not in its cgroup; the tree that the keeper ends does not
 * contain it (hf_tree_add_beside); it holds neither lock nor log nor any other descriptor of the keeper, and has no terminal. So
 * the name is free, and a reader of a pipe sees its end, while a notice is still being told.
 *
 * It is bounded: each command with all that it starts ends within NOTICE_NS and GRACE_NS, and the notifier LAST_NS after the keeper.
 * Each notice leaves one event (L8): the status of the command, 124 when it took too long, 125 when it was not run.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/exec/command.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"
#include "holdfast/exit.h"

#define NOTICE_NS (30 * HF_SEC)
#define GRACE_NS  (2 * HF_SEC)
#define LAST_NS   (60 * HF_SEC)
#define SAID_MAX  300            /* of what a command that failed wrote */
#define LEAVE_NS  HF_SEC         /* for a supervisor that was stopped */
#define COMM      "hf-notify"

/* -- the event ------------------------------------------------------------------------ */

static void tell_event(const struct hf_sessions *sessions, const char *name, const struct hf_notice *notice, int status, const char *said)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("outcome", notice->outcome), HF_FIELD_INT("same", notice->same),
				     HF_FIELD_INT("status", status), HF_FIELD_TEXT("said", said) };

	hf_session_event(sessions, HF_EV_SESSION_NOTIFIED, name, fields, said[0] ? 4 : 3);
}

/* -- the notifier ------------------------------------------------------------------------ */

struct notifier {
	struct hf_sessions sessions; /* its journal, and nothing else */
	const char *name;
	char *command;
	int socket;
	struct hf_mono until; /* all must be told by then; never, while the keeper lives */
};

/* What it writes is for the event alone: a terminal has the user's next command on it by now. */
static int join_streams(void *arg)
{
	(void)arg;
	return dup2(STDOUT_FILENO, STDERR_FILENO) < 0 ? -errno : 0;
}

static int memory_file(const char *text)
{
	AUTO_FD fd = memfd_create("holdfast", MFD_CLOEXEC);

	if (fd < 0 || hf_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return fd_take(&fd);
}

/* Begins what the command said, in one line. */
static void read_said(int fd, char out[SAID_MAX + 1])
{
	char text[SAID_MAX + 1];
	ssize_t n = pread(fd, text, SAID_MAX, 0);

	text[n > 0 ? n : 0] = '\0';
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	for (size_t len = strlen(text); len > 0 && text[len - 1] == ' '; len--)
		text[len - 1] = '\0';
	(void)hf_plain_text(out, SAID_MAX + 1, text, strlen(text));
}

static int status_of(const struct hf_command_result *result)
{
	if (result->error != 0)
		return HF_EXIT_AROUND;
	if (result->exec_error != 0)
		return hf_spawn_status(result->exec_error);
	if (result->timed_out)
		return HF_EXIT_TIMED_OUT;
	return result->code == CLD_EXITED ? result->status : HF_EXIT_SIGNAL + result->status;
}

static void run_notice(const struct notifier *n, const struct hf_notice *notice)
{
	AUTO_FD in = memory_file(notice->text);
	AUTO_FD out = memory_file("");
	char shell[] = "sh", dash_c[] = "-c", said[SAID_MAX + 1] = "";
	char *argv[] = { shell, dash_c, n->command, NULL };
	int64_t left = hf_mono_left(n->until);
	struct hf_command command = { .argv = argv,
				      .envp = environ,
				      .in = in,
				      .out = out,
				      .out_max = SAID_MAX,
				      .limit_ns = left < NOTICE_NS ? left : NOTICE_NS,
				      .grace_ns = GRACE_NS,
				      .enter = join_streams };
	struct hf_command_result result = { .error = -ENOMEM };
	int status;

	if (left > 0 && in >= 0 && out >= 0)
		hf_command_run(&command, &result);
	status = status_of(&result);
	if (left == 0)
		hf_copy_text(said, sizeof(said), "not sent: earlier notices took too long");
	else if (status != 0 && out >= 0)
		read_said(out, said);
	tell_event(&n->sessions, n->name, notice, status, said);
}

/* The next one; 0: there is none, and the keeper is gone. */
static int receive(struct notifier *n, struct hf_notice *ret)
{
	struct pollfd ready = { .fd = n->socket, .events = POLLIN };
	ssize_t len;

	do
		len = hf_sys.poll(&ready, 1, -1) < 0 ? -1 : recv(n->socket, ret, sizeof(*ret) - 1, 0);
	while (len < 0 && errno == EINTR);
	if (len < (ssize_t)offsetof(struct hf_notice, text))
		return 0;
	((char *)ret)[len] = '\0';
	/* From here on there are only those that were sent before. */
	if (ready.revents & POLLHUP && n->until.ns == HF_MONO_NEVER.ns)
		n->until = hf_mono_in(LAST_NS);
	return 1;
}

/* The session's, but for what is true only while it runs. */
static void set_environment(struct hf_keeper *k)
{
	static const char *const over[] = { "HOLDFAST_LOCK", "HOLDFAST_LOCK_KIND", "HOLDFAST_TOKEN", "HOLDFAST_DEADLINE", NULL };
	const char *around = getenv(HF_MARK_VARIABLE);

	if (!k->envp && hf_keeper_environment(k) < 0)
		return;
	environ = k->envp;
	for (size_t i = 0; over[i]; i++)
		(void)unsetenv(over[i]);
	if (around)
		(void)setenv(HF_MARK_VARIABLE, around, 1);
	else
		(void)unsetenv(HF_MARK_VARIABLE);
}

static _Noreturn void notifier_main(struct hf_keeper *k, int socket)
{
	const struct hf_state *of_keeper = k->sessions->state;
	struct notifier n = { .name = k->name, .command = (char *)(uintptr_t)k->o.notify, .socket = socket, .until = HF_MONO_NEVER };
	const int kept[] = { socket, of_keeper->dirfd };
	static struct hf_notice notice;
	struct hf_state *state = NULL;
	char attempt[16];

	(void)prctl(PR_SET_NAME, COMM);
	(void)setsid();
	hf_apart_close(kept, 2);
	(void)sigprocmask(SIG_SETMASK, &k->mask, NULL);
	/* Without it the notice is told, too. */
	if (hf_state_adopt(of_keeper->dirfd, of_keeper->path, &state, NULL) < 0 ||
	    hf_journal_open(state, NULL, &n.sessions.journal, NULL) < 0)
		n.sessions.journal = NULL;
	set_environment(k);
	while (receive(&n, &notice)) {
		(void)snprintf(attempt, sizeof(attempt), "%u", notice.attempt);
		(void)setenv("HOLDFAST_ATTEMPT", attempt, 1);
		run_notice(&n, &notice);
	}
	_exit(0);
}

/* -- the keeper's side --------------------------------------------------------------------- */

static int start(struct hf_keeper *k)
{
	int ends[2];
	pid_t pid;

	hf_auto_close(&k->notices);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	/* One thread: the child may use all of its memory. */
	pid = hf_apart_fork_silent();
	if (pid == 0) {
		(void)close(ends[0]);
		notifier_main(k, ends[1]);
	}
	(void)close(ends[1]);
	k->notices = ends[0];
	if (pid < 0)
		return -errno;
	hf_tree_add_beside(&k->tree, (int32_t)pid);
	return 0;
}

static int send_notice(const struct hf_keeper *k, const struct hf_notice *notice)
{
	size_t len = offsetof(struct hf_notice, text) + strlen(notice->text);

	return send(k->notices, notice, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void hf_notifier_tell(struct hf_keeper *k, const struct hf_notice *notice)
{
	int r = k->notices < 0 ? -EPIPE : send_notice(k, notice);

	/* None yet, or it was killed. */
	if (r == -EPIPE || r == -ECONNRESET) {
		r = start(k);
		if (r == 0)
			r = send_notice(k, notice);
	}
	if (r < 0)
		tell_event(k->sessions, k->name, notice, HF_EXIT_AROUND,
			   r == -EAGAIN ? "not sent: too many notices are waiting" : strerrordesc_np(-r));
}

void hf_notifier_leave(struct hf_keeper *k)
{
	struct pollfd link = { .fd = k->link, .events = 0 };

	if (k->notices >= 0)
		(void)hf_poll_until(&link, 1, hf_mono_in(LEAVE_NS));
}
