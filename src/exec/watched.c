/* exec/watched.c - the watcher between a caller and its command, and the caller's side of it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "hf/exec/ptable.h"
#include "hf/exec/watched.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/fdpass.h"
#include "hf/sys/fd/poll.h"
#include "holdfast/clock.h"

#define KILL_AGAIN_NS (5 * HF_MSEC) /* processes that appeared meanwhile */

/* From the watcher: first that it was started, with its pidfd, then how it ended. */
struct news {
	pid_t pid;
	int error; /* -errno: of starting it; then of its exec */
	int code, status;
};

/* -- the watcher ---------------------------------------------------------------------- */

struct watch {
	struct hf_command_signals signals;
	struct hf_child command;
	struct hf_tree tree;
	int socket;
	int caller;           /* its pidfd */
	int is_told;          /* how the command ended */
	int is_ending;        /* the caller was killed */
	int is_last;          /* only the command was left */
	size_t dead;          /* below the command, at the last reading */
	struct hf_mono until; /* the next round of KILL */
};

static void tell(struct watch *watch)
{
	struct news news = { .pid = watch->command.pid,
			     .error = hf_spawn_result(&watch->command),
			     .code = watch->tree.leader_code,
			     .status = watch->tree.leader_status };

	watch->is_told = 1;
	(void)hf_send_fd(watch->socket, &news, sizeof(news), MSG_DONTWAIT, -1);
}

/*
 * Does nothing but the command live? A process that was made while the table was read, and so is not in it, had a parent
 * that has ended since. All that end are in the table until they are waited for, by us, after this, or by the command, which is stopped. So
 * nobody is left when no other lives, none that has ended is our child, and the command has no more dead children than
 * at the last reading.
 */
static int is_alone(struct watch *watch)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	size_t dead = 0, others = 0, before = watch->dead;

	/* Nothing can be seen, so nothing is to be waited for. */
	if (watch->tree.leader == 0 || hf_ptable_read(&scan) < 0)
		return 1;
	hf_ptable_keep_descendants(&scan, (int32_t)getpid(), NULL, 0);
	for (size_t i = 0; i < scan.n; i++) {
		const struct hf_stat *st = &scan.stats[i];

		if (st->pid == watch->tree.leader)
			others += !strchr("TtZX", st->state); /* Z: of one that lives, its first thread has ended */
		else if (hf_stat_is_dead(st) && st->ppid == watch->tree.leader)
			dead++;
		else
			others++;
	}
	watch->dead = dead;
	return others == 0 && dead == before;
}

/* One round. The command is the last one. */
static void end_all(struct watch *watch)
{
	watch->until = hf_mono_in(KILL_AGAIN_NS);
	if (!watch->is_last) {
		(void)hf_child_signal(&watch->command, SIGSTOP);
		watch->is_last = is_alone(watch);
	}
	if (!watch->is_last) {
		hf_tree_kill_but(&watch->tree, watch->tree.leader);
		return;
	}
	(void)hf_child_signal(&watch->command, SIGKILL);
	hf_tree_kill(&watch->tree);
}

static void begin_end(struct watch *watch)
{
	hf_auto_close(&watch->caller);
	hf_auto_close(&watch->socket);
	watch->is_ending = 1;
	watch->until = hf_mono_now();
}

static void sleep_a_while(struct watch *watch)
{
	struct pollfd fds[] = { { .fd = watch->signals.fd, .events = POLLIN },
				{ .fd = watch->socket, .events = POLLIN },
				{ .fd = watch->caller, .events = POLLIN } };
	int sig, code;
	char byte;

	if (hf_poll_until(fds, 3, watch->until) <= 0)
		return;
	while (hf_command_signals_next(&watch->signals, &sig, &code))
		if (!watch->is_ending)
			(void)hf_child_signal(&watch->command, sig);
	/* Its last word first: a caller that has said it may end. */
	if (fds[1].revents && recv(watch->socket, &byte, 1, MSG_DONTWAIT) == 1)
		_exit(0);
	if (fds[1].revents || fds[2].revents)
		begin_end(watch);
}

static _Noreturn void watch_to_the_end(struct watch *watch)
{
	while (hf_tree_reap(&watch->tree)) {
		if (watch->tree.leader_exited && !watch->is_told && !watch->is_ending)
			tell(watch);
		if (watch->is_ending && hf_mono_left(watch->until) == 0)
			end_all(watch);
		sleep_a_while(watch);
	}
	if (!watch->is_told && !watch->is_ending)
		tell(watch);
	_exit(0);
}

