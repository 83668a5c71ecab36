/*
 * holdfast/run.h - sessions: a named lock plus a supervised process tree.
 *
 * Calling sequence, to start one and come back for it:
 *
 *     struct hf_sessions *sessions;
 *     hf_sessions_open(state, journal, &sessions, &err);
 *
 *     char *argv[] = { "claude", "-p", "fix it", NULL };
 *     struct hf_run_opts opts = { .size = sizeof(opts), .argv = argv,
 *                                 .deadline_ns = 3600 * HF_SEC };
 *     struct hf_run_report report;
 *     hf_run_start(state, "fix-160", &opts, &report, &err);       // runs in the background
 *     hf_session_wait(sessions, "fix-160", NULL, ended, NULL, &err);
 *
 * with `ended`, which is called with what the session came to:
 *
 *     void ended(void *arg, const struct hf_session_info *info)
 *     {
 *             puts(info->outcome == HF_OUTCOME_SUCCEEDED ? "done" : info->cause);
 *     }
 *
 * Processes. Two of ours stand over the command. The supervisor is what was started:
 * it has the terminal, passes signals on, and gives the exit status. The keeper is its
 * child and the parent of the command; it has the lock, the deadlines and the record.
 * Both are subreapers, so whatever the command starts and leaves behind (daemons, new
 * sessions, children of killed parents) comes back to the one or the other. Each
 * watches the other: if either is killed, the one that is left ends the tree. If both
 * are, hf_session_reap, also run by the next start of that name, ends what remains by
 * proven identity. A supervisor that had children before it became one puts a third process,
 * which only reaps, between itself and the keeper, so that their orphans and the tree's do not
 * mix. Where a cgroup (v2) may be made, the tree lives in one, and is killed through it as well.
 *
 * Laws. A session's lock is freed only when its tree is empty (L7). No signal goes to a
 * process that was not proven to be of the tree (L6). The intent to start is on disk
 * before the command is let go, the outcome before the lock is free; the command's identity survives the death of
 * any process before it is said to run.
 *
 * Success (L14) is exit 0 of the command in this attempt, and exit 0 of the verifier where one was given. A
 * command that was asked to end, reached a limit, or was interrupted did not succeed, whatever it exits
 * with. A loop with a condition succeeds when that became true, and gave up otherwise. A loop whose supervisor or keeper is
 * killed is abandoned, although its last attempt may have succeeded.
 *
 * Stopping a loop. A stop, an interrupt or a hangup during an attempt ends that attempt and the loop. Between two attempts the loop ends at
 * once. A failure of its last attempt is its outcome then. After a success it depends on max_runs and until: without both,
 * only a stop can end the loop, which has succeeded; with one of them, attempts or the condition were left, and the loop is stopped
 * (exit status 143) or interrupted (130). A new outcome is notified.
 *
 * Ending. TERM (and CONT) goes to the command; the rest of the tree gets TERM when the command has gone, or
 * after a third of the grace; KILL comes at the end of the grace. The first cause stays: after a stop during the
 * grace of a deadline the session ends sooner, and its outcome is still timed-out; after a stop that follows an interrupt
 * it is interrupted. The clock waits for no disk: while
 * a command runs, nothing is synced, and signals are sent before anything is recorded. What outlived a
 * command that ended by itself is ended, and told: in the report, in the session's info and as an event.
 *
 * Signals. TERM and HUP end the session. INT and QUIT go to the command, which may handle them;
 * whatever it does, the attempt is interrupted, and is the last one of its loop. All others that would end the supervisor go to the
 * command's process group, TSTP, TTIN and TTOU stop both. Only those of a fault (SEGV, BUS, …), KILL and
 * STOP are as always. With a controlling terminal the command is in the caller's process group, as a shell expects; without
 * one it has a group of its own, so that `kill 0` in it reaches nobody else.
 *
 * Output. It is logged: the keeper copies it to the log and to the caller, byte for byte and at once. Where standard input and output
 * are a terminal, the command has a pty of its own. A single stream that is a terminal stays the command's own and is not logged, so that
 * what asks for a terminal finds that very one. Else there is a pipe for each of the two streams, or one for both where both are one
 * file, so that their order stays. When the caller's reader goes away, the pipe is closed and the command learns it by SIGPIPE. When the caller's file
 * cannot be written, a success becomes a failure. A log that cannot be written loses what came meanwhile and says so; it breaks nothing.
 * HF_RUN_LEAVE_RUNNING in the foreground is not logged unless asked for: a pipe would end with its keeper.
 *
 * Ownership: a context is freed by hf_sessions_free, before the state and journal it was
 * opened with. Threads: a context is used by one thread at a time.
 * Fork: hf_run_start starts the program holdfast-supervise and leaves no child behind: the supervisor belongs to init. It
 * may be called by a process with threads; nothing of the caller's memory and none of its descriptors goes along.
 * hf_run_supervise makes the calling process the supervisor (see there). Nothing else
 * forks. A child may only free what it inherited.
 * Needs /proc, and pidfds for every signal.
 *
 * Limits. Each process of a session has two marks: an environment variable, and a value of the
 * hard limit RLIMIT_LOCKS, which no kernel uses. If supervisor and keeper are both killed and there
 * is no cgroup, the reaping finds a process by either. It does not find one that removed both (it
 * cleared its environment and lowered that limit, or raised it as root), nor, with its environment
 * cleared, one of an inner session with another state directory, of HF_RUN_LEAVE_RUNNING, or below a
 * limit that is lower than any mark. One that forks and exits without a pause may escape it. Another
 * user's process that takes the mark of a dead run keeps the next run of that name from starting.
 * In a group of more than 32 places not every place has two owners: such a one is free when the
 * keeper is killed.
 * After HF_RUN_LEAVE_RUNNING what was left belongs to the process that reaps the caller's orphans. It is left alone only
 * when the session is over. As long as that goes on (a verifier, the next attempt), every end by TERM or KILL ends
 * what earlier commands left as well: a stop, a deadline, an idle limit, a verifier that takes too long.
 */
