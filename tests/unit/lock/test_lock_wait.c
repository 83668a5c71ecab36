/*
 * unit/lock/test_lock_wait.c - waiting without polling and without a herd, and not for ever.
 *
 * Waiters are processes. What they do and see stands in shared memory; that they wait is
 * seen in the queue (hf_lock_look), never guessed from time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/lock_workers.h"
#include "helper/test.h"
#include "hf/lock/local/record/record.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"

/* -- no polling, no herd ------------------------------------------------------ */

static int strace_works(void)
{
	return system("strace -o /dev/null true >/dev/null 2>&1") == 0;
}

/* System calls that `pid` enters within 1.5 s. */
static int count_calls(pid_t pid)
{
	char command[256], line[512];
	int n = 0;
	FILE *out;

	snprintf(command, sizeof(command), "timeout -s INT 1.5 strace -f -o '%s' -p %d 2>&1",
		 hf_test_path("trace"), (int)pid);
	out = popen(command, "r");
	MUST(out);
	while (fgets(line, sizeof(line), out))
		continue;
	pclose(out);
	out = fopen(hf_test_path("trace"), "re");
	if (!out)
		return -1;
	while (fgets(line, sizeof(line), out)) {
		/* The call that it sleeps in is shown when strace attaches, and again as restarted. */
		n += strstr(line, "restart_syscall") || strstr(line, "SIG") ||
				     strstr(line, "resumed") || strstr(line, "+++")
			     ? 0
			     : 1;
	}
	fclose(out);
	return n;
}

/* Within a turn: open, read and close the record, judge the holder, sleep on. */
#define PEEK_CALLS 10

static void idle_waiter_makes_no_system_calls_but_to_peek_once_a_turn_behind_others(void **state)
{
	struct hf_lock *lock;
	struct worker *first = worker("x", 60 * HF_SEC), *second = worker("x", -1),
		      *third = worker("x", -1);

	(void)state;
	if (!strace_works())
		HF_SKIP("strace cannot be used here");
	lock = take("x");
	no_looks_for_a_deadlock();
	start_in_queue(first, "x", 1);
	start_in_queue(second, "x", 2);
	start_in_queue(third, "x", 3);
	await_quiet(first->pid);
	await_quiet(third->pid);
	/* Only the poll that it was found in. */
	assert_in_range(count_calls(first->pid), 0, 1);
	assert_in_range(count_calls(third->pid), 0, 1 + PEEK_CALLS);
	give_back(lock);
	finish(first);
	finish(second);
	finish(third);
	assert_idle("x");
}

/* Its channel may still be open; what is in it is not for it, and must not look like a token. */
static void waiter_behind_a_former_waiter_sleeps_without_a_clock(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *holder = worker("x", -1), *next = worker("x", -1);
	long before;

	(void)state;
	no_looks_for_a_deadlock();
	holder->keep = 1;
	start_in_queue(holder, "x", 1);
	give_back(lock);
	AWAIT(holder->got);
	start_in_queue(next, "x", 1);
	await_quiet(next->pid);
	before = switches(next->pid);
	(void)poll(NULL, 0, (int)(HF_LOCK_TURN_NS / HF_MSEC) + 300);
	assert_int_equal(switches(next->pid), before);
	holder->go = 1;
	finish(holder);
	finish(next);
	assert_idle("x");
}

static volatile int *wakes; /* of this process, in shared memory */
static int (*real_poll)(struct pollfd *fds, nfds_t n, int timeout_ms);

static int poll_and_count(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int r = real_poll(fds, n, timeout_ms);

	if (r > 0 && timeout_ms != 0)
		(*wakes)++;
	return r;
}

static void count_wakes(void)
{
	for (int i = 0; i < n_workers; i++)
		if (!sh->workers[i].started)
			wakes = &sh->workers[i].wakes;
	real_poll = hf_sys.poll;
	hf_sys.poll = poll_and_count;
}

static char state_of(pid_t pid)
{
	struct hf_stat stat;

	MUST(hf_stat_read(pid, &stat) == 0);
	return stat.state;
}

/*
 * A process that is woken is runnable at once; so one that sleeps and has not counted was not
 * woken, however slow the machine is. What its own clock does is not counted.
 */
