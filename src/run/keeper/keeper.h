/*
 * run/keeper/keeper.h - the keeper: parent of the command, holder of the lock, writer of the record.
 *
 * One process, one thread, one poll.
 *
 *     keeper.c       its life: take the lock, settle what an earlier run left, the attempts, the end
 *     admit.c        may it start? depth, the name
 *     queue.c        a place in the group, and the wait for it
 *     fleet.c        the name in a store of several machines
 *     resume.c       the options in force: given now, and stored before
 *     environment.c  the variables of the command
 *     schedule.c     attempt after attempt: when the next one begins, and when there is none
 *     attempt.c      one attempt: intent, start, watch, verify, land, outcome
 *     landing.c      the stage's child that puts what was made in its place, and its end
 *     helper.c       the other commands: verifier, until
 *     activity.c     reports of the command on its terminal
 *     poll.c         the one poll: signals, orders, limits, lease, supervisor; turns them into events
 *     account.c      what the run uses
 *     limits.c       what it may use
 *     ending.c       the state machine of a tree that is being ended (pure)
 *     judge.c        from an end to an outcome (pure)
 *     viewers.c      those that are attached to the command's terminal
 *     notify.c       which outcomes are told, and in which words
 *     notifier.c     the process that runs the notify command, and outlives the keeper
 *     output.c
 *
 * Signals first, records after: while a command runs, nothing waits for the disk. A record that is
 * written then (hf_keeper_note) is not synced.
 */
#ifndef RUN_KEEPER_KEEPER_H
#define RUN_KEEPER_KEEPER_H

#include <poll.h>
#include <signal.h>

#include "hf/exec/spawn.h"
#include "hf/exec/tree.h"
#include "hf/lock/lease/renewal.h"
#include "hf/lock/lease/renewer.h"
#include "hf/run/keeper/attempt/ending.h"
#include "hf/run/keeper/attempt/judge.h"
#include "hf/run/keeper/link.h"
#include "hf/run/keeper/output/output.h"
#include "hf/run/keeper/output/viewers.h"
#include "hf/run/session/record/input.h"
#include "hf/run/session/record/store.h"
#include "hf/run/session/record/stored.h"
#include "hf/run/session/notes/usage.h"
#include "hf/run/stage.h"

struct hf_keeper {
	struct hf_sessions *sessions;
	const char *name;
	struct hf_run_opts given;  /* as they were given; of a resumed session with the stored ones */
	struct hf_run_opts o;      /* every default filled in */
	struct hf_stored stored;   /* owns what a resumed session has of before */
	uint64_t options_before;   /* checksum of what the run before ran with; 0: not known */
	char input[HF_INPUT_ID_MAX]; /* what the command reads as its standard input, kept under this name; "": nothing that is given now */
	int input_is_new;          /* that was written for this run */
	int options_staged;        /* they are stored beside those of the run before, until the record names them */
	const struct hf_stage *stage;
	int detached;
	int own_session;        /* in the terminal's sense: the command gets a pty */
	int link;               /* to the supervisor */
	struct hf_gate *gate;
	pid_t supervisor;
	int supervisor_fd;      /* its pidfd; -1: not opened yet */
	pid_t parent;           /* the supervisor, or the reaper between (subreaper.c) */
	int signals;            /* signalfd */
	int not_ours[2];        /* descriptors of the supervisor's that the fork has copied */
	sigset_t mask;          /* the caller's, for the command */
	pid_t group;            /* the supervisor's process group, on a terminal; 0: the command gets its own */
	struct hf_lock *lock;
	struct hf_lock *slot;   /* of the group */
	struct hf_session_record record;
	struct hf_tree tree;
	struct hf_output output;
	struct hf_viewers viewers;
	char **envp;
	char *env_set[20];      /* the strings in it that the keeper made */
	char *stage_text;       /* merged stage options of a resumed session; owned */
	struct hf_err stage_err; /* what the stage said; code 0: nothing */
	char resumed[HF_RUN_RESUMED_MAX]; /* what it is resumed with; "": it is not */
	int is_started;         /* the supervisor was told so */
	uint32_t outcomes;      /* that this run came to so far */
	int notices;            /* to the notifier; -1: there is none yet */

