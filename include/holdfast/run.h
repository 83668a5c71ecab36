/*
 * holdfast/run.h - sessions: a named lock plus a supervised process tree.
 *
 * Calling sequence, to start a session and return to it later:
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
 * with `ended`, which is called with the result:
 *
 *     void ended(void *arg, const struct hf_session_info *info)
 *     {
 *             puts(info->outcome == HF_OUTCOME_SUCCEEDED ? "done" : info->cause);
 *     }
 *
 * Processes. The supervisor is the process that was started. It has the terminal, forwards
 * signals, and returns the exit status. Its child, the keeper, is the parent of the command.
 * It has the lock, the deadlines and the record.
 *
 * Both are subreapers, so orphans of the command (daemons, new sessions, children of killed
 * parents) become their children. If one of the two is killed, the other ends the tree. If
 * both are killed, hf_session_reap ends the remaining processes by proven identity; the next
 * start of that name calls it, too. A supervisor that already had children puts a third
 * process, which only reaps, between itself and the keeper, to keep their orphans apart from
 * the tree's. If a cgroup (v2) can be created, the tree lives in it, and is killed through it,
 * too.
 *
 * Laws. A session's lock is freed only when its tree is empty (L7). A signal goes only to a
 * process that is proven to be in the tree (L6). The intent to start is on disk before the
 * command runs, and the outcome before the lock is free. The command's identity is safe from
 * the death of any process before the command is reported as running.
 *
 * Success (L14) is exit status 0 of the command in this attempt, and of the verifier if there
 * is one. A command that was stopped, reached a limit or was interrupted did not succeed,
 * whatever its exit status. A loop with a condition succeeds if the condition became true,
 * otherwise it gave up. A loop whose supervisor or keeper is killed is abandoned, even if its
 * last attempt succeeded.
 *
 * Stopping a loop. A stop, an interrupt or a hangup during an attempt ends that attempt and
 * the loop. Between two attempts the loop ends immediately, and a new outcome is notified:
 *
 *   - After a failed attempt, that failure is the outcome.
 *   - After a success without max_runs and until, the loop has succeeded,
 *     because only a stop can end it.
 *   - After a success with max_runs or until, the loop was not finished: it is
 *     stopped (exit status 143) or interrupted (130).
 *
 * Ending. The command gets TERM (and CONT). The rest of the tree gets TERM when the command
 * has gone, or after a third of the grace period. KILL follows at the end of the grace period.
 * The first cause stays: a stop during the grace period of a deadline ends the session sooner,
 * but the outcome is timed-out; a stop after an interrupt leaves the outcome interrupted. No
 * step waits for a disk: while a command runs, nothing is synced, and signals are sent before
 * anything is recorded. Processes that outlive a command that ended normally are ended, and
 * reported in the report, in the session's info and as an event.
 *
 * Signals:
 *
 *   - TERM and HUP end the session.
 *   - INT and QUIT go to the command, which may handle them. The attempt is
 *     interrupted in any case, and is the last of its loop.
 *   - Other signals that would end the supervisor go to the command's process
 *     group. TSTP, TTIN and TTOU stop both.
 *   - Signals of a fault (SEGV, BUS, …), KILL and STOP have their usual effect.
 *
 * With a controlling terminal the command is in the caller's process group, as a shell
 * expects. Without one it has its own group, so that `kill 0` in it reaches no other process.
 *
 * Output. The keeper copies output to the log and to the caller, byte for byte and
 * immediately:
 *
 *   - If standard input and output are a terminal, the command has its own pty.
 *   - A single stream that is a terminal stays the command's and is not logged,
 *     so that the command finds exactly that terminal.
 *   - Otherwise each stream has a pipe. If both are one file they share it, to
 *     keep their order.
 *
 * When the caller's reader closes, the pipe is closed, and the command gets SIGPIPE. If the
 * caller's file cannot be written, a success becomes a failure. If the log cannot be written,
 * it records the loss; nothing else fails. HF_RUN_LEAVE_RUNNING in the foreground is logged
 * only on request, because a pipe would end with its keeper.
 *
 * Ownership: free a context by hf_sessions_free before its state and journal.
 * Threads: one thread at a time uses a context.
 * Fork: hf_run_start starts the program holdfast-supervise and leaves no child behind: the
 * supervisor belongs to init. A process with threads may call it; the supervisor inherits
 * neither memory nor descriptors of the caller. hf_run_supervise makes the calling process the
 * supervisor (see there). No other function forks. A child may only free what it inherited.
 * Needs /proc, and pidfds for every signal.
 *
 * Limits. Each process of a session has two marks: an environment variable, and a value of the
 * hard limit RLIMIT_LOCKS, which no kernel uses. If supervisor and keeper are both killed and
 * there is no cgroup, reaping finds a process by either mark. It does not find:
 *
 *   - a process that cleared its environment and lowered that limit, or raised
 *     it as root;
 *   - with a cleared environment, a process of an inner session with another
 *     state directory, of HF_RUN_LEAVE_RUNNING, or below a limit that is lower
 *     than any mark;
 *   - possibly, a process that forks and exits without a pause.
 *
 * Another user's process with the mark of a dead run prevents the next run of that name. In a
 * group of more than 32 places, some places have only one owner, and are free when the keeper
 * is killed.
 *
 * After HF_RUN_LEAVE_RUNNING the remaining processes belong to the reaper of the caller's
 * orphans. They are spared only when the session is over. Until then (a verifier, the next
 * attempt) an end by TERM or KILL includes them: a stop, a deadline, an idle limit, a verifier
 * that takes too long.
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

#define HF_RUN_GRACE_NS    (5 * HF_SEC)       /* the default time between TERM and KILL */
#define HF_RUN_TTL_NS      (60 * HF_SEC)      /* the session's lease, renewed at a third of it */
#define HF_RUN_VERIFY_NS   (600 * HF_SEC)     /* time limit of a verifier */
#define HF_RUN_BUSY_NS     (3600 * HF_SEC)    /* maximum effect of a heartbeat with `busy` */
#define HF_RUN_HANG_NS     (600 * HF_SEC)     /* silent for this long: shown as hung */
#define HF_RUN_BACKOFF_NS  HF_SEC             /* after the first failure in a loop; doubles */
#define HF_RUN_BACKOFF_MAX_NS (300 * HF_SEC)
#define HF_RUN_DEPTH_MAX   32                 /* sessions within sessions */
#define HF_RUN_COMMAND_MAX 200                /* bytes of a displayed command */
#define HF_RUN_CAUSE_MAX   (HF_ERR_TEXT_MAX + 64) /* a complete error with its remedy, and the processes that it ended */
#define HF_RUN_RESUMED_MAX 400                /* bytes of the displayed options of a resumed session */
#define HF_RUN_OUTLIVED_MAX 120               /* bytes of the names of processes that outlived a command */
#define HF_RUN_NONE        (-1)               /* with HF_RUN_RESUME: no duration, in place of the stored one */
#define HF_RUN_LOG_MAX     (64 << 20)         /* bytes of a run's log */
#define HF_RUN_INPUT_MAX   (16 << 20)         /* bytes of standard input that are kept for a
					       * background command and its resumes */
