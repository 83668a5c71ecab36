/* store/test_waiting.c - waiting: in order, not for ever, not behind the dead or the stopped. Of every store. */
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

/* -- order ------------------------------------------------------------------ */

static void twenty_processes_are_served_in_the_order_they_came_L1_L2(void **state)
{
	struct hf_lock *lock = take("x");
	uint64_t last = hf_lock_token(lock);

	(void)state;
	for (size_t i = 0; i < 20; i++)
		start_in_queue(worker("x", -1), "x", i + 1);
	give_back(lock);
	for (int i = 0; i < 20; i++) {
		struct worker *w = &sh->workers[i];

		finish(w);
		assert_int_equal(w->r, 0);
		assert_int_equal(w->order, i + 1);
		assert_true(w->token > last);
		last = w->token;
	}
	assert_int_equal(sh->most_inside, 1);
	assert_idle("x");
}

static void newcomer_does_not_overtake_a_waiter(void **state)
{
	struct hf_lock_opts shared = { .size = sizeof(shared), .mode = HF_LOCK_SHARED };
	struct hf_lock *reader = NULL, *second = NULL;
	struct worker *writer = worker("x", -1);

	(void)state;
	ASSERT_OK(hf_lock_acquire(locks, "x", &shared, &reader, NULL, ERR));
	start_in_queue(writer, "x", 1);
	/* Readers admit readers, but a writer was here first. */
	ASSERT_ERR(hf_lock_acquire(locks, "x", &shared, &second, NULL, ERR), HF_E_BUSY);
	assert_null(second);
	give_back(reader);
	finish(writer);
	assert_int_equal(writer->r, 0);
	assert_idle("x");
}

static void writer_is_not_starved_by_readers_that_keep_coming(void **state)
{
	struct worker *first = worker("x", -1), *writer = worker("x", -1), *readers[5];

	(void)state;
	first->opts.mode = HF_LOCK_SHARED;
	first->keep = 1;
	start(first);
	AWAIT(first->got);
	start_in_queue(writer, "x", 1);
	for (size_t i = 0; i < 5; i++) {
		readers[i] = worker("x", -1);
		readers[i]->opts.mode = HF_LOCK_SHARED;
		readers[i]->keep = 1;
		start_in_queue(readers[i], "x", i + 2);
	}
	first->go = 1;
	finish(first);
	finish(writer);
	assert_int_equal(writer->order, 2);
	/* And those behind it are let in together, though none of them lets go. */
	for (int i = 0; i < 5; i++)
		AWAIT(readers[i]->got);
	assert_int_equal(look("x").n_holders, 5);
	for (int i = 0; i < 5; i++)
		readers[i]->go = 1;
	for (int i = 0; i < 5; i++)
		finish(readers[i]);
	assert_idle("x");
}

static void slots_are_filled_as_they_become_free_and_never_beyond_L1(void **state)
{
	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct worker *w = worker("x", -1);

		w->opts.mode = HF_LOCK_SLOTS;
		w->opts.slots = 3;
		w->keep = 1;
		start(w);
		if (i < 3)
			AWAIT(w->got);
		else
			AWAIT(look("x").n_waiters == i - 2);
	}
	for (int i = 0; i < 9; i++) {
		assert_int_equal(look("x").n_holders, i < 6 ? 3 : 9 - i);
		sh->workers[i].go = 1;
		finish(&sh->workers[i]);
		if (i + 3 < 9)
			AWAIT(sh->workers[i + 3].got);
	}
	for (int i = 0; i < 9; i++)
		assert_int_equal(sh->workers[i].order, i + 1);
	assert_int_equal(sh->most_inside, 3);
	assert_idle("x");
}

/* -- giving up and dying ------------------------------------------------------ */

