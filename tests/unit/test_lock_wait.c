/*
 * unit/test_lock_wait.c - waiting: in order, without polling, without a herd, not for ever.
 *
 * Waiters are processes. What they do and see stands in shared memory; that they wait is
 * seen in the queue (hf_lock_look), never guessed from time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "helper/lock_workers.h"
#include "helper/test.h"
#include "hf/lock/local/record.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

/* -- giving up and dying ------------------------------------------------------ */

/* A process killed between its release and the removal of its channel leaves one. */
static void channel_left_by_the_dead_is_removed_by_the_next_who_waits(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 10 * HF_MSEC };
	struct worker *holder = worker("x", 0);
	struct hf_lock *lock = NULL;

	(void)state;
	holder->keep = 1;
	start(holder);
	AWAIT(holder->got);
	assert_int_equal(mkfifo(hf_test_path("state/locks/name/.wait/x.1abc"), 0600), 0);
	assert_int_equal(mkfifo(hf_test_path("state/locks/name/.wait/xy.1abc"), 0600), 0);
	assert_int_equal(channels(), 2);
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR), HF_E_TIMEOUT);
	assert_int_equal(channels(), 1); /* that of another name is not its business */
	assert_int_equal(unlink(hf_test_path("state/locks/name/.wait/xy.1abc")), 0);
	holder->go = 1;
	finish(holder);
	assert_idle("x");
}

static struct worker *victim;
static ssize_t (*real_pwrite)(int fd, const void *from, size_t len, off_t at);

/* The record says that the victim has it; before it is told, it dies. */
static ssize_t pwrite_then_kill(int fd, const void *from, size_t len, off_t at)
{
	ssize_t n = real_pwrite(fd, from, len, at);
	siginfo_t info;

	if (victim) {
		kill(victim->pid, SIGKILL);
		MUST(waitid(P_PID, (id_t)victim->pid, &info, WEXITED | WNOWAIT) == 0);
		victim = NULL;
	}
	return n;
}

/* SIGPIPE would be how its death kills us too. */
static void kill_a_waiter_while_it_is_told(void)
{
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *second = worker("x", -1);
	void (*handler)(int) = signal(SIGPIPE, SIG_DFL);
	sigset_t set, old, pending;
	int sent;

	start_in_queue(first, "x", 1);
	start_in_queue(second, "x", 2);
	victim = first;
	real_pwrite = hf_sys.pwrite;
	hf_sys.pwrite = pwrite_then_kill;
	/* Blocked, so that it stays pending if it is sent, and the test can tell. */
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, &old);
	(void)hf_lock_release(lock, ERR);
	hf_sys.pwrite = real_pwrite;
	sigpending(&pending);
	sent = sigismember(&pending, SIGPIPE);
	if (sent)
		(void)sigtimedwait(&set, NULL, &(struct timespec){ 0 });
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, handler);
	hf_lock_free(lock);
	assert_null(victim);
	assert_int_equal(sent, 0);
	(void)reap_worker(first);
	finish(second);
	assert_int_equal(second->r, 0);
	assert_idle("x");
}

static void waiter_killed_while_it_is_told_harms_neither_releaser_nor_queue_L4_L13(void **state)
{
	(void)state;
	kill_a_waiter_while_it_is_told();
}

static void use_up_descriptors(void)
{
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }) == 0);
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	MUST(errno == EMFILE);
}

/* What a wait left open, to be closed later, makes room. */
static void who_waited_can_release_without_a_descriptor_left(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", -1);

	(void)state;
	w->before_release = use_up_descriptors;
	start_in_queue(w, "x", 1);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	finish(w);
	assert_int_equal(w->r, 0);
	assert_true(w->done);
	assert_idle("x");
}

static ssize_t no_quiet_writes(int fd, const void *from, size_t len)
{
	(void)fd;
	(void)from;
	(void)len;
	errno = EOPNOTSUPP;
	return -1;
}

/* Kernels before 6.18. */
static void the_same_where_sigpipe_must_be_held_back_L4_L13(void **state)
{
	ssize_t (*real_quiet)(int, const void *, size_t) = hf_sys.write_quiet;

	(void)state;
	hf_sys.write_quiet = no_quiet_writes;
	kill_a_waiter_while_it_is_told();
	hf_sys.write_quiet = real_quiet;
}