static int begin_watch(struct watch *watch, pid_t caller, const struct hf_spawn *spawn)
{
	sigset_t all;
	int r;

	/* What is sent to the caller's group does not end us. */
	(void)setpgid(0, 0);
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	watch->caller = hf_sys.pidfd_open(caller, 0);
	if (watch->caller < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	/* Opened first, still our parent after: it is the one. */
	if (getppid() != caller)
		return -ECHILD;
	r = hf_command_signals_take(&watch->signals);
	if (r == 0)
		r = hf_spawn(spawn, &watch->command);
	if (r == 0)
		r = hf_spawn_go(&watch->command);
	return r;
}

static _Noreturn void watcher_main(const struct hf_spawn *spawn, pid_t caller, int socket)
{
	struct watch watch = { .signals = { .fd = -1 }, .command = HF_CHILD_INIT, .tree = HF_TREE_INIT, .socket = socket,
			       .caller = -1, .until = HF_MONO_NEVER };
	struct news news = { 0 };

	news.error = begin_watch(&watch, caller, spawn);
	news.pid = watch.command.pid;
	if (hf_send_fd(socket, &news, sizeof(news), 0, watch.command.pidfd) < 0 || news.error < 0)
		_exit(1);
	watch.tree.leader = (int32_t)watch.command.pid;
	hf_command_waits(HF_WAITS_WITH_LEASE);
	hf_apart_close((int[]){ watch.signals.fd, watch.command.pidfd, watch.command.report, socket, watch.caller }, 5);
	watch_to_the_end(&watch);
}

/* -- the caller ------------------------------------------------------------------------- */

/* Without children before us, everybody that comes to us is the command's. */
static int become_subreaper(struct hf_tree *tree, int *ret_is)
{
	int r = hf_tree_note_others(tree);

	if (r < 0 || tree->n_others > 0)
		return r;
	*ret_is = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
	return 0;
}

int hf_watched_begin(const struct hf_spawn *spawn, struct hf_watched_command *ret)
{
	AUTO(hf_watched_done) struct hf_watched_command watched = HF_WATCHED_INIT;
	pid_t pid, caller = getpid();
	AUTO_FD theirs = -1;
	int ends[2], r = become_subreaper(&watched.tree, &watched.is_subreaper);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	watched.news = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid == 0) {
		(void)close(watched.news);
		watcher_main(spawn, caller, theirs);
	}
	if (pid < 0)
		return -errno;
	watched.tree.reaper = (int32_t)pid;
	*ret = watched;
	watched = (struct hf_watched_command)HF_WATCHED_INIT;
	return 0;
}

int hf_watched_started(struct hf_watched_command *watched)
{
	struct news news;
	int r;

	do
		r = (int)hf_recv_fd(watched->news, &news, sizeof(news), 0, &watched->pidfd);
	while (r == -EINTR);
	if (r != (int)sizeof(news))
		return r < 0 ? r : -ECHILD;
	if (news.error < 0)
		return news.error;
	watched->pid = news.pid;
	watched->tree.leader = (int32_t)news.pid;
	return 0;
}

int hf_watched_start(const struct hf_spawn *spawn, struct hf_watched_command *ret)
{
	AUTO(hf_watched_done) struct hf_watched_command watched = HF_WATCHED_INIT;
	int r = hf_watched_begin(spawn, &watched);

	if (r == 0)
		r = hf_watched_started(&watched);
	if (r < 0)
		return r;
	*ret = watched;
	watched = (struct hf_watched_command)HF_WATCHED_INIT;
	return 0;
}

static void note_end(struct hf_watched_command *watched, int code, int status)
{
	watched->tree.leader = 0;
	watched->tree.leader_exited = 1;
	watched->tree.leader_code = code;
	watched->tree.leader_status = status;
}

/* The watcher was killed. What comes to us gets no grace; of what does not, the kernel kills the command. */
static void end_unwatched(struct hf_watched_command *watched)
{
	struct pollfd end = { .fd = watched->pidfd, .events = POLLIN };

	while (watched->is_subreaper && hf_tree_reap(&watched->tree)) {
		hf_tree_kill(&watched->tree);
		hf_pause(KILL_AGAIN_NS);
	}
	while (!watched->tree.leader_exited && hf_poll_until(&end, 1, HF_MONO_NEVER) < 0)
		continue;
	if (!watched->tree.leader_exited)
		note_end(watched, CLD_KILLED, SIGKILL);
}

int hf_watched_hear(struct hf_watched_command *watched)
{
	/* First the death, then what was said before it. */
	int alive = hf_tree_reap(&watched->tree), fd = -1;
	struct news news;

	if (!watched->is_told && hf_recv_fd(watched->news, &news, sizeof(news), MSG_DONTWAIT, &fd) == (ssize_t)sizeof(news)) {
		watched->is_told = 1;
		watched->exec_error = news.error;
		note_end(watched, news.code, news.status);
	}
	if (watched->tree.reaper > 0)
		return alive;
	end_unwatched(watched);
	return 0;
}

int hf_watched_signal(const struct hf_watched_command *watched, int sig)
{
	return hf_sys.pidfd_send_signal(watched->pidfd, sig) < 0 ? -errno : 0;
}

void hf_watched_leave(struct hf_watched_command *watched)
{
	if (watched->news >= 0)
		(void)!send(watched->news, "l", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void hf_watched_done(struct hf_watched_command *watched)
{
	hf_auto_close(&watched->pidfd);
	hf_auto_close(&watched->news);
	hf_tree_done(&watched->tree);
}
