/*
 * tests/helper/lock_cases.h - what the tests of one lock share: contenders, what is seen of a lock,
 * and its events. Header only, on top of lock_helper.h.
 *
 * Contenders are processes, threads, and "strangers": identities of another pid namespace, which
 * nobody here can judge and which therefore count as alive.
 */
#ifndef TESTS_LOCK_CASES_H
#define TESTS_LOCK_CASES_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_helper.h"
#include "helper/proc_helper.h"
#include "helper/test.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

static struct hf_journal *journal;
static struct hf_locks *locks;

/* What forked processes tell the test. */
static struct answers {
	int r, other;
	uint64_t token;
	char detail[256];
} *told;

static inline int lock_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	lock_store_next();
	memset(told, 0, sizeof(*told));
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_locks_open_store(lock_store_url, hf_test_state(), journal, &locks, ERR));
	return 0;
}

static inline int lock_teardown(void **state)
{
	hf_locks_free(locks);
	hf_journal_free(journal);
	locks = NULL;
	journal = NULL;
	return proc_test_teardown(state);
}

#define LOCK_TEST(fn) { #fn, fn, lock_setup, lock_teardown, NULL }

static inline struct hf_lock_opts opts_of(enum hf_lock_mode mode, unsigned slots)
{
	return (struct hf_lock_opts){
		.size = sizeof(struct hf_lock_opts), .mode = mode, .slots = slots };
}

/* A process that cannot be judged from here: it counts as alive. */
static inline struct hf_proc_id stranger(int number)
{
	struct hf_proc_id id;

	ASSERT_OK(hf_proc_self(&id, ERR));
	id.pid_ns++;
	id.pid = 1000 + number;
	id.pidfs_inode = id.pidfs_inode ? 1000 + (uint64_t)number : 0;
	return id;
}

static inline struct hf_lock *take(const char *name, const struct hf_lock_opts *opts)
{
	struct hf_lock *lock = NULL;

	ASSERT_OK(hf_lock_acquire(locks, name, opts, &lock, NULL, ERR));
	return lock;
}

/* Tries; what was taken is kept, only its handle is not. */
static inline int try_for(int number, const char *name, struct hf_lock_opts opts, uint64_t *token)
{
	struct hf_proc_id owner = stranger(number);
	struct hf_lock *lock = NULL;
	int r;

	opts.owner = &owner;
	if (token)
		*token = 0;
	r = hf_lock_acquire(locks, name, &opts, &lock, NULL, ERR);
	if (r == 0 && token)
		*token = hf_lock_token(lock);
	hf_lock_free(lock);
	return r;
}

static inline int try_now(const char *name)
{
	struct hf_lock *lock = NULL;
	int r = hf_lock_acquire(locks, name, NULL, &lock, NULL, ERR);

	hf_lock_free(lock);
	return r;
}

static inline void give_back(struct hf_lock *lock)
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

static inline void keep_view(void *arg, const struct hf_lock_info *info)
{
	struct view *view = arg;

	view->token = info->token;
	view->slots = info->slots;
	view->n_holders = info->n_holders;
	view->n_waiters = info->n_waiters;
	if (info->n_holders > 0)
		view->first = info->holders[0];
}

static inline struct view look(const char *name)
{
	struct view view = { 0 };

	ASSERT_OK(hf_lock_look(locks, name, keep_view, &view, ERR));
	return view;
}

/* How many events of that kind there are, and one field of the last. */
static char last_field[512];

static inline int events(enum hf_event event, const char *field)
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
static inline void child_holds(int in, int out, void *arg)
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
static inline void in_child(void (*body)(void))
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

static inline int64_t left_until_expired(uint64_t token)
{
	struct view view = look("x");

	return view.n_holders == 1 && view.first.token == token ? view.first.lease_left_ns : -2;
}

static inline void wait_until_expired(uint64_t token)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);

	while (left_until_expired(token) != 0) {
		assert_true(hf_mono_left(until) > 0);
		(void)poll(NULL, 0, 2);
	}
}

static int action_ran;

static inline int action(void *arg)
{
	action_ran++;
	return *(int *)arg;
}

static inline void wait_for_it(int in, int out, void *arg)
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

static inline void await_waiters(const char *name, size_t n)
{
	struct hf_mono until = hf_mono_in(20 * HF_SEC);

	while (look(name).n_waiters != n) {
		assert_true(hf_mono_left(until) > 0);
		(void)poll(NULL, 0, 1);
	}
}

/* The next to ask for "x" gets it; `reason` stands in the event, if there is one. */
static inline void holder_is_replaced_at_once(const char *reason, int taken_over)
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

#endif