static void one_release_wakes_exactly_one_of_ten(void **state)
{
	struct hf_lock *lock = take("x");
	int before[10];

	(void)state;
	no_looks_for_a_deadlock();
	for (size_t i = 0; i < 10; i++) {
		struct worker *w = worker("x", -1);

		w->keep = 1;
		w->prepare = count_wakes;
		start_in_queue(w, "x", i + 1);
	}
	for (int i = 0; i < 10; i++)
		await_quiet(sh->workers[i].pid);
	for (int i = 0; i < 10; i++)
		before[i] = sh->workers[i].wakes;
	give_back(lock);
	AWAIT(sh->workers[0].got);
	for (int i = 1; i < 10; i++) {
		AWAIT(state_of(sh->workers[i].pid) == 'S');
		assert_int_equal(sh->workers[i].wakes, before[i]);
	}
	assert_int_equal(sh->workers[0].wakes, before[0] + 1);
	for (int i = 0; i < 10; i++)
		sh->workers[i].go = 1;
	for (int i = 0; i < 10; i++)
		finish(&sh->workers[i]);
	assert_idle("x");
}

static int (*real_pidfd_open)(pid_t pid, unsigned flags);
static ssize_t (*real_write_quiet)(int fd, const void *from, size_t len);
static int woken; /* this process has slept and was woken */

static int poll_and_note(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int r = real_poll(fds, n, timeout_ms);

	woken |= r > 0 && timeout_ms != 0;
	return r;
}

static int pidfd_open_and_count(pid_t pid, unsigned flags)
{
	*wakes += woken;
	return real_pidfd_open(pid, flags);
}

static ssize_t write_and_count(int fd, const void *from, size_t len)
{
	*wakes += woken;
	return real_write_quiet(fd, from, len);
}

static void count_questions(void)
{
	count_wakes();
	hf_sys.poll = poll_and_note;
	real_pidfd_open = hf_sys.pidfd_open;
	hf_sys.pidfd_open = pidfd_open_and_count;
	real_write_quiet = hf_sys.write_quiet;
	hf_sys.write_quiet = write_and_count;
}

/* Each would be between the death and the next holder. */
static void waiter_that_saw_its_holder_die_neither_asks_again_nor_tells_itself_L4(void **state)
{
	struct worker *holder = worker("x", 0), *next = worker("x", -1);

	(void)state;
	no_looks_for_a_deadlock();
	holder->keep = next->keep = 1;
	next->prepare = count_questions;
	start(holder);
	AWAIT(holder->got);
	start_in_queue(next, "x", 1);
	await_quiet(next->pid);
	kill(holder->pid, SIGKILL);
	AWAIT(next->got);
	assert_int_equal(next->wakes, 0);
	(void)reap_worker(holder);
	next->go = 1;
	finish(next);
	assert_idle("x");
}

static void waiter_notices_that_the_file_was_deleted(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1);

	(void)state;
	start_in_queue(w, "x", 1);
	assert_int_equal(unlink(hf_test_path("state/locks/name/x")), 0);
	/* Its place is gone with the file; the process that notices that calls it. */
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_lock_free(lock);
	finish(w);
	assert_int_equal(w->r, 0);
	assert_idle("x");
}

/* -- a process stopped inside a guard -------------------------------------------- */

