/* store/test_admission.c - which holders may enter beside which, names and kinds, threads, looking. Of every store. */
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
#include "store/store.h"

/* -- admission -------------------------------------------------------------- */

static void holders_admit_exactly_the_modes_that_fit_L1(void **state)
{
	static const struct {
		enum hf_lock_mode held;
		unsigned held_slots;
		enum hf_lock_mode asked;
		unsigned asked_slots;
		int expected;
	} table[] = {
		{ HF_LOCK_EXCLUSIVE, 0, HF_LOCK_EXCLUSIVE, 0, HF_E_BUSY },
		{ HF_LOCK_EXCLUSIVE, 0, HF_LOCK_SHARED, 0, HF_E_BUSY },
		{ HF_LOCK_EXCLUSIVE, 0, HF_LOCK_SLOTS, 3, HF_E_BUSY },
		{ HF_LOCK_SHARED, 0, HF_LOCK_EXCLUSIVE, 0, HF_E_BUSY },
		{ HF_LOCK_SHARED, 0, HF_LOCK_SHARED, 0, 0 },
		{ HF_LOCK_SHARED, 0, HF_LOCK_SLOTS, 3, HF_E_BUSY },
		{ HF_LOCK_SLOTS, 3, HF_LOCK_EXCLUSIVE, 0, HF_E_BUSY },
		{ HF_LOCK_SLOTS, 3, HF_LOCK_SHARED, 0, HF_E_BUSY },
		{ HF_LOCK_SLOTS, 3, HF_LOCK_SLOTS, 3, 0 },
		{ HF_LOCK_SLOTS, 3, HF_LOCK_SLOTS, 4, HF_E_MODE },
		{ HF_LOCK_SLOTS, 1, HF_LOCK_SLOTS, 1, HF_E_BUSY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char name[16];

		snprintf(name, sizeof(name), "t%zu", i);
		ASSERT_OK(try_for(1, name, opts_of(table[i].held, table[i].held_slots), NULL));
		ASSERT_ERR(try_for(2, name, opts_of(table[i].asked, table[i].asked_slots), NULL),
			   table[i].expected);
		assert_int_equal(look(name).n_holders, table[i].expected == 0 ? 2 : 1);
	}
}

static void the_last_of_64_is_let_in_and_the_next_is_not_L1(void **state)
{
	static const enum hf_lock_mode modes[] = { HF_LOCK_SHARED, HF_LOCK_SLOTS };

	(void)state;
	for (size_t m = 0; m < 2; m++) {
		unsigned slots = modes[m] == HF_LOCK_SLOTS ? HF_LOCK_SLOTS_MAX : 0;
		const char *name = m ? "slots" : "shared";
		uint64_t tokens[HF_LOCK_SLOTS_MAX];

		for (int i = 0; i < HF_LOCK_SLOTS_MAX; i++) {
			ASSERT_OK(try_for(i, name, opts_of(modes[m], slots), &tokens[i]));
			assert_true(i == 0 || tokens[i] > tokens[i - 1]);
		}
		ASSERT_ERR(try_for(64, name, opts_of(modes[m], slots), NULL), HF_E_BUSY);
		assert_int_equal(look(name).n_holders, HF_LOCK_SLOTS_MAX);
		ASSERT_OK(hf_lock_release_as(locks, name, tokens[30], NULL, ERR));
		ASSERT_OK(try_for(64, name, opts_of(modes[m], slots), NULL));
		ASSERT_ERR(try_for(65, name, opts_of(modes[m], slots), NULL), HF_E_BUSY);
		ASSERT_ERR(hf_lock_check_token(locks, name, tokens[30], ERR), HF_E_STALE);
		for (int i = 0; i < HF_LOCK_SLOTS_MAX; i++)
			if (i != 30)
				ASSERT_OK(hf_lock_check_token(locks, name, tokens[i], ERR));
	}
}

static void mode_changes_only_through_a_free_lock_L1(void **state)
{
	uint64_t token;

	(void)state;
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SLOTS, 2), &token));
	ASSERT_OK(hf_lock_release_as(locks, "x", token, NULL, ERR));
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SLOTS, 5), &token));
	assert_int_equal(look("x").slots, 5);
	ASSERT_OK(hf_lock_release_as(locks, "x", token, NULL, ERR));
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), &token));
	assert_int_equal(look("x").first.mode, HF_LOCK_SHARED);
	ASSERT_OK(hf_lock_release_as(locks, "x", token, NULL, ERR));
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &token));
	assert_int_equal(look("x").first.mode, HF_LOCK_EXCLUSIVE);
}

