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

#define PLAN_PATCH_UNREAD (-1)

/* One change in the format of `git diff`, on stdout. Status; PLAN_PATCH_UNREAD: its reader has gone. */
int plan_patch(const struct cli *cli, const struct hf_change *change);

/* Sends stdout through $PAGER (less) when it is a terminal; to be ended by plan_pager_end. */
int plan_pager_begin(void);
void plan_pager_end(int pager);

#endif
