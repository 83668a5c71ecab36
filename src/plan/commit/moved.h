/*
 * plan/commit/moved.h - did anything in the targets change since the sandboxes were verified?
 *
 *     hf_plans_set_verified(plans, &verified);   from now on hf_plan_commit through these plans looks
 *
 * A commit that would change something first looks through the targets of its overlays, under their locks. When
 * an entry changed since `verified->since`, nothing is committed: it returns HF_PLAN_MOVED, with a path in `moved`.
 * It costs a stat for each entry of the target.
 *
 * Not looked at: what the commit itself changes was compared with T0 before (conflict.c). A clone or copy does
 * not show what others do, so that verifying it again would prove nothing. Of a git directory HEAD and the
 * refs count alone: its index changes when a user asks for the status. Files that are this process's standard input
 * and output do not count, since a verifier that prints would never see a target at rest.
 */
#ifndef PLAN_COMMIT_MOVED_H
#define PLAN_COMMIT_MOVED_H

#include "hf/plan/commit/work.h"

#define HF_PLAN_MOVED     1
#define HF_PLAN_MOVED_MAX 512

struct hf_verified {
	struct hf_t0 since;            /* before the mount that was verified */
	char moved[HF_PLAN_MOVED_MAX]; /* relative to its target; a longer one is cut */
};

/* `verified` is used as long as `plans`; NULL: commits do not look. */
void hf_plans_set_verified(struct hf_plans *plans, struct hf_verified *verified);

/* HF_PLAN_MOVED, 0, or an error. */
int hf_moved(const struct hf_work *work, struct hf_verified *verified, struct hf_err *err);

#endif
