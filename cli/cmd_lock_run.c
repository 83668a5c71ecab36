/*
 * cli/cmd_lock_run.c - lock run: a command under a lock.
 *
 * Without a lease this process *becomes* the command: the same pid, so the same
 * identity, and nothing in between that could be killed; its exit is the release.
 *
 * With a lease somebody has to renew it. The command is started first and waits at a
 * pipe; the lock is taken in its name, so it is the command, not the wrapper, that
 * owns it. The wrapper renews, forwards signals, and ends the command when the lease
 * is lost. If the wrapper itself is killed, the kernel kills the command (PDEATHSIG),
 * and until then the lock is the command's still.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "lock.h"

#define GRACE_NS (5 * HF_SEC)

/* -- with a lease ------------------------------------------------------------ */

struct child {
	pid_t pid;
	int pidfd;
	int go; /* a byte through this pipe, and it starts */
};

static void child_done(struct child *child)
{
	hf_auto_close(&child->go);
	hf_auto_close(&child->pidfd);
}

/* The command's side: waits for the lock, then starts. EOF: there is none. */
static _Noreturn void child_main(const struct cli *cli, int go, pid_t wrapper,
				 const sigset_t *mask, const char *name, char **command)
{
	uint64_t token;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the line above. */
	if (getppid() != wrapper)
		_exit(STATUS_AROUND);
	if (hf_read_all(go, (char *)&token, sizeof(token)) != sizeof(token))
		_exit(STATUS_AROUND);
	child_environment(cli, name, token);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(child_become(cli, command));
}

static int start_child(const struct cli *cli, const char *name, char **command,
		       const sigset_t *mask, struct child *ret)
{
	pid_t wrapper = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ret->go = ends[1];
	ret->pid = fork();
	if (ret->pid == 0) {
		(void)close(ends[1]);
		child_main(cli, ends[0], wrapper, mask, name, command);
	}
	(void)close(ends[0]);
	if (ret->pid < 0)
		return -errno;
	/* Ours and not yet waited for: the number is its own. */
	ret->pidfd = hf_sys.pidfd_open(ret->pid, 0);
	return ret->pidfd < 0 ? -errno : 0;
}

static void forward_signal(int signals, const struct child *child)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
		/* What the terminal sent went to the whole group already. */
		if (info.ssi_code != SI_KERNEL)
			(void)hf_sys.pidfd_send_signal(child->pidfd, (int)info.ssi_signo);
}

struct renewal {
	struct hf_lock *lock;
	int64_t ttl_ns;
	struct hf_mono next;   /* when to renew */
	struct hf_mono lost_at; /* by then it has run out if nothing worked */
	int lost;
	struct hf_mono kill_at; /* after TERM */
};

/* Renews when it is time. A failure is tried again until the lease has run out. */
static void renew(struct cli *cli, struct renewal *renewal, const struct child *child)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_mono begun = hf_mono_now();
	char text[HF_ERR_TEXT_MAX];
	int r;

	if (renewal->lost) {
		if (hf_mono_left(renewal->kill_at) == 0)
			(void)hf_sys.pidfd_send_signal(child->pidfd, SIGKILL);
		return;
	}
	if (hf_mono_left(renewal->next) > 0)
		return;
	r = hf_lock_renew(renewal->lock, 0, &err);
	if (r == 0) {
		renewal->next = hf_mono_in(renewal->ttl_ns / 3);
		renewal->lost_at.ns = begun.ns + renewal->ttl_ns;
		return;
	}
	renewal->next = hf_mono_in(renewal->ttl_ns / 10);
	if (r != HF_E_STALE && hf_mono_left(renewal->lost_at) > 0)
		return;
	cli_say(cli, "the lease is lost, ending the command: %s", lock_why(&err, text));
	renewal->lost = 1;
	renewal->kill_at = hf_mono_in(GRACE_NS);
	(void)hf_sys.pidfd_send_signal(child->pidfd, SIGTERM);
	(void)hf_sys.pidfd_send_signal(child->pidfd, SIGCONT);
}

