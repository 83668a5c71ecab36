/*
 * unit/lock/test_lock_wait_races.c - waiters that die, stop or give up in the worst moment; records
 * that are replaced and deleted under them.
 *
 * Waiters are processes. What they do and see stands in shared memory; that they wait is
 * seen in the queue (hf_lock_look), never guessed from time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_workers.h"
#include "helper/test.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"

/* -- giving up and dying ------------------------------------------------------ */

/* A process killed between its release and the removal of its channel leaves one. */
static void channel_left_by_the_dead_is_removed_by_the_next_waiter(void **state)
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
static void former_waiter_can_release_without_a_descriptor_left(void **state)
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

/* -- what is no record ------------------------------------------------------- */

static int (*real_statx)(int dirfd, const char *path, int flags, unsigned mask, struct statx *st);

/* After the first look at what has the record's name, another process moves it away and takes the lock. */
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

static void lock_given_to_a_waiter_that_cannot_leave_in_time_is_not_lost_L4(void **state)
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

/* Between the opening and the flock the file is deleted, and another process takes the lock in a new one. */
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

/* The releasing process finds no record; meanwhile there is a new one, with a holder and a waiter to be. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAIT_TEST(channel_left_by_the_dead_is_removed_by_the_next_waiter),
		WAIT_TEST(waiter_killed_while_it_is_told_harms_neither_releaser_nor_queue_L4_L13),
		WAIT_TEST(the_same_where_sigpipe_must_be_held_back_L4_L13),
		WAIT_TEST(former_waiter_can_release_without_a_descriptor_left),
		WAIT_TEST(waiter_that_knows_it_has_the_lock_is_not_passed_over_L1),
		WAIT_TEST(lock_given_to_a_waiter_that_cannot_leave_in_time_is_not_lost_L4),
		WAIT_TEST(guarded_action_is_refused_when_its_record_was_deleted_before_the_flock_L5),
		WAIT_TEST(release_of_a_deleted_lock_leaves_new_waiters_their_channels),
		WAIT_TEST(record_that_replaced_a_symlink_is_not_moved_away_L1_L4),
	};

	proc_test_begin();
	sh = shared_new(sizeof(*sh));
	return hf_run_tests("lock_wait_races", tests);
}
