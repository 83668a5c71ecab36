/*
 * unit/test_lock.c - what every store of locks must do, through lock.h alone.
 *
 * Contenders are processes, threads, and "strangers": identities of another pid
 * namespace, which nobody here can judge and which therefore count as alive. The
 * tests of what may stand in place of a record, at the end, know the local files.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/record.h"
#include "helper/lock_helper.h"
#include "helper/proc_helper.h"
#include "helper/test.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

#define RECORD "state/locks/name/x"

static struct hf_journal *journal;
static struct hf_locks *locks;

/* What forked processes tell the test. */
static struct answers {
	int r, other;
	uint64_t token;
	char detail[256];
} *told;

static int lock_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	memset(told, 0, sizeof(*told));
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_locks_open(hf_test_state(), journal, &locks, ERR));
	return 0;
}

static int lock_teardown(void **state)
{
	hf_locks_free(locks);
	hf_journal_free(journal);
	locks = NULL;
	journal = NULL;
	return proc_test_teardown(state);
}

#define LOCK_TEST(fn) { #fn, fn, lock_setup, lock_teardown, NULL }

static struct hf_lock_opts opts_of(enum hf_lock_mode mode, unsigned slots)
{
	return (struct hf_lock_opts){
		.size = sizeof(struct hf_lock_opts), .mode = mode, .slots = slots };
}

/* Somebody who cannot be judged from here: alive, for all we know. */
static struct hf_proc_id stranger(int number)
{
	struct hf_proc_id id;

	ASSERT_OK(hf_proc_self(&id, ERR));
	id.pid_ns++;
	id.pid = 1000 + number;
	id.pidfs_inode = id.pidfs_inode ? 1000 + (uint64_t)number : 0;
	return id;
}

static struct hf_lock *take(const char *name, const struct hf_lock_opts *opts)
{
	struct hf_lock *lock = NULL;

	ASSERT_OK(hf_lock_acquire(locks, name, opts, &lock, NULL, ERR));
	return lock;
}

/* Tries; what was taken is kept, only its handle is not. */
static int try_for(int number, const char *name, struct hf_lock_opts opts, uint64_t *token)
{
	struct hf_proc_id owner = stranger(number);
	struct hf_lock *lock = NULL;
	int r;

	opts.owner = &owner;
	r = hf_lock_acquire(locks, name, &opts, &lock, NULL, ERR);
	if (r == 0 && token)
		*token = hf_lock_token(lock);
	hf_lock_free(lock);
	return r;
}

static int try_now(const char *name)
{
	struct hf_lock *lock = NULL;
	int r = hf_lock_acquire(locks, name, NULL, &lock, NULL, ERR);

	hf_lock_free(lock);
	return r;
}

static void give_back(struct hf_lock *lock)
{
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
}

/* What hf_lock_look says, kept. */
struct view {
	uint64_t token;
	unsigned slots;
	size_t n_holders, n_waiters;
	struct hf_holder first;
};

static void keep_view(void *arg, const struct hf_lock_info *info)
{
	struct view *view = arg;

	view->token = info->token;
	view->slots = info->slots;
	view->n_holders = info->n_holders;
	view->n_waiters = info->n_waiters;
	if (info->n_holders > 0)
		view->first = info->holders[0];
}

static struct view look(const char *name)
{
	struct view view = { 0 };

	ASSERT_OK(hf_lock_look(locks, name, keep_view, &view, ERR));
	return view;
}

/* How many events of that kind there are, and one field of the last. */
static char last_field[512];

static int events(enum hf_event event, const char *field)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	int n = 0;

	last_field[0] = '\0';
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_next(reader, &record, ERR) > 0) {
		const char *text = field ? hf_record_text(&record, field) : NULL;

		if (!record.info || record.info->event != event)
			continue;
		n++;
		snprintf(last_field, sizeof(last_field), "%s", text ? text : "");
	}
	hf_journal_reader_free(reader);
	return n;
}

