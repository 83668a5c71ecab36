/* plan/enter/enter_child.c - the child's side: inside, with its helper, before exec. Allocates nothing. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/enter/enter_inner.h"
#include "hf/plan/sandbox/use.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

static int send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { (char[]){ 'l' }, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *head;
	ssize_t n;
	int fd;

	do {
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!head || head->cmsg_type != SCM_RIGHTS)
		return -EPIPE;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

struct helping {
	struct hf_enter *enter;
	int ends[2]; /* ours, its */
};

/* Tells its pid, and waits for the listener. */
static void helper_main(void *arg)
{
	const struct helping *helping = arg;
	struct hf_helper *helper = &helping->enter->helper;
	pid_t self = getpid();

	(void)close(helping->ends[0]);
	if (send(helping->ends[1], &self, sizeof(self), MSG_NOSIGNAL) != sizeof(self))
		_exit(1);
	helper->listener = receive_fd(helping->ends[1]);
	(void)close(helping->ends[1]);
	if (helper->listener < 0)
		_exit(0);
	hf_helper_main(helper);
}

/*
 * The helper is made before the filter, so that it is not under it, and gets the listener after. It is a child of
 * init: neither the command nor the caller of the library has one that it did not make.
 */
static pid_t fork_helper(struct hf_enter *enter, int ends[2])
{
	struct helping helping = { enter, { ends[0], ends[1] } };
	int r = hf_apart_start(helper_main, &helping);
	pid_t pid;
	ssize_t n;

	(void)close(ends[1]);
	if (r < 0)
		return r;
	do {
		n = recv(ends[0], &pid, sizeof(pid), 0);
	} while (n < 0 && errno == EINTR);
	return n == sizeof(pid) ? pid : -ECHILD;
}

/* Installs the filter and gives its listener to the process at the other end. -EPIPE: the filter is there and no process serves it. */
static int install_filter(int channel, struct hf_inside_fail *fail)
{
	AUTO_FD listener = hf_helper_filter();
	int r;

	errno = listener < 0 ? -listener : 0;
	if (listener < 0)
		return hf_inside_failed(fail, "seccomp", "rename helper");
	r = send_fd(channel, listener);
	errno = EPIPE;
	return r < 0 ? hf_inside_failed(fail, "sendmsg", "rename helper") : 0;
}

/* Its pid, or -errno with *fail filled, as install_filter(). */
static pid_t start_helper(struct hf_enter *enter, struct hf_inside_fail *fail)
{
	AUTO_FD channel = -1;
	int ends[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return hf_inside_failed(fail, "socketpair", "rename helper");
	channel = ends[0];
	pid = fork_helper(enter, ends);
	errno = pid < 0 ? -pid : 0;
	if (pid < 0)
		return hf_inside_failed(fail, "clone", "rename helper");
	r = install_filter(channel, fail);
	return r < 0 ? r : pid;
}

int hf_enter_receive_listener(int channel)
{
	return receive_fd(channel);
}

int hf_enter_inside(struct hf_enter *enter, struct hf_inside_fail *fail)
{
	int r = 0;

	if (enter->inside.n > 0 || enter->inside.confine)
		r = hf_inside_enter(&enter->inside, fail);
	return r == 0 && enter->inside.n > 0 ? hf_inside_open_stdio(&enter->inside, fail) : r;
}

int hf_enter_drop(const struct hf_enter *enter, int keep_ptrace, struct hf_inside_fail *fail)
{
	/* A user that is in no namespace has none that could be dropped. */
	if (enter->inside.n > 0 || enter->inside.has_user || (enter->inside.confine && geteuid() == 0))
		return hf_inside_drop(keep_ptrace, fail);
	return 0;
}

/* The last steps before exec. `anchor`: a process that stays inside. */
static int finish(struct hf_enter *enter, pid_t anchor, struct hf_enter_told *told, struct hf_inside_fail *fail)
{
	int r;

	if (enter->inside.n > 0)
		(void)hf_in_write(enter->helper.in_fd, (int32_t)anchor);
	r = hf_enter_drop(enter, 0, fail);
	if (r < 0)
		return r;
	told->command = getpid();
	told->root_only = enter->inside.root_only;
	told->landlocked = enter->inside.landlocked;
	/* The old cwd is a directory behind the overlay. */
	if (chdir(enter->inside.cwd) < 0)
		return hf_inside_failed(fail, "chdir", enter->inside.cwd);
	(void)hf_write_all(enter->report[1], (const char *)told, sizeof(*told));
	r = hf_inside_close_others();
	errno = -r;
	return r < 0 ? hf_inside_failed(fail, "close_range", "descriptors") : 0;
}

static int has_renames(const struct hf_enter *enter)
{
	return enter->inside.n > 0 && !(enter->flags & HF_PLAN_ENTER_NO_RENAME);
}

int hf_enter_finish(struct hf_enter *enter, int channel, pid_t watcher, struct hf_inside_fail *fail)
{
	struct hf_enter_told told = { 0 };
	int r = has_renames(enter) ? install_filter(channel, &told.without) : -ENOTSUP;

	if (r == -EPIPE)
		return *fail = told.without, -EPIPE;
	told.helper = r == 0 ? watcher : 0;
	return finish(enter, watcher, &told, fail);
}

int hf_enter_child(struct hf_enter *enter, struct hf_inside_fail *fail)
{
	struct hf_enter_told told = { 0 };
	pid_t helper = 0;
	int r = hf_enter_inside(enter, fail);

	if (r < 0)
		return r;
	if (has_renames(enter))
		helper = start_helper(enter, &told.without);
	if (helper == -EPIPE)
		return *fail = told.without, -EPIPE;
	told.helper = helper > 0 ? helper : 0;
	return finish(enter, helper > 0 ? helper : getpid(), &told, fail);
}
