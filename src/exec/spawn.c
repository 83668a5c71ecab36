/* exec/spawn.c - fork, hold, exec. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/marks.h"
#include "hf/exec/spawn.h"
#include "hf/proc/blocked.h"
#include "hf/sys/calls.h"
#include "hf/sys/clone.h"
#include "hf/sys/io.h"

extern char **environ;

void hf_child_done(struct hf_child *child)
{
	hf_auto_close(&child->pidfd);
	hf_auto_close(&child->go);
	hf_auto_close(&child->report);
}

int hf_child_signal(const struct hf_child *child, int sig)
{
	return hf_sys.pidfd_send_signal(child->pidfd, sig) < 0 ? -errno : 0;
}

void hf_command_waits(enum hf_waits what)
{
	(void)prctl(PR_SET_NAME, what == HF_WAITS_WITH_LEASE ? HF_COMM_LEASE : HF_COMM_EDIT);
}

/* -- the child's side: only what is safe in a signal handler --------------------- */

static _Noreturn void child_fail(int report, int error)
{
	(void)!write(report, &error, sizeof(error));
	_exit(HF_EXIT_NO_FILE);
}

static int limit(int resource, uint64_t value)
{
	struct rlimit old, new = { .rlim_cur = value, .rlim_max = value };

	if (value == 0 || getrlimit((__rlimit_resource_t)resource, &old) < 0)
		return value == 0 ? 0 : -1;
	/* One that is tighter already stays. */
	if (old.rlim_max != RLIM_INFINITY && old.rlim_max < value)
		return 0;
	return setrlimit((__rlimit_resource_t)resource, &new);
}

static int set_limits(const struct hf_spawn_limits *limits)
{
	errno = 0;
	if (limits->nice && nice(limits->nice) == -1 && errno != 0)
		return -1;
	if (limits->has_cpus && sched_setaffinity(0, sizeof(limits->cpus), &limits->cpus) < 0)
		return -1;
	return limit(RLIMIT_DATA, limits->data) < 0 ? -1 : limit(RLIMIT_NPROC, limits->nproc);
}

