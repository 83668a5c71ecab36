/* tx/land/move/sweep.c - removes the plans that killed landings made for themselves. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/name/names.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"

static const char made[] = { 'v', HF_LAND_PLAN_FORECAST, 'c' };

/* The plan of a checkout says how far the move of the branch has come, until that is finished or undone. */
static int is_needed(const struct hf_landing *landing, char what)
{
	return what == 'c' && landing->state == HF_LAND_LANDING;
}

void hf_land_remove_made(struct hf_landings *landings, const struct hf_landing *landing)
{
	char plan[HF_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(made); i++) {
		hf_land_plan_name(landing->name, made[i], plan);
		if (!is_needed(landing, made[i]))
			hf_land_remove_plan(landings, plan);
	}
}

struct sweep {
	struct hf_landings *landings;
	struct hf_names names; /* of the candidates */
	int dry_run;
	void (*fn)(void *arg, const char *plan);
	void *arg;
	int removed;
};

static void sweep_done(struct sweep *sweep)
{
	hf_names_done(&sweep->names);
}

/* Finds the candidate of `plan`; NULL: it has no record any more. */
static const char *find_candidate(const struct sweep *sweep, const char *plan)
{
	char name[HF_NAME_MAX + 1];

	for (size_t i = 0; i < sweep->names.n; i++) {
		hf_land_plan_name(sweep->names.list[i], plan[strlen(plan) - 1], name);
		if (strcmp(name, plan) == 0)
			return sweep->names.list[i];
	}
	return NULL;
}

/* Under the candidate's lock no landing uses it. One whose record cannot be read may still need it. */
static int is_left(const struct sweep *sweep, const char *plan, struct hf_lock **lock)
{
	static const struct hf_land_opts at_once = { .size = sizeof(at_once) };
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	const char *name = find_candidate(sweep, plan);
	char lock_name[HF_NAME_MAX + 1];

	if (!name)
		return 1;
	hf_land_lock_name(name, lock_name);
	return hf_land_lock(sweep->landings, lock_name, &at_once, lock, NULL) == 0 &&
	       hf_landing_load(sweep->landings, name, &landing, NULL) == 0 && !is_needed(&landing, plan[strlen(plan) - 1]);
}

static int sweep_one(void *arg, const char *plan)
{
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	struct sweep *sweep = arg;

	if (strncmp(plan, HF_LAND_PLAN_PREFIX, strlen(HF_LAND_PLAN_PREFIX)) != 0 || !is_left(sweep, plan, &lock))
		return 0;
	if (sweep->fn)
		sweep->fn(sweep->arg, plan);
	if (sweep->dry_run || hf_plan_rm(sweep->landings->plans, plan, HF_PLAN_RM_DISCARD, NULL) == 0)
		sweep->removed++;
	return 0;
}

int hf_land_sweep(struct hf_landings *landings, int dry_run, void (*fn)(void *arg, const char *plan), void *arg, struct hf_err *err)
{
	AUTO(sweep_done) struct sweep sweep = { .landings = landings, .dry_run = dry_run, .fn = fn, .arg = arg };
	int r;

	if (!landings)
		return FAIL(err, -EINVAL, "arguments", "hf_land_sweep", "NULL");
	r = hf_names_read(landings->dirfd, &sweep.names);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "landings");
	r = hf_plan_each(landings->plans, sweep_one, &sweep, err);
	return r < 0 ? r : sweep.removed;
}
