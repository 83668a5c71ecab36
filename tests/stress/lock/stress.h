/* stress/lock/stress.h - what the parts of the stress test of locks share. */
#ifndef STRESS_LOCK_H
#define STRESS_LOCK_H

#include <stdio.h>

#include "hf/sys/calls.h"
#include "holdfast/lock.h"

#define PROCESSES_MAX   64
#define LOG_MAX         (1 << 20)
#define SWEEPERS        50
#define SWEEPS          100
#define QUEUERS         20
#define SLOTS           3
#define QUEUE_RING      16384
#define LONG_WAIT_NS    (20 * HF_SEC)
#define LATE_NS         (2 * HF_SEC) /* beyond a deadline, for a loaded machine */
#define STUCK_NS        (30 * HF_SEC)
#define TESTS_OF_MAYHEM 5

struct subject {
	const char *name;
	enum hf_lock_mode mode; /* SHARED: readers and writers */
	int may_be_lost;        /* leases and breaks */
};

#define N_SUBJECTS 5

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
	int64_t longest_off; /* the longest that an acquisition was ready to run and had no processor */
	uint32_t n_log;
	struct acquisition log[LOG_MAX];
};

/* Each process opens its own. */
struct context {
	struct hf_state *state;
	struct hf_journal *journal;
	struct hf_locks *locks;
};

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

enum passing { BY_ITS_HOLDER, BY_TOKEN, BY_BREAK };

extern const struct subject subjects[N_SUBJECTS];
extern struct shared *shared;
extern uint64_t the_seed;
extern int64_t seconds;
extern int processes;
extern const char *only;
extern char base[128];
extern int failures;

/* world.c */
uint64_t random_below(uint64_t n);
void seed_random(uint64_t a, uint64_t b);
void result(int ok, const char *what);
void give_up(const char *what);
void count(uint32_t *counter);
__attribute__((format(printf, 2, 3))) void wrong(uint32_t *counter, const char *format, ...);
int64_t now(void);
int is_over(void);
int is_dead_soon(pid_t pid);
void state_path(const char *leaf, char path[256]);
struct context open_context(const char *leaf);
void close_context(struct context *c);
void remove_all(void);
pid_t fork_child(void);
void end_child(pid_t pid);

/* worker.c */
void log_acquisition(const struct hold *h, int64_t start);
void run_worker(const char *leaf, int index, uint64_t generation, unsigned what);

/* mayhem.c */
void show_lock(void *arg, const struct hf_lock_info *info);
uint32_t check_tokens(void);
void mayhem(const char *leaf, unsigned what);

/* crowd.c */
void twenty_in_a_queue(void);
void tell(int fd, size_t n);
char hear(int fd);
void fifty_at_once(void);

/* line.c */
void stopped_in_the_queue(void);
void stopped_for_good(void);
void killed_before_telling(const char *name, enum passing how, const char *title);
void killed_while_told(void);
void stopped_as_holder(void);
void deleted_under_waiters(void);

#endif