/* A process that takes "x" with the options given, says so, and ends with the test. */
static void child_holds(int in, int out, void *arg)
{
	struct hf_lock *lock;
	char byte;

	MUST(hf_lock_acquire(own_locks(1), "x", arg, &lock, NULL, NULL) == 0);
	told->token = hf_lock_token(lock);
	tell(out, 'r');
	while (read(in, &byte, 1) == 1)
		tell(out, '0');
}

/* Runs `body` in a process and waits for its end. */
static void in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		children_forget();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int64_t left_until_expired(uint64_t token)
{
	struct view view = look("x");

	return view.n_holders == 1 && view.first.token == token ? view.first.lease_left_ns : -2;
}

static void wait_until_expired(uint64_t token)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);

	while (left_until_expired(token) != 0) {
		assert_true(hf_mono_left(until) > 0);
		(void)poll(NULL, 0, 2);
	}
}

/* -- admission -------------------------------------------------------------- */

static void holders_admit_exactly_whom_they_may_L1(void **state)
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
	assert_true(blocker.count == 1 && blocker.lease_left_ns == -1);
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
	assert_int_equal(access(hf_test_path("state/locks/name/y"), F_OK), -1);
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

/* Changes the record behind the library's back. */
static void alter_record(void (*change)(struct hf_lock_record *record))
{
	AUTO_FD fd = open(hf_test_path(RECORD), O_RDWR | O_CLOEXEC);
	uint8_t bytes[HF_LOCK_RECORD_MAX];
	struct hf_lock_record record;
	const char *why;
	int n;

	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	ASSERT_OK(hf_lock_record_decode(bytes, sizeof(bytes), &record, &why));
	change(&record);
	n = hf_lock_record_encode(&record, bytes);
	assert_true(n > 0);
	assert_int_equal(pwrite(fd, bytes, (size_t)n, 0), n);
}

static void to_other_boot(struct hf_lock_record *record)
{
	char *digit = &record->holders[0].id.boot_id[0];

	*digit = *digit == '0' ? '1' : '0';
}

static void to_recycled(struct hf_lock_record *record)
{
	if (record->holders[0].id.pidfs_inode)
		record->holders[0].id.pidfs_inode--;
	record->holders[0].id.start_ticks -= 100;
}

static void holder_is_replaced_at_once(const char *reason, int taken_over)
{
	uint64_t before = look("x").token;
	int n = events(HF_EV_LOCK_TAKEN_OVER, NULL);
	struct hf_lock *lock = take("x", NULL);

	assert_true(hf_lock_token(lock) > before);
	assert_int_equal(look("x").n_holders, 1);
	assert_int_equal(events(HF_EV_LOCK_TAKEN_OVER, "reason") - n, taken_over);
	if (reason && !strstr(last_field, reason)) {
		print_error("'%s' does not say '%s'\n", last_field, reason);
		fail();
	}
	give_back(lock);
}

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