	enum hf_cause over;     /* why the session is to end, all of it; the first cause stays */
	int interrupted;        /* SIGINT or SIGQUIT came in this attempt; 0: no */
	struct hf_mono wait_until; /* for the name, and then for a place in the group */
	int queueing;           /* it waits for a place; nothing of this run is on record yet */
	int told_waiting;       /* the caller was told that it waits */
	int told_killed;        /* session_killed was written after the supervisor had gone */
	int lost;               /* the lock is no longer ours: nothing may be written */
	int landed;             /* what this attempt made is in its place: its success stands, whatever comes */
	struct hf_renewal renewal;
	struct hf_renewer fleet; /* fd: to the agent that has the name in the store; fleet.c */
	int in_fleet;           /* it has it */
	int fleet_asked, fleet_lost; /* its lease may end: the tree is being ended; it is lost, or over */
	enum hf_phase fleet_phase; /* that the other machines were told */
	struct hf_usage usage;  /* measured in this run */
	struct hf_spawn_limits limits; /* of each process, where the cgroup has none */
	int command_status;     /* of the command of the last attempt; -1: it did not run */

	/* Of the command that is being watched. */
	const struct hf_child *child; /* NULL: none */
	int beside;             /* it is --until, and no part of the attempt */
	struct hf_ending ending;
	unsigned killed_before; /* tree.killed when it began */
};

/* When a command is ended although it would go on. */
struct hf_limits {
	int has_deadline;
	struct hf_mono deadline;
	int64_t idle_ns; /* 0: none */
};

/* Runs a session to its end, as the process that hf_run_supervise forked. Never returns. */
_Noreturn void hf_keeper_main(struct hf_keeper *keeper, struct hf_state *state);

/* Forks the keeper below a reaper of its own. Returns the reaper's pid, or -1 and errno. */
pid_t hf_reaper_start(struct hf_keeper *keeper, struct hf_state *state);

/* Is the supervisor gone? */
int hf_keeper_is_orphan(const struct hf_keeper *keeper);

/* Sets the name of the process. A waiter for this session's name in its own tree tells from it that it will never get it. */
void hf_keeper_set_comm(const struct hf_keeper *keeper);

/* Is its output logged? */
int hf_keeper_logs(const struct hf_keeper *keeper);

/* Is its output captured while the session is on a terminal? */
int hf_keeper_wants_pty(const struct hf_keeper *keeper);

/* Sends news; a supervisor that is gone is found out elsewhere. `fd` -1: none goes with it. */
void hf_keeper_tell(struct hf_keeper *keeper, const struct hf_link_news *news, int fd);

/* All attempts. The record has the outcome when it returns; so does the exit status. */
int hf_keeper_loop(struct hf_keeper *keeper);

/* May it start? 0, or an error; a refusal has left its event. */
int hf_keeper_check_depth(struct hf_keeper *keeper, struct hf_err *err);
int hf_keeper_take_lock(struct hf_keeper *keeper, struct hf_holder *ret_blocker, struct hf_err *err);
int hf_keeper_take_slot(struct hf_keeper *keeper, struct hf_err *err);

/* The name in the store, if there is one; the token is that of the store then. fleet.c */
int hf_keeper_join_fleet(struct hf_keeper *keeper, struct hf_holder *ret_blocker, struct hf_err *err);

#define HF_KEEPER_FLEET_POLL 2
nfds_t hf_keeper_fleet_poll(const struct hf_keeper *keeper, struct pollfd fds[HF_KEEPER_FLEET_POLL]);

/* Hears the agent, and looks at the clock of the lease. */
void hf_keeper_fleet_step(struct hf_keeper *keeper);

