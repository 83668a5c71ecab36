/* tx/unlanded.c - finds, counts and drops work that neither landed nor was committed nor dropped. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/stage.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/tx_inner.h"
#include "hf/tx/unlanded.h"
#include "holdfast/tx.h"

/* -- the sandbox ------------------------------------------------------------------------- */

struct seen {
	struct hf_unlanded *work;
	int dirty;
	int64_t files; /* in the upper layers; -1: not known */
};

static void note_plan(void *arg, const struct hf_plan_info *info)
{
	struct seen *seen = arg;

	seen->dirty = info->dirty;
	seen->work->in_use = info->in_use;
	seen->work->plan_state = info->state;
	for (size_t i = 0; i < info->n_sandboxes; i++) {
		int64_t files = info->sandboxes[i].files;

		seen->work->is_over_git |= strcmp(info->sandboxes[i].name, HF_LAND_WORK_TREE) == 0;
		seen->files = seen->files < 0 || files < 0 ? -1 : seen->files + files;
	}
}

static int is_of_git(const struct hf_change *change)
{
	const char *at = strstr(change->path, ".git");

	if (strncmp(change->sandbox, ".git-", 5) == 0)
		return 1;
	while (at && ((at != change->path && at[-1] != '/') || (at[4] != '/' && at[4] != '\0')))
		at = strstr(at + 1, ".git");
	return at != NULL;
}

/* "git status" writes the index again, and an entry in a directory makes that newer. */
static int is_work(const struct hf_unlanded *work, const struct hf_change *change)
{
	const char *slash = strrchr(change->path, '/'), *leaf = slash ? slash + 1 : change->path;

	if (!work->is_over_git)
		return 1;
	if (S_ISDIR(change->new_mode) && (change->old_mode == 0 || S_ISDIR(change->old_mode)))
		return 0;
	return strcmp(leaf, "index") != 0 || strstr(change->path, "refs/") || !is_of_git(change);
}

static int find_work(void *arg, const struct hf_change *change)
{
	return is_work(arg, change) ? -ECANCELED : 0;
}

/* 1, 0, or an error: it cannot be known. */
static int look_at_plan(struct hf_plans *plans, struct hf_unlanded *work, struct hf_err *err)
{
	struct hf_plan_diff_opts opts = { .size = sizeof(opts) };
	struct seen seen = { .work = work };
	int r = hf_plan_look(plans, work->plan, note_plan, &seen, err);

	if (r < 0)
		return r == HF_E_NO_PLAN ? 0 : r;
	if (!seen.dirty)
		return 0;
	/* More than one file can only be work; files that cannot be compared now count as work. */
	if (!work->is_over_git || seen.files < 0 || seen.files > 1)
		return 1;
	return hf_plan_diff(plans, work->plan, &opts, find_work, work, NULL) != 0;
}

/* Files of git that neither a begin of the sandbox nor "git status" writes. */
static int find_git_work(void *arg, const struct hf_change *change)
{
	const char *path = change->path;
	size_t len = strlen(path);

	if (!is_of_git(change) || !is_work(arg, change) || S_ISDIR(change->new_mode))
		return 0;
	return (len >= 9 && strcmp(path + len - 9, "logs/HEAD") == 0) || (len >= 9 && strcmp(path + len - 9, "ORIG_HEAD") == 0) ? 0 : -ECANCELED;
}

/* Asks git in the sandbox. Returns 0 if its only files are those that hide the user's edits. */
static int look_inside(struct hf_plans *plans, struct hf_landings *landings, const char *name, struct hf_unlanded *work)
{
	struct hf_plan_diff_opts opts = { .size = sizeof(opts) };
	struct hf_land_held held;

	if (hf_land_look_held(landings, name, &held, NULL) < 0)
		return 1;
	work->files = held.files;
	work->is_counted = 1;
	return !held.is_nothing || hf_plan_diff(plans, work->plan, &opts, find_git_work, work, NULL) != 0;
}

/* -- the candidate ------------------------------------------------------------------------ */