#define HF_RUN_LOG_MIN     (64 << 10)         /* the minimum for opts.log_max */
#define HF_RUN_LOG_UNLIMITED UINT64_MAX
#define HF_RUN_START_NS    (30 * HF_SEC)      /* for holdfast-supervise to answer hf_run_start */
#define HF_RUN_GROUP_ALL   "all"              /* the default group */
#define HF_ACTIVITY_TEXT_MAX   255                /* bytes of a message of hf_session_set_activity */

enum hf_run_flags {
	/*
	 * Continue with attempt + 1. A 0 or NULL in the options keeps the previous value:
	 * command, directory, environment, and every option except wait_ns. A given value
	 * replaces it. HF_RUN_NONE (a duration) and "" (a text) remove an option; flags can
	 * only be added. Refused for a session that succeeded or whose directory is gone.
	 */
	HF_RUN_RESUME = 1 << 0,
	HF_RUN_LEAVE_RUNNING = 1 << 1, /* do not kill processes that outlive the command */
	/*
	 * The output of every session is logged. By default the log changes nothing for the
	 * command and its caller (see Output above). With HF_RUN_LOG all output is logged,
	 * even if only some streams are the caller's terminal, and the command continues when
	 * the caller's reader closes. HF_RUN_NO_LOG: no log.
	 */
	HF_RUN_LOG = 1 << 2,
	/* Repeat: see every_ns, max_runs, until. An interrupted attempt is the last. */
	HF_RUN_LOOP = 1 << 3,
	HF_RUN_NO_LOG = 1 << 4,
	/*
	 * hf_run_start: the command has its own terminal, which is logged, and viewers attach
	 * (hf_session_attach).
	 */
	HF_RUN_TERMINAL = 1 << 5,
	HF_RUN_REMOVE = 1 << 6,        /* forget the session when it has ended, unless it leaves work that did not land */
	/*
	 * After a deadline or the idle limit, return the command's exit status unless that is
	 * 0, in place of HF_EXIT_TIMED_OUT.
	 */
	HF_RUN_PRESERVE_STATUS = 1 << 7,
	HF_RUN_FOREGROUND = 1 << 8,    /* hf_run_supervise: run the command in the caller's process
				        * group even without a terminal */
	/* When a client has answered, its stop hook ends its background tasks (hf_hook_stopped), so that the client exits. */
	HF_RUN_END_BACKGROUND = 1 << 9,
};

