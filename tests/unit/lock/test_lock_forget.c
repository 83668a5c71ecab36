/* unit/lock/test_lock_forget.c - records of locks that nobody wants are removed: never one that is wanted (L1), and tokens rise (L2). */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "helper/lock_cases.h"
#include "helper/test.h"
#include "hf/lock/local/local.h"
#include "hf/lock/store.h"
#include "hf/sys/calls.h"
#include "hf/sys/state/state.h"

#define RECORD "locks/name/x"

static void set_margin(int64_t us)
{
	((struct hf_local *)hf_locks_store(locks))->forget_margin_us = us;
}

static int is_there(const char *path)
{
	return faccessat(hf_state_dirfd(hf_test_state()), path, F_OK, 0) == 0;
}

static uint64_t take_and_release(const char *name)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	struct hf_lock *lock;
	uint64_t token;

	ASSERT_OK(hf_lock_acquire(locks, name, &opts, &lock, NULL, ERR));
	token = hf_lock_token(lock);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	return token;
}

static void record_is_forgotten_only_when_nobody_holds_it_and_it_is_old_enough_L2(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_lock *lock;
	uint64_t before, after;

	(void)state;
	assert_int_equal(hf_lock_forget(locks, "x", NULL), HF_E_NOT_HELD);
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	set_margin(0);
	assert_int_equal(hf_lock_forget(locks, "x", NULL), HF_E_BUSY);
	ASSERT_OK(hf_lock_check(lock, ERR));
	before = hf_lock_token(lock);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	/* The token clock has not gone far enough since. */
	set_margin(HF_FORGET_MARGIN_US);
	assert_int_equal(hf_lock_forget(locks, "x", NULL), 0);
	assert_true(is_there(RECORD));
	set_margin(1000);
	usleep(2000);
	assert_int_equal(hf_lock_forget(locks, "x", NULL), 1);
	assert_false(is_there(RECORD));
	after = take_and_release("x");
	assert_true(after > before);
}

static void dead_holder_keeps_no_record_and_its_takeover_is_told_L8(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		struct hf_locks *own;
		struct hf_lock *lock;

		_exit(hf_locks_open(hf_test_state(), NULL, &own, NULL) < 0 || hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL) < 0);
	}
	assert_int_equal(waitpid(child, &(int){ 0 }, 0), child);
	set_margin(1000);
	usleep(2000);
	assert_int_equal(hf_lock_forget(locks, "x", NULL), 1);
	assert_false(is_there(RECORD));
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 1);
}

static int count_call(void *arg)
{
	++*(int *)arg;
	return 0;
}

static void action_runs_only_while_nobody_has_the_name_and_leaves_no_file_behind(void **state)
{
	int calls = 0;
	struct hf_forget how = { .action = count_call, .arg = &calls, .keep_record = 1 };
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_lock *lock;

	(void)state;
	assert_int_equal(hf_lock_forget_as(locks, "x", &how, NULL), 0);
	assert_int_equal(calls, 1);
	assert_false(is_there(RECORD));
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	assert_int_equal(hf_lock_forget_as(locks, "x", &how, NULL), HF_E_BUSY);
	assert_int_equal(calls, 1);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	assert_int_equal(hf_lock_forget_as(locks, "x", &how, NULL), 0);
	assert_int_equal(calls, 2);
	assert_true(is_there(RECORD));
}

static void make_empty(void)
{
	int fd = openat(hf_state_dirfd(hf_test_state()), RECORD, O_RDWR | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
}

static int (*usual_flock)(int fd, int operation);
static struct hf_locks *forgetful; /* NULL: it is at work already */
static int forgets;

/* Another process forgets the name, each time between the opening of its file and the lock on it. */
static int flock_after_a_forget(int fd, int operation)
{
	struct hf_locks *other = forgetful;

	if (other && operation & LOCK_EX && forgets < 100) {
		forgetful = NULL;
		forgets++;
		(void)!hf_lock_forget(other, "x", NULL);
		forgetful = other;
	}
	return usual_flock(fd, operation);
}

static void file_that_was_made_just_now_is_not_forgotten_before_its_maker_has_locked_it(void **state)
{
	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &forgetful, ERR));
	((struct hf_local *)hf_locks_store(forgetful))->forget_margin_us = 0;
	/* Where we have the guard already, it cannot have it. */
	((struct hf_local *)hf_locks_store(forgetful))->guard_wait_ns = 0;
	usual_flock = hf_sys.flock;
	hf_sys.flock = flock_after_a_forget;
	(void)take_and_release("x");
	hf_sys.flock = usual_flock;
	assert_true(forgets > 0 && forgets < 10);
	/* One that its maker has left empty goes in time. */
	make_empty();
	assert_int_equal(hf_lock_forget(forgetful, "x", NULL), 0);
	assert_true(is_there(RECORD));
	while (hf_lock_forget(forgetful, "x", NULL) != 1)
		usleep(20000);
	hf_locks_free(forgetful);
}

