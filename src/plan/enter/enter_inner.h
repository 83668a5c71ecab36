/* plan/enter/enter_inner.h - what the two sides of an enter share. */
#ifndef PLAN_ENTER_ENTER_INNER_H
#define PLAN_ENTER_ENTER_INNER_H

#include "hf/plan/enter/enter.h"

#define HF_ENTER_REST_MS 30000 /* a sync of what a command wrote may take its time */

struct hf_enter {
	struct hf_plans *plans;
	struct hf_plan_record record;
	struct hf_lock *lock;
	unsigned flags;   /* enum hf_plan_enter_flags */
	unsigned entered; /* enum hf_plan_entered_flags */
	char why[HF_PLAN_WHY_MAX];
	int plan_fd;
	int channel[2];   /* ours, the helper's */
	int report[2];    /* what the child says about the helper: one struct hf_enter_told */
	int go;           /* closed when the plan's lock was given back; -1: nobody waits for that */
	char *cwd;
	char *paths[HF_PLAN_SANDBOXES_MAX]; /* of the sandboxes' directories */
	int targets[HF_PLAN_SANDBOXES_MAX]; /* for the census; -1: none needed */
	struct hf_layer layers[HF_PLAN_SANDBOXES_MAX];
	struct hf_helper helper;
	struct hf_inside inside;
	char *environment[4];
	pid_t helper_pid;                     /* 0: it has none */
	pid_t command_pid;                    /* as the child told it */
	struct hf_census_children *children;  /* NULL: a census belongs to init */
};

/* What the child tells about itself before it executes the command. */
struct hf_enter_told {
	pid_t command; /* its own pid */
	pid_t helper;  /* that of its helper; 0: it has none */
	int root_only;
	int landlocked;
	struct hf_inside_fail without; /* why it has no helper */
};

/* -- in the child, for the watcher (watcher.h) and hf_enter_child: 0, or -errno with *fail filled -- */

/* Into the namespaces, with safe standard descriptors. */
int hf_enter_inside(struct hf_enter *enter, struct hf_inside_fail *fail);

/* Gives up what could undo the sandbox. */
int hf_enter_drop(const struct hf_enter *enter, int keep_ptrace, struct hf_inside_fail *fail);

/* The last steps before exec, in a child of `watcher`, which gets the filter's listener over `channel` if there is one. */
int hf_enter_finish(struct hf_enter *enter, int channel, pid_t watcher, struct hf_inside_fail *fail);

/* That listener, or -EPIPE. */
int hf_enter_receive_listener(int channel);

/* -- in the parent -- */

/* Notes how it ended: a word of the helper, or 0 when it was killed. Settles what that one did not. */
void hf_enter_ended(struct hf_enter *enter, char word);

/* Makes the overlays ready to be mounted, outer before inner. Those of other strategies are elsewhere. */
int hf_enter_prepare_layers(struct hf_enter *enter, struct hf_err *err);

#endif
