/*
 * run/supervisor/subreaper.c - a process between supervisor and keeper that does nothing but reap.
 *
 * Only where the supervisor had children before it became one. Their orphans come to it, and if
 * the keeper is killed so would the tree's; one that cleared its environment could not be told
 * from theirs. So the keeper is forked by a subreaper of its own: whatever is below that is of
 * the tree. It ends when nobody is below it, and with the supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/proc/blocked.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"

static _Noreturn void reap_all(void)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	/* Nothing of the caller's is held open by a process that does not use it. */
	for (int i = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0 && i < 3; i++)
		(void)dup2(null, i);
	(void)close_range(3, ~0U, 0);
	while (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | __WALL) == 0 || errno == EINTR)
		continue;
	_exit(0);
}

static _Noreturn void reaper_main(struct hf_keeper *keeper, struct hf_state *state)
{
	struct hf_link_news news = { .kind = HF_LINK_KEEPER };
	int pidfd;

	/* Out of the terminal's reach, as the keeper is. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, HF_COMM_REAPER);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	keeper->supervisor_fd = hf_sys.pidfd_open(keeper->supervisor, 0);
	/* Opened first, still our parent after: it is the one. */
	if (keeper->supervisor_fd < 0 || getppid() != keeper->supervisor ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		_exit(1);
	keeper->parent = getpid();
	news.report.pid = (int32_t)fork();
	if (news.report.pid == 0)
		hf_keeper_main(keeper, state);
	if (news.report.pid < 0)
		_exit(1);
	/* Ours, and not reaped: the number is its own. */
	pidfd = hf_sys.pidfd_open(news.report.pid, 0);
	if (pidfd < 0)
		_exit(1); /* and the keeper ends with us */
	hf_keeper_tell(keeper, &news, pidfd);
	reap_all();
}

pid_t hf_reaper_start(struct hf_keeper *keeper, struct hf_state *state)
{
	pid_t pid = fork();

	if (pid == 0)
		reaper_main(keeper, state);
	return pid;
}
