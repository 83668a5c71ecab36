/* plan/git/git_run.c - starting git and waiting for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/spawn.h"
#include "hf/plan/git/git_env.h"
#include "hf/plan/git/git_run.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"

#define GIT_LIMIT_NS (60 * HF_SEC)

/* Nothing from a network, and a path is a path. */
static char *const set[] = { (char *)"GIT_NO_LAZY_FETCH=1", (char *)"GIT_ALLOW_PROTOCOL=",
			     (char *)"GIT_LITERAL_PATHSPECS=1", NULL };

/* In the child. */
static int change_dir(void *arg)
{
	return fchdir(*(const int *)arg) < 0 ? -errno : 0;
}

static int wait_for(const struct hf_child *child)
{
	struct hf_mono until = hf_mono_in(GIT_LIMIT_NS);
	struct pollfd fd = { .fd = child->pidfd, .events = POLLIN };
	siginfo_t info = { 0 };
	int r, late;

	do {
		r = hf_poll_until(&fd, 1, until);
	} while (r == -EINTR);
	late = r <= 0;
	if (late)
		(void)hf_sys.pidfd_send_signal(child->pidfd, SIGKILL);
	while (waitid(P_PID, (id_t)child->pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -errno;
	if (late)
		return -ETIMEDOUT;
	return info.si_code == CLD_EXITED ? info.si_status : 255;
}

int hf_git_run(int cwd, char *const *argv, int out, int err)
{
	return hf_git_run_with(cwd, argv, NULL, out, err);
}

int hf_git_run_with(int cwd, char *const *argv, const char *const *extra, int out, int err)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	AUTO_FREE char **envp = hf_git_environment(set, extra);
	AUTO_FD null = hf_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	struct hf_cgroup none = HF_CGROUP_INIT;
	sigset_t mask;
	struct hf_spawn spawn = { .argv = argv, .envp = envp, .mask = &mask, .cgroup = &none,
				  .enter = change_dir, .enter_arg = &cwd,
				  .stdio = { null, out, err < 0 ? null : err } };
	int r, status;

	if (!envp || null < 0)
		return envp ? null : -ENOMEM;
	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	r = hf_spawn(&spawn, &child);
	if (r < 0)
		return r;
	r = hf_spawn_go(&child);
	if (r == 0)
		r = hf_spawn_result(&child);
	status = wait_for(&child);
	return r < 0 ? r : status;
}
