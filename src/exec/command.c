/* exec/command.c - a command with input, output and a limit, of which nothing stays behind. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "hf/exec/spawn.h"
#include "hf/exec/tree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"
#include "holdfast/clock.h"

#define KILL_AGAIN_NS (20 * HF_MSEC) /* processes that appeared meanwhile */
#define CHUNK         ((size_t)64 << 10)

/* -- signals --------------------------------------------------------------------- */

int hf_command_signals_take(struct hf_command_signals *ret)
{
	static const int passed[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	ret->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->fd < 0)
		return -errno;
	/* Where SIGCHLD is ignored, the kernel reaps, and nobody learns how a command ended. */
	(void)sigaction(SIGCHLD, &usual, &ret->child);
	(void)sigprocmask(SIG_BLOCK, &set, &ret->mask);
	return 0;
}

void hf_command_signals_done(struct hf_command_signals *signals)
{
	if (signals->fd < 0)
		return;
	(void)sigaction(SIGCHLD, &signals->child, NULL);
	(void)sigprocmask(SIG_SETMASK, &signals->mask, NULL);
	hf_auto_close(&signals->fd);
}

int hf_command_signals_next(const struct hf_command_signals *signals, int *ret_signal, int *ret_code)
{
	struct signalfd_siginfo info;

	while (hf_sys.read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		*ret_signal = (int)info.ssi_signo;
		*ret_code = info.ssi_code;
		return 1;
	}
	return 0;
}

/* -- while it runs ----------------------------------------------------------------- */

struct running {
	const struct hf_command *command;
	struct hf_command_result *result;
	struct hf_command_signals signals;
	const sigset_t *mask; /* the command's */
	int caller;           /* its pidfd */
	struct hf_child child;
	struct hf_tree tree;
	int output;           /* our end of its standard output; -1: has ended */
	uint64_t written;     /* of that */
	int ending;           /* TERM was sent */
	struct hf_mono until; /* the next time something has to happen: TERM, then KILL again and again */
	char *chunk;
};

static void running_done(struct running *run)
{
	hf_child_done(&run->child);
	hf_tree_done(&run->tree);
	hf_command_signals_done(&run->signals);
	hf_auto_close(&run->output);
	hf_auto_close(&run->caller);
	free(run->chunk);
}

static unsigned begin_end(struct running *run, int sig)
{
	unsigned count = 0;

	if (run->ending)
		return 0;
	run->ending = 1;
	run->until = hf_mono_in(run->command->grace_ns);
	if (sig == SIGTERM) {
		count = (unsigned)hf_tree_term(&run->tree, 0);
	} else {
		hf_tree_signal(&run->tree, sig);
		hf_tree_signal(&run->tree, SIGCONT);
	}
	return count;
}

/* Signals first: what the caller got is what it ends with. */
static void pass_signals(struct running *run)
{
	int sig, code;

	while (hf_command_signals_next(&run->signals, &sig, &code)) {
		if (run->result->signal == 0 && !run->ending)
			run->result->signal = sig;
		(void)begin_end(run, sig);
	}
}

/* The caller was killed, and nobody waits for the result: no grace, but for a command that has something to put away. */
static void abandon(struct running *run)
{
	hf_auto_close(&run->caller);
	hf_auto_close(&run->output);
	if (run->command->orphan_grace_ns > 0)
		(void)begin_end(run, SIGTERM);
	run->ending = 1;
	run->until = hf_mono_in(run->command->orphan_grace_ns);
}

/* One piece of its output. */
static void pump(struct running *run)
{
	ssize_t n = hf_sys.read(run->output, run->chunk, CHUNK);
	uint64_t room = run->command->out_max ? run->command->out_max - run->written : UINT64_MAX;
	int r;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		hf_auto_close(&run->output);
		return;
	}
	n = (uint64_t)n > room ? (ssize_t)room : n;
	run->written += (uint64_t)n;
	r = run->result->write_error ? 0 : hf_write_all(run->command->out, run->chunk, (size_t)n);
	if (r < 0) {
		run->result->write_error = r;
		(void)begin_end(run, SIGTERM);
		run->until = hf_mono_now();
	}
}

