/* tx/land/git/beside.c - a git that runs while its caller does other things. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/command.h"
#include "hf/plan/git/git_env.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/beside.h"
#include "holdfast/clock.h"
#include "holdfast/exit.h"

#define LIMIT_NS (10 * 60 * HF_SEC)

static int start(struct hf_git_beside *beside, const char *const *argv, struct hf_err *err)
{
	AUTO_FREE char **envp = hf_git_environment(NULL, NULL);
	AUTO_FD null = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct hf_cgroup none = HF_CGROUP_INIT;
	sigset_t mask;
	struct hf_spawn spawn = { .argv = (char *const *)(uintptr_t)argv, .envp = envp, .mask = &mask, .cgroup = &none,
				  .stdio = { null, beside->out, beside->said } };
	int r;

	if (!envp || null < 0)
		return hf_fail_sys(err, envp ? -null : ENOMEM, "open", "/dev/null");
	sigemptyset(&mask);
	(void)sigaction(SIGCHLD, &usual, &beside->sigchld);
	r = hf_spawn(&spawn, &beside->child);
	if (r < 0)
		(void)sigaction(SIGCHLD, &beside->sigchld, NULL);
	if (r == 0)
		r = hf_spawn_go(&beside->child);
	return r < 0 ? hf_fail_sys(err, -r, "fork", "git") : 0;
}

int hf_git_beside_start(struct hf_git_beside *beside, const char *dir, const char *const *words, struct hf_err *err)
{
	const char *argv[HF_GIT_ARGV_MAX];
	int r = hf_git_argv(dir, 0, 1, words, argv, err);

	if (r < 0)
		return r;
	beside->out = hf_git_memory(NULL, 0);
	beside->said = hf_git_memory(NULL, 0);
	if (beside->out < 0 || beside->said < 0)
		return hf_fail_sys(err, EMFILE, "memfd_create", "git");
	r = start(beside, argv, err);
	if (r < 0)
		hf_git_beside_done(beside);
	return r;
}

/* How it ended. */
static int reap(struct hf_git_beside *beside, siginfo_t *info)
{
	int r;

	do {
		r = waitid(P_PID, (id_t)beside->child.pid, info, WEXITED);
	} while (r < 0 && errno == EINTR);
	beside->child.pid = 0;
	(void)sigaction(SIGCHLD, &beside->sigchld, NULL);
	return r < 0 ? -errno : 0;
}

void hf_git_beside_done(struct hf_git_beside *beside)
{
	siginfo_t info;

	if (beside->child.pid > 0) {
		(void)hf_child_signal(&beside->child, SIGKILL);
		(void)reap(beside, &info);
	}
	hf_child_done(&beside->child);
	hf_auto_close(&beside->out);
	hf_auto_close(&beside->said);
	beside->child = (struct hf_child)HF_CHILD_INIT;
}

/* 0: it has ended; else an error. */
static int wait_for(const struct hf_git_beside *beside, struct hf_err *err)
{
	AUTO(hf_command_signals_done) struct hf_command_signals signals = { .fd = -1 };
	struct hf_mono until = hf_mono_in(LIMIT_NS);
	int r = hf_command_signals_take(&signals), sig, code;

	if (r < 0)
		return hf_fail_sys(err, -r, "signalfd", "git");
	for (;;) {
		struct pollfd fds[] = { { .fd = beside->child.pidfd, .events = POLLIN }, { .fd = signals.fd, .events = POLLIN } };

		r = hf_poll_until(fds, 2, until);
		if (fds[0].revents & POLLIN)
			return 0;
		if (hf_command_signals_next(&signals, &sig, &code))
			return FAIL(err, HF_E_CANCELLED, "signal", "git", "ended by signal %d", sig);
		if (r == 0)
			return FAIL(err, HF_E_LAND, "git", "git", "it did not end within ten minutes");
	}
}

int hf_git_beside_end(struct hf_git_beside *beside, struct hf_buf *out, struct hf_buf *said, struct hf_err *err)
{
	siginfo_t info = { 0 };
	int r = wait_for(beside, err);

	if (r < 0)
		return r;
	r = hf_spawn_result(&beside->child);
	if (r < 0)
		return hf_fail_sys(err, -r, "exec", "git");
	r = reap(beside, &info);
	if (r == 0)
		r = hf_git_read_back(beside->out, beside->said, out, said);
	if (r < 0)
		return hf_fail_sys(err, -r, "wait", "git");
	return info.si_code == CLD_EXITED ? info.si_status : HF_EXIT_SIGNAL + info.si_status;
}
