/*
 * unit/lock/test_lock_faults.c - every system call of acquire and release fails, or is the last.
 *
 * Whatever fails, or is done by half: no descriptor, channel or claim is left by a failure, a
 * lock that was not released can be released again, tokens rise, and nobody sleeps on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/lock_helper.h"
#include "helper/proc_helper.h"
#include "helper/test.h"
#include "hf/lock/local/local.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"

#define CALLS_MOST 400 /* no operation here makes more calls than this */

static const int errors[] = { EIO,    ENOSPC, EMFILE, EACCES, EINTR,  ENOMEM, EDQUOT, EROFS,
			      ESTALE, ENFILE, EPERM,  ENOLCK, EAGAIN, ELOOP,  ENOENT, EEXIST,
			      ENXIO,  EINVAL, ENOSYS, EFBIG };

/* Before any clock of the waiter: with a machine that is slow, and without having waited for one. */
#define AT_ONCE (8 * HF_SEC)

#define ERRORS (sizeof(errors) / sizeof(errors[0]))

static struct hf_locks *locks;

static struct answers {
	volatile int r, started, done;
	volatile uint64_t token;
	volatile int64_t took_ns;
} *told;

static int faults_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	/* Without a journal: its own calls are counted and failed elsewhere. */
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	return 0;
}

static int faults_teardown(void **state)
{
	hf_fault_disarm();
	hf_locks_free(locks);
	locks = NULL;
	return proc_test_teardown(state);
}

#define FAULT_TEST(fn) { #fn, fn, faults_setup, faults_teardown, NULL }

static pid_t start(void (*body)(int arg), int arg)
{
	pid_t parent = getpid(), pid;

	memset(told, 0, sizeof(*told));
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		hf_fault_disarm();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			body(arg);
		_exit(0);
	}
	return pid;
}

static int reap(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Takes "x" and releases it, waiting for at most so many ms. */
static void take_and_release(int wait_ms)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = wait_ms * HF_MSEC };
	struct hf_locks *own = own_locks(0);
	struct hf_mono before = hf_mono_now();
	struct hf_lock *lock;

	told->started = 1;
	told->r = hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL);
	told->took_ns = hf_mono_now().ns - before.ns;
	if (told->r == 0) {
		told->token = hf_lock_token(lock);
		MUST(hf_lock_release(lock, NULL) == 0);
	}
	told->done = 1;
}

static void take_and_die(int arg)
{
	struct hf_lock *lock;

	(void)arg;
	MUST(hf_lock_acquire(own_locks(0), "x", NULL, &lock, NULL, NULL) == 0);
}

static int try_stranger(uint64_t *token)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_lock *lock = NULL;
	struct hf_proc_id id;
	int r;

	ASSERT_OK(hf_proc_self(&id, ERR));
	id.pid_ns++;
	opts.owner = &id;
	r = hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR);
	if (r == 0)
		*token = hf_lock_token(lock);
	hf_lock_free(lock);
	return r;
}

struct view {
	size_t n_holders, n_waiters;
	int ours;
	uint64_t token;
};

static void keep_view(void *arg, const struct hf_lock_info *info)
{
	struct view *view = arg;

	view->n_holders = info->n_holders;
	view->n_waiters = info->n_waiters;
	view->token = info->token;
	for (size_t i = 0; i < info->n_holders; i++)
		view->ours += info->holders[i].id.pid == getpid() &&
			      info->holders[i].liveness == HF_ALIVE;
}

static struct view look(void)
{
	struct view view = { 0 };
	int r = hf_lock_look(locks, "x", keep_view, &view, ERR);

	if (r != HF_E_NOT_HELD)
		ASSERT_OK(r);
	return view;
}

static int channels(void)
{
	DIR *dir = opendir(hf_test_path("state/locks/name/.wait"));
	struct dirent *entry;
	struct stat st;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			n += S_ISFIFO(st.st_mode);
	closedir(dir);
	return n;
}

/* Another process, while this one lives on, gets a free lock at once, with a higher token. */
static void another_gets_it(uint64_t above, const char *after)
{
	pid_t pid = start(take_and_release, 0);

	assert_int_equal(reap(pid), 0);
	if (told->r != 0 || told->token <= above)
		print_error("after %s: %d\n", after, told->r);
	assert_int_equal(told->r, 0);
	assert_true(told->token > above);
	assert_int_equal(channels(), 0);
	assert_int_equal(look().n_waiters, 0);
}

/* -- failing ------------------------------------------------------------------ */

enum scene { FREE, CONTENDED, WAITING, WAITING_LONG, TAKE_OVER };

static const int64_t waits[] = { [WAITING] = 3 * HF_MSEC,
				 [WAITING_LONG] = 60 * HF_MSEC,
				 [TAKE_OVER] = 0 };