/* Returns 1 if it has landed. Ignores a candidate that was begun by hand. */
static int look_at_candidate(struct hf_landings *landings, const char *name, enum hf_unlanded_depth depth, struct hf_unlanded *work)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };

	if (!landings || hf_landing_load(landings, name, &landing, NULL) < 0 || strcmp(landing.plan, work->plan) != 0)
		return 0;
	work->land = landing.state;
	work->token = landing.token;
	work->changed = landing.changed;
	work->commits = landing.commits;
	work->files = landing.files;
	hf_copy_text(work->branch, sizeof(work->branch), hf_land_short(landing.branch));
	hf_copy_text(work->top, sizeof(work->top), landing.top);
	hf_copy_text(work->base, sizeof(work->base), landing.base);
	if (landing.state == HF_LAND_LANDED) {
		work->n_left = (unsigned)landing.unlanded.n;
		work->is_part = !work->n_left;
	} else if (landing.state != HF_LAND_DROPPED && landing.tip[0]) {
		work->is_part = depth > HF_UNLANDED_QUICK && hf_landing_is_part(&landing);
		work->is_kept = !work->is_part;
	}
	return work->is_part;
}

/* A landing of an earlier run says nothing about a sandbox whose files are committed. */
static int is_earlier(const struct hf_unlanded *work)
{
	return work->has_plan && !work->is_over_git && (work->land == HF_LAND_LANDED || work->land == HF_LAND_DROPPED);
}

static void forget_candidate(struct hf_unlanded *work)
{
	work->land = (enum hf_land_state)0;
	work->token = 0;
	work->is_part = 0;
	work->n_left = work->commits = work->files = 0;
	work->branch[0] = work->top[0] = work->base[0] = '\0';
}

int hf_unlanded_look(struct hf_plans *plans, struct hf_landings *landings, const char *name, enum hf_unlanded_depth depth, struct hf_unlanded *ret,
		     struct hf_err *err)
{
	int has_landed, r;

	*ret = (struct hf_unlanded){ 0 };
	r = hf_tx_plan_name(name, ret->plan, err);
	if (r < 0)
		return r == HF_E_NAME ? 0 : r; /* no run of such a name had a sandbox */
	has_landed = look_at_candidate(landings, name, depth, ret);
	r = look_at_plan(plans, ret, err);
	ret->has_plan = r != 0;
	if (is_earlier(ret)) {
		forget_candidate(ret);
		has_landed = 0;
	}
	if (r < 0)
		return r;
	if (r > 0 && depth == HF_UNLANDED_ALL && ret->is_over_git && ret->top[0] && !ret->in_use && ret->land != HF_LAND_LANDED && !ret->is_kept)
		ret->has_plan = look_inside(plans, landings, name, ret);
	if (r > 0 && depth == HF_UNLANDED_ALL && ret->land == HF_LAND_LANDED && !ret->n_left)
		ret->is_all_landed = ret->is_part = has_landed = hf_land_is_all_landed(landings, name, NULL) == 1;
	return (ret->has_plan && !has_landed) || ret->is_kept;
}

/* -- in words ----------------------------------------------------------------------------- */

struct counted {
	const struct hf_unlanded *work;
	uint64_t files;
};

static int count_file(void *arg, const struct hf_change *change)
{
	struct counted *counted = arg;

	counted->files += is_work(counted->work, change) && !(counted->work->is_over_git && is_of_git(change));
	return 0;
}

/* Commits that the sandbox has on its HEAD. */
static uint64_t count_commits(struct hf_plans *plans, const struct hf_unlanded *work)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .plans = plans, .plan = work->plan, .dir = work->top, .out = &out };
	char range[HF_LAND_OID_MAX + 8];
	uint64_t commits = 0;

	if (!work->has_plan || !work->is_over_git || !work->base[0] || work->in_use)
		return work->commits;
	(void)snprintf(range, sizeof(range), "%s..HEAD", work->base);
	if (hf_git(&git, NULL, "rev-list", "--count", range, NULL) == 0 && out.len > 1)
		(void)!hf_parse_u64(out.s, out.len - 1, UINT32_MAX, &commits);
	return commits;
}