/* -- stopped ------------------------------------------------------------------ */

static int (*real_flock)(int fd, int operation);
static ssize_t (*real_read)(int fd, void *to, size_t len);
static int misses;

/* As if the message came just after it was looked for. */
static ssize_t read_misses_once(int fd, void *to, size_t len)
{
	if (len == 8 && sh->scratch && misses++ == 0) {
		errno = EAGAIN;
		return -1;
	}
	return real_read(fd, to, len);
}

/* It let go of the guard under which it saw that it has the lock; that is all it still did. */
static int flock_and_stop(int fd, int operation)
{
	int r = real_flock(fd, operation);

	if (operation == LOCK_UN && misses && sh->scratch) {
		sh->scratch = 0;
		raise(SIGSTOP);
	}
	return r;
}

static void stop_when_granted(void)
{
	real_read = hf_sys.read;
	real_flock = hf_sys.flock;
	hf_sys.read = read_misses_once;
	hf_sys.flock = flock_and_stop;
}

/*
 * A waiter that has read in the record that the lock is its own has it, however long it is
 * stopped then: its unread message must not be taken for a token that was not noticed.
 */
static void waiter_that_knows_it_has_the_lock_is_not_passed_over_L1(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *first = worker("x", -1), *second = worker("x", 5 * HF_SEC);

	(void)state;
	first->keep = 1;
	first->prepare = stop_when_granted;
	start_in_queue(first, "x", 1);
	start_in_queue(second, "x", 2);
	AWAIT(look("x").n_waiters == 2);
	/* Past its first look for a deadlock, so that only the release wakes it. */
	(void)poll(NULL, 0, 120);
	sh->scratch = 1;
	give_back(lock);
	await_stopped(first->pid);
	AWAIT(second->done || look("x").n_waiters == 0);
	finish(second);
	kill(first->pid, SIGCONT);
	AWAIT(first->got);
	/* One of the two had to wait: either it was given back, or the other timed out. */
	assert_int_equal(second->r, HF_E_TIMEOUT);
	ASSERT_OK(hf_lock_check_token(locks, "x", first->token, ERR));
	first->go = 1;
	finish(first);
	assert_idle("x");
}

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
		if (!strstr(line, "restart_syscall") && !strstr(line, "poll(") &&
		    !strstr(line, "poll resumed") && !strstr(line, "SIG") && !strstr(line, "detached"))
			print_error("%s", line);
		n += strstr(line, "restart_syscall") || strstr(line, "SIG") ||
				     strstr(line, "resumed") || strstr(line, "+++")
			     ? 0
			     : 1;
	}
	fclose(out);
	return n;
}

static void idle_waiter_makes_no_system_calls(void **state)
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
	assert_in_range(count_calls(third->pid), 0, 1);
	give_back(lock);
	finish(first);
	finish(second);
	finish(third);
	assert_idle("x");
}

/* Its channel may still be open; what is in it is not for it, and must not look like a token. */
static void waiter_behind_one_who_waited_sleeps_without_a_clock(void **state)
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
	/* Its place is gone with the file; whoever notices that calls it. */
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_lock_free(lock);
	finish(w);
	assert_int_equal(w->r, 0);
	assert_idle("x");
}

/* -- somebody stopped inside a guard -------------------------------------------- */

static void timeout_holds_when_somebody_is_stopped_inside_the_guard(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", 500 * HF_MSEC);
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
	assert_true(w->took_ns < 500 * HF_MSEC + SLACK);
	give_back(lock);
	ASSERT_OK(try_now("x"));
	assert_idle("x");
}

static void timeout_holds_when_somebody_is_stopped_inside_another_guard(void **state)
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

/* As if so many had come, and given up, since the last of those who wait. */
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

/* The ring has a place for each who waits, not for each who ever did. */
static void those_who_gave_up_take_no_place_from_others(void **state)
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
	/* Gives up as well, and leaves the others as they are. */
	start_in_queue(worker("x", 200 * HF_MSEC), "x", n + 2);
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

