/*
 * cli/lock/run.c - lock run: a command under a lock.
 *
 * Without a lease this process *becomes* the command. Pid and identity stay the
 * same, no process in between can be killed, and its exit releases the lock.
 *
 * With a lease a second process must renew it. The command is forked first and held back; the lock is
 * taken in its name, so the command owns it, not the wrapper. The wrapper renews the lease and forwards
 * signals. When the lease is lost, the wrapper ends the command and everything that the command started
 * (exec/tree.h). If the wrapper is killed, the watcher between the two does this (exec/watched.h). The
 * watcher is the lock's second owner, so the lock becomes free only after all of them have ended, even
 * if the command was killed together with the wrapper.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "command.h"
#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "hf/exec/spawn.h"
#include "hf/exec/watched.h"
#include "lock/lease.h"
#include "lock/lock.h"

/* -- with a lease ------------------------------------------------------------ */

/* "HOLDFAST_TOKEN=…". The token is known only after the fork, so the command reads it from a pipe. */
#define TOKEN_TEXT_MAX 40

struct leased {
	struct hf_watched_command watched;
	struct hf_command_signals signals;
	char **envp;                     /* the first entry is the token */
	char token_text[TOKEN_TEXT_MAX];
	int token_pipe[2];
	int begun; /* 1: forked; -errno: the fork failed; 0: not yet */
};

#define LEASED_INIT                                                                      \
	{                                                                                \
		.watched = HF_WATCHED_INIT, .signals = { .fd = -1 },                     \
		.token_pipe = { -1, -1 },                                                \
	}

static void leased_done(struct leased *leased)
{
	hf_watched_done(&leased->watched);
	hf_command_signals_done(&leased->signals);
	hf_auto_close(&leased->token_pipe[0]);
	hf_auto_close(&leased->token_pipe[1]);
	free(leased->envp);
}

/* Runs in the command's process before exec: waits until the wrapper releases it or closes its end of the pipe. */
static int enter_leased(void *arg)
{
	struct leased *leased = arg;
	char **last = leased->envp;

	(void)close(leased->token_pipe[1]);
	if (read(leased->token_pipe[0], leased->token_text, TOKEN_TEXT_MAX) != TOKEN_TEXT_MAX)
		return -EPIPE;
	if (leased->token_text[0])
		return 0;
	/* Without the lock, remove the token. */
	while (last[1])
		last++;
	leased->envp[0] = *last;
	*last = NULL;
	return 0;
}

/* Forks the command, which waits for go_leased(). */
static int fork_leased(const struct cli *cli, const char *name, char **command, struct leased *leased)
{
	char *set[] = { leased->token_text, NULL };
	static const char *const unset[] = { NULL };
	struct hf_cgroup none = HF_CGROUP_INIT;
	struct hf_spawn spawn = { .argv = command,
				  .stdio = { -1, -1, -1 },
				  .group = getpgrp(),
				  .mask = &leased->signals.mask,
				  .cgroup = &none,
				  .enter = enter_leased,
				  .enter_arg = leased };
	int r = hf_command_signals_take(&leased->signals);

	if (r < 0)
		return r;
	command_environment(cli, HF_LOCK_KIND_NAME, name, 0);
	(void)snprintf(leased->token_text, TOKEN_TEXT_MAX, "HOLDFAST_TOKEN=");
	leased->envp = hf_spawn_environment(set, NULL, unset);
	if (!leased->envp)
		cli_die_oom();
	spawn.envp = leased->envp;
	if (pipe2(leased->token_pipe, O_CLOEXEC) < 0)
		return -errno;
	r = hf_watched_begin(&spawn, &leased->watched);
	return r < 0 ? r : 1;
}

/* Releases the waiting command with the token of its lock (0: none). */
static void go_leased(struct leased *leased, uint64_t token)
{
	char text[TOKEN_TEXT_MAX] = "";

	if (token)
		(void)snprintf(text, sizeof(text), "HOLDFAST_TOKEN=%llu", (unsigned long long)token);
	/* A failure means that the command was killed; its status shows that. */
	(void)!write(leased->token_pipe[1], text, sizeof(text));
	hf_auto_close(&leased->token_pipe[1]);
}

static void forward_signals(const struct leased *leased)
{
	int sig, code;

	while (hf_command_signals_next(&leased->signals, &sig, &code))
		/* The terminal has sent its signals to the whole group already. */
		if (code != SI_KERNEL)
			(void)hf_watched_signal(&leased->watched, sig);
}

