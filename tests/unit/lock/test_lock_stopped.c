/*
 * unit/lock/test_lock_stopped.c - processes that are stopped, at any place of the queue and inside the
 * guard, and waits that are cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "helper/lock_workers.h"
#include "hf/lock/local/record/record.h"
#include "hf/sys/calls.h"

#define QUEUED 8

static void stop(struct worker *w)
{
	kill(w->pid, SIGSTOP);
	await_stopped(w->pid);
}

/* QUEUED waiters behind a holder. They are served as soon as it goes. */
struct line {
	char name[8];
	struct worker *holder;
	struct worker *waiters[QUEUED];
	unsigned stopped; /* one bit for each place */
};

static void form_line(struct line *line, int number, unsigned stopped, int dies)
{
	snprintf(line->name, sizeof(line->name), "x%d", number);
	line->holder = worker(line->name, -1);
	line->holder->keep = 1;
	line->stopped = stopped;
	for (int i = -1; i < QUEUED; i++) {
		struct worker *w = i < 0 ? line->holder : worker(line->name, -1);

		w->dies = dies;
		w->opts.flags = dies ? HF_LOCK_FREE_ON_EXIT : 0;
		if (i < 0) {
			start(w);
			AWAIT(w->got);
			continue;
		}
		line->waiters[i] = w;
		start_in_queue(w, line->name, (size_t)i + 1);
	}
}

/* A line for each of `stopped`; those places are stopped when only an event wakes the others. */
static void form(struct line *lines, int n, const unsigned *stopped, int dies)
{
	for (int i = 0; i < n; i++)
		form_line(&lines[i], i, stopped[i], dies);
	/* The last to come is the last to look for a deadlock, which it does once. */
	await_quiet(lines[n - 1].waiters[QUEUED - 1]->pid);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < QUEUED; k++)
			if (stopped[i] >> k & 1)
				stop(lines[i].waiters[k]);
}

static int is_served(const struct line *line)
{
	for (int i = 0; i < QUEUED; i++)
		if (!(line->stopped >> i & 1) && !line->waiters[i]->done)
			return 0;
	return 1;
}

/* All of them but the stopped ones are served within `turns`; those when they are continued. */
static void serve(struct line *lines, int n, int turns)
{
	int64_t began = hf_mono_now().ns;

	for (int i = 0; i < n; i++)
		lines[i].holder->go = 1;
	for (int i = 0; i < n; i++) {
		AWAIT(is_served(&lines[i]));
		for (int k = 0; k < QUEUED; k++) {
			int64_t took = lines[i].waiters[k]->got_at - began;

			if (lines[i].stopped >> k & 1)
				continue;
			if (took >= turns * HF_LOCK_TURN_NS + SLACK)
				print_error("%#x stopped, place %d: %lld ms\n", lines[i].stopped, k,
					    (long long)(took / HF_MSEC));
			assert_true(took < turns * HF_LOCK_TURN_NS + SLACK);
		}
	}
	for (int i = 0; i < n; i++) {
		finish(lines[i].holder);
		for (int k = 0; k < QUEUED; k++) {
			if (lines[i].stopped >> k & 1) {
				assert_int_equal(lines[i].waiters[k]->got, 0);
				kill(lines[i].waiters[k]->pid, SIGCONT);
			}
			finish(lines[i].waiters[k]);
			assert_int_equal(lines[i].waiters[k]->r, 0);
		}
	}
}

/* One bit for each place: 1, 2, 3 and 5 neighbours at the front, in the middle and at the end; every other one; all but the last. */
static const unsigned stopped_places[] = { 0x01, 0x03, 0x07, 0x1f, 0x08, 0x18, 0x1c, 0x3e,
					   0x80, 0xc0, 0xe0, 0xf8, 0x55, 0x7f };
#define LINES (int)(sizeof(stopped_places) / sizeof(stopped_places[0]))

static void stop_some_at_all_places(int dies)
{
	struct line lines[LINES];

	form(lines, LINES, stopped_places, dies);
	serve(lines, LINES, 2);
}

static void any_number_stopped_at_any_place_delays_the_rest_by_two_turns_where_holders_release_L4(void **state)
{
	(void)state;
	stop_some_at_all_places(0);
}

static void any_number_stopped_at_any_place_delays_the_rest_by_two_turns_where_holders_exit_L4(void **state)
{
	(void)state;
	stop_some_at_all_places(1);
}

static int (*real_poll)(struct pollfd *fds, nfds_t n, int timeout_ms);

/* The token is in the channel, and it stops before it can read it. */
static int poll_and_stop(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int r = real_poll(fds, n, timeout_ms);

	if (sh->scratch && r > 0 && fds[0].revents & POLLIN) {
		hf_sys.poll = real_poll;
		raise(SIGSTOP);
	}
	return r;
}

static void stop_when_told(void)
{
	real_poll = hf_sys.poll;
	hf_sys.poll = poll_and_stop;
}

