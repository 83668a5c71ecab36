/*
 * tests/helper/lock_workers.h - processes that take locks, for tests of waiting.
 *
 * Waiters are processes. What they do and see stands in shared memory; that they wait is
 * seen in the queue (hf_lock_look), never guessed from time. Header only.
 */
#ifndef TESTS_LOCK_WORKERS_H
#define TESTS_LOCK_WORKERS_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/lock_helper.h"
#include "helper/test.h"
#include "hf/lock/local/deadlock/deadlock.h"
#include "hf/lock/local/local.h"
#include "holdfast/journal.h"

#define WORKERS 128
#define SLACK   (1 * HF_SEC) /* for a loaded machine, where a bound is stated */

/* One process: takes `names` in order, holds until told, releases in reverse. */
struct worker {
	/* Set by the test before it starts. */
	const char *names[3];
	enum hf_lock_kind kinds[3];
	struct hf_lock_opts opts;
	int keep;      /* holds what it has got until `go` */
	int keep_each; /* holds the first until `go`, then takes the rest */
	int dies;      /* exits instead of releasing, as `lock run` does */
	int64_t guard_wait_ns; /* 0: as it is */
	void (*prepare)(void);
	void (*before_release)(void);
	/* Written by the process. */
	volatile int started, got, done, r;
	volatile int wakes;       /* by an event, where it counts them */
	volatile int order;       /* the how-manieth to get the last of its locks */
	volatile uint64_t token;
	volatile int64_t took_ns; /* the last acquisition */
	volatile int64_t got_at;  /* monotonic */
	char detail[256];
	/* Written by the test. */
	volatile int go;
	pid_t pid;
};

static struct shared {
	struct worker workers[WORKERS];
	volatile int orders, inside, most_inside, scratch;
} *sh;

static int n_workers;
static struct hf_journal *journal;
static struct hf_locks *locks;

static inline int wait_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	lock_store_next();
	memset(sh, 0, sizeof(*sh));
	n_workers = 0;
	hf_deadlock_first_ns = 50 * HF_MSEC;
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_locks_open_store(lock_store_url, hf_test_state(), journal, &locks, ERR));
	return 0;
}

static inline int reap_worker(struct worker *w)
{
	int status = -1;

	if (w->pid > 0)
		MUST(waitpid(w->pid, &status, 0) == w->pid);
	w->pid = 0;
	return status;
}

static inline int wait_teardown(void **state)
{
	for (int i = 0; i < n_workers; i++)
		if (sh->workers[i].pid > 0) {
			kill(sh->workers[i].pid, SIGKILL);
			(void)reap_worker(&sh->workers[i]);
		}
	hf_locks_free(locks);
	hf_journal_free(journal);
	locks = NULL;
	journal = NULL;
	return proc_test_teardown(state);
}

#define WAIT_TEST(fn) { #fn, fn, wait_setup, wait_teardown, NULL }

static inline int take_one(struct hf_locks *own, struct worker *w, const char *name, struct hf_lock **ret)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_mono before = hf_mono_now();
	int r = hf_lock_acquire(own, name, &w->opts, ret, NULL, &err);

	w->got_at = hf_mono_now().ns;
	w->took_ns = w->got_at - before.ns;
	memcpy(w->detail, err.detail, sizeof(w->detail));
	if (r == 0)
		w->token = hf_lock_token(*ret);
	return r;
}

static inline void hold(struct worker *w)
{
	while (!w->go)
		(void)poll(NULL, 0, 1);
}

static inline void work(struct worker *w)
{
	struct hf_locks *own = own_locks(1);
	struct hf_lock *held[3];
	int n = 0, inside;

	if (w->guard_wait_ns)
		((struct hf_local *)hf_locks_store(own))->guard_wait_ns = w->guard_wait_ns;
	if (w->prepare)
		w->prepare();
	w->started = 1;
	for (; n < 3 && w->names[n] && w->r == 0; n++) {
		w->r = take_one(hf_locks_kind(own, w->kinds[n]), w, w->names[n], &held[n]);
		if (w->r < 0)
			break;
		w->got = n + 1;
		if (n == 0 && w->keep_each)
			hold(w);
	}
	if (w->r == 0) {
		w->order = __atomic_add_fetch(&sh->orders, 1, __ATOMIC_SEQ_CST);
		inside = __atomic_add_fetch(&sh->inside, 1, __ATOMIC_SEQ_CST);
		if (inside > sh->most_inside)
			sh->most_inside = inside;
		if (w->keep)
			hold(w);
		__atomic_sub_fetch(&sh->inside, 1, __ATOMIC_SEQ_CST);
	}
	if (w->before_release)
		w->before_release();
	if (w->dies && w->r == 0) {
		w->done = 1;
		_exit(0);
	}
	while (n-- > 0)
		MUST(hf_lock_release(held[n], NULL) == 0);
	w->done = 1;
}

