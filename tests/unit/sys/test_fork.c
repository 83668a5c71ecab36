/*
 * unit/sys/test_fork.c - what a forked child must not carry: the flocks of its parent (L4).
 *
 * Each test starts a program that forks children which do not exec, and is then killed. The
 * children live on, until the test closes their pipe; nothing of the program may be stuck.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_helper.h"
#include "helper/test.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/noinherit.h"
#include "holdfast/file.h"
#include "holdfast/journal.h"

#define TRIES    20
#define CHILDREN 10
#define PATIENCE (5 * HF_SEC) /* a lock that is stuck is stuck for ever */

static int alive[2]; /* children live until the test has closed alive[1] */
static struct hf_sys real;

static int setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	real = hf_sys;
	return pipe2(alive, O_CLOEXEC) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(alive[0]);
	if (alive[1] >= 0)
		close(alive[1]);
	return hf_test_teardown(state);
}

#define FORK_TEST(fn) { #fn, fn, setup, teardown, NULL }

/* A child that keeps all it was given, and calls nothing. */
static pid_t fork_child(void)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	MUST(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		/* The library's handler of the fork is through. */
		MUST(write(ready[1], &byte, 1) == 1);
		close(ready[0]);
		close(ready[1]);
		close(alive[1]);
		(void)!read(alive[0], &byte, 1);
		_exit(0);
	}
	MUST(pid > 0);
	close(ready[1]);
	MUST(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

/* Runs `program` in a process of its own, which kills itself. */
static void run_until_killed(void (*program)(void))
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		close(alive[1]);
		program();
		_exit(1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Ends the children, and begins anew. */
static void end_children(void)
{
	close(alive[1]);
	close(alive[0]);
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
}

/* The next process gets the lock. */
static void assert_is_free(const char *name)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = PATIENCE };
	struct hf_locks *locks;
	struct hf_lock *lock;

	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	ASSERT_OK(hf_lock_acquire(locks, name, &opts, &lock, NULL, ERR));
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	hf_locks_free(locks);
}

/* -- exactly in the wrong moment ------------------------------------------------ */

static ssize_t fork_and_die_instead_of_writing(int fd, const void *from, size_t len, off_t at)
{
	(void)fd, (void)from, (void)len, (void)at;
	fork_child();
	raise(SIGKILL);
	return -1;
}

static void die_in_acquire(void)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_locks *locks = own_locks(0);
	struct hf_lock *lock;

	hf_sys.pwrite = fork_and_die_instead_of_writing;
	(void)!hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL);
}

static void child_forked_inside_the_guard_does_not_keep_it_L4(void **state)
{
	(void)state;
	assert_is_free("x"); /* the record exists */
	run_until_killed(die_in_acquire);
	assert_is_free("x");
}

static struct hf_proc_id other; /* a living process */

static int fork_and_die_instead_of_sleeping(struct pollfd *fds, nfds_t n, int ms)
{
	if (ms == 0) /* a look */
		return real.poll(fds, n, ms);
	fork_child();
	raise(SIGKILL);
	return -1;
}

static void die_in_wait_for_another(void)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = PATIENCE, .owner = &other };
	struct hf_locks *locks = own_locks(0);
	struct hf_lock *lock;

	hf_sys.poll = fork_and_die_instead_of_sleeping;
	(void)!hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL);
}

static void child_forked_while_waiting_does_not_keep_the_place_L4(void **state)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_locks *locks;
	struct hf_lock *lock;
	pid_t sleeper = fork_child();

	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	ASSERT_OK(hf_proc_identify(sleeper, &other, ERR));
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	run_until_killed(die_in_wait_for_another);
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
	/* Not given to the one for which a dead process waited. */
	ASSERT_OK(hf_lock_acquire(locks, "x", &opts, &lock, NULL, ERR));
	hf_lock_free(lock);
	hf_locks_free(locks);
	end_children();
	assert_int_equal(waitpid(sleeper, NULL, 0), sleeper);
}

static int append_note(struct hf_journal *journal, struct hf_err *err)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "a note") };

	return hf_journal_append(journal, HF_EV_NOTE, "x", fields, 1, 0, err);
}