/* -- what is no record ------------------------------------------------------- */

static int (*real_statx)(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);

/* After the first look at what has the record's name, somebody else moves it away and takes the lock. */
static int statx_and_lose(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	int r = real_statx(dirfd, path, flags, mask, st);

	if (strcmp(path, "x") == 0 && n_workers == 0) {
		struct worker *w = worker("x", 0);

		w->keep = 1;
		start(w);
		AWAIT(w->got);
	}
	return r;
}

static void record_that_replaced_a_symlink_is_not_moved_away_L1_L4(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_lock *none = NULL;

	(void)state;
	assert_int_equal(symlink("nowhere", hf_test_path("state/locks/name/x")), 0);
	real_statx = hf_sys.statx;
	hf_sys.statx = statx_and_lose;
	ASSERT_ERR(hf_lock_acquire(locks, "x", &opts, &none, NULL, ERR), HF_E_BUSY);
	hf_sys.statx = real_statx;
	ASSERT_OK(hf_lock_check_token(locks, "x", sh->workers[0].token, ERR));
	sh->workers[0].go = 1;
	finish(&sh->workers[0]);
	ASSERT_OK(sh->workers[0].r);
	assert_idle("x");
}

/* -- given while giving up ---------------------------------------------------- */

#define PATIENCE (100 * HF_MSEC)

static ssize_t (*real_write)(int fd, const void *from, size_t len);
static struct hf_mono patience_ends;

/* As older kernels answer, so that it is `write` that sends. */
static ssize_t no_write_quiet(int fd, const void *from, size_t len)
{
	(void)fd;
	(void)from;
	(void)len;
	errno = EOPNOTSUPP;
	return -1;
}

/*
 * Its time is over, and that of its look for a deadlock, and it still tries to get the guard:
 * it wants to leave the queue.
 */
static int flock_and_tell(int fd, int operation)
{
	if (operation != LOCK_UN && patience_ends.ns == 0)
		patience_ends = hf_mono_in(PATIENCE + 120 * HF_MSEC);
	if (operation != LOCK_UN && hf_mono_left(patience_ends) == 0)
		sh->scratch = 1;
	return real_flock(fd, operation);
}

static void tell_when_leaving(void)
{
	real_flock = hf_sys.flock;
	hf_sys.flock = flock_and_tell;
}

/* Slow under the guard: the message comes when the waiter's time is over. */
static ssize_t send_late(int fd, const void *from, size_t len)
{
	ssize_t n;

	AWAIT(sh->scratch == 1);
	n = real_write(fd, from, len);
	AWAIT(sh->workers[0].got || sh->workers[0].done);
	return n;
}

static void lock_given_to_who_cannot_leave_in_time_is_not_lost_L4(void **state)
{
	struct hf_lock *lock = take("x");
	struct worker *w = worker("x", PATIENCE);
	struct hf_sys real;

	(void)state;
	w->prepare = tell_when_leaving;
	start_in_queue(w, "x", 1);
	real = hf_sys;
	real_write = hf_sys.write;
	hf_sys.write_quiet = no_write_quiet;
	hf_sys.write = send_late;
	give_back(lock);
	hf_sys = real;
	finish(w);
	ASSERT_OK(w->r);
	assert_idle("x");
}

/* -- deleted by hand --------------------------------------------------------- */

static int ran;

static int count_run(void *arg)
{
	(void)arg;
	ran++;
	return 0;
}

/* Between the opening and the flock the file is deleted, and somebody takes the lock in a new one. */
static int flock_too_late(int fd, int operation)
{
	if (n_workers == 0) {
		struct worker *w = worker("x", 0);

		w->keep = 1;
		assert_int_equal(unlink(hf_test_path("state/locks/name/x")), 0);
		start(w);
		AWAIT(w->got);
	}
	return real_flock(fd, operation);
}

