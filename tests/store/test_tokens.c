/* store/test_tokens.c - leases, tokens and actions under them. Of every store. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_cases.h"
#include "hf/base/cleanup.h"
#include "hf/lock/lease/renewal.h"
#include "store/store.h"

/* -- leases ----------------------------------------------------------------- */

static void lost_lease_is_refused_everywhere_and_its_successor_untouched_L3_L5(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock;
	uint64_t old, next;
	int seven = 7;

	(void)state;
	action_ran = 0;
	opts.ttl_ns = store_ttl(locks, 30 * HF_MSEC);
	lock = take("x", &opts);
	old = hf_lock_token(lock);
	wait_until_expired(old);
	/* Nobody wanted it: it is still ours. */
	if (HAS(HF_STORE_KEEPS_EXPIRED)) {
		ASSERT_OK(hf_lock_check(lock, ERR));
		assert_int_equal(hf_lock_guarded(locks, "x", old, action, &seven, ERR), 7);
	}
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &next));
	assert_true(next > old);
	assert_int_equal(events(HF_EV_LOCK_EXPIRED, NULL), 1);
	ASSERT_ERR(hf_lock_check(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_renew(lock, 0, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_guarded(locks, "x", old, action, &seven, ERR), HF_E_STALE);
	assert_int_equal(action_ran, HAS(HF_STORE_KEEPS_EXPIRED));
	assert_int_equal(events(HF_EV_LOCK_REFUSED, NULL), 4);
	ASSERT_OK(hf_lock_check_token(locks, "x", next, ERR));
	assert_int_equal(look("x").n_holders, 1);
	hf_lock_free(lock);
}

static void guarded_action_runs_for_the_current_token_and_returns_its_result_L5(void **state)
{
	int results[] = { 0, 5, -ENOSPC };
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	action_ran = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_lock_guarded(locks, "x", hf_lock_token(lock), action,
						 &results[i], ERR),
				 results[i]);
	ASSERT_ERR(hf_lock_guarded(locks, "x", hf_lock_token(lock) - 1, action, &results[0], ERR),
		   HF_E_STALE);
	ASSERT_ERR(hf_lock_guarded(locks, "never", 5, action, &results[0], ERR), HF_E_STALE);
	give_back(lock);
	assert_int_equal(action_ran, 3);
}

static void expired_holder_may_take_it_again_itself(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock, *again;

	(void)state;
	opts.ttl_ns = store_ttl(locks, 10 * HF_MSEC);
	lock = take("x", &opts);
	wait_until_expired(hf_lock_token(lock));
	again = take("x", NULL);
	assert_true(hf_lock_token(again) > hf_lock_token(lock));
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	give_back(again);
	hf_lock_free(lock);
}

static void lease_ends_an_unknown_owner_L4(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0), wait = opts;
	struct hf_lock *lock;
	uint64_t token;

	(void)state;
	opts.ttl_ns = store_ttl(locks, 50 * HF_MSEC);
	wait.wait_ns = 10 * HF_SEC;
	ASSERT_OK(try_for(1, "x", opts, &token));
	lock = take("x", &wait);
	assert_true(hf_lock_token(lock) > token);
	assert_int_equal(events(HF_EV_LOCK_EXPIRED, NULL), 1);
	give_back(lock);
}

static void renewal_can_give_shorten_and_prolong_a_lease(void **state)
{
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	if (!HAS(HF_STORE_NEEDS_LEASE))
		ASSERT_ERR(hf_lock_renew(lock, 0, ERR), -EINVAL); /* it has none */
	ASSERT_OK(hf_lock_renew(lock, HF_LOCK_TTL_MAX, ERR));
	assert_true(look("x").first.lease_left_ns > HF_LOCK_TTL_MAX - 60 * HF_SEC);
	ASSERT_ERR(hf_lock_renew(lock, HF_LOCK_TTL_MAX + 1, ERR), -EINVAL);
	ASSERT_OK(hf_lock_renew(lock, store_ttl(locks, 5 * HF_MSEC), ERR));
	if (HAS(HF_STORE_KEEPS_EXPIRED)) {
		wait_until_expired(hf_lock_token(lock));
		ASSERT_OK(hf_lock_renew(lock, 0, ERR));
	}
	ASSERT_OK(hf_lock_renew_token(locks, "x", hf_lock_token(lock), 60 * HF_SEC, ERR));
	assert_true(look("x").first.lease_left_ns > 50 * HF_SEC);
	give_back(lock);
}