#ifndef HOLDFAST_RUN_H
#define HOLDFAST_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"
#include "holdfast/log.h"
#include "holdfast/proc.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_RUN_GRACE_NS    (5 * HF_SEC)       /* between TERM and KILL, unless said otherwise */
#define HF_RUN_TTL_NS      (60 * HF_SEC)      /* the session's lease, renewed at a third of it */
#define HF_RUN_VERIFY_NS   (600 * HF_SEC)     /* how long a verifier may take */
#define HF_RUN_BUSY_NS     (3600 * HF_SEC)    /* how long a heartbeat may say that a tool is at work */
#define HF_RUN_HANG_NS     (600 * HF_SEC)     /* silent for so long: shown as hung */
#define HF_RUN_BACKOFF_NS  HF_SEC             /* after the first failure in a loop; doubles */
#define HF_RUN_BACKOFF_MAX_NS (300 * HF_SEC)
#define HF_RUN_DEPTH_MAX   32                 /* sessions within sessions */
#define HF_RUN_COMMAND_MAX 200                /* bytes of a command as it is shown */
#define HF_RUN_CAUSE_MAX   (HF_ERR_TEXT_MAX + 64) /* a whole error with its remedy, and what it ended */
#define HF_RUN_RESUMED_MAX 400                /* bytes of what a session is resumed with, as it is shown */
#define HF_RUN_OUTLIVED_MAX 120               /* bytes of the names of what outlived a command */
#define HF_RUN_NONE        (-1)               /* with HF_RUN_RESUME: not the stored duration, but none */
#define HF_RUN_LOG_MAX     (64 << 20)         /* bytes of a run's log */
#define HF_RUN_INPUT_MAX   (16 << 20)         /* bytes of standard input that are kept for a command in the background and its resumes */
#define HF_RUN_LOG_MIN     (64 << 10)         /* the least that may be asked for */
#define HF_RUN_LOG_UNLIMITED UINT64_MAX
#define HF_RUN_START_NS    (30 * HF_SEC)      /* for holdfast-supervise to answer hf_run_start */
#define HF_RUN_GROUP_ALL   "all"              /* the default group */