static void owner_of_another_boot_or_another_process_is_dead_L4(void **state)
{
	struct child *c = child_start(child_holds, NULL);

	(void)state;
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	alter_record(to_other_boot);
	holder_is_replaced_at_once("boot", 1);
	c = child_start(child_holds, NULL);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	alter_record(to_recycled);
	holder_is_replaced_at_once(NULL, 1);
	assert_int_equal(child_ask(c), '0');
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

/* -- leases ----------------------------------------------------------------- */

static int action_ran;

static int action(void *arg)
{
	action_ran++;
	return *(int *)arg;
}

static void lost_lease_is_refused_everywhere_and_its_successor_untouched_L3_L5(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_lock *lock;
	uint64_t old, next;
	int seven = 7;

	(void)state;
	action_ran = 0;
	opts.ttl_ns = 30 * HF_MSEC;
	lock = take("x", &opts);
	old = hf_lock_token(lock);
	wait_until_expired(old);
	/* Nobody wanted it: it is still ours. */
	ASSERT_OK(hf_lock_check(lock, ERR));
	assert_int_equal(hf_lock_guarded(locks, "x", old, action, &seven, ERR), 7);
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &next));
	assert_true(next > old);
	assert_int_equal(events(HF_EV_LOCK_EXPIRED, NULL), 1);
	ASSERT_ERR(hf_lock_check(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_renew(lock, 0, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_guarded(locks, "x", old, action, &seven, ERR), HF_E_STALE);
	assert_int_equal(action_ran, 1);
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
	opts.ttl_ns = 10 * HF_MSEC;
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
	opts.ttl_ns = 50 * HF_MSEC;
	wait.wait_ns = 10 * HF_SEC;
	ASSERT_OK(try_for(1, "x", opts, &token));
	lock = take("x", &wait);
	assert_true(hf_lock_token(lock) > token);
	assert_int_equal(events(HF_EV_LOCK_EXPIRED, NULL), 1);
	give_back(lock);
}

static void wait_for_it(int in, int out, void *arg)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_locks *own = own_locks(1);
	struct hf_lock *lock;

	(void)in;
	opts.wait_ns = *(int64_t *)arg;
	tell(out, 'r');
	told->r = hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL);
	told->token = told->r == 0 ? hf_lock_token(lock) : 0;
	tell(out, 'd');
}

static void await_waiters(const char *name, size_t n)
{
	struct hf_mono until = hf_mono_in(20 * HF_SEC);

	while (look(name).n_waiters != n) {
		assert_true(hf_mono_left(until) > 0);
		(void)poll(NULL, 0, 1);
	}
}

/* Renews until the other one gives up. Returns 0 when the machine was too slow to tell. */
static int renews_in_time(struct hf_lock *lock, int64_t ttl, int from)
{
	static const struct timeval long_ago[2];
	struct pollfd p = { .fd = from, .events = POLLIN };
	struct hf_mono last = hf_mono_now();

	do {
		int r = hf_lock_renew(lock, 0, ERR);

		if (hf_mono_now().ns - last.ns > ttl / 2)
			return 0;
		ASSERT_OK(r);
		last = hf_mono_now();
		(void)utimes(hf_test_path(RECORD), long_ago);
	} while (poll(&p, 1, 20) == 0);
	return 1;
}

static void holder_that_renews_is_never_robbed_whatever_the_file_says_L4(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	int64_t wait = 900 * HF_MSEC;
	int conclusive = 0;

	(void)state;
	opts.ttl_ns = 300 * HF_MSEC;
	for (int i = 0; i < 5 && !conclusive; i++) {
		struct hf_lock *lock = take("x", &opts);
		struct child *c = child_start(wait_for_it, &wait);

		conclusive = renews_in_time(lock, opts.ttl_ns, c->from);
		child_reap(c);
		if (conclusive) {
			ASSERT_ERR(told->r, HF_E_TIMEOUT);
			ASSERT_OK(hf_lock_check(lock, ERR));
		}
		(void)hf_lock_release(lock, ERR);
		hf_lock_free(lock);
	}
	if (!conclusive)
		HF_SKIP("this machine is too busy to renew in time");
}

static void renewal_can_give_shorten_and_prolong_a_lease(void **state)
{
	struct hf_lock *lock = take("x", NULL);

	(void)state;
	ASSERT_ERR(hf_lock_renew(lock, 0, ERR), -EINVAL); /* it has none */
	ASSERT_OK(hf_lock_renew(lock, HF_LOCK_TTL_MAX, ERR));
	assert_true(look("x").first.lease_left_ns > HF_LOCK_TTL_MAX - 60 * HF_SEC);
	ASSERT_ERR(hf_lock_renew(lock, HF_LOCK_TTL_MAX + 1, ERR), -EINVAL);
	ASSERT_OK(hf_lock_renew(lock, 5 * HF_MSEC, ERR));
	wait_until_expired(hf_lock_token(lock));
	ASSERT_OK(hf_lock_renew(lock, 0, ERR));
	ASSERT_OK(hf_lock_renew_token(locks, "x", hf_lock_token(lock), 60 * HF_SEC, ERR));
	assert_true(look("x").first.lease_left_ns > 50 * HF_SEC);
	give_back(lock);
}

