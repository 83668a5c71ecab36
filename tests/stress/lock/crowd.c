/* stress/lock/crowd.c - many processes at one name: a queue of twenty, fifty at once. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/sys/calls.h"
#include "holdfast/lock.h"
#include "stress/lock/stress.h"

/* -- twenty in a queue ------------------------------------------------------------------ */

/* How long this process has been ready to run without a processor; 0 where the kernel does not tell. */
static int64_t time_off(int schedstat_fd)
{
	long long ran, waited;
	char text[128];
	ssize_t n = pread(schedstat_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited : 0;
}

static void note_off(int64_t off)
{
	int64_t seen = __atomic_load_n(&shared->longest_off, __ATOMIC_RELAXED);

	while (off > seen && !__atomic_compare_exchange_n(&shared->longest_off, &seen, off, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void queue_up(const char *leaf, int index)
{
	int schedstat_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	struct worker w = { .index = index };
	struct hold h = { .w = &w, .name = "queue" };

	seed_random((uint64_t)index, 77);
	w.c = open_context(leaf);
	h.opts = (struct hf_lock_opts){ .size = sizeof(h.opts), .wait_ns = LONG_WAIT_NS };
	while (!is_over()) {
		int64_t off = time_off(schedstat_fd), start = now();
		struct hf_err err;

		if (hf_lock_acquire(w.c.locks, h.name, &h.opts, &h.lock, NULL, &err) < 0) {
			wrong(&shared->stuck, "queue: %s", err.detail);
			continue;
		}
		h.token = hf_lock_token(h.lock);
		log_acquisition(&h, start);
		note_off(time_off(schedstat_fd) - off);
		if (hf_lock_release(h.lock, &err) < 0)
			wrong(&shared->other, "queue: %s", err.detail);
		hf_lock_free(h.lock);
	}
	close_context(&w.c);
	_exit(0);
}

static void measure_waits(uint32_t n, int64_t *ret_longest, int64_t *ret_mean)
{
	int64_t sum = 0;

	*ret_longest = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t waited = shared->log[i].end_ns - shared->log[i].start_ns;

		sum += waited;
		if (waited > *ret_longest)
			*ret_longest = waited;
	}
	*ret_mean = n > 0 ? sum / n : 0;
}

/*
 * How many got the lock after one that came clearly later. Between its arrival and its
 * place in the queue a process may lose the processor, or wait for the guard of one that
 * lost it; `slack` allows for that.
 */
static uint32_t count_overtaken(uint32_t n, int64_t slack)
{
	uint32_t overtaken = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t came = shared->log[i].start_ns;

		for (uint32_t j = i > 4 * QUEUERS ? i - 4 * QUEUERS : 0; j < i; j++)
			if (shared->log[j].start_ns > came + slack) {
				overtaken++;
				break;
			}
	}
	return overtaken;
}

void twenty_in_a_queue(void)
{
	int64_t longest, mean;
	uint32_t overtaken, n;
	pid_t pids[QUEUERS];

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	for (int i = 0; i < QUEUERS; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			queue_up("queue", i);
	}
	poll(NULL, 0, (int)seconds * 1000);
	__atomic_store_n(&shared->over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < QUEUERS; i++)
		waitpid(pids[i], NULL, 0);
	result(check_tokens() == 0 && shared->stuck == 0 && shared->other == 0,
	       "queue: 20 in a loop, all get it");
	n = shared->n_log < LOG_MAX ? shared->n_log : LOG_MAX;
	measure_waits(n, &longest, &mean);
	overtaken = count_overtaken(n, 10 * HF_MSEC + 3 * mean + 2 * shared->longest_off);
	printf("# queue: %u acquired, mean wait %lld us, longest %lld us, %u overtaken; %lld us without a processor\n", n,
	       (long long)(mean / HF_USEC), (long long)(longest / HF_USEC), overtaken, (long long)(shared->longest_off / HF_USEC));
	result(n > QUEUERS && longest < 50 * mean + 500 * HF_MSEC, "queue: nobody starves");
	result(overtaken <= n / 100, "queue: first come, first served");
}

/* -- fifty at one free or stale name -------------------------------------------------------- */

void tell(int fd, size_t n)
{
	char bytes[SWEEPERS];

	memset(bytes, 'x', sizeof(bytes));
	if (write(fd, bytes, n) != (ssize_t)n)
		give_up("pipe");
}

char hear(int fd)
{
	char byte = 0;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
	return byte;
}

/* Tries when it is told to, and holds until all have tried. */
static void sweep(const char *leaf, int try_fd, int end_fd, int answer_fd)
{
	struct context c = open_context(leaf);

	for (;;) {
		struct hf_lock *lock = NULL;
		struct hf_err err;
		int r;

		(void)hear(try_fd);
		r = hf_lock_acquire(c.locks, "sweep", NULL, &lock, NULL, &err);
		if (r < 0 && r != HF_E_BUSY)
			wrong(&shared->other, "sweep: %d %s", r, err.detail);
		if (write(answer_fd, lock ? "1" : "0", 1) != 1)
			_exit(1);
		(void)hear(end_fd);
		if (lock && hf_lock_release(lock, &err) < 0)
			wrong(&shared->lost, "sweep: %s", err.detail);
		hf_lock_free(lock);
		if (write(answer_fd, "e", 1) != 1)
			_exit(1);
	}
}

/* A holder that was killed: its record stays. */
static void leave_stale(const char *leaf)
{
	struct hf_lock *lock;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		give_up("pipe");
	fflush(stdout);
	pid = fork_child();
	if (pid == 0) {
		struct context c = open_context(leaf);

		if (hf_lock_acquire(c.locks, "sweep", NULL, &lock, NULL, NULL) < 0 ||
		    write(fds[1], "h", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (hear(fds[0]) != 'h')
		wrong(&shared->other, "sweep: the victim did not get it");
	close(fds[0]);
	end_child(pid);
}

void fifty_at_once(void)
{
	int tries[2], ends[2], answers[2], owners, bad = 0;
	pid_t pids[SWEEPERS];

	memset(shared, 0, sizeof(*shared));
	if (pipe2(tries, O_CLOEXEC) < 0 || pipe2(ends, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		give_up("pipe");
	fflush(stdout);
	for (int i = 0; i < SWEEPERS; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			sweep("sweep", tries[0], ends[0], answers[1]);
	}
	for (int round = 0; round < SWEEPS; round++) {
		if (round % 2)
			leave_stale("sweep");
		tell(tries[1], SWEEPERS);
		owners = 0;
		for (int i = 0; i < SWEEPERS; i++)
			owners += hear(answers[0]) == '1';
		tell(ends[1], SWEEPERS);
		for (int i = 0; i < SWEEPERS; i++)
			(void)hear(answers[0]);
		if (owners != 1) {
			printf("# round %d: %d owners\n", round, owners);
			bad++;
		}
	}
	for (int i = 0; i < SWEEPERS; i++)
		end_child(pids[i]);
	for (int i = 0; i < 2; i++) {
		close(tries[i]);
		close(ends[i]);
		close(answers[i]);
	}
	result(bad == 0 && shared->other == 0 && shared->lost == 0,
	       "sweep: 50 at one free or stale name, 100 rounds, one owner each (L1, L4)");
}