void hf_unlanded_describe(struct hf_plans *plans, const struct hf_unlanded *work, struct hf_buf *out)
{
	struct hf_plan_diff_opts opts = { .size = sizeof(opts) };
	struct counted counted = { .work = work };
	uint64_t files = work->files, commits = count_commits(plans, work);

	if (work->n_left) {
		hf_buf_add_format(out, "%u changed file%s", work->n_left, work->n_left == 1 ? "" : "s");
		return;
	}
	if (work->has_plan && !(work->is_counted && files > 0) && hf_plan_diff(plans, work->plan, &opts, count_file, &counted, NULL) < 0) {
		hf_buf_add_text(out, "changes that cannot be counted now");
		return;
	}
	if (work->has_plan && !(work->is_counted && files > 0))
		files = counted.files;
	if (files == 0 && commits == 0) {
		hf_buf_add_text(out, "changes in .git");
		return;
	}
	if (files > 0)
		hf_buf_add_format(out, "%llu file%s changed", (unsigned long long)files, files == 1 ? "" : "s");
	if (commits > 0)
		hf_buf_add_format(out, "%s%llu commit%s", files > 0 ? ", " : "", (unsigned long long)commits, commits == 1 ? "" : "s");
}

/* -- for other layers ------------------------------------------------------------------------ */

struct rooms {
	struct hf_plans *plans;
	struct hf_landings *landings;
};

static void rooms_done(struct rooms *rooms)
{
	hf_landings_free(rooms->landings);
	hf_plans_free(rooms->plans);
}

static int rooms_open(struct hf_state *state, struct hf_journal *journal, struct rooms *ret, struct hf_err *err)
{
	int r = hf_plans_open(state, journal, &ret->plans, err);

	return r < 0 ? r : hf_landings_open(state, journal, ret->plans, &ret->landings, err);
}

int hf_stage_holds_work(struct hf_state *state, const char *name)
{
	AUTO(rooms_done) struct rooms rooms = { 0 };
	struct hf_unlanded work;

	/* An error may hide work. */
	return rooms_open(state, NULL, &rooms, NULL) < 0 || hf_unlanded_look(rooms.plans, rooms.landings, name, HF_UNLANDED_QUICK, &work, NULL) != 0;
}

int hf_tx_unlanded(struct hf_state *state, const char *name, struct hf_tx_unlanded *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(rooms_done) struct rooms rooms = { 0 };
	struct hf_unlanded work;
	int r;

	if (!state || !name || !ret || ret->size != sizeof(*ret))
		return FAIL(err, -EINVAL, "arguments", "hf_tx_unlanded", "a state, a name and the result's size are needed");
	r = rooms_open(state, NULL, &rooms, err);
	if (r == 0)
		r = hf_unlanded_look(rooms.plans, rooms.landings, name, HF_UNLANDED_ALL, &work, err);
	if (r <= 0)
		return r;
	*ret = (struct hf_tx_unlanded){ .size = sizeof(*ret), .lands = (work.is_over_git || work.is_kept) && !work.n_left, .candidate = work.land, .in_use = work.in_use };
	if (work.has_plan)
		memcpy(ret->plan, work.plan, sizeof(ret->plan));
	memcpy(ret->branch, work.branch, sizeof(ret->branch));
	hf_unlanded_describe(rooms.plans, &work, &text);
	hf_copy_text(ret->text, sizeof(ret->text), text.err ? "" : text.s);
	return 1;
}

int hf_unlanded_drop(struct hf_plans *plans, struct hf_landings *landings, const struct hf_unlanded *work, const char *name, struct hf_err *err)
{
	int is_open = work->n_left || (work->land && work->land != HF_LAND_LANDED && work->land != HF_LAND_DROPPED);
	int r = is_open ? hf_land_drop(landings, name, err) : hf_plan_rm(plans, work->plan, HF_PLAN_RM_DISCARD, err);

	return r == HF_E_NO_PLAN ? 0 : r;
}

int hf_tx_drop(struct hf_state *state, struct hf_journal *journal, const char *name, struct hf_err *err)
{
	AUTO(rooms_done) struct rooms rooms = { 0 };
	struct hf_unlanded work;
	int r;

	if (!state || !name)
		return FAIL(err, -EINVAL, "arguments", "hf_tx_drop", "a state and a name are needed");
	r = rooms_open(state, journal, &rooms, err);
	if (r == 0)
		r = hf_unlanded_look(rooms.plans, rooms.landings, name, HF_UNLANDED_ALL, &work, err);
	return r < 0 ? r : hf_unlanded_drop(rooms.plans, rooms.landings, &work, name, err);
}