static void to_absurd_lease(struct hf_lock_record *record)
{
	record->holders[0].lease_end_ns = INT64_MAX;
}

static void lease_that_ends_absurdly_late_is_clamped_to_its_length(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_mono until;
	struct hf_lock *lock;
	int r;

	(void)state;
	opts.ttl_ns = 100 * HF_MSEC;
	for (int waiting = 0; waiting < 2; waiting++) {
		ASSERT_OK(try_for(1, "x", opts, NULL));
		alter_record(to_absurd_lease);
		assert_true(look("x").first.lease_left_ns <= opts.ttl_ns);
		/* Who asks again and again must see it end, and so must who waits. */
		until = hf_mono_in(10 * HF_SEC);
		while ((r = try_for(2, "x",
				    (struct hf_lock_opts){ .size = sizeof(struct hf_lock_opts),
							   .wait_ns = waiting ? 5 * HF_SEC : 0 },
				    NULL)) == HF_E_BUSY &&
		       hf_mono_left(until) > 0)
			(void)poll(NULL, 0, 10);
		ASSERT_OK(r);
		ASSERT_OK(hf_lock_break(locks, "x", "test", ERR));
	}
	lock = take("x", NULL);
	give_back(lock);
}

/* -- tokens ----------------------------------------------------------------- */

static void copy_record(const char *from, const char *to)
{
	AUTO_FD in = open(hf_test_path(from), O_RDONLY | O_CLOEXEC);
	AUTO_FD out = open(hf_test_path(to), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char bytes[HF_LOCK_RECORD_MAX];
	ssize_t n = pread(in, bytes, sizeof(bytes), 0);

	assert_true(n > 0 && out >= 0);
	assert_int_equal(pwrite(out, bytes, (size_t)n, 0), n);
}

static void tokens_rise_over_everything_that_happens_to_the_file_L2(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct hf_lock *lock = take("x", NULL);

		assert_true(hf_lock_token(lock) > last);
		last = hf_lock_token(lock);
		give_back(lock);
		if (i % 10 == 3)
			copy_record(RECORD, "older");
		if (i % 10 == 7)
			copy_record("older", RECORD);
		if (i % 10 == 8)
			assert_int_equal(unlink(hf_test_path(RECORD)), 0);
		if (i % 10 == 9)
			assert_int_equal(rename(hf_test_path("older"), hf_test_path(RECORD)), 0);
	}
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
}

static void to_an_hour_ahead(struct hf_lock_record *record)
{
	record->token += UINT64_C(3600) * 1000000;
}

static void tokens_rise_when_the_clock_was_set_back_L2(void **state)
{
	uint64_t ahead, last;

	(void)state;
	give_back(take("x", NULL));
	alter_record(to_an_hour_ahead); /* or else: the clock is an hour behind now */
	ahead = last = look("x").token;
	for (int i = 0; i < 10; i++) {
		struct hf_lock *lock = take("x", NULL);

		assert_true(hf_lock_token(lock) > last);
		last = hf_lock_token(lock);
		give_back(lock);
	}
	assert_true(last < ahead + 1000000);
}

/* The clock was ahead; then the record was lost; then the clock was put right. */
static void tokens_rise_when_the_record_is_lost_and_the_clock_was_set_back_L2(void **state)
{
	struct hf_lock *lock;
	uint64_t last;

	(void)state;
	give_back(take("x", NULL));
	alter_record(to_an_hour_ahead);
	for (int i = 0; i < 3; i++) {
		lock = take("x", NULL);
		last = hf_lock_token(lock);
		give_back(lock);
		assert_int_equal(unlink(hf_test_path(RECORD)), 0);
		lock = take("x", NULL);
		assert_true(hf_lock_token(lock) > last);
		give_back(lock);
	}
	/* That of another name is past it as well; nothing else happens to it. */
	lock = take("never used before", NULL);
	assert_true(hf_lock_token(lock) > last);
	give_back(lock);
}

