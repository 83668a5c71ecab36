/*
 * unit/lock/test_lock_store.c - what stands between lock.h and a store: the fence, which remembers more than
 * the store does, and what happens where a store cannot do everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/lock_cases.h"
#include "hf/base/cleanup.h"
#include "hf/lock/store.h"
#include "hf/proc/here.h"

#define RECORD "state/locks/name/x"
#define FENCE  "state/fences/local/name.x"

static int act(uint64_t token)
{
	int result = 7;

	return hf_lock_guarded(locks, "x", token, action, &result, ERR);
}

/* -- the fence ----------------------------------------------------------------- */

static void copy_file(const char *from, const char *to)
{
	static char bytes[1 << 16];
	AUTO_FD in = open(hf_test_path(from), O_RDONLY | O_CLOEXEC);
	AUTO_FD out = open(hf_test_path(to), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = read(in, bytes, sizeof(bytes));

	assert_true(n > 0 && write(out, bytes, (size_t)n) == n);
}

/* The store believes its file; this machine has seen more. */
static void token_of_an_older_record_that_was_put_back_is_refused_L5_L8(void **state)
{
	struct hf_lock *first = take("x", NULL), *second;

	(void)state;
	assert_int_equal(act(hf_lock_token(first)), 7);
	copy_file(RECORD, "older");
	ASSERT_OK(hf_lock_release(first, ERR));
	second = take("x", NULL);
	assert_int_equal(act(hf_lock_token(second)), 7);
	ASSERT_OK(hf_lock_release(second, ERR));
	copy_file("older", RECORD);
	ASSERT_OK(hf_lock_check(first, ERR));
	action_ran = 0;
	ASSERT_ERR(act(hf_lock_token(first)), HF_E_STALE);
	assert_int_equal(action_ran, 0);
	assert_int_equal(events(HF_EV_LOCK_REFUSED, "reason"), 1);
	assert_non_null(strstr(last_field, "a later token"));
	/* For ever: also after its release, and for those that come by another context. */
	ASSERT_OK(hf_lock_release(first, ERR));
	ASSERT_ERR(act(hf_lock_token(first)), HF_E_STALE);
	hf_lock_free(first);
	hf_lock_free(second);
	first = take("x", NULL);
	assert_int_equal(act(hf_lock_token(first)), 7);
	give_back(first);
}

static void token_that_is_not_current_leaves_no_fence_L5(void **state)
{
	struct hf_lock *lock;
	struct stat st;

	(void)state;
	ASSERT_ERR(act(5), HF_E_STALE);
	lock = take("x", NULL);
	ASSERT_ERR(act(hf_lock_token(lock) + 1), HF_E_STALE);
	assert_int_equal(lstat(hf_test_path(FENCE), &st), -1);
	/* Were it raised by a token that nobody has, no other would ever be admitted. */
	assert_int_equal(act(hf_lock_token(lock)), 7);
	ASSERT_OK(lstat(hf_test_path(FENCE), &st));
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	give_back(lock);
}

enum thing { GARBAGE, SHORT, LONG, OPEN_TO_OTHERS, SYMLINK, DIRECTORY, FIFO, THINGS };

static void put_thing(enum thing thing)
{
	AUTO_FD fd = -1;

	(void)unlink(hf_test_path(FENCE));
	switch (thing) {
	case SYMLINK:
		assert_int_equal(symlink(hf_test_path("elsewhere"), hf_test_path(FENCE)), 0);
		return;
	case DIRECTORY:
		assert_int_equal(mkdir(hf_test_path(FENCE), 0700), 0);
		return;
	case FIFO:
		assert_int_equal(mkfifo(hf_test_path(FENCE), 0600), 0);
		return;
	case GARBAGE:
	case SHORT:
	case LONG:
	case OPEN_TO_OTHERS:
	case THINGS:
		break;
	}
	fd = open(hf_test_path(FENCE), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123456789abcdef", thing == SHORT ? 7 : 16), thing == SHORT ? 7 : 16);
	if (thing == OPEN_TO_OTHERS)
		assert_int_equal(fchmod(fd, 0666), 0);
}

static void what_is_no_fence_is_put_away_untouched_L8_L12(void **state)
{
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	assert_int_equal(act(hf_lock_token(lock)), 7);
	for (int thing = 0; thing < THINGS; thing++) {
		if (thing == LONG)
			continue; /* what stands behind the number is none of its business */
		put_thing((enum thing)thing);
		assert_int_equal(act(hf_lock_token(lock)), 7);
		assert_int_equal(events(HF_EV_RECORD_QUARANTINED, "file"), thing + (thing < LONG));
		assert_string_equal(last_field, "fences/local/name.x");
	}
	assert_int_equal(access(hf_test_path("elsewhere"), F_OK), -1);
	give_back(lock);
}

static void fences_that_were_deleted_by_hand_are_made_anew_L5(void **state)
{
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	assert_int_equal(act(hf_lock_token(lock)), 7);
	assert_int_equal(unlink(hf_test_path(FENCE)), 0);
	assert_int_equal(rmdir(hf_test_path("state/fences/local")), 0);
	assert_int_equal(rmdir(hf_test_path("state/fences")), 0);
	assert_int_equal(act(hf_lock_token(lock)), 7);
	assert_int_equal(access(hf_test_path(FENCE), F_OK), 0);
	give_back(lock);
}

/* A kind is part of the file's name, so that no two locks share a fence. */
static void fences_of_two_kinds_are_two_L5(void **state)
{
	struct hf_locks *groups = hf_locks_kind(locks, HF_LOCK_KIND_GROUP);
	struct hf_lock *name = take("x", NULL), *group = NULL;
	int result = 7;

	(void)state;
	ASSERT_OK(hf_lock_acquire(groups, "x", NULL, &group, NULL, ERR));
	assert_int_equal(hf_lock_guarded(groups, "x", hf_lock_token(group), action, &result, ERR), 7);
	assert_int_equal(act(hf_lock_token(name)), 7); /* the lower of the two */
	give_back(name);
	give_back(group);
}

static volatile int *inside;

static int act_slowly(void *arg)
{
	(void)arg;
	MUST(*inside == 0);
	*inside = 1;
	(void)poll(NULL, 0, 2);
	*inside = 0;
	return 0;
}

/* A store that can only answer: two actions never overlap all the same. */
static struct hf_store_ops only_checks(const struct hf_store *store)
{
	struct hf_store_ops ops = *store->ops;

	ops.hold = NULL;
	ops.let_go = NULL;
	return ops;
}

static void act_often(int in, int out, void *arg)
{
	struct hf_locks *own = own_locks(0);
	struct hf_store_ops ops = only_checks(hf_locks_store(own));

	(void)in;
	(void)arg;
	hf_locks_store(own)->ops = &ops;
	tell(out, 'r');
	for (int i = 0; i < 50; i++)
		MUST(hf_lock_guarded(own, "x", told->token, act_slowly, NULL, NULL) == 0);
	tell(out, 'd');
}

static void fence_alone_keeps_actions_apart_and_refuses_what_is_late_L5(void **state)
{
	const struct hf_store_ops *all = hf_locks_store(locks)->ops;
	struct hf_store_ops ops = only_checks(hf_locks_store(locks));
	struct hf_lock *first = take("x", NULL), *second;
	struct child *children[3];

	(void)state;
	inside = &told->other;
	told->token = hf_lock_token(first);
	for (int i = 0; i < 3; i++)
		children[i] = child_start(act_often, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hear(children[i]->from), 'd');
	hf_locks_store(locks)->ops = &ops;
	copy_file(RECORD, "older");
	ASSERT_OK(hf_lock_release(first, ERR));
	ASSERT_ERR(act(hf_lock_token(first)), HF_E_STALE);
	second = take("x", NULL);
	assert_int_equal(act(hf_lock_token(second)), 7);
	/* Its answer came before the second had the lock, and its action comes after the second's. */
	copy_file("older", RECORD);
	ASSERT_ERR(act(hf_lock_token(first)), HF_E_STALE);
	hf_locks_store(locks)->ops = all;
	hf_lock_free(first);
	hf_lock_free(second);
}

/* -- what a store may lack ------------------------------------------------------ */

static void store_that_sees_no_death_needs_leases(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_store *store = hf_locks_store(locks);
	struct hf_lock *lock = NULL;

	(void)state;
	store->caps &= ~(unsigned)HF_STORE_SEES_DEATH;
	store->min_ttl_ns = 2 * HF_SEC;
	ASSERT_ERR(hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR), -EINVAL);
	assert_non_null(strstr(ERR->detail, "lease"));
	opts.ttl_ns = HF_SEC;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -EINVAL);
	assert_non_null(strstr(ERR->detail, "2000 ms"));
	opts.ttl_ns = 2 * HF_SEC;
	lock = take("x", &opts);
	ASSERT_ERR(hf_lock_renew(lock, HF_SEC, ERR), -EINVAL);
	ASSERT_OK(hf_lock_renew(lock, 0, ERR));
	ASSERT_OK(hf_lock_renew(lock, 3 * HF_SEC, ERR));
	give_back(lock);
}