static void guarded_action_is_refused_when_its_record_was_deleted_before_the_flock_L5(void **state)
{
	struct hf_lock *lock = take("x");
	uint64_t token = hf_lock_token(lock);

	(void)state;
	ran = 0;
	real_flock = hf_sys.flock;
	hf_sys.flock = flock_too_late;
	ASSERT_ERR(hf_lock_guarded(locks, "x", token, count_run, NULL, ERR), HF_E_STALE);
	hf_sys.flock = real_flock;
	assert_int_equal(ran, 0);
	sh->workers[0].go = 1;
	finish(&sh->workers[0]);
	ASSERT_OK(sh->workers[0].r);
	hf_lock_free(lock);
}

static int (*real_openat)(int dirfd, const char *path, int flags, mode_t mode);
static int (*real_mkfifoat)(int dirfd, const char *path, mode_t mode);

static int mkfifo_and_wait(int dirfd, const char *path, mode_t mode)
{
	int r = real_mkfifoat(dirfd, path, mode);

	sh->scratch = 1;
	AWAIT(sh->scratch == 2);
	return r;
}

static void make_channel_slowly(void)
{
	real_mkfifoat = hf_sys.mkfifoat;
	hf_sys.mkfifoat = mkfifo_and_wait;
}

/* Who releases finds no record; meanwhile there is a new one, with a holder and a waiter to be. */
static int open_too_early(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = real_openat(dirfd, path, flags, mode), sys = errno;

	if (fd < 0 && sys == ENOENT && strcmp(path, "x") == 0 && n_workers == 0) {
		struct worker *holder = worker("x", 0), *waiter = worker("x", 10 * HF_SEC);

		holder->keep = 1;
		waiter->prepare = make_channel_slowly;
		start(holder);
		AWAIT(holder->got);
		start(waiter);
		AWAIT(sh->scratch == 1);
	}
	errno = sys;
	return fd;
}

static void release_of_a_deleted_lock_leaves_new_waiters_their_channels(void **state)
{
	struct hf_lock *lock = take("x");

	(void)state;
	assert_int_equal(unlink(hf_test_path("state/locks/name/x")), 0);
	real_openat = hf_sys.openat;
	hf_sys.openat = open_too_early;
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	hf_sys.openat = real_openat;
	hf_lock_free(lock);
	sh->scratch = 2;
	AWAIT(look("x").n_waiters == 1);
	sh->workers[0].go = 1;
	finish(&sh->workers[0]);
	finish(&sh->workers[1]);
	ASSERT_OK(sh->workers[1].r);
	assert_idle("x");
}

/* -- deadlock ------------------------------------------------------------------ */

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
	/* Somebody who wants to write, so that the next ones wait behind. */
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
		WAIT_TEST(channel_left_by_the_dead_is_removed_by_the_next_who_waits),
		WAIT_TEST(waiter_killed_while_it_is_told_harms_neither_releaser_nor_queue_L4_L13),
		WAIT_TEST(the_same_where_sigpipe_must_be_held_back_L4_L13),
		WAIT_TEST(who_waited_can_release_without_a_descriptor_left),
		WAIT_TEST(waiter_that_knows_it_has_the_lock_is_not_passed_over_L1),
		WAIT_TEST(idle_waiter_makes_no_system_calls),
		WAIT_TEST(waiter_behind_one_who_waited_sleeps_without_a_clock),
		WAIT_TEST(one_release_wakes_exactly_one_of_ten),
		WAIT_TEST(waiter_that_saw_its_holder_die_neither_asks_again_nor_tells_itself_L4),
		WAIT_TEST(waiter_notices_that_the_file_was_deleted),
		WAIT_TEST(timeout_holds_when_somebody_is_stopped_inside_the_guard),
		WAIT_TEST(timeout_holds_when_somebody_is_stopped_inside_another_guard),
		WAIT_TEST(lock_given_to_who_cannot_leave_in_time_is_not_lost_L4),
		WAIT_TEST(guarded_action_is_refused_when_its_record_was_deleted_before_the_flock_L5),
		WAIT_TEST(release_of_a_deleted_lock_leaves_new_waiters_their_channels),
		WAIT_TEST(those_who_gave_up_take_no_place_from_others),
		WAIT_TEST(record_that_replaced_a_symlink_is_not_moved_away_L1_L4),
		WAIT_TEST(search_for_a_circle_follows_each_party_once),
	};

	proc_test_begin();
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("lock_wait", tests);
}
