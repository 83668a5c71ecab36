/*
 * tests/helper/proc_helper.h - processes to be judged, and kernels that lack things.
 *
 * Header only, for the tests of the proc layer. It works in the test program and in
 * every process that it forks, also in new namespaces:
 *
 *     struct child *c = child_start(child_answers, NULL);
 *     ...
 *     assert_int_equal(child_ask(c), 'n');          alive, and SIGUSR1 never came
 *
 * SIGUSR1 is blocked in all of them (proc_test_begin), so "was it sent?" is a
 * question with an answer that does not depend on time: sent means pending.
 * A child ends when its parent closes the pipe to it, so none outlives a failed test.
 */
#ifndef TESTS_PROC_HELPER_H
#define TESTS_PROC_HELPER_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "holdfast/proc.h"
#include "hf/sys/calls.h"

#define DEADLINE_MS  20000
#define MAX_CHILDREN 8
#define EXIT_BROKEN  99

struct child {
	pid_t pid; /* 0: reaped */
	int to;    /* closing it ends the child */
	int from;
};

static struct child proc_children[MAX_CHILDREN];
static int proc_n_children;
static pid_t proc_main_pid;
static struct hf_sys proc_real_sys;

/* An assertion for all processes: cmocka's longjmp exists only in the one that runs it. */
#define MUST(condition)                                                                  \
	do {                                                                             \
		if (!(condition))                                                        \
			must_fail(#condition, __FILE__, __LINE__);                       \
	} while (0)

static inline void must_fail(const char *condition, const char *file, int line)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s (errno %d)\n", file, line, condition, errno);
	if (getpid() == proc_main_pid)
		_fail(file, line);
	_exit(EXIT_BROKEN);
}

/* 1 when SIGUSR1 was sent to this process since the last question. */
static inline int usr1_came(void)
{
	struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, &now) == SIGUSR1;
}

static inline void tell(int fd, char byte)
{
	MUST(write(fd, &byte, 1) == 1);
}

/* The next byte, or -1 when the other side is gone or silent. */
static inline int hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	unsigned char byte;

	return poll(&p, 1, DEADLINE_MS) == 1 && read(fd, &byte, 1) == 1 ? byte : -1;
}

static inline void child_answers_until_eof(int in, int out)
{
	char question;

	while (read(in, &question, 1) == 1)
		tell(out, usr1_came() ? 'y' : 'n');
}

/* The usual child: says that it is there, then answers child_ask for ever. */
static inline void child_answers(int in, int out, void *arg)
{
	(void)arg;
	tell(out, 'r');
	child_answers_until_eof(in, out);
}

/* What a forked process inherits are not its own children; it must not hold their pipes open. */
static inline void children_forget(void)
{
	for (int i = 0; i < proc_n_children; i++) {
		close(proc_children[i].to);
		close(proc_children[i].from);
	}
	proc_n_children = 0;
}

/* Forks; `body` must tell 'r' when it is ready, which is waited for. */
static inline struct child *child_start(void (*body)(int in, int out, void *arg), void *arg)
{
	struct child *c = &proc_children[proc_n_children];
	int down[2], up[2];

	MUST(proc_n_children < MAX_CHILDREN);
	MUST(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
	c->pid = fork();
	MUST(c->pid >= 0);
	if (c->pid == 0) {
		children_forget();
		close(down[1]);
		close(up[0]);
		body(down[0], up[1], arg);
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	c->to = down[1];
	c->from = up[0];
	proc_n_children++;
	MUST(hear(c->from) == 'r');
	return c;
}

/* 'y' SIGUSR1 came since the last question, 'n' it did not, -1 the child is gone. */
static inline int child_ask(struct child *c)
{
	char question = '?';

	return write(c->to, &question, 1) == 1 ? hear(c->from) : -1;
}

/* Waits for the end and reaps; returns the wait status. */
static inline int child_reap(struct child *c)
{
	int status;

	MUST(waitpid(c->pid, &status, 0) == c->pid);
	c->pid = 0;
	return status;
}

static inline int child_kill(struct child *c)
{
	MUST(kill(c->pid, SIGKILL) == 0);
	return child_reap(c);
}

/* Leaves a zombie. */
static inline void child_kill_only(struct child *c)
{
	siginfo_t info;

	MUST(kill(c->pid, SIGKILL) == 0);
	MUST(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) == 0);
}

/* By itself first, so that what it forked ends with it; by force after the deadline. */
static inline void child_end(struct child *c)
{
	struct pollfd p = { .events = POLLIN };

	close(c->to);
	if (c->pid > 0) {
		kill(c->pid, SIGCONT);
		p.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
		if (p.fd < 0 || poll(&p, 1, DEADLINE_MS) != 1)
			kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
		if (p.fd >= 0)
			close(p.fd);
	}
	close(c->from);
}

static inline void children_end(void)
{
	while (proc_n_children > 0)
		child_end(&proc_children[--proc_n_children]);
}

/*
 * Forks and goes on in the child; the parent only waits, notes in `came` (may be
 * NULL) whether SIGUSR1 came to it, and passes the exit status on.
 */
static inline void descend(int *came)
{
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (pid == 0)
		return;
	MUST(waitpid(pid, &status, 0) == pid);
	if (came)
		*came = usr1_came();
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_BROKEN);
}

