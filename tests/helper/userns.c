/*
 * tests/helper/userns.c - run a program in a user namespace that has the ids 0 to 65535.
 *
 *     helper-userns [--last] CMD [ARG...]
 *
 * Needs root. With --last no further user namespace can be made in it: user.max_user_namespaces is 0 there,
 * as on a machine that forbids them. Exits 77 (skip) where that is not possible.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Writes the maps of its parent when told to. */
static int write_maps(pid_t of, int go)
{
	char path[64], byte;

	if (read(go, &byte, 1) != 1)
		return 1;
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)of);
	if (put(path, "0 0 65536") < 0)
		return 1;
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)of);
	return put(path, "0 0 65536") < 0;
}

int main(int argc, char **argv)
{
	int last = argc > 1 && strcmp(argv[1], "--last") == 0;
	char **command = argv + 1 + last;
	int go[2], status = 1;
	pid_t self = getpid(), writer;

	if (!command[0]) {
		fprintf(stderr, "usage: helper-userns [--last] CMD [ARG...]\n");
		return 2;
	}
	if (pipe2(go, O_CLOEXEC) < 0)
		return 77;
	writer = fork();
	if (writer == 0)
		_exit(write_maps(self, go[0]));
	if (unshare(CLONE_NEWUSER) < 0 || write(go[1], "g", 1) != 1 ||
	    waitpid(writer, &status, 0) != writer || status != 0 ||
	    (last && put("/proc/sys/user/max_user_namespaces", "0") < 0)) {
		fprintf(stderr, "helper-userns: %s\n", strerror(errno));
		return 77;
	}
	execvp(command[0], command);
	return 127;
}
