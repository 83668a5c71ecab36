/* store/test_owners.c - whose a lock is: releasing, death, doubt, two owners. Of every store. */
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

static void release_as_nobody(void)
{
	struct hf_err err = HF_ERR_INIT;

	told->r = hf_lock_release_as(own_locks(1), "x", 0, NULL, &err);
	memcpy(told->detail, err.detail, sizeof(told->detail));
}

static void release_by_another_changes_nothing_and_leaves_one_event_L3_L8(void **state)
{
	struct hf_lock *lock = take("x", NULL);
	char pid[16];

	(void)state;
	in_child(release_as_nobody);
	ASSERT_ERR(told->r, HF_E_NOT_OWNER);
	snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	assert_non_null(strstr(told->detail, pid));
	assert_int_equal(events(HF_EV_LOCK_REFUSED, "action"), 1);
	assert_string_equal(last_field, "release");
	ASSERT_OK(hf_lock_check(lock, ERR));
	ASSERT_ERR(hf_lock_release_as(locks, "x", hf_lock_token(lock) + 1, NULL, ERR), HF_E_STALE);
	assert_int_equal(events(HF_EV_LOCK_REFUSED, NULL), 2);
	ASSERT_OK(hf_lock_check(lock, ERR));
	give_back(lock);
	assert_int_equal(events(HF_EV_LOCK_REFUSED, NULL), 2);
	ASSERT_ERR(hf_lock_release_as(locks, "x", 0, NULL, ERR), HF_E_NOT_HELD);
	ASSERT_ERR(hf_lock_release_as(locks, "never", 0, NULL, ERR), HF_E_NOT_HELD);
	ASSERT_ERR(hf_lock_release_as(locks, "never", 1, NULL, ERR), HF_E_STALE);
}

static void owner_releases_without_its_token_L3(void **state)
{
	struct hf_proc_id owner = stranger(7), other = stranger(8);

	(void)state;
	ASSERT_OK(try_for(7, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), NULL));
	ASSERT_ERR(hf_lock_release_as(locks, "x", 0, &other, ERR), HF_E_NOT_OWNER);
	ASSERT_OK(hf_lock_release_as(locks, "x", 0, &owner, ERR));
	ASSERT_OK(try_now("x"));
}

static struct hf_lock *inherited;

static void use_what_was_inherited(void)
{
	struct hf_lock *lock = NULL;
	struct hf_locks *own;

	MUST(hf_lock_release(inherited, NULL) == HF_E_FORKED);
	MUST(hf_lock_renew(inherited, HF_SEC, NULL) == HF_E_FORKED);
	MUST(hf_lock_check(inherited, NULL) == HF_E_FORKED);
	MUST(hf_lock_acquire(locks, "y", NULL, &lock, NULL, NULL) == HF_E_FORKED && !lock);
	MUST(hf_lock_list(locks, keep_view, NULL, NULL) == HF_E_FORKED);
	hf_lock_free(inherited);
	hf_locks_free(locks);
	own = own_locks(1);
	MUST(hf_lock_release_as(own, "x", 0, NULL, NULL) == HF_E_NOT_OWNER);
	MUST(hf_lock_acquire(own, "x", NULL, &lock, NULL, NULL) == HF_E_BUSY);
}

static void forked_child_can_free_but_not_release_L3_L13(void **state)
{
	(void)state;
	inherited = take("x", NULL);
	in_child(use_what_was_inherited);
	ASSERT_OK(hf_lock_check(inherited, ERR));
	give_back(inherited);
	ASSERT_ERR(hf_lock_check_token(locks, "y", 0, ERR), HF_E_NOT_HELD);
}

/* Takes the lock, then leaves a process of its own behind that answers for it. */
static void child_holds_and_forks(int in, int out, void *arg)
{
	struct hf_lock *lock;

	MUST(hf_lock_acquire(own_locks(1), "x", arg, &lock, NULL, NULL) == 0);
	if (fork() == 0) {
		tell(out, 'r');
		child_answers_until_eof(in, out);
		_exit(0);
	}
	for (;;)
		pause();
}

static void surviving_child_does_not_keep_its_parents_lock_L4(void **state)
{
	struct child *c = child_start(child_holds_and_forks, NULL);

	(void)state;
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	child_kill(c);
	assert_int_equal(child_ask(c), 'n'); /* it lives, with all that it inherited */
	ASSERT_OK(try_now("x"));
	assert_int_equal(child_ask(c), 'n');
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 1);
}

static void owner_that_has_ended_gets_nothing_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock = NULL;
	struct hf_proc_id id;

	(void)state;
	ASSERT_OK(hf_proc_identify(c->pid, &id, ERR));
	opts.owner = &id;
	lock = take("x", &opts);
	assert_int_equal(look("x").first.id.pid, c->pid);
	give_back(lock);
	child_kill(c);
	lock = NULL;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), HF_E_GONE);
	assert_null(lock);
	assert_int_equal(look("x").n_holders, 0);
}