static void busy_names_the_holder_and_what_proves_it_alive(void **state)
{
	struct child *c = child_start(child_holds, NULL);
	struct hf_holder blocker;
	struct hf_lock *lock = NULL;
	char pid[16];

	(void)state;
	ASSERT_ERR(hf_lock_acquire(locks, "x", NULL, &lock, &blocker, ERR), HF_E_BUSY);
	assert_null(lock);
	snprintf(pid, sizeof(pid), "%d", (int)c->pid);
	assert_int_equal(blocker.id.pid, c->pid);
	assert_int_equal(blocker.liveness, HF_ALIVE);
	assert_true(blocker.token == told->token);
	assert_int_equal(blocker.count, 1);
	assert_true(HAS(HF_STORE_NEEDS_LEASE) ? blocker.lease_left_ns > 0 : blocker.lease_left_ns == -1);
	assert_non_null(strstr(blocker.evidence, pid));
	assert_non_null(strstr(ERR->detail, pid));
	assert_non_null(strstr(ERR->detail, "alive"));
	assert_true(llabs(blocker.since.ns - hf_wall_now().ns) < 60 * HF_SEC);
}

static void wrong_arguments_are_refused(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_SLOTS, 0);
	struct hf_lock *lock = NULL;
	struct hf_locks *none = NULL;

	(void)state;
	ASSERT_ERR(hf_locks_open(NULL, NULL, &none, ERR), -EINVAL);
	ASSERT_ERR(hf_lock_acquire(NULL, "x", NULL, &lock, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_lock_acquire(locks, "x", NULL, NULL, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts.slots = HF_LOCK_SLOTS_MAX + 1;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts = opts_of(HF_LOCK_EXCLUSIVE, 1);
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts = opts_of((enum hf_lock_mode)3, 0);
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	opts.ttl_ns = HF_LOCK_TTL_MAX + 1;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts.ttl_ns = -1;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts.ttl_ns = 0;
	opts.flags = 64;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	opts.flags = 0;
	opts.size = 8;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_lock_break(locks, "x", "", ERR), -EINVAL);
	ASSERT_ERR(hf_lock_renew_token(locks, "x", 0, HF_SEC, ERR), -EINVAL);
	ASSERT_ERR(hf_lock_look(locks, "x", keep_view, NULL, ERR), HF_E_NOT_HELD);
	assert_null(lock);
	hf_lock_free(NULL);
	hf_locks_free(NULL);
}

/* -- names ------------------------------------------------------------------ */

static void names_that_look_alike_are_different_locks_L12(void **state)
{
	static const char *const names[] = { "a/b", "a_b", "ab", "a.b", "../a", "A_B", "a%2Fb" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ASSERT_OK(try_for(1, names[i], opts_of(HF_LOCK_EXCLUSIVE, 0), NULL));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ASSERT_ERR(try_for(2, names[i], opts_of(HF_LOCK_EXCLUSIVE, 0), NULL), HF_E_BUSY);
	assert_int_equal(access(hf_test_path("state/a"), F_OK), -1);
}

static void name_of_80_bytes_works_and_of_81_is_refused_L12(void **state)
{
	char name[82];

	(void)state;
	memset(name, '/', 81); /* each byte becomes three in the key */
	name[81] = '\0';
	ASSERT_ERR(try_now(name), HF_E_NAME);
	ASSERT_ERR(try_now(""), HF_E_NAME);
	ASSERT_ERR(try_now(NULL), HF_E_NAME);
	name[80] = '\0';
	ASSERT_OK(try_for(1, name, opts_of(HF_LOCK_EXCLUSIVE, 0), NULL));
	/* The longest name can also be waited for. */
	ASSERT_ERR(try_for(2, name,
			   (struct hf_lock_opts){ .size = sizeof(struct hf_lock_opts),
						  .wait_ns = 10 * HF_MSEC },
			   NULL),
		   HF_E_TIMEOUT);
}

/* -- kinds ------------------------------------------------------------------ */

static void keep_kind(void *arg, const struct hf_lock_info *info)
{
	unsigned *kinds = arg;

	assert_string_equal(info->name, "x");
	*kinds |= 1U << info->kind;
}

static void kinds_of_one_name_are_different_locks_L1_L12(void **state)
{
	struct hf_lock *held[HF_LOCK_KINDS];

	(void)state;
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		struct hf_locks *kind = hf_locks_kind(locks, (enum hf_lock_kind)i);

		ASSERT_OK(hf_lock_acquire(kind, "x", NULL, &held[i], NULL, ERR));
	}
	/* A token says nothing about another kind, and a list shows its own. */
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		struct hf_locks *kind = hf_locks_kind(locks, (enum hf_lock_kind)i);
		unsigned seen = 0;

		for (int k = 0; k < HF_LOCK_KINDS; k++) {
			int r = hf_lock_check_token(kind, "x", hf_lock_token(held[k]), ERR);

			ASSERT_ERR(r, i == k ? 0 : HF_E_STALE);
		}
		ASSERT_OK(hf_lock_list(kind, keep_kind, &seen, ERR));
		assert_int_equal(seen, 1U << i);
		seen = 0;
		ASSERT_OK(hf_lock_look(kind, "x", keep_kind, &seen, ERR));
		assert_int_equal(seen, 1U << i);
	}
	/* Neither does a release or a break. */
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		give_back(held[i]);
		for (int k = i + 1; k < HF_LOCK_KINDS; k++)
			ASSERT_OK(hf_lock_check(held[k], ERR));
	}
	assert_null(hf_locks_kind(locks, (enum hf_lock_kind)HF_LOCK_KINDS));
	assert_null(hf_lock_kind_word((enum hf_lock_kind)-1));
}

