/* store/test_cycles.c - waits that are cancelled, and waits that would never end. Of every store. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_workers.h"
#include "hf/base/cleanup.h"
#include "store/store.h"

/* -- cancelled ------------------------------------------------------------------------ */

static int cancel_pipe[2];

static void nothing(int number)
{
	(void)number;
}

static void catch_alarms(void)
{
	struct sigaction act = { .sa_handler = nothing };

	MUST(sigaction(SIGALRM, &act, NULL) == 0);
}

static void wait_ends_when_its_descriptor_is_readable_and_not_by_a_signal(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1), *behind = worker("x", -1);

	(void)state;
	assert_int_equal(pipe2(cancel_pipe, O_CLOEXEC), 0);
	w->opts.cancel_fd = cancel_pipe[0];
	w->prepare = catch_alarms;
	start_in_queue(w, "x", 1);
	start_in_queue(behind, "x", 2);
	for (int i = 0; i < 3; i++) {
		kill(w->pid, SIGALRM);
		await_quiet(w->pid);
		assert_int_equal(w->done, 0);
	}
	assert_int_equal(write(cancel_pipe[1], "x", 1), 1);
	finish(w);
	assert_int_equal(w->r, HF_E_CANCELLED);
	assert_int_equal(look("x").n_waiters, 1);
	give_back(lock);
	finish(behind);
	close(cancel_pipe[0]);
	close(cancel_pipe[1]);
	assert_idle("x");
}

static void lock_that_is_free_is_had_although_the_descriptor_is_readable(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	struct hf_lock *lock = NULL;

	(void)state;
	assert_int_equal(pipe2(cancel_pipe, O_CLOEXEC), 0);
	assert_int_equal(write(cancel_pipe[1], "x", 1), 1);
	opts.cancel_fd = cancel_pipe[0];
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	give_back(lock);
	opts.cancel_fd = -1;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	/* A program that was built before there was such a field. */
	opts.size = offsetof(struct hf_lock_opts, cancel_fd);
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	give_back(lock);
	opts.size--;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	close(cancel_pipe[0]);
	close(cancel_pipe[1]);
	assert_idle("x");
}

/* Reads what was written, counts it, and goes on until it reads "e". */
static int go_on(void *arg)
{
	struct shared *shared = arg;
	char byte = 'e';

	MUST(read(cancel_pipe[0], &byte, 1) == 1);
	shared->scratch++;
	return byte != 'e';
}

static void wait_goes_on_in_its_place_while_go_on_says_so(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1), *behind = worker("x", -1), *third = worker("x", -1);

	(void)state;
	assert_int_equal(pipe2(cancel_pipe, O_CLOEXEC), 0);
	w->opts.cancel_fd = third->opts.cancel_fd = cancel_pipe[0];
	w->opts.go_on = third->opts.go_on = go_on;
	w->opts.go_on_arg = third->opts.go_on_arg = sh;
	start_in_queue(w, "x", 1);
	start_in_queue(behind, "x", 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(cancel_pipe[1], "x", 1), 1);
		AWAIT(sh->scratch == i + 1);
	}
	give_back(lock);
	finish(w);
	finish(behind);
	assert_int_equal(w->r + behind->r, 0);
	assert_true(w->order < behind->order);
	lock = take("x");
	start_in_queue(third, "x", 1);
	assert_int_equal(write(cancel_pipe[1], "e", 1), 1);
	finish(third);
	assert_int_equal(third->r, HF_E_CANCELLED);
	give_back(lock);
	close(cancel_pipe[0]);
	close(cancel_pipe[1]);
	assert_idle("x");
}

/* -- deadlock ------------------------------------------------------------------ */

static int deadlocks(void)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	int n = 0;

	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_next(reader, &record, ERR) > 0)
		n += record.info && record.info->event == HF_EV_LOCK_DEADLOCK;
	hf_journal_reader_free(reader);
	return n;
}

/* Each has one lock and then wants that of the next, in a circle of `n`. */
static void circle(int n)
{
	static const char *const names[] = { "alpha", "beta", "gamma" };
	int refused = 0;

	for (int i = 0; i < n; i++) {
		struct worker *w = worker(names[i], -1);

		w->names[1] = names[(i + 1) % n];
		w->keep_each = 1;
		start(w);
		AWAIT(w->got == 1);
	}
	/* One after the other, so that it is clear which one closes the circle. */
	for (int i = 0; i < n; i++) {
		sh->workers[i].go = 1;
		if (i < n - 1)
			AWAIT(look(names[(i + 1) % n]).n_waiters == 1);
	}
	for (int i = 0; i < n; i++)
		finish(&sh->workers[i]);
	for (int i = 0; i < n; i++) {
		struct worker *w = &sh->workers[i];

		if (w->r == 0)
			continue;
		refused++;
		assert_int_equal(w->r, HF_E_DEADLOCK);
		assert_int_equal(i, n - 1);
		assert_true(w->took_ns < SLACK);
		for (int k = 0; k < n; k++)
			assert_non_null(strstr(w->detail, names[k]));
	}
	assert_int_equal(refused, 1);
	assert_int_equal(deadlocks(), 1);
	for (int i = 0; i < n; i++)
		assert_idle(names[i]);
}