static _Noreturn void child_main(const struct hf_spawn *spawn, pid_t parent, int go, int report)
{
	char byte;
	ssize_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the line above. */
	if (getppid() != parent)
		_exit(HF_EXIT_NO_FILE);
	do {
		n = read(go, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(HF_EXIT_NO_FILE);
	if (spawn->terminal) {
		if (setpgid(0, 0) < 0 || tcsetpgrp(spawn->stdio[1], getpid()) < 0)
			child_fail(report, errno);
	} else {
		/* The group may be gone, or of another session: then one of its own. */
		if (spawn->group == 0 || setpgid(0, spawn->group) < 0)
			(void)setpgid(0, 0);
	}
	for (int i = 0; i < 3; i++)
		if (spawn->stdio[i] >= 0 && dup2(spawn->stdio[i], i) < 0)
			child_fail(report, errno);
	/* Fails where the limit is lower by now: then the environment is the only mark. */
	if (spawn->mark)
		(void)hf_limit_mark_set(spawn->mark);
	if (spawn->limits && set_limits(spawn->limits) < 0)
		child_fail(report, errno);
	if (spawn->enter) {
		int r = spawn->enter(spawn->enter_arg);

		if (r < 0)
			child_fail(report, -r);
	}
	(void)sigprocmask(SIG_SETMASK, spawn->mask, NULL);
	/* Its own PATH is the one to be searched. */
	environ = (char **)(uintptr_t)spawn->envp;
	(void)execvp(spawn->argv[0], spawn->argv);
	child_fail(report, errno);
}

/* -- a child that shares our memory ------------------------------------------------ */

/*
 * What it needs while it waits, when hf_spawn has returned; and its stack. The C library searches PATH and hands the words of a script
 * without "#!" to a shell on that: a few KiB, and a pointer for each word.
 */
#define SHARED_WORDS_MAX 1024

static struct {
	const struct hf_spawn *spawn;
	pid_t parent;
	int go, report, parents_go;
	_Alignas(16) char stack[64 * 1024];
} shared;

static void shared_main(void *arg)
{
	(void)arg;
	/* What is flocked among our descriptors it has no longer than it waits, and it does not outlive us (PDEATHSIG). */
	(void)close(shared.parents_go);
	child_main(shared.spawn, shared.parent, shared.go, shared.report);
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* As clone_into; -1 when it has to be a copy. */
static pid_t start_sharing(const struct hf_spawn *spawn, int group, int go, int report, struct hf_child *child)
{
	const struct hf_clone clone = { shared_main, NULL, shared.stack, sizeof(shared.stack) };
	pid_t pid;

	if (!spawn->shares_memory || spawn->enter || count(spawn->argv) > SHARED_WORDS_MAX)
		return -1;
	shared.spawn = spawn;
	shared.parent = getpid();
	shared.go = go;
	shared.report = report;
	shared.parents_go = child->go;
	pid = hf_sys.clone_sharing(group, &child->pidfd, &clone);
	if (pid > 0)
		child->environ_before = environ;
	return pid;
}

/* -- ours ----------------------------------------------------------------------- */

/* fork() and then a move into the group, for kernels and sandboxes without clone3. */
static pid_t fork_plain(const struct hf_spawn *spawn, struct hf_child *child)
{
	child->pid = fork();
	if (child->pid <= 0)
		return child->pid;
	/* Ours and not yet reaped: the number is its own. */
	child->pidfd = hf_sys.pidfd_open(child->pid, 0);
	if (child->pidfd >= 0 && spawn->cgroup->fd >= 0 &&
	    hf_cgroup_add(spawn->cgroup, (int32_t)child->pid) < 0)
		hf_cgroup_remove(spawn->cgroup);
	return child->pid;
}

/* Is SIGKILL in that line of /proc/PID/status? */
static int has_kill(const char *status, const char *line_start)
{
	const char *line = strstr(status, line_start);
	uint64_t set = 0;

	return line && hf_parse_hex64(line + strlen(line_start), 16, &set) == 0 && (set & UINT64_C(1) << (SIGKILL - 1));
}

/*
 * Has the kernel killed it when it was made? Such a process never runs. The signal is pending for the process until it is
 * reaped, and for its thread only until that begins to exit: a process that takes long to do so would look alive.
 */
static int is_stillborn(pid_t pid)
{
	char path[32], text[4096];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return has_kill(text, "\nShdPnd:\t") || has_kill(text, "\nSigPnd:\t") || strstr(text, "\nState:\tZ") ||
	       strstr(text, "\nState:\tX");
}

/* As fork(). The child is in its group when it is let go at the latest. */
static pid_t start(const struct hf_spawn *spawn, int go, int report, struct hf_child *child)
{
	struct hf_cgroup *group = spawn->cgroup;
	int in_group = group->fd >= 0 && !group->is_killed;

	child->pid = start_sharing(spawn, in_group ? group->fd : -1, go, report, child);
	if (child->pid < 0)
		child->pid = hf_sys.clone_into(in_group ? group->fd : -1, &child->pidfd);
	if (child->pid > 0 && in_group && !group->is_tried) {
		group->is_tried = 1;
		if (is_stillborn(child->pid)) {
			group->is_killed = 1;
			(void)waitid(P_PID, (id_t)child->pid, &(siginfo_t){ 0 }, WEXITED);
			hf_auto_close(&child->pidfd);
			child->environ_before = NULL;
			return start(spawn, go, report, child);
		}
	}
	if (child->pid < 0)
		return fork_plain(spawn, child);
	if (child->pid > 0 && !in_group && group->fd >= 0 && hf_cgroup_add(group, (int32_t)child->pid) < 0)
		hf_cgroup_remove(group);
	return child->pid;
}

int hf_spawn(const struct hf_spawn *spawn, struct hf_child *ret)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	AUTO_FD go = -1;
	AUTO_FD report = -1;
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	go = ends[0];
	child.go = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child.report = ends[0];
	report = ends[1];

	if (start(spawn, go, report, &child) == 0) {
		(void)close(child.go);
		child_main(spawn, parent, go, report);
	}
	if (child.pid < 0)
		return -errno;
	if (child.pidfd < 0) {
		int error = errno;

		/* Without a pidfd it cannot be looked after: it does not start. */
		hf_auto_close(&child.go);
		(void)waitid(P_PID, (id_t)child.pid, &(siginfo_t){ 0 }, WEXITED);
		return -error;
	}
	*ret = child;
	child = (struct hf_child)HF_CHILD_INIT;
	return 0;
}

int hf_spawn_go(struct hf_child *child)
{
	if (hf_write_all(child->go, "g", 1) < 0)
		return -EPIPE;
	hf_auto_close(&child->go);
	return 0;
}

int hf_spawn_result(struct hf_child *child)
{
	int error = 0;
	ssize_t n;

	do {
		n = hf_sys.read(child->report, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	/* Its memory is its own by now. */
	if (child->environ_before)
		environ = child->environ_before;
	child->environ_before = NULL;
	hf_auto_close(&child->report);
	return n == sizeof(error) ? -error : 0;
}

int hf_spawn_status(int error)
{
	return error == ENOENT || error == ENOTDIR ? HF_EXIT_NO_FILE : HF_EXIT_NO_EXEC;
}

static int is_named(const char *entry, const char *name, size_t len)
{
	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

static int is_in(const char *entry, char *const *list)
{
	for (size_t i = 0; list && list[i]; i++)
		if (is_named(entry, list[i], strcspn(list[i], "=")))
			return 1;
	return 0;
}

static int is_unset(const char *entry, const char *const *unset)
{
	for (size_t i = 0; unset[i]; i++)
		if (is_named(entry, unset[i], strlen(unset[i])))
			return 1;
	return 0;
}

char **hf_spawn_environment(char *const *set, char *const *more, const char *const *unset)
{
	char **envp = malloc((count(set) + count(more) + count(environ) + 1) * sizeof(*envp));
	size_t at = 0;

	if (!envp)
		return NULL;
	for (size_t i = 0; set[i]; i++)
		envp[at++] = set[i];
	for (size_t i = 0; more && more[i]; i++)
		if (!is_in(more[i], set))
			envp[at++] = more[i];
	for (size_t i = 0; environ && environ[i]; i++)
		if (!is_in(environ[i], set) && !is_in(environ[i], more) && !is_unset(environ[i], unset))
			envp[at++] = environ[i];
	envp[at] = NULL;
	return envp;
}
