/* plan/enter/enter_run.c - hf_plan_enter: run a command inside and wait for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/spawn.h"
#include "hf/plan/enter/enter.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* What a child that could not execute the command says. */
struct outcome {
	int exec; /* 1: inside, but exec failed */
	struct hf_inside_fail fail;
};

struct command {
	struct hf_enter *enter;
	char *const *argv;
	char *const *envp;
	int report[2];
	int signals;
	sigset_t mask; /* as it was */
	pid_t pid;
	int pidfd;
};

static void command_done(struct command *command)
{
	hf_enter_free(command->enter);
	hf_auto_close(&command->report[0]);
	hf_auto_close(&command->report[1]);
	hf_auto_close(&command->signals);
	hf_auto_close(&command->pidfd);
}

static _Noreturn void child_main(struct command *command)
{
	struct outcome outcome = { 0 };

	if (hf_enter_child(command->enter, &outcome.fail) == 0) {
		(void)sigprocmask(SIG_SETMASK, &command->mask, NULL);
		(void)execvpe(command->argv[0], command->argv, command->envp);
		outcome.exec = 1;
		(void)hf_inside_failed(&outcome.fail, "exec", command->argv[0]);
	}
	(void)hf_write_all(command->report[1], (const char *)&outcome, sizeof(outcome));
	_exit(127);
}

static void block_signals(struct command *command)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, &command->mask);
	command->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What the terminal sends reaches the command by itself: it is of our process group. */
static void pass_signals(struct command *command)
{
	struct signalfd_siginfo info;

	while (read(command->signals, &info, sizeof(info)) == sizeof(info))
		if ((info.ssi_signo != SIGINT && info.ssi_signo != SIGQUIT) || info.ssi_code <= 0)
			(void)hf_sys.pidfd_send_signal(command->pidfd, (int)info.ssi_signo);
}

static int wait_for(struct command *command)
{
	siginfo_t info = { 0 };

	for (;;) {
		struct pollfd fds[] = { { .fd = command->pidfd, .events = POLLIN },
					{ .fd = command->signals, .events = POLLIN } };

		if (hf_sys.poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			pass_signals(command);
		if (fds[0].revents)
			break;
	}
	while (waitid(P_PID, (id_t)command->pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return 125;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static int start(struct command *command, struct hf_err *err)
{
	command->pid = hf_sys.clone_into(-1, &command->pidfd);
	if (command->pid < 0) {
		command->pid = fork();
		if (command->pid > 0)
			command->pidfd = hf_sys.pidfd_open(command->pid, 0);
	}
	if (command->pid == 0)
		child_main(command);
	if (command->pid < 0)
		return FAIL_SYS(err, "fork", command->argv[0]);
	hf_auto_close(&command->report[1]);
	return 0;
}

/* Runs it. Returns 0 when it is over, with *ret filled. */
static int run(struct command *command, const struct hf_plan_enter_opts *opts,
	       struct hf_plan_entered *ret, struct hf_err *err)
{
	struct outcome outcome = { 0 };
	ssize_t n;
	int r = start(command, err);

	if (r < 0)
		return r;
	do {
		n = hf_sys.read(command->report[0], &outcome, sizeof(outcome));
	} while (n < 0 && errno == EINTR);
	r = hf_enter_mounted(command->enter, command->pid,
			     n == sizeof(outcome) && !outcome.exec ? &outcome.fail : NULL, err);
	ret->flags = hf_enter_flags(command->enter, ret->why);
	if (r == 0 && opts->started)
		opts->started(opts->arg, ret);
	ret->exit_status = wait_for(command);
	if (r < 0)
		return r;
	if (n == sizeof(outcome)) {
		ret->exec_error = outcome.fail.sys;
		ret->exit_status = hf_spawn_status(outcome.fail.sys);
	}
	hf_enter_end(command->enter);
	ret->flags = hf_enter_flags(command->enter, ret->why);
	return 0;
}

int hf_plan_enter(struct hf_plans *plans, const char *plan, const struct hf_plan_enter_opts *opts,
		  struct hf_plan_entered *ret_entered, struct hf_err *err)
{
	AUTO(command_done) struct command command = { .report = { -1, -1 }, .signals = -1, .pidfd = -1 };
	static const char *const unset[] = { "HOLDFAST_PLAN", "HOLDFAST_DIR", NULL };
	struct hf_plan_entered entered = { 0 };
	struct hf_err why = HF_ERR_INIT;
	AUTO_FREE char **envp = NULL;
	int r = hf_plans_check(plans, plan, err);

	if (r < 0)
		return r;
	if (!opts || opts->size < sizeof(*opts) || !opts->argv || !opts->argv[0] || !ret_entered ||
	    opts->flags & ~(unsigned)(HF_PLAN_ENTER_NO_RENAME | HF_PLAN_ENTER_NO_CENSUS))
		return FAIL(err, -EINVAL, "arguments", plan, "a size, a command and known flags are needed");
	command.argv = opts->argv;
	if (pipe2(command.report, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", plan);
	r = hf_enter_begin(plans, plan, opts->flags, opts->wait_ns, &command.enter, &why);
	if (r == 0) {
		envp = hf_spawn_environment(hf_enter_environment(command.enter), NULL, unset);
		command.envp = envp;
		r = envp ? 0 : hf_fail_sys(&why, ENOMEM, "memory", plan);
	}
	if (r == 0) {
		block_signals(&command);
		r = run(&command, opts, &entered, &why);
		(void)pthread_sigmask(SIG_SETMASK, &command.mask, NULL);
	}
	if (r < 0)
		return hf_plan_refused(plans, plan, "enter", r, &why, err);
	*ret_entered = entered;
	return 0;
}