/* -- several tokens, one action ---------------------------------------------- */

static void action_under_many_tokens_runs_once_when_all_are_current_L5(void **state)
{
	struct hf_locks *plans = hf_locks_kind(locks, HF_LOCK_KIND_PLAN);
	struct hf_lock *a = take("a", NULL), *b = take("b", NULL), *c = NULL;
	struct hf_lock_claim claims[4];
	int result = 7;

	(void)state;
	ASSERT_OK(hf_lock_acquire(plans, "a", NULL, &c, NULL, ERR));
	claims[0] = (struct hf_lock_claim){ HF_LOCK_KIND_PLAN, "a", hf_lock_token(c) };
	claims[1] = (struct hf_lock_claim){ HF_LOCK_KIND_NAME, "b", hf_lock_token(b) };
	claims[2] = (struct hf_lock_claim){ HF_LOCK_KIND_NAME, "a", hf_lock_token(a) };
	claims[3] = claims[1]; /* twice is once */
	action_ran = 0;
	assert_int_equal(hf_lock_guarded_many(locks, claims, 4, action, &result, ERR), 7);
	assert_int_equal(hf_lock_guarded_many(plans, claims, 4, action, &result, ERR), 7);
	assert_int_equal(action_ran, 2);
	/* None at all is an action without conditions. */
	assert_int_equal(hf_lock_guarded_many(locks, NULL, 0, action, &result, ERR), 7);
	assert_int_equal(action_ran, 3);
	/* One of them is lost, and each of them is still held afterwards. */
	give_back(b);
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, 4, action, &result, ERR), HF_E_STALE);
	ASSERT_OK(hf_lock_check(a, ERR));
	ASSERT_OK(hf_lock_check(c, ERR));
	assert_int_equal(hf_lock_guarded_many(locks, claims, 1, action, &result, ERR), 7);
	assert_int_equal(action_ran, 4);
	/* Two tokens for one lock; a token of 0; a kind that there is not; a name that is none. */
	claims[1] = (struct hf_lock_claim){ HF_LOCK_KIND_NAME, "a", hf_lock_token(a) - 1 };
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, 3, action, &result, ERR), -EINVAL);
	claims[1].token = 0;
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, 2, action, &result, ERR), -EINVAL);
	claims[1] = (struct hf_lock_claim){ (enum hf_lock_kind)HF_LOCK_KINDS, "a", 1 };
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, 2, action, &result, ERR), -EINVAL);
	claims[1] = (struct hf_lock_claim){ HF_LOCK_KIND_NAME, "", 1 };
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, 2, action, &result, ERR), HF_E_NAME);
	ASSERT_ERR(hf_lock_guarded_many(locks, claims, HF_LOCK_CLAIMS_MAX + 1, action, &result, ERR),
		   -EINVAL);
	assert_int_equal(action_ran, 4);
	give_back(a);
	give_back(c);
}

struct crossing {
	struct hf_lock_claim claims[2];
	int result;
};

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void *cross(void *arg)
{
	struct crossing *crossing = arg;

	for (int i = 0; i < 200 && crossing->result == 0; i++)
		crossing->result = hf_lock_guarded_many(locks, crossing->claims, 2, nothing, NULL, NULL);
	return NULL;
}

/* Each names them in its own order. */
static void two_that_prove_the_same_tokens_never_wait_for_each_other(void **state)
{
	struct hf_lock *a = take("a", NULL), *b = take("b", NULL);
	struct hf_lock_claim one = { HF_LOCK_KIND_NAME, "a", hf_lock_token(a) };
	struct hf_lock_claim two = { HF_LOCK_KIND_NAME, "b", hf_lock_token(b) };
	struct crossing crossings[2] = { { { one, two }, 0 }, { { two, one }, 0 } };
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, cross, &crossings[i]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		ASSERT_OK(crossings[i].result);
	}
	give_back(a);
	give_back(b);
}

