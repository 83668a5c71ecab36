/* plan/inside/id_maps.c - which ids there are in a new user namespace: all that root has, or the caller's own two. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/inside/namespace.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/clone.h"
#include "hf/sys/io.h"

/* The next word of a line; *at goes behind it. */
static int next_word(const char **at)
{
	*at += strspn(*at, " ");
	size_t len = strcspn(*at, " \n");

	*at += len;
	return (int)len;
}

/* "inside outside count" for each extent becomes "inside inside count". */
static int read_map(const char *path, char out[HF_INSIDE_MAP_MAX])
{
	char text[HF_INSIDE_MAP_MAX];
	ssize_t n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);
	size_t len = 0;

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	for (const char *at = text; *at; at += *at == '\n') {
		int inside = next_word(&at);
		const char *first = at - inside;
		int outside = next_word(&at);
		int count = next_word(&at);

		if (outside == 0 || count == 0)
			return -EINVAL;
		len += (size_t)snprintf(out + len, HF_INSIDE_MAP_MAX - len, "%.*s %.*s %.*s\n", inside,
					first, inside, first, count, at - count);
		if (len >= HF_INSIDE_MAP_MAX)
			return -E2BIG;
	}
	return 0;
}

int hf_inside_read_maps(struct hf_inside *inside, struct hf_err *err)
{
	int r = read_map("/proc/self/uid_map", inside->uid_map);

	if (r == 0)
		r = read_map("/proc/self/gid_map", inside->gid_map);
	return r < 0 ? hf_fail_sys(err, -r, "uid_map", "/proc/self") : 0;
}

static int write_file(const char *path, const char *text)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, path, O_WRONLY, 0);
	ssize_t n = fd < 0 ? -1 : hf_sys.write(fd, text, strlen(text));

	if (fd < 0)
		errno = -fd;
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Only a process outside may write a map of more than the own id. */
struct writer {
	const struct hf_inside *inside;
	pid_t mapped;
	int go[2];
	_Alignas(16) char stack[16384];
};

/* May share our memory. It changes none of it but errno, which we do not read while it runs. */
static void writer_main(void *arg)
{
	const struct writer *writer = arg;
	char path[64], byte;

	(void)close(writer->go[1]);
	if (read(writer->go[0], &byte, 1) != 1)
		_exit(1);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)writer->mapped);
	if (write_file(path, writer->inside->uid_map) < 0)
		_exit(1);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)writer->mapped);
	_exit(write_file(path, writer->inside->gid_map) < 0);
}

static pid_t start_writer(struct writer *writer)
{
	const struct hf_clone clone = { writer_main, writer, writer->stack, sizeof(writer->stack) };
	AUTO_FD pidfd = -1;
	pid_t pid = hf_sys.clone_sharing(-1, &pidfd, &clone);

	if (pid < 0)
		pid = hf_apart_fork();
	if (pid == 0)
		writer_main(writer);
	return pid;
}

static int map_all(struct writer *writer, struct hf_inside_fail *fail)
{
	pid_t pid;

	if (pipe2(writer->go, O_CLOEXEC) < 0)
		return hf_inside_failed(fail, "pipe", "id maps");
	pid = start_writer(writer);
	(void)close(writer->go[0]);
	if (pid < 0 || hf_sys.unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		int r = hf_inside_failed(fail, pid < 0 ? "fork" : "unshare", "user namespace");

		(void)close(writer->go[1]);
		if (pid > 0)
			(void)hf_apart_reap(pid);
		return r;
	}
	(void)!write(writer->go[1], "g", 1);
	(void)close(writer->go[1]);
	return hf_apart_reap(pid) == 0 ? 0 : 1;
}

/* Maps every id that our namespace has, through a writer that stays outside. 0; 1: the kernel does not allow it; -errno. */
int hf_inside_map_all(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct writer writer = { .inside = inside, .mapped = getpid() };
	struct sigaction before;
	sigset_t all, mask;
	int r;

	/* No handler runs in the writer, which shares our memory, and no signal interrupts the wait for it. */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &mask);
	/* Where it is ignored, the kernel reaps, and nobody learns how the writer ended. */
	(void)sigaction(SIGCHLD, &usual, &before);
	r = map_all(&writer, fail);
	(void)sigaction(SIGCHLD, &before, NULL);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	return r;
}

int hf_inside_map_own(uid_t uid, gid_t gid, struct hf_inside_fail *fail)
{
	char map[64];

	/* Needed before gid_map, and absent only in kernels before 3.19. */
	if (write_file("/proc/self/setgroups", "deny") < 0 && errno != ENOENT)
		return hf_inside_failed(fail, "setgroups", "user namespace");
	(void)snprintf(map, sizeof(map), "%u %u 1", (unsigned)uid, (unsigned)uid);
	if (write_file("/proc/self/uid_map", map) < 0)
		return hf_inside_failed(fail, "uid_map", "user namespace");
	(void)snprintf(map, sizeof(map), "%u %u 1", (unsigned)gid, (unsigned)gid);
	if (write_file("/proc/self/gid_map", map) < 0)
		return hf_inside_failed(fail, "gid_map", "user namespace");
	return 0;
}
