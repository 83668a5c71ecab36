/* plan/enter/enter_run.c - hf_plan_enter: run a command inside and wait for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/marks.h"
#include "hf/exec/spawn.h"
#include "hf/plan/enter/watcher.h"
#include "hf/plan/sandbox/strays.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

struct command {
	struct hf_enter *enter;
	struct hf_watched watched;
	int report[2];
	int signals;
};

static void command_done(struct command *command)
{
	hf_enter_free(command->enter);
	hf_auto_close(&command->report[0]);
	hf_auto_close(&command->report[1]);
	hf_auto_close(&command->signals);
	hf_auto_close(&command->watched.caller);
	hf_auto_close(&command->watched.go[0]);
}

static void block_signals(struct command *command)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, &command->watched.mask);
	command->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What the terminal sends reaches the command by itself: it is of our process group. */
static void pass_signals(struct command *command)
{
	struct signalfd_siginfo info;

	while (read(command->signals, &info, sizeof(info)) == sizeof(info)) {
		struct hf_watch_signal passed = { (int)info.ssi_signo };

		if ((info.ssi_signo != SIGINT && info.ssi_signo != SIGQUIT) || info.ssi_code <= 0)
			(void)!send(command->enter->channel[0], &passed, sizeof(passed), MSG_NOSIGNAL);
	}
}

/* Waits for what the watcher says at the end. Its word is 0 when it was killed. */
static struct hf_watch_end wait_for(struct command *command)
{
	struct pollfd fds[] = { { .fd = command->enter->channel[0], .events = POLLIN },
				{ .fd = command->signals, .events = POLLIN } };
	struct hf_watch_end end = { 0 };

