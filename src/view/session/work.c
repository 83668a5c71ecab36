/* view/session/work.c - a session's sandbox and its landing, as members of the session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/view/session/work.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"

struct hf_view_work {
	struct hf_plans *plans;
	struct hf_landings *landings; /* NULL: cannot be opened */
};

struct hf_view_work *hf_view_work_open(struct hf_state *state)
{
	struct hf_view_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	if (hf_plans_open(state, NULL, &work->plans, NULL) < 0) {
		free(work);
		return NULL;
	}
	if (hf_landings_open(state, NULL, work->plans, &work->landings, NULL) < 0)
		work->landings = NULL;
	return work;
}

void hf_view_work_free(struct hf_view_work *work)
{
	if (!work)
		return;
	hf_landings_free(work->landings);
	hf_plans_free(work->plans);
	free(work);
}

/* -- the landing ------------------------------------------------------------------------- */

struct candidate {
	int64_t since_ns; /* of this run: an older candidate is not of it */
	json_t *land;
	char base[HF_LAND_OID_MAX];
};

/* How long the verifier needed the last time, less what it has run by now. */
static int64_t left_ns(const struct hf_land_info *info)
{
	int64_t left = info->verify_ns - (hf_wall_now().ns - info->changed.ns);

	if (info->state != HF_LAND_VERIFYING || info->verify_ns <= 0)
		return -1;
	return left > 0 ? left : 0;
}

static void note_candidate(void *arg, const struct hf_land_info *info)
{
	struct candidate *candidate = arg;

	if (info->changed.ns < candidate->since_ns)
		return;
	(void)snprintf(candidate->base, sizeof(candidate->base), "%s", info->base);
	candidate->land = json_object();
	hf_view_set(&candidate->land, "branch", hf_view_text(info->branch));
	hf_view_set(&candidate->land, "place", info->place ? json_integer(info->place) : json_null());
	hf_view_set(&candidate->land, "step", json_string(hf_land_state_word(info->state)));
	hf_view_set(&candidate->land, "done", json_null());
	hf_view_set(&candidate->land, "of", json_null());
	hf_view_set(&candidate->land, "eta_ms", hf_view_number(left_ns(info), HF_MSEC));
}

/* -- the sandbox ------------------------------------------------------------------------- */

/* What git keeps for itself is no file that the agent has changed. */
static int is_of_git(const char *path)
{
	for (const char *at = path; (at = strstr(at, ".git")); at++)
		if ((at == path || at[-1] == '/') && (at[4] == '/' || at[4] == '\0'))
			return 1;
	return 0;
}

static int count_file(void *arg, const struct hf_change *change)
{
	int64_t *files = arg;

	*files += !S_ISDIR(change->new_mode ? change->new_mode : change->old_mode) && !is_of_git(change->path);
	return 0;
}

static void note_state(void *arg, const struct hf_plan_info *info)
{
	*(enum hf_plan_state *)arg = info->state;
}

static json_t *plan_json(struct hf_view_work *work, const char *plan, const char *base)
{
	struct hf_plan_diff_opts opts = { .size = sizeof(opts) };
	enum hf_plan_state state = HF_PLAN_CLEANED;
	json_t *object;
	int64_t files = 0;

	if (hf_plan_look(work->plans, plan, note_state, &state, NULL) < 0)
		return json_null();
	/* Of one that is over the sandbox holds the old versions, or nothing. */
	if ((state != HF_PLAN_CREATED && state != HF_PLAN_ACTIVE) || hf_plan_diff(work->plans, plan, &opts, count_file, &files, NULL) < 0)
		files = -1;
	object = json_object();
	hf_view_set(&object, "state", json_string(hf_plan_state_word(state)));
	hf_view_set(&object, "files", hf_view_number(files, 1));
	hf_view_set(&object, "added", json_null());
	hf_view_set(&object, "removed", json_null());
	hf_view_set(&object, "base", hf_view_text(base[0] ? base : NULL));
	return object;
}

/* When the session took its lock, which is before its sandbox was made: tokens come from the wall clock, or are ahead of it. */
static int64_t began_ns(const struct hf_session_info *info)
{
	int64_t token_ns = info->token < INT64_MAX / HF_USEC ? (int64_t)info->token * HF_USEC : INT64_MAX;

	return token_ns < info->started.ns ? token_ns : info->started.ns;
}

void hf_view_work_set(struct hf_view_work *work, const struct hf_session_info *info, json_t **session)
{
	struct candidate candidate = { .since_ns = began_ns(info) };
	char plan[HF_NAME_MAX + sizeof(HF_PLAN_OF_RUN)];

	if (!work)
		return;
	(void)snprintf(plan, sizeof(plan), "%s%s", HF_PLAN_OF_RUN, info->name);
	if (work->landings)
		(void)!hf_land_look(work->landings, info->name, note_candidate, &candidate, NULL);
	hf_view_set(session, "plan", plan_json(work, plan, candidate.base));
	hf_view_set(session, "land", candidate.land ? candidate.land : json_null());
}