static inline struct worker *worker(const char *name, int64_t wait_ns)
{
	struct worker *w = &sh->workers[n_workers++];

	MUST(n_workers <= WORKERS);
	w->names[0] = name;
	w->opts = (struct hf_lock_opts){ .size = sizeof(w->opts), .wait_ns = wait_ns };
	return w;
}

static inline void start(struct worker *w)
{
	pid_t parent = getpid(), pid = fork(); /* not w->pid: the child would write it too */

	MUST(pid >= 0);
	if (pid == 0) {
		/* No process outlives the program, whatever happens to it. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			work(w);
		_exit(0);
	}
	w->pid = pid;
}

struct view {
	size_t n_holders, n_waiters;
	int32_t holder;
	int32_t waiters[WORKERS];
};

static inline void keep_view(void *arg, const struct hf_lock_info *info)
{
	struct view *view = arg;

	view->n_holders = info->n_holders;
	view->n_waiters = info->n_waiters;
	view->holder = info->n_holders > 0 ? info->holders[0].id.pid : 0;
	for (size_t i = 0; i < info->n_waiters && i < WORKERS; i++)
		view->waiters[i] = info->waiters[i].id.pid;
}

static inline struct view look(const char *name)
{
	struct view view = { 0 };

	ASSERT_OK(hf_lock_look(locks, name, keep_view, &view, ERR));
	return view;
}

/* Starts it and waits until it is the nth of the queue. */
static inline void start_in_queue(struct worker *w, const char *name, size_t n)
{
	struct view view;

	start(w);
	AWAIT((view = look(name)).n_waiters == n);
	assert_int_equal(view.waiters[n - 1], w->pid);
}

static inline struct hf_lock *take(const char *name)
{
	struct hf_lock *lock = NULL;

	ASSERT_OK(hf_lock_acquire(locks, name, NULL, &lock, NULL, ERR));
	return lock;
}

static inline void give_back(struct hf_lock *lock)
{
	ASSERT_OK(hf_lock_release(lock, ERR));
	hf_lock_free(lock);
}

static inline int try_now(const char *name)
{
	struct hf_lock *lock = NULL;
	int r = hf_lock_acquire(locks, name, NULL, &lock, NULL, ERR);

	if (r == 0)
		give_back(lock);
	return r;
}

static inline void finish(struct worker *w)
{
	AWAIT(w->done);
	assert_int_equal(reap_worker(w), 0);
}

/* Channels that nobody removed; only the local store has any. */
static inline int channels(void)
{
	DIR *dir = opendir(hf_test_path("state/locks/name/.wait"));
	struct dirent *entry;
	struct stat st;
	int n = 0;

	assert_true(dir || strcmp(lock_store_url, "local:") != 0);
	while (dir && (entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			n += S_ISFIFO(st.st_mode);
	if (dir)
		closedir(dir);
	return n;
}

/* Nobody has it, nobody waits, nothing is left, and it is free. */
static inline void assert_idle(const char *name)
{
	struct view view = look(name);

	assert_int_equal(view.n_holders, 0);
	assert_int_equal(view.n_waiters, 0);
	assert_int_equal(channels(), 0);
	ASSERT_OK(try_now(name));
}

static inline void await_stopped(pid_t pid)
{
	siginfo_t info = { 0 };

	AWAIT(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == pid);
}

static inline long switches(pid_t pid)
{
	char path[64], line[256];
	long n = -1;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	in = fopen(path, "re");
	MUST(in);
	while (fgets(line, sizeof(line), in))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
			break;
	fclose(in);
	return n;
}

/* For tests that count wake-ups: waiters that are started from now on do not look for a deadlock. */
static inline void no_looks_for_a_deadlock(void)
{
	hf_deadlock_first_ns = 3600 * HF_SEC;
}

/* Until it sleeps. */
static inline void await_quiet(pid_t pid)
{
	struct hf_mono until = hf_mono_in(20 * HF_SEC);
	long before;

	do {
		before = switches(pid);
		MUST(hf_mono_left(until) > 0);
		(void)poll(NULL, 0, 120);
	} while (switches(pid) != before);
}

#endif
