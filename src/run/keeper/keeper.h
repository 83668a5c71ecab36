/*
 * run/keeper/keeper.h - the keeper: parent of the command, holder of the lock, writer of the record.
 *
 * One process, one thread, one poll. keeper.c takes the lock, settles what an earlier
 * run left, and goes through the attempts (loop.c); attempt.c starts the command and
 * its verifier and judges their end; watch.c is the poll: signals, deadlines, the
 * lease, the supervisor's life, and ending the tree.
 */
#ifndef RUN_KEEPER_KEEPER_H
#define RUN_KEEPER_KEEPER_H

#include <poll.h>
#include <signal.h>

#include "hf/run/keeper/link.h"
#include "hf/run/keeper/output.h"
#include "hf/exec/spawn.h"
#include "hf/run/session/store.h"
#include "hf/exec/tree.h"

/* Why a tree is being ended; later ones are stronger and replace earlier ones. */
enum hf_end {
	HF_END_NONE = 0,
	HF_END_LEFTOVERS,  /* the command has exited, these have not */
	HF_END_DEADLINE,
	HF_END_IDLE,
	HF_END_STOP,       /* TERM to the supervisor or the keeper */
	HF_END_HANGUP,     /* the terminal is gone */
	HF_END_LOST,       /* the lock is lost */
	HF_END_SUPERVISOR, /* the supervisor is gone */
};

struct hf_keeper {
	struct hf_sessions *sessions;
	const char *name;
	struct hf_run_opts o;   /* every default filled in */
	int detached;
	int own_session;        /* in the terminal's sense: the command gets a pty */
	int link;               /* to the supervisor */
	pid_t supervisor;
	int supervisor_fd;      /* its pidfd; -1: not opened yet */
	pid_t parent;           /* the supervisor, or who stands between (reaper.c) */
	int signals;            /* signalfd */
	int not_ours[2];        /* descriptors of the supervisor's that the fork has copied */
	sigset_t mask;          /* the caller's, for the command */
	pid_t group;            /* the supervisor's process group */
	struct hf_lock *lock;
	struct hf_lock *slot;   /* of the group */
	struct hf_session_record record;
	struct hf_tree tree;
	struct hf_output output;
	char **envp;
	char *env_set[12];      /* the strings of ours in it */
	char **stored_argv;     /* of a resumed session, when none was given */
	int is_started;         /* the supervisor was told so */

	/* Of the watch that is on. */
	enum hf_end end;
	int killing;
	unsigned killed_before; /* tree.killed when it began */
	struct hf_mono kill_at;
	struct hf_mono kill_again_at;
	struct hf_mono renew_at;
	struct hf_mono lost_at;
	int lost;               /* the lock is no longer ours: nothing may be written */
};

/* How a command that was watched came to its end. */
struct hf_watched {
	int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: it did not start */
	int status; /* exit status or signal; errno when it did not start */
	enum hf_end end;
};

/* Runs a session to its end, as the process that hf_run_supervise forked. Never returns. */
_Noreturn void hf_keeper_main(struct hf_keeper *keeper, struct hf_state *state);

/* Forks the keeper below a reaper of its own. Returns the reaper's pid, or -1 and errno. */
pid_t hf_reaper_start(struct hf_keeper *keeper, struct hf_state *state);

/* Is its output captured while somebody sits at a terminal? */
int hf_keeper_wants_pty(const struct hf_keeper *keeper);

/* Sends news; a supervisor that is gone is found out elsewhere. `fd` -1: none goes with it. */
void hf_keeper_tell(struct hf_keeper *keeper, const struct hf_link_news *news, int fd);

/* All attempts. Returns the exit status for the supervisor. */
int hf_keeper_loop(struct hf_keeper *keeper);

/* Makes the command's environment for this attempt. 0 or -errno. */
int hf_keeper_environment(struct hf_keeper *keeper);

/* One attempt: start, watch, verify, judge. The record has the outcome when it returns. */
void hf_keeper_attempt(struct hf_keeper *keeper);

/*
 * Runs a helper command by sh -c with the session's environment, at most `limit_ns`, and
 * ends whatever it leaves. `input` (may be NULL) is its stdin. Returns what it came to.
 */
struct hf_watched hf_keeper_helper(struct hf_keeper *keeper, const char *command, int64_t limit_ns,
				   const char *input);

/*
 * Watches the child that was let go until its tree is empty, or until it has exited when
 * leftovers may live. `limit_ns` 0: none; `idle_ns` 0: none.
 */
struct hf_watched hf_keeper_watch(struct hf_keeper *keeper, const struct hf_child *child,
				  int64_t limit_ns, int64_t idle_ns);

/* Sleeps between attempts. Returns 0, or 1 when the session is to end. */
int hf_keeper_sleep(struct hf_keeper *keeper, int64_t ns);

/* Begins (or hastens) the end of the tree. */
void hf_keeper_end(struct hf_keeper *keeper, enum hf_end end, int64_t grace_ns);

/* Writes the record unless the lock is lost. Returns 0 or -errno. */
int hf_keeper_save(struct hf_keeper *keeper);

/* Runs the notify command when the outcome is new or its turn has come (notify.c). */
void hf_keeper_notify(struct hf_keeper *keeper);

/* The name of the lock that has the places of a group; -1 when it is too long. */
int hf_group_name(const char *group, char out[HF_NAME_MAX + 1]);

/* "deadline", "stopped by a signal", … */
const char *hf_end_text(enum hf_end end);

#endif