/* The way to keep the tree's processes together. */
enum hf_run_tree {
	HF_TREE_DEFAULT = 0, /* HF_TREE_AUTO */
	HF_TREE_CGROUP = 1,  /* a cgroup, or fail */
	HF_TREE_WALK = 2,    /* only subreaper and identity walk */
	HF_TREE_AUTO = 3,    /* a cgroup if possible, and the walk */
};

/* The tree's processes that get TERM first. */
enum hf_run_term {
	HF_TERM_DEFAULT = 0, /* HF_TERM_LEADER */
	HF_TERM_LEADER = 1,  /* the command; the rest when it has gone, or after a third of the grace period */
	HF_TERM_TREE = 2,    /* all together */
};

/* All zero means the defaults; size and argv must be set. */
struct hf_run_opts {
	size_t size;               /* sizeof(struct hf_run_opts) */
	char *const *argv;         /* NULL-ended; NULL with HF_RUN_RESUME: the previous command */
	unsigned flags;            /* enum hf_run_flags */
	enum hf_run_tree tree;
	enum hf_run_term term;
	const char *cwd;           /* its directory; NULL: the caller's */
	char *const *env;          /* "NAME=VALUE", NULL-ended: added to the caller's, and stored; NULL: none */
	int64_t deadline_ns;       /* of each attempt; 0: none */
	int64_t idle_ns;           /* end it after this long without output or heartbeat (hf_session_beat); 0: never */
	int64_t hang_ns;           /* show it as hung after this long without output; 0: HF_RUN_HANG_NS */
	int64_t grace_ns;          /* 0: HF_RUN_GRACE_NS; negative: KILL immediately */
	int64_t wait_ns;           /* for the name and a place in the group together; 0: do not wait; negative: no limit */
	int64_t ttl_ns;            /* 0: HF_RUN_TTL_NS */
	const char *verify;        /* run by sh -c after success */
	int64_t verify_ns;         /* 0: HF_RUN_VERIFY_NS */
	int64_t every_ns;          /* loops: from start to start; 0 without max_runs: backoff_ns */
	uint32_t max_runs;         /* loops: 0: no limit */
	const char *until;         /* loops: run by sh -c after each attempt, for at most 60 s; exit status 0 ends the loop */
	int64_t backoff_ns;        /* 0: HF_RUN_BACKOFF_NS */
	int64_t backoff_max_ns;    /* 0: HF_RUN_BACKOFF_MAX_NS */
	const char *notify;        /* run by sh -c with a JSON object as standard input */
	uint32_t max_depth;        /* 0: HF_RUN_DEPTH_MAX */
	const char *group;         /* with max_active; NULL: HF_RUN_GROUP_ALL */
	uint32_t max_active;       /* maximum of simultaneous sessions in the group; 0: no limit */
	/*
	 * Maximum bytes of the log; a full log drops its older half. 0: HF_RUN_LOG_MAX;
	 * otherwise at least HF_RUN_LOG_MIN, or HF_RUN_LOG_UNLIMITED. Not enforced in the
	 * background with HF_RUN_LEAVE_RUNNING: the remaining processes keep writing after the
	 * keeper has ended.
	 */
	uint64_t log_max;
	/*
	 * Called once in the calling process with the options of a resumed session: "attempt 2
	 * in /src/app, deadline 1h, verify 'make test'". May be NULL.
	 */
	void (*resumed)(void *arg, const char *text);
	void *resumed_arg;
	const char *stage;         /* set by hf_tx_supervise and hf_tx_start (tx.h) to their options; otherwise NULL */
	/*
	 * hf_run_start: time limit for the first answer of holdfast-supervise; then it is
	 * killed, HF_E_TIMEOUT. Excludes the wait for the lock. 0: HF_RUN_START_NS. Not
	 * stored.
	 */
	int64_t start_ns;
	/*
	 * hf_run_start: a file that each attempt of the command reads as standard input from
	 * its beginning. /proc/self/fd must be able to open it again, as with a memfd. Not
	 * with HF_RUN_TERMINAL. 0: none; with HF_RUN_RESUME: the previous input.
	 *
	 * The input is kept with the session: a resumed session, by either function, reads it
	 * again from its beginning. An input larger than HF_RUN_INPUT_MAX is not kept. If the
	 * input was not kept or is lost, a resume without a new input is refused
	 * (HF_E_FORMAT).
	 */
	int input_fd;
	/*
	 * The events that `notify` gets, separated by commas, such as "start,failure". NULL:
	 * "change". Its command runs in a separate process and may outlive the session, by at
	 * most 60 s.
	 *
	 *   change   a new outcome in this run, and the 3rd, 9th, 27th equal outcome in
	 *            a row
	 *   failure  like change, without successes
	 *   always   every outcome
	 *   start    the command was started, once for each run
	 */
	const char *notify_on;
	/*
	 * With HF_RUN_RESUME: the token of the run to resume; HF_E_STALE if a later run
	 * exists. 0: any. Not stored.
	 */
	uint64_t resume_token;
	uint32_t priority;         /* the highest waiter for a place in the group is first; at most HF_LOCK_PRIORITY_MAX */
	/*
	 * Called about once a second while the session waits for its name or for a place in
	 * its group, and with NULL after such a reported wait. hf_run_supervise: in the
	 * keeper, which is a fork of the caller, before the command starts. Not stored.
	 */
	void (*waiting)(void *arg, const struct hf_lock_waiting *waiting);
	void *waiting_arg;
	uint32_t stop_signal;      /* the first signal that ends the command; 0: SIGTERM. Its descendants always get SIGTERM */
	/*
	 * Limits of the whole session; 0: none. Its cgroup enforces them if it has the
	 * controller (struct hf_session_limits reports that). Otherwise each process has a
	 * memory limit (RLIMIT_DATA), the CPU limit restricts the CPUs that the session may
	 * run on, and the process limit counts all processes of the user (RLIMIT_NPROC). Root
	 * is not bound by RLIMIT_NPROC, so its start is refused then (-ENOTSUP).
	 */
	uint64_t mem_max;
	uint32_t cpus_centi;       /* hundredths of a CPU */
	uint32_t pids_max;
	uint32_t nice;             /* scheduling priority below other processes, 1 to 19 */
	const char *store;         /* a store that also keeps the name, so that the session is
				    * unique on all its machines; NULL: only here (lock.h,
				    * docs/FLEET.md) */
	/*
	 * The kept copy of input_fd, set only by the library. With HF_RUN_RESUME, "" removes
	 * it: the command reads the caller's standard input, or in the background /dev/null.
	 */
	const char *input;
};

