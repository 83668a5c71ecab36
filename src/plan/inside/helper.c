/* plan/inside/helper.c - the helper's life: renames, the end, the rest. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hf/plan/inside/helper.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"
#include "hf/sys/apart.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0 /* no filter: renames of directories give EXDEV */
#endif

#define GRACE_MS   50 /* for what ends together with the command */

/* -- the filter -------------------------------------------------------------------- */

/* Only of our own architecture: the numbers mean other calls in a 32-bit program or under x32. */
int hf_helper_filter(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_rename
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 2, 0),
#else
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 2, 0),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };
	const unsigned long listener = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	/* Only a fatal signal ends a rename that was begun: else the call would be made twice. */
	const unsigned long killable = 1UL << 5; /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 5.19 */
	long fd;

	if (ARCH == 0)
		return -ENOSYS;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listener | killable, &program);
	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, listener, &program);
	return fd < 0 ? -errno : (int)fd;
}

/* -- the end ------------------------------------------------------------------------ */

static void tell(int parent, char word)
{
	if (parent >= 0)
		(void)!send(parent, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reap_all(int listener, int block)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | (block ? 0 : WNOHANG)) == 0 && info.si_pid != 0) {
		hf_helper_forget(listener, info.si_pid);
		info.si_pid = 0;
	}
}

/*
 * Is a process left in our namespaces that others brought there? A watcher of theirs may have been killed, and then no lock
 * shows what it looked after. The file names the last one that came.
 */
static int is_left_by_others(const struct hf_helper *helper)
{
	struct hf_inhabitants inside;

	if (helper->n == 0)
		return 0;
	hf_in_read(helper->in_fd, &inside);
	return (helper->is_joined || inside.pid != (int32_t)getpid()) && hf_in_is_shared();
}

static char settle(const struct hf_helper *helper)
{
	/* The read lock becomes a write lock, or stays: then another enter is inside. */
	if (hf_in_lock(helper->in_fd, 1) < 0 || is_left_by_others(helper))
		return HF_HELPER_OTHERS;
	for (size_t i = 0; i < helper->n; i++)
		if (hf_sandbox_settle(helper->sandboxes[i]) < 0)
			return HF_HELPER_FAILED;
	for (size_t i = 0; i < helper->n_copies; i++)
		if (hf_used_settle(helper->copies[i]) < 0)
			return HF_HELPER_FAILED;
	/* The number of a namespace is given again. */
	hf_in_clear(helper->in_fd);
	return HF_HELPER_SETTLED;
}

char hf_helper_rest(const struct hf_helper *helper)
{
	char word = settle(helper);

	/* Before it is told: a process that hears "settled" must not find it in use. */
	hf_in_unlock(helper->in_fd);
	return word;
}

void hf_helper_keep_only(const struct hf_helper *helper, int fd, int other)
{
	int kept[5 + 2 * HF_PLAN_SANDBOXES_MAX] = { helper->in_fd, helper->parent, helper->listener, fd, other };
	size_t n = 5;

	for (size_t i = 0; i < helper->n; i++)
		kept[n++] = helper->sandboxes[i];
	for (size_t i = 0; i < helper->n_copies; i++)
		kept[n++] = helper->copies[i];
	hf_apart_close(kept, n);
}

_Noreturn void hf_helper_main(const struct hf_helper *helper)
{
	struct pollfd fds[2] = { { .fd = helper->listener, .events = POLLIN },
				 { .fd = helper->parent, .events = POLLIN } };
	struct hf_inside_fail fail;
	struct timespec asked = { 0 }, now;
	sigset_t all;
	char word;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "hf-sandbox");
	(void)prctl(PR_SET_PDEATHSIG, 0);
	hf_helper_keep_only(helper, -1, -1);
	if (chdir("/") < 0 || hf_inside_drop(1, &fail) < 0)
		_exit(1);
	for (;;) {
		int wait_ms = asked.tv_sec || asked.tv_nsec ? GRACE_MS : -1;

		if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
			break;
		reap_all(helper->listener, 0);
		if (fds[0].revents & POLLIN)
			hf_helper_serve(helper->listener);
		else if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			break;
		if (fds[1].revents) {
			if (recv(helper->parent, &word, 1, MSG_DONTWAIT) == 1)
				(void)clock_gettime(CLOCK_MONOTONIC, &asked);
			else
				fds[1].fd = -1; /* it is gone; we stay */
		}
		if (wait_ms < 0)
			continue;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - asked.tv_sec) * 1000 + (now.tv_nsec - asked.tv_nsec) / 1000000 >=
		    GRACE_MS) {
			tell(helper->parent, HF_HELPER_LEFT);
			asked = (struct timespec){ 0 };
		}
	}
	reap_all(helper->listener, 1);
	tell(helper->parent, hf_helper_rest(helper));
	_exit(0);
}
