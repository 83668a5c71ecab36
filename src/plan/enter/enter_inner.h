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
	char *cwd;
	char *paths[HF_PLAN_SANDBOXES_MAX]; /* of the sandboxes' directories */
	int targets[HF_PLAN_SANDBOXES_MAX]; /* for the census; -1: none needed */
	struct hf_layer layers[HF_PLAN_SANDBOXES_MAX];
	struct hf_helper helper;
	struct hf_inside inside;
	char *environment[4];
	pid_t helper_pid;                     /* 0: it has none */
	struct hf_census_children *children;  /* NULL: a census belongs to init */
};

/* What the child tells about itself before it executes the command. */
struct hf_enter_told {
	pid_t helper; /* its pid; 0: it has none */
	int root_only;
	int landlocked;
	struct hf_inside_fail without; /* why it has no helper */
};

/* Makes the overlays ready to be mounted, outer before inner. Those of other strategies are elsewhere. */
int hf_enter_prepare_layers(struct hf_enter *enter, struct hf_err *err);

#endif