static void die_in_append(void)
{
	struct hf_journal *journal;
	struct hf_state *own;

	MUST(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	MUST(hf_journal_open(own, NULL, &journal, NULL) == 0);
	MUST(append_note(journal, NULL) == 0);
	hf_sys.pwrite = fork_and_die_instead_of_writing;
	(void)append_note(journal, NULL);
}

/* A child that was there before the append shares the description as well. */
static void die_in_append_after_a_fork(void)
{
	struct hf_journal *journal;
	struct hf_state *own;

	MUST(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	MUST(hf_journal_open(own, NULL, &journal, NULL) == 0);
	MUST(append_note(journal, NULL) == 0);
	fork_child();
	hf_sys.pwrite = fork_and_die_instead_of_writing;
	(void)append_note(journal, NULL);
}

/* Each append waits 100 ms at most and is then lost: among many that are only busy, none is. */
static void assert_journal_is_free(void)
{
	struct hf_mono until = hf_mono_in(PATIENCE);
	struct hf_journal *journal;
	int r;

	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	do {
		r = append_note(journal, ERR);
	} while (r == HF_E_LOST && hf_mono_left(until) > 0);
	ASSERT_OK(r);
	hf_journal_free(journal);
}

static void child_forked_inside_an_append_does_not_keep_the_journal_L4(void **state)
{
	(void)state;
	hf_test_state();
	run_until_killed(die_in_append);
	assert_journal_is_free();
	run_until_killed(die_in_append_after_a_fork);
	assert_journal_is_free();
}

static int fork_after_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = real.openat(dirfd, path, flags, mode);

	/* Once, and then it is opened again; the record's file is called as the lock. */
	if (strcmp(path, "x") == 0) {
		fork_child();
		hf_sys.openat = real.openat;
	}
	return fd;
}

static int die_when_flocked(int fd, int operation)
{
	int r = real.flock(fd, operation);

	if (r == 0 && operation & LOCK_EX)
		raise(SIGKILL);
	return r;
}

static void die_after_a_fork_in_the_opening(void)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_locks *locks = own_locks(0);
	struct hf_lock *lock;

	hf_sys.openat = fork_after_openat;
	hf_sys.flock = die_when_flocked;
	(void)!hf_lock_acquire(locks, "x", &opts, &lock, NULL, NULL);
}

/* The descriptor is there, and is not yet known to be one that must not be inherited. */
static void child_forked_just_after_the_opening_does_not_keep_the_guard_L4(void **state)
{
	(void)state;
	assert_is_free("x");
	run_until_killed(die_after_a_fork_in_the_opening);
	assert_is_free("x");
}

/* -- a shared file ----------------------------------------------------------------- */

static struct hf_file *open_and_lock(struct hf_locks *locks, int64_t wait_ns, int *ret)
{
	struct hf_file_opts opts = { .size = sizeof(opts), .flags = HF_FILE_CREATE | HF_FILE_SIDECAR };
	struct hf_file *file;

	MUST(hf_file_open(locks, hf_test_path("f"), &opts, &file, NULL) == 0);
	*ret = hf_file_lock(file, wait_ns, NULL, ERR);
	return file;
}

static void lock_file_and_die(void)
{
	struct hf_file *file;
	int r, fd;

	file = open_and_lock(own_locks(0), 0, &r);
	MUST(r == 0);
	MUST(hf_file_read(file, &fd, NULL) == 0);
	MUST(hf_file_write(file, &fd, NULL) == 0);
	fork_child();
	raise(SIGKILL);
}

static int count_entries_with(const char *part)
{
	DIR *dir = opendir(hf_test_dir());
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strstr(entry->d_name, part) != NULL;
	closedir(dir);
	return n;
}

static void child_forked_while_a_file_is_locked_does_not_keep_it_L4(void **state)
{
	struct hf_locks *locks;
	struct hf_file *file;
	int r, fd;

	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	run_until_killed(lock_file_and_die);
	assert_int_equal(count_entries_with(".tmp"), 1);
	file = open_and_lock(locks, PATIENCE, &r);
	ASSERT_OK(r);
	/* Its temporary file is proven to be nobody's, and removed. */
	ASSERT_OK(hf_file_read(file, &fd, ERR));
	assert_int_equal(count_entries_with(".tmp"), 0);
	ASSERT_OK(hf_file_close(file, ERR));
	hf_locks_free(locks);
}

static int flock_is_taken(void)
{
	int fd = open(hf_test_path(".f.lock"), O_RDWR | O_CLOEXEC), taken;

	MUST(fd >= 0);
	taken = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return taken;
}