/* -- dead and unknown ------------------------------------------------------- */

static void dead_owner_is_replaced_at_once_L4_L8(void **state)
{
	struct child *c;

	(void)state;
	c = child_start(child_holds, NULL);
	child_kill(c);
	holder_is_replaced_at_once("gone", 1);
	c = child_start(child_holds, NULL);
	child_kill_only(c);
	holder_is_replaced_at_once("exited", 1);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 2);
}

static void free_on_exit_is_a_release_and_no_take_over_L8(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct child *c;

	(void)state;
	opts.flags = HF_LOCK_FREE_ON_EXIT;
	c = child_start(child_holds, &opts);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	child_kill(c);
	holder_is_replaced_at_once(NULL, 0);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 0);
}

static void dead_one_of_many_is_replaced_and_the_others_stay_L4(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_SLOTS, 3);
	struct child *c = child_start(child_holds, &opts);
	uint64_t tokens[3];

	(void)state;
	ASSERT_OK(try_for(1, "x", opts, &tokens[0]));
	ASSERT_OK(try_for(2, "x", opts, &tokens[1]));
	ASSERT_ERR(try_for(3, "x", opts, NULL), HF_E_BUSY);
	child_kill(c);
	ASSERT_OK(try_for(3, "x", opts, &tokens[2]));
	ASSERT_ERR(try_for(4, "x", opts, NULL), HF_E_BUSY);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_check_token(locks, "x", tokens[i], ERR));
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 1);
}

static void unknown_owner_counts_as_alive_until_it_is_broken_L4(void **state)
{
	struct hf_lock_opts wait = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock = NULL;
	struct hf_holder blocker;
	uint64_t token;

	(void)state;
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &token));
	wait.wait_ns = 120 * HF_MSEC;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &wait, &lock, &blocker, ERR), HF_E_TIMEOUT);
	assert_int_equal(blocker.liveness, HF_UNKNOWN);
	assert_non_null(strstr(blocker.evidence, "namespace"));
	ASSERT_OK(hf_lock_check_token(locks, "x", token, ERR));
	assert_int_equal(hf_lock_break(locks, "x", "it is stuck", ERR), 1);
	assert_int_equal(events(HF_EV_LOCK_BROKEN, "reason"), 1);
	assert_string_equal(last_field, "it is stuck");
	ASSERT_ERR(hf_lock_check_token(locks, "x", token, ERR), HF_E_STALE);
	ASSERT_OK(try_now("x"));
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 0);
}

static void break_takes_it_from_all_and_from_nobody_else(void **state)
{
	uint64_t tokens[3];

	(void)state;
	ASSERT_ERR(hf_lock_break(locks, "x", "test", ERR), HF_E_NOT_HELD);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(try_for(i, "x", opts_of(HF_LOCK_SHARED, 0), &tokens[i]));
	ASSERT_OK(try_for(1, "y", opts_of(HF_LOCK_EXCLUSIVE, 0), NULL));
	assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 3);
	assert_int_equal(events(HF_EV_LOCK_BROKEN, NULL), 3);
	for (int i = 0; i < 3; i++)
		ASSERT_ERR(hf_lock_release_as(locks, "x", tokens[i], NULL, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_break(locks, "x", "test", ERR), HF_E_NOT_HELD);
	assert_int_equal(look("y").n_holders, 1);
}

/* -- the process around it --------------------------------------------------- */

static int is_child_of_ours(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static void use_everything(void)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock;
	int zero = 0;

	opts.wait_ns = 80 * HF_MSEC; /* long enough to look for a deadlock */
	opts.ttl_ns = store_ttl(locks, HF_SEC);
	lock = take("x", &opts);
	ASSERT_ERR(try_for(1, "x", opts, NULL), HF_E_TIMEOUT);
	ASSERT_OK(hf_lock_renew(lock, 0, ERR));
	ASSERT_OK(hf_lock_guarded(locks, "x", hf_lock_token(lock), action, &zero, ERR));
	give_back(lock);
	ASSERT_OK(try_for(1, "x", opts, NULL));
	ASSERT_OK(hf_lock_break(locks, "x", "test", ERR));
	(void)look("x");
}

