/*
 * stress/lock.c - many processes over several locks, killed and stopped at random; TAP.
 *
 *     stress-lock [--seed N] [--seconds N] [--processes N] [--only WORD]
 *
 * Every acquisition is written into a log in shared memory, and every guarded action
 * checks, while it has the guard, that no action of a later holder was before it. What
 * cannot be lost (no lease, nobody breaks it) is also checked for plain exclusion: who
 * is inside says so in a table. The seed decides what the processes do and whom the
 * parent strikes, as far as the scheduler lets it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/lock/local/record.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"

#define PROCESSES_MAX  64
#define LOG_MAX        (1 << 20)
#define SWEEPERS       50
#define SWEEPS         100
#define QUEUERS        20
#define SLOTS          3
#define QUEUE_RING     16384
#define LONG_WAIT_NS   (20 * HF_SEC)
#define LATE_NS        (2 * HF_SEC) /* beyond a deadline, for a loaded machine */
#define STUCK_NS       (30 * HF_SEC)

/* -- the locks ---------------------------------------------------------------- */

struct subject {
	const char *name;
	enum hf_lock_mode mode; /* SHARED: readers and writers */
	int may_be_lost;        /* leases and breaks */
};

static const struct subject subjects[] = {
	{ "strict/exclusive", HF_LOCK_EXCLUSIVE, 0 },
	{ "strict/shared", HF_LOCK_SHARED, 0 },
	{ "strict/slots", HF_LOCK_SLOTS, 0 },
	{ "leased/exclusive", HF_LOCK_EXCLUSIVE, 1 },
	{ "leased/shared", HF_LOCK_SHARED, 1 },
};
#define N_SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/* -- what all processes share ------------------------------------------------- */

struct acquisition {
	uint64_t token; /* 0: its process was killed while it wrote this */
	int64_t start_ns, end_ns;
	uint32_t subject;
};

struct inside {
	pid_t pid; /* 0: nobody */
	uint64_t token;
	int alone;
};

struct shared {
	int over;
	uint64_t writer[N_SUBJECTS];  /* highest token of an exclusive guarded action */
	uint64_t highest[N_SUBJECTS]; /* of any */
	pid_t guarding[N_SUBJECTS];
	struct inside inside[N_SUBJECTS][PROCESSES_MAX];
	uint32_t dead; /* ended by a signal that was not ours */
	uint32_t backwards, unguarded, overlaps, early, late, stuck, lost, other;
	uint32_t acquired, actions, refused, timeouts, busy, broken, deleted, children;
	uint32_t n_log;
	struct acquisition log[LOG_MAX];
};

static struct shared *shared;

static uint64_t random_state;
static uint64_t the_seed;
static int64_t seconds = 3;
static int processes = 24;
static const char *only = "";
static char base[128];
static int test_number, failures;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static void seed_random(uint64_t a, uint64_t b)
{
	random_state = the_seed ^ (a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^
		       (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);
	if (random_state == 0)
		random_state = 1;
	for (int i = 0; i < 8; i++)
		(void)random_below(2);
}

static void result(int ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++test_number, what);
	fflush(stdout);
	failures += !ok;
}

static void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

static void count(uint32_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Counts what must not happen, and says what it was; of very many only the first. */
__attribute__((format(printf, 2, 3))) static void wrong(uint32_t *counter, const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	if (__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED) > 8)
		return;
	va_start(args, format);
	n = snprintf(text, sizeof(text), "# pid %d: ", (int)getpid());
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 2, format, args);
	va_end(args);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)n) < 0)
		return;
}

static int64_t now(void)
{
	return hf_mono_now().ns;
}

static int is_over(void)
{
	return __atomic_load_n(&shared->over, __ATOMIC_ACQUIRE);
}

/*
 * Has it ended, or is it just ending? The kernel closes a dying process's files, and so
 * gives its guard away, some time before the process is seen as a zombie.
 */
static int is_dead_soon(pid_t pid)
{
	for (int i = 0; i < 1000; i++) {
		char path[40], text[64] = "";
		const char *state;
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return 1;
		if (read(fd, text, sizeof(text) - 1) <= 0)
			text[0] = '\0';
		close(fd);
		state = strrchr(text, ')');
		if (!state || state[2] == 'Z' || state[2] == 'X')
			return 1;
		poll(NULL, 0, 1);
	}
	return 0;
}

/* -- state directories ---------------------------------------------------------- */

static void state_path(const char *leaf, char path[256])
{
	snprintf(path, 256, "%s/%s", base, leaf);
}

/* Each process opens its own. */
struct context {
	struct hf_state *state;
	struct hf_journal *journal;
	struct hf_locks *locks;
};

static struct context open_context(const char *leaf)
{
	struct context c;
	struct hf_err err;
	char path[256];

