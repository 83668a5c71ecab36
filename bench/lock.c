/*
 * bench/lock.c - the lock's speed beside flock(2), in one run, interleaved, medians.
 *
 *     bench-lock [--json FILE]
 *
 * A hand-off is measured from the moment before the release to the moment the waiter has
 * the lock, all asleep before. On one processor, where each step of the release delays the
 * waiter, and on two, where most of it is waking the other one: left to the scheduler, chance would say which
 * of the two is compared with which. And where the pages of a process happen to lie moves
 * its result by a tenth and more, so samples are taken in several that are started anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "holdfast/lock.h"

#define ROUNDS 41  /* hand-offs in one process */
#define STARTS 15  /* processes */
#define MANY   1000
#define MANY_ROUNDS 11

struct shared {
	volatile int ready;
	volatile double released, taken;
};

static struct hf_err err;
static struct shared *shared;
static char dir[] = "/tmp/hf-bench-XXXXXX";

static void must(int result, const char *what)
{
	if (result < 0) {
		char text[HF_ERR_TEXT_MAX];

		hf_err_format(&err, text, sizeof(text));
		fprintf(stderr, "%s: %s\n", what, text);
		_exit(1);
	}
}

static struct hf_locks *open_locks(void)
{
	struct hf_state *state;
	struct hf_locks *locks;
	char path[64];

	snprintf(path, sizeof(path), "%s/state", dir);
	must(hf_state_open(path, 0, &state, &err), "state");
	must(hf_locks_open(state, NULL, &locks, &err), "locks");
	return locks;
}

static struct hf_lock *take(struct hf_locks *locks, const char *name, int64_t wait_ns)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = wait_ns };
	struct hf_lock *lock;

	must(hf_lock_acquire(locks, name, &opts, &lock, NULL, &err), "acquire");
	return lock;
}

static void give(struct hf_lock *lock)
{
	must(hf_lock_release(lock, &err), "release");
	hf_lock_free(lock);
}

/* -- one process, no contention ---------------------------------------------- */

#define PAIRS 2000

static double our_pairs(struct hf_locks *locks)
{
	double start = bench_now_us();

	for (int i = 0; i < PAIRS; i++)
		give(take(locks, "pair", 0));
	return (bench_now_us() - start) / PAIRS;
}

/* What the design compares with: open, flock, fstat, pread, 2 pwrite, close. */
static double peer_pairs(void)
{
	char path[64], record[184] = "x";
	double start = bench_now_us();
	struct stat st;

	snprintf(path, sizeof(path), "%s/peer", dir);
	for (int i = 0; i < PAIRS; i++) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0 ||
		    pread(fd, record, sizeof(record), 0) < 0 ||
		    pwrite(fd, record, sizeof(record), 0) < 0 ||
		    pwrite(fd, record, sizeof(record), 0) < 0 || close(fd) < 0)
			exit(1);
	}
	return (bench_now_us() - start) / PAIRS;
}

/* -- hand-off ------------------------------------------------------------------ */

static cpu_set_t allowed;
static int cpus[2], n_cpus;

static void find_processors(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		exit(1);
	for (int i = 0; i < CPU_SETSIZE && n_cpus < 2; i++)
		if (CPU_ISSET(i, &allowed))
			cpus[n_cpus++] = i;
}

