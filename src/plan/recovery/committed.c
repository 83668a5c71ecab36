/* plan/recovery/committed.c - what became of a plan whose committer died before it reported. */
#include <errno.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/recovery/committed.h"
#include "hf/plan/commit/work.h"

/* The intent of the last commit tells what it did. Where it cannot be read the figures are 0, and nothing else depends on them. */
static void count(int plan_fd, struct hf_plan_report *ret)
{
	static const char *const names[] = { HF_INTENT_UNDO, HF_INTENT_GONE };

	for (size_t i = 0; i < 2; i++) {
		struct hf_intent intent = HF_INTENT_INIT;
		const char *why;

		if (hf_intent_load(plan_fd, names[i], &intent, &why, NULL) < 0)
			continue;
		hf_intent_count(&intent, &ret->added, &ret->changed, &ret->deleted, &ret->bytes);
		hf_intent_done(&intent);
		return;
	}
}

int hf_plan_committed(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_plan_report *ret,
		      struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO_FD plan_fd = -1;
	int r = hf_plan_recover(plans, plan, wait_ns, err);

	*ret = (struct hf_plan_report){ 0 };
	if (r >= 0)
		r = hf_plan_load(plans, plan, &record, err);
	if (r == HF_E_NO_PLAN)
		return 0;
	if (r < 0)
		return r;
	/* Only of those is it certain. An undo that died was recovered above. */
	if (record.state == HF_PLAN_PREPARED)
		return FAIL(err, HF_E_PLAN_STATE, "plan", plan, "its commit is still in progress");
	if (record.state != HF_PLAN_COMMITTED)
		return 0;
	if (hf_plan_dir(plans, plan, 0, &plan_fd, NULL) == 0)
		count(plan_fd, ret);
	return 1;
}