/* A name and a file of that name are two locks, and a circle may lead through both. */
static void circle_through_two_kinds_is_found_and_told(void **state)
{
	struct hf_locks *files = hf_locks_kind(locks, HF_LOCK_KIND_FILE);
	struct worker *first = worker("x", -1), *closer = worker("x", -1);
	struct view view = { 0 };

	(void)state;
	first->names[1] = closer->names[1] = "x";
	first->kinds[1] = closer->kinds[0] = HF_LOCK_KIND_FILE;
	first->keep_each = closer->keep_each = 1;
	start(first);
	start(closer);
	AWAIT(first->got == 1 && closer->got == 1);
	first->go = 1;
	AWAIT(hf_lock_look(files, "x", keep_view, &view, NULL) == 0 && view.n_waiters == 1);
	closer->go = 1;
	finish(closer);
	finish(first);
	assert_int_equal(first->r, 0);
	assert_int_equal(closer->r, HF_E_DEADLOCK);
	assert_non_null(strstr(closer->detail, "waits for 'x'"));
	assert_non_null(strstr(closer->detail, "waits for file 'x'"));
	assert_int_equal(deadlocks(), 1);
	assert_idle("x");
}

static void circle_of_two_is_found_and_only_its_closer_is_told(void **state)
{
	(void)state;
	circle(2);
}

static void circle_of_three_is_found_and_only_its_closer_is_told(void **state)
{
	(void)state;
	circle(3);
}

/* All at once: exactly one is told, and the others go on. */
static void circle_closed_by_all_at_once_is_broken_by_one(void **state)
{
	static const char *const names[] = { "alpha", "beta", "gamma" };
	int refused = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct worker *w = worker(names[i], -1);

		w->names[1] = names[(i + 1) % 3];
		w->keep_each = 1;
		start(w);
		AWAIT(w->got == 1);
	}
	for (int i = 0; i < 3; i++)
		sh->workers[i].go = 1;
	for (int i = 0; i < 3; i++) {
		finish(&sh->workers[i]);
		refused += sh->workers[i].r == HF_E_DEADLOCK;
	}
	assert_int_equal(refused, 1);
	for (int i = 0; i < 3; i++)
		assert_idle(names[i]);
}

/*
 * Two circles through a writer: with a reader that waited before it, which is for it to
 * find, and with one that waits a moment later and stands before the other in the record.
 */
static void circle_is_found_although_another_process_closed_another(void **state)
{
	struct worker *later = worker("alpha", 10 * HF_SEC), *earlier = worker("alpha", 10 * HF_SEC);
	struct worker *writer = worker("beta", 10 * HF_SEC);
	int refused = 0;

	(void)state;
	later->opts.mode = earlier->opts.mode = HF_LOCK_SHARED;
	later->names[1] = earlier->names[1] = "beta";
	writer->names[1] = "alpha";
	for (int i = 0; i < 3; i++) {
		sh->workers[i].keep_each = 1;
		start(&sh->workers[i]);
		AWAIT(sh->workers[i].got == 1);
	}
	earlier->go = 1;
	AWAIT(look("beta").n_waiters == 1);
	writer->go = 1;
	AWAIT(look("alpha").n_waiters == 1);
	later->go = 1;
	for (int i = 0; i < 3; i++) {
		finish(&sh->workers[i]);
		assert_true(sh->workers[i].r == 0 || sh->workers[i].r == HF_E_DEADLOCK);
		refused += sh->workers[i].r == HF_E_DEADLOCK;
	}
	assert_true(refused >= 1);
	assert_idle("alpha");
	assert_idle("beta");
}

static void traffic(void)
{
	struct hf_locks *own = own_locks(1);
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 20 * HF_SEC };
	struct hf_mono until = hf_mono_in(1500 * HF_MSEC);

	while (hf_mono_left(until) > 0) {
		struct hf_lock *a, *b;

		MUST(hf_lock_acquire(own, "a", &opts, &a, NULL, NULL) == 0);
		MUST(hf_lock_acquire(own, "b", &opts, &b, NULL, NULL) == 0);
		(void)poll(NULL, 0, 15); /* longer than 50 ms for those at the end of the queue */
		MUST(hf_lock_release(b, NULL) == 0);
		MUST(hf_lock_release(a, NULL) == 0);
		__atomic_add_fetch(&sh->orders, 1, __ATOMIC_SEQ_CST);
		hf_lock_free(a);
		hf_lock_free(b);
	}
}

static void traffic_in_one_order_is_never_taken_for_a_deadlock(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct worker *w = worker(NULL, 0);

		w->prepare = traffic;
		start(w);
	}
	for (int i = 0; i < 8; i++)
		finish(&sh->workers[i]);
	assert_true(sh->orders >= 16);
	assert_int_equal(deadlocks(), 0);
	assert_idle("a");
	assert_idle("b");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(wait_ends_when_its_descriptor_is_readable_and_not_by_a_signal),
		WAIT_TEST(lock_that_is_free_is_had_although_the_descriptor_is_readable),
		WAIT_TEST(wait_goes_on_in_its_place_while_go_on_says_so),
		WAIT_TEST(circle_through_two_kinds_is_found_and_told),
		WAIT_TEST(circle_of_two_is_found_and_only_its_closer_is_told),
		WAIT_TEST(circle_of_three_is_found_and_only_its_closer_is_told),
		WAIT_TEST(circle_closed_by_all_at_once_is_broken_by_one),
		WAIT_TEST(circle_is_found_although_another_process_closed_another),
		WAIT_TEST(traffic_in_one_order_is_never_taken_for_a_deadlock),
	};

	store_begin(argc, argv);
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("store-cycles", tests);
}