/* In the child the numbers mean nothing but stay taken, until the child frees its handle. */
static void child_frees_its_handle_and_the_parent_keeps_the_lock_L13(void **state)
{
	struct hf_locks *locks;
	struct hf_file *file;
	struct stat st;
	int r, status;
	pid_t pid;

	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	file = open_and_lock(locks, 0, &r);
	ASSERT_OK(r);
	pid = fork();
	if (pid == 0) {
		int number = hf_file_lock_fd(file);

		if (fstat(number, &st) < 0 || !S_ISDIR(st.st_mode) ||
		    !(fcntl(number, F_GETFD) & FD_CLOEXEC))
			_exit(1);
		if (hf_file_close(file, NULL) < 0 || fcntl(number, F_GETFD) >= 0)
			_exit(2);
		_exit(flock_is_taken() ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(flock_is_taken());
	ASSERT_OK(hf_file_close(file, ERR));
	assert_false(flock_is_taken());
	hf_locks_free(locks);
}

static void limit_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void child_without_a_free_descriptor_drops_them_too_L4(void **state)
{
	struct hf_locks *locks;
	struct hf_file *file;
	int r, status, all[256], n = 0;
	pid_t pid;

	(void)state;
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
	file = open_and_lock(locks, 0, &r);
	ASSERT_OK(r);
	limit_descriptors();
	while (n < 256 && (all[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	assert_true(n < 256);
	pid = fork();
	if (pid == 0) {
		struct stat st;

		_exit(fstat(hf_file_lock_fd(file), &st) == 0 && S_ISREG(st.st_mode));
	}
	while (n > 0)
		close(all[--n]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ASSERT_OK(hf_file_close(file, ERR));
	hf_locks_free(locks);
}

/* -- in any moment -------------------------------------------------------------------- */

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "x" };

#define THREADS (sizeof(names) / sizeof(names[0]))

static void *lock_and_release(void *arg)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_locks *locks = own_locks(0);
	struct hf_lock *lock;

	for (;;) {
		MUST(hf_lock_acquire(locks, arg, &opts, &lock, NULL, NULL) == 0);
		(void)hf_lock_release(lock, NULL);
		hf_lock_free(lock);
	}
	return NULL;
}

/*
 * Threads that are under some guard nearly all the time: there are more of them than processors, and
 * those that have to wait for one do so anywhere.
 */
static void fork_beside_threads(void)
{
	pthread_t thread;

	for (size_t i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread, NULL, lock_and_release, (void *)(uintptr_t)names[i]) ==
		     0);
	for (int i = 0; i < CHILDREN; i++)
		fork_child();
	raise(SIGKILL);
}

static void children_of_a_threaded_program_keep_none_of_its_locks_L4(void **state)
{
	(void)state;
	hf_test_state();
	for (int i = 0; i < TRIES; i++) {
		run_until_killed(fork_beside_threads);
		for (size_t k = 0; k < THREADS; k++)
			assert_is_free(names[k]);
		end_children();
	}
}

/* -- the handler ------------------------------------------------------------------------ */

/* The shared library of this program's own build, also where that was copied for another user. */
static const char *library_path(void)
{
	static char path[PATH_MAX + sizeof("/../src/libholdfast.so.0")];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	assert_true(len > 0 && len < PATH_MAX);
	path[len] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash, "/../src/libholdfast.so.0");
	return path;
}

/* A fork after the library was unloaded: its handler went with it. */
static void fork_after_dlclose_is_safe_L13(void **state)
{
	int (*open_state)(const char *, unsigned, struct hf_state **, struct hf_err *);
	int (*open_journal)(struct hf_state *, const struct hf_journal_opts *, struct hf_journal **,
			    struct hf_err *);
	void (*free_journal)(struct hf_journal *);
	void (*free_state)(struct hf_state *);
	struct hf_journal *journal;
	struct hf_state *own;
	void *library, *again;
	int status;
	pid_t pid;

	(void)state;
	library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
	if (!library)
		HF_SKIP("the shared library cannot be loaded here: %s", dlerror());
	*(void **)&open_state = dlsym(library, "hf_state_open");
	*(void **)&open_journal = dlsym(library, "hf_journal_open");
	*(void **)&free_journal = dlsym(library, "hf_journal_free");
	*(void **)&free_state = dlsym(library, "hf_state_free");
	assert_true(open_state && open_journal && free_journal && free_state);
	hf_test_state();
	ASSERT_OK(open_state(hf_test_path("state"), 0, &own, ERR));
	ASSERT_OK(open_journal(own, NULL, &journal, ERR));
	free_journal(journal);
	free_state(own);
	assert_int_equal(dlclose(library), 0);
	again = dlopen(library_path(), RTLD_NOW | RTLD_NOLOAD);
	if (again)
		HF_SKIP("the library does not unload here");
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FORK_TEST(child_forked_inside_the_guard_does_not_keep_it_L4),
		FORK_TEST(child_forked_while_waiting_does_not_keep_the_place_L4),
		FORK_TEST(child_forked_inside_an_append_does_not_keep_the_journal_L4),
		FORK_TEST(child_forked_just_after_the_opening_does_not_keep_the_guard_L4),
		FORK_TEST(child_forked_while_a_file_is_locked_does_not_keep_it_L4),
		FORK_TEST(child_frees_its_handle_and_the_parent_keeps_the_lock_L13),
		FORK_TEST(child_without_a_free_descriptor_drops_them_too_L4),
		FORK_TEST(children_of_a_threaded_program_keep_none_of_its_locks_L4),
		FORK_TEST(fork_after_dlclose_is_safe_L13),
	};

	return hf_run_tests("fork", tests);
}
