/*
 * bench/fleet.c - locks of several machines, in a cluster of etcd, beside `etcdctl lock` and Redis.
 *
 *     bench-fleet [--json FILE] HOLDFAST URL          ETCDCTL_ENDPOINTS and redis.sock as bench/run makes them
 *
 * The hand-off is measured in the library: from the call of the release to the return of the next acquisition, with so many others in
 * the queue, each of them a thread with a watch of its own. That of commands is measured from outside, by the clock of the commands.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "holdfast/lock.h"
#include "holdfast/state.h"

#define ROUNDS    101
#define HANDOFFS  41
#define COMMANDS  20
#define HOLD_US   20000
#define STACK     (256 << 10)

static struct hf_locks *locks;
static struct hf_err err = HF_ERR_INIT;

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-fleet: %s: %s\n", err.subject, err.detail);
	exit(1);
}

/* -- a command under a lock ------------------------------------------------------------------- */

static void compare(FILE *json, int *rows, const char *what, const char *const ours[], const char *peer_name,
		    const char *const peer[], double bar)
{
	static double a[ROUNDS], b[ROUNDS];

	if (bench_spawn(peer) < 0) {
		printf("  %-44s %-28s is not available here\n", what, peer_name);
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		a[i] = bench_spawn(ours);
		b[i] = bench_spawn(peer);
		if (a[i] < 0) {
			fprintf(stderr, "%s failed\n", what);
			exit(1);
		}
	}
	bench_row(json, rows, what, bench_median(a, ROUNDS), peer_name, bench_median(b, ROUNDS), bar);
}

/* -- in the library ------------------------------------------------------------------------------ */

static double acquire_and_release(void)
{
	const struct hf_lock_opts opts = { .size = sizeof(opts), .ttl_ns = hf_locks_lease(locks) };
	static double us[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double start = bench_now_us();
		struct hf_lock *lock;

		check(hf_lock_acquire(locks, "library", &opts, &lock, NULL, &err));
		check(hf_lock_release(lock, &err));
		us[i] = bench_now_us() - start;
		hf_lock_free(lock);
	}
	return bench_median(us, ROUNDS);
}

static struct {
	pthread_mutex_t mutex;
	double released; /* when the last release was called */
	double us[HANDOFFS];
	int n;
	int stop[2];
} handoff = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* 1: there are enough. */
static int add_sample(void)
{
	double now = bench_now_us();
	int enough;

	pthread_mutex_lock(&handoff.mutex);
	if (handoff.n < HANDOFFS)
		handoff.us[handoff.n] = now - handoff.released;
	enough = ++handoff.n >= HANDOFFS;
	pthread_mutex_unlock(&handoff.mutex);
	return enough;
}

static void *take_turn(void *arg)
{
	const struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1, .ttl_ns = hf_locks_lease(locks),
					   .cancel_fd = handoff.stop[0] };
	struct hf_lock *lock;
	int r;

	(void)arg;
	/* A thousand at once may ask for more than the cluster answers in time. */
	do
		r = hf_lock_acquire(locks, "queue", &opts, &lock, NULL, NULL);
	while (r == HF_E_STORE);
	if (r < 0)
		return NULL;
	if (add_sample())
		(void)!write(handoff.stop[1], "x", 1);
	else
		usleep(HOLD_US);
	pthread_mutex_lock(&handoff.mutex);
	handoff.released = bench_now_us();
	pthread_mutex_unlock(&handoff.mutex);
	(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
	return NULL;
}

static void count(void *arg, const struct hf_lock_info *info)
{
	*(size_t *)arg = info->n_waiters;
}

static size_t waiting(void)
{
	size_t n = 0;

	return hf_lock_look(locks, "queue", count, &n, &err) < 0 ? 0 : n;
}

