/* tests/helper/tree_shapes.c - every kind of process that a command may leave behind. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper/tree_shapes.h"

#define BOMB_MAX 256

extern char **environ;

const char *file;

_Noreturn void die(const char *what)
{
	fprintf(stderr, "helper-tree: %s: %s\n", what, strerror(errno));
	_exit(99);
}

void pause_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

_Noreturn void stay(void)
{
	for (;;)
		(void)pause();
}

static pid_t must_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	return pid;
}

/* -- which is which ----------------------------------------------------------------------- */

unsigned long long start_ticks(pid_t pid)
{
	char path[40], text[1024], *at;
	unsigned long long ticks = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* Field 22, counted behind the last ')': the name may hold anything. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		ticks = strtoull(at + 1, NULL, 10);
	return ticks;
}

int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

unsigned long long inode_of(int pidfd)
{
	struct stat st;

	return pidfd >= 0 && fstat(pidfd, &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

void announce(void)
{
	char line[80];
	int pidfd = open_pidfd(getpid());
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int len = snprintf(line, sizeof(line), "%d %llu %llu\n", (int)getpid(), inode_of(pidfd),
			   start_ticks(getpid()));

	if (fd < 0 || write(fd, line, (size_t)len) != len)
		die(file);
	close(fd);
	if (pidfd >= 0)
		close(pidfd);
}

/* -- shapes: each forks, announces what it made, and returns in the caller alone ------------ */

static void plain(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			announce();
			stay();
		}
}

static void ignore(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			signal(SIGHUP, SIG_IGN);
			signal(SIGINT, SIG_IGN);
			announce();
			stay();
		}
}

static void stopped(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			announce();
			for (;;)
				raise(SIGSTOP);
		}
}

static void new_session(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			setsid();
			announce();
			stay();
		}
}

/* As daemon(3) does it, and deaf to TERM. */
static void daemons(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t middle = must_fork();

		if (middle == 0) {
			setsid();
			if (must_fork() != 0)
				_exit(0);
			signal(SIGTERM, SIG_IGN);
			announce();
			stay();
		}
		waitpid(middle, NULL, 0);
	}
}

/* The parent is killed when the child is there. */
static void orphan(int n)
{
	for (int i = 0; i < n; i++) {
		int ends[2];
		pid_t parent;
		char byte;

		if (pipe2(ends, O_CLOEXEC) < 0)
			die("pipe");
		parent = must_fork();
		if (parent == 0) {
			if (must_fork() == 0) {
				announce();
				(void)!write(ends[1], "x", 1);
				close(ends[1]);
				stay();
			}
			stay();
		}
		(void)!read(ends[0], &byte, 1);
		kill(parent, SIGKILL);
		waitpid(parent, NULL, 0);
		close(ends[0]);
		close(ends[1]);
	}
}

struct bomb {
	int limit;
	_Atomic pid_t slots[BOMB_MAX];
};

static _Noreturn void bomb_member(struct bomb *bomb);

/* The process that finds a place whose process is gone fills it. */
static void bomb_refill(struct bomb *bomb)
{
	for (int i = 0; i < bomb->limit; i++) {
		pid_t there = atomic_load(&bomb->slots[i]), child;

		if (there < 0 || (there > 0 && kill(there, 0) == 0))
			continue;
		if (!atomic_compare_exchange_strong(&bomb->slots[i], &there, -1))
			continue;
		child = fork();
		if (child == 0) {
			atomic_store(&bomb->slots[i], getpid());
			bomb_member(bomb);
		}
		if (child < 0)
			atomic_store(&bomb->slots[i], 0);
	}
}

static _Noreturn void bomb_member(struct bomb *bomb)
{
	/* Its children are nobody's concern: what died is gone at once. */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	for (;;) {
		bomb_refill(bomb);
		pause_ms(1);
	}
}

static void bomb(int n)
{
	struct bomb *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		die("mmap");
	shared->limit = n < BOMB_MAX ? n : BOMB_MAX;
	if (must_fork() == 0) {
		announce();
		bomb_member(shared);
	}
}

/*
 * Never the same pid for long: forks and exits, again and again. Such a one is missed by a reader that
 * looks through /proc, so it leaves its process group and a sign of life in FILE.beat.
 */