enum hf_run_flags {
	/*
	 * Go on with attempt + 1. What is 0 or NULL in the options is as it was: command, directory,
	 * environment, and every option but wait_ns. What is given counts from now on. HF_RUN_NONE (a
	 * duration) and "" (a text) take an option back; flags can only be added. A session that
	 * succeeded refuses, and one whose directory is gone.
	 */
	HF_RUN_RESUME = 1 << 0,
	HF_RUN_LEAVE_RUNNING = 1 << 1, /* what outlives the command is left alone */
	/*
	 * Every session has its output logged as well. With HF_RUN_LOG all of it is, also what went to a terminal of the
	 * caller's that is only some of its streams, and when the caller's reader goes away the command goes on. Without, a
	 * log changes nothing for the command and its caller (see Output below). HF_RUN_NO_LOG: no log.
	 */
	HF_RUN_LOG = 1 << 2,
	/* Again and again, see every_ns, max_runs, until. An attempt that was interrupted is the last one. */
	HF_RUN_LOOP = 1 << 3,
	HF_RUN_NO_LOG = 1 << 4,
	/* hf_run_start: the command has a terminal of its own, to which viewers attach (hf_session_attach). It is logged. */
	HF_RUN_TERMINAL = 1 << 5,
	HF_RUN_REMOVE = 1 << 6,        /* the session is forgotten when it has ended, whatever came of it */
	/* A command that a deadline or the idle limit ended gives its own exit status, unless that is 0, and not HF_EXIT_TIMED_OUT. */
	HF_RUN_PRESERVE_STATUS = 1 << 7,
	HF_RUN_FOREGROUND = 1 << 8,    /* hf_run_supervise: the command is in the caller's process group without a terminal, too */
};

/* How the tree is held together. */
enum hf_run_tree {
	HF_TREE_DEFAULT = 0, /* HF_TREE_AUTO */
	HF_TREE_CGROUP = 1,  /* a cgroup, or fail */
	HF_TREE_WALK = 2,    /* subreaper and identity walk alone */
	HF_TREE_AUTO = 3,    /* a cgroup where one may be made, and the walk */
};

/* Which of the tree gets TERM first, when it is ended. */
enum hf_run_term {
	HF_TERM_DEFAULT = 0, /* HF_TERM_LEADER */
	HF_TERM_LEADER = 1,  /* the command; the rest when it has gone, or after a third of the grace */
	HF_TERM_TREE = 2,    /* all at once */
};