/* Sets it up; returns the token of a stranger that holds it, or 0. */
static uint64_t set_up(enum scene scene)
{
	uint64_t token = 0;

	if (scene == CONTENDED || scene == WAITING || scene == WAITING_LONG)
		ASSERT_OK(try_stranger(&token));
	if (scene == TAKE_OVER)
		assert_int_equal(reap(start(take_and_die, 0)), 0);
	return token;
}

static const char *show_fault(const struct hf_fault *fault, int r)
{
	static char text[120];

	snprintf(text, sizeof(text), "call %d (%s), %s: %d", fault->at, hf_fault_call(),
		 fault->short_write ? "half of it" : strerror(fault->error), r);
	return text;
}

/* One acquisition with the fault. Returns 0 when it made too few calls to be struck. */
static int strike_acquire(enum scene scene, const struct hf_fault *fault)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = waits[scene] };
	uint64_t held = set_up(scene), before = look().token;
	int fds = hf_test_fd_count(), hit, r;
	struct hf_lock *lock = NULL;
	const char *struck;

	hf_fault_arm(fault);
	r = hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR);
	hit = hf_fault_hit();
	struck = show_fault(fault, r);
	hf_fault_disarm();
	assert_int_equal(r == 0, lock != NULL);
	if (hf_test_fd_count() != fds || look().ours != (r == 0))
		print_error("scene %d, %s: %d descriptors more, %d claims\n", (int)scene, struck,
			    hf_test_fd_count() - fds, look().ours);
	assert_int_equal(hf_test_fd_count(), fds);
	assert_int_equal(look().ours, r == 0);
	/* A stranger's claim is untouched whatever happened to us. */
	if (held) {
		assert_true(r < 0);
		ASSERT_OK(hf_lock_release_as(locks, "x", held, NULL, ERR));
	}
	if (lock) {
		assert_true(hf_lock_token(lock) > before);
		before = hf_lock_token(lock);
		ASSERT_OK(hf_lock_release(lock, ERR));
		hf_lock_free(lock);
	}
	another_gets_it(before, struck);
	return hit;
}

static void strike_all(enum scene scene)
{
	int struck = 0;

	for (size_t e = 0; e < ERRORS; e++)
		for (struct hf_fault f = { .at = 1, .error = errors[e] }; strike_acquire(scene, &f);
		     f.at++) {
			assert_in_range(f.at, 1, CALLS_MOST);
			struck++;
		}
	assert_true(struck >= 4 * (int)ERRORS);
}

static void failing_acquire_of_a_free_lock_leaves_nothing_L2_L4(void **state)
{
	(void)state;
	strike_all(FREE);
}

static void failing_acquire_of_a_held_lock_leaves_nothing_L2_L4(void **state)
{
	(void)state;
	strike_all(CONTENDED);
}

static void failing_wait_leaves_nothing_L2_L4(void **state)
{
	(void)state;
	strike_all(WAITING);
}

static void failing_wait_that_looks_for_a_deadlock_leaves_nothing_L2_L4(void **state)
{
	(void)state;
	for (struct hf_fault f = { .at = 1, .error = EIO }; strike_acquire(WAITING_LONG, &f); f.at++)
		assert_in_range(f.at, 1, CALLS_MOST);
}

static void failing_take_over_leaves_nothing_L2_L4(void **state)
{
	(void)state;
	strike_all(TAKE_OVER);
}

/* One release with the fault; with a waiter, which must get it. */
static int strike_release(int with_waiter, const struct hf_fault *fault)
{
	struct hf_lock *lock = NULL;
	uint64_t token;
	pid_t waiter = 0;
	const char *struck;
	int fds, hit, r;

	ASSERT_OK(hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR));
	token = hf_lock_token(lock);
	fds = hf_test_fd_count();
	if (with_waiter) {
		waiter = start(take_and_release, 60000);
		AWAIT(look().n_waiters == 1);
	}
	hf_fault_arm(fault);
	r = hf_lock_release(lock, ERR);
	hit = hf_fault_hit();
	struck = show_fault(fault, r);
	hf_fault_disarm();
	if (hf_test_fd_count() > fds)
		print_error("release, %s: descriptors\n", struck);
	assert_true(hf_test_fd_count() <= fds); /* the spare one may be gone */
	if (fault->short_write && r < 0)
		assert_int_equal(look().ours, 1);
	/* What could not be released is held still, and can be. */
	if (r < 0 && look().ours)
		ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	if (with_waiter) {
		assert_int_equal(reap(waiter), 0);
		if (told->r != 0 || told->took_ns >= AT_ONCE)
			print_error("release, %s: the waiter got %d after %lld ms\n", struck, told->r,
				    (long long)(told->took_ns / HF_MSEC));
		assert_int_equal(told->r, 0);
		assert_true(told->took_ns < AT_ONCE);
		assert_true(told->token > token);
		token = told->token;
	}
	another_gets_it(token, struck);
	return hit;
}

