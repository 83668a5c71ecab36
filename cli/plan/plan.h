/* cli/plan/plan.h - functions shared by the plan commands. */
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

/* Opens state, journal and plans. Returns HF_EXIT_DONE, or the exit status after reporting why. */
int plan_open(struct cli *cli, struct plan_context *ret);
void plan_done(struct plan_context *context);

/* Adds the lines of a file to `globs`, except empty lines and comments (#). Returns like plan_open(). */
int plan_read_ignore(const struct cli *cli, const char *file, char ***globs);

#define PLAN_PATCH_UNREAD (-1)

/* Prints a change in the format of `git diff`. Returns the exit status, or PLAN_PATCH_UNREAD if the reader of stdout is gone. */
int plan_patch(const struct cli *cli, const struct hf_change *change);

/* Sends stdout through $PAGER (less) if it is a terminal. plan_pager_end() ends this. */
int plan_pager_begin(void);
void plan_pager_end(int pager);

#endif