/* All zero means the default, but size and argv must be set. */
struct hf_run_opts {
	size_t size;               /* sizeof(struct hf_run_opts) */
	char *const *argv;         /* NULL-ended; NULL with HF_RUN_RESUME: as it was */
	unsigned flags;            /* enum hf_run_flags */
	enum hf_run_tree tree;
	enum hf_run_term term;
	const char *cwd;           /* where it runs; NULL: in the caller's directory */
	char *const *env;          /* "NAME=VALUE", NULL-ended: set on top of the caller's, and stored; NULL: none */
	int64_t deadline_ns;       /* of each attempt; 0: none */
	int64_t idle_ns;           /* end it after so long without output or heartbeat (hf_session_beat); 0: never */
	int64_t hang_ns;           /* show it as hung after so long without output; 0: HF_RUN_HANG_NS */
	int64_t grace_ns;          /* 0: HF_RUN_GRACE_NS; negative: KILL at once */
	int64_t wait_ns;           /* for the name and for a place in the group together; 0: do not wait; negative: for ever */
	int64_t ttl_ns;            /* 0: HF_RUN_TTL_NS */
	const char *verify;        /* run by sh -c after success */
	int64_t verify_ns;         /* 0: HF_RUN_VERIFY_NS */
	int64_t every_ns;          /* loops: from start to start; 0 without max_runs: backoff_ns */
	uint32_t max_runs;         /* loops: 0: no limit */
	const char *until;         /* loops: sh -c after each attempt; its exit 0 ends the loop */
	int64_t backoff_ns;        /* 0: HF_RUN_BACKOFF_NS */
	int64_t backoff_max_ns;    /* 0: HF_RUN_BACKOFF_MAX_NS */
	const char *notify;        /* sh -c, a JSON object on its stdin */
	uint32_t max_depth;        /* 0: HF_RUN_DEPTH_MAX */
	const char *group;         /* with max_active; NULL: HF_RUN_GROUP_ALL */
	uint32_t max_active;       /* sessions of the group at once; 0: no limit */
	/* Bytes that the log takes at most: full, it loses its older half. 0: HF_RUN_LOG_MAX;
	 * else at least HF_RUN_LOG_MIN, or HF_RUN_LOG_UNLIMITED. Not kept in the background with
	 * HF_RUN_LEAVE_RUNNING: what is left goes on writing when nobody counts any more. */
	uint64_t log_max;
	/* Called once in the calling process, when a resumed session has its options, with what they
	 * are: "attempt 2 in /src/app, deadline 1h, verify 'make test'". May be NULL. */
	void (*resumed)(void *arg, const char *text);
	void *resumed_arg;
	const char *stage;         /* set by hf_tx_supervise and hf_tx_start (tx.h), whose options it holds; else NULL */
	/* hf_run_start: how long holdfast-supervise may take until it answers at all; then it is killed, HF_E_TIMEOUT.
	 * The wait for the lock is not part of it. 0: HF_RUN_START_NS. Not stored. */
	int64_t start_ns;
	/* hf_run_start: a file that the command reads as its standard input, in each attempt from its beginning; it must be one that can be
	 * opened anew by /proc/self/fd, such as a memfd. Not with HF_RUN_TERMINAL. It is kept with the session: one that is resumed, by either
	 * function, reads it again from its beginning. What is larger than HF_RUN_INPUT_MAX is not kept, and a resume without another is
	 * refused (HF_E_FORMAT), as it is when what was kept is lost. 0: none; with HF_RUN_RESUME: as it was. */
	int input_fd;
	/* Which outcomes `notify` is told: "change" (the first of a kind in this run, and one that repeats itself the 3rd, 9th, 27th time),
	 * "failure" (as that, but no success), "always"; "start": that the command has been started, once for each run. Several of them with
	 * commas: "start,failure". NULL: "change". The command is run by a process of its own and may outlive the session, by 60 s at most. */
	const char *notify_on;
	/* With HF_RUN_RESUME: the token of the run that is to be resumed; HF_E_STALE when another one was the last. 0: any. Not stored. */
	uint64_t resume_token;
	uint32_t priority;         /* of those that wait for a place in the group, the highest is first; at most HF_LOCK_PRIORITY_MAX */
	/* Called about once a second while it waits for its name or for a place in its group, and with NULL when such a wait, of which it was
	 * told, is over. hf_run_supervise: in the keeper, which is a fork of the caller, before the command has been started. Not stored. */
	void (*waiting)(void *arg, const struct hf_lock_waiting *waiting);
	void *waiting_arg;
	uint32_t stop_signal;      /* what the command gets first when it is ended; 0: SIGTERM. Its descendants always get SIGTERM */
	/*
	 * Limits of all that the session runs; 0: none. By its cgroup where that has the controller (struct hf_session_limits tells). Else
	 * memory is bounded for each process (RLIMIT_DATA), the CPUs are so many that it may run on, and processes are bounded together with all
	 * others of the user (RLIMIT_NPROC); root is not bound by that, and its start is refused then (-ENOTSUP).
	 */
	uint64_t mem_max;
	uint32_t cpus_centi;       /* hundredths of a CPU */
	uint32_t pids_max;
	uint32_t nice;             /* 1 to 19: how much others go before it */
	const char *store;         /* where its name is kept as well, so that it is one session on all machines of that store; NULL: here alone (lock.h, docs/FLEET.md) */
	/* What is kept of input_fd: set by the library alone. With HF_RUN_RESUME "" takes it back: the command reads the caller's standard
	 * input, or in the background /dev/null. */
	const char *input;
};