/* To the first or second processor; -1: wherever the scheduler likes. */
static void pin(int which)
{
	cpu_set_t set = allowed;

	if (which >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpus[which], &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		exit(1);
}

static void nap(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

static size_t n_waiting;

static void count_waiters(void *arg, const struct hf_lock_info *info)
{
	(void)arg;
	n_waiting = info->n_waiters;
}

/* Long enough for all to sleep. */
static void settle(void)
{
	nap(3000);
}

static void wait_for_waiters(struct hf_locks *locks, const char *name, size_t n)
{
	for (n_waiting = 0; n_waiting < n; nap(500))
		must(hf_lock_look(locks, name, count_waiters, NULL, &err), "look");
	settle();
}

/* The first one counts: the next may have it before anybody has read this. */
static void note_taken(void)
{
	double now = bench_now_us();

	if (shared->taken <= 0)
		shared->taken = now;
}

static pid_t our_waiter(const char *name, int cpu)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();

	if (pid == 0) {
		struct hf_locks *locks = open_locks();
		struct hf_lock *lock;

		pin(cpu);
		lock = take(locks, name, -1);
		note_taken();
		give(lock);
		_exit(0);
	}
	return pid;
}

/* Queues `n` more behind those that wait for `name`; `pids` has room for them. */
static void queue_waiters(struct hf_locks *locks, const char *name, pid_t *pids, size_t before, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pids[i] = our_waiter(name, -1);
	if (n > 0)
		wait_for_waiters(locks, name, before + n);
}

/*
 * `n` waiters in the queue, and `elsewhere` in that of another lock: a machine on which as many processes were started and
 * sleep, so that its caches are as cold. Each release is one hand-off, measured at the first.
 */
static double our_handoff(struct hf_locks *locks, size_t n, size_t elsewhere, int cpu)
{
	struct hf_lock *lock = take(locks, "handoff", -1), *other = take(locks, "elsewhere", -1);
	pid_t *pids = calloc(n + elsewhere, sizeof(*pids));
	double start, taken;

	pids[0] = our_waiter("handoff", cpu);
	wait_for_waiters(locks, "handoff", 1);
	queue_waiters(locks, "handoff", pids + 1, 1, n - 1);
	queue_waiters(locks, "elsewhere", pids + n, 0, elsewhere);
	shared->taken = 0;
	start = bench_now_us();
	give(lock);
	while (shared->taken <= 0)
		sched_yield();
	taken = shared->taken;
	give(other);
	for (size_t i = 0; i < n + elsewhere; i++)
		waitpid(pids[i], NULL, 0);
	free(pids);
	return taken - start;
}

static double our_death(struct hf_locks *locks)
{
	pid_t holder, waiter;
	double start;

	shared->ready = 0;
	holder = fork();
	if (holder == 0) {
		take(open_locks(), "death", -1);
		shared->ready = 1;
		for (;;)
			pause();
	}
	while (!shared->ready)
		nap(200);
	waiter = our_waiter("death", -1);
	wait_for_waiters(locks, "death", 1);
	shared->taken = 0;
	start = bench_now_us();
	kill(holder, SIGKILL);
	waitpid(waiter, NULL, 0);
	waitpid(holder, NULL, 0);
	return shared->taken - start;
}

static int peer_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/peer", dir);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static pid_t peer_waiter(int cpu)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = peer_open();

		pin(cpu);
		shared->ready = 1;
		flock(fd, LOCK_EX);
		note_taken();
		_exit(0);
	}
	return pid;
}

/* The same for `n` that sleep in flock(2); each lets go when it ends. */
static double peer_handoff(size_t n, int cpu)
{
	int fd = peer_open();
	pid_t *waiters = calloc(n, sizeof(*waiters));
	double start;

	flock(fd, LOCK_EX);
	for (size_t i = 0; i < n; i++) {
		shared->ready = 0;
		waiters[i] = peer_waiter(i == 0 ? cpu : -1);
		while (!shared->ready)
			nap(200);
	}
	settle();
	shared->taken = 0;
	start = bench_now_us();
	flock(fd, LOCK_UN);
	while (shared->taken <= 0)
		sched_yield();
	start = shared->taken - start;
	for (size_t i = 0; i < n; i++)
		waitpid(waiters[i], NULL, 0);
	free(waiters);
	close(fd);
	return start;
}

static double peer_death(void)
{
	pid_t holder, waiter;
	double start;

	shared->ready = 0;
	holder = fork();
	if (holder == 0) {
		flock(peer_open(), LOCK_EX);
		shared->ready = 1;
		for (;;)
			pause();
	}
	while (!shared->ready)
		nap(200);
	shared->ready = 0;
	waiter = peer_waiter(-1);
	while (!shared->ready)
		nap(200);
	settle();
	shared->taken = 0;
	start = bench_now_us();
	kill(holder, SIGKILL);
	waitpid(waiter, NULL, 0);
	waitpid(holder, NULL, 0);
	return shared->taken - start;
}

/* In a process of its own: its hand-offs and the peer's, in turn, on one processor and on two. */
static int print_handoffs(struct hf_locks *locks)
{
	pin(0);
	for (int i = 0; i < ROUNDS; i++)
		for (int cpu = 0; cpu < n_cpus; cpu++) {
			double us = our_handoff(locks, 1, 0, cpu);

			printf("%.2f %.2f\n", us, peer_handoff(1, cpu));
		}
	return 0;
}

