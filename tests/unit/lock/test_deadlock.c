/*
 * unit/lock/test_deadlock.c - what is proven to wait, and what only looks like it: processes that wait
 * for their children, and owners of several threads. (Cycles of processes: test_lock_wait.c; the
 * command line: tests/cli/lock/lock_deadlock.bats.)
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_helper.h"
#include "helper/test.h"
#include "hf/proc/blocked.h"
#include "holdfast/proc.h"

/* -- a process and its children -------------------------------------------------------- */

struct family {
	pid_t pids[2]; /* its children */
	_Atomic int ready;
};

static struct family *family;

static int setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	family = mmap(NULL, sizeof(*family), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return family == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	munmap(family, sizeof(*family));
	return hf_test_teardown(state);
}

#define DEADLOCK_TEST(fn) { #fn, fn, setup, teardown, NULL }

static void sleep_for_ever(void)
{
	for (;;)
		(void)poll(NULL, 0, -1);
}

/* A process with two children, which then does `then`. All end with the test. */
static pid_t parent_of_two(void (*then)(void))
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (int i = 0; i < 2; i++) {
		pid = fork();
		if (pid == 0)
			sleep_for_ever();
		MUST(pid > 0);
		family->pids[i] = pid;
	}
	family->ready = 1;
	then();
	_exit(0);
}

static void end_family(pid_t pid)
{
	AWAIT(family->ready);
	kill(pid, SIGKILL);
	for (int i = 0; i < 2; i++) {
		assert_true(family->pids[i] > 0);
		kill(family->pids[i], SIGKILL);
	}
	family->ready = 0;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void wait_for_second(void)
{
	(void)waitpid(family->pids[1], NULL, 0);
}

static void wait_for_first_by_id(void)
{
	(void)waitid(P_PID, (id_t)family->pids[0], &(siginfo_t){ 0 }, WEXITED);
}

static void wait_for_any(void)
{
	(void)waitpid(-1, NULL, 0);
}

static void *sleep_in_thread(void *arg)
{
	(void)arg;
	sleep_for_ever();
	return NULL;
}

static void parent_that_waits_for_one_child_is_blocked_on_that_one(void **state)
{
	struct hf_blocked blocked;
	pid_t pid;

	(void)state;
	pid = parent_of_two(wait_for_second);
	AWAIT(hf_blocked_on_children(pid, &blocked));
	assert_int_equal(blocked.n, 1);
	assert_int_equal(blocked.children[0], family->pids[1]);
	end_family(pid);
	pid = parent_of_two(wait_for_first_by_id);
	AWAIT(hf_blocked_on_children(pid, &blocked));
	assert_int_equal(blocked.n, 1);
	assert_int_equal(blocked.children[0], family->pids[0]);
	end_family(pid);
}

static void parent_that_waits_for_any_child_is_blocked_on_all_of_them(void **state)
{
	struct hf_blocked blocked, later;
	pid_t pid = parent_of_two(wait_for_any);

	(void)state;
	AWAIT(hf_blocked_on_children(pid, &blocked));
	assert_int_equal(blocked.n, 2);
	/* It has not run since. */
	assert_true(hf_blocked_on_children(pid, &later));
	assert_int_equal(later.switches, blocked.switches);
	end_family(pid);
}

static void parent_that_sleeps_otherwise_is_not_blocked_on_its_children(void **state)
{
	struct hf_blocked blocked;
	pid_t pid = parent_of_two(sleep_for_ever);

	(void)state;
	AWAIT(family->ready);
	for (int i = 0; i < 100; i++) {
		assert_false(hf_blocked_on_children(pid, &blocked));
		(void)poll(NULL, 0, 1);
	}
	/* Gone, and no process at all. */
	end_family(pid);
	assert_false(hf_blocked_on_children(pid, &blocked));
}

/* A third child that has ended already wakes it, all the time. */
static void wait_again_and_again(void)
{
	for (;;) {
		if (fork() == 0)
			_exit(0);
		(void)waitpid(-1, NULL, 0);
	}
}

/* It is never asleep with only the two that live on. */
static void parent_whose_children_come_and_go_is_not_blocked_on_those_that_stay(void **state)
{
	struct hf_mono until = hf_mono_in(500 * HF_MSEC);
	pid_t pid = parent_of_two(wait_again_and_again);
	struct hf_blocked blocked;

	(void)state;
	AWAIT(family->ready);
	while (hf_mono_left(until) > 0)
		if (hf_blocked_on_children(pid, &blocked))
			assert_int_equal(blocked.n, 3);
	end_family(pid);
}

/* -- an owner of several threads --------------------------------------------------------- */

static struct hf_locks *shared;

static int acquire(struct hf_locks *locks, const char *name, const struct hf_proc_id *owner,
		   struct hf_lock **ret)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 20 * HF_SEC, .owner = owner };

	return hf_lock_acquire(locks, name, &opts, ret, NULL, NULL);
}

