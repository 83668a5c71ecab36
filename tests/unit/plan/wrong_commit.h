/* unit/plan/wrong_commit.h - a commit that gives the plan's lock back too early. */
#ifndef TESTS_WRONG_COMMIT_H
#define TESTS_WRONG_COMMIT_H

#include "holdfast/plan.h"

/* Called once the set was read and the lock was given back. */
extern void (*wrong_commit_unlocked)(void);

int wrong_plan_commit(struct hf_plans *plans, const char *plan, const struct hf_plan_commit_opts *opts,
		      struct hf_plan_report *ret_report, struct hf_err *err);

#endif