static void hop(int n)
{
	char name[4096], line[24];

	snprintf(name, sizeof(name), "%s.beat", file);
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

			signal(SIGTERM, SIG_IGN);
			setsid();
			if (fd < 0)
				die(name);
			announce();
			for (;;) {
				int len = snprintf(line, sizeof(line), "%d\n", (int)getpgrp());

				(void)!write(fd, line, (size_t)len);

				if (fork() > 0)
					_exit(0);
				/* Not faster: the process that inherits them has to reap them. */
				pause_ms(1);
			}
		}
}

/* Keeps the output open, and writes to it now and then so that nobody takes it for closed. */
static void holds_pipe(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			signal(SIGPIPE, SIG_IGN);
			setsid();
			announce();
			(void)!write(STDOUT_FILENO, "holding\n", 8);
			stay();
		}
}

/* A parent that does not reap. */
static void zombie(int n)
{
	if (must_fork() == 0) {
		signal(SIGTERM, SIG_IGN);
		for (int i = 0; i < n; i++)
			if (must_fork() == 0)
				_exit(0);
		announce();
		stay();
	}
}

static void chain(int n)
{
	if (n > 0 && must_fork() == 0) {
		if (n % 2)
			setsid();
		chain(n - 1);
		announce();
		stay();
	}
}

/* No trace of the environment is left, as programs do that write a title over it. */
static void clear_environment(void)
{
	for (char **at = environ; at && *at; at++)
		memset(*at, 0, strlen(*at));
}

static void cleared(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			setsid();
			clear_environment();
			announce();
			stay();
		}
}

/* Another user's, with no trace of the environment; only root can make one. */
static void stranger(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			setsid();
			clear_environment();
			announce();
			if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
				die("setresuid");
			stay();
		}
}

/* Has left its cgroup for the root of the hierarchy that FILE.cgroups names, and cleared its environment. */
static void moved(int n)
{
	char name[4096], procs[4096] = "";
	FILE *in;

	snprintf(name, sizeof(name), "%s.cgroups", file);
	in = fopen(name, "re");
	if (!in || !fgets(procs, sizeof(procs), in))
		die(name);
	fclose(in);
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			FILE *out = fopen(procs, "we");

			signal(SIGTERM, SIG_IGN);
			setsid();
			clear_environment();
			if (!out || fprintf(out, "%d", (int)getpid()) < 0 || fclose(out) != 0)
				die(procs);
			announce();
			stay();
		}
}

static void *thread_main(void *arg)
{
	(void)arg;
	stay();
}

/* The first thread has ended, so it looks like a zombie; another runs. */
static void headless(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			pthread_t thread;

			signal(SIGTERM, SIG_IGN);
			if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
				die("thread");
			announce();
			pthread_exit(NULL);
		}
}

/* N of: own session, double fork, deaf to TERM. Children of helpers that fork in parallel and end. */
static void storm(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t middle = must_fork();

		if (middle == 0) {
			for (int j = 0; j < 10 && i + j < n; j++)
				if (must_fork() == 0) {
					setsid();
					signal(SIGTERM, SIG_IGN);
					announce();
					stay();
				}
			_exit(0);
		}
		waitpid(middle, NULL, 0);
		i += 9;
	}
}

static const struct shape {
	const char *name;
	void (*make)(int n);
	int processes; /* that announce themselves; 0: as many as asked for */
} shapes[] = {
	{ "plain", plain, 0 },	   { "ignore", ignore, 0 },   { "stopped", stopped, 0 },
	{ "setsid", new_session, 0 }, { "daemon", daemons, 0 }, { "orphan", orphan, 0 },
	{ "bomb", bomb, 1 },	   { "hop", hop, 0 },	      { "pipe", holds_pipe, 0 },
	{ "zombie", zombie, 1 },   { "chain", chain, 0 },     { "wide", plain, 0 },
	{ "cleared", cleared, 0 }, { "headless", headless, 0 }, { "storm", storm, 0 },
	{ "stranger", stranger, 0 }, { "moved", moved, 0 },
};

int make_shape(const char *word)
{
	const char *colon = strchr(word, ':');
	size_t len = colon ? (size_t)(colon - word) : strlen(word);
	int n = colon ? atoi(colon + 1) : 1;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strlen(shapes[i].name) == len && memcmp(shapes[i].name, word, len) == 0) {
			shapes[i].make(n);
			return shapes[i].processes ? shapes[i].processes : n;
		}
	fprintf(stderr, "helper-tree: unknown shape: %s\n", word);
	_exit(2);
}