static void process_is_left_as_it_was_L13(void **state)
{
	struct sigaction before[NSIG], after;
	char cwd[4096], cwd_after[4096];
	sigset_t mask, mask_after;
	mode_t mode = umask(0037);
	int fds;

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, NULL, &before[sig]);
	/* What is opened when it is needed first stays open: the directory of fences, the connection to a store that is elsewhere. */
	use_everything();
	fds = hf_test_fd_count();
	use_everything();
	assert_int_equal(hf_test_fd_count(), fds);
	assert_int_equal(umask(mode), 0037);
	assert_non_null(getcwd(cwd_after, sizeof(cwd_after)));
	assert_string_equal(cwd, cwd_after);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask_after), 0);
	for (int sig = 1; sig < NSIG; sig++) {
		assert_int_equal(sigismember(&mask, sig), sigismember(&mask_after, sig));
		if (sigaction(sig, NULL, &after) == 0)
			assert_ptr_equal(before[sig].sa_handler, after.sa_handler);
	}
	assert_false(is_child_of_ours());
}

static void without_a_journal_everything_works_but_the_events(void **state)
{
	struct child *c = child_start(child_holds, NULL);
	struct hf_locks *quiet;
	struct hf_lock *lock;

	(void)state;
	ASSERT_OK(hf_locks_open_store(lock_store_url, hf_test_state(), NULL, &quiet, ERR));
	child_kill(c);
	ASSERT_OK(hf_lock_acquire(quiet, "x", NULL, &lock, NULL, ERR));
	ASSERT_ERR(hf_lock_release_as(quiet, "x", 1, NULL, ERR), HF_E_STALE);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	hf_locks_free(quiet);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 0);
}

/* -- two owners of one hold --------------------------------------------------- */

static void second_owner_keeps_the_lock_when_the_first_dies_L4_L7(void **state)
{
	struct child *first = child_start(child_answers, NULL), *second = child_start(child_answers, NULL);
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_proc_id owner, other;
	struct hf_lock *lock;

	(void)state;
	ASSERT_OK(hf_proc_identify((int32_t)first->pid, &owner, ERR));
	ASSERT_OK(hf_proc_identify((int32_t)second->pid, &other, ERR));
	opts.owner = &owner;
	lock = take("x", &opts);
	ASSERT_OK(hf_lock_add_owner(lock, &other, ERR));
	ASSERT_ERR(hf_lock_add_owner(lock, &other, ERR), -EINVAL);
	assert_int_equal(look("x").n_holders, 2);
	child_kill(first);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	assert_int_equal(look("x").n_holders, 1);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 0);
	ASSERT_OK(hf_lock_check(lock, ERR));
	child_kill(second);
	ASSERT_OK(try_now("x"));
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 1);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_lock_free(lock);
}

static void slot_of_two_owners_is_one_slot_and_free_when_both_are_dead_L1_L7(void **state)
{
	struct child *first = child_start(child_answers, NULL), *second = child_start(child_answers, NULL);
	struct hf_lock_opts opts = opts_of(HF_LOCK_SLOTS, 2);
	struct hf_proc_id owner, other, foreign;
	struct hf_lock *lock, *neighbour, *third = NULL;

	(void)state;
	ASSERT_OK(hf_proc_identify((int32_t)first->pid, &owner, ERR));
	ASSERT_OK(hf_proc_identify((int32_t)second->pid, &other, ERR));
	opts.owner = &owner;
	lock = take("x", &opts);
	opts.owner = NULL;
	neighbour = take("x", &opts);
	ASSERT_OK(hf_lock_add_owner(lock, &other, ERR));
	ASSERT_ERR(hf_lock_add_owner(lock, &other, ERR), -EINVAL);
	assert_int_equal(look("x").n_holders, 3);
	foreign = stranger(1);
	opts.owner = &foreign;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &third, NULL, ERR), HF_E_BUSY);
	child_kill(first);
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &third, NULL, ERR), HF_E_BUSY);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 0);
	ASSERT_OK(hf_lock_check(lock, ERR));
	child_kill(second);
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &third, NULL, ERR));
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, NULL), 1);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	ASSERT_OK(hf_lock_release(neighbour, ERR));
	ASSERT_OK(hf_lock_release(third, ERR));
	hf_lock_free(lock);
	hf_lock_free(neighbour);
	hf_lock_free(third);
}

static void second_owners_leave_room_for_every_slot_L1(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_SLOTS, HF_LOCK_SLOTS_MAX);
	struct child *second = child_start(child_answers, NULL);
	struct hf_lock *held[HF_LOCK_SLOTS_MAX];
	struct hf_proc_id other;
	int pairs = 0;

	(void)state;
	ASSERT_OK(hf_proc_identify((int32_t)second->pid, &other, ERR));
	for (int i = 0; i < HF_LOCK_SLOTS_MAX; i++) {
		int r;

		held[i] = take("x", &opts);
		r = hf_lock_add_owner(held[i], &other, ERR);
		assert_true(r == 0 || r == -ENOSPC);
		pairs += r == 0;
	}
	assert_int_equal(pairs, 0);
	for (int i = 0; i < HF_LOCK_SLOTS_MAX; i++) {
		ASSERT_OK(hf_lock_release(held[i], ERR));
		hf_lock_free(held[i]);
	}
	opts.slots = HF_LOCK_SLOTS_MAX / 2;
	for (int i = 0; i < HF_LOCK_SLOTS_MAX / 2; i++) {
		held[i] = take("x", &opts);
		ASSERT_OK(hf_lock_add_owner(held[i], &other, ERR));
	}
	assert_int_equal(look("x").n_holders, HF_LOCK_SLOTS_MAX);
	for (int i = 0; i < HF_LOCK_SLOTS_MAX / 2; i++) {
		ASSERT_OK(hf_lock_release(held[i], ERR));
		hf_lock_free(held[i]);
	}
	assert_int_equal(look("x").n_holders, 0);
}