static void damaged_note_of_the_highest_token_does_no_harm_L2(void **state)
{
	static const char *const texts[] = { "", "short", "this is no number, but it is long enough" };
	uint64_t now = (uint64_t)(hf_wall_now().ns / HF_USEC);

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct hf_lock *lock;

		unlink(hf_test_path("state/locks/name/.token"));
		if (i == 3) {
			assert_int_equal(symlink("/dev/zero", hf_test_path("state/locks/name/.token")), 0);
		} else {
			AUTO_FD fd = open(hf_test_path("state/locks/name/.token"),
					  O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

			assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		}
		unlink(hf_test_path(RECORD));
		lock = take("x", NULL);
		assert_in_range(hf_lock_token(lock), now, now + UINT64_C(60) * 1000000);
		give_back(lock);
	}
}

static void deleted_file_never_makes_an_old_token_current_L5(void **state)
{
	struct hf_lock *lock = take("x", NULL), *next;

	(void)state;
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	ASSERT_ERR(hf_lock_check(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_renew(lock, HF_SEC, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	next = take("x", NULL);
	assert_true(hf_lock_token(next) > hf_lock_token(lock));
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	ASSERT_OK(hf_lock_check(next, ERR));
	give_back(next);
	hf_lock_free(lock);
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

/* -- what may stand in place of a record ------------------------------------- */

/* The lock works afterwards, what was there is out of the way, and one event says so. */
static void is_quarantined_and_the_lock_works(const char *what)
{
	int before = events(HF_EV_RECORD_QUARANTINED, NULL), after;
	struct hf_lock *lock = NULL;
	int r = hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR);

	after = events(HF_EV_RECORD_QUARANTINED, "file");
	if (r < 0 || after != before + 1)
		print_error("%s: %d (%s), %d events\n", what, r, ERR->detail, after - before);
	ASSERT_OK(r);
	assert_int_equal(after, before + 1);
	assert_string_equal(last_field, "locks/name/x");
	assert_int_equal(look("x").n_holders, 1);
	assert_int_equal(look("x").first.id.pid, getpid());
	give_back(lock);
}

static void put_record(const void *bytes, size_t len, mode_t mode)
{
	AUTO_FD fd = -1;

	(void)unlink(hf_test_path(RECORD));
	fd = open(hf_test_path(RECORD), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fchmod(fd, mode) == 0);
	assert_int_equal(write(fd, bytes, len), len);
}

/* A record that a living process holds: were it believed, the lock could not be had. */
static size_t held_record(uint8_t bytes[HF_LOCK_RECORD_MAX])
{
	AUTO_FD fd = -1;
	uint64_t token;
	size_t len;

	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &token));
	fd = open(hf_test_path(RECORD), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, HF_LOCK_RECORD_MAX, 0), HF_LOCK_RECORD_MAX);
	len = (size_t)bytes[16] | (size_t)bytes[17] << 8;
	assert_in_range(len, 128, HF_LOCK_RECORD_MAX);
	return len;
}

