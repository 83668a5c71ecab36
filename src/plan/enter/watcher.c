/* plan/enter/watcher.c - the watcher's life: the command, its renames, its end, the rest. Allocates nothing. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/enter/watcher.h"
#include "hf/plan/sandbox/use.h"
#include "hf/proc/stat.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/numbers.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"
#include "holdfast/clock.h"

#define GRACE_NS      (50 * HF_MSEC) /* for what ends together with the command */
#define KILL_AGAIN_NS (5 * HF_MSEC)  /* those that became our children meanwhile */

struct watch {
	struct hf_watched *watched;
	struct hf_helper *helper;
	int signals;         /* SIGCHLD, and those that are for the command */
	pid_t command;       /* 0: reaped */
	struct hf_watch_end end;
	int is_told;         /* that the command has ended and others live on */
	int is_ending;       /* the caller was killed */
	struct hf_mono until; /* of the grace, or the next round of KILL */
};

/* -- the command ------------------------------------------------------------------- */

static _Noreturn void failed(const struct hf_watched *watched, const struct hf_watch_failed *said)
{
	(void)hf_write_all(watched->report, (const char *)said, sizeof(*said));
	_exit(127);
}

struct command {
	struct hf_watched *watched;
	int channel; /* for the filter's listener */
	pid_t watcher;
};

/* Shares the watcher's memory: what it changes there is its own. */
static void command_main(void *arg)
{
	const struct command *command = arg;
	struct hf_watched *watched = command->watched;
	struct hf_watch_failed said = { 0 };
	char byte;

	(void)sigaction(SIGCHLD, &watched->child, NULL);
	if (hf_enter_finish(watched->enter, command->channel, command->watcher, &said.fail) == 0) {
		/* Last: new credentials take it away. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != command->watcher)
			_exit(127);
		while (read(watched->go[0], &byte, 1) < 0 && errno == EINTR)
			continue;
		(void)sigprocmask(SIG_SETMASK, &watched->mask, NULL);
		(void)execvpe(watched->argv[0], watched->argv, watched->envp);
		said.exec = 1;
		(void)hf_inside_failed(&said.fail, "exec", watched->argv[0]);
	}
	failed(watched, &said);
}

/* -- its end ------------------------------------------------------------------------ */

/* Reaps what has exited. 0 when no process is left. */
static int reap(struct watch *watch)
{
	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0) {
			if (errno == EINTR)
				continue;
			return 0;
		}
		if (info.si_pid == 0)
			return 1;
		hf_helper_forget(watch->helper->listener, info.si_pid);
		if (info.si_pid != watch->command)
			continue;
		watch->command = 0;
		watch->end.code = info.si_code;
		watch->end.status = info.si_status;
		watch->until = hf_mono_in(GRACE_NS);
	}
}

/* A child that is not reaped yet, so that its number is its own. */
static void signal_child(pid_t pid, int sig)
{
	AUTO_FD pidfd = hf_sys.pidfd_open(pid, 0);

	if (pidfd >= 0)
		(void)hf_sys.pidfd_send_signal(pidfd, sig);
}

/* One that renames for the command ends by itself. */
static int kill_child(void *arg, int32_t pid)
{
	struct hf_stat st;

	(void)arg;
	if (hf_stat_read(pid, &st) == 0 && st.ppid == getpid() && !hf_stat_is_dead(&st) && !hf_helper_is_renaming(pid))
		signal_child(pid, SIGKILL);
	return 0;
}

/* Those below them come to us when these have ended, and are next. */
static void kill_children(void)
{
	(void)hf_numbers_in("/proc", kill_child, NULL);
}