/* The record was written: the other machines are told, if that is new to them. */
void hf_keeper_fleet_tell(struct hf_keeper *keeper);

/* The tree is empty and the outcome on record: the name may be another machine's. */
void hf_keeper_leave_fleet(struct hf_keeper *keeper);

/* It waits: the caller is told, and the lease kept. queue.c */
void hf_keeper_note_waiting(void *keeper, const struct hf_lock_waiting *waiting);

/* Something came in while it waits: does it go on? */
int hf_keeper_goes_on(void *keeper);

/* A signal ended it while it waited for a place: what it came to. */
void hf_keeper_report_given_up(const struct hf_keeper *keeper, struct hf_run_report *report);

/* How long it may still wait, and what the locks call meanwhile. */
void hf_keeper_wait_options(struct hf_keeper *keeper, struct hf_lock_opts *opts);

/* Such a wait is over: the caller, if it was told of it, is told that. */
void hf_keeper_waited(struct hf_keeper *keeper);

/* Leaves the event of a refusal. Returns its code. */
int hf_keeper_refuse(struct hf_keeper *keeper, const struct hf_err *err);

/* How many sessions this one is in. */
uint64_t hf_keeper_depth(void);

/*
 * Before the lock is held, for a session that is to be resumed: will its stored options want a
 * pty? A guess, since the options may change until the lock is held.
 */
void hf_keeper_peek(struct hf_keeper *keeper, struct hf_state *state);

/* Puts the stored options in force, and the stored directory; `old` is the run before. */
int hf_keeper_resume(struct hf_keeper *keeper, const struct hf_session_record *old, struct hf_err *err);

/* Goes to the directory of the command. 0, or refused. */
int hf_keeper_enter_directory(struct hf_keeper *keeper, struct hf_err *err);

/* Goes to the directory of the command and stores all that a resume needs. 0 or an error. */
int hf_keeper_store(struct hf_keeper *keeper, struct hf_err *err);

/* Makes that what a resume gets (`is_on_record`: the record names it now), or drops it. */
void hf_keeper_store_done(struct hf_keeper *keeper, int is_on_record);

/* The standard input of a resumed session: that of the run before, unless one is given now. 0, or refused. */
int hf_keeper_resume_input(struct hf_keeper *keeper, struct hf_err *err);

/* Keeps the one that is given now beside that of the run before. And, when the record names it or never will, drops the other. */
int hf_keeper_keep_input(struct hf_keeper *keeper, struct hf_err *err);
void hf_keeper_input_done(struct hf_keeper *keeper, int is_on_record);

/* For this attempt: the command reads it from its beginning. 0 or -errno. */
int hf_keeper_give_input(struct hf_keeper *keeper);

/* Makes the command's environment for this attempt. 0 or -errno. */
int hf_keeper_environment(struct hf_keeper *keeper);

/* Verifies what the command made. Only exit 0 of the verifier lets a success be one. */
struct hf_result hf_keeper_verify(struct hf_keeper *keeper);

/* What the command made is set apart from what a verifier writes. The result that goes in, or why it is not to be verified. */
struct hf_result hf_keeper_seal(struct hf_keeper *keeper, const struct hf_result *result);

/* Lands what an attempt made that came to `result`, a success; what it came to then. landing.c */
struct hf_result hf_keeper_land(struct hf_keeper *keeper, const struct hf_result *result);

/* One attempt: start, watch, verify, judge. The record and the journal have what it returns. */
struct hf_result hf_keeper_attempt(struct hf_keeper *keeper);

/* How to start a command of this session. `staged`: it goes where the stage's enter() takes it. */
struct hf_spawn hf_keeper_spawn(struct hf_keeper *keeper, char *const *argv, int staged);

/*
 * Runs a helper command by sh -c with the session's environment, at most `limit_ns`, and
 * ends whatever it leaves. Its standard input is empty. `staged`: it is part of the attempt,
 * as the verifier is; else its limit ends nothing but itself. Returns what it came to.
 */