static void things_that_are_no_files_are_put_away_untouched_L12(void **state)
{
	struct stat before, after;

	(void)state;
	give_back(take("x", NULL));
	put_record("victim", 6, 0600);
	assert_int_equal(rename(hf_test_path(RECORD), hf_test_path("victim")), 0);
	assert_int_equal(stat(hf_test_path("victim"), &before), 0);

	assert_int_equal(symlink(hf_test_path("victim"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a symlink");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(symlink(hf_test_path("not there"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a dangling symlink");
	assert_int_equal(access(hf_test_path("not there"), F_OK), -1);
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(mkfifo(hf_test_path(RECORD), 0600), 0);
	is_quarantined_and_the_lock_works("a FIFO");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(mkdir(hf_test_path(RECORD), 0700), 0);
	is_quarantined_and_the_lock_works("a directory");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(link(hf_test_path("victim"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a second name of a file elsewhere");

	assert_int_equal(stat(hf_test_path("victim"), &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
}

static void files_that_are_no_records_are_put_away_L12(void **state)
{
	static char zeroes[HF_LOCK_RECORD_MAX];
	uint8_t good[HF_LOCK_RECORD_MAX];

	(void)state;
	(void)held_record(good);
	put_record(good, sizeof(good), 0644);
	is_quarantined_and_the_lock_works("open to others");
	put_record(good, sizeof(good), 0600);
	assert_int_equal(truncate(hf_test_path(RECORD), HF_LOCK_FILE_MAX + 1), 0);
	is_quarantined_and_the_lock_works("larger than any");
	put_record("4711\n", 5, 0600);
	is_quarantined_and_the_lock_works("a pid as text");
	put_record(zeroes, sizeof(zeroes), 0600);
	is_quarantined_and_the_lock_works("zeroes");
}

static void record_cut_at_any_length_is_put_away_L12(void **state)
{
	uint8_t good[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	for (size_t cut = 1; cut < len; cut++) {
		put_record(good, cut, 0600);
		is_quarantined_and_the_lock_works("cut");
	}
	/* What stands behind a record is none of its business. */
	put_record(good, len, 0600);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	/* An empty file is what a crash right after its creation leaves. */
	put_record(good, 0, 0600);
	ASSERT_OK(try_now("x"));
}

static void record_with_any_byte_changed_is_put_away_L12(void **state)
{
	uint8_t good[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	for (size_t at = 0; at < len; at++) {
		good[at] ^= (uint8_t)(1 << at % 8);
		put_record(good, sizeof(good), 0600);
		is_quarantined_and_the_lock_works("one byte changed");
		good[at] ^= (uint8_t)(1 << at % 8);
	}
}

static void sum(uint8_t *bytes, size_t len)
{
	uint64_t h = XXH3_64bits(bytes + 16, len - 16);

	for (int i = 0; i < 8; i++)
		bytes[8 + i] = (uint8_t)(h >> (8 * i));
}

static void put32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Well-formed bytes with a right checksum, whose content makes no sense. */
static void senseless_record_with_a_right_checksum_is_put_away_L12(void **state)
{
	static const struct {
		const char *what;
		size_t at; /* of a 32-bit number in a record of one place and one holder */
		uint32_t value;
	} cases[] = {
		{ "pid 0", 160, 0 },
		{ "pid -1", 160, UINT32_MAX },
		{ "pid huge", 160, 0x80000000U },
		{ "thread -1", 164, UINT32_MAX },
		{ "a place that is not there", 168, 0x00010001U },
		{ "unknown flags", 168, 0x00010800U },
		{ "count 0", 168, 0 },
		{ "token 0", 160 + 42, 0 },
		{ "token past the last", 160 + 46, 0x00ffffffU },
		{ "lease end past all", 160 + 32, 0x80000000U },
		{ "last token past all", 28, 0x7fffffffU },
		{ "first behind next", 32, 5 },
		{ "slots huge", 48, 65 },
		{ "places huge", 52, UINT32_MAX },
		{ "no places", 52, 0 },
		{ "holders huge", 56, UINT32_MAX },
		{ "holders 65", 56, 65 },
		{ "no holders", 56, 0 },
	};
	uint8_t good[HF_LOCK_RECORD_MAX], bytes[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	assert_int_equal(len, 128 + 32 + 58);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bytes, good, sizeof(bytes));
		put32(bytes + cases[i].at, cases[i].value);
		if (strcmp(cases[i].what, "token 0") == 0)
			put32(bytes + cases[i].at + 4, 0);
		sum(bytes, len);
		put_record(bytes, sizeof(bytes), 0600);
		is_quarantined_and_the_lock_works(cases[i].what);
	}
}

static void add_twin(struct hf_lock_record *record)
{
	record->holders[record->n_holders++] = record->holders[0];
}

static void add_exclusive(struct hf_lock_record *record)
{
	add_twin(record);
	record->holders[0].flags = 0;
	record->holders[1].token = ++record->token;
}

static void add_beyond_slots(struct hf_lock_record *record)
{
	record->slots = 1;
	add_twin(record);
	record->holders[1].token = ++record->token;
}

static void impossible_holders_are_put_away_L12(void **state)
{
	(void)state;
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_twin);
	is_quarantined_and_the_lock_works("two holders with one token");
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_exclusive);
	is_quarantined_and_the_lock_works("an exclusive holder beside another");
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_beyond_slots);
	is_quarantined_and_the_lock_works("more holders than slots");
}

static int32_t forged_pid;

static void to_forged_pid(struct hf_lock_record *record)
{
	record->holders[0].id.pid = forged_pid;
}

/* pid 1 and the largest pid are possible owners; with a wrong identity they are dead ones. */
static void forged_pid_is_judged_and_never_signalled_L4(void **state)
{
	static const int32_t pids[] = { 1, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hf_lock *lock = take("x", NULL);

		hf_lock_free(lock);
		forged_pid = pids[i];
		alter_record(to_forged_pid);
		holder_is_replaced_at_once(NULL, 1);
	}
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
}

static void to_last_token(struct hf_lock_record *record)
{
	record->token = UINT64_C(9007199254740991);
}

/* Were the next one given, nobody could read the record that says so. */
static void tokens_that_have_run_out_never_let_two_in_L1(void **state)
{
	struct hf_lock *lock = NULL, *second = NULL;

	(void)state;
	give_back(take("x", NULL));
	alter_record(to_last_token);
	(void)!hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR);
	(void)!try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), NULL);
	if (lock)
		ASSERT_OK(hf_lock_check(lock, ERR));
	hf_lock_free(lock);
	hf_lock_free(second);
}

static void try_once(int in, int out, void *arg)
{
	struct hf_locks *own = own_locks(1);
	struct hf_lock *lock;

	(void)in;
	(void)arg;
	tell(out, 'r');
	told->r = hf_lock_acquire(own, "x", NULL, &lock, NULL, NULL);
	tell(out, 'd');
}

/* How often that process has the file open. */
static int times_open(pid_t pid, const char *path)
{
	char at[64], target[512];
	int times = 0;

	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(at, sizeof(at), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(at, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		times += strcmp(target, path) == 0;
	}
	return times;
}

/* What was distrusted and replaced while one waited for it says nothing about its successor. */
static void good_record_is_never_put_away_for_a_bad_one_L1_L12(void **state)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	struct hf_lock *lock;
	struct child *c;
	int fd;

	(void)state;
	put_record("", 0, 0644);
	fd = open(hf_test_path(RECORD), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	c = child_start(try_once, NULL);
	/* Once by inheritance, and once because it waits for it. */
	while (times_open(c->pid, hf_test_path(RECORD)) < 2)
		assert_true(hf_mono_left(until) > 0);
	assert_int_equal(rename(hf_test_path(RECORD), hf_test_path("put away")), 0);
	lock = take("x", NULL);
	assert_int_equal(flock(fd, LOCK_UN), 0); /* now the old file is the child's */
	assert_int_equal(hear(c->from), 'd');
	ASSERT_ERR(told->r, HF_E_BUSY);
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
	ASSERT_OK(hf_lock_check(lock, ERR));
	give_back(lock);
	close(fd);
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
	opts.ttl_ns = HF_SEC;
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
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &quiet, ERR));
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
	opts.ttl_ns = HF_MSEC;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(holders_admit_exactly_whom_they_may_L1),
		LOCK_TEST(the_last_of_64_is_let_in_and_the_next_is_not_L1),
		LOCK_TEST(mode_changes_only_through_a_free_lock_L1),
		LOCK_TEST(busy_names_the_holder_and_what_proves_it_alive),
		LOCK_TEST(wrong_arguments_are_refused),
		LOCK_TEST(names_that_look_alike_are_different_locks_L12),
		LOCK_TEST(name_of_80_bytes_works_and_of_81_is_refused_L12),
		LOCK_TEST(taking_it_twice_is_a_deadlock_with_oneself),
		LOCK_TEST(reentrant_is_counted_and_released_as_often),
		LOCK_TEST(reentrant_never_turns_shared_into_exclusive_L1),
		LOCK_TEST(two_threads_are_two_contenders_and_may_pass_a_handle_L1),
		LOCK_TEST(threads_of_one_context_exclude_each_other_L1_L2),
		LOCK_TEST(release_by_another_changes_nothing_and_leaves_one_event_L3_L8),
		LOCK_TEST(owner_releases_without_its_token_L3),
		LOCK_TEST(forked_child_can_free_but_not_release_L3_L13),
		LOCK_TEST(surviving_child_does_not_keep_its_parents_lock_L4),
		LOCK_TEST(owner_that_has_ended_gets_nothing_L4),
		LOCK_TEST(dead_owner_is_replaced_at_once_L4_L8),
		LOCK_TEST(owner_of_another_boot_or_another_process_is_dead_L4),
		LOCK_TEST(free_on_exit_is_a_release_and_no_take_over_L8),
		LOCK_TEST(dead_one_of_many_is_replaced_and_the_others_stay_L4),
		LOCK_TEST(unknown_owner_counts_as_alive_until_it_is_broken_L4),
		LOCK_TEST(break_takes_it_from_all_and_from_nobody_else),
		LOCK_TEST(lost_lease_is_refused_everywhere_and_its_successor_untouched_L3_L5),
		LOCK_TEST(guarded_action_runs_for_the_current_token_and_returns_its_result_L5),
		LOCK_TEST(expired_holder_may_take_it_again_itself),
		LOCK_TEST(lease_ends_an_unknown_owner_L4),
		LOCK_TEST(holder_that_renews_is_never_robbed_whatever_the_file_says_L4),
		LOCK_TEST(renewal_can_give_shorten_and_prolong_a_lease),
		LOCK_TEST(lease_that_ends_absurdly_late_is_clamped_to_its_length),
		LOCK_TEST(tokens_rise_over_everything_that_happens_to_the_file_L2),
		LOCK_TEST(tokens_rise_when_the_clock_was_set_back_L2),
		LOCK_TEST(tokens_rise_when_the_record_is_lost_and_the_clock_was_set_back_L2),
		LOCK_TEST(damaged_note_of_the_highest_token_does_no_harm_L2),
		LOCK_TEST(deleted_file_never_makes_an_old_token_current_L5),
		LOCK_TEST(look_shows_holders_and_waiters_in_order),
		LOCK_TEST(second_owner_keeps_the_lock_when_the_first_dies_L4_L7),
		LOCK_TEST(slot_of_two_owners_is_one_slot_and_free_when_both_are_dead_L1_L7),
		LOCK_TEST(second_owners_leave_room_for_every_slot_L1),
		LOCK_TEST(hold_of_two_owners_is_renewed_released_and_broken_as_one_L3_L8),
		LOCK_TEST(shared_locks_and_the_dead_take_no_second_owner),
		LOCK_TEST(list_shows_every_lock_once_by_its_own_name),
		LOCK_TEST(things_that_are_no_files_are_put_away_untouched_L12),
		LOCK_TEST(files_that_are_no_records_are_put_away_L12),
		LOCK_TEST(record_cut_at_any_length_is_put_away_L12),
		LOCK_TEST(record_with_any_byte_changed_is_put_away_L12),
		LOCK_TEST(senseless_record_with_a_right_checksum_is_put_away_L12),
		LOCK_TEST(impossible_holders_are_put_away_L12),
		LOCK_TEST(forged_pid_is_judged_and_never_signalled_L4),
		LOCK_TEST(tokens_that_have_run_out_never_let_two_in_L1),
		LOCK_TEST(good_record_is_never_put_away_for_a_bad_one_L1_L12),
		LOCK_TEST(process_is_left_as_it_was_L13),
		LOCK_TEST(without_a_journal_everything_works_but_the_events),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock", tests);
}
