/* stress/lock/worker.c - one worker: takes locks at random, acts under them, checks what it sees. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "holdfast/lock.h"
#include "stress/lock/stress.h"

static volatile sig_atomic_t resumed;

static void note_resumption(int sig)
{
	(void)sig;
	resumed++;
}

/*
 * Runs under the guard, so alone for this name. A writer comes after every process that
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

/* Those beside which we must not be inside, or, for slots, all others. */
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

/* A process that is in both, with the same token, was inside all the time between. */
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

void log_acquisition(const struct hold *h, int64_t start)
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

void run_worker(const char *leaf, int index, uint64_t generation, unsigned what)
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