static void failing_release_can_be_repeated_and_frees_L2_L4(void **state)
{
	(void)state;
	for (size_t e = 0; e < ERRORS; e++)
		for (struct hf_fault f = { .at = 1, .error = errors[e] }; strike_release(0, &f);
		     f.at++)
			assert_in_range(f.at, 1, CALLS_MOST);
}

static void failing_release_never_leaves_a_waiter_asleep_L4(void **state)
{
	(void)state;
	for (size_t e = 0; e < ERRORS; e++)
		for (struct hf_fault f = { .at = 1, .error = errors[e] }; strike_release(1, &f);
		     f.at++)
			assert_in_range(f.at, 1, CALLS_MOST);
}

static int (*real_openat)(int dirfd, const char *path, int flags, mode_t mode);
static ssize_t (*real_write_quiet)(int fd, const void *from, size_t len);

/* A channel is called "x.TICKET". */
static int openat_no_channels(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strncmp(path, "x.", 2) != 0)
		return real_openat(dirfd, path, flags, mode);
	errno = EIO;
	return -1;
}

static ssize_t write_nothing(int fd, const void *from, size_t len)
{
	(void)fd;
	(void)from;
	(void)len;
	errno = EIO;
	return -1;
}

/* A first waiter with a clock that the test need not wait for. */
static void take_with_a_short_clock(int arg)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	struct hf_locks *own = own_locks(0);
	struct hf_lock *lock;

	(void)arg;
	((struct hf_local *)hf_locks_store(own))->lost_clock_ns = 20 * HF_MSEC;
	told->r = hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL);
	MUST(told->r == 0 && hf_lock_release(lock, NULL) == 0);
	told->done = 1;
}

/* The holder lives on, so that its death does not wake the waiter either. */
static void waiter_whose_channel_cannot_be_reached_at_all_looks_by_its_clock_L4(void **state)
{
	(void)state;
	real_openat = hf_sys.openat;
	real_write_quiet = hf_sys.write_quiet;
	for (int what = 0; what < 2; what++) {
		struct hf_lock *lock = NULL;
		struct hf_mono released;
		pid_t waiter;

		ASSERT_OK(hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR));
		waiter = start(take_with_a_short_clock, 0);
		AWAIT(look().n_waiters == 1);
		if (what == 0)
			hf_sys.openat = openat_no_channels;
		else
			hf_sys.write_quiet = write_nothing;
		ASSERT_OK(hf_lock_release(lock, ERR));
		hf_sys.openat = real_openat;
		hf_sys.write_quiet = real_write_quiet;
		hf_lock_free(lock);
		released = hf_mono_now();
		assert_int_equal(reap(waiter), 0);
		assert_true(hf_mono_now().ns - released.ns < AT_ONCE);
		assert_true(told->done);
		another_gets_it(0, "lost message");
	}
}

/* Of a record or of an entry in the queue only half can be written. */
static void half_written_record_loses_no_holder_L1_L4(void **state)
{
	struct hf_fault f = { .call = "pwrite", .short_write = 2 };
	int struck = 0;

	(void)state;
	for (int scene = FREE; scene <= TAKE_OVER; scene++)
		for (f.at = 1; strike_acquire((enum scene)scene, &f); f.at++)
			struck++;
	for (int with_waiter = 0; with_waiter <= 1; with_waiter++)
		for (f.at = 1; strike_release(with_waiter, &f); f.at++)
			struck++;
	assert_true(struck >= 8);
}

/* Beyond its limit the kernel writes a part, and then kills a process that goes on. */
static void acquire_under_a_file_size_limit(int limit)
{
	/* It never waits: it cannot even queue. A loaded machine is not to end that before it was tried. */
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 10 * HF_SEC };
	struct rlimit fsize = { (rlim_t)limit, (rlim_t)limit };
	struct hf_lock *lock;
	struct hf_locks *own;

	MUST(setrlimit(RLIMIT_FSIZE, &fsize) == 0);
	own = own_locks(0);
	told->r = hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL);
	told->done = 1;
}

