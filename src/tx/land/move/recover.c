/* tx/land/move/recover.c - a landing whose process died. The ref is read, and decides. */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/move/checkout.h"
#include "hf/tx/land/git/git.h"

static void tell(struct hf_land_work *work, const char *outcome, const char *reason)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("outcome", outcome), HF_FIELD_TEXT("reason", reason) };

	hf_land_event(work->landings, HF_EV_LAND_RECOVERED, work->landing.name, fields, 2);
}

static void note_state(void *arg, const struct hf_plan_info *info)
{
	*(enum hf_plan_state *)arg = info->state;
}

/* Back to the queue: nothing has landed. */
static int requeue(struct hf_land_work *work, const char *reason, struct hf_err *err)
{
	tell(work, "undone", reason);
	return hf_landing_become(work->landings, &work->landing, HF_LAND_QUEUED, err, "interrupted: %s", reason);
}

/* The work tree has the change, the branch does not. */
static int finish(struct hf_land_work *work, const char *plan, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct hf_land_transaction transaction = HF_LAND_TRANSACTION_INIT;
	struct hf_plan_report report;
	const char *reason = "the branch has moved; the work tree was restored";
	int r = -EAGAIN;

	if (strcmp(work->head, landing->from) == 0) {
		r = hf_land_transaction_prepare(landing, &transaction, err);
		if (r == 0)
			r = hf_land_transaction_commit(&transaction);
		if (r == -EAGAIN)
			r = hf_land_transaction_failed(landing, &transaction, err);
		hf_land_transaction_done(&transaction);
	}
	if (r == 0) {
		struct hf_git git = { .dir = landing->checkout };

		(void)!hf_git(&git, NULL, "update-index", "-q", "--refresh", NULL);
		return hf_land_prove(work, err);
	}
	/* What is in the way is told by the next try. */
	if (r == HF_E_TIMEOUT || r == HF_E_LAND)
		reason = "the branch could not be moved; the work tree was restored";
	else if (r != -EAGAIN)
		return r;
	/* The branch went on without it. */
	r = hf_plan_undo(work->landings->plans, plan, NULL, &report, err);
	hf_plan_report_done(&report);
	if (r < 0)
		return r;
	return requeue(work, reason, err);
}

int hf_land_resume(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common };
	enum hf_plan_state state = HF_PLAN_CLEANED;
	char plan[HF_NAME_MAX + 1];
	int r;

	if (landing->state != HF_LAND_LANDING)
		return 0;
	hf_land_plan_name(landing->name, 'c', plan);
	hf_land_transaction_sweep(landing);
	r = landing->checkout[0] ? hf_plan_recover(work->landings->plans, plan, 30 * HF_SEC, err) : 0;
	if (r < 0 && r != HF_E_NO_PLAN)
		return r;
	if (landing->checkout[0] && r != HF_E_NO_PLAN) {
		r = hf_plan_look(work->landings->plans, plan, note_state, &state, err);
		if (r < 0)
			return r;
	}
	r = hf_git(&git, err, "merge-base", "--is-ancestor", landing->commit, landing->branch, NULL);
	if (r < 0)
		return r;
	if (r == 0) {
		tell(work, "finished", "the branch has it");
		r = hf_land_prove(work, err);
	} else if (state == HF_PLAN_COMMITTED) {
		r = finish(work, plan, err);
		if (r > 0)
			tell(work, "finished", "the work tree had it, the branch was moved");
	} else {
		r = requeue(work, "neither the work tree nor the branch had it", err);
	}
	if (r >= 0)
		hf_land_remove_plan(work->landings, plan);
	return r;
}