/* No name that a user can type means a lock of another kind. */
static void name_with_the_word_of_a_kind_is_a_name_L12(void **state)
{
	struct hf_locks *groups = hf_locks_kind(locks, HF_LOCK_KIND_GROUP);
	struct hf_lock *lock = NULL;

	(void)state;
	ASSERT_OK(hf_lock_acquire(groups, "x", NULL, &lock, NULL, ERR));
	ASSERT_OK(try_now("group:x"));
	ASSERT_OK(try_now("group/x"));
	ASSERT_OK(try_now("../group/x"));
	ASSERT_OK(try_now("group"));
	ASSERT_OK(hf_lock_check(lock, ERR));
	give_back(lock);
}

static void event_of_a_lock_tells_its_kind_unless_it_is_a_name_L8(void **state)
{
	struct hf_locks *groups = hf_locks_kind(locks, HF_LOCK_KIND_GROUP);
	struct hf_lock *lock = NULL;

	(void)state;
	ASSERT_OK(hf_lock_acquire(groups, "x", NULL, &lock, NULL, ERR));
	assert_int_equal(hf_lock_break(groups, "x", "test", ERR), 1);
	assert_int_equal(events(HF_EV_LOCK_BROKEN, "kind"), 1);
	assert_string_equal(last_field, "group");
	hf_lock_free(lock);
	lock = take("x", NULL);
	assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 1);
	assert_int_equal(events(HF_EV_LOCK_BROKEN, "kind"), 2);
	assert_string_equal(last_field, "");
	hf_lock_free(lock);
}

/* -- stores ----------------------------------------------------------------- */

static void store_that_does_not_exist_is_named(void **state)
{
	static const char *const urls[] = { "", "etcd", "etcd:", "etcd:host:2379", "LOCAL:", "local",
					    ":", "local:x" };
	struct hf_locks *other = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		ASSERT_ERR(hf_locks_open_store(urls[i], hf_test_state(), NULL, &other, ERR), -EINVAL);
		assert_non_null(strstr(ERR->detail, "local:"));
		assert_null(other);
	}
	ASSERT_OK(hf_locks_open_store(NULL, hf_test_state(), NULL, &other, ERR));
	hf_locks_free(other);
}

/* The time at which a lock was got is told, whatever its token is. */
static void holder_tells_since_when(void **state)
{
	struct hf_wall before = hf_wall_now(), since;
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	since = look("x").first.since;
	assert_true(since.ns >= before.ns - HF_MSEC && since.ns <= hf_wall_now().ns);
	give_back(lock);
}

/* -- owners ----------------------------------------------------------------- */