static void timeout_comes_in_time_and_leaves_nothing_behind(void **state)
{
	static const int64_t waits[] = { 1, HF_MSEC, 20 * HF_MSEC, 49 * HF_MSEC, 51 * HF_MSEC,
					 300 * HF_MSEC };
	struct worker *holder = worker("x", 0);

	(void)state;
	holder->keep = 1;
	start(holder);
	AWAIT(holder->got);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = waits[i] };
		struct hf_mono before = hf_mono_now();
		struct hf_lock *lock = NULL;
		struct hf_holder blocker;
		int64_t took;

		ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, &blocker, ERR), HF_E_TIMEOUT);
		took = hf_mono_now().ns - before.ns;
		assert_true(took >= waits[i] && took < waits[i] + SLACK);
		assert_int_equal(blocker.id.pid, holder->pid);
		assert_int_equal(look("x").n_waiters, 0);
		assert_int_equal(channels(), 0);
	}
	holder->go = 1;
	finish(holder);
	assert_idle("x");
}

static void waiter_that_gives_up_does_not_hold_up_those_behind(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *impatient = worker("x", 2 * HF_SEC), *next = worker("x", -1);

	(void)state;
	start_in_queue(impatient, "x", 1);
	start(next);
	finish(impatient);
	assert_int_equal(impatient->r, HF_E_TIMEOUT);
	AWAIT(look("x").n_waiters == 1);
	give_back(lock);
	finish(next);
	assert_int_equal(next->r, 0);
	assert_idle("x");
}

static void waiters_killed_in_the_queue_do_not_stall_the_rest_L4(void **state)
{
	struct hf_lock *lock = take("x");

	(void)state;
	for (size_t i = 0; i < 9; i++)
		start_in_queue(worker("x", -1), "x", i + 1);
	/* The first, two neighbours, and the last. */
	for (int i = 0; i < 9; i++)
		if (i == 0 || i == 3 || i == 4 || i == 8) {
			kill(sh->workers[i].pid, SIGKILL);
			(void)reap_worker(&sh->workers[i]);
		}
	give_back(lock);
	for (int i = 0; i < 8; i++)
		if (i != 0 && i != 3 && i != 4)
			finish(&sh->workers[i]);
	assert_int_equal(sh->orders, 5);
	assert_idle("x");
}

static void killed_holder_is_followed_by_the_next_at_once_L4(void **state)
{
	struct worker *holder = worker("x", 0), *first = worker("x", -1), *second = worker("x", -1);
	int64_t killed_at;

	(void)state;
	holder->keep = first->keep = 1;
	start(holder);
	AWAIT(holder->got);
	start_in_queue(first, "x", 1);
	start_in_queue(second, "x", 2);
	killed_at = hf_mono_now().ns;
	kill(holder->pid, SIGKILL);
	(void)reap_worker(holder);
	AWAIT(first->got);
	assert_true(first->got_at - killed_at < SLACK);
	assert_int_equal(second->got, 0);
	/* The one that was given it while it waited dies too. */
	killed_at = hf_mono_now().ns;
	kill(first->pid, SIGKILL);
	(void)reap_worker(first);
	finish(second);
	assert_true(second->got_at - killed_at < SLACK);
	assert_true(second->token > first->token);
	assert_idle("x");
}

static void zombie_holder_is_followed_by_the_next_at_once_L4(void **state)
{
	struct worker *holder = worker("x", 0), *next = worker("x", -1);

	(void)state;
	holder->keep = 1;
	start(holder);
	AWAIT(holder->got);
	start_in_queue(next, "x", 1);
	kill(holder->pid, SIGKILL); /* and not reaped */
	finish(next);
	assert_int_equal(next->r, 0);
	(void)reap_worker(holder);
	assert_idle("x");
}

static void waiter_killed_right_after_release_does_not_stall_the_rest_L4(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		struct hf_lock *lock = take("x");
		struct worker *first = worker("x", -1), *second = worker("x", -1);

		start_in_queue(first, "x", 1);
		start_in_queue(second, "x", 2);
		ASSERT_OK(hf_lock_release(lock, ERR));
		kill(first->pid, SIGKILL);
		hf_lock_free(lock);
		(void)reap_worker(first);
		finish(second);
		assert_int_equal(second->r, 0);
	}
	/* One killed between its own release and the end of that leaves its channel; the next
	 * one to wait removes it. */
	{
		struct hf_lock *lock = take("x");
		struct worker *sweeper = worker("x", -1);

		start_in_queue(sweeper, "x", 1);
		give_back(lock);
		finish(sweeper);
	}
	assert_idle("x");
}