/* The one that gives it the lock sees that it runs, and says nothing to those behind it. */
static void waiter_stopped_in_the_moment_it_is_told_delays_the_rest_by_two_turns_L4(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *ws[4];
	int64_t began;

	(void)state;
	no_looks_for_a_deadlock();
	for (size_t i = 0; i < 4; i++) {
		ws[i] = worker("x", -1);
		if (i == 1)
			ws[i]->prepare = stop_when_told;
		start_in_queue(ws[i], "x", i + 1);
	}
	await_quiet(ws[3]->pid);
	ws[0]->keep = 1;
	give_back(lock);
	AWAIT(ws[0]->got);
	sh->scratch = 1;
	began = hf_mono_now().ns;
	ws[0]->go = 1;
	await_stopped(ws[1]->pid);
	finish(ws[2]);
	finish(ws[3]);
	assert_true(ws[3]->got_at - began < 2 * HF_LOCK_TURN_NS + SLACK);
	kill(ws[1]->pid, SIGCONT);
	finish(ws[1]);
	finish(ws[0]);
	assert_idle("x");
}

/* Where holders remain, the record must still say that the stopped one is none of them any more. */
static void revoke_one(enum hf_lock_mode mode, unsigned slots)
{
	struct hf_lock_opts all = { .size = sizeof(all), .mode = mode, .slots = slots };
	struct worker *stays = worker("x", -1), *stopped = worker("x", -1), *last = worker("x", -1);
	struct hf_lock *locked[2] = { NULL, NULL };

	stays->opts.mode = stopped->opts.mode = mode;
	stays->opts.slots = stopped->opts.slots = slots;
	stays->keep = 1;
	if (mode == HF_LOCK_SLOTS)
		last->opts.mode = mode, last->opts.slots = slots;
	if (mode == HF_LOCK_SLOTS)
		ASSERT_OK(hf_lock_acquire(locks, "x", &all, &locked[1], NULL, ERR));
	if (mode == HF_LOCK_SHARED)
		all.mode = HF_LOCK_EXCLUSIVE;
	ASSERT_OK(hf_lock_acquire(locks, "x", &all, &locked[0], NULL, ERR));
	start_in_queue(stays, "x", 1);
	start_in_queue(stopped, "x", 2);
	start_in_queue(last, "x", 3);
	await_quiet(last->pid);
	stop(stopped);
	give_back(locked[0]);
	if (locked[1])
		give_back(locked[1]);
	AWAIT(stays->got);
	if (mode == HF_LOCK_SHARED) {
		/* The token is taken back while the other reader holds the lock... */
		AWAIT(look("x").n_holders == 1);
		assert_int_equal(look("x").holder, stays->pid);
		assert_int_equal(last->got, 0);
	} else {
		finish(last);
	}
	/* ...and when that one goes, there is nobody left to wait for. */
	stays->go = 1;
	finish(stays);
	if (mode == HF_LOCK_SHARED)
		finish(last);
	kill(stopped->pid, SIGCONT);
	finish(stopped);
	assert_int_equal(stopped->r, 0);
	assert_true(stopped->token > last->token);
	assert_idle("x");
}

static void revoked_token_of_a_reader_is_gone_from_the_record_while_another_reads_L1_L4(void **state)
{
	(void)state;
	revoke_one(HF_LOCK_SHARED, 0);
}

static void revoked_slot_goes_to_the_next_while_another_is_held_L1_L4(void **state)
{
	(void)state;
	revoke_one(HF_LOCK_SLOTS, 2);
}

static ssize_t (*real_read)(int fd, void *to, size_t len);

/* It has taken the token out of the other's channel; that is all it still did. */
static ssize_t read_and_die(int fd, void *to, size_t len)
{
	ssize_t n = real_read(fd, to, len);
	uint64_t message = 0;

	if (n == 8 && len == 8)
		memcpy(&message, to, 8);
	if (message > 1)
		raise(SIGKILL);
	return n;
}

static void die_when_it_takes_a_token(void)
{
	real_read = hf_sys.read;
	hf_sys.read = read_and_die;
}

static int (*real_poll)(struct pollfd *fds, nfds_t n, int timeout_ms);

/* Only a message or a death wakes it. */
static int poll_without_a_clock(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return real_poll(fds, n, timeout_ms > 0 ? -1 : timeout_ms);
}

static void sleep_without_a_clock(void)
{
	real_poll = hf_sys.poll;
	hf_sys.poll = poll_without_a_clock;
}

static void token_taken_back_by_a_process_that_is_killed_then_is_not_lost_L4(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *killed = worker("x", -1);
	int status;

	(void)state;
	first->prepare = sleep_without_a_clock;
	killed->prepare = die_when_it_takes_a_token;
	start_in_queue(first, "x", 1);
	start_in_queue(killed, "x", 2);
	await_quiet(killed->pid);
	stop(first);
	give_back(lock);
	status = reap_worker(killed); /* by its own hand */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	kill(first->pid, SIGCONT);
	finish(first);
	assert_int_equal(first->r, 0);
	ASSERT_OK(try_now("x"));
}

/* -- a process is stopped inside the guard ------------------------------------------ */