static int failed(const struct running *run)
{
	return run->ending || run->tree.leader_code != CLD_EXITED || run->tree.leader_status != 0;
}

/* The time is over: of the command, of its grace, or of another round of KILL. */
static void act(struct running *run)
{
	if (!run->ending) {
		run->result->timed_out = 1;
		(void)begin_end(run, SIGTERM);
		return;
	}
	hf_tree_kill(&run->tree);
	run->until = hf_mono_in(KILL_AGAIN_NS);
}

static void sleep_a_while(struct running *run)
{
	struct pollfd fds[] = { { .fd = run->signals.fd, .events = POLLIN },
				{ .fd = run->output, .events = POLLIN },
				{ .fd = run->caller, .events = POLLIN } };

	if (hf_poll_until(fds, 3, run->until) <= 0)
		return;
	if (fds[2].revents) {
		abandon(run);
		return;
	}
	if (fds[0].revents)
		pass_signals(run);
	if (fds[1].revents)
		pump(run);
}

static void watch(struct running *run)
{
	for (;;) {
		int alive = hf_tree_reap(&run->tree);

		/* With a failure its output does not matter any more. */
		if (run->tree.leader_exited && failed(run))
			hf_auto_close(&run->output);
		if (!alive && run->output < 0)
			return;
		if (alive && run->tree.leader_exited && run->output < 0 && !run->ending)
			run->result->left = begin_end(run, SIGTERM);
		if (hf_mono_left(run->until) == 0)
			act(run);
		sleep_a_while(run);
	}
}

static int start(struct running *run)
{
	const struct hf_command *command = run->command;
	struct hf_cgroup none = HF_CGROUP_INIT;
	AUTO_FD null = -1;
	AUTO_FD write_end = -1;
	struct hf_spawn spawn = { .argv = command->argv,
				  .envp = command->envp,
				  .stdio = { command->in, STDERR_FILENO, -1 },
				  .mask = run->mask,
				  .cgroup = &none,
				  .enter = command->enter,
				  .enter_arg = command->enter_arg };
	int ends[2], r;

	run->chunk = malloc(CHUNK);
	if (!run->chunk)
		return -ENOMEM;
	if (command->in < 0) {
		null = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
		if (null < 0)
			return null;
		spawn.stdio[0] = null;
	}
	if (command->out >= 0) {
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		run->output = ends[0];
		write_end = ends[1];
		spawn.stdio[1] = write_end;
	}
	r = hf_spawn(&spawn, &run->child);
	if (r < 0)
		return r;
	run->tree.leader = (int32_t)run->child.pid;
	/* If it was killed by now, that is how it ended. */
	(void)hf_spawn_go(&run->child);
	return 0;
}

static void run_command(const struct hf_command *command, int caller, const sigset_t *mask, struct hf_command_result *ret)
{
	struct hf_command_result result = { 0 };
	AUTO(running_done) struct running run = { .command = command,
						  .result = &result,
						  .signals = { .fd = -1 },
						  .mask = mask,
						  .caller = caller,
						  .child = HF_CHILD_INIT,
						  .tree = HF_TREE_INIT,
						  .output = -1,
						  .until = hf_mono_in(command->limit_ns) };

	result.error = hf_command_signals_take(&run.signals);
	if (result.error == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		result.error = -errno;
	if (result.error == 0)
		result.error = start(&run);
	if (result.error == 0) {
		watch(&run);
		result.exec_error = hf_spawn_result(&run.child);
		result.code = run.tree.leader_code;
		result.status = run.tree.leader_status;
	}
	*ret = result;
}

static _Noreturn void watcher_main(const struct hf_command *command, pid_t parent, int report, const sigset_t *mask)
{
	struct hf_command_result result;
	int caller = hf_sys.pidfd_open(parent, 0);

	/* A terminal's signal goes to the caller, which passes it on. What is sent to the caller's group does not end us. */
	(void)setpgid(0, 0);
	/* Opened first, still our parent after: it is the one. */
	if (caller < 0 || getppid() != parent)
		_exit(1);
	/* Signals stay blocked: one that is passed on now must not end this process. */
	run_command(command, caller, mask, &result);
	_exit(hf_write_all(report, (const char *)&result, sizeof(result)) == 0 ? 0 : 1);
}

/* -- the caller ----------------------------------------------------------------------- */

static int has_children(void)
{
	siginfo_t info = { 0 };

	return !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD);
}

