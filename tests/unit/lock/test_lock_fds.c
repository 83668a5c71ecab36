/* unit/lock/test_lock_fds.c - a process without a free descriptor releases its locks; errors name the limit (L4). */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "helper/lock_helper.h"
#include "helper/test.h"

#define MOST_FREE 8
#define THREADS   8

/* Leaves exactly `n` free descriptors. Returns the number of fillers. */
static int leave_descriptors(int n, int fillers[256])
{
	int n_fillers = 0, fd;

	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 128, 128 }) == 0);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
		MUST(n_fillers < 256);
		fillers[n_fillers++] = fd;
	}
	MUST(errno == EMFILE);
	for (int i = 0; i < n; i++)
		close(fillers[--n_fillers]);
	return n_fillers;
}

static int is_held(const char *name)
{
	struct hf_locks *locks;
	int r;

	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	r = hf_lock_check_token(locks, name, 0, NULL);
	hf_locks_free(locks);
	return r == 0;
}

/* Results of the process without descriptors. */
struct outcome {
	int released, acquired, released_again, waiter;
	struct hf_err err;
};

struct scene {
	struct outcome outcome;
	int n_free, waits, replace;
};

static void child_waits(int in, int out, void *arg)
{
	struct hf_locks *locks = own_locks(0);
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 30 * HF_SEC };
	struct scene *scene = arg;
	struct hf_lock *lock;

	(void)in;
	tell(out, 'r');
	scene->outcome.waiter = hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL);
}

static void count_waiters(void *arg, const struct hf_lock_info *info)
{
	*(size_t *)arg = info->n_waiters;
}

static int has_waiter(struct hf_locks *locks)
{
	size_t n = 0;

	return hf_lock_look(locks, "x", count_waiters, &n, NULL) == 0 && n == 1;
}

/* Replaces the record by a copy of itself, as a restored backup does. */
static void replace_record(void)
{
	char command[1200];

	snprintf(command, sizeof(command), "cd '%s/locks/name' && cp -p x x.copy && mv x.copy x", hf_test_path("state"));
	MUST(system(command) == 0);
}

static void child_without_descriptors(int in, int out, void *arg)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .ttl_ns = 3600 * HF_SEC };
	struct hf_locks *locks = own_locks(1);
	struct scene *scene = arg;
	struct hf_lock *lock, *other;
	struct child *waiter = NULL;
	int fillers[256], n;

	(void)in;
	MUST(hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL) == 0);
	if (scene->waits) {
		waiter = child_start(child_waits, scene);
		AWAIT(has_waiter(locks));
	}
	if (scene->replace)
		replace_record();
	n = leave_descriptors(scene->n_free, fillers);
	scene->outcome.released = hf_lock_release(lock, &scene->outcome.err);
	if (scene->outcome.released == 0) {
		scene->outcome.acquired = hf_lock_acquire(locks, "other", &opts, &other, NULL, &scene->outcome.err);
		/* Each release gives the reserved descriptor back for the next one. */
		for (int i = 0; i < 20 && scene->outcome.acquired == 0 && scene->outcome.released_again == 0; i++) {
			scene->outcome.released_again = hf_lock_release(other, &scene->outcome.err);
			if (scene->outcome.released_again == 0)
				MUST(hf_lock_acquire(locks, "other", &opts, &other, NULL, NULL) == 0);
		}
		if (scene->outcome.acquired == 0 && scene->outcome.released_again == 0)
			MUST(hf_lock_release(other, NULL) == 0);
	}
	while (n > 0)
		close(fillers[--n]);
	if (waiter)
		MUST(child_reap(waiter) == 0);
	tell(out, 'r');
}

static struct outcome play(int n_free, int waits, int replace)
{
	struct scene *scene = shared_new(sizeof(*scene));

	*scene = (struct scene){ .n_free = n_free, .waits = waits, .replace = replace };
	assert_int_equal(child_reap(child_start(child_without_descriptors, scene)), 0);
	child_end(&proc_children[--proc_n_children]);
	return scene->outcome;
}

static void release_needs_no_free_descriptor_L4(void **state)
{
	int acquired = 0;

	(void)state;
	for (int n = 0; n <= MOST_FREE; n++)
		for (int how = 0; how < 4; how++) {
			struct outcome o = play(n, how & 1, how & 2);

			if (o.released < 0 || o.released_again < 0 || o.waiter < 0)
				fail_msg("%d free, %d: release %d, %d, waiter %d: %s %s %s", n, how, o.released,
					 o.released_again, o.waiter, o.err.op, o.err.subject, o.err.detail);
			assert_false(is_held("x"));
			assert_false(is_held("other"));
			acquired += o.acquired == 0;
			if (o.acquired == 0)
				continue;
			assert_int_equal(o.acquired, -EMFILE);
			assert_int_equal(o.err.code, -EMFILE);
			assert_int_equal(o.err.sys, EMFILE);
			assert_true(o.err.op[0] && o.err.subject[0]);
			assert_non_null(strstr(o.err.detail, "no descriptor left"));
		}
	assert_true(acquired >= 4); /* with all that is left it works */
}

static void *releaser(void *arg)
{
	return (void *)(intptr_t)hf_lock_release(arg, NULL);
}

static void child_with_threads(int in, int out, void *arg)
{
	struct hf_locks *locks = own_locks(1);
	struct hf_lock *lock[THREADS];
	pthread_t threads[THREADS];
	int *failed = arg, fillers[256], n;

	(void)in;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < THREADS; i++) {
			char name[8];

			snprintf(name, sizeof(name), "t%d", i);
			MUST(hf_lock_acquire(locks, name, NULL, &lock[i], NULL, NULL) == 0);
		}
		n = leave_descriptors(0, fillers);
		for (int i = 0; i < THREADS; i++)
			MUST(pthread_create(&threads[i], NULL, releaser, lock[i]) == 0);
		for (int i = 0; i < THREADS; i++) {
			void *r;

			MUST(pthread_join(threads[i], &r) == 0);
			*failed += r != NULL;
			hf_lock_free(lock[i]);
		}
		while (n > 0)
			close(fillers[--n]);
	}
	tell(out, 'r');
}

static void threads_take_turns_with_the_last_descriptor_L4(void **state)
{
	int *failed = shared_new(sizeof(*failed));

	(void)state;
	assert_int_equal(child_reap(child_start(child_with_threads, failed)), 0);
	assert_int_equal(*failed, 0);
	for (int i = 0; i < THREADS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "t%d", i);
		assert_false(is_held(name));
	}
}

/* The state directory must exist before the children open it. */
static int setup(void **state)
{
	int r = hf_test_setup(state);

	(void)hf_test_state();
	return r;
}

#define FD_TEST(fn) { #fn, fn, setup, proc_test_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		FD_TEST(release_needs_no_free_descriptor_L4),
		FD_TEST(threads_take_turns_with_the_last_descriptor_L4),
	};

	proc_test_begin();
	return hf_run_tests("lock_fds", tests);
}
