/* cli/plan.h - what the plan commands share. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "cli.h"
#include "holdfast/plan.h"

struct plan_context {
	struct hf_journal *journal;
	struct hf_plans *plans;
	struct hf_err err;
};

#define PLAN_CONTEXT_INIT { NULL, NULL, HF_ERR_INIT }

/* Opens state, journal and plans. EXIT_DONE, or the status after it has said why not. */
int plan_open(struct cli *cli, struct plan_context *ret);
void plan_done(struct plan_context *context);

/* A time as JSON; null for none. */
json_t *plan_time(struct hf_wall time);

#endif
