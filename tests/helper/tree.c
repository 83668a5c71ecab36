/*
 * tests/helper/tree.c - process trees that do not want to end, and who of them lives.
 *
 *     helper-tree build FILE [--exit N | --talk | --ignore] SHAPE...
 *         Becomes the leader of a tree with these shapes (see `shapes` below; some take a number, "chain:9").
 *         Each process writes "PID INODE TICKS" to FILE as a line; FILE.ready appears when all have. Then the
 *         leader sleeps for ever; or waits for FILE.go and exits with N; or talks until FILE.go is there, and
 *         is silent from then on; or ignores TERM.
 *     helper-tree bystander FILE [COMM]
 *         One process of that name that writes every signal it gets to FILE.signals.
 *     helper-tree living FILE
 *         Prints who of FILE's tree lives, one line each. Exits 0 when nobody does, else 1.
 *     helper-tree end FILE
 *         SIGKILL to all of those, until nobody lives: for clearing up after a test.
 *
 * Nobody here execs and forks inherit the arguments, so a process is of FILE's tree exactly when FILE stands in its
 * command line; a pid that was given away again cannot deceive. What has no command line any more (the first thread has
 * ended, others run) is found by what it wrote: pid, inode of its pidfd and start tick.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOMB_MAX 256

extern char **environ;

static const char *file; /* who is there, one line each */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "helper-tree: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void pause_ms(long ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

static _Noreturn void stay(void)
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

/* -- who is who ----------------------------------------------------------------------- */

static unsigned long long start_ticks(pid_t pid)
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

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static unsigned long long inode_of(int pidfd)
{
	struct stat st;

	return pidfd >= 0 && fstat(pidfd, &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

static void announce(void)
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

/* Whoever finds a place whose process is gone fills it. */
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
 * Never the same pid for long: forks and exits, again and again. Such a one is missed by who
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
				/* Not faster: whoever inherits them has to reap them. */
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
static void cleared(int n)
{
	for (int i = 0; i < n; i++)
		if (must_fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			setsid();
			for (char **at = environ; at && *at; at++)
				memset(*at, 0, strlen(*at));
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
};

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

static int make_shape(const char *word)
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

/* -- who lives ------------------------------------------------------------------------- */

/* Does FILE stand in the command line of a tree (not in that of somebody who asks)? */
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
