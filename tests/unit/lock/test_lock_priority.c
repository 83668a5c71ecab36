/*
 * unit/lock/test_lock_priority.c - waiters of higher priority are let in first, and a waiter is told where it stands.
 *
 * Waiters are processes; that they wait is seen in the queue, never guessed from time.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "helper/lock_workers.h"
#include "helper/test.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/lock/local/record/record.h"
#include "holdfast/lock.h"

/* Starts one that waits for `x` with that priority, as the n-th in the queue. */
static struct worker *urgent(unsigned priority, int n, unsigned slots, int64_t ttl_ns)
{
	struct worker *w = worker("x", -1);

	w->opts.priority = priority;
	w->opts.ttl_ns = ttl_ns;
	if (slots) {
		w->opts.mode = HF_LOCK_SLOTS;
		w->opts.slots = slots;
	}
	w->keep = 1;
	start(w);
	AWAIT(look("x").n_waiters == (size_t)n);
	return w;
}

static void await_order(const struct worker *w, int order)
{
	struct hf_mono limit = hf_mono_in(60 * HF_SEC);

	while (w->order == 0 && hf_mono_left(limit) > 0)
		(void)poll(NULL, 0, 1);
	assert_int_equal(w->order, order);
}

static void check_order(unsigned slots, int64_t ttl_ns, int dies)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .mode = slots ? HF_LOCK_SLOTS : HF_LOCK_EXCLUSIVE, .slots = slots };
	static const unsigned priorities[] = { 0, 3, 0, 1000, 3, 1 };
	static const int places[] = { 5, 2, 6, 1, 3, 4 };
	struct worker *waiters[6], *in_turn[7] = { 0 };
	struct hf_lock *lock;

	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	for (int i = 0; i < 6; i++) {
		waiters[i] = urgent(priorities[i], i + 1, slots, ttl_ns);
		waiters[i]->dies = dies;
		in_turn[places[i]] = waiters[i];
	}
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	for (int i = 1; i <= 6; i++) {
		await_order(in_turn[i], i);
		in_turn[i]->go = 1;
		finish(in_turn[i]);
	}
	assert_int_equal(sh->most_inside, 1);
}

static void the_highest_priority_is_first_and_within_one_the_first_that_came(void **state)
{
	(void)state;
	check_order(0, 0, 0);
}

static void the_same_for_slots_and_leases(void **state)
{
	(void)state;
	check_order(1, 30 * HF_SEC, 0);
}

/* The first in the queue, which was passed over, watches the holder of before; it must see the death of the new one. */
static void the_same_when_each_dies_with_the_lock_L4(void **state)
{
	(void)state;
	check_order(0, 0, 1);
}

static void a_waiter_of_high_priority_that_was_killed_is_passed_over(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *low = urgent(0, 1, 0, 0), *high = urgent(9, 2, 0, 0), *middle = urgent(5, 3, 0, 0);

	(void)state;
	kill(high->pid, SIGKILL);
	(void)reap_worker(high);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	await_order(middle, 1);
	middle->go = 1;
	await_order(low, 2);
	low->go = 1;
	finish(middle);
	finish(low);
}

static void after_the_last_of_them_the_queue_is_a_plain_one(void **state)
{
	(void)state;
	check_order(0, 0, 0);
	memset(sh, 0, sizeof(*sh));
	n_workers = 0;
	{
		struct hf_lock *lock = take("x");
		struct worker *first = urgent(0, 1, 0, 0), *second = urgent(0, 2, 0, 0);

		ASSERT_OK(hf_lock_release(lock, ERR));
		hf_lock_free(lock);
		await_order(first, 1);
		first->go = 1;
		await_order(second, 2);
		second->go = 1;
		finish(first);
		finish(second);
	}
}

/* -- told --------------------------------------------------------------------------- */

struct told {
	struct hf_lock_waiting last;
	int n;
};

static void second_telling(void *arg, const struct hf_lock_waiting *waiting)
{
	struct told *told = arg;

	if (told->n++ != 1)
		return;
	told->last = *waiting;
	for (int i = 0; i < n_workers; i++)
		sh->workers[i].go = 1;
}

static void a_waiter_is_told_its_place_by_priority_and_the_holder(void **state)
{
	struct told told = { 0 };
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1, .priority = 5, .waiting = second_telling, .waiting_arg = &told, .waiting_ns = 10 * HF_MSEC };
	struct worker *holder = worker("x", 0);
	struct hf_lock *lock;

	(void)state;
	holder->keep = 1;
	start(holder);
	while (!holder->got)
		(void)poll(NULL, 0, 1);
	(void)urgent(0, 1, 0, 0);
	(void)urgent(7, 2, 0, 0);
	(void)urgent(5, 3, 0, 0);
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	assert_int_equal(told.last.place, 3);
	assert_int_equal(told.last.of, 4);
	assert_int_equal(told.last.holder.pid, holder->pid);
	assert_string_equal(told.last.name, "x");
	assert_int_equal(told.last.kind, HF_LOCK_KIND_NAME);
	assert_in_range(told.last.waited_ns, 10 * HF_MSEC, INT64_MAX);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	for (int i = 0; i < n_workers; i++)
		finish(&sh->workers[i]);
}

/* Nobody starves: a step of priority is worth a minute of waiting, and no more. */
static void a_waiter_of_low_priority_stands_before_those_that_come_long_after_it(void **state)
{
	const int64_t now = 7200 * HF_SEC;
	struct hf_lock_entry queue[] = {
		{ .ticket = 4, .priority = 10, .since_ns = now },
		{ .ticket = 1, .priority = 0, .since_ns = now - 11 * HF_LOCK_PRIORITY_NS },
		{ .ticket = 3, .priority = 10, .since_ns = now },
		{ .ticket = 2, .priority = 0, .since_ns = now - 9 * HF_LOCK_PRIORITY_NS },
		{ .ticket = 5, .priority = HF_LOCK_PRIORITY_MAX, .since_ns = now + HF_LOCK_PRIORITY_MAX * HF_LOCK_PRIORITY_NS },
	};
	const uint64_t in_turn[] = { 1, 3, 4, 2, 5 };

	(void)state;
	hf_queue_rank(queue, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(queue[i].ticket, in_turn[i]);
}

static void a_priority_that_is_none_is_refused(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .priority = HF_LOCK_PRIORITY_MAX + 1 };
	struct hf_lock *lock;

	(void)state;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts = (struct hf_lock_opts){ .size = sizeof(opts), .waiting_ns = -1 };
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(the_highest_priority_is_first_and_within_one_the_first_that_came),
		WAIT_TEST(the_same_for_slots_and_leases),
		WAIT_TEST(the_same_when_each_dies_with_the_lock_L4),
		WAIT_TEST(a_waiter_of_high_priority_that_was_killed_is_passed_over),
		WAIT_TEST(after_the_last_of_them_the_queue_is_a_plain_one),
		WAIT_TEST(a_waiter_is_told_its_place_by_priority_and_the_holder),
		WAIT_TEST(a_waiter_of_low_priority_stands_before_those_that_come_long_after_it),
		WAIT_TEST(a_priority_that_is_none_is_refused),
	};

	proc_test_begin();
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("lock_priority", tests);
}
