/*
 * bench/session.c - ending a tree of 1,000 processes, and what supervision costs in memory.
 *
 *     bench-session [--json FILE] HOLDFAST
 *
 * Every process of the tree ignores TERM, a third of them lead sessions of their own, a third
 * are double-forked daemons. Beside it what timeout -k does to the same tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

#define PROCESSES 1000
#define ROUNDS    7
#define GRACE_MS  300

/* -- the tree: this program itself, run with the name of a FIFO ---------------------- */

/* Lives until it is killed, or until the reader of `fd` is gone for good (then the test died). */
static _Noreturn void live(int fd)
{
	(void)!write(fd, "x", 1);
	for (;;)
		(void)poll(NULL, 0, 60000);
}

static void grow(int i, int fd)
{
	pid_t pid = fork();

	if (pid != 0) {
		if (i % 3 == 1)
			(void)waitpid(pid, NULL, 0);
		return;
	}
	if (i % 3 == 0)
		(void)setsid();
	/* A daemon: its parent exits at once. */
	if (i % 3 == 1 && fork() != 0)
		_exit(0);
	live(fd);
}

static int tree_main(const char *fifo)
{
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	(void)signal(SIGTERM, SIG_IGN);
	for (int i = 1; i < PROCESSES; i++)
		grow(i, fd);
	live(fd);
}

/* -- the measure ------------------------------------------------------------------------ */

/* Starts it and waits until all of the tree is there; the time then. */
static pid_t start(const char *const argv[], const char *fifo, int *ret_fd)
{
	int fd = open(fifo, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		return -1;
	for (int seen = 0; seen < PROCESSES;) {
		char bytes[PROCESSES];
		ssize_t n;

		if (poll(&ready, 1, 30000) <= 0)
			return -1;
		n = read(fd, bytes, sizeof(bytes));
		seen += n > 0 ? (int)n : 0;
	}
	*ret_fd = fd;
	return pid;
}

/* How many still have the FIFO's name on their command line. */
static int survivors(const char *fifo)
{
	char command[300], text[16] = "0";
	FILE *pipe;

	(void)snprintf(command, sizeof(command), "pgrep -cf -- '^[^ ]* --tree %s$'", fifo);
	pipe = popen(command, "re");
	if (pipe && !fgets(text, sizeof(text), pipe))
		text[0] = '0';
	if (pipe)
		(void)pclose(pipe);
	return atoi(text);
}

static void clean(const char *fifo)
{
	char command[300];

	(void)snprintf(command, sizeof(command), "pkill -KILL -f -- '^[^ ]* --tree %s$'", fifo);
	(void)!system(command);
}

/* Milliseconds from the end of the grace time to the exit, median; and how many survived. */
static void measure(FILE *json, int *rows, const char *what, const char *const argv[],
		    const char *fifo, double bar_ms)
{
	double ms[ROUNDS];
	int alive = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double begun;
		int fd = -1;
		pid_t pid = start(argv, fifo, &fd);

		if (pid < 0) {
			printf("  %-44s cannot be measured here\n", what);
			clean(fifo);
			return;
		}
		begun = bench_now_us();
		(void)kill(pid, SIGTERM);
		(void)waitpid(pid, NULL, 0);
		ms[i] = (bench_now_us() - begun) / 1e3 - GRACE_MS;
		alive += survivors(fifo);
		clean(fifo);
		(void)close(fd);
	}
	qsort(ms, ROUNDS, sizeof(*ms), bench_by_value);
	printf("  %-44s %9.1f ms after the grace time, %d survivors of %d", what, ms[ROUNDS / 2],
	       alive / ROUNDS, PROCESSES);
	if (bar_ms > 0)
		printf("   bar %.0f ms, 0 survivors%s", bar_ms,
		       ms[ROUNDS / 2] < bar_ms && alive == 0 ? "" : "  MISSED");
	putchar('\n');
	if (json)
		fprintf(json, "%s{\"what\":\"%s\",\"ms\":%.2f,\"survivors\":%d,\"bar_ms\":%.0f}",
			(*rows)++ ? "," : "", what, ms[ROUNDS / 2], alive / ROUNDS, bar_ms);
}

/* Private memory of a process in KiB. */
static long private_kib(int pid)
{
	char path[40], line[128];
	long sum = 0, value;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Private_%*[^:]: %ld kB", &value) == 1)
			sum += value;
	if (file)
		(void)fclose(file);
	return file ? sum : -1;
}

static int field(const char *hf, const char *expression)
{
	char command[400], text[32] = "0";
	FILE *pipe;

	(void)snprintf(command, sizeof(command), "%s ps bench --json | jq '.sessions[0].%s'", hf, expression);
	pipe = popen(command, "re");
	if (pipe && !fgets(text, sizeof(text), pipe))
		text[0] = '0';
	if (pipe)
		(void)pclose(pipe);
	return atoi(text);
}

static void memory(FILE *json, int *rows, const char *hf)
{
	static const char *const roles[] = { "supervisor", "keeper" };
	char command[400];

	(void)snprintf(command, sizeof(command), "%s run bench --detach -- sleep 60 >/dev/null", hf);
	if (system(command) != 0)
		return;
	for (int i = 0; i < 2; i++) {
		char expression[40];
		long kib;

		(void)snprintf(expression, sizeof(expression), "%s.pid", roles[i]);
		kib = private_kib(field(hf, expression));
		printf("  private memory of the %-22s %9ld KiB   bar 1024%s\n", roles[i], kib,
		       kib >= 0 && kib < 1024 ? "" : "  MISSED");
		if (json)
			fprintf(json, "%s{\"what\":\"private memory of the %s\",\"kib\":%ld,\"bar_kib\":1024}",
				(*rows)++ ? "," : "", roles[i], kib);
	}
	(void)snprintf(command, sizeof(command), "%s stop bench --grace 1s >/dev/null", hf);
	(void)!system(command);
}

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

int main(int argc, char **argv)
{
	FILE *json = bench_json_open(&argc, &argv);
	char self[4096], fifo[64];
	const char *hf;
	int rows = 0;
	ssize_t n;

	if (argc == 3 && strcmp(argv[1], "--tree") == 0)
		return tree_main(argv[2]);
	if (argc != 2) {
		fputs("usage: bench-session [--json FILE] HOLDFAST\n", stderr);
		return 2;
	}
	hf = argv[1];
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	(void)snprintf(fifo, sizeof(fifo), "tree.%d", (int)getpid());
	if (mkfifo(fifo, 0600) < 0)
		return 1;
	measure(json, &rows, "run, cgroup: 1,000 processes", ARGV(hf, "-q", "run", "bench", "--tree", "cgroup",
		"--grace", "300ms", "--", self, "--tree", fifo), fifo, 200);
	measure(json, &rows, "run, walk: 1,000 processes", ARGV(hf, "-q", "run", "bench", "--tree", "walk",
		"--grace", "300ms", "--", self, "--tree", fifo), fifo, 200);
	measure(json, &rows, "timeout -k 0.3", ARGV("timeout", "-k", "0.3", "60", self, "--tree", fifo), fifo, 0);
	memory(json, &rows, hf);
	(void)unlink(fifo);
	bench_json_close(json);
	return 0;
}