/* Waits for the watcher, and passes on to it what we get. */
static void attend(const struct hf_command_signals *signals, pid_t pid, int pidfd)
{
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN }, { .fd = signals->fd, .events = POLLIN } };
	int sig, code;

	do {
		(void)hf_sys.poll(fds, 2, -1);
		while (hf_command_signals_next(signals, &sig, &code))
			(void)hf_sys.pidfd_send_signal(pidfd, sig);
	} while (!(fds[0].revents & POLLIN));
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
}

/* The watcher was killed: the processes that it watched are our children now. They get no grace. */
static void end_orphans(void)
{
	AUTO(hf_tree_done) struct hf_tree tree = HF_TREE_INIT;

	while (hf_tree_reap(&tree)) {
		hf_tree_kill(&tree);
		hf_pause(KILL_AGAIN_NS);
	}
}

/*
 * Numbers that the watcher keeps: a descriptor that the library has flocked means nothing in it
 * (noinherit.h). 0 or -errno.
 */
static int keep(int fd, int *ret)
{
	*ret = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd >= 0 && *ret < 0 ? -errno : 0;
}

/* The same for a file that is written: opened anew, so that its flock ends with us and not with the watcher. */
static int keep_file(int fd, int *ret)
{
	char path[40];
	struct stat st;

	if (fd < 0 || hf_stat_at(fd, "", &st) < 0 || !S_ISREG(st.st_mode))
		return keep(fd, ret);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret = hf_open_at(AT_FDCWD, path, O_WRONLY, 0);
	return *ret < 0 ? keep(fd, ret) : 0;
}

void hf_command_run(const struct hf_command *given, struct hf_command_result *ret)
{
	AUTO(hf_command_signals_done) struct hf_command_signals signals = { .fd = -1 };
	struct hf_command command = *given;
	AUTO_FD in = -1;
	AUTO_FD out = -1;
	AUTO_FD report = -1;
	AUTO_FD write_end = -1;
	AUTO_FD pidfd = -1;
	pid_t pid, parent = getpid();
	int ends[2], was_subreaper = 0, alone = !has_children();

	*ret = (struct hf_command_result){ 0 };
	ret->error = keep(given->in, &in);
	if (ret->error == 0)
		ret->error = keep_file(given->out, &out);
	if (ret->error == 0 && pipe2(ends, O_CLOEXEC) < 0)
		ret->error = -errno;
	if (ret->error < 0)
		return;
	report = ends[0];
	write_end = ends[1];
	command.in = in;
	command.out = out;
	ret->error = hf_command_signals_take(&signals);
	if (ret->error < 0)
		return;
	(void)prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper);
	if (alone)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0)
		watcher_main(&command, parent, write_end, &signals.mask);
	hf_auto_close(&write_end);
	hf_auto_close(&in);
	hf_auto_close(&out);
	/* Ours and not yet waited for: the number is its own. */
	pidfd = pid < 0 ? -1 : hf_sys.pidfd_open(pid, 0);
	if (pidfd < 0)
		ret->error = -errno;
	else
		attend(&signals, pid, pidfd);
	if (pidfd >= 0 && hf_read_all(report, (char *)ret, sizeof(*ret)) != (ssize_t)sizeof(*ret)) {
		*ret = (struct hf_command_result){ .error = -ECHILD };
		if (alone)
			end_orphans();
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, was_subreaper);
}