	for (;;) {
		if (hf_sys.poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			pass_signals(command);
		if (fds[0].revents)
			break;
	}
	if (recv(command->enter->channel[0], &end, sizeof(end), MSG_DONTWAIT) != sizeof(end))
		end.word = 0;
	return end;
}

static int start(struct command *command, struct hf_err *err)
{
	int r;

	command->watched.enter = command->enter;
	command->watched.report = command->report[1];
	command->watched.caller = hf_sys.pidfd_open(getpid(), 0);
	if (command->watched.caller < 0)
		return FAIL_SYS(err, "pidfd_open", command->watched.argv[0]);
	if (pipe2(command->watched.go, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", command->watched.argv[0]);
	command->enter->go = command->watched.go[1];
	(void)sigaction(SIGCHLD, NULL, &command->watched.child);
	r = hf_watch_start(&command->watched);
	hf_auto_close(&command->report[1]);
	/* Their end must be seen. */
	hf_auto_close(&command->enter->channel[1]);
	hf_auto_close(&command->enter->report[1]);
	return r < 0 ? hf_fail_sys(err, -r, "fork", command->watched.argv[0]) : 0;
}

/* The watcher, and with it the command, was killed. What the command had started is ended here. */
static int was_killed(struct command *command, struct hf_err *err)
{
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	struct hf_plans *plans = command->enter->plans;
	const char *plan = command->enter->record.name;
	struct hf_err why = HF_ERR_INIT;
	struct hf_mono until = hf_mono_in(HF_SEC);
	int r = hf_plan_lock(plans, plan, HF_SEC, &lock, &why);

	/* It hangs up before it gives its lock back. */
	while (r == 0 && (r = hf_plan_end_strays(plans, &command->enter->record, &why)) == 0 &&
	       hf_plan_in_use(plans, &command->enter->record, NULL) == 1 && hf_mono_left(until) > 0)
		hf_pause(2 * HF_MSEC);
	return FAIL(err, -ECHILD, "plan", plan, "the process that watches its command was killed, and the command with it%s",
		    r < 0 ? "; 'holdfast plan recover' ends the processes that it started" : "");
}

/* Runs it. Returns 0 when it is over, with *ret filled. */
static int run(struct command *command, const struct hf_plan_enter_opts *opts,
	       struct hf_plan_entered *ret, struct hf_err *err)
{
	struct hf_watch_failed failed = { 0 };
	struct pollfd told = { .fd = command->enter->report[0], .events = POLLIN };
	struct hf_watch_end end;
	ssize_t n;
	int r = start(command, err);

	if (r < 0)
		return r;
	/* Inside, or not: the command waits for the plan's lock to be given back. */
	while (hf_sys.poll(&told, 1, -1) < 0 && errno == EINTR)
		continue;
	if (told.revents & POLLIN)
		r = hf_enter_mounted(command->enter, 0, NULL, err);
	do {
		n = hf_sys.read(command->report[0], &failed, sizeof(failed));
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(failed) && !failed.exec)
		r = hf_inside_error(&failed.fail, command->enter->record.name, err);
	else if (!(told.revents & POLLIN))
		r = FAIL(err, -ECHILD, "plan", command->enter->record.name, "the process that starts its command was killed");
	/* The lock is the watcher's alone from here on. */
	hf_auto_close(&command->enter->helper.in_fd);
	ret->flags = hf_enter_flags(command->enter, ret->why);
	if (r == 0 && opts->started)
		opts->started(opts->arg, ret);
	end = wait_for(command);
	if (r < 0)
		return r;
	if (!end.word)
		return was_killed(command, err);
	ret->exit_status = end.code == CLD_EXITED ? end.status : 128 + end.status;
	if (n == sizeof(failed)) {
		ret->exec_error = failed.fail.sys;
		ret->exit_status = hf_spawn_status(failed.fail.sys);
	}
	hf_enter_ended(command->enter, end.word);
	ret->flags = hf_enter_flags(command->enter, ret->why);
	return 0;
}

/* The mark of the command's processes, by which they are found when their watcher is gone. */
static char *make_mark(const struct hf_enter *enter)
{
	const char *around = getenv(HF_MARK_VARIABLE);
	char prefix[HF_MARK_MAX], *mark;

	hf_plan_mark_prefix(enter->plans, enter->record.name, prefix);
	if (asprintf(&mark, HF_MARK_VARIABLE "=%s%llu%s%s", prefix, (unsigned long long)enter->record.token,
		     around && around[0] ? ":" : "", around ? around : "") < 0)
		return NULL;
	return mark;
}

int hf_plan_enter(struct hf_plans *plans, const char *plan, const struct hf_plan_enter_opts *opts,
		  struct hf_plan_entered *ret_entered, struct hf_err *err)
{
	AUTO(command_done) struct command command = { .report = { -1, -1 }, .signals = -1, .watched = { .caller = -1, .go = { -1, -1 } } };
	static const char *const unset[] = { "HOLDFAST_PLAN", "HOLDFAST_DIR", HF_MARK_VARIABLE, NULL };
	struct hf_plan_entered entered = { 0 };
	struct hf_err why = HF_ERR_INIT;
	AUTO_FREE char **envp = NULL;
	AUTO_FREE char *mark = NULL;
	int r = hf_plans_check(plans, plan, err);

	if (r < 0)
		return r;
	if (!opts || opts->size < sizeof(*opts) || !opts->argv || !opts->argv[0] || !ret_entered ||
	    opts->flags & ~(unsigned)(HF_PLAN_ENTER_NO_RENAME | HF_PLAN_ENTER_NO_CENSUS))
		return FAIL(err, -EINVAL, "arguments", plan, "a size, a command and known flags are needed");
	command.watched.argv = opts->argv;
	if (pipe2(command.report, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", plan);
	r = hf_enter_begin(plans, plan, opts->flags, opts->wait_ns, &command.enter, &why);
	if (r == 0) {
		char *more[] = { mark = make_mark(command.enter), NULL };

		envp = mark ? hf_spawn_environment(hf_enter_environment(command.enter), more, unset) : NULL;
		command.watched.envp = envp;
		r = envp ? 0 : hf_fail_sys(&why, ENOMEM, "memory", plan);
	}
	if (r == 0) {
		block_signals(&command);
		r = run(&command, opts, &entered, &why);
		(void)pthread_sigmask(SIG_SETMASK, &command.watched.mask, NULL);
	}
	if (r < 0)
		return hf_plan_refused(plans, plan, "enter", r, &why, err);
	*ret_entered = entered;
	return 0;
}