static void tell(struct watch *watch, char word)
{
	watch->end.word = word;
	(void)!send(watch->helper->parent, &watch->end, sizeof(watch->end), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void pass_signal(struct watch *watch)
{
	struct hf_watch_signal passed;

	if (recv(watch->helper->parent, &passed, sizeof(passed), MSG_DONTWAIT) == sizeof(passed) && watch->command > 0)
		signal_child(watch->command, passed.signal);
}

/* What is due: the word that others live on, or another round of KILL. */
static void act(struct watch *watch)
{
	if (watch->is_ending) {
		kill_children();
		watch->until = hf_mono_in(KILL_AGAIN_NS);
	} else if (watch->command == 0 && !watch->is_told) {
		tell(watch, HF_HELPER_LEFT);
		watch->is_told = 1;
		watch->until = HF_MONO_NEVER;
	}
}

static void sleep_a_while(struct watch *watch)
{
	struct pollfd fds[] = { { .fd = watch->signals, .events = POLLIN },
				{ .fd = watch->helper->listener, .events = POLLIN },
				{ .fd = watch->is_told ? -1 : watch->helper->parent, .events = POLLIN },
				{ .fd = watch->is_told || watch->is_ending ? -1 : watch->watched->caller, .events = POLLIN } };
	struct signalfd_siginfo info;

	if (hf_poll_until(fds, 4, watch->until) <= 0)
		return;
	/* A command that signals its parent means the one that waits for it. */
	while (fds[0].revents && read(watch->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD && watch->command > 0)
			signal_child(watch->command, (int)info.ssi_signo);
	if (fds[1].revents & POLLIN)
		hf_helper_serve(watch->helper->listener);
	else if (fds[1].revents)
		hf_auto_close(&watch->helper->listener); /* nobody is under the filter any more */
	if (fds[2].revents & POLLIN)
		pass_signal(watch);
	if (fds[3].revents) {
		watch->is_ending = 1;
		watch->until = hf_mono_now();
	}
}

static _Noreturn void watch_main(struct watch *watch)
{
	struct hf_inside_fail fail;

	/* What is sent to the caller's group does not end us. The command stays in it. */
	(void)setpgid(0, 0);
	hf_helper_keep_only(watch->helper, watch->signals, watch->watched->caller);
	if (chdir("/") < 0 || hf_enter_drop(watch->watched->enter, 1, &fail) < 0)
		_exit(1);
	while (reap(watch)) {
		if (hf_mono_left(watch->until) == 0)
			act(watch);
		sleep_a_while(watch);
	}
	tell(watch, hf_helper_rest(watch->helper));
	_exit(0);
}

/* -- its start ----------------------------------------------------------------------- */

static int watch_signals(void)
{
	static const int heard[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 };
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;

	/* Where SIGCHLD is ignored, the kernel reaps, and nobody learns how a command ended. */
	(void)sigaction(SIGCHLD, &usual, NULL);
	sigfillset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++)
		sigaddset(&set, heard[i]);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void start(void *arg)
{
	struct hf_watched *watched = arg;
	struct watch watch = { .watched = watched, .helper = &watched->enter->helper, .until = HF_MONO_NEVER };
	struct hf_watch_failed said = { 0 };
	struct command command = { watched, -1, getpid() };
	int ends[2];

	/* The caller's alone: without a listener to wait for, the command is let go before we close what is not ours. */
	(void)close(watched->go[1]);
	(void)prctl(PR_SET_NAME, "hf-sandbox");
	(void)prctl(PR_SET_PDEATHSIG, 0);
	watch.signals = watch_signals();
	if (watch.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		(void)hf_inside_failed(&said.fail, "signalfd", "watcher");
		failed(watched, &said);
	}
	if (hf_enter_inside(watched->enter, &said.fail) < 0)
		failed(watched, &said);
	/* Before the filter, so that the watcher is not under it. It sleeps until the command is executed. */
	command.channel = ends[1];
	watch.command = hf_apart_run(command_main, &command);
	if (watch.command < 0) {
		(void)hf_inside_failed(&said.fail, "clone", "command");
		failed(watched, &said);
	}
	(void)close(ends[1]);
	watch.helper->listener = watched->enter->inside.n > 0 ? hf_enter_receive_listener(ends[0]) : -1;
	watch_main(&watch);
}

int hf_watch_start(struct hf_watched *watched)
{
	return hf_apart_start(start, watched);
}
