/* stress/lock/line.c - a few processes that follow orders: stopped and killed at chosen places of the queue. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/sys/calls.h"
#include "holdfast/lock.h"
#include "stress/lock/stress.h"

/* -- a line of processes that are told what to do ------------------------------------------ */

/* A process that takes a lock, says so, and lets go when it is told. */
struct actor {
	pid_t pid;
	int orders[2], answers[2];
};

static void play(const char *leaf, const char *name, struct actor *a, int64_t ttl_ns)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1, .ttl_ns = ttl_ns };
	struct context c = open_context(leaf);
	struct hf_lock *lock;
	uint64_t token;

	if (hf_lock_acquire(c.locks, name, &opts, &lock, NULL, NULL) < 0)
		_exit(1);
	token = hf_lock_token(lock);
	if (write(a->answers[1], &token, sizeof(token)) != (ssize_t)sizeof(token))
		_exit(1);
	(void)hear(a->orders[0]);
	(void)hf_lock_release(lock, NULL);
	/* It lives on: its end must not be what wakes the next. */
	for (;;)
		pause();
}

static struct actor cast(const char *leaf, const char *name, int64_t ttl_ns)
{
	struct actor a;

	if (pipe2(a.orders, O_CLOEXEC) < 0 || pipe2(a.answers, O_CLOEXEC) < 0)
		give_up("pipe");
	fflush(stdout);
	a.pid = fork_child();
	if (a.pid == 0)
		play(leaf, name, &a, ttl_ns);
	return a;
}

static void dismiss(struct actor *a)
{
	end_child(a->pid);
	for (int i = 0; i < 2; i++) {
		close(a->orders[i]);
		close(a->answers[i]);
	}
}

/* The token it got within that time; 0: none. */
static uint64_t token_of(const struct actor *a, int64_t ms)
{
	struct pollfd p = { .fd = a->answers[0], .events = POLLIN };
	uint64_t token = 0;

	if (poll(&p, 1, (int)ms) != 1 ||
	    read(a->answers[0], &token, sizeof(token)) != (ssize_t)sizeof(token))
		return 0;
	return token;
}

struct wanted {
	size_t waiters;
	size_t holders;
};

static void read_wanted(void *arg, const struct hf_lock_info *info)
{
	struct wanted *w = arg;

	w->waiters = info->n_waiters;
	w->holders = info->n_holders;
}

/* Until that many sleep in the queue. */
static void await_waiters(struct context *c, const char *name, size_t n)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	struct wanted w = { 0, 0 };

	while (hf_mono_left(until) > 0) {
		if (hf_lock_look(c->locks, name, read_wanted, &w, NULL) == 0 && w.waiters == n)
			return;
		poll(NULL, 0, 2);
	}
	printf("# '%s': %zu waiters, not %zu\n", name, w.waiters, n);
}

static void await_stopped(pid_t pid)
{
	siginfo_t info;

	(void)waitid(P_PID, (id_t)pid, &info, WSTOPPED);
}

/*
 * The holder, then three in the queue, the second of them stopped before its turn.
 * The third must not wait for much longer than HF_LOCK_TURN_NS.
 */
void stopped_in_the_queue(void)
{
	struct context c = open_context("line");
	struct actor a[4];
	int64_t start;
	uint64_t last;

	a[0] = cast("line", "line", 0);
	(void)token_of(&a[0], 5000);
	for (size_t i = 1; i < 4; i++) {
		a[i] = cast("line", "line", 0);
		await_waiters(&c, "line", i);
	}
	/* Past the one look for a deadlock, with which everybody wakes once by themselves. */
	poll(NULL, 0, 150);
	kill(a[2].pid, SIGSTOP);
	await_stopped(a[2].pid);
	tell(a[0].orders[1], 1);
	result(token_of(&a[1], 5000) > 0, "line: the first gets it");
	tell(a[1].orders[1], 1);
	start = now();
	last = token_of(&a[3], 3 * HF_LOCK_TURN_NS / HF_MSEC);
	printf("# line: the one behind a stopped waiter waited %lld ms\n",
	       (long long)((now() - start) / HF_MSEC));
	result(last > 0, "line: a stopped waiter holds up the next no longer than its turn");
	tell(a[3].orders[1], 1);
	kill(a[2].pid, SIGCONT);
	result(token_of(&a[2], 5000) > last, "line: it queues again and gets a later token (L2)");
	for (int i = 0; i < 4; i++)
		dismiss(&a[i]);
	close_context(&c);
}