static inline int write_text(const char *path, const char *text)
{
	size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int failed = fd < 0 || write(fd, text, len) != (ssize_t)len ? errno : 0;

	if (fd >= 0)
		close(fd);
	return failed;
}

/* Root needs no user namespace; others get one in which they are root. 0 or errno. */
static inline int enter_namespaces(int flags)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[32];
	int failed;

	if (uid == 0 && unshare(flags) == 0)
		return 0;
	if (unshare(flags | CLONE_NEWUSER) < 0)
		return errno;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	failed = write_text("/proc/self/uid_map", map);
	if (failed)
		return failed;
	/* Kernels want it before gid_map; very old ones do not have it. */
	(void)write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_text("/proc/self/gid_map", map);
}

/* Memory that forked processes write and the test reads. Zeroed; never freed before exit. */
static inline void *shared_new(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* As field 22 of /proc/PID/stat counts. */
static inline uint64_t boottime_ticks(void)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec ts;

	MUST(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
	return (uint64_t)ts.tv_sec * hz + (uint64_t)ts.tv_nsec * hz / 1000000000U;
}

/* Kernels to be tested on, whichever one this is. */
enum kernel {
	KERNEL_AS_IS,
	KERNEL_NO_PIDFS, /* before 6.9 */
	KERNEL_NO_PIDFD, /* a sandbox that forbids pidfd_open */
	N_KERNELS
};

static const char *const kernel_names[] = { "as is", "no pidfs", "no pidfd_open" };

static inline int fstatfs_no_pidfs(int fd, struct statfs *st)
{
	int r = fstatfs(fd, st);

	st->f_type = 0x09041934; /* anon_inodefs, which pidfds were on before pidfs */
	return r;
}

static inline int pidfd_open_enosys(pid_t pid, unsigned flags)
{
	(void)pid;
	(void)flags;
	errno = ENOSYS;
	return -1;
}

/* Changes only what that kernel lacks; a fault armed before stays armed. */
static inline void kernel_pretend(enum kernel kernel)
{
	if (kernel == KERNEL_NO_PIDFS)
		hf_sys.fstatfs = fstatfs_no_pidfs;
	if (kernel == KERNEL_NO_PIDFD)
		hf_sys.pidfd_open = pidfd_open_enosys;
}

static inline void kernel_restore(void)
{
	hf_fault_disarm();
	hf_sys = proc_real_sys;
}

/* Once, at the start of main. */
static inline void proc_test_begin(void)
{
	sigset_t set;

	proc_main_pid = getpid();
	proc_real_sys = hf_sys;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* a question to a child that has died is an answer too */
}

/* Also after a failure: no child, no changed call, no pending signal for the next test. */
static inline int proc_test_teardown(void **state)
{
	siginfo_t info;
	int leaked;

	kernel_restore();
	children_end();
	(void)usr1_came();
	leaked = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
	if (leaked)
		print_error("the test left a child behind\n");
	return hf_test_teardown(state) < 0 || leaked ? -1 : 0;
}

#define PROC_TEST(fn) { #fn, fn, hf_test_setup, proc_test_teardown, NULL }

#endif
