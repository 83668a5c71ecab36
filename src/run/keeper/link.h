/*
 * run/keeper/link.h - what supervisor and keeper say to each other, through a socket pair and a shared page.
 *
 * Whole messages (SOCK_SEQPACKET) between two processes of one program, so the structs
 * go over as they are. The end of the stream means that the other one is gone.
 */
#ifndef RUN_KEEPER_LINK_H
#define RUN_KEEPER_LINK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/name.h"
#include "holdfast/run.h"

enum hf_link_kind {
	HF_LINK_STARTED = 1, /* the command runs */
	HF_LINK_ENDED = 2,   /* the session is over, its lock is free; or it was never begun */
	HF_LINK_TERMINAL = 3, /* a pty's descriptor comes with it; none: the pty is done with */
	HF_LINK_SUSPENDED = 4, /* the command on the pty has stopped itself */
	HF_LINK_KEEPER = 5, /* from the reaper between: the keeper's pidfd comes with it */
	HF_LINK_WAITING = 7, /* in the background: `waiting` */
	HF_LINK_FLEET = 8, /* the name is held in the store: gate->fleet_end */
	HF_LINK_RESUMED = 6, /* the stored options are in force: `terms`, and report.resumed */
};

/* What the supervisor has to know of the options, once a resumed session has its stored ones. */
struct hf_link_terms {
	int64_t ttl_ns, grace_ns;
	uint32_t max_active;
	char group[HF_NAME_MAX + 1];
};

/* From the keeper. */
struct hf_link_news {
	enum hf_link_kind kind;
	int result;                  /* HF_LINK_ENDED: what hf_run_supervise returns */
	struct hf_run_report report;
	struct hf_link_terms terms;
	struct hf_lock_waiting waiting;
	struct hf_err err;
};

/* To the keeper. */
struct hf_link_order {
	int signal;
	int from_terminal; /* the terminal sent it, to the whole foreground group */
	pid_t group;       /* the group of the pty that gets it by way of that; 0: none does */
};

/* A report that says nothing yet. */
static inline void hf_report_init(struct hf_run_report *report)
{
	report->command_status = -1;
	report->ran_ns = report->cpu_ns = report->memory_peak_bytes = report->output_bytes = -1;
}

/*
 * Which was first: the keeper that took the lock, or the signal that ends a supervisor which still
 * waits for it? One exchange decides. After HELD a signal is always an order to the keeper, which
 * ends the tree with TERM and grace; after ABORTED the keeper starts nothing.
 */
enum hf_gate_state {
	HF_GATE_WAITING = 0,
	HF_GATE_HELD = 1,
	HF_GATE_ABORTED = 2,
};

/* The page that both have mapped. */
struct hf_gate {
	atomic_int state;   /* enum hf_gate_state */
	_Atomic uint64_t token; /* of the keeper's lock; 0: it does not have it yet, and there is no tree */
	_Atomic int64_t fleet_end; /* boot time: nothing of the tree may run then; 0: no machine but this one counts */
	atomic_int has_pty; /* 1 when the supervisor has taken the pty that it was told of */
	atomic_int passing; /* 1 while the supervisor takes signals and has not passed them on yet */
};

/* The first one decides. Returns 1 when that is `to`. */
static inline int hf_gate_decide(struct hf_gate *gate, enum hf_gate_state to)
{
	int waiting = HF_GATE_WAITING;

	return atomic_compare_exchange_strong(&gate->state, &waiting, (int)to);
}

#endif
