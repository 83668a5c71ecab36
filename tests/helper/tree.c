/*
 * tests/helper/tree.c - process trees that do not want to end, and which of them live.
 *
 *     helper-tree build FILE [--exit N | --talk | --ignore] SHAPE...
 *         Becomes the leader of a tree with these shapes (see `shapes` in tree_shapes.c; some take a number, "chain:9").
 *         Each process writes "PID INODE TICKS" to FILE as a line; FILE.ready appears when all have. Then the
 *         leader sleeps for ever; or waits for FILE.go and exits with N; or talks until FILE.go is there, and
 *         is silent from then on; or ignores TERM.
 *     helper-tree bystander FILE [COMM]
 *         One process of that name that writes every signal it gets to FILE.signals.
 *     helper-tree living FILE
 *         Prints which processes of FILE's tree live, one line each. Exits 0 when none does, else 1.
 *     helper-tree end FILE
 *         SIGKILL to all of those, until nobody lives: for clearing up after a test.
 *
 * Nobody here execs and forks inherit the arguments, so a process is of FILE's tree exactly when FILE stands in its
 * command line; a pid that was given away again cannot deceive. What has no command line any more (the first thread has
 * ended, others run) is found by what it wrote: pid, inode of its pidfd and start tick.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/tree_shapes.h"

static int count_lines(void)
{
	FILE *in = fopen(file, "re");
	int c, n = 0;

	while (in && (c = getc(in)) != EOF)
		n += c == '\n';
	if (in)
		fclose(in);
	return n;
}

/* Until the test lets us go on. */
static void await_go(int talk)
{
	char go[4096];

	snprintf(go, sizeof(go), "%s.go", file);
	while (access(go, F_OK) < 0) {
		if (talk)
			(void)!write(STDOUT_FILENO, ".", 1);
		pause_ms(talk ? 20 : 2);
	}
}

static int build(int argc, char **argv)
{
	int expected = 1, status = -1, talk = 0, at = 0;
	char ready[4096];

	if (at < argc && strcmp(argv[at], "--exit") == 0 && at + 1 < argc) {
		status = atoi(argv[at + 1]);
		at += 2;
	} else if (at < argc && strcmp(argv[at], "--talk") == 0) {
		talk = 1;
		at++;
	} else if (at < argc && strcmp(argv[at], "--ignore") == 0) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		at++;
	}
	announce();
	for (; at < argc; at++)
		expected += make_shape(argv[at]);
	while (count_lines() < expected)
		pause_ms(2);
	snprintf(ready, sizeof(ready), "%s.ready", file);
	close(open(ready, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	if (status >= 0 || talk)
		await_go(talk);
	if (status >= 0)
		return status;
	stay();
}

/* -- bystanders ------------------------------------------------------------------------- */

static _Noreturn void bystander(const char *comm)
{
	char name[4096], line[24];
	sigset_t all;
	int fd, sig;

	snprintf(name, sizeof(name), "%s.signals", file);
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (comm)
		prctl(PR_SET_NAME, comm);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	announce();
	for (;;)
		if (sigwait(&all, &sig) == 0) {
			int len = snprintf(line, sizeof(line), "%d\n", sig);

			(void)!write(fd, line, (size_t)len);
		}
}

/* -- which live ------------------------------------------------------------------------- */

/* Does FILE stand in the command line of a tree (not in that of a process that asks)? */
static int has_file_in_cmdline(pid_t pid)
{
	char path[40], text[8192];
	const char *verb, *name;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	verb = text + strlen(text) + 1;
	name = verb < text + n ? verb + strlen(verb) + 1 : text + n;
	return name < text + n && strstr(text, "helper-tree") && strcmp(name, file) == 0 &&
	       (strcmp(verb, "build") == 0 || strcmp(verb, "bystander") == 0);
}

/* Of the tree, and not exited. The pidfd pins the pid while it is judged. */
static int is_living(pid_t pid, unsigned long long inode, unsigned long long ticks)
{
	int pidfd = open_pidfd(pid);
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	int ours = inode ? inode_of(pidfd) == inode && start_ticks(pid) == ticks
			 : has_file_in_cmdline(pid);
	int lives = pidfd >= 0 && ours && poll(&fd, 1, 0) == 0;

	if (pidfd >= 0)
		close(pidfd);
	return lives;
}

typedef void found_fn(pid_t pid);

static int each_living(found_fn *fn)
{
	FILE *in = fopen(file, "re");
	DIR *proc = opendir("/proc");
	unsigned long long inode, ticks;
	struct dirent *entry;
	int pid, found = 0;

	while (in && fscanf(in, "%d %llu %llu", &pid, &inode, &ticks) == 3)
		if (!has_file_in_cmdline(pid) && is_living(pid, inode, ticks)) {
			found++;
			fn(pid);
		}
	if (in)
		fclose(in);
	while (proc && (entry = readdir(proc))) {
		pid = atoi(entry->d_name);
		if (pid > 0 && has_file_in_cmdline(pid) && is_living(pid, 0, 0)) {
			found++;
			fn(pid);
		}
	}
	if (proc)
		closedir(proc);
	return found;
}

/* The group of one that hops on, or 0. */
static pid_t hopping_group(void)
{
	char name[4096], text[24] = "";
	struct stat before, after;
	int group = 0, fd;

	snprintf(name, sizeof(name), "%s.beat", file);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &before) == 0) {
		pause_ms(50);
		if (fstat(fd, &after) == 0 && after.st_size > before.st_size &&
		    pread(fd, text, sizeof(text) - 1, before.st_size) > 0)
			group = atoi(text);
	}
	close(fd);
	return group;
}

static void print_pid(pid_t pid)
{
	char path[40], text[400] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!read(fd, text, 60);
		close(fd);
	}
	printf("%d: %s\n", (int)pid, text);
}

static void kill_pid(pid_t pid)
{
	kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: helper-tree build|bystander|living|end FILE ...\n");
		return 2;
	}
	file = argv[2];
	if (strcmp(argv[1], "build") == 0)
		return build(argc - 3, argv + 3);
	if (strcmp(argv[1], "bystander") == 0)
		bystander(argc > 3 ? argv[3] : NULL);
	if (strcmp(argv[1], "living") == 0) {
		pid_t group = hopping_group();

		if (group > 0)
			printf("hopping in process group %d\n", (int)group);
		return each_living(print_pid) > 0 || group > 0;
	}
	if (strcmp(argv[1], "end") == 0) {
		pid_t group;

		while ((group = hopping_group()) > 1)
			kill(-group, SIGKILL);
		for (int i = 0; i < 500 && each_living(kill_pid) > 0; i++)
			pause_ms(2);
		return 0;
	}
	fprintf(stderr, "helper-tree: unknown: %s\n", argv[1]);
	return 2;
}