static void *take_b(void *arg)
{
	struct hf_lock *lock;

	(void)arg;
	MUST(acquire(shared, "b", NULL, &lock) == 0);
	MUST(hf_lock_release(lock, NULL) == 0);
	return NULL;
}

static _Atomic int waits;

static void count_waiters(void *arg, const struct hf_lock_info *info)
{
	(void)arg;
	waits = (int)info->n_waiters;
}

static int waiters_of(struct hf_locks *locks, const char *name)
{
	waits = 0;
	(void)!hf_lock_look(locks, name, count_waiters, NULL, NULL);
	return waits;
}

/* Has "a" as a process, and a thread that waits for "b"; another thread gives "a" back later. */
static void process_of_two_threads(void)
{
	struct hf_proc_id self;
	struct hf_lock *lock;
	pthread_t thread;

	shared = own_locks(0);
	MUST(hf_proc_self(&self, NULL) == 0);
	MUST(acquire(shared, "a", &self, &lock) == 0);
	family->ready = 1;
	AWAIT(family->ready == 2);
	MUST(pthread_create(&thread, NULL, take_b, NULL) == 0);
	AWAIT(waiters_of(shared, "a") == 1);
	(void)poll(NULL, 0, 600); /* past several looks of the other one */
	MUST(hf_lock_release(lock, NULL) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	_exit(0);
}

static void owner_with_another_thread_to_release_is_not_stuck(void **state)
{
	struct hf_locks *locks;
	struct hf_lock *a, *b;
	int status;
	pid_t pid;

	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	pid = fork();
	if (pid == 0)
		process_of_two_threads();
	AWAIT(family->ready);
	assert_int_equal(acquire(locks, "b", NULL, &b), 0);
	family->ready = 2;
	AWAIT(waiters_of(locks, "b") == 1);
	/* They look like a cycle: it waits for "b" and has "a". */
	assert_int_equal(acquire(locks, "a", NULL, &a), 0);
	ASSERT_OK(hf_lock_release(a, ERR));
	ASSERT_OK(hf_lock_release(b, ERR));
	hf_lock_free(a);
	hf_lock_free(b);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hf_locks_free(locks);
}

/* A parent of two threads may do something else while one of them waits for the child. */
static void child_of_a_holder_with_two_threads_is_not_told_of_a_deadlock(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 600 * HF_MSEC };
	struct hf_lock *lock;
	pthread_t thread;
	int status;
	pid_t pid;

	(void)state;
	hf_test_state();
	pid = fork();
	if (pid == 0) {
		MUST(acquire(own_locks(0), "x", NULL, &lock) == 0);
		pid = fork();
		if (pid == 0) {
			int r = hf_lock_acquire(own_locks(0), "x", &opts, &lock, NULL, NULL);

			_exit(r == HF_E_TIMEOUT ? 0 : 1);
		}
		MUST(pthread_create(&thread, NULL, sleep_in_thread, NULL) == 0);
		MUST(waitpid(pid, &status, 0) == pid);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEADLOCK_TEST(parent_that_waits_for_one_child_is_blocked_on_that_one),
		DEADLOCK_TEST(parent_that_waits_for_any_child_is_blocked_on_all_of_them),
		DEADLOCK_TEST(parent_that_sleeps_otherwise_is_not_blocked_on_its_children),
		DEADLOCK_TEST(parent_whose_children_come_and_go_is_not_blocked_on_those_that_stay),
		DEADLOCK_TEST(owner_with_another_thread_to_release_is_not_stuck),
		DEADLOCK_TEST(child_of_a_holder_with_two_threads_is_not_told_of_a_deadlock),
	};

	return hf_run_tests("deadlock", tests);
}