/* `n` threads queue behind us; then each one in turn. */
static void pass_through(size_t n)
{
	const struct hf_lock_opts opts = { .size = sizeof(opts), .ttl_ns = 600 * HF_SEC };
	pthread_t *threads = calloc(n, sizeof(*threads));
	struct hf_lock *lock;
	pthread_attr_t attr;

	if (!threads)
		exit(1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	check(hf_lock_acquire(locks, "queue", &opts, &lock, NULL, &err));
	for (size_t i = 0; i < n; i++) {
		if (pthread_create(&threads[i], &attr, take_turn, NULL) != 0)
			exit(1);
		while (i % 25 == 24 && waiting() < i)
			usleep(10000);
	}
	while (waiting() < n)
		usleep(10000);
	/* The last one opens its watch. */
	usleep(HOLD_US);
	handoff.released = bench_now_us();
	check(hf_lock_release(lock, &err));
	hf_lock_free(lock);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
	free(threads);
}

/* Median of the hand-offs while about `n` others wait. */
static double hand_off(size_t n)
{
	if (pipe(handoff.stop) < 0)
		exit(1);
	handoff.n = 0;
	while (handoff.n < HANDOFFS)
		pass_through(n);
	close(handoff.stop[0]);
	close(handoff.stop[1]);
	return bench_median(handoff.us, HANDOFFS);
}

/* -- commands, one after the other ------------------------------------------------------------------ */

#define STAMPS "bench.stamps"
#define STAMP  "./bench.stamp" /* a program: etcdctl takes options of a command for its own */

static void write_stamp(void)
{
	FILE *file = fopen(STAMP, "we");

	if (!file || fputs("#!/bin/sh\ndate +%s%N >>" STAMPS "; sleep 0.05; date +%s%N >>" STAMPS "\n", file) < 0 || fclose(file) != 0 ||
	    chmod(STAMP, 0755) < 0) {
		perror(STAMP);
		exit(1);
	}
}

/* Each of COMMANDS commands that wait writes when it begins and when it ends. Median from an end to the next begin; -1: not here. */
static double hand_off_commands(const char *const argv[])
{
	static uint64_t at[2 * COMMANDS];
	static double us[COMMANDS];
	posix_spawn_file_actions_t quiet;
	pid_t pids[COMMANDS];
	size_t n = 0;
	FILE *file;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", 1, 0);
	(void)unlink(STAMPS);
	for (int i = 0; i < COMMANDS; i++)
		if (posix_spawnp(&pids[i], argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
			return -1;
	posix_spawn_file_actions_destroy(&quiet);
	for (int i = 0; i < COMMANDS; i++)
		(void)waitpid(pids[i], NULL, 0);
	file = fopen(STAMPS, "re");
	while (file && n < 2 * COMMANDS && fscanf(file, "%" SCNu64, &at[n]) == 1)
		n++;
	if (file)
		fclose(file);
	if (n < 2 * COMMANDS)
		return -1;
	for (size_t i = 0; i + 1 < COMMANDS; i++)
		us[i] = (double)(at[2 * i + 2] - at[2 * i + 1]) / 1e3;
	return bench_median(us, COMMANDS - 1);
}

int main(int argc, char **argv)
{
	FILE *json = bench_json_open(&argc, &argv);
	struct hf_state *state = NULL;
	double two, ours, theirs;
	int rows = 0;

	if (argc != 3) {
		fputs("usage: bench-fleet [--json FILE] HOLDFAST URL\n", stderr);
		return 2;
	}
	check(hf_state_open(NULL, 1, &state, &err));
	check(hf_locks_open_store(argv[2], state, NULL, &locks, &err));
	compare(json, &rows, "store: lock run X -- true", ARGV(argv[1], "--store", argv[2], "lock", "run", "bench", "--", "true"),
		"etcdctl lock X true", ARGV("etcdctl", "--dial-timeout=1s", "lock", "bench", "true"), 0.3);
	compare(json, &rows, "store: lock run X -- true", ARGV(argv[1], "--store", argv[2], "lock", "run", "bench", "--", "true"),
		"redis-cli set nx, del",
		ARGV("redis-cli", "-s", "redis.sock", "eval",
		     "redis.call('set','bench','1','nx','px',60000) return redis.call('del','bench')", "0"),
		0);
	compare(json, &rows, "store: run X -- true", ARGV(argv[1], "--store", argv[2], "run", "bench", "--", "true"),
		"etcdctl lock X true", ARGV("etcdctl", "--dial-timeout=1s", "lock", "bench", "true"), 0);
	two = hand_off(2);
	bench_row(json, &rows, "store: acquire + release, library", acquire_and_release(), "hand-off at 2 waiters", two, 0);
	bench_row(json, &rows, "store: hand-off at 100 waiters", hand_off(100), "at 2 waiters", two, 0);
	bench_row(json, &rows, "store: hand-off at 1,000 waiters", hand_off(1000), "at 2 waiters", two, 1.5);
	write_stamp();
	ours = hand_off_commands(ARGV(argv[1], "--store", argv[2], "lock", "run", "commands", "--", STAMP));
	theirs = hand_off_commands(ARGV("etcdctl", "lock", "commands", STAMP));
	if (ours > 0 && theirs > 0)
		bench_row(json, &rows, "store: hand-off of 20 commands", ours, "etcdctl lock", theirs, 0);
	bench_json_close(json);
	hf_locks_free(locks);
	hf_state_free(state);
	return 0;
}
