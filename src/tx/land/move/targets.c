/* tx/land/move/targets.c - the sandboxes that a place needs: its git directories elsewhere, and the work tree. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/candidate/land.h"

#define PLAN_NS (10 * HF_SEC) /* for the plan's lock: another process may be looking at it */

void hf_land_sandbox_name(const struct hf_land_place *place, size_t i, char out[HF_LAND_SANDBOX_MAX])
{
	if (i + 1 == place->n_targets)
		(void)snprintf(out, HF_LAND_SANDBOX_MAX, "%s", HF_LAND_WORK_TREE);
	else
		(void)snprintf(out, HF_LAND_SANDBOX_MAX, ".git-%zu", i);
}

static int add_target(struct hf_plans *plans, const char *plan, const struct hf_land_place *place, size_t i, int untried,
		      struct hf_err *err)
{
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = HF_STRATEGY_OVERLAY, .flags = untried ? HF_PLAN_ADD_UNTRIED : 0,
					 .wait_ns = PLAN_NS };
	struct hf_plan_added added;
	char sandbox[HF_LAND_SANDBOX_MAX];
	int r;

	hf_land_sandbox_name(place, i, sandbox);
	r = hf_plan_add(plans, plan, sandbox, place->targets[i], &opts, &added, err);
	/* git finds its directories by their paths: a copy elsewhere would write to the real ones. */
	if (r == 0 && !added.same_path)
		r = FAIL(err, HF_E_LAND, "sandbox", place->targets[i], "landing needs overlay sandboxes: %.150s", added.why);
	return r;
}

int hf_land_add_targets(struct hf_plans *plans, const char *plan, const struct hf_land_place *place, struct hf_err *err)
{
	return hf_land_make_targets(plans, plan, place, 0, err);
}

int hf_land_make_targets(struct hf_plans *plans, const char *plan, const struct hf_land_place *place, int untried, struct hf_err *err)
{
	int r = 0;

	if (!plans || !plan || !place || place->n_targets == 0)
		return FAIL(err, -EINVAL, "arguments", "hf_land_add_targets", "plans, a plan and a place are needed");
	for (size_t i = 0; r == 0 && i < place->n_targets; i++)
		r = add_target(plans, plan, place, i, untried, err);
	if (r < 0)
		(void)!hf_plan_rm(plans, plan, HF_PLAN_RM_DISCARD, NULL);
	return r;
}

int hf_land_new_plan(struct hf_landings *landings, const char *plan, const struct hf_land_place *place, struct hf_err *err)
{
	int r;

	hf_land_remove_plan(landings, plan);
	r = hf_plan_new(landings->plans, plan, NULL, err);
	return r < 0 ? r : hf_land_make_targets(landings->plans, plan, place, 1, err);
}

void hf_land_remove_plan(struct hf_landings *landings, const char *plan)
{
	(void)!hf_plan_rm(landings->plans, plan, HF_PLAN_RM_DISCARD, NULL);
}
