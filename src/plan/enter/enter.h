/*
 * plan/enter/enter.h - entering in three steps, for hf_plan_enter and for a session that starts its
 * command itself (exec/spawn.h).
 *
 *     hf_enter_begin(plans, plan, flags, wait_ns, &enter, &err);    parent: plan ready, lock held
 *     fork; child: hf_enter_child(enter, report_fd); exec           inside, or _exit after a report
 *     hf_enter_mounted(enter, report_fd, &err)                      parent: what the child said
 *     ... the command's tree ends, and is reaped ...
 *     hf_enter_end(enter, ...)                                      parent: settled, or why not
 */
#ifndef PLAN_ENTER_ENTER_H
#define PLAN_ENTER_ENTER_H

#include "hf/plan/inside/helper.h"
#include "hf/plan/inside/namespace.h"
#include "hf/plan/registry/registry.h"

struct hf_enter;

/* Besides enum hf_plan_enter_flags: no event. For the many small steps of a layer above that has events of its own. */
#define HF_PLAN_ENTER_QUIET (1U << 8)

/*
 * Locks the plan, settles what an earlier one left, writes that it is entered, and makes ready what
 * the child needs. *ret_enter is freed by hf_enter_free.
 */
int hf_enter_begin(struct hf_plans *plans, const char *plan, unsigned flags, int64_t wait_ns,
		   struct hf_enter **ret_enter, struct hf_err *err);

/*
 * In the child, alone, before exec: enters, starts the helper (which becomes the caller's
 * sibling), drops capabilities, goes to the cwd. Nothing but 0, 1 and 2 is inherited by what is
 * executed next. Returns 0, or -errno with *fail filled.
 */
int hf_enter_child(struct hf_enter *enter, struct hf_inside_fail *fail);

/*
 * In the parent, when the child is inside (`fail` NULL) or has failed: notes which process is there and
 * gives the plan's lock back. `pid`: the child. Returns 0 or the failure.
 */
int hf_enter_mounted(struct hf_enter *enter, pid_t pid, const struct hf_inside_fail *fail,
		     struct hf_err *err);

/* In the parent, when the child was reaped: waits for the helper, or settles itself. */
void hf_enter_end(struct hf_enter *enter);

/* Before the child enters: it goes to that directory (absolute, used until then), and not to the caller's, which may not be there inside. */
void hf_enter_go_to(struct hf_enter *enter, const char *dir);

/* Processes that take a census, as children of the caller. */
struct hf_census_children {
	pid_t pids[HF_PLAN_SANDBOXES_MAX];
	size_t n;
};

/*
 * For a subreaper, before hf_enter_mounted: that one makes them children of the caller (census.h) and fills in
 * *children, which must outlive the entry until then.
 */
void hf_enter_keep_children(struct hf_enter *enter, struct hf_census_children *children);

/*
 * After it was mounted: the helper's pid, or 0. It is an orphan, so a child of a subreaper above. It ends by
 * itself when the last process under its filter has ended.
 */
pid_t hf_enter_helper(const struct hf_enter *enter);

/* What is to be told of it (enum hf_plan_entered_flags), after it was mounted and after its end. */
unsigned hf_enter_flags(const struct hf_enter *enter, char why[HF_PLAN_WHY_MAX]);

/* "K=V" for the environment of the command: HOLDFAST_PLAN, HOLDFAST_DIR, what git needs. NULL-ended. */
char *const *hf_enter_environment(const struct hf_enter *enter);

void hf_enter_free(struct hf_enter *enter);

#endif