static void store_without_slots_says_so(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_SLOTS, 2);
	struct hf_lock *lock = NULL;

	(void)state;
	hf_locks_store(locks)->caps &= ~(unsigned)HF_STORE_HAS_SLOTS;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), -ENOTSUP);
	give_back(take("x", NULL));
}

static char seen_host[HF_HOST_ID_LEN + 1];
static const struct hf_store_ops *local_ops;

static int keep_host(struct hf_store *store, const struct hf_lock_request *request,
		     uint64_t *ret_token, struct hf_holder *ret_blocker, struct hf_err *err)
{
	memcpy(seen_host, request->owner.host, sizeof(seen_host));
	return local_ops->acquire(store, request, ret_token, ret_blocker, err);
}

static enum hf_liveness everybody_is_dead(struct hf_store *store, const struct hf_owner *owner,
					  char evidence[HF_EVIDENCE_MAX])
{
	(void)store;
	(void)owner;
	snprintf(evidence, HF_EVIDENCE_MAX, "says the store");
	return HF_DEAD;
}

/* Owners of other machines: each request says of which one, and the store judges them. */
static void store_of_many_machines_learns_the_host_and_judges_itself(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_proc_id self;
	struct hf_store_args args = { .url = "", .state = hf_test_state(), .self = &self };
	struct hf_store *store = NULL;
	struct hf_locks *wide = NULL;
	struct hf_lock *lock = NULL;
	char host[HF_HOST_ID_LEN + 1];
	struct hf_store_ops ops;

	(void)state;
	assert_true(hf_host_id(hf_test_state(), host, ERR) >= 0);
	ASSERT_OK(hf_proc_self(&self, ERR));
	ASSERT_OK(hf_local_open(&args, &store, ERR));
	local_ops = store->ops;
	ops = *local_ops;
	ops.acquire = keep_host;
	ops.judge = everybody_is_dead;
	store->ops = &ops;
	store->caps &= ~(unsigned)HF_STORE_ONE_HOST;
	ASSERT_OK(hf_locks_open_over(store, &args, &wide, ERR));
	ASSERT_OK(hf_lock_acquire(wide, "x", NULL, &lock, NULL, ERR));
	assert_string_equal(seen_host, host);
	ASSERT_ERR(hf_lock_add_owner(lock, &self, ERR), HF_E_GONE);
	assert_string_equal(ERR->detail, "says the store");
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	lock = NULL;
	opts.owner = &self;
	ASSERT_ERR(hf_lock_acquire(wide, "x", &opts, &lock, NULL, ERR), HF_E_GONE);
	hf_locks_free(wide);
	/* The local store is of one machine, and is not asked for more. */
	seen_host[0] = 'x';
	ops = *hf_locks_store(locks)->ops;
	ops.acquire = keep_host;
	hf_locks_store(locks)->ops = &ops;
	give_back(take("x", NULL));
	hf_locks_store(locks)->ops = local_ops;
	assert_string_equal(seen_host, "");
}