/* Holders that are there together act in any order: none of them is refused for a later one's sake. */
static void shared_holders_and_slots_act_in_any_order_L5(void **state)
{
	static const struct {
		enum hf_lock_mode mode;
		unsigned slots;
	} table[] = { { HF_LOCK_SHARED, 0 }, { HF_LOCK_SLOTS, 2 } };
	int result = 7;

	(void)state;
	NEEDS(HF_STORE_HAS_SLOTS);
	for (size_t i = 0; i < 2; i++) {
		uint64_t first, second, alone;

		ASSERT_OK(try_for(1, "x", opts_of(table[i].mode, table[i].slots), &first));
		ASSERT_OK(try_for(2, "x", opts_of(table[i].mode, table[i].slots), &second));
		assert_int_equal(hf_lock_guarded(locks, "x", second, action, &result, ERR), 7);
		assert_int_equal(hf_lock_guarded(locks, "x", first, action, &result, ERR), 7);
		assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 2);
		ASSERT_OK(try_for(3, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &alone));
		assert_int_equal(hf_lock_guarded(locks, "x", alone, action, &result, ERR), 7);
		ASSERT_ERR(hf_lock_guarded(locks, "x", second, action, &result, ERR), HF_E_STALE);
		ASSERT_OK(hf_lock_release_as(locks, "x", alone, NULL, ERR));
	}
}

/* -- renewal ----------------------------------------------------------------- */

static void lease_is_renewed_in_time_and_its_loss_is_told_once(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_mono until = hf_mono_in(20 * HF_SEC);
	struct hf_renewal renewal;
	struct hf_lock *lock;
	int renewed = 0;

	(void)state;
	opts.ttl_ns = 3 * HF_SEC;
	lock = take("x", &opts);
	hf_renewal_begin(&renewal, lock, opts.ttl_ns);
	assert_int_equal(hf_renewal_step(&renewal, ERR), 0);
	assert_in_range(hf_mono_left(renewal.next), 1, HF_SEC);
	while (renewed < 2) {
		int r = hf_renewal_step(&renewal, ERR);

		assert_true(r >= 0 && hf_mono_left(until) > 0);
		renewed += r;
		(void)poll(NULL, 0, 5);
	}
	assert_true(hf_mono_left(renewal.ends) > HF_SEC);
	/* Lost: found at the next step that is due, told once, and then there is nothing to do. */
	assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 1);
	hf_renewal_hurry(&renewal);
	ASSERT_ERR(hf_renewal_step(&renewal, ERR), HF_E_STALE);
	assert_true(renewal.lost);
	hf_renewal_hurry(&renewal);
	assert_int_equal(hf_renewal_step(&renewal, ERR), 0);
	assert_true(hf_mono_left(renewal.next) > 3600 * HF_SEC);
	hf_lock_free(lock);
	/* Without a lock there never is. */
	hf_renewal_begin(&renewal, NULL, opts.ttl_ns);
	hf_renewal_hurry(&renewal);
	assert_int_equal(hf_renewal_step(&renewal, ERR), 0);
	assert_true(hf_mono_left(renewal.next) > 3600 * HF_SEC);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(lost_lease_is_refused_everywhere_and_its_successor_untouched_L3_L5),
		LOCK_TEST(guarded_action_runs_for_the_current_token_and_returns_its_result_L5),
		LOCK_TEST(expired_holder_may_take_it_again_itself),
		LOCK_TEST(lease_ends_an_unknown_owner_L4),
		LOCK_TEST(renewal_can_give_shorten_and_prolong_a_lease),
		LOCK_TEST(action_under_many_tokens_runs_once_when_all_are_current_L5),
		LOCK_TEST(two_that_prove_the_same_tokens_never_wait_for_each_other),
		LOCK_TEST(shared_holders_and_slots_act_in_any_order_L5),
		LOCK_TEST(lease_is_renewed_in_time_and_its_loss_is_told_once),
	};

	store_begin(argc, argv);
	told = shared_new(sizeof(*told));
	return hf_run_tests("store-tokens", tests);
}