	state_path(leaf, path);
	if (hf_state_open(path, 0, &c.state, &err) < 0 ||
	    hf_journal_open(c.state, NULL, &c.journal, &err) < 0 ||
	    hf_locks_open(c.state, c.journal, &c.locks, &err) < 0) {
		printf("Bail out! %s %s: %d, errno %d, %s\n", err.op, err.subject, err.code, err.sys,
		       err.detail);
		exit(99);
	}
	return c;
}

static void close_context(struct context *c)
{
	hf_locks_free(c->locks);
	hf_journal_free(c->journal);
	hf_state_free(c->state);
}

static void remove_all(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", base, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* A child that does not outlive us. */
static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* -- one worker ------------------------------------------------------------------ */

enum {
	WITH_BREAKS = 1 << 0,
	WITH_FORKS = 1 << 1,
	WITH_KILLS = 1 << 2,
	WITH_STOPS = 1 << 3,
	WITH_DELETIONS = 1 << 4, /* then every lock may be lost */
};

struct worker {
	struct context c;
	unsigned what;
	int index;
};

static volatile sig_atomic_t resumed;

static void note_resumption(int sig)
{
	(void)sig;
	resumed++;
}

struct hold {
	struct worker *w;
	uint32_t subject;
	const char *name;
	int alone; /* exclusive */
	int may_be_lost;
	struct hf_lock_opts opts;
	struct hf_lock *lock;
	uint64_t token;
};

/*
 * Runs under the guard, so alone for this name. A writer comes after everybody who
 * acted before it, a reader after every writer (L1, L5).
 */
static int check_order(void *arg)
{
	struct hold *h = arg;
	pid_t other = __atomic_load_n(&shared->guarding[h->subject], __ATOMIC_ACQUIRE);
	uint64_t before = h->opts.mode == HF_LOCK_EXCLUSIVE ? shared->highest[h->subject]
							   : shared->writer[h->subject];

	if (other != 0 && other != getpid() && !is_dead_soon(other))
		wrong(&shared->unguarded, "'%s': pid %d is under the guard too", h->name, (int)other);
	__atomic_store_n(&shared->guarding[h->subject], getpid(), __ATOMIC_RELEASE);
	if (h->token < before)
		wrong(&shared->backwards, "'%s': token %llu acts after %llu", h->name,
		      (unsigned long long)h->token, (unsigned long long)before);
	if (h->opts.mode == HF_LOCK_EXCLUSIVE)
		shared->writer[h->subject] = h->token;
	if (h->token > shared->highest[h->subject])
		shared->highest[h->subject] = h->token;
	if (random_below(8) == 0)
		sched_yield();
	count(&shared->actions);
	__atomic_store_n(&shared->guarding[h->subject], 0, __ATOMIC_RELEASE);
	return 0;
}

/* 1 when the lock is still ours. */
static int act(struct hold *h)
{
	struct hf_err err;
	int r = hf_lock_guarded(h->w->c.locks, h->name, h->token, check_order, h, &err);

	if (r == 0)
		return 1;
	if (r != HF_E_STALE)
		wrong(&shared->other, "'%s': guarded action: %d %s", h->name, r, err.detail);
	else if (!h->may_be_lost)
		wrong(&shared->lost, "'%s': token %llu was lost", h->name,
		      (unsigned long long)h->token);
	count(&shared->refused);
	return 0;
}

/* Those with whom we must not be inside, or, for slots, all others. */
static int look_around(const struct hold *h, struct inside others[PROCESSES_MAX])
{
	struct inside *table = shared->inside[h->subject];
	int n = 0;

	for (int i = 0; i < PROCESSES_MAX; i++) {
		struct inside other = { .pid = __atomic_load_n(&table[i].pid, __ATOMIC_SEQ_CST),
					.token = __atomic_load_n(&table[i].token, __ATOMIC_SEQ_CST),
					.alone = table[i].alone };

		if (i != h->w->index && other.pid != 0 &&
		    (h->opts.mode == HF_LOCK_SLOTS || h->alone || other.alone))
			others[n++] = other;
	}
	return n;
}

/* Who is in both, with the same token, was inside all the time between. */
static int count_common(const struct inside *a, int n_a, const struct inside *b, int n_b)
{
	int common = 0;

	for (int i = 0; i < n_a; i++)
		for (int j = 0; j < n_b; j++)
			common += a[i].pid == b[j].pid && a[i].token == b[j].token &&
				  !is_dead_soon(a[i].pid);
	return common;
}

static void enter(struct hold *h)
{
	struct inside *me = &shared->inside[h->subject][h->w->index];
	struct inside first[PROCESSES_MAX], second[PROCESSES_MAX];
	int most = h->opts.mode == HF_LOCK_SLOTS ? SLOTS - 1 : 0;
	int n_first, n_second;

	me->alone = h->alone;
	__atomic_store_n(&me->token, h->token, __ATOMIC_SEQ_CST);
	__atomic_store_n(&me->pid, getpid(), __ATOMIC_SEQ_CST);
	n_first = look_around(h, first);
	n_second = look_around(h, second);
	/* Some of them may have been killed: that takes a while to be seen. */
	if (n_first > most && n_second > most &&
	    count_common(first, n_first, second, n_second) > most)
		wrong(&shared->overlaps, "'%s': too many are inside with token %llu", h->name,
		      (unsigned long long)h->token);
}

static void leave(struct hold *h)
{
	__atomic_store_n(&shared->inside[h->subject][h->w->index].pid, 0, __ATOMIC_SEQ_CST);
}

static void log_acquisition(const struct hold *h, int64_t start)
{
	uint32_t at = __atomic_fetch_add(&shared->n_log, 1, __ATOMIC_RELAXED);

	count(&shared->acquired);
	if (at >= LOG_MAX)
		return;
	shared->log[at].start_ns = start;
	shared->log[at].end_ns = now();
	shared->log[at].subject = h->subject;
	__atomic_store_n(&shared->log[at].token, h->token, __ATOMIC_RELEASE);
}

static void choose(struct worker *w, struct hold *h)
{
	static const int64_t waits[] = { 0, 5 * HF_MSEC, 30 * HF_MSEC, LONG_WAIT_NS, LONG_WAIT_NS };
	const struct subject *s;

	memset(h, 0, sizeof(*h));
	h->w = w;
	h->subject = (uint32_t)random_below(N_SUBJECTS);
	s = &subjects[h->subject];
	h->name = s->name;
	h->may_be_lost = s->may_be_lost || w->what & WITH_DELETIONS;
	h->opts.size = sizeof(h->opts);
	h->opts.mode = s->mode == HF_LOCK_SHARED && random_below(3) == 0 ? HF_LOCK_EXCLUSIVE
									  : s->mode;
	h->alone = h->opts.mode == HF_LOCK_EXCLUSIVE;
	h->opts.slots = s->mode == HF_LOCK_SLOTS ? SLOTS : 0;
	h->opts.wait_ns = waits[random_below(sizeof(waits) / sizeof(waits[0]))];
	if (s->may_be_lost && random_below(2) == 0)
		h->opts.ttl_ns = (int64_t)(30 + random_below(170)) * HF_MSEC;
}

/* A refusal: of the right kind, not before its time, and not long after it. */
static void check_refusal(const struct hold *h, int r, const char *detail, int64_t start,
			  int was_stopped)
{
	int64_t took = now() - start;

	count(r == HF_E_BUSY ? &shared->busy : &shared->timeouts);
	if (r != (h->opts.wait_ns == 0 ? HF_E_BUSY : HF_E_TIMEOUT)) {
		wrong(&shared->other, "'%s': acquire: %d %s", h->name, r, detail);
		return;
	}
	if (took < h->opts.wait_ns)
		wrong(&shared->early, "'%s': timed out after %lld of %lld us", h->name,
		      (long long)(took / HF_USEC), (long long)(h->opts.wait_ns / HF_USEC));
	if (took > h->opts.wait_ns + LATE_NS && !was_stopped)
		wrong(&shared->late, "'%s': timed out after %lld of %lld ms", h->name,
		      (long long)(took / HF_MSEC), (long long)(h->opts.wait_ns / HF_MSEC));
	if (h->opts.wait_ns == LONG_WAIT_NS && !was_stopped)
		wrong(&shared->stuck, "'%s': not had in %lld s: %s", h->name,
		      (long long)(LONG_WAIT_NS / HF_SEC), detail);
}

/* A child that lives longer than the hold, perhaps longer than we: it changes nothing. */
static void fork_outliving(struct hold *h)
{
	int ms = (int)random_below(150);
	struct hf_err err;
	pid_t pid = fork();

	if (pid != 0) {
		count(&shared->children);
		return;
	}
	if (hf_lock_release(h->lock, &err) != HF_E_FORKED)
		wrong(&shared->other, "'%s': released by a child", h->name);
	poll(NULL, 0, ms);
	_exit(0);
}

/* Works under the lock for a while: acts, renews, forks, until it is lost. */
static void work(struct hold *h)
{
	int turns = (int)random_below(4);
	struct hf_err err;

	if (h->w->what & WITH_FORKS && random_below(20) == 0)
		fork_outliving(h);
	for (int i = 0; i <= turns; i++) {
		if (!act(h))
			return;
		if (random_below(4) == 0)
			poll(NULL, 0, (int)random_below(h->opts.ttl_ns > 0 ? 40 : 3));
		if (h->opts.ttl_ns > 0 && random_below(2) == 0 &&
		    hf_lock_renew(h->lock, 0, &err) < 0 && !h->may_be_lost)
			wrong(&shared->lost, "'%s': not renewed: %s", h->name, err.detail);
	}
	(void)act(h);
}

static void let_go(struct hold *h)
{
	struct hf_err err;
	int r = hf_lock_release(h->lock, &err);

	if (r < 0 && !(r == HF_E_STALE && h->may_be_lost))
		wrong(r == HF_E_STALE ? &shared->lost : &shared->other, "'%s': release: %d %s",
		      h->name, r, err.detail);
	/* Once it is given back, it is not ours. */
	if (random_below(8) == 0 &&
	    hf_lock_guarded(h->w->c.locks, h->name, h->token, check_order, h, &err) == 0)
		wrong(&shared->backwards, "'%s': acted after its release", h->name);
	hf_lock_free(h->lock);
}

static void hold_once(struct worker *w)
{
	sig_atomic_t before = resumed;
	struct hf_holder blocker;
	struct hf_err err;
	struct hold h;
	int64_t start;
	int r;

	choose(w, &h);
	start = now();
	r = hf_lock_acquire(w->c.locks, h.name, &h.opts, &h.lock, &blocker, &err);
	if (r < 0) {
		check_refusal(&h, r, err.detail, start, resumed != before);
		return;
	}
	h.token = hf_lock_token(h.lock);
	log_acquisition(&h, start);
	if (!h.may_be_lost)
		enter(&h);
	work(&h);
	if (!h.may_be_lost)
		leave(&h);
	let_go(&h);
}

static void break_one(struct worker *w)
{
	const char *name = subjects[random_below(N_SUBJECTS)].name;
	struct hf_err err;
	int r;

	if (strncmp(name, "leased", 6) != 0)
		return;
	r = hf_lock_break(w->c.locks, name, "stress", &err);
	if (r < 0 && r != HF_E_NOT_HELD)
		wrong(&shared->other, "'%s': break: %d %s", name, r, err.detail);
	else if (r > 0)
		count(&shared->broken);
}

static void run_worker(const char *leaf, int index, uint64_t generation, unsigned what)
{
	struct sigaction sa = { .sa_handler = note_resumption, .sa_flags = SA_RESTART };
	struct worker w = { .what = what, .index = index };

	sigaction(SIGCONT, &sa, NULL);
	signal(SIGCHLD, SIG_IGN);
	seed_random((uint64_t)index, generation);
	w.c = open_context(leaf);
	while (!is_over()) {
		hold_once(&w);
		if (what & WITH_BREAKS && random_below(100) == 0)
			break_one(&w);
		if (random_below(10) == 0)
			poll(NULL, 0, (int)random_below(3));
	}
	close_context(&w.c);
	_exit(0);
}

/* -- the parent of many workers ----------------------------------------------------- */

struct crew {
	const char *leaf;
	unsigned what;
	pid_t pids[PROCESSES_MAX];
	int stopped[PROCESSES_MAX];
	uint64_t generation;
	uint64_t kills, stops;
};

static void hire(struct crew *crew, int i)
{
	pid_t pid = fork_child();

	if (pid == 0)
		run_worker(crew->leaf, i, crew->generation, crew->what);
	crew->generation++;
	crew->pids[i] = pid;
}

/* What the dead left in the tables is taken out. */
static void bury(pid_t pid)
{
	for (size_t s = 0; s < N_SUBJECTS; s++) {
		pid_t expected = pid;

		(void)__atomic_compare_exchange_n(&shared->guarding[s], &expected, 0, 0,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		for (int i = 0; i < PROCESSES_MAX; i++)
			if (shared->inside[s][i].pid == pid)
				__atomic_store_n(&shared->inside[s][i].pid, 0, __ATOMIC_SEQ_CST);
	}
}

static void check_end(pid_t pid, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		wrong(&shared->dead, "worker %d died of signal %d", (int)pid, WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		wrong(&shared->dead, "worker %d ended with %d", (int)pid, WEXITSTATUS(status));
}

static void kill_one(struct crew *crew, int i)
{
	int status;

	kill(crew->pids[i], SIGKILL);
	if (waitpid(crew->pids[i], &status, 0) > 0)
		check_end(crew->pids[i], status);
	bury(crew->pids[i]);
	crew->stopped[i] = 0;
	crew->kills++;
	hire(crew, i);
}

static void stop_or_continue(struct crew *crew, int i)
{
	crew->stopped[i] = !crew->stopped[i];
	kill(crew->pids[i], crew->stopped[i] ? SIGSTOP : SIGCONT);
	crew->stops += crew->stopped[i] != 0;
}

/* By hand, but not in the middle of somebody's guard: that is a break, not an overlap. */
static void delete_one(struct crew *crew)
{
	static const char *const keys[] = { "strict%2Fexclusive", "strict%2Fshared",
					    "strict%2Fslots", "leased%2Fexclusive" };
	char path[320], dir[256];
	int fd;

	state_path(crew->leaf, dir);
	snprintf(path, sizeof(path), "%s/locks/name/%s", dir, keys[random_below(4)]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		continue;
	if (unlink(path) == 0)
		count(&shared->deleted);
	close(fd);
}

static void strike(struct crew *crew)
{
	int victim = (int)random_below((uint64_t)processes);

	if (crew->what & WITH_KILLS && random_below(3) == 0)
		kill_one(crew, victim);
	if (crew->what & WITH_STOPS && random_below(3) == 0)
		stop_or_continue(crew, (int)random_below((uint64_t)processes));
	if (crew->what & WITH_DELETIONS && random_below(3) == 0)
		delete_one(crew);
}

static void show_lock(void *arg, const struct hf_lock_info *info)
{
	(void)arg;
	printf("# '%s': token %llu, %zu holders, %zu waiters\n", info->name,
	       (unsigned long long)info->token, info->n_holders, info->n_waiters);
	for (size_t i = 0; i < info->n_holders; i++)
		printf("#   held by pid %d, token %llu: %s\n", (int)info->holders[i].id.pid,
		       (unsigned long long)info->holders[i].token, info->holders[i].evidence);
	for (size_t i = 0; i < info->n_waiters; i++)
		printf("#   wanted by pid %d for %lld ms\n", (int)info->waiters[i].id.pid,
		       (long long)(info->waiters[i].waited_ns / HF_MSEC));
}

/* Waits for the end of one. 1 when it has ended. */
static int await_end(pid_t pid, struct hf_mono until)
{
	int status, r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && hf_mono_left(until) > 0)
		poll(NULL, 0, 2);
	if (r > 0)
		check_end(pid, status);
	return r != 0;
}

/* Everybody goes home by themselves. Returns how many do not. */
static int end_crew(struct crew *crew)
{
	struct hf_mono until = hf_mono_in(STUCK_NS);
	int stuck = 0;

	for (int i = 0; i < processes; i++)
		kill(crew->pids[i], SIGCONT);
	__atomic_store_n(&shared->over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < processes; i++) {
		if (await_end(crew->pids[i], until))
			continue;
		if (stuck++ == 0) {
			struct context c = open_context(crew->leaf);

			(void)!hf_lock_list(c.locks, show_lock, NULL, NULL);
			close_context(&c);
		}
		end_child(crew->pids[i]);
	}
	return stuck;
}

/* -- what must be true afterwards ------------------------------------------------------ */

static int by_token(const void *a, const void *b)
{
	const struct acquisition *x = a, *y = b;

	if (x->subject != y->subject)
		return x->subject < y->subject ? -1 : 1;
	return x->token < y->token ? -1 : x->token > y->token;
}

/*
 * L2: no token twice, and none that was had before another was asked for is higher
 * than it. Returns how many are.
 */
static uint32_t check_tokens(void)
{
	uint32_t n = shared->n_log < LOG_MAX ? shared->n_log : LOG_MAX, bad = 0;
	int64_t earliest_end = INT64_MAX;

	qsort(shared->log, n, sizeof(shared->log[0]), by_token);
	for (uint32_t i = n; i-- > 0;) {
		const struct acquisition *a = &shared->log[i];
		int last = i + 1 == n || a[1].subject != a->subject;

		if (a->token == 0)
			continue;
		if (last)
			earliest_end = INT64_MAX;
		bad += !last && a[1].token == a->token;
		bad += earliest_end < a->start_ns;
		if (a->end_ns < earliest_end)
			earliest_end = a->end_ns;
	}
	return bad;
}

/* A fresh acquisition of each name, in 3 s. Returns how many fail. */
static int check_fresh(const char *leaf)
{
	struct context c = open_context(leaf);
	int bad = 0;

	for (size_t s = 0; s < N_SUBJECTS; s++) {
		struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 3 * HF_SEC };
		struct hf_lock *lock;
		struct hf_err err;

		if (hf_lock_acquire(c.locks, subjects[s].name, &opts, &lock, NULL, &err) < 0) {
			printf("# '%s' afterwards: %s\n", subjects[s].name, err.detail);
			(void)!hf_lock_look(c.locks, subjects[s].name, show_lock, NULL, NULL);
			bad++;
			continue;
		}
		bad += hf_lock_release(lock, NULL) < 0;
		hf_lock_free(lock);
	}
	close_context(&c);
	return bad;
}

static void look_only(void *arg, const struct hf_lock_info *info)
{
	*(int *)arg += info->n_holders > 0;
}

static int count_entries(const char *leaf, const char *sub, int channels_only)
{
	char path[320], dir_path[256];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	state_path(leaf, dir_path);
	snprintf(path, sizeof(path), "%s/%s", dir_path, sub);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += channels_only ? entry->d_type == DT_FIFO : entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Does the channel belong to one of these processes, which all ended in peace? */
static int is_channel_of(int wait_fd, const char *file, const pid_t *pids)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	const char *dot = strrchr(file, '.');
	struct hf_lock_entry entry;
	uint64_t ticket = dot ? strtoull(dot + 1, NULL, 36) : 0;
	char record[300];
	ssize_t n;
	int fd;

	snprintf(record, sizeof(record), "../%.*s", dot ? (int)(dot - file) : 0, file);
	fd = openat(wait_fd, record, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = pread(fd, bytes, sizeof(bytes),
		  (off_t)(HF_LOCK_RECORD_MAX + ticket % QUEUE_RING * HF_LOCK_ENTRY_SIZE));
	close(fd);
	if (n != (ssize_t)sizeof(bytes) || hf_lock_entry_decode(bytes, ticket, &entry) < 0)
		return 0;
	for (int i = 0; i < processes; i++)
		if (pids[i] == entry.waiter.pid)
			return 1;
	return 0;
}

static int count_left_channels(const struct crew *crew)
{
	char path[320], dir_path[256];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	state_path(crew->leaf, dir_path);
	snprintf(path, sizeof(path), "%s/locks/name/.wait", dir_path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += entry->d_type == DT_FIFO && is_channel_of(dirfd(dir), entry->d_name, crew->pids);
	if (dir)
		closedir(dir);
	return n;
}

/* Lock files decode, nothing was quarantined, nobody holds, no channel is left. */
static int check_files(const struct crew *crew)
{
	int held = 0, moved = count_entries(crew->leaf, "quarantine", 0);
	int left = count_left_channels(crew), all = count_entries(crew->leaf, "locks/name/.wait", 1);
	struct context c = open_context(crew->leaf);
	int r = hf_lock_list(c.locks, look_only, &held, NULL);

	close_context(&c);
	printf("# %d channels left behind, %d of them by living processes\n", all, left);
	if (crew->what & (WITH_KILLS | WITH_DELETIONS))
		all = 0; /* those of the dead stay until somebody comes upon them */
	if (r < 0 || held || moved || left || all)
		printf("# list %d, %d held, %d quarantined\n", r, held, moved);
	return r == 0 && !held && !moved && !left && !all;
}

static void show_counts(const struct crew *crew)
{
	printf("# %s: %u acquired, %u actions, %u refused, %u timeouts, %u busy, %u broken, "
	       "%u deleted, %u children, %llu killed, %llu stopped\n",
	       crew->leaf, shared->acquired, shared->actions, shared->refused, shared->timeouts,
	       shared->busy, shared->broken, shared->deleted, shared->children,
	       (unsigned long long)crew->kills, (unsigned long long)crew->stops);
	if (shared->backwards || shared->unguarded || shared->overlaps || shared->early ||
	    shared->late || shared->stuck || shared->lost || shared->other)
		printf("# %u backwards, %u unguarded, %u overlaps, %u early, %u late, %u stuck, "
		       "%u lost, %u other\n",
		       shared->backwards, shared->unguarded, shared->overlaps, shared->early,
		       shared->late, shared->stuck, shared->lost, shared->other);
}

#define TESTS_OF_MAYHEM 5

static void mayhem(const char *leaf, unsigned what)
{
	struct crew crew = { .leaf = leaf, .what = what };
	struct hf_mono until = hf_mono_in(seconds * HF_SEC);
	char title[160];
	int stuck;

	memset(shared, 0, sizeof(*shared));
	seed_random(1000, what);
	fflush(stdout);
	for (int i = 0; i < processes; i++)
		hire(&crew, i);
	while (hf_mono_left(until) > 0) {
		poll(NULL, 0, (int)random_below(8));
		strike(&crew);
	}
	stuck = end_crew(&crew);
	show_counts(&crew);
	snprintf(title, sizeof(title), "%s: L1 nobody is inside with whom it must not be", leaf);
	result(shared->overlaps == 0 && shared->unguarded == 0 && shared->acquired > 0, title);
	snprintf(title, sizeof(title), "%s: L5 no token acts after a later one; L4 none is lost", leaf);
	result(shared->backwards == 0 && shared->lost == 0 && shared->actions > 0, title);
	snprintf(title, sizeof(title), "%s: L2 tokens are unique and rise", leaf);
	result(check_tokens() == 0, title);
	snprintf(title, sizeof(title), "%s: no wake-up is lost, no wait ends before its time", leaf);
	result(stuck == 0 && shared->early == 0 && shared->late == 0 && shared->stuck == 0 &&
		       shared->other == 0 && shared->dead == 0,
	       title);
	snprintf(title, sizeof(title), "%s: afterwards every lock can be had and all files are sound",
		 leaf);
	stuck = check_fresh(leaf);
	result(check_files(&crew) && stuck == 0, title);
}

/* -- twenty in a queue ------------------------------------------------------------------ */

static void queue_up(const char *leaf, int index)
{
	struct worker w = { .index = index };
	struct hold h = { .w = &w, .name = "queue" };

	seed_random((uint64_t)index, 77);
	w.c = open_context(leaf);
	h.opts = (struct hf_lock_opts){ .size = sizeof(h.opts), .wait_ns = LONG_WAIT_NS };
	while (!is_over()) {
		int64_t start = now();
		struct hf_err err;

		if (hf_lock_acquire(w.c.locks, h.name, &h.opts, &h.lock, NULL, &err) < 0) {
			wrong(&shared->stuck, "queue: %s", err.detail);
			continue;
		}
		h.token = hf_lock_token(h.lock);
		log_acquisition(&h, start);
		if (hf_lock_release(h.lock, &err) < 0)
			wrong(&shared->other, "queue: %s", err.detail);
		hf_lock_free(h.lock);
	}
	close_context(&w.c);
	_exit(0);
}

static void measure_waits(uint32_t n, int64_t *ret_longest, int64_t *ret_mean)
{
	int64_t sum = 0;

	*ret_longest = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t waited = shared->log[i].end_ns - shared->log[i].start_ns;

		sum += waited;
		if (waited > *ret_longest)
			*ret_longest = waited;
	}
	*ret_mean = n > 0 ? sum / n : 0;
}

/*
 * How many got the lock after one that came clearly later. Between its arrival and its
 * place in the queue a process may lose the processor; `slack` allows for that.
 */
static uint32_t count_overtaken(uint32_t n, int64_t slack)
{
	uint32_t overtaken = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t came = shared->log[i].start_ns;

		for (uint32_t j = i > 4 * QUEUERS ? i - 4 * QUEUERS : 0; j < i; j++)
			if (shared->log[j].start_ns > came + slack) {
				overtaken++;
				break;
			}
	}
	return overtaken;
}

static void twenty_in_a_queue(void)
{
	int64_t longest, mean;
	uint32_t overtaken, n;
	pid_t pids[QUEUERS];

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	for (int i = 0; i < QUEUERS; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			queue_up("queue", i);
	}
	poll(NULL, 0, (int)seconds * 1000);
	__atomic_store_n(&shared->over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < QUEUERS; i++)
		waitpid(pids[i], NULL, 0);
	result(check_tokens() == 0 && shared->stuck == 0 && shared->other == 0,
	       "queue: 20 in a loop, all get it");
	n = shared->n_log < LOG_MAX ? shared->n_log : LOG_MAX;
	measure_waits(n, &longest, &mean);
	overtaken = count_overtaken(n, 10 * HF_MSEC + 3 * mean);
	printf("# queue: %u acquired, mean wait %lld us, longest %lld us, %u overtaken\n", n,
	       (long long)(mean / HF_USEC), (long long)(longest / HF_USEC), overtaken);
	result(n > QUEUERS && longest < 50 * mean + 500 * HF_MSEC, "queue: nobody starves");
	result(overtaken <= n / 100, "queue: first come, first served");
}

/* -- fifty at one free or stale name -------------------------------------------------------- */

static void tell(int fd, size_t n)
{
	char bytes[SWEEPERS];

	memset(bytes, 'x', sizeof(bytes));
	if (write(fd, bytes, n) != (ssize_t)n)
		give_up("pipe");
}

static char hear(int fd)
{
	char byte = 0;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
	return byte;
}

/* Tries when it is told to, and holds until all have tried. */
static void sweep(const char *leaf, int try_fd, int end_fd, int answer_fd)
{
	struct context c = open_context(leaf);

	for (;;) {
		struct hf_lock *lock = NULL;
		struct hf_err err;
		int r;

		(void)hear(try_fd);
		r = hf_lock_acquire(c.locks, "sweep", NULL, &lock, NULL, &err);
		if (r < 0 && r != HF_E_BUSY)
			wrong(&shared->other, "sweep: %d %s", r, err.detail);
		if (write(answer_fd, lock ? "1" : "0", 1) != 1)
			_exit(1);
		(void)hear(end_fd);
		if (lock && hf_lock_release(lock, &err) < 0)
			wrong(&shared->lost, "sweep: %s", err.detail);
		hf_lock_free(lock);
		if (write(answer_fd, "e", 1) != 1)
			_exit(1);
	}
}

/* A holder that was killed: its record stays. */
static void leave_stale(const char *leaf)
{
	struct hf_lock *lock;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		give_up("pipe");
	fflush(stdout);
	pid = fork_child();
	if (pid == 0) {
		struct context c = open_context(leaf);

		if (hf_lock_acquire(c.locks, "sweep", NULL, &lock, NULL, NULL) < 0 ||
		    write(fds[1], "h", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (hear(fds[0]) != 'h')
		wrong(&shared->other, "sweep: the victim did not get it");
	close(fds[0]);
	end_child(pid);
}

static void fifty_at_once(void)
{
	int tries[2], ends[2], answers[2], owners, bad = 0;
	pid_t pids[SWEEPERS];

	memset(shared, 0, sizeof(*shared));
	if (pipe2(tries, O_CLOEXEC) < 0 || pipe2(ends, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		give_up("pipe");
	fflush(stdout);
	for (int i = 0; i < SWEEPERS; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			sweep("sweep", tries[0], ends[0], answers[1]);
	}
	for (int round = 0; round < SWEEPS; round++) {
		if (round % 2)
			leave_stale("sweep");
		tell(tries[1], SWEEPERS);
		owners = 0;
		for (int i = 0; i < SWEEPERS; i++)
			owners += hear(answers[0]) == '1';
		tell(ends[1], SWEEPERS);
		for (int i = 0; i < SWEEPERS; i++)
			(void)hear(answers[0]);
		if (owners != 1) {
			printf("# round %d: %d owners\n", round, owners);
			bad++;
		}
	}
	for (int i = 0; i < SWEEPERS; i++)
		end_child(pids[i]);
	for (int i = 0; i < 2; i++) {
		close(tries[i]);
		close(ends[i]);
		close(answers[i]);
	}
	result(bad == 0 && shared->other == 0 && shared->lost == 0,
	       "sweep: 50 at one free or stale name, 100 rounds, one owner each (L1, L4)");
}

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
 * The holder, then three in the queue, of whom the second is stopped before its turn.
 * The third must not wait for much longer than HF_LOCK_TURN_NS.
 */
static void stopped_in_the_queue(void)
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
static void stopped_for_good(void)
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

enum passing { BY_ITS_HOLDER, BY_TOKEN, BY_BREAK };

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

static void killed_before_telling(const char *name, enum passing how, const char *title)
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

static void killed_while_told(void)
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
		printf("# told: who released died of signal %d\n", WTERMSIG(status));
	result(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "told: a waiter that dies while it is told does no harm to who tells (L13)");
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
static void stopped_as_holder(void)
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
	       "late: who is stopped with the lock is not passed over (L1, L4)");
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
 * The record is deleted by hand while somebody waits; others come. The old holder has
 * lost it, and everybody gets it in the end.
 */
static void deleted_under_waiters(void)
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
	result(ok, "taken: who waited before and after the deletion gets it in turn");
	for (int i = 0; i < 4; i++)
		dismiss(&a[i]);
	close_context(&c);
}

/* -- main -------------------------------------------------------------------------------- */

static void calm(void)
{
	mayhem("calm", WITH_FORKS);
}

static void killed(void)
{
	mayhem("killed", WITH_KILLS | WITH_FORKS | WITH_BREAKS);
}

static void stopped(void)
{
	mayhem("stopped", WITH_KILLS | WITH_STOPS | WITH_BREAKS);
}

static void deleted(void)
{
	mayhem("deleted", WITH_DELETIONS | WITH_BREAKS);
}

static void told_by_nobody(void)
{
	killed_before_telling("own", BY_ITS_HOLDER,
			      "telling: the holder dies while it releases: the next gets it");
	killed_before_telling("token", BY_TOKEN,
			      "telling: who releases by token dies meanwhile: the next gets it");
	killed_before_telling("break", BY_BREAK,
			      "telling: who breaks it dies meanwhile: the next gets it");
}

static const struct part {
	const char *word;
	void (*run)(void);
	int tests;
} parts[] = {
	{ "calm", calm, TESTS_OF_MAYHEM },       { "killed", killed, TESTS_OF_MAYHEM },
	{ "stopped", stopped, TESTS_OF_MAYHEM }, { "deleted", deleted, TESTS_OF_MAYHEM },
	{ "queue", twenty_in_a_queue, 3 },       { "sweep", fifty_at_once, 1 },
	{ "line", stopped_in_the_queue, 3 },     { "telling", told_by_nobody, 3 },
	{ "taken", deleted_under_waiters, 2 },   { "told", killed_while_told, 2 },
	{ "late", stopped_as_holder, 2 },        { "places", stopped_for_good, 2 },
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static void usage(const char *self)
{
	fprintf(stderr, "usage: %s [--seed N] [--seconds N] [--processes N] [--only WORD]\n", self);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	the_seed = (uint64_t)hf_wall_now().ns;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 >= argc)
			usage(argv[0]);
		if (strcmp(argv[i], "--seed") == 0)
			the_seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = strtoll(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--processes") == 0)
			processes = (int)strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else
			usage(argv[0]);
	}
	if (seconds < 1 || seconds > 3600 || processes < 2 || processes > PROCESSES_MAX)
		usage(argv[0]);
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	int planned = 0;

	read_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		give_up("mmap");
	for (size_t i = 0; i < N_PARTS; i++)
		planned += strstr(parts[i].word, only) ? parts[i].tests : 0;
	printf("# seed %llu, %d processes, %lld s for each part\n", (unsigned long long)the_seed,
	       processes, (long long)seconds);
	printf("1..%d\n", planned);
	snprintf(base, sizeof(base), "%s/hf-stress-XXXXXX", dir && strlen(dir) < 90 ? dir : "/tmp");
	if (!mkdtemp(base))
		give_up(base);
	for (size_t i = 0; i < N_PARTS; i++)
		if (strstr(parts[i].word, only))
			parts[i].run();
	remove_all();
	return failures > 0;
}
