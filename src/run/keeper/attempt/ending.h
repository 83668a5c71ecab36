/*
 * run/keeper/attempt/ending.h - how a process tree is brought to its end: phases, events, and what each event does in each phase.
 *
 *     QUIET ──ask──► LEADER ──leader exited, or a third of the grace──► TREE ──grace over──► KILL
 *       └──leader exited (it ended by itself)────────────────────────────┘
 *
 * TERM goes to the leader first: an agent whose tool dies takes that for a failed tool and asks the
 * model again. The rest gets TERM when the leader has gone. --term tree goes from QUIET to TREE.
 *
 * Pure: an event changes the struct and returns what to do; the caller sends the signals. The
 * tree is at its end when hf_tree_reap says that it is empty, and not before (L7).
 */
#ifndef RUN_KEEPER_ATTEMPT_ENDING_H
#define RUN_KEEPER_ATTEMPT_ENDING_H

#include <stdint.h>

#include "holdfast/clock.h"

/* Why an attempt, or the session, is ended. */
enum hf_cause {
	HF_CAUSE_NONE = 0,
	HF_CAUSE_DEADLINE,
	HF_CAUSE_IDLE,
	HF_CAUSE_INTERRUPT,  /* INT or QUIT; the command itself decides whether it ends */
	HF_CAUSE_STOP,       /* TERM to the supervisor or the keeper */
	HF_CAUSE_HANGUP,     /* the terminal is gone */
	HF_CAUSE_LOST,       /* the lock is lost */
	HF_CAUSE_CUT_OFF,    /* the name is lost in the store of the fleet, or may be any moment; the lock of this machine is not */
	HF_CAUSE_SUPERVISOR, /* the supervisor is gone */
};

/* "the deadline was reached", … */
const char *hf_cause_text(enum hf_cause cause);

enum hf_ending_phase {
	HF_ENDING_QUIET = 0, /* nobody was asked to end */
	HF_ENDING_LEADER,    /* the leader has TERM, the rest is spared */
	HF_ENDING_TREE,      /* all have TERM */
	HF_ENDING_KILL,      /* SIGKILL, round after round */
};

struct hf_ending {
	enum hf_ending_phase phase;
	enum hf_cause cause;  /* the first one; later ones only hasten the end */
	int whole;            /* TERM to all at once (--term tree) */
	int leader_gone;
	struct hf_mono rest_at;  /* LEADER: when the rest gets TERM */
	struct hf_mono kill_at;  /* LEADER, TREE: when the grace is over */
	struct hf_mono again_at; /* KILL: the next round */
};

/* What the caller has to do now. */
enum hf_act {
	HF_ACT_NOTHING = 0,
	HF_ACT_TERM_LEADER, /* TERM, then CONT, to the leader */
	HF_ACT_TERM_REST,   /* to all but the leader */
	HF_ACT_TERM_TREE,   /* to all */
	HF_ACT_KILL,
};

/* The events. `grace_ns` negative: KILL at once. */
enum hf_act hf_ending_ask(struct hf_ending *ending, enum hf_cause cause, int64_t grace_ns, struct hf_mono now);
enum hf_act hf_ending_leader_exited(struct hf_ending *ending, int64_t grace_ns, struct hf_mono now);
enum hf_act hf_ending_time(struct hf_ending *ending, struct hf_mono now);

/* Nanoseconds until hf_ending_time has something to do; INT64_MAX: nothing is planned. */
int64_t hf_ending_due(const struct hf_ending *ending, struct hf_mono now);

#endif