static void taking_it_twice_is_a_deadlock_with_oneself(void **state)
{
	struct hf_lock *lock = take("x", NULL);
	struct hf_lock_opts wait = opts_of(HF_LOCK_EXCLUSIVE, 0);

	(void)state;
	ASSERT_ERR(try_now("x"), HF_E_DEADLOCK);
	wait.wait_ns = -1; /* would be for ever */
	ASSERT_ERR(hf_lock_acquire(locks, "x", &wait, &(struct hf_lock *){ NULL }, NULL, ERR),
		   HF_E_DEADLOCK);
	assert_non_null(strstr(ERR->detail, "you already hold it"));
	ASSERT_OK(hf_lock_check(lock, ERR));
	assert_int_equal(look("x").n_holders, 1);
	give_back(lock);
}

static void reentrant_is_counted_and_released_as_often(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *held[5];

	(void)state;
	opts.flags = HF_LOCK_REENTRANT;
	for (unsigned i = 0; i < 5; i++) {
		held[i] = take("x", &opts);
		assert_true(hf_lock_token(held[i]) == hf_lock_token(held[0]));
		assert_int_equal(look("x").first.count, i + 1);
	}
	for (unsigned i = 0; i < 5; i++) {
		ASSERT_ERR(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL), HF_E_BUSY);
		ASSERT_OK(hf_lock_release(held[i], ERR));
	}
	ASSERT_ERR(hf_lock_release(held[0], ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_check_token(locks, "x", 0, ERR), HF_E_NOT_HELD);
	for (unsigned i = 0; i < 5; i++)
		hf_lock_free(held[i]);
}

/* To have it shared is not to have it alone. */
static void reentrant_never_turns_shared_into_exclusive_L1(void **state)
{
	struct hf_lock_opts shared = opts_of(HF_LOCK_SHARED, 0), alone = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock = take("x", &shared), *more = NULL;

	(void)state;
	alone.flags = HF_LOCK_REENTRANT;
	ASSERT_OK(try_for(1, "x", shared, NULL));
	ASSERT_ERR(hf_lock_acquire(locks, "x", &alone, &more, NULL, ERR), HF_E_DEADLOCK);
	assert_null(more);
	assert_int_equal(look("x").n_holders, 2);
	/* The other way round nothing is gained that was not there. */
	give_back(lock);
	ASSERT_OK(hf_lock_break(locks, "x", "test", ERR));
	lock = take("x", &alone);
	shared.flags = HF_LOCK_REENTRANT;
	more = take("x", &shared);
	ASSERT_ERR(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL), HF_E_BUSY);
	give_back(more);
	give_back(lock);
}

struct thread_case {
	struct hf_lock *lock;
	int tried, released;
};

static void *thread_body(void *arg)
{
	struct thread_case *c = arg;
	struct hf_lock *mine = NULL;
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);

	opts.flags = HF_LOCK_REENTRANT;
	c->tried = hf_lock_acquire(locks, "x", &opts, &mine, NULL, NULL);
	hf_lock_free(mine);
	c->released = hf_lock_release(c->lock, NULL);
	return NULL;
}

static void two_threads_are_two_contenders_and_may_pass_a_handle_L1(void **state)
{
	struct thread_case c = { .lock = take("x", NULL) };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_body, &c), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ASSERT_ERR(c.tried, HF_E_BUSY);
	ASSERT_OK(c.released);
	hf_lock_free(c.lock);
	ASSERT_ERR(hf_lock_check_token(locks, "x", 0, ERR), HF_E_NOT_HELD);
}

#define THREADS    8
#define PER_THREAD 200

static struct {
	int inside, most, failed;
	uint64_t last;
} crowd;

static void *crowd_body(void *arg)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);

	(void)arg;
	opts.wait_ns = 20 * HF_SEC;
	for (int i = 0; i < PER_THREAD; i++) {
		struct hf_lock *lock;

		if (hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL) < 0) {
			__atomic_fetch_add(&crowd.failed, 1, __ATOMIC_RELAXED);
			continue;
		}
		if (__atomic_add_fetch(&crowd.inside, 1, __ATOMIC_RELAXED) > 1)
			__atomic_store_n(&crowd.most, 2, __ATOMIC_RELAXED);
		if (hf_lock_token(lock) <= __atomic_load_n(&crowd.last, __ATOMIC_RELAXED))
			__atomic_fetch_add(&crowd.failed, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&crowd.last, hf_lock_token(lock), __ATOMIC_RELAXED);
		__atomic_sub_fetch(&crowd.inside, 1, __ATOMIC_RELAXED);
		if (hf_lock_release(lock, NULL) < 0)
			__atomic_fetch_add(&crowd.failed, 1, __ATOMIC_RELAXED);
		hf_lock_free(lock);
	}
	return NULL;
}