/* The outcome of an attempt. `ps` and the journal use these words. */
/* clang-format off */
#define HF_OUTCOME_LIST(X)                                                                      \
	X(NONE,          0, "none")          /* not ended */                                    \
	X(SUCCEEDED,     1, "succeeded")                                                        \
	X(FAILED,        2, "failed")        /* exit status other than 0, or a signal */        \
	X(VERIFY_FAILED, 3, "verify-failed")                                                    \
	X(TIMED_OUT,     4, "timed-out")     /* deadline or idle limit */                       \
	X(STOPPED,       5, "stopped")       /* stopped on request */                           \
	X(LOST_LOCK,     6, "lost-lock")                                                        \
	X(ABANDONED,     7, "abandoned")     /* its supervisor or keeper was killed */          \
	X(NOT_STARTED,   8, "not-started")   /* the command could not be executed */            \
	X(INTERRUPTED,   9, "interrupted")   /* SIGINT or SIGQUIT, even if the exit status is 0 */ \
	X(GAVE_UP,      10, "gave-up")       /* a loop whose --until condition never became true */ \
	X(CONFLICT,     11, "conflict")      /* succeeded, but its targets had changed: nothing committed (tx.h) */ \
	X(DECLINED,     12, "declined")      /* succeeded, but the user declined the commit (tx.h) */
/* clang-format on */

enum hf_outcome {
#define HF_OUTCOME_ENUM(name, number, word) HF_OUTCOME_##name = number,
	HF_OUTCOME_LIST(HF_OUTCOME_ENUM)
#undef HF_OUTCOME_ENUM
};