static void hold_of_two_owners_is_renewed_released_and_broken_as_one_L3_L8(void **state)
{
	struct child *second = child_start(child_answers, NULL);
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_proc_id other;
	struct hf_lock *lock;

	(void)state;
	opts.ttl_ns = 3600 * HF_SEC;
	ASSERT_OK(hf_proc_identify((int32_t)second->pid, &other, ERR));
	lock = take("x", &opts);
	ASSERT_OK(hf_lock_add_owner(lock, &other, ERR));
	ASSERT_OK(hf_lock_renew(lock, 0, ERR));
	ASSERT_OK(hf_lock_release(lock, ERR));
	assert_int_equal(look("x").n_holders, 0);
	hf_lock_free(lock);

	lock = take("x", &opts);
	ASSERT_OK(hf_lock_add_owner(lock, &other, ERR));
	assert_int_equal(hf_lock_break(locks, "x", "test", ERR), 1);
	assert_int_equal(events(HF_EV_LOCK_BROKEN, NULL), 1);
	hf_lock_free(lock);

	/* The lease of both runs out at once, and once is told. */
	opts.ttl_ns = store_ttl(locks, HF_MSEC);
	lock = take("x", &opts);
	ASSERT_OK(hf_lock_add_owner(lock, &other, ERR));
	opts.ttl_ns = 0;
	opts.wait_ns = 20 * HF_SEC;
	other = stranger(1);
	opts.owner = &other;
	give_back(take("x", &opts));
	assert_int_equal(events(HF_EV_LOCK_EXPIRED, NULL), 1);
	hf_lock_free(lock);
}

static void shared_locks_and_the_dead_take_no_second_owner(void **state)
{
	struct hf_lock_opts shared = opts_of(HF_LOCK_SHARED, 0);
	struct child *second = child_start(child_answers, NULL);
	struct hf_proc_id other;
	struct hf_lock *lock;

	(void)state;
	ASSERT_OK(hf_proc_identify((int32_t)second->pid, &other, ERR));
	lock = take("x", &shared);
	ASSERT_ERR(hf_lock_add_owner(lock, &other, ERR), -EINVAL);
	give_back(lock);
	lock = take("z", NULL);
	child_kill(second);
	ASSERT_ERR(hf_lock_add_owner(lock, &other, ERR), HF_E_GONE);
	ASSERT_OK(hf_lock_release(lock, ERR));
	ASSERT_ERR(hf_lock_add_owner(lock, &(struct hf_proc_id){ 0 }, ERR), HF_E_STALE);
	hf_lock_free(lock);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(release_by_another_changes_nothing_and_leaves_one_event_L3_L8),
		LOCK_TEST(owner_releases_without_its_token_L3),
		LOCK_TEST(forked_child_can_free_but_not_release_L3_L13),
		LOCK_TEST(surviving_child_does_not_keep_its_parents_lock_L4),
		LOCK_TEST(owner_that_has_ended_gets_nothing_L4),
		LOCK_TEST(dead_owner_is_replaced_at_once_L4_L8),
		LOCK_TEST(free_on_exit_is_a_release_and_no_take_over_L8),
		LOCK_TEST(dead_one_of_many_is_replaced_and_the_others_stay_L4),
		LOCK_TEST(unknown_owner_counts_as_alive_until_it_is_broken_L4),
		LOCK_TEST(break_takes_it_from_all_and_from_nobody_else),
		LOCK_TEST(process_is_left_as_it_was_L13),
		LOCK_TEST(without_a_journal_everything_works_but_the_events),
		LOCK_TEST(second_owner_keeps_the_lock_when_the_first_dies_L4_L7),
		LOCK_TEST(slot_of_two_owners_is_one_slot_and_free_when_both_are_dead_L1_L7),
		LOCK_TEST(second_owners_leave_room_for_every_slot_L1),
		LOCK_TEST(hold_of_two_owners_is_renewed_released_and_broken_as_one_L3_L8),
		LOCK_TEST(shared_locks_and_the_dead_take_no_second_owner),
	};

	store_begin(argc, argv);
	told = shared_new(sizeof(*told));
	return hf_run_tests("store-owners", tests);
}