struct hf_watched hf_keeper_helper(struct hf_keeper *keeper, const char *command, int64_t limit_ns, int staged);

/* The stage's part before a fork of what is to enter, and after its exec, or what came instead. 0, HF_STAGE_AGAIN, an error. */
int hf_keeper_ready(struct hf_keeper *keeper);
int hf_keeper_entered(struct hf_keeper *keeper, const struct hf_child *child, int result);

/* A child that was made and did not become its command: it is about to exit, and is awaited. */
void hf_keeper_reap_child(struct hf_keeper *keeper, const struct hf_child *child);

/*
 * Watches the child that was let go until its tree is empty, or until it has exited when
 * leftovers may live.
 */
struct hf_watched hf_keeper_watch(struct hf_keeper *keeper, const struct hf_child *child,
				  const struct hf_limits *limits);

/* Handles new reports of the command on its terminal. activity.c */
void hf_keeper_take_activity(struct hf_keeper *keeper);

/* Nanoseconds without output or heartbeat, for the idle limit. */
int64_t hf_keeper_quiet(struct hf_keeper *keeper);

/* What viewers typed; a key that interrupts is known before the command can act on it. */
void hf_keeper_take_typed(struct hf_keeper *keeper);

/* Takes what has come in, without sleeping: both of these. listen.c */
void hf_keeper_listen(struct hf_keeper *keeper);
void hf_keeper_take_signals(struct hf_keeper *keeper);
void hf_keeper_take_orders(struct hf_keeper *keeper);

/* There is a reason to end. Signals first; then the record and the event, once for each reason that counts (L8). */
void hf_keeper_end(struct hf_keeper *keeper, enum hf_cause cause, int64_t grace_ns);

/* Carries out what the state machine says (ending.h). */
void hf_keeper_act(struct hf_keeper *keeper, enum hf_act what);

/* One event: SIGKILL ended `count` processes, or the supervisor was killed (L8). */
void hf_keeper_tell_killed(struct hf_keeper *keeper, unsigned count, enum hf_cause cause);

/* Sleeps between attempts. Returns 0, or 1 when the session is to end. */
int hf_keeper_sleep(struct hf_keeper *keeper, int64_t ns);

/*
 * Until the store has proven, by a renewal that began after this call, that the name is still ours; at once without a store. 1: the session is to
 * end before.
 */
int hf_keeper_await_proof(struct hf_keeper *keeper);

/* Notes what the run uses now, for those that look. account.c */
void hf_keeper_sample(struct hf_keeper *keeper);

/* Sets the limits of what is started from now on; `own` is the group around that of the session. 0, or an error: nothing here can bound one of them. */
int hf_keeper_limit(struct hf_keeper *keeper, const struct hf_cgroup *own, struct hf_err *err);

/* Writes to the record what the run has used until now: nothing of it lives. */
void hf_keeper_account(struct hf_keeper *keeper);

/* Writes the record durably unless the lock is lost. Returns 0 or -errno. */
int hf_keeper_save(struct hf_keeper *keeper);

/* Writes it so that it survives the death of processes, and waits for no disk. */
int hf_keeper_note(struct hf_keeper *keeper);

/* Has the notify command told when the outcome is new or its turn has come, or of the start (notify.c). Neither waits for it. */
void hf_keeper_notify(struct hf_keeper *keeper);
void hf_keeper_notify_start(struct hf_keeper *keeper);

/* A notice on its way from the keeper to the notifier; `text` is what the command reads, and goes as far as it is long. */
struct hf_notice {
	char outcome[24];
	uint32_t same, attempt;
	char text[16384];
};

/* Gives it to the notifier, which is started for the first one. What it cannot take is dropped, with its event. notifier.c */
void hf_notifier_tell(struct hf_keeper *keeper, const struct hf_notice *notice);

/* Before the keeper exits: the notifier, if there is one, is not to become a child of the supervisor's, which may be a caller's process. */
void hf_notifier_leave(struct hf_keeper *keeper);

#endif