/* The state of a session, judged from its record and its processes. */
/* clang-format off */
#define HF_SESSION_LIST(X)                                                                      \
	X(STARTING,      1, "starting")                                                         \
	X(RUNNING,       2, "running")                                                          \
	X(HUNG,          3, "hung")          /* no output for hang_ns */                        \
	X(VERIFYING,     4, "verifying")                                                        \
	X(WAITING,       5, "waiting")       /* a loop, between two attempts */                 \
	X(FAILING,       6, "failing")       /* a loop whose latest attempts all failed */      \
	X(STOPPING,      7, "stopping")                                                         \
	X(DONE,          8, "done")          /* ended: succeeded */                             \
	X(FAILED,        9, "failed")        /* ended in any other way */                       \
	X(VERIFY_FAILED, 10, "verify-failed")                                                   \
	X(STOPPED,       11, "stopped")                                                         \
	X(DEAD_UNREAPED, 12, "dead-unreaped") /* supervisor and keeper are gone, not reaped yet */ \
	X(UNREADABLE,    13, "unreadable")   /* its keeper lives, but its record is damaged */  \
	X(LANDING,       14, "landing")      /* command and verifier succeeded; the changes are being committed */ \
	X(SUSPENDED,     15, "suspended")    /* a signal stopped its command or keeper, for example by Ctrl-Z */ \
	X(QUEUED,        16, "queued")       /* waits for a place in its group */
/* clang-format on */

enum hf_session_state {
#define HF_SESSION_ENUM(name, number, word) HF_SESSION_##name = number,
	HF_SESSION_LIST(HF_SESSION_ENUM)
#undef HF_SESSION_ENUM
};

/* Return the word of a state or outcome, or "unknown" for an invalid number. */
HF_API const char *hf_session_word(enum hf_session_state state);
HF_API const char *hf_outcome_word(enum hf_outcome outcome);

/* The result of hf_run_start or hf_run_supervise. */
struct hf_run_report {
	uint64_t token;
	uint32_t attempt;
	int32_t pid;              /* of the command; 0: not started */
	struct hf_proc_id supervisor;
	enum hf_outcome outcome;  /* HF_OUTCOME_NONE: running */
	int exit_status;          /* the CLI's exit status */
	char cause[HF_RUN_CAUSE_MAX];
	char resumed[HF_RUN_RESUMED_MAX]; /* the options of a resumed session; otherwise "" */
	/*
	 * Processes that outlived the last attempt's command and were ended: their number, and
	 * "sleep (2), node".
	 */
	uint32_t outlived;
	char outlived_names[HF_RUN_OUTLIVED_MAX];
	struct hf_holder blocker; /* HF_E_BUSY, HF_E_TIMEOUT: the holder of the name */
	int command_status;       /* exit status of the last attempt's command, as in a shell; -1: it did not run */
	int64_t ran_ns, cpu_ns, memory_peak_bytes, output_bytes; /* of the session; -1: unknown */
};

/*
 * Makes the calling process the supervisor of a new session, and returns when the session has
 * ended and its tree is empty. For programs that do nothing else: it blocks the signals that
 * it forwards, becomes a subreaper, and reaps foreign children. Call it only in a process with
 * one thread. Standard input, output and the terminal belong to the command.
 *
 * Returns 0 with *ret_report if the session has an outcome, good or bad. Otherwise:
 *
 *   HF_E_BUSY, HF_E_TIMEOUT  the name is in use; ret_report->blocker is its holder
 *   HF_E_FINISHED            it has succeeded already and cannot be resumed
 *   HF_E_NO_SESSION          nothing to resume
 *   HF_E_NO_DIRECTORY        its directory does not exist
 *   HF_E_LIMIT               max_depth or max_active, even after wait_ns; the
 *                            detail has the numbers
 *   HF_E_REMAINS             processes of an earlier run could not be ended
 *   HF_E_NAME, -EINVAL, -errno
 */