/* -- stopped for good, anywhere in the queue ------------------------------------------------ */

#define PLACES 6
#define LINES  6

/* A queue behind a holder, some of whose places are stopped and never continued. */
struct row {
	char name[16];
	unsigned stopped; /* one bit for each place */
	int exits;        /* holders exit instead of releasing, as `lock run` does */
	unsigned readers; /* one bit for each place */
	pid_t holder, pids[PLACES];
	volatile int64_t *got; /* when each had the lock; 0: not yet */
};

static void take_a_turn(const char *leaf, const struct row *row, int place)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	struct context c = open_context(leaf);
	struct hf_lock *lock;

	opts.flags = row->exits ? HF_LOCK_FREE_ON_EXIT : 0;
	opts.mode = place >= 0 && row->readers >> place & 1 ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE;
	if (hf_lock_acquire(c.locks, row->name, &opts, &lock, NULL, NULL) < 0)
		_exit(1);
	row->got[place + 1] = now();
	/* The holder lets go when its parent says so; the others at once. */
	if (place < 0)
		(void)raise(SIGSTOP);
	if (row->exits)
		_exit(0);
	(void)hf_lock_release(lock, NULL);
	for (;;)
		pause();
}

static pid_t enter_row(const char *leaf, struct row *row, int place)
{
	pid_t pid;

	fflush(stdout);
	pid = fork_child();
	if (pid == 0)
		take_a_turn(leaf, row, place);
	return pid;
}

static void form_row(struct context *c, struct row *row, int number)
{
	snprintf(row->name, sizeof(row->name), "row%d", number);
	row->exits = number % 2;
	/* Each single place in turn, and neighbours; readers in every third. */
	row->stopped = number < PLACES ? 1U << number : 3U << (number % (PLACES - 1));
	row->readers = number % 3 == 2 ? (unsigned)random_below(1U << PLACES) : 0;
	/* Behind a stopped reader that was let in and a stopped writer: a reader, which those two would not keep out. */
	if (row->stopped == 3U << 3)
		row->readers = 1U << 3 | 1U << 5;
	for (int i = 0; i <= PLACES; i++)
		row->got[i] = 0;
	row->holder = enter_row("places", row, -1);
	await_stopped(row->holder);
	for (int i = 0; i < PLACES; i++) {
		row->pids[i] = enter_row("places", row, i);
		await_waiters(c, row->name, (size_t)i + 1);
	}
}

/* Places that run and have not had the lock. */
static int unserved(const struct row *row)
{
	int n = 0;

	for (int i = 0; i < PLACES; i++)
		n += !(row->stopped >> i & 1) && row->got[i + 1] == 0;
	return n;
}

