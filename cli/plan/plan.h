/* cli/plan/plan.h - what the plan commands share. */
#ifndef CLI_PLAN_PLAN_H
#define CLI_PLAN_PLAN_H

#include "cli.h"
#include "holdfast/plan.h"

struct plan_context {
	struct hf_journal *journal;
	struct hf_plans *plans;
	struct hf_err err;
};

#define PLAN_CONTEXT_INIT { NULL, NULL, HF_ERR_INIT }

/* Opens state, journal and plans. HF_EXIT_DONE, or the status after it has said why not. */
int plan_open(struct cli *cli, struct plan_context *ret);
void plan_done(struct plan_context *context);

/* The lines of a file as further globs; "" and "#..." do not count. Status after saying why. */
int plan_read_ignore(const struct cli *cli, const char *file, char ***globs);

/* Unified differences of one change, by diff(1), on stdout. Status. */
int plan_patch(const struct cli *cli, const struct hf_change *change);

/* Sends stdout through $PAGER when it is a terminal; to be ended by plan_pager_end. */
int plan_pager_begin(const struct cli *cli);
void plan_pager_end(int pager);

#endif