/* -- many at once ---------------------------------------------------------------------- */

#define WORKERS    4
#define FORGETTERS 2
#define LASTS_NS   (1500 * HF_MSEC)

struct shared {
	atomic_int inside;
	_Atomic uint64_t last;
	atomic_int taken, forgotten, wrong;
};

static void work(struct shared *shared)
{
	struct hf_mono until = hf_mono_in(LASTS_NS);
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	struct hf_locks *own;

	if (hf_locks_open(hf_test_state(), NULL, &own, NULL) < 0)
		_exit(1);
	while (hf_mono_left(until) > 0) {
		struct hf_err err = HF_ERR_INIT;
		struct hf_lock *lock;
		uint64_t before;

		if (hf_lock_acquire(own, "x", &opts, &lock, NULL, &err) < 0) {
			fprintf(stderr, "acquire: %s\n", err.detail);
			_exit(2);
		}
		/* Alone (L1), with a token above all before (L2). */
		if (atomic_fetch_add(&shared->inside, 1) != 0)
			shared->wrong++;
		before = atomic_exchange(&shared->last, hf_lock_token(lock));
		if (before >= hf_lock_token(lock))
			shared->wrong++;
		shared->taken++;
		atomic_fetch_sub(&shared->inside, 1);
		if (hf_lock_release(lock, NULL) < 0)
			_exit(3);
		hf_lock_free(lock);
		usleep((useconds_t)(hf_mono_now().ns / 1000 % 3000));
	}
	_exit(0);
}

static void forget(struct shared *shared)
{
	struct hf_mono until = hf_mono_in(LASTS_NS);
	struct hf_locks *own;

	if (hf_locks_open(hf_test_state(), NULL, &own, NULL) < 0)
		_exit(1);
	((struct hf_local *)hf_locks_store(own))->forget_margin_us = 100;
	while (hf_mono_left(until) > 0)
		if (hf_lock_forget(own, "x", NULL) == 1)
			shared->forgotten++;
	_exit(0);
}

static void forgetting_beside_many_that_take_it_breaks_neither_L1_nor_L2(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[WORKERS + FORGETTERS];

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	for (int i = 0; i < WORKERS + FORGETTERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			if (i < WORKERS)
				work(shared);
			forget(shared);
		}
	}
	for (int i = 0; i < WORKERS + FORGETTERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	print_message("taken %d times, forgotten %d times\n", shared->taken, shared->forgotten);
	assert_int_equal(shared->wrong, 0);
	assert_true(shared->taken > 20);
	assert_true(shared->forgotten > 10);
	(void)munmap(shared, sizeof(*shared));
}

static void idle_locks_are_forgotten_by_kind_and_held_ones_stay(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_lock *lock;

	(void)state;
	(void)take_and_release("a");
	(void)take_and_release("b");
	ASSERT_OK(hf_lock_acquire(locks, "held", &opts, &lock, NULL, ERR));
	set_margin(1000);
	usleep(2000);
	/* An hour has not passed. */
	assert_int_equal(hf_locks_forget_idle(locks, 3600 * HF_SEC, -1, ERR), 0);
	assert_int_equal(hf_locks_forget_idle(locks, 0, -1, ERR), 2);
	assert_true(is_there("locks/name/held"));
	assert_false(is_there("locks/name/a"));
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(record_is_forgotten_only_when_nobody_holds_it_and_it_is_old_enough_L2),
		LOCK_TEST(dead_holder_keeps_no_record_and_its_takeover_is_told_L8),
		LOCK_TEST(action_runs_only_while_nobody_has_the_name_and_leaves_no_file_behind),
		LOCK_TEST(file_that_was_made_just_now_is_not_forgotten_before_its_maker_has_locked_it),
		LOCK_TEST(forgetting_beside_many_that_take_it_breaks_neither_L1_nor_L2),
		LOCK_TEST(idle_locks_are_forgotten_by_kind_and_held_ones_stay),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock_forget", tests);
}