/* -- stopped ------------------------------------------------------------------ */

static void stopped_waiter_delays_the_rest_by_its_turn_and_gets_it_later_L4(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *second = worker("x", -1), *third = worker("x", -1);
	int64_t released_at;

	(void)state;
	first->keep = 1;
	if (HAS(HF_STORE_NEEDS_LEASE))
		first->opts.ttl_ns = 4 * HF_SEC; /* a waiter's place ends with it */
	start_in_queue(first, "x", 1);
	start_in_queue(second, "x", 2);
	start_in_queue(third, "x", 3);
	kill(first->pid, SIGSTOP);
	await_stopped(first->pid);
	released_at = hf_mono_now().ns;
	give_back(lock);
	finish(second);
	finish(third);
	assert_true(second->got_at - released_at < HF_LOCK_TURN_NS + SLACK + LATER);
	assert_true(third->got_at - released_at < HF_LOCK_TURN_NS + 2 * SLACK + LATER);
	assert_int_equal(first->got, 0);
	kill(first->pid, SIGCONT);
	AWAIT(first->got);
	assert_int_equal(first->order, 3);
	assert_true(first->token > third->token);
	first->go = 1;
	finish(first);
	assert_idle("x");
}

static void stopped_waiter_alone_is_passed_over_by_a_newcomer_L4(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *late = worker("x", 18 * HF_SEC);

	(void)state;
	if (HAS(HF_STORE_NEEDS_LEASE))
		first->opts.ttl_ns = 4 * HF_SEC;
	start_in_queue(first, "x", 1);
	kill(first->pid, SIGSTOP);
	await_stopped(first->pid);
	give_back(lock);
	start(late);
	finish(late);
	assert_int_equal(late->r, 0);
	assert_true(late->took_ns < HF_LOCK_TURN_NS + SLACK + LATER);
	kill(first->pid, SIGCONT);
	finish(first);
	assert_int_equal(first->r, 0);
	assert_idle("x");
}

enum loss { LEASE_RUNS_OUT, IS_BROKEN, IS_RELEASED_BY_ANOTHER };

static void remember_token(void *arg, const struct hf_lock_info *info)
{
	*(uint64_t *)arg = info->token;
}

/* A waiter is given the lock while it is stopped, and loses it before it can notice. */
static void lose_before_noticing(enum loss loss)
{
	uint64_t token = 0;
	struct hf_lock *lock;
	struct worker *first, *late;

	NEEDS(HF_STORE_GIVES);
	lock = take("x");
	first = worker("x", -1);
	late = worker("x", 10 * HF_SEC);

	first->opts.ttl_ns = loss == LEASE_RUNS_OUT ? 50 * HF_MSEC : 0;
	late->keep = 1;
	start_in_queue(first, "x", 1);
	kill(first->pid, SIGSTOP);
	await_stopped(first->pid);
	give_back(lock);
	if (loss == IS_BROKEN)
		assert_int_equal(hf_lock_break(locks, "x", "a test", ERR), 1);
	if (loss == IS_RELEASED_BY_ANOTHER) {
		assert_int_equal(hf_lock_look(locks, "x", remember_token, &token, ERR), 0);
		assert_int_equal(hf_lock_release_as(locks, "x", token, NULL, ERR), 0);
	}
	start(late);
	AWAIT(late->got);
	kill(first->pid, SIGCONT);
	AWAIT(first->got || look("x").n_waiters == 1);
	assert_int_equal(first->got, 0);
	late->go = 1;
	finish(late);
	finish(first);
	assert_int_equal(first->r, 0);
	assert_true(first->token > late->token);
	assert_int_equal(sh->most_inside, 1);
	assert_idle("x");
}

static void lease_that_ran_out_unnoticed_is_not_believed_later_L1_L5(void **state)
{
	(void)state;
	lose_before_noticing(LEASE_RUNS_OUT);
}

static void lock_that_was_broken_unnoticed_is_not_believed_later_L1_L5(void **state)
{
	(void)state;
	lose_before_noticing(IS_BROKEN);
}