/* All that run are served, however many are stopped for good and wherever. */
void stopped_for_good(void)
{
	struct context c = open_context("places");
	volatile int64_t *got = mmap(NULL, 2 * LINES * (PLACES + 1) * sizeof(*got), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A turn for each place that was before the last one, two for those that are stopped. */
	struct hf_mono until;
	struct row rows[2 * LINES];
	int64_t begin, longest[2] = { 0, 0 };
	int bad[2] = { 0, 0 };

	if (got == MAP_FAILED)
		give_up("mmap");
	seed_random(0, 0);
	for (int i = 0; i < 2 * LINES; i++) {
		rows[i].got = got + i * (PLACES + 1);
		form_row(&c, &rows[i], i);
	}
	/* Past the one look for a deadlock, with which everybody wakes once by themselves. */
	poll(NULL, 0, 150);
	for (int i = 0; i < 2 * LINES; i++)
		for (int k = 0; k < PLACES; k++)
			if (rows[i].stopped >> k & 1) {
				kill(rows[i].pids[k], SIGSTOP);
				await_stopped(rows[i].pids[k]);
			}
	begin = now();
	until = hf_mono_in((PLACES + 4) * HF_LOCK_TURN_NS + LATE_NS);
	for (int i = 0; i < 2 * LINES; i++)
		kill(rows[i].holder, SIGCONT);
	for (int i = 0; i < 2 * LINES; i++) {
		int many = i >= PLACES;

		while (unserved(&rows[i]) > 0 && hf_mono_left(until) > 0)
			poll(NULL, 0, 5);
		for (int k = 0; k < PLACES; k++)
			if (!(rows[i].stopped >> k & 1) && rows[i].got[k + 1] - begin > longest[many])
				longest[many] = rows[i].got[k + 1] - begin;
		bad[many] += unserved(&rows[i]);
	}
	printf("# places: the longest wait %lld ms behind one, %lld ms behind two\n",
	       (long long)(longest[0] / HF_MSEC), (long long)(longest[1] / HF_MSEC));
	result(bad[0] == 0 && longest[0] < 2 * HF_LOCK_TURN_NS + LATE_NS,
	       "places: one stopped for good at any place holds up the rest no longer than two turns");
	result(bad[1] == 0, "places: neighbours stopped for good hold up nobody for good");
	for (int i = 0; i < 2 * LINES; i++) {
		end_child(rows[i].holder);
		for (int k = 0; k < PLACES; k++)
			end_child(rows[i].pids[k]);
	}
	(void)munmap((void *)got, 2 * LINES * (PLACES + 1) * sizeof(*got));
	close_context(&c);
}

/* In the place of write(2) to a channel: the record says so, and nobody gets the token. */
static ssize_t die_at_token(int fd, const void *bytes, size_t n)
{
	static const uint64_t look_again = 0;

	if (n != sizeof(look_again) || memcmp(bytes, &look_again, n) == 0)
		return write(fd, bytes, n);
	_exit(42);
}

/* Gives the lock on and dies before the next is told. The old holder lives on. */
static void pass_and_die(const char *leaf, const char *name, enum passing how, uint64_t token)
{
	struct context c = open_context(leaf);
	struct hf_lock *lock;

	if (how == BY_ITS_HOLDER && hf_lock_acquire(c.locks, name, NULL, &lock, NULL, NULL) < 0)
		_exit(1);
	if (how == BY_ITS_HOLDER)
		await_waiters(&c, name, 1);
	hf_sys.write = hf_sys.write_quiet = die_at_token;
	if (how == BY_ITS_HOLDER)
		_exit(hf_lock_release(lock, NULL) < 0);
	if (how == BY_TOKEN)
		_exit(hf_lock_release_as(c.locks, name, token, NULL, NULL) < 0);
	_exit(hf_lock_break(c.locks, name, "stress", NULL) < 0);
}

void killed_before_telling(const char *name, enum passing how, const char *title)
{
	struct context c = open_context("telling");
	struct actor holder, next;
	uint64_t token = 0;
	int status = 0;
	pid_t pid;

	if (how != BY_ITS_HOLDER) {
		holder = cast("telling", name, 0);
		token = token_of(&holder, 5000);
		next = cast("telling", name, 0);
		await_waiters(&c, name, 1);
	}
	fflush(stdout);
	pid = fork_child();
	if (pid == 0)
		pass_and_die("telling", name, how, token);
	if (how == BY_ITS_HOLDER) {
		struct hf_mono until = hf_mono_in(5 * HF_SEC);

		while (hf_lock_check_token(c.locks, name, 0, NULL) < 0 && hf_mono_left(until) > 0)
			poll(NULL, 0, 2);
		next = cast("telling", name, 0);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
		printf("# telling: the end was %x\n", (unsigned)status);
	result(token_of(&next, 3000) > token, title);
	dismiss(&next);
	if (how != BY_ITS_HOLDER)
		dismiss(&holder);
	close_context(&c);
}

/* Lets whichever of the two has got the lock give it back. 1 when one had. */
static int pass_on(const struct actor *a, const struct actor *b)
{
	struct pollfd p[2] = { { .fd = a->answers[0], .events = POLLIN },
			       { .fd = b->answers[0], .events = POLLIN } };

	if (poll(p, 2, 3000) < 1)
		return 0;
	if (!p[0].revents)
		a = b;
	if (token_of(a, 0) == 0)
		return 0;
	tell(a->orders[1], 1);
	return 1;
}

/* -- a waiter that dies while it is being told ------------------------------------------- */

static pid_t struck;

/* In the place of pwrite(2): the waiter whose channel is open dies before the message. */
static ssize_t strike_at_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	kill(struck, SIGKILL);
	(void)is_dead_soon(struck);
	return pwrite(fd, bytes, n, at);
}

void killed_while_told(void)
{
	struct context c = open_context("told");
	struct actor first, second;
	struct hf_lock *lock;
	int status = 0;
	pid_t pid;

	if (hf_lock_acquire(c.locks, "told", NULL, &lock, NULL, NULL) < 0)
		give_up("told");
	first = cast("told", "told", 0);
	await_waiters(&c, "told", 1);
	second = cast("told", "told", 0);
	await_waiters(&c, "told", 2);
	fflush(stdout);
	pid = fork_child();
	if (pid == 0) {
		struct context own = open_context("told");

		struck = first.pid;
		hf_sys.pwrite = strike_at_pwrite;
		_exit(hf_lock_release_as(own.locks, "told", hf_lock_token(lock), NULL, NULL) < 0);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("# told: the releasing process died of signal %d\n", WTERMSIG(status));
	result(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "told: a waiter that dies while it is told does the sender no harm (L13)");
	result(token_of(&second, 3000) > 0, "told: the next gets it");
	dismiss(&first);
	dismiss(&second);
	hf_lock_free(lock);
	close_context(&c);
}

/* -- stopped with the lock, but before acquire has returned ---------------------------------- */

static int stop_once;

/* In the place of flock(2): stops as soon as the guard is dropped. */
static int stop_at_drop(int fd, int operation)
{
	int r = flock(fd, operation);

	/* Only when it has become ours: until then the guard is dropped in order to sleep. */
	if (operation == LOCK_UN && stop_once++ == 1)
		raise(SIGSTOP);
	return r;
}

/*
 * Its holder dies; the first waiter finds that, takes the lock, and is stopped before
 * acquire has returned. It has the lock: the second waiter must not get it.
 */
void stopped_as_holder(void)
{
	struct context c = open_context("late");
	struct actor holder, first, second;
	siginfo_t info;
	uint64_t token;

	holder = cast("late", "late", 0);
	(void)token_of(&holder, 5000);
	hf_sys.flock = stop_at_drop;
	first = cast("late", "late", 0);
	hf_sys.flock = flock;
	await_waiters(&c, "late", 1);
	second = cast("late", "late", 0);
	await_waiters(&c, "late", 2);
	end_child(holder.pid);
	(void)waitid(P_PID, (id_t)first.pid, &info, WSTOPPED);
	token = token_of(&second, 2 * HF_LOCK_TURN_NS / HF_MSEC);
	kill(first.pid, SIGCONT);
	result(token == 0 && token_of(&first, 3000) > 0,
	       "late: a holder that is stopped is not passed over (L1, L4)");
	if (token == 0)
		tell(first.orders[1], 1);
	result(token != 0 || token_of(&second, 3000) > 0, "late: the next gets it afterwards");
	close(holder.orders[0]);
	close(holder.orders[1]);
	close(holder.answers[0]);
	close(holder.answers[1]);
	dismiss(&first);
	dismiss(&second);
	close_context(&c);
}

/*
 * The record is deleted by hand while a process waits; others come. The old holder has
 * lost it, and everybody gets it in the end.
 */
void deleted_under_waiters(void)
{
	struct context c = open_context("taken");
	struct actor a[4];
	char path[256];
	int ok;

	a[0] = cast("taken", "line", 0);
	(void)token_of(&a[0], 5000);
	a[1] = cast("taken", "line", 0);
	await_waiters(&c, "line", 1);
	poll(NULL, 0, 150); /* past its look for a deadlock */
	state_path("taken/locks/name/line", path);
	if (unlink(path) < 0)
		give_up(path);
	a[2] = cast("taken", "line", 0);
	result(token_of(&a[2], 3000) > 0, "taken: the next to come gets it");
	a[3] = cast("taken", "line", 0);
	await_waiters(&c, "line", 2); /* the old one finds out and queues again */
	tell(a[0].orders[1], 1);
	tell(a[2].orders[1], 1);
	ok = pass_on(&a[1], &a[3]) && pass_on(&a[1], &a[3]);
	if (!ok)
		(void)!hf_lock_look(c.locks, "line", show_lock, NULL, NULL);
	result(ok, "taken: the waiters from before and after the deletion get it in turn");
	for (int i = 0; i < 4; i++)
		dismiss(&a[i]);
	close_context(&c);
}