/* Waits until the command has exited or, if its lease is lost, until all of its processes have ended. */
static int watch_leased(struct cli *cli, struct lease *lease, struct leased *leased)
{
	struct hf_tree *tree = &leased->watched.tree;
	struct pollfd fds[4] = { { .fd = leased->signals.fd, .events = POLLIN }, { .fd = leased->watched.news, .events = POLLIN } };

	while (hf_watched_hear(&leased->watched) && (!tree->leader_exited || lease_is_lost(cli, lease, tree))) {
		struct hf_mono until;
		int more[2];
		int64_t left;

		lease_poll(lease, more, &until);
		fds[2] = (struct pollfd){ .fd = more[0], .events = POLLIN };
		fds[3] = (struct pollfd){ .fd = more[1], .events = POLLIN };
		left = hf_mono_left(until) / HF_MSEC;
		(void)poll(fds, 4, left < INT32_MAX ? (int)left + 1 : INT32_MAX);
		if (fds[0].revents)
			forward_signals(leased);
		if (lease->lost || lease->asked || !tree->leader_exited)
			lease_step(cli, lease, tree);
	}
	/* A signal that came too late for the command must not end us: we report the command's status. */
	forward_signals(leased);
	if (!leased->watched.is_told)
		cli_say(cli, "the watcher of the command was killed; all processes that the command started were ended");
	hf_watched_leave(&leased->watched);
	return command_status_of(tree->leader_code, tree->leader_status);
}

/* Waits for the end of a command that was not released or was killed earlier. */
static int await_leased(struct leased *leased)
{
	struct pollfd news = { .fd = leased->watched.news, .events = POLLIN };

	hf_auto_close(&leased->token_pipe[1]);
	while (hf_watched_hear(&leased->watched) && !leased->watched.tree.leader_exited)
		(void)poll(&news, 1, -1);
	return command_status_of(leased->watched.tree.leader_code, leased->watched.tree.leader_status);
}

/* -- both ------------------------------------------------------------------- */

struct run {
	struct cli *cli;
	struct lock_options o;
	struct lock_context context;
	const char *name;
	char **command;
	int elsewhere; /* the store is on another machine */
	struct leased leased;
};

/* Applies the policy after the lock was not acquired. Sets *ret_go to 1 if the command runs anyway. */
static int settle_failure(struct run *run, int r, struct hf_mono start,
			  const struct hf_holder *blocker, const struct hf_err *err, int *ret_go)
{
	return command_status_around(lock_settle(run->cli, &run->context, &run->o, run->name, r, start,
					       blocker, err, ret_go));
}