HF_API int hf_run_supervise(struct hf_state *state, const char *name,
			    const struct hf_run_opts *opts, struct hf_run_report *ret_report,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * Like hf_run_supervise, in the background: the supervisor has its own terminal session,
 * standard input is /dev/null (or input_fd), and output goes to the log. Directory, umask,
 * environment, signal mask and ignored signals are the caller's. Returns when the command
 * runs, or with the reason why it does not: an error as above, or 0 with the outcome
 * HF_OUTCOME_NOT_STARTED.
 *
 * The supervisor is the program holdfast-supervise. It is in the directory $HOLDFAST_LIBEXEC
 * (an absolute path), otherwise in ../libexec next to the program or shared library with this
 * function, otherwise where it was installed. Additional errors:
 *
 *   -ENOENT          the program does not exist
 *   HF_E_UNTRUSTED   it belongs to another user, or others than its owner can
 *                    change it
 *   HF_E_FORMAT      its version is not the library's
 *   HF_E_TIMEOUT     it did not answer within start_ns
 */
HF_API int hf_run_start(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			struct hf_run_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/* -- inspecting, waiting, stopping --------------------------------------------- */

/* Opens a context. `journal` may be NULL: then no events are written. */
HF_API int hf_sessions_open(struct hf_state *state, struct hf_journal *journal,
			    struct hf_sessions **ret_sessions, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_sessions_free(struct hf_sessions *sessions);

/* A program's reports about itself: the words of the Program Status Protocol (OSC 7501), and "background". */
/* clang-format off */
#define HF_ACTIVITY_LIST(X)                                                                         \
	X(NONE,       0, "none")                                                                \
	X(IDLE,       1, "idle")       /* it waits for its first prompt */                      \
	X(WORKING,    2, "working")                                                             \
	X(BLOCKED,    3, "blocked")    /* it needs an answer or a permission to continue */     \
	X(DONE,       4, "done")       /* it has answered and waits for the next prompt */      \
	X(ERROR,      5, "error")      /* the same after an error */                            \
	X(BACKGROUND, 6, "background") /* it has answered and waits for its background tasks */
/* clang-format on */

enum hf_activity {
#define HF_ACTIVITY_ENUM(name, number, word) HF_ACTIVITY_##name = number,
	HF_ACTIVITY_LIST(HF_ACTIVITY_ENUM)
#undef HF_ACTIVITY_ENUM
};

/* The word of such a state; "unknown" for other numbers. */
HF_API const char *hf_activity_word(enum hf_activity activity);

/* The result of an attempt. */
struct hf_session_end {
	enum hf_outcome outcome; /* HF_OUTCOME_NONE: no attempt */
	int exit_status;         /* exit status of `run` */
	const char *cause;       /* the reason as text */
	struct hf_wall ended;    /* ns 0: unknown */
	int64_t ran_ns;          /* -1: unknown */
};

/* The scope of a limit. */
enum hf_limited_by {
	HF_LIMITED_MEMORY = 1 << 0, /* set: the memory of all processes together, by the cgroup; otherwise of each process */
	HF_LIMITED_CPUS = 1 << 1,   /* set: CPU time; otherwise the number of usable CPUs */
	HF_LIMITED_PIDS = 1 << 2,   /* set: the session's own processes; otherwise all of the user's */
};

/* The limits of a session; 0: no limit. */
struct hf_session_limits {
	uint64_t mem_max;
	uint32_t cpus_centi, pids_max, nice;
	unsigned by_cgroup; /* enum hf_limited_by */
};

/* A session, as other processes see it. Unknown numbers are -1. */
struct hf_session_info {
	const char *name;
	enum hf_session_state state;
	enum hf_outcome outcome;   /* HF_OUTCOME_NONE while it runs */
	int exit_status;           /* exit status of `run` for that outcome */
	const char *cause;         /* the reason of the end as text */
	struct hf_session_end last; /* while it runs: the previous attempt, or the previous run */
	char *const *argv;         /* the command's words, NULL-ended; NULL: unknown */
	const char *cwd;           /* its directory; NULL: unknown */
	const char *group;         /* its --group; NULL: none, or unknown */
	const char *command;       /* cut to HF_RUN_COMMAND_MAX */
	uint64_t token;
	uint32_t attempt;
	uint32_t failures;         /* consecutive failures */
	int loop;                  /* 1: it repeats */
	int32_t pid;               /* of the command; 0: not running */
	struct hf_proc_id supervisor, keeper, leader; /* pid 0: none */
	const char *tree;          /* "cgroup" or "walk" */
	int64_t age_ns;            /* since its start */
	int64_t ran_ns;            /* of the last attempt; -1 while it runs */
	int64_t deadline_ns;       /* of each attempt; -1: none */
	uint32_t outlived;         /* processes that outlived its command and were ended */
	const char *outlived_names; /* "sleep (2), node", or "" */
	int64_t deadline_left_ns;  /* -1: none */
	int64_t output_age_ns;     /* since the last output; -1: not watched */
	int64_t processes;         /* processes in the tree */
	int64_t memory_bytes;      /* resident, of all processes */
	int64_t cpu_ns;            /* used in this run, by living and by reaped processes */
	int64_t log_bytes;         /* of its log; -1: none */
	int64_t log_dropped_bytes; /* dropped bytes before them */
	struct hf_wall started, ended; /* ns 0: unknown, or not yet */
	char evidence[HF_EVIDENCE_MAX]; /* the evidence for its state */
	int64_t idle_ns;           /* its idle limit; -1: none, or unknown */
	int64_t silent_ns;         /* since the last output or heartbeat; -1: not watched */
	int64_t next_in_ns;        /* of a loop between two attempts: until the next; -1: none planned */
	int32_t cpu_permille;      /* of one processor, in the last few seconds */
	int64_t memory_peak_bytes; /* the highest memory_bytes of this run */
	int64_t output_bytes;      /* written by this run; -1: not logged */
	const char *last_line;     /* of its log, without control characters; NULL: none, or ended */
	int last_line_partial;     /* 1: that line has no newline */
	int seen;                  /* 1: hf_session_set_seen was called for this run */
	uint32_t max_active;       /* of its group; 0: no limit */
	uint32_t priority;         /* among the waiters for a place in the group */
	struct hf_session_limits limits;
	enum hf_activity activity;         /* what its program reports, while its command runs */
	const char *activity_text;     /* the message of that report, as plain text, or "" */
	int64_t activity_age_ns;       /* since the program is in that state; -1: no report */
	int end_background;        /* 1: HF_RUN_END_BACKGROUND */
	int kept;                  /* 1: it ended and left work that did not land; hf_tx_unlanded says whether that still exists */
};

typedef void hf_session_fn(void *arg, const struct hf_session_info *info);

/*
 * Calls `fn` with the session. HF_E_NO_SESSION; HF_E_FORMAT: its record was quarantined. If
 * its keeper lives, `fn` is called in any case with the data of its lock: as
 * HF_SESSION_UNREADABLE; before the record is written, as HF_SESSION_STARTING with the command
 * ""; or as HF_SESSION_QUEUED.
 */
HF_API int hf_session_look(struct hf_sessions *sessions, const char *name, hf_session_fn *fn,
			   void *arg, struct hf_err *err) HF_MUST_CHECK;

/* Calls `fn` with each session, sorted by name. */
HF_API int hf_session_list(struct hf_sessions *sessions, hf_session_fn *fn, void *arg, struct hf_err *err) HF_MUST_CHECK;

/*
 * Calls `fn` with each session that runs, whose keepers are gone, or that ended at most
 * `age_ns` ago (at most a day). It reads no record of sessions that ended more than a day ago,
 * unless they left work that has not landed; these are included if `age_ns` is not 0.
 * It omits a session whose directory was deleted by hand.
 */
HF_API int hf_session_list_recent(struct hf_sessions *sessions, int64_t age_ns, hf_session_fn *fn, void *arg,
				  struct hf_err *err) HF_MUST_CHECK;

/* Options of a wait, for a session as for a lock (struct hf_lock_opts). */
struct hf_wait_opts {
	size_t size;     /* sizeof(struct hf_wait_opts) */
	int64_t wait_ns; /* 0: do not wait; negative: no limit */
	int cancel_fd;   /* ends the wait when readable; 0: none, so never descriptor 0 */
};

/*
 * Sleeps until the session has ended (a loop: as a whole), then calls `fn` with it. `opts` may
 * be NULL: no limit. HF_E_TIMEOUT; HF_E_CANCELLED: cancel_fd became readable; HF_E_NO_SESSION.
 * A signal does not end the wait, and -EINTR is never returned: to stop waiting, let a handler
 * write to a pipe whose other end is cancel_fd, or pass a signalfd.
 */
HF_API int hf_session_wait(struct hf_sessions *sessions, const char *name,
			   const struct hf_wait_opts *opts, hf_session_fn *fn, void *arg,
			   struct hf_err *err) HF_MUST_CHECK;

enum hf_stop {
	HF_STOP_STOPPED = 0,      /* it ended within the grace period */
	HF_STOP_KILLED = 1,       /* SIGKILL was necessary, and the end was observed (L7) */
	HF_STOP_ALREADY_GONE = 2, /* no process was left */
};

/*
 * Removes the empty cgroups below the caller's own that killed runs of this user created and
 * could not remove. Returns their number.
 */
HF_API int hf_sessions_sweep(struct hf_sessions *sessions);

/*
 * Ends the session: sends TERM to its tree, waits `grace_ns` (0: the session's own; negative:
 * none), sends KILL. Returns when the tree is empty, with an enum hf_stop or an error. If the
 * record is damaged or not written yet, the owner of the lock identifies the session.
 *
 *   HF_E_NO_SESSION  no session has that name
 *   HF_E_RECYCLED    the pid on record is another process now; no signal was sent
 *                    (L6)
 *   HF_E_UNKNOWN     it cannot be judged from here; no signal was sent
 *   HF_E_PROTECTED   the caller is part of that session
 *   HF_E_TIMEOUT     it did not end within the grace period and ten more seconds
 *   HF_E_BUSY        its supervisor and keeper are gone, and another run or reap of
 *                    that name is active
 *   HF_E_REMAINS     they are gone, and the remaining processes cannot be ended
 *                    from here, as for hf_session_reap
 */
HF_API int hf_session_stop(struct hf_sessions *sessions, const char *name, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Like hf_session_stop, only for the run with `token` (0: any). HF_E_STALE if another run has
 * the name now; nothing was done.
 */
HF_API int hf_session_stop_run(struct hf_sessions *sessions, const char *name, uint64_t token, int64_t grace_ns, struct hf_err *err) HF_MUST_CHECK;

/*
 * Ends the remaining processes of a session whose supervisor and keeper are both gone, by
 * proven identity, and completes its record. Returns the number of killed processes, 0 if
 * nothing remained; HF_E_BUSY while it is supervised; HF_E_REMAINS; HF_E_NO_SESSION.
 */
HF_API int hf_session_reap(struct hf_sessions *sessions, const char *name, struct hf_err *err) HF_MUST_CHECK;

/* Like hf_session_reap, only for the run with `token`, as in hf_session_stop_run. */
HF_API int hf_session_reap_run(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/*
 * Marks the run `token` (0: the latest) as seen by a person: info->seen is 1 until the next
 * run of that name. HF_E_STALE if another run has the name now; HF_E_NO_SESSION; -errno.
 */
HF_API int hf_session_set_seen(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/*
 * Forgets a session that has ended: its record, stored options and logs. `token` as for
 * hf_session_stop_run. HF_E_NO_SESSION; HF_E_BUSY: it runs, was not reaped, or another process
 * holds its name or waits for it; HF_E_DIRTY: it left work that has not landed, in its sandbox
 * or as its candidate (hf_tx_drop drops it); HF_E_STALE; -errno.
 */
HF_API int hf_session_remove(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err) HF_MUST_CHECK;

/*
 * Selects sessions to forget: of the sessions that have ended, except the newest `keep`, those
 * that are too old or exceed the size.
 */
struct hf_prune_opts {
	size_t size;        /* sizeof(struct hf_prune_opts) */
	int64_t older_ns;   /* ended longer ago than this; negative: do not select by age */
	uint64_t max_bytes; /* the oldest, while all logs and kept inputs together are larger than this; 0: no limit */
	uint32_t keep;
	int dry_run;        /* 1: only report */
	void (*removed)(void *arg, const char *name, int64_t bytes); /* called for each; may be NULL */
	void *arg;
	void (*kept)(void *arg, const char *name); /* called for each that is kept because its work has not landed; may be NULL */
};

/*
 * Forgets the selected sessions, and the records of locks that no process took for an hour
 * (hf_lock_forget). Returns the number of sessions. Every run does this when it ends, at most
 * once an hour and for 200 ms, with 30 days and 4 GiB, or the limits in $HOLDFAST_PRUNE: "7d",
 * "7d,500M", "off".
 */
HF_API int hf_sessions_prune(struct hf_sessions *sessions, const struct hf_prune_opts *opts, struct hf_err *err) HF_MUST_CHECK;

/*
 * Sends a heartbeat of the run with `token`: it works, although it prints nothing. With
 * `busy`, a tool call has begun: the run counts as active until the next heartbeat, for at
 * most HF_RUN_BUSY_NS. The idle limit and the state HF_SESSION_HUNG count from the last output
 * or heartbeat. For processes of the session ($HOLDFAST_SESSION, $HOLDFAST_TOKEN). Does not
 * block. HF_E_NO_SESSION; -errno.
 */
HF_API int hf_session_beat(struct hf_sessions *sessions, const char *name, uint64_t token, int busy, struct hf_err *err) HF_MUST_CHECK;

/*
 * Report the state of the program of the run `token`. info->activity keeps it until the next report or the next
 * attempt. `text` (NULL: none) is stored as plain text of at most HF_ACTIVITY_TEXT_MAX bytes. HF_ACTIVITY_WORKING is
 * also a heartbeat. Programs on a terminal of the session report by OSC 7501 or by their title; this function
 * is for their hooks. HF_E_NO_SESSION; -EINVAL; -errno. Blocks: no.
 */
HF_API int hf_session_set_activity(struct hf_sessions *sessions, const char *name, uint64_t token, enum hf_activity activity, const char *text,
			  struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