static void file_size_limit_tears_no_record_and_does_not_kill_L4_L13(void **state)
{
	static const int limits[] = { 0, 1, 100, 150, 200, 1024, 4095, 4096, 4100 };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint64_t token;

		/* The one it would write has a dead owner to take out, and then a living one. */
		assert_int_equal(reap(start(take_and_die, 0)), 0);
		assert_int_equal(reap(start(acquire_under_a_file_size_limit, limits[i])), 0);
		assert_true(told->done && (told->r == 0 || told->r == -EFBIG));
		ASSERT_OK(try_stranger(&token));
		assert_int_equal(reap(start(acquire_under_a_file_size_limit, limits[i])), 0);
		assert_true(told->done && told->r == -EFBIG);
		ASSERT_OK(hf_lock_check_token(locks, "x", token, ERR));
		ASSERT_OK(hf_lock_release_as(locks, "x", token, NULL, ERR));
	}
}

/* -- dying -------------------------------------------------------------------- */

static void die_acquiring(int at)
{
	struct hf_locks *own = own_locks(0);
	struct hf_lock *lock;

	hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
	(void)!hf_lock_acquire(own, "x", NULL, &lock, NULL, NULL);
}

static void die_waiting(int at)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 60 * HF_MSEC };
	struct hf_locks *own = own_locks(0);
	struct hf_lock *lock;

	hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
	(void)!hf_lock_acquire(own, "x", &opts, &lock, NULL, NULL);
}

static void death_at_any_call_of_acquire_lets_the_next_in_at_once_L2_L4(void **state)
{
	int status = 1;

	(void)state;
	for (int at = 1; status != 0; at++) {
		uint64_t before = look().token;

		assert_in_range(at, 1, CALLS_MOST);
		status = reap(start(die_acquiring, at));
		another_gets_it(before, "death in acquire");
	}
	status = 1;
	for (int at = 1; status != 0; at++) {
		uint64_t before;

		assert_in_range(at, 1, CALLS_MOST);
		ASSERT_OK(try_stranger(&before));
		status = reap(start(die_waiting, at));
		ASSERT_OK(hf_lock_release_as(locks, "x", before, NULL, ERR));
		another_gets_it(before, "death in the queue");
	}
}

static int go[2];

/* Takes it, waits until a process queues for it, and dies in its release. */
static void die_releasing(int at)
{
	struct hf_locks *own = own_locks(0);
	struct hf_lock *lock;
	char byte;

	MUST(hf_lock_acquire(own, "x", NULL, &lock, NULL, NULL) == 0);
	MUST(read(go[0], &byte, 1) == 1);
	hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
	(void)hf_lock_release(lock, NULL);
}

static void death_at_any_call_of_release_wakes_the_waiter_L2_L4(void **state)
{
	int status = 1;

	(void)state;
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	for (int at = 1; status != 0; at++) {
		struct hf_mono died;
		pid_t holder, waiter;
		uint64_t before;

		assert_in_range(at, 1, CALLS_MOST);
		holder = start(die_releasing, at);
		AWAIT(look().n_holders == 1);
		before = look().token;
		waiter = start(take_and_release, 10000);
		AWAIT(look().n_waiters == 1);
		tell(go[1], '.');
		status = reap(holder);
		died = hf_mono_now();
		assert_int_equal(reap(waiter), 0);
		if (told->r != 0 || hf_mono_now().ns - died.ns > HF_SEC)
			print_error("call %d of release: the waiter got %d after %lld ms\n", at,
				    told->r, (long long)((hf_mono_now().ns - died.ns) / HF_MSEC));
		assert_int_equal(told->r, 0);
		assert_true(told->token > before);
		assert_true(hf_mono_now().ns - died.ns < HF_SEC);
		another_gets_it(told->token, "death in release");
	}
	close(go[0]);
	close(go[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_TEST(failing_acquire_of_a_free_lock_leaves_nothing_L2_L4),
		FAULT_TEST(failing_acquire_of_a_held_lock_leaves_nothing_L2_L4),
		FAULT_TEST(failing_wait_leaves_nothing_L2_L4),
		FAULT_TEST(failing_wait_that_looks_for_a_deadlock_leaves_nothing_L2_L4),
		FAULT_TEST(failing_take_over_leaves_nothing_L2_L4),
		FAULT_TEST(failing_release_can_be_repeated_and_frees_L2_L4),
		FAULT_TEST(failing_release_never_leaves_a_waiter_asleep_L4),
		FAULT_TEST(waiter_whose_channel_cannot_be_reached_at_all_looks_by_its_clock_L4),
		FAULT_TEST(half_written_record_loses_no_holder_L1_L4),
		FAULT_TEST(file_size_limit_tears_no_record_and_does_not_kill_L4_L13),
		FAULT_TEST(death_at_any_call_of_acquire_lets_the_next_in_at_once_L2_L4),
		FAULT_TEST(death_at_any_call_of_release_wakes_the_waiter_L2_L4),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock_faults", tests);
}
