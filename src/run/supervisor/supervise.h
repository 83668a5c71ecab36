/* run/supervisor/supervise.h - the supervisor, and its terminal when the command has a pty. */
#ifndef RUN_SUPERVISOR_SUPERVISE_H
#define RUN_SUPERVISOR_SUPERVISE_H

#include <poll.h>
#include <termios.h>

#include "hf/run/keeper/link.h"
#include "hf/exec/tree.h"
#include "hf/run/stage.h"

typedef void hf_started_fn(void *arg, const struct hf_link_news *news);

/* The caller's terminal on one side, the command's pty on the other. */
struct hf_terminal {
	int pty;   /* -1: there is none */
	int is_raw;
	struct termios modes; /* of the caller's terminal, to be put back */
	size_t at, len;       /* what of `keys` is still to be handed over */
	char keys[512];
};

#define HF_TERMINAL_INIT { .pty = -1 }

/* What is to be started, and how. */
struct hf_start {
	struct hf_state *state;
	const char *name;
	const struct hf_run_opts *given; /* checked */
	const struct hf_stage *stage;    /* may be NULL */
	int detached;                    /* output goes to the log alone */
	hf_started_fn *started;          /* called once, when the command runs; may be NULL */
	hf_started_fn *waiting;          /* called again and again while it waits for its turn; may be NULL */
	void *arg;
};

struct hf_supervisor {
	struct hf_state *state;
	const char *name;
	struct hf_run_opts o; /* complete; of a resumed session with what the keeper found stored */
	struct hf_link_terms terms; /* owns o.group then */
	int detached;
	char resumed[HF_RUN_RESUMED_MAX];
	int link;
	int signals;
	sigset_t mask;       /* the caller's */
	int was_subreaper;   /* the caller was, before */
	struct hf_gate *gate; /* shared with the keeper */
	pid_t keeper;    /* tree.reaper, where there is one, is its parent */
	int keeper_fd;
	uint64_t token;  /* of a keeper that was killed; 0: it did not have the lock yet */
	int fleet;       /* the socket of the agent (fleet/agent.h), for the keeper; -1: none */
	int fleet_timer; /* when the lease in the store is over, unless it was renewed; -1: none */
	struct hf_mono look; /* when the lease is looked at next */
	int aborted;     /* by a signal, before there was anything to stop */
	struct hf_tree tree;
	struct hf_terminal terminal;
	hf_started_fn *started, *waiting;
	void *arg;
	struct hf_link_news last; /* kind HF_LINK_ENDED when it came */
};

/* Makes this process the supervisor, to the end of the session. */
int hf_supervise(const struct hf_start *start, struct hf_run_report *ret_report, struct hf_err *err);

/*
 * The keeper was killed, or has lost the lock and does not act: ends it and the tree, completes
 * the record, frees the lock, and fills in what was to be the keeper's last word.
 */
void hf_take_over(struct hf_supervisor *supervisor);

/* Sleeps until the keeper has exited, and reaps it if it is ours. */
void hf_await_keeper(struct hf_supervisor *supervisor);

/* The keeper's news that have come. */
void hf_relay_news(struct hf_supervisor *supervisor);

/* Signals that have come go to the keeper, or stop us and the command together. */
void hf_relay_signals(struct hf_supervisor *supervisor);

/* What was typed; a key that interrupts is told to the keeper before the command can act on it. */
void hf_relay_keys(struct hf_supervisor *supervisor);

/* Takes the pty and hands keys over from now on. A later one replaces it; -1: there is none now. */
void hf_terminal_take(struct hf_terminal *terminal, int pty);

/* Makes the caller's terminal raw if it is to be, is not, and we are in its foreground. */
void hf_terminal_raw(struct hf_terminal *terminal);
void hf_terminal_restore(struct hf_terminal *terminal);
void hf_terminal_resize(struct hf_terminal *terminal);
void hf_terminal_done(struct hf_terminal *terminal);

/* What to poll for: 1, or 0 without a pty. */
nfds_t hf_terminal_poll(const struct hf_terminal *terminal, struct pollfd *fd);

/*
 * Takes what was typed. Returns SIGINT or SIGQUIT when that is a key for which the pty is about to
 * send this to its foreground group, *ret_group; else 0.
 */
int hf_terminal_read(struct hf_terminal *terminal, pid_t *ret_group);

/* Passes it on, as far as it is taken. */
void hf_terminal_copy(struct hf_terminal *terminal);

#endif