static int watch_child(struct cli *cli, struct renewal *renewal, const struct child *child,
		       int signals)
{
	struct pollfd fds[] = { { .fd = child->pidfd, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };

	while (!(fds[0].revents & POLLIN)) {
		int64_t left = hf_mono_left(renewal->lost ? renewal->kill_at : renewal->next);

		(void)poll(fds, 2, (int)(left / HF_MSEC) + 1);
		if (fds[1].revents)
			forward_signal(signals, child);
		if (!(fds[0].revents & POLLIN))
			renew(cli, renewal, child);
	}
	return child_reap(child->pid);
}

/* -- both ------------------------------------------------------------------- */

struct run {
	struct cli *cli;
	struct lock_options o;
	struct lock_context context;
	const char *name;
	char **command;
};

/* The lock was not to be had: what the policy says. *ret_go is 1 to run it all the same. */
static int settle_failure(struct run *run, int r, struct hf_mono start,
			  const struct hf_holder *blocker, const struct hf_err *err, int *ret_go)
{
	return child_status_around(lock_settle(run->cli, &run->context, &run->o, run->name, r, start,
					       blocker, err, ret_go));
}

static int run_becoming(struct run *run)
{
	struct hf_lock_opts opts = lock_options_for(&run->o, NULL, HF_LOCK_FREE_ON_EXIT);
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_lock *lock = NULL;
	int go = 1, status = EXIT_DONE;
	int r = hf_lock_acquire(run->context.locks, run->name, &opts, &lock, &blocker, &err);

	if (r < 0)
		status = settle_failure(run, r, start, &blocker, &err, &go);
	if (!go)
		return status;
	child_environment(run->cli, run->name, lock ? hf_lock_token(lock) : 0);
	status = child_become(run->cli, run->command);
	if (lock)
		(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
	return status;
}

static int run_leased(struct run *run)
{
	AUTO(child_done) struct child child = { .pidfd = -1, .go = -1 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct renewal renewal = { .ttl_ns = run->o.ttl_ns };
	struct hf_lock_opts opts;
	struct hf_proc_id id;
	sigset_t mask;
	int r, go = 1, status = EXIT_DONE;
	uint64_t token = 0;
	AUTO_FD signals = child_signals(&mask);

	r = start_child(run->cli, run->name, run->command, &mask, &child);
	if (r < 0) {
		cli_say(run->cli, "cannot start: %s", strerrordesc_np(-r));
		return STATUS_AROUND;
	}
	if (hf_proc_identify((int32_t)child.pid, &id, &err) < 0)
		return cli_fail(run->cli, &err), STATUS_AROUND;
	/* While we only wait for the lock, a signal ends us as it would end anybody. */
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	opts = lock_options_for(&run->o, &id, HF_LOCK_FREE_ON_EXIT);
	r = hf_lock_acquire(run->context.locks, run->name, &opts, &renewal.lock, &blocker, &err);
	/* Killed while it waited? Then that is how it ended. */
	if (r == HF_E_GONE)
		return child_reap(child.pid);
	if (r < 0)
		status = settle_failure(run, r, start, &blocker, &err, &go);
	if (!go) {
		hf_auto_close(&child.go);
		(void)child_reap(child.pid);
		return status;
	}
	hf_auto_close(&signals);
	signals = child_signals(&mask);
	token = renewal.lock ? hf_lock_token(renewal.lock) : 0;
	renewal.next = hf_mono_in(renewal.lock ? renewal.ttl_ns / 3 : INT64_MAX / 2);
	renewal.lost_at = hf_mono_in(renewal.ttl_ns);
	/* Killed just now, it is not our end as well. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)!write(child.go, &token, sizeof(token));
	hf_auto_close(&child.go);
	status = watch_child(run->cli, &renewal, &child, signals);
	if (renewal.lost)
		status = EXIT_REFUSED;
	else if (renewal.lock)
		(void)hf_lock_release(renewal.lock, NULL);
	hf_lock_free(renewal.lock);
	return status;
}

static int run_without(struct run *run)
{
	struct hf_holder nobody = { 0 };
	int go;

	(void)settle_failure(run, run->context.err.code, hf_mono_now(), &nobody, &run->context.err,
			     &go);
	child_environment(run->cli, run->name, 0);
	return child_become(run->cli, run->command);
}

int cmd_lock_run(struct cli *cli, int argc, char **argv)
{
	struct run run = { .cli = cli, .o = LOCK_OPTIONS_INIT };
	const struct option_spec specs[] = { LOCK_OPTION_SPECS(run.o), { 0 } };
	int status, n = cli_options(cli, specs, argc, argv, 2, OPTIONS_THEN_COMMAND);

	if (n < 0)
		return cli_options_status(n);
	argv[n] = NULL; /* the words were moved together; there is room behind the last */
	run.name = argv[0];
	run.command = argv + 1;
	status = lock_options_check(cli, &run.o);
	if (status != EXIT_DONE)
		return status;
	status = lock_open(cli, &run.context);
	/* Fail-open covers a broken store, as long as the journal can say so (L8). */
	if (status != EXIT_DONE && run.o.on_timeout == ON_TIMEOUT_PROCEED && run.context.journal)
		return run_without(&run);
	if (status != EXIT_DONE) {
		lock_close(&run.context);
		return child_status_around(status);
	}
	status = run.o.ttl_ns > 0 ? run_leased(&run) : run_becoming(&run);
	lock_close(&run.context);
	return status;
}