static void threads_of_one_context_exclude_each_other_L1_L2(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	memset(&crowd, 0, sizeof(crowd));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crowd_body, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(crowd.failed, 0);
	assert_int_equal(crowd.most, 0);
}

/* -- looking ---------------------------------------------------------------- */

static void look_shows_holders_and_waiters_in_order(void **state)
{
	struct hf_lock *lock = take("x", NULL);
	int64_t wait = 10 * HF_SEC;
	struct child *c = child_start(wait_for_it, &wait);
	struct view view;

	(void)state;
	await_waiters("x", 1);
	view = look("x");
	assert_int_equal(view.n_holders, 1);
	assert_int_equal(view.first.id.pid, getpid());
	assert_int_equal(view.first.thread, gettid());
	assert_true(view.token == hf_lock_token(lock));
	give_back(lock);
	assert_int_equal(hear(c->from), 'd');
	ASSERT_OK(told->r);
	assert_true(told->token > view.token);
	assert_int_equal(look("x").n_waiters, 0);
}

struct names {
	int n, held;
	char all[256];
};

static void keep_name(void *arg, const struct hf_lock_info *info)
{
	struct names *names = arg;
	size_t len = strlen(names->all);

	names->n++;
	names->held += info->n_holders > 0;
	snprintf(names->all + len, sizeof(names->all) - len, "<%s>", info->name);
}

static void list_shows_every_lock_once_by_its_own_name(void **state)
{
	struct names names = { 0 };
	struct hf_lock *lock;

	(void)state;
	ASSERT_OK(hf_lock_list(locks, keep_name, &names, ERR));
	assert_int_equal(names.n, 0);
	lock = take("a/b c", NULL);
	give_back(take("x", NULL));
	ASSERT_OK(try_for(1, "\xff.", opts_of(HF_LOCK_SHARED, 0), NULL));
	/* Waiting makes further files, which are no locks. */
	ASSERT_ERR(try_for(2, "\xff.",
			   (struct hf_lock_opts){ .size = sizeof(struct hf_lock_opts),
						  .wait_ns = HF_MSEC },
			   NULL),
		   HF_E_TIMEOUT);
	ASSERT_OK(hf_lock_list(locks, keep_name, &names, ERR));
	assert_int_equal(names.n, 3);
	assert_int_equal(names.held, 2);
	assert_non_null(strstr(names.all, "<a/b c>"));
	assert_non_null(strstr(names.all, "<x>"));
	assert_non_null(strstr(names.all, "<\xff.>"));
	give_back(lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(holders_admit_exactly_the_modes_that_fit_L1),
		LOCK_TEST(the_last_of_64_is_let_in_and_the_next_is_not_L1),
		LOCK_TEST(mode_changes_only_through_a_free_lock_L1),
		LOCK_TEST(busy_names_the_holder_and_what_proves_it_alive),
		LOCK_TEST(wrong_arguments_are_refused),
		LOCK_TEST(names_that_look_alike_are_different_locks_L12),
		LOCK_TEST(name_of_80_bytes_works_and_of_81_is_refused_L12),
		LOCK_TEST(kinds_of_one_name_are_different_locks_L1_L12),
		LOCK_TEST(name_with_the_word_of_a_kind_is_a_name_L12),
		LOCK_TEST(event_of_a_lock_tells_its_kind_unless_it_is_a_name_L8),
		LOCK_TEST(store_that_does_not_exist_is_named),
		LOCK_TEST(holder_tells_since_when),
		LOCK_TEST(taking_it_twice_is_a_deadlock_with_oneself),
		LOCK_TEST(reentrant_is_counted_and_released_as_often),
		LOCK_TEST(reentrant_never_turns_shared_into_exclusive_L1),
		LOCK_TEST(two_threads_are_two_contenders_and_may_pass_a_handle_L1),
		LOCK_TEST(threads_of_one_context_exclude_each_other_L1_L2),
		LOCK_TEST(look_shows_holders_and_waiters_in_order),
		LOCK_TEST(list_shows_every_lock_once_by_its_own_name),
	};

	store_begin(argc, argv);
	told = shared_new(sizeof(*told));
	return hf_run_tests("store-admission", tests);
}