static int run_becoming(struct run *run)
{
	struct hf_lock_opts opts = lock_options_for(&run->o, NULL, HF_LOCK_FREE_ON_EXIT);
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_lock *lock = NULL;
	int go = 1, status = HF_EXIT_DONE;
	int r = lock_take(run->cli, &run->context, run->name, &opts, &lock, &blocker, &err);

	if (r < 0)
		status = settle_failure(run, r, start, &blocker, &err, &go);
	if (!go)
		return status;
	command_environment(run->cli, HF_LOCK_KIND_NAME, run->name, lock ? hf_lock_token(lock) : 0);
	status = command_become(run->cli, run->command);
	if (lock)
		(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
	return status;
}

/*
 * Makes the watcher the second owner. It lives as long as any process of the command. A shared lock can have only one owner: there the
 * command is ended last.
 */
static void add_watcher(struct hf_lock *lock, const struct leased *leased)
{
	struct hf_proc_id watcher;

	if (hf_proc_identify(leased->watched.tree.reaper, &watcher, NULL) == 0)
		(void)!hf_lock_add_owner(lock, &watcher, NULL);
}

static int run_leased(struct run *run)
{
	struct leased *leased = &run->leased;
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct lease lease = LEASE_INIT;
	struct hf_lock_opts opts;
	struct hf_proc_id id;
	int r, go = 1, status = HF_EXIT_DONE;

	if (!leased->begun)
		leased->begun = fork_leased(run->cli, run->name, run->command, leased);
	r = leased->begun < 0 ? leased->begun : hf_watched_started(&leased->watched);
	if (r < 0) {
		cli_say(run->cli, "cannot start: %s", strerrordesc_np(-r));
		return HF_EXIT_AROUND;
	}
	/* From now on this process only waits for the command, and its process name shows that. */
	hf_command_waits(HF_WAITS_WITH_LEASE);
	if (hf_proc_identify((int32_t)leased->watched.pid, &id, &err) < 0)
		return cli_fail(run->cli, &err), HF_EXIT_AROUND;
	/* During the wait for the lock, signals have their usual effect on us. */
	(void)sigprocmask(SIG_SETMASK, &leased->signals.mask, NULL);
	opts = lock_options_for(&run->o, &id, HF_LOCK_FREE_ON_EXIT);
	r = lock_take(run->cli, &run->context, run->name, &opts, &lease.lock, &blocker, &err);
	/* The command was killed while it waited. */
	if (r == HF_E_GONE)
		return await_leased(leased);
	if (r < 0)
		status = settle_failure(run, r, start, &blocker, &err, &go);
	if (!go) {
		(void)await_leased(leased);
		return status;
	}
	hf_command_signals_done(&leased->signals);
	if (hf_command_signals_take(&leased->signals) < 0)
		return HF_EXIT_AROUND;
	if (lease_begin(&lease, run->o.ttl_ns, run->elsewhere, &id) < 0)
		return HF_EXIT_AROUND;
	if (lease.lock && !run->elsewhere)
		add_watcher(lease.lock, leased);
	/* The command may have been killed just now; a write to its pipe must not kill us. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	go_leased(leased, lease.lock ? hf_lock_token(lease.lock) : 0);
	status = watch_leased(run->cli, &lease, leased);
	if (leased->watched.exec_error < 0)
		status = command_not_executed(run->cli, run->command[0], leased->watched.exec_error);
	if (lease_is_lost(run->cli, &lease, &leased->watched.tree))
		status = HF_EXIT_REFUSED;
	lease_end(run->cli, &lease);
	hf_lock_free(lease.lock);
	return status;
}

static int run_without(struct run *run)
{
	struct hf_holder nobody = { 0 };
	int go;

	(void)settle_failure(run, run->context.err.code, hf_mono_now(), &nobody, &run->context.err,
			     &go);
	command_environment(run->cli, HF_LOCK_KIND_NAME, run->name, 0);
	return command_become(run->cli, run->command);
}

static void run_done(struct run *run)
{
	leased_done(&run->leased);
}

/* Ends the waiting command after its store could not be opened, and stops handling signals and orphans. */
static void unfork(struct run *run)
{
	if (run->leased.begun > 0 && hf_watched_started(&run->leased.watched) == 0)
		(void)await_leased(&run->leased);
	if (run->leased.watched.is_subreaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	leased_done(&run->leased);
	run->leased = (struct leased)LEASED_INIT;
}

int cmd_lock_run(struct cli *cli, int argc, char **argv)
{
	AUTO(run_done) struct run run = { .cli = cli, .o = LOCK_OPTIONS_INIT, .leased = LEASED_INIT };
	const struct option_spec specs[] = { LOCK_OPTION_SPECS(run.o), { 0 } };
	int status, n = cli_options(cli, specs, argc, argv, 2, OPTIONS_THEN_COMMAND);

	if (n < 0)
		return cli_options_status(n);
	argv[n] = NULL; /* n <= argc, so argv has room */
	cli->around = 1;
	run.name = argv[0];
	run.command = argv + 1;
	status = lock_options_check(cli, &run.o);
	if (status != HF_EXIT_DONE)
		return status;
	/* Fork the command and let the store prepare the lease while we open the local state. */
	if (hf_locks_expect(cli_store(cli), run.o.ttl_ns)) {
		if (!cli_state(cli, 0, &status))
			return command_status_around(status);
		run.leased.begun = fork_leased(cli, run.name, run.command, &run.leased);
	}
	status = lock_open(cli, &run.context);
	if (status != HF_EXIT_DONE)
		unfork(&run);
	/* --on-timeout proceed covers a broken store, if the journal can record it (L8). */
	if (status != HF_EXIT_DONE && run.o.on_timeout == ON_TIMEOUT_PROCEED && run.context.journal)
		return run_without(&run);
	if (status != HF_EXIT_DONE) {
		lock_close(&run.context);
		return command_status_around(status);
	}
	if (hf_locks_lease(run.context.locks) > 0) {
		run.elsewhere = 1;
		if (run.o.ttl_ns == 0)
			run.o.ttl_ns = hf_locks_lease(run.context.locks);
	}
	status = run.o.ttl_ns > 0 ? run_leased(&run) : run_becoming(&run);
	lock_close(&run.context);
	return status;
}