static void timeout_holds_when_a_process_is_stopped_inside_the_guard(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", 2 * HF_SEC);
	int fd;

	(void)state;
	start_in_queue(w, "x", 1);
	fd = open(hf_test_path("state/locks/name/x"), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	AWAIT(w->done);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	close(fd);
	finish(w);
	assert_int_equal(w->r, HF_E_TIMEOUT);
	assert_true(w->took_ns < 2 * HF_SEC + SLACK);
	give_back(lock);
	ASSERT_OK(try_now("x"));
	assert_idle("x");
}

static void timeout_holds_when_a_process_is_stopped_inside_another_guard(void **state)
{
	struct hf_lock *lock = take("x"), *other = take("y");
	struct worker *w = worker("x", 300 * HF_MSEC);
	int fd = open(hf_test_path("state/locks/name/y"), O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	start(w);
	AWAIT(w->done);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	close(fd);
	finish(w);
	assert_int_equal(w->r, HF_E_TIMEOUT);
	assert_true(w->took_ns < 300 * HF_MSEC + SLACK);
	give_back(other);
	give_back(lock);
	assert_idle("x");
}

/* As if so many had come, and given up, since the last of the waiters. */
static void pass_tickets(uint64_t n)
{
	uint8_t page[HF_LOCK_RECORD_MAX];
	struct hf_lock_record record;
	const char *why;
	int fd = open(hf_test_path("state/locks/name/x"), O_RDWR | O_CLOEXEC), len;

	assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
	assert_int_equal(pread(fd, page, sizeof(page), 0), sizeof(page));
	ASSERT_OK(hf_lock_record_decode(page, sizeof(page), &record, &why));
	record.next += n;
	len = hf_lock_record_encode(&record, page);
	assert_int_equal(pwrite(fd, page, (size_t)len, 0), len);
	close(fd);
}

/* The ring has a place for each waiter, not for each that ever waited. */
static void waiters_that_gave_up_take_no_place_from_others(void **state)
{
	static const uint64_t gaps[] = { 100, HF_LOCK_QUEUE_MAX - 102, HF_LOCK_QUEUE_MAX - 1,
					 3 * HF_LOCK_QUEUE_MAX + 5, UINT64_C(1) << 40 };
	const int n = sizeof(gaps) / sizeof(gaps[0]);
	struct hf_lock *lock = take("x");

	(void)state;
	for (int i = 0; i <= n; i++) {
		start_in_queue(worker("x", -1), "x", i + 1);
		if (i < n)
			pass_tickets(gaps[i]);
	}
	/* Gives up as well, perhaps before anybody can see it wait, and leaves the others as they are. */
	start(worker("x", 200 * HF_MSEC));
	finish(&sh->workers[n + 1]);
	assert_int_equal(sh->workers[n + 1].r, HF_E_TIMEOUT);
	assert_int_equal(look("x").n_waiters, n + 1);
	give_back(lock);
	for (int i = 0; i <= n; i++) {
		finish(&sh->workers[i]);
		ASSERT_OK(sh->workers[i].r);
		assert_int_equal(sh->workers[i].order, i + 1);
		assert_true(sh->workers[i].took_ns < 20 * HF_SEC);
	}
	assert_int_equal(sh->most_inside, 1);
	assert_idle("x");
}

/* -- deadlock ------------------------------------------------------------------ */

static int (*real_openat)(int dirfd, const char *path, int flags, mode_t mode);
static uint64_t scans;

static int count_opens(int dirfd, const char *path, int flags, mode_t mode)
{
	scans += strcmp(path, ".") == 0;
	return real_openat(dirfd, path, flags, mode);
}

/* Readers of one lock that all wait for the next, and so on: the ways are 8 to the power of 3. */
static void search_for_a_circle_follows_each_party_once(void **state)
{
	static const char *const names[] = { "alpha", "beta", "gamma", "delta" };
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 60 * HF_MSEC };
	struct worker *last;
	struct hf_lock *none;

	(void)state;
	for (int i = 0; i < 24; i++) {
		struct worker *w = worker(names[i / 8], -1);

		w->names[1] = names[i / 8 + 1];
		w->opts.mode = HF_LOCK_SHARED;
		w->keep_each = 1;
		start(w);
		AWAIT(w->got == 1);
	}
	/* A writer, so that the next ones wait behind. */
	for (int i = 0; i < 3; i++) {
		struct worker *w = worker(names[i], -1);

		start_in_queue(w, names[i], 1);
	}
	last = worker(names[3], -1);
	last->keep = 1;
	start(last);
	AWAIT(last->got);
	for (int i = 0; i < 24; i++) {
		sh->workers[i].go = 1;
		AWAIT(look(names[i / 8 + 1]).n_waiters == (size_t)(i % 8 + 1 + (i < 16)));
	}
	real_openat = hf_sys.openat;
	hf_sys.openat = count_opens;
	/* One look fits into each wait; on a loaded machine a wait may be over before it. */
	for (struct hf_mono limit = hf_mono_in(60 * HF_SEC); scans == 0 && hf_mono_left(limit) > 0;)
		ASSERT_ERR(hf_lock_acquire(locks, names[0], &opts, &none, NULL, ERR), HF_E_TIMEOUT);
	hf_sys.openat = real_openat;
	assert_in_range(scans, 1, 60);
	last->go = 1;
	for (int i = 0; i < 28; i++) {
		finish(&sh->workers[i]);
		ASSERT_OK(sh->workers[i].r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(idle_waiter_makes_no_system_calls_but_to_peek_once_a_turn_behind_others),
		WAIT_TEST(waiter_behind_a_former_waiter_sleeps_without_a_clock),
		WAIT_TEST(one_release_wakes_exactly_one_of_ten),
		WAIT_TEST(waiter_that_saw_its_holder_die_neither_asks_again_nor_tells_itself_L4),
		WAIT_TEST(waiter_notices_that_the_file_was_deleted),
		WAIT_TEST(timeout_holds_when_a_process_is_stopped_inside_the_guard),
		WAIT_TEST(timeout_holds_when_a_process_is_stopped_inside_another_guard),
		WAIT_TEST(waiters_that_gave_up_take_no_place_from_others),
		WAIT_TEST(search_for_a_circle_follows_each_party_once),
	};

	proc_test_begin();
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("lock_wait", tests);
}