/* How an attempt ended. The words are what `ps` and the journal say. */
/* clang-format off */
#define HF_OUTCOME_LIST(X)                                                                      \
	X(NONE,          0, "none")          /* it has not ended */                             \
	X(SUCCEEDED,     1, "succeeded")                                                        \
	X(FAILED,        2, "failed")        /* exit status not 0, or a signal */               \
	X(VERIFY_FAILED, 3, "verify-failed")                                                    \
	X(TIMED_OUT,     4, "timed-out")     /* deadline or idle limit */                       \
	X(STOPPED,       5, "stopped")       /* it was asked to stop */                         \
	X(LOST_LOCK,     6, "lost-lock")                                                        \
	X(ABANDONED,     7, "abandoned")     /* its supervisor or keeper was killed */          \
	X(NOT_STARTED,   8, "not-started")   /* the command could not be executed */            \
	X(INTERRUPTED,   9, "interrupted")   /* SIGINT or SIGQUIT, also when it exited 0 then */ \
	X(GAVE_UP,      10, "gave-up")       /* a loop whose --until condition never became true */     \
	X(CONFLICT,     11, "conflict")      /* it succeeded, but its targets had changed: nothing committed (tx.h) */ \
	X(DECLINED,     12, "declined")      /* it succeeded, and the question before the commit was answered with no: the same */
/* clang-format on */

enum hf_outcome {
#define HF_OUTCOME_ENUM(name, number, word) HF_OUTCOME_##name = number,
	HF_OUTCOME_LIST(HF_OUTCOME_ENUM)
#undef HF_OUTCOME_ENUM
};

/* What a session is doing, judged from its record and from its processes. */
/* clang-format off */
#define HF_SESSION_LIST(X)                                                                      \
	X(STARTING,      1, "starting")                                                         \
	X(RUNNING,       2, "running")                                                          \
	X(HUNG,          3, "hung")          /* silent for too long */                          \
	X(VERIFYING,     4, "verifying")                                                        \
	X(WAITING,       5, "waiting")       /* a loop, between two attempts */                 \
	X(FAILING,       6, "failing")       /* a loop whose last attempts all failed */        \
	X(STOPPING,      7, "stopping")                                                         \
	X(DONE,          8, "done")          /* ended: succeeded */                             \
	X(FAILED,        9, "failed")        /* ended: any other way */                         \
	X(VERIFY_FAILED, 10, "verify-failed")                                                   \
	X(STOPPED,       11, "stopped")                                                         \
	X(DEAD_UNREAPED, 12, "dead-unreaped") /* supervisor and keeper are gone, and no reap came yet */      \
	X(UNREADABLE,    13, "unreadable")   /* its keeper lives, its record is damaged */       \
	X(LANDING,       14, "landing")      /* command and verifier succeeded; what it made is being committed */ \
	X(SUSPENDED,     15, "suspended")    /* its command or keeper was stopped by a signal, as by Ctrl-Z */ \
	X(QUEUED,        16, "queued")       /* waits for a place in its group */
/* clang-format on */

enum hf_session_state {
#define HF_SESSION_ENUM(name, number, word) HF_SESSION_##name = number,
	HF_SESSION_LIST(HF_SESSION_ENUM)
#undef HF_SESSION_ENUM
};

/* The word of a state or outcome; "unknown" for a number that is none. */
HF_API const char *hf_session_word(enum hf_session_state state);
HF_API const char *hf_outcome_word(enum hf_outcome outcome);

/* How hf_run_start or hf_run_supervise ended. */
struct hf_run_report {
	uint64_t token;
	uint32_t attempt;
	int32_t pid;              /* of the command; 0: it did not start */
	struct hf_proc_id supervisor;
	enum hf_outcome outcome;  /* HF_OUTCOME_NONE: it runs */
	int exit_status;          /* what the CLI exits with */
	char cause[HF_RUN_CAUSE_MAX];
	char resumed[HF_RUN_RESUMED_MAX]; /* what it was resumed with; "": it was not */
	/* Processes that outlived the last attempt's command and were ended: how many, and "sleep (2), node". */
	uint32_t outlived;
	char outlived_names[HF_RUN_OUTLIVED_MAX];
	struct hf_holder blocker; /* HF_E_BUSY, HF_E_TIMEOUT: the holder of the name */
	int command_status;       /* what the command of the last attempt exited with, as a shell gives it; -1: it did not run */
	int64_t ran_ns, cpu_ns, memory_peak_bytes, output_bytes; /* of the session; -1: not known */
};