static void lock_that_another_released_unnoticed_is_not_believed_later_L1_L5(void **state)
{
	(void)state;
	lose_before_noticing(IS_RELEASED_BY_ANOTHER);
}

/* -- leases while others wait -------------------------------------------------- */

static void waiter_gets_what_a_hung_holder_let_expire_L4_L5(void **state)
{
	struct worker *holder = worker("x", 0), *first = worker("x", -1), *second = worker("x", -1);
	int64_t ttl = store_ttl(locks, 300 * HF_MSEC);

	(void)state;
	holder->opts.ttl_ns = ttl;
	holder->keep = 1;
	first->opts.ttl_ns = store_ttl(locks, 200 * HF_MSEC);
	first->keep = 1;
	start(holder);
	AWAIT(holder->got);
	kill(holder->pid, SIGSTOP);
	await_stopped(holder->pid);
	start_in_queue(first, "x", 1);
	start(second);
	AWAIT(first->got);
	/* Elsewhere the lease begins before the holder hears of it. */
	assert_true(!HAS(HF_STORE_ONE_HOST) || first->got_at - holder->got_at >= ttl - 2 * HF_MSEC);
	assert_true(first->got_at - holder->got_at < ttl + SLACK + LATER);
	/* The next lease began while the second was already asleep. */
	kill(first->pid, SIGSTOP);
	await_stopped(first->pid);
	finish(second);
	assert_true(second->got_at - first->got_at < ttl + SLACK + LATER);
	assert_true(second->token > first->token && first->token > holder->token);
	ASSERT_ERR(hf_lock_check_token(locks, "x", holder->token, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_check_token(locks, "x", first->token, ERR), HF_E_STALE);
}

static void waiter_notices_a_lease_that_was_given_or_shortened_later(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", 15 * HF_SEC);

	(void)state;
	start_in_queue(w, "x", 1);
	ASSERT_OK(hf_lock_renew(lock, store_ttl(locks, 100 * HF_MSEC), ERR));
	finish(w);
	assert_int_equal(w->r, 0);
	assert_true(w->took_ns < 10 * HF_SEC);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_lock_free(lock);
}

static void waiter_gets_what_was_broken(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1);

	(void)state;
	start_in_queue(w, "x", 1);
	assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 1);
	finish(w);
	assert_int_equal(w->r, 0);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_lock_free(lock);
	assert_idle("x");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(twenty_processes_are_served_in_the_order_they_came_L1_L2),
		WAIT_TEST(newcomer_does_not_overtake_a_waiter),
		WAIT_TEST(writer_is_not_starved_by_readers_that_keep_coming),
		WAIT_TEST(slots_are_filled_as_they_become_free_and_never_beyond_L1),
		WAIT_TEST(timeout_comes_in_time_and_leaves_nothing_behind),
		WAIT_TEST(waiter_that_gives_up_does_not_hold_up_those_behind),
		WAIT_TEST(waiters_killed_in_the_queue_do_not_stall_the_rest_L4),
		WAIT_TEST(killed_holder_is_followed_by_the_next_at_once_L4),
		WAIT_TEST(zombie_holder_is_followed_by_the_next_at_once_L4),
		WAIT_TEST(waiter_killed_right_after_release_does_not_stall_the_rest_L4),
		WAIT_TEST(stopped_waiter_delays_the_rest_by_its_turn_and_gets_it_later_L4),
		WAIT_TEST(stopped_waiter_alone_is_passed_over_by_a_newcomer_L4),
		WAIT_TEST(lease_that_ran_out_unnoticed_is_not_believed_later_L1_L5),
		WAIT_TEST(lock_that_was_broken_unnoticed_is_not_believed_later_L1_L5),
		WAIT_TEST(lock_that_another_released_unnoticed_is_not_believed_later_L1_L5),
		WAIT_TEST(waiter_gets_what_a_hung_holder_let_expire_L4_L5),
		WAIT_TEST(waiter_notices_a_lease_that_was_given_or_shortened_later),
		WAIT_TEST(waiter_gets_what_was_broken),
	};

	store_begin(argc, argv);
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("store-waiting", tests);
}
