/* stress/lock/world.c - what all processes share: the log, the table of holders inside, counters, random numbers. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/lock/local/record/record.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"
#include "stress/lock/stress.h"

/* -- the locks ---------------------------------------------------------------- */

const struct subject subjects[N_SUBJECTS] = {
	{ "strict/exclusive", HF_LOCK_EXCLUSIVE, 0 },
	{ "strict/shared", HF_LOCK_SHARED, 0 },
	{ "strict/slots", HF_LOCK_SLOTS, 0 },
	{ "leased/exclusive", HF_LOCK_EXCLUSIVE, 1 },
	{ "leased/shared", HF_LOCK_SHARED, 1 },
};

/* -- what all processes share ------------------------------------------------- */

struct shared *shared;
static uint64_t random_state;
uint64_t the_seed;
int64_t seconds = 3;
int processes = 24;
const char *only = "";
char base[128];
static int test_number;
int failures;

uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

void seed_random(uint64_t a, uint64_t b)
{
	random_state = the_seed ^ (a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
		       (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
	if (random_state == 0)
		random_state = 1;
	for (int i = 0; i < 8; i++)
		(void)random_below(2);
}

void result(int ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++test_number, what);
	fflush(stdout);
	failures += !ok;
}

void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

void count(uint32_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Counts what must not happen, and says what it was; of very many only the first. */
__attribute__((format(printf, 2, 3))) void wrong(uint32_t *counter, const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	if (__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED) > 8)
		return;
	va_start(args, format);
	n = snprintf(text, sizeof(text), "# pid %d: ", (int)getpid());
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 2, format, args);
	va_end(args);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)n) < 0)
		return;
}

int64_t now(void)
{
	return hf_mono_now().ns;
}

int is_over(void)
{
	return __atomic_load_n(&shared->over, __ATOMIC_ACQUIRE);
}

/*
 * Has it ended, or is it just ending? The kernel closes a dying process's files, and so
 * gives its guard away, some time before the process is seen as a zombie.
 */
int is_dead_soon(pid_t pid)
{
	for (int i = 0; i < 1000; i++) {
		char path[40], text[64] = "";
		const char *state;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return 1;
		if (read(fd, text, sizeof(text) - 1) <= 0)
			text[0] = '\0';
		close(fd);
		state = strrchr(text, ')');
		if (!state || state[2] == 'Z' || state[2] == 'X')
			return 1;
		poll(NULL, 0, 1);
	}
	return 0;
}

/* -- state directories ---------------------------------------------------------- */

void state_path(const char *leaf, char path[256])
{
	snprintf(path, 256, "%s/%s", base, leaf);
}

struct context open_context(const char *leaf)
{
	struct context c;
	struct hf_err err;
	char path[256];

	state_path(leaf, path);
	if (hf_state_open(path, 0, &c.state, &err) < 0 ||
	    hf_journal_open(c.state, NULL, &c.journal, &err) < 0 ||
	    hf_locks_open(c.state, c.journal, &c.locks, &err) < 0) {
		printf("Bail out! %s %s: %d, errno %d, %s\n", err.op, err.subject, err.code, err.sys,
		       err.detail);
		exit(99);
	}
	return c;
}

void close_context(struct context *c)
{
	hf_locks_free(c->locks);
	hf_journal_free(c->journal);
	hf_state_free(c->state);
}

void remove_all(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", base, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* A child that does not outlive us. */
pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