/* [0]: to a waiter on the holder's processor; [1]: on another. */
static void sample_handoffs(double a[2][STARTS * ROUNDS], double b[2][STARTS * ROUNDS])
{
	for (int i = 0; i < STARTS; i++) {
		char command[64];
		FILE *from;

		snprintf(command, sizeof(command), "exec /proc/%d/exe handoffs", (int)getpid());
		from = popen(command, "re");
		for (int n = i * ROUNDS; n < (i + 1) * ROUNDS; n++)
			for (int cpu = 0; cpu < n_cpus; cpu++)
				if (!from || fscanf(from, "%lf %lf", &a[cpu][n], &b[cpu][n]) != 2)
					exit(1);
		pclose(from);
	}
}

/*
 * What the length of a queue costs. Beside it, where the same number of processes waits elsewhere, and flock(2): what the machine
 * does with a thousand processes that were started and went to sleep is in all of them.
 */
static void compare_queues(FILE *json, int *rows, struct hf_locks *locks)
{
	double two[MANY_ROUNDS], many[MANY_ROUNDS], apart[MANY_ROUNDS], peer_two[MANY_ROUNDS], peer_many[MANY_ROUNDS];
	double two_us, many_us;

	pin(0);
	for (int i = 0; i < MANY_ROUNDS; i++) {
		/* The first one comes after a thousand of before. */
		(void)our_handoff(locks, 2, 0, 0);
		two[i] = our_handoff(locks, 2, 0, 0);
		peer_two[i] = peer_handoff(2, 0);
		many[i] = our_handoff(locks, MANY, 0, 0);
		apart[i] = our_handoff(locks, 2, MANY - 2, 0);
		peer_many[i] = peer_handoff(MANY, 0);
	}
	two_us = bench_median(two, MANY_ROUNDS);
	many_us = bench_median(many, MANY_ROUNDS);
	bench_row(json, rows, "hand-off at 1,000 waiters", many_us, "the same at 2", two_us, 1.5);
	bench_row(json, rows, "hand-off at 1,000 waiters", many_us, "at 2, 998 waiting elsewhere",
		  bench_median(apart, MANY_ROUNDS), 0);
	bench_row(json, rows, "flock(2) at 1,000 waiters", bench_median(peer_many, MANY_ROUNDS), "flock(2) at 2",
		  bench_median(peer_two, MANY_ROUNDS), 0);
	pin(-1);
}

int main(int argc, char **argv)
{
	FILE *json = bench_json_open(&argc, &argv);
	static double a[STARTS * ROUNDS], b[STARTS * ROUNDS];
	static double ours[2][STARTS * ROUNDS], peers[2][STARTS * ROUNDS];
	struct hf_locks *locks;
	char clean[96];
	int rows = 0, n;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !mkdtemp(dir))
		return 1;
	locks = open_locks();
	snprintf(clean, sizeof(clean), "rm -rf %s", dir);
	find_processors();
	if (argc == 2 && strcmp(argv[1], "handoffs") == 0)
		return print_handoffs(locks) || system(clean) != 0;
	for (n = 0; n < 21; n++) {
		a[n] = our_pairs(locks);
		b[n] = peer_pairs();
	}
	bench_row(json, &rows, "library acquire + release, no contention", bench_median(a, 21),
		  "7 bare system calls", bench_median(b, 21), 2.5);
	sample_handoffs(ours, peers);
	bench_row(json, &rows, "hand-off to a waiting process, 1 processor",
		  bench_median(ours[0], STARTS * ROUNDS), "blocked flock(2)",
		  bench_median(peers[0], STARTS * ROUNDS), 2.5);
	if (n_cpus > 1)
		bench_row(json, &rows, "the same, 2 processors",
			  bench_median(ours[1], STARTS * ROUNDS), "blocked flock(2)",
			  bench_median(peers[1], STARTS * ROUNDS), 1.75);
	for (n = 0; n < 41; n++) {
		a[n] = our_death(locks);
		b[n] = peer_death();
	}
	bench_row(json, &rows, "holder SIGKILLed until the next holds", bench_median(a, 41),
		  "flock(2)", bench_median(b, 41), 1.75);
	compare_queues(json, &rows, locks);
	bench_json_close(json);
	return system(clean) != 0;
}