/*
 * Makes the calling process the supervisor of a new session and returns when that has
 * ended and its tree is empty. For programs that do nothing else: it blocks the signals
 * that it passes on, becomes a subreaper, and reaps children that it did not start. Must be called by
 * the only thread of the process. Standard input, output and the terminal are the command's.
 *
 * Returns 0 when the session came to an outcome, good or bad: *ret_report has it. Else:
 *   HF_E_BUSY, HF_E_TIMEOUT  the name is in use; ret_report->blocker is its holder
 *   HF_E_FINISHED            it has succeeded already and is not resumed
 *   HF_E_NO_SESSION          there is nothing to resume
 *   HF_E_NO_DIRECTORY        the directory that it is to run in is not there
 *   HF_E_LIMIT               max_depth or max_active, also after wait_ns; the detail has the numbers
 *   HF_E_REMAINS             processes of an earlier run could not be ended
 *   HF_E_NAME, -EINVAL, -errno
 */
HF_API int hf_run_supervise(struct hf_state *state, const char *name,
			    const struct hf_run_opts *opts, struct hf_run_report *ret_report,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * The same in the background, with a supervisor of its own in a new session of the
 * terminal's sense, standard input from /dev/null (or input_fd) and output to the log. Returns when
 * the command is running, or why it is not: as above, or 0 with the outcome
 * HF_OUTCOME_NOT_STARTED. Directory, umask, environment, signal mask and ignored signals are the caller's.
 *
 * The supervisor is the program holdfast-supervise: in the directory $HOLDFAST_LIBEXEC (an absolute path), else in
 * ../libexec beside the program or shared library that this function is in, else where it was installed. Also:
 *   -ENOENT          it is not there
 *   HF_E_UNTRUSTED   another user owns it, or others than its owner can change it
 *   HF_E_FORMAT      it is of another version than the library
 *   HF_E_TIMEOUT     it did not answer within start_ns
 */
HF_API int hf_run_start(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			struct hf_run_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/* -- looking, waiting, stopping ------------------------------------------------ */

/* Opens them. `journal` may be NULL: then no events are written. */
HF_API int hf_sessions_open(struct hf_state *state, struct hf_journal *journal,
			    struct hf_sessions **ret_sessions, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_sessions_free(struct hf_sessions *sessions);

/* How an attempt ended. */
struct hf_session_end {
	enum hf_outcome outcome; /* HF_OUTCOME_NONE: there was none */
	int exit_status;         /* what `run` exited with */
	const char *cause;       /* in words */
	struct hf_wall ended;    /* ns 0: not known */
	int64_t ran_ns;          /* -1: not known */
};

/* What bounds a limit. */
enum hf_limited_by {
	HF_LIMITED_MEMORY = 1 << 0, /* the cgroup bounds the memory of all its processes together; else each by itself */
	HF_LIMITED_CPUS = 1 << 1,   /* it bounds the CPU time; else the CPUs that may be used */
	HF_LIMITED_PIDS = 1 << 2,   /* it counts its own processes; else all of the user's */
};

/* The limits of a session; 0: none of that kind. */
struct hf_session_limits {
	uint64_t mem_max;
	uint32_t cpus_centi, pids_max, nice;
	unsigned by_cgroup; /* enum hf_limited_by */
};

/* A session, as others see it. Numbers that are not known are -1. */
struct hf_session_info {
	const char *name;
	enum hf_session_state state;
	enum hf_outcome outcome;   /* HF_OUTCOME_NONE while it runs */
	int exit_status;           /* of that; what `run` exited with */
	const char *cause;         /* why it ended, in words */
	struct hf_session_end last; /* while it runs: the attempt before, or the run before */
	char *const *argv;         /* the command's words, NULL-ended; NULL: not known */
	const char *cwd;           /* where it runs; NULL: not known */
	const char *group;         /* its --group; NULL: none was given, or it is not known */
	const char *command;       /* cut to HF_RUN_COMMAND_MAX */
	uint64_t token;
	uint32_t attempt;
	uint32_t failures;         /* consecutive ones, now */
	int loop;                  /* 1: it repeats */
	int32_t pid;               /* of the command; 0: none runs */
	struct hf_proc_id supervisor, keeper, leader; /* pid 0: none */
	const char *tree;          /* "cgroup" or "walk" */
	int64_t age_ns;            /* since it was started */
	int64_t ran_ns;            /* of the attempt that ended it; -1 while it runs */
	int64_t deadline_ns;       /* of each attempt; -1: none */
	uint32_t outlived;         /* processes that outlived its command and were ended */
	const char *outlived_names; /* "sleep (2), node"; "" */
	int64_t deadline_left_ns;  /* -1: none */
	int64_t output_age_ns;     /* since the last output; -1: nobody watches it */
	int64_t processes;         /* in the tree */
	int64_t memory_bytes;      /* resident, of all of them */
	int64_t cpu_ns;            /* used by this run: by those that live, and by those that were waited for */
	int64_t log_bytes;         /* of its log; -1: none */
	int64_t log_dropped_bytes; /* that stood before them and were dropped */
	struct hf_wall started, ended; /* ns 0: not known, or not yet */
	char evidence[HF_EVIDENCE_MAX]; /* what its state rests on */
	int64_t idle_ns;           /* its idle limit; -1: none, or not known */
	int64_t silent_ns;         /* since the last output or heartbeat; -1: nobody watches it */
	int64_t next_in_ns;        /* of a loop between two attempts: until the next; -1: none is planned */
	int32_t cpu_permille;      /* of one processor, in the last seconds */
	int64_t memory_peak_bytes; /* the most that was seen of memory_bytes in this run */
	int64_t output_bytes;      /* that the run has written; -1: its output is not logged */
	const char *last_line;     /* of its log, without control characters; NULL: none, or it has ended */
	int last_line_partial;     /* 1: that lacks its newline */
	int seen;                  /* 1: hf_session_set_seen was called for this run */
	uint32_t max_active;       /* of its group; 0: no limit */
	uint32_t priority;         /* among those that wait for a place in it */
	struct hf_session_limits limits;
};

typedef void hf_session_fn(void *arg, const struct hf_session_info *info);

/*
 * Calls `fn` with the session. HF_E_NO_SESSION; HF_E_FORMAT: its record was put away. While its
 * keeper lives it is shown all the same, from what its lock knows: as HF_SESSION_UNREADABLE, or
 * as HF_SESSION_STARTING, with the command "", before the record is written, or as HF_SESSION_QUEUED.
 */
HF_API int hf_session_look(struct hf_sessions *sessions, const char *name, hf_session_fn *fn,
			   void *arg, struct hf_err *err) HF_MUST_CHECK;

/* The same for each there is, in the order of their names. */
HF_API int hf_session_list(struct hf_sessions *sessions, hf_session_fn *fn, void *arg, struct hf_err *err) HF_MUST_CHECK;

/*
 * The same for those that run, whose keepers are gone, or that ended at most `age_ns` ago: it reads nothing of what ended more than a
 * day ago, however much there is. `age_ns` is at most a day. Not of one whose directory was deleted by hand.
 */
HF_API int hf_session_list_recent(struct hf_sessions *sessions, int64_t age_ns, hf_session_fn *fn, void *arg,
				  struct hf_err *err) HF_MUST_CHECK;

/* How to wait, for a session as for a lock (struct hf_lock_opts). */
struct hf_wait_opts {
	size_t size;     /* sizeof(struct hf_wait_opts) */
	int64_t wait_ns; /* 0: do not wait; negative: for ever */
	int cancel_fd;   /* ends the wait when it is readable; 0: none, so never descriptor 0 */
};

/*
 * Sleeps until the session has ended (for a loop: all of it) and calls `fn` with it. `opts` may
 * be NULL: for ever. HF_E_TIMEOUT; HF_E_CANCELLED: cancel_fd became readable; HF_E_NO_SESSION.
 * A signal does not end it (-EINTR is never returned): a program that wants to stop waiting makes
 * its handler write to a pipe whose other end is cancel_fd, or passes a signalfd.
 */
HF_API int hf_session_wait(struct hf_sessions *sessions, const char *name,
			   const struct hf_wait_opts *opts, hf_session_fn *fn, void *arg,
			   struct hf_err *err) HF_MUST_CHECK;

enum hf_stop {
	HF_STOP_STOPPED = 0,      /* it ended within the grace time */
	HF_STOP_KILLED = 1,       /* SIGKILL was needed, and its end was seen (L7) */
	HF_STOP_ALREADY_GONE = 2, /* nothing of it was left */
};

/*
 * Removes the empty cgroups beside the caller's own that runs of this user made and could not
 * remove, because they were killed. Returns how many.
 */
HF_API int hf_sessions_sweep(struct hf_sessions *sessions);

/*
 * Ends the session: TERM to its tree, `grace_ns` (0: the session's own; negative: none),
 * KILL; returns when the tree is empty, with an enum hf_stop, or what follows. One whose record is
 * damaged, or not written yet, is ended through the owner of its lock.
 *   HF_E_NO_SESSION  there is none of that name
 *   HF_E_RECYCLED    the pid on record is another process now; no signal was sent (L6)
 *   HF_E_UNKNOWN     it cannot be judged from here; the same
 *   HF_E_PROTECTED   the caller is part of that session
 *   HF_E_TIMEOUT     it did not end within grace and another ten seconds
 *   HF_E_BUSY        its supervisor and keeper are gone, and another run or reap of that name is at work
 *   HF_E_REMAINS     they are gone, and what is left cannot be ended from here, as for hf_session_reap
 */
HF_API int hf_session_stop(struct hf_sessions *sessions, const char *name, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * The same for the run that has `token` and for no other (0: for any): HF_E_STALE when another run has the
 * name by now, and nothing was done.
 */
HF_API int hf_session_stop_run(struct hf_sessions *sessions, const char *name, uint64_t token, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Ends what is left of a session whose supervisor and keeper are both gone, by proven
 * identity, and completes its record. Returns how many processes were killed; 0 also when
 * there was nothing to do; HF_E_BUSY while it is supervised; HF_E_REMAINS; HF_E_NO_SESSION.
 */
HF_API int hf_session_reap(struct hf_sessions *sessions, const char *name, struct hf_err *err) HF_MUST_CHECK;

/* The same for the run that has `token` and for no other, as hf_session_stop_run. */
HF_API int hf_session_reap_run(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/*
 * Notes that a person has seen how the run `token` (0: the latest) is: info->seen says so until the next run of that
 * name. HF_E_STALE when another run has the name by now; HF_E_NO_SESSION; -errno.
 */
HF_API int hf_session_set_seen(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/*
 * Forgets a session that has ended: its record, stored options and logs. `token` as for hf_session_stop_run. HF_E_NO_SESSION;
 * HF_E_BUSY: it runs, was not reaped yet, or another process has or awaits its name; HF_E_STALE; -errno.
 */
HF_API int hf_session_remove(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/* Which sessions are forgotten: of those that have ended, but for the newest `keep` of them, the ones that are old or too much. */
struct hf_prune_opts {
	size_t size;        /* sizeof(struct hf_prune_opts) */
	int64_t older_ns;   /* ended longer ago than this; negative: age does not matter */
	uint64_t max_bytes; /* the oldest, while all logs, and inputs that are kept, together are larger than this; 0: no limit */
	uint32_t keep;
	int dry_run;        /* 1: only told, not removed */
	void (*removed)(void *arg, const char *name, int64_t bytes); /* called with each; may be NULL */
	void *arg;
};

/*
 * Forgets them, and the records of locks that nobody took for an hour (hf_lock_forget). Returns how many sessions. Every run does
 * this when it ends, at most once an hour and for 200 ms, with 30 days and 4 GiB, or what $HOLDFAST_PRUNE says: "7d", "7d,500M", "off".
 */
HF_API int hf_sessions_prune(struct hf_sessions *sessions, const struct hf_prune_opts *opts, struct hf_err *err) HF_MUST_CHECK;

/*
 * A heartbeat of the run that has `token`: it works although it prints nothing. With `busy` it is at
 * work until the next heartbeat, for HF_RUN_BUSY_NS at most: a tool call has begun. The idle limit and
 * the state HF_SESSION_HUNG count from output or heartbeat, whichever is later. For processes of the session
 * ($HOLDFAST_SESSION, $HOLDFAST_TOKEN). HF_E_NO_SESSION; -errno. Blocks: no.
 */
HF_API int hf_session_beat(struct hf_sessions *sessions, const char *name, uint64_t token, int busy, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
