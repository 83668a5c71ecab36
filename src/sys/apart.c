/* sys/apart.c - forking and standing alone. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/sys/apart.h"
#include "hf/sys/clone.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

static pid_t fork_with(int signal)
{
	pid_t pid;

	/* The C library does not know of this fork, so its handlers are called here. */
	hf_noinherit_before_fork();
	pid = (pid_t)syscall(SYS_clone, signal, 0, 0, 0, 0);
	if (pid == 0)
		hf_noinherit_child();
	else
		hf_noinherit_after_fork();
	return pid;
}

pid_t hf_apart_fork(void)
{
	return fork_with(SIGCHLD);
}

pid_t hf_apart_fork_silent(void)
{
	return fork_with(0);
}

pid_t hf_apart_run(void (*run)(void *arg), void *arg)
{
	sigset_t all, mask;
	pid_t pid;
	int error;

	/* A handler of the caller's would change the caller's memory. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid = hf_clone_waiting(run, arg);
	if (pid < 0)
		pid = hf_apart_fork();
	if (pid == 0)
		run(arg);
	error = errno;
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return pid;
}

struct start {
	void (*run)(void *arg);
	void *arg;
};

static void fork_again(void *arg)
{
	const struct start *start = arg;
	pid_t pid = hf_apart_fork();

	if (pid == 0)
		start->run(start->arg);
	_exit(pid < 0 ? errno : 0);
}

int hf_apart_start(void (*run)(void *arg), void *arg)
{
	struct start start = { run, arg };
	pid_t pid = hf_apart_run(fork_again, &start);
	int r;

	if (pid < 0)
		return -errno;
	/* A caller that ignores SIGCHLD cannot tell. */
	r = hf_apart_reap(pid);
	return r > 0 ? -r : 0;
}

int hf_apart_reap(pid_t pid)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -1;
	return info.si_code == CLD_EXITED ? info.si_status : -1;
}

/* The lowest of them that is at least `from`; -1: none. */
static int next_kept(const int *kept, size_t n, int from)
{
	int found = -1;

	for (size_t i = 0; i < n; i++)
		if (kept[i] >= from && (found < 0 || kept[i] < found))
			found = kept[i];
	return found;
}

void hf_apart_close(const int *kept, size_t n)
{
	int null = hf_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	for (int fd = 0; fd <= 2; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			(void)close(fd);
	for (int from = 3; from >= 0;) {
		int next = next_kept(kept, n, from);
		unsigned last = next < 0 ? ~0U : (unsigned)next - 1;

		if (next != from && syscall(SYS_close_range, (unsigned)from, last, 0U) < 0)
			for (int fd = from; fd < (next < 0 ? 4096 : next); fd++)
				(void)close(fd);
		from = next < 0 ? -1 : next + 1;
	}
}