/* Of another store: the lower one that it had is refused, and the next is higher still. */
static void hold_that_gets_a_higher_token_has_only_that_L2_L5(void **state)
{
	struct hf_lock *lock = take("x", NULL), *next;
	uint64_t first = hf_lock_token(lock), higher = first + 1000000000;

	(void)state;
	ASSERT_ERR(hf_lock_raise(lock, first, ERR), -EINVAL);
	ASSERT_OK(hf_lock_raise(lock, higher, ERR));
	assert_true(hf_lock_token(lock) == higher);
	ASSERT_ERR(act(first), HF_E_STALE);
	assert_int_equal(act(higher), 7);
	give_back(lock);
	next = take("x", NULL);
	assert_true(hf_lock_token(next) > higher);
	give_back(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(token_of_an_older_record_that_was_put_back_is_refused_L5_L8),
		LOCK_TEST(token_that_is_not_current_leaves_no_fence_L5),
		LOCK_TEST(what_is_no_fence_is_put_away_untouched_L8_L12),
		LOCK_TEST(fences_that_were_deleted_by_hand_are_made_anew_L5),
		LOCK_TEST(fences_of_two_kinds_are_two_L5),
		LOCK_TEST(fence_alone_keeps_actions_apart_and_refuses_what_is_late_L5),
		LOCK_TEST(store_that_sees_no_death_needs_leases),
		LOCK_TEST(store_without_slots_says_so),
		LOCK_TEST(store_of_many_machines_learns_the_host_and_judges_itself),
		LOCK_TEST(hold_that_gets_a_higher_token_has_only_that_L2_L5),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock_store", tests);
}
