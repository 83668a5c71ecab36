/*
 * fleet/witness.c - witness DIR NAME MODE MILLISECONDS CLIENT TREE: the command that chaos runs inside a lock, and that sees a
 * second holder.
 *
 * Hosts of the simulated fleet share one kernel, so flock(2) on a local file is a witness that no partition reaches: the
 * kernel frees it exactly when the last process of a holder has ended. MODE x: exclusive; s: shared; a number: so many slots.
 * What is refused there is an overlap. The token has to be higher than that of the last exclusive holder.
 *
 * TREE 1: a grandchild in a session of its own, which ignores every signal it can, has the lock too: a session is over when
 * all of its tree is. TREE 0: the grandchild goes with its parent.
 *
 * Appends one line for each of start, end, overlap and regress to DIR/NAME.log: EVENT TOKEN CLIENT NANOSECONDS, on the clock that
 * goes on during suspend. Exit 99: an overlap or a token that did not rise.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOUND 99

static const char *dir, *name, *client;
static uint64_t token;

static void fail(const char *what)
{
	perror(what);
	exit(3);
}

static void tell(const char *event)
{
	char path[4096], line[256];
	struct timespec now;
	int fd, len;

	(void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now); /* the kernel's, also where the host's clock is made wrong (clock.c) */
	(void)snprintf(path, sizeof(path), "%s/%s.log", dir, name);
	len = snprintf(line, sizeof(line), "%s %" PRIu64 " %s %lld\n", event, token, client,
		       (long long)now.tv_sec * 1000000000 + now.tv_nsec);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, line, (size_t)len) != len)
		fail(path);
	(void)close(fd);
}

/* The first of the slots' files that nobody has; -1: there is none. Its descriptor is inherited on purpose. */
static int take(unsigned slots, int how)
{
	char path[4096];

	for (unsigned i = 0; i < slots; i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%s.%u", dir, name, i);
		fd = open(path, O_RDWR | O_CREAT, 0666); /* NOLINT: children keep it */
		if (fd < 0)
			fail(path);
		if (flock(fd, how | LOCK_NB) == 0)
			return fd;
		if (errno != EWOULDBLOCK)
			fail(path);
		(void)close(fd);
	}
	return -1;
}

/* Is the token higher than that of the last one that was here? Remembers it. */
static int rises(int fd)
{
	uint64_t last = 0;

	if (pread(fd, &last, sizeof(last), 0) < 0)
		fail("read the last token");
	if (token <= last)
		return 0;
	if (pwrite(fd, &token, sizeof(token), 0) != sizeof(token))
		fail("write the token");
	return 1;
}

static pid_t grandchild(int stays)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid > 0)
		return pid;
	if (stays) {
		(void)setsid();
		for (int sig = 1; sig < 32; sig++)
			(void)signal(sig, SIG_IGN);
	} else {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	for (int i = 0; i < 600; i++) /* an orphan that nobody ends does not stay for ever */
		(void)sleep(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *text = getenv("HOLDFAST_TOKEN");
	struct timespec pause;
	unsigned slots = 1;
	int fd, how = LOCK_EX;
	long ms;
	pid_t child;

	if (argc != 7) {
		(void)fprintf(stderr, "usage: witness DIR NAME x|s|SLOTS MILLISECONDS CLIENT TREE\n");
		return 2;
	}
	dir = argv[1], name = argv[2], client = argv[5];
	if (!text)
		text = getenv("ETCD_LOCK_REV"); /* of `etcdctl lock`, with which the harness itself is tried */
	token = text ? strtoull(text, NULL, 10) : 0;
	if (strcmp(argv[3], "s") == 0)
		how = LOCK_SH;
	else if (strcmp(argv[3], "x") != 0)
		slots = (unsigned)strtoul(argv[3], NULL, 10);
	ms = strtol(argv[4], NULL, 10);

	fd = take(slots, how);
	if (fd < 0) {
		tell("overlap");
		return FOUND;
	}
	if (how == LOCK_EX && slots == 1 && !rises(fd)) {
		tell("regress");
		return FOUND;
	}
	tell("start");
	child = grandchild(atoi(argv[6]));
	pause = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
		;
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	tell("end");
	return 0;
}