static int hold_guard(const char *path)
{
	int fd = open(hf_test_path(path), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	return fd;
}

/* Explicitly: a worker that was started meanwhile has the descriptor as well. */
static void leave_guard(int fd)
{
	assert_int_equal(flock(fd, LOCK_UN), 0);
	close(fd);
}

/* Longer than the bound of those that have one. */
#define BOUND (50 * HF_MSEC)

static void release_is_not_lost_while_a_process_is_stopped_inside_the_guard_L4(void **state)
{
	struct worker *holder = worker("x", 0), *next = worker("x", -1), *late = worker("x", -1);
	int fd;

	(void)state;
	holder->keep = 1;
	holder->guard_wait_ns = next->guard_wait_ns = late->guard_wait_ns = BOUND;
	start(holder);
	AWAIT(holder->got);
	start_in_queue(next, "x", 1);
	fd = hold_guard("state/locks/name/x");
	holder->go = 1;
	start(late);
	AWAIT(late->started);
	(void)poll(NULL, 0, (int)(4 * BOUND / HF_MSEC));
	assert_int_equal(holder->done + next->done + late->done, 0);
	leave_guard(fd);
	finish(holder); /* which fails unless its release returned 0 */
	finish(next);
	finish(late);
	assert_int_equal(next->r, 0);
	/* For ever is for ever. */
	assert_int_equal(late->r, 0);
	assert_idle("x");
}

static void try_says_busy_while_a_process_is_stopped_inside_the_guard(void **state)
{
	struct hf_lock *lock = take("x"), *second = NULL;
	struct hf_holder blocker;
	int fd = hold_guard("state/locks/name/x");

	(void)state;
	((struct hf_local *)hf_locks_store(locks))->guard_wait_ns = BOUND;
	ASSERT_ERR(hf_lock_acquire(locks, "x", NULL, &second, &blocker, ERR), HF_E_BUSY);
	assert_int_equal(blocker.id.pid, 0);
	ASSERT_ERR(hf_lock_renew(lock, HF_SEC, ERR), -ETIMEDOUT);
	leave_guard(fd);
	give_back(lock);
	assert_idle("x");
}

/* -- cancelled ------------------------------------------------------------------------ */

static int cancel_pipe[2];

static void wait_for_a_guard_is_cancelled_as_well(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1);
	int fd = hold_guard("state/locks/name/x");

	(void)state;
	assert_int_equal(pipe2(cancel_pipe, O_CLOEXEC), 0);
	w->opts.cancel_fd = cancel_pipe[0];
	start(w);
	AWAIT(w->started);
	assert_int_equal(write(cancel_pipe[1], "x", 1), 1);
	finish(w);
	assert_int_equal(w->r, HF_E_CANCELLED);
	leave_guard(fd);
	close(cancel_pipe[0]);
	close(cancel_pipe[1]);
	give_back(lock);
	assert_idle("x");
}

/* -- an older record is put back --------------------------------------------------------- */

static void older_record_put_back_while_processes_wait_stops_none_of_them(void **state)
{
	static char copy[HF_LOCK_FILE_MAX];
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *second = worker("x", -1), *third = worker("x", -1);
	ssize_t size;
	int fd;

	(void)state;
	start_in_queue(first, "x", 1);
	fd = open(hf_test_path("state/locks/name/x"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	size = pread(fd, copy, sizeof(copy), 0);
	assert_true(size > 0 && flock(fd, LOCK_UN) == 0);
	start_in_queue(second, "x", 2);
	/* The ring as it was has nothing behind the first waiter. */
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_true(ftruncate(fd, size) == 0 && pwrite(fd, copy, (size_t)size, 0) == size);
	leave_guard(fd);
	start(third); /* its ticket would be that of the second */
	AWAIT(third->done || look("x").n_waiters == 3);
	assert_int_equal(third->r, 0);
	give_back(lock);
	finish(first);
	finish(second);
	finish(third);
	assert_int_equal(first->r + second->r + third->r, 0);
	assert_idle("x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(any_number_stopped_at_any_place_delays_the_rest_by_two_turns_where_holders_release_L4),
		WAIT_TEST(any_number_stopped_at_any_place_delays_the_rest_by_two_turns_where_holders_exit_L4),
		WAIT_TEST(waiter_stopped_in_the_moment_it_is_told_delays_the_rest_by_two_turns_L4),
		WAIT_TEST(revoked_token_of_a_reader_is_gone_from_the_record_while_another_reads_L1_L4),
		WAIT_TEST(revoked_slot_goes_to_the_next_while_another_is_held_L1_L4),
		WAIT_TEST(token_taken_back_by_a_process_that_is_killed_then_is_not_lost_L4),
		WAIT_TEST(release_is_not_lost_while_a_process_is_stopped_inside_the_guard_L4),
		WAIT_TEST(try_says_busy_while_a_process_is_stopped_inside_the_guard),
		WAIT_TEST(wait_for_a_guard_is_cancelled_as_well),
		WAIT_TEST(older_record_put_back_while_processes_wait_stops_none_of_them),
	};

	proc_test_begin();
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("lock_stopped", tests);
}
