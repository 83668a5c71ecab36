/* plan/recovery/committed.h - was a plan committed? Asked by a later process, when the committer died. */
#ifndef PLAN_RECOVERY_COMMITTED_H
#define PLAN_RECOVERY_COMMITTED_H

#include "hf/plan/registry/registry.h"

/*
 * Finishes or undoes what a dead process began with the plan, then: 1 it is committed, with the figures of that in *ret;
 * 0 it is not, or there is none. An error: it is not known now.
 */
int hf_plan_committed(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_plan_report *ret,
		      struct hf_err *err);

#endif
