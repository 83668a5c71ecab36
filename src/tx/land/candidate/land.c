/* tx/land/candidate/land.c - a candidate, from its sandbox to its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/enter/confine.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"

#define ROUNDS_MAX 100         /* of a branch that its user moves again and again */
#define ENDED_NS   (30 * HF_SEC) /* for the gits of a try that was killed, or the helper of the sandbox, to be gone; a machine may be loaded */

/* -- the candidate ------------------------------------------------------------------------ */

struct found {
	int elsewhere, in_use;
};

static void note_plan(void *arg, const struct hf_plan_info *info)
{
	struct found *found = arg;

	found->in_use = info->in_use;
	for (size_t i = 0; i < info->n_sandboxes; i++)
		found->elsewhere |= info->sandboxes[i].strategy != HF_STRATEGY_OVERLAY;
}

/* A try before this one may have been killed: its gits in the sandbox die with it, but a moment after it. */
static int look_at_plan(struct hf_landings *landings, const char *plan, struct found *found, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(ENDED_NS);
	int r;

	while ((r = hf_plan_look(landings->plans, plan, note_plan, found, err)) == 0 && found->in_use &&
	       hf_mono_left(until) > 0)
		hf_pause(10 * HF_MSEC);
	if (r < 0)
		return r;
	if (found->in_use)
		return FAIL(err, HF_E_IN_USE, "plan", plan, "the work has not ended yet");
	if (found->elsewhere)
		return FAIL(err, HF_E_LAND, "plan", plan, "landing needs overlay sandboxes");
	return 0;
}

static int is_over(const struct hf_landing *landing)
{
	return landing->state == HF_LAND_LANDED || landing->state == HF_LAND_DROPPED;
}

static void note_nothing(void *arg, const struct hf_plan_info *info)
{
	(void)arg;
	(void)info;
}

static int is_kept(struct hf_landings *landings, const struct hf_landing *landing)
{
	return landing->keep_plan && hf_plan_look(landings->plans, landing->plan, note_nothing, NULL, NULL) == 0;
}

/* Later work in the sandbox begins at the old tip, even if a rebase has landed that in new commits. */
static void land_again(struct hf_landing *landing)
{
	if (landing->tip[0]) {
		hf_copy_text(landing->base, sizeof(landing->base), landing->tip);
		hf_copy_text(landing->landed, sizeof(landing->landed), landing->commit);
	}
	landing->tip[0] = landing->commit[0] = landing->from[0] = landing->sealed[0] = landing->unsealed[0] = landing->after[0] = '\0';
	landing->is_verified = landing->rebased = 0;
	landing->state = HF_LAND_WORKING;
}

/* Replaces the branch of the candidate. The old one may be renamed or deleted. */
static int take_branch(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common };
	AUTO_FREE char *branch = NULL;
	AUTO_FREE char *rev = NULL;
	char oid[HF_LAND_OID_MAX];
	int r;

	if (!work->opts->branch)
		return 0;
	if (asprintf(&branch, "refs/heads/%s", hf_land_short(work->opts->branch)) < 0 || asprintf(&rev, "%s^{commit}", branch) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	r = strlen(branch) > 255 ? 1 : hf_git_oid(&git, rev, oid, err);
	if (r > 0)
		return FAIL(err, HF_E_LAND, "git", landing->top, "no branch '%.120s'", hf_land_short(branch));
	if (r == 0 && hf_landing_set(&landing->branch, branch) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	return r;
}

static int open_record(struct hf_land_work *work, const char *name, struct hf_err *err)
{
	const struct hf_land_opts *opts = work->opts;
	struct hf_landing *landing = &work->landing;
	int r = hf_landing_load(work->landings, name, landing, err);

	if (r < 0)
		return r;
	if (landing->state == HF_LAND_LANDED && is_kept(work->landings, landing))
		land_again(landing);
	if (is_over(landing))
		return FAIL(err, HF_E_FINISHED, "land", name, "it is %s", hf_land_state_word(landing->state));
	r = take_branch(work, err);
	return r < 0 ? r : hf_landing_take_terms(landing, opts, work->landings->plans, err);
}

/* -- the end ------------------------------------------------------------------------------- */

unsigned hf_land_count_signed(const struct hf_landing *landing)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = landing->common, .out = &out };
	char range[2 * HF_LAND_OID_MAX + 4];
	unsigned n = 0;

	(void)snprintf(range, sizeof(range), "%s..%s", landing->base, landing->tip);
	if (hf_git(&git, NULL, "rev-list", "--header", range, NULL) != 0)
		return 0;
	/* Each commit as it is stored, with a NUL; its header ends at an empty line. */
	for (const char *at = out.s; at < out.s + out.len; at += strlen(at) + 1) {
		const char *end = strstr(at, "\n\n"), *found = strstr(at, "\ngpgsig");

		n += found && (!end || found < end);
	}
	return n;
}

int hf_land_prove(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common };
	char lost[80] = "", kept[160];
	char now[HF_LAND_OID_MAX];
	int r = 0;

	/* Where the branch is at the commit itself, its file says all that git would. */
	if (hf_git_read_ref(landing->common, landing->branch, now) != 0 || strcmp(now, landing->commit) != 0)
		r = hf_git(&git, err, "merge-base", "--is-ancestor", landing->commit, landing->branch, NULL);
	if (r != 0)
		return r < 0 ? r : 0;
	if (landing->rebased && landing->merge == HF_LAND_REBASE && landing->tip[0] && !landing->is_signed)
		landing->unsigned_commits += hf_land_count_signed(landing);
	if (landing->unsigned_commits)
		(void)snprintf(lost, sizeof(lost), "; %u signed commit%s rebased and no longer signed", landing->unsigned_commits,
			       landing->unsigned_commits == 1 ? " was" : "s were");
	hf_land_kept_words(landing, kept, sizeof(kept));
	r = hf_landing_become(work->landings, landing, HF_LAND_LANDED, err, "%s%.12s is part of %.100s%s%s",
			      landing->is_there ? "its change is on the branch already; " : landing->commits ? "" : "there was nothing to land; ",
			      landing->commit, hf_land_short(landing->branch), lost, kept);
	if (r < 0)
		return r;
	struct hf_field fields[] = { HF_FIELD_TEXT("branch", hf_land_short(landing->branch)),
				     HF_FIELD_TEXT("commit", landing->commit), HF_FIELD_INT("commits", landing->commits),
				     HF_FIELD_BOOL("rebased", landing->rebased),
				     HF_FIELD_INT("verify_ms", landing->verify_ns < 0 ? -1 : landing->verify_ns / HF_MSEC),
				     HF_FIELD_INT("files", landing->files) };
	hf_land_event(work->landings, HF_EV_LAND_LANDED, landing->name, fields, 6);
	return 1;
}

void hf_land_clean(struct hf_land_work *work)
{
	struct hf_git git = { .dir = work->landing.common };
	char ref[HF_NAME_KEY_MAX + 32];

	/* Only work that has a tip was kept by a ref. */
	hf_land_ref(work->landing.name, ref);
	if (work->landing.tip[0] && !work->is_ref_gone)
		(void)!hf_git(&git, NULL, "update-ref", "-d", ref, NULL);
	if (work->landing.plan[0] && !work->keeps_plan && !work->landing.unlanded.n && !work->landing.keep_plan)
		hf_land_remove_plan(work->landings, work->landing.plan);
	hf_land_remove_made(work->landings, &work->landing);
}

/* -- the whole ------------------------------------------------------------------------------- */

static int read_head(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_git git = { .dir = work->landing.common };
	char word[HF_SHELL_WORD_MAX];
	int r = hf_git_commit_of(&git, work->landing.common, work->landing.branch, work->landing.base, work->head, err);

	if (r <= 0)
		return r;
	r = hf_landing_become(work->landings, &work->landing, HF_LAND_CONFLICT, err, "the branch '%.100s' no longer exists; 'holdfast land --branch BRANCH %s' lands it on another",
			      hf_land_short(work->landing.branch), hf_shell_word(work->landing.name, word));
	return r < 0 ? r : 1;
}

static int ask_alive(struct hf_land_work *work, struct hf_err *err)
{
	int r = work->opts->alive ? work->opts->alive(work->opts->arg) : 0;

	return r < 0 ? FAIL(err, r, "land", work->landing.name, "its session was asked to end") : 0;
}

/* The candidate as it will land, on top of work->head: by its forecast, which counts once, or here. */
static int verify(struct hf_land_work *work, struct hf_forecast *forecast, struct hf_err *err)
{
	int r = hf_forecast_take(forecast, err);

	if (r == 0)
		return hf_land_verify(work, err);
	return r < 0 ? r : r - 1;
}

/* Under the branch's lock. 1: at its end. */
static int land_on_branch(struct hf_land_work *work, struct hf_forecast *forecast, struct hf_err *err)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		int r = ask_alive(work, err);

		if (r == 0)
			r = read_head(work, err);
		if (r == 0)
			r = verify(work, forecast, err);
		if (r == 0)
			r = ask_alive(work, err);
		if (r == 0)
			r = hf_land_swap(work, err);
		if (r == 0)
			r = hf_land_prove(work, err);
		if (r != 0 && r != -EAGAIN)
			return r;
		/* The branch moved between the two, or a user's git was in the way: once more, onto what it is now. */
		hf_pause(20 * HF_MSEC);
	}
	return FAIL(err, HF_E_BUSY, "land", work->landing.name, "the branch moved %d times in the meantime", ROUNDS_MAX);
}

/* Collects the work from the agent's sandbox. Without a sandbox, the kept ref has it. */
static int collect(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	char word[HF_SHELL_WORD_MAX];
	struct found found = { 0 };
	struct hf_err why = HF_ERR_INIT;
	int r = landing->plan[0] ? look_at_plan(work->landings, landing->plan, &found, &why) : HF_E_NO_PLAN;

	if (r == HF_E_NO_PLAN && landing->tip[0])
		return 0;
	if (r == HF_E_NO_PLAN)
		return FAIL(err, HF_E_NO_PLAN, "plan", landing->plan, "the sandbox was removed, and nothing of it is kept; 'holdfast land drop %s' drops it",
			    hf_shell_word(landing->name, word));
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	return hf_land_collect(work, err);
}

static int land(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	AUTO(hf_forecast_done) struct hf_forecast forecast = HF_FORECAST_INIT;
	char lock_name[HF_NAME_MAX + 1];
	int r;

	hf_land_branch_lock_name(&work->landing, lock_name);
	if (work->landing.state == HF_LAND_LANDING) {
		r = hf_land_lock(work->landings, lock_name, work->opts, &lock, err);
		if (r == 0)
			r = read_head(work, err);
		if (r == 0)
			r = hf_land_resume(work, err);
		if (r != 0)
			return r;
		return land_on_branch(work, &forecast, err);
	}
	r = collect(work, err);
	if (r != 0)
		return r;
	work->landing.forecast[0] = '\0';
	r = hf_landing_become(work->landings, &work->landing, HF_LAND_QUEUED, err, "%u commit%s for %.200s", work->landing.commits,
			      work->landing.commits == 1 ? "" : "s", hf_land_short(work->landing.branch));
	if (r == 0 && work->opts->step)
		work->opts->step(work->opts->arg, HF_LAND_QUEUED, work->landing.text);
	hf_forecast_begin(&forecast, work);
	if (r == 0)
		r = hf_land_lock_branch(work->landings, lock_name, work->opts, forecast.result ? &forecast : NULL, &lock, err);
	return r < 0 ? r : land_on_branch(work, &forecast, err);
}

/* What its run was not allowed, its verifier is not allowed later either. */
static int land_confined(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_plans *plans = work->landings->plans;
	const struct hf_confine *given = plans->confine;
	struct hf_confine confine = { .flags = (unsigned)work->landing.confine, .write = work->landing.write };
	int r;

	if (!given && confine.flags)
		hf_plans_confine(plans, &confine);
	r = land(work, err);
	plans->confine = given;
	return r;
}

int hf_land_seal(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts, struct hf_land_report *ret_report,
		 struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, .opts = opts, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1];
	struct found found = { 0 };
	int r;

	*ret_report = (struct hf_land_report){ .verify_ns = -1 };
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r == 0)
		r = open_record(&work, name, err);
	if (r == 0)
		r = look_at_plan(landings, work.landing.plan, &found, err);
	if (r == 0)
		r = hf_land_seal_work(&work, err);
	if (r == 0)
		r = hf_landing_save(landings, &work.landing, err);
	if (r < 0)
		return hf_err_wrap(err, r, "candidate", name);
	hf_land_tell_end(&work);
	return hf_land_fill_report(&work, ret_report, err);
}

int hf_land_nothing(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts, struct hf_land_report *ret_report,
		    struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, .opts = opts, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1], now[HF_LAND_OID_MAX];
	int r;

	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r == 0)
		r = open_record(&work, name, err);
	if (r < 0)
		return r;
	if (work.landing.state != HF_LAND_WORKING || work.landing.sealed[0] ||
	    hf_git_read_ref(work.landing.common, work.landing.branch, now) != 0 || strcmp(now, work.landing.base) != 0)
		return 0;
	hf_copy_text(work.landing.commit, sizeof(work.landing.commit), work.landing.base);
	if (hf_landing_set_list(&work.landing.unmatched, (const char *const *)work.landing.also) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	r = hf_land_prove(&work, err);
	if (r != 1)
		return r;
	r = hf_land_fill_report(&work, ret_report, err);
	return r < 0 ? r : 1;
}

/* It ended before the branch was touched: it is in the queue as before, and says why no process works on it. */
static void put_back(struct hf_land_work *work, const struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;

	if (landing->state != HF_LAND_REBASING && landing->state != HF_LAND_VERIFYING)
		return;
	if (err && err->code != HF_E_CANCELLED && err->detail[0])
		(void)!hf_landing_become(work->landings, landing, HF_LAND_QUEUED, NULL, "not landed: %.200s", err->detail);
	else
		(void)!hf_landing_become(work->landings, landing, HF_LAND_QUEUED, NULL, "%s", HF_LAND_INTERRUPTED);
}

int hf_land(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts,
	    struct hf_land_report *ret_report, struct hf_err *err)
{
	static const struct hf_land_opts none = { .size = sizeof(none), .wait_ns = -1 };
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, .opts = opts ? opts : &none, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1], key[HF_NAME_KEY_MAX];
	int r;

	if (!landings || !name || !ret_report || work.opts->size != sizeof(*opts))
		return FAIL(err, -EINVAL, "arguments", "hf_land", "landings, a name, a report and a valid size are needed");
	*ret_report = (struct hf_land_report){ .verify_ns = -1 };
	r = hf_name_key(name, strlen(name), key, err);
	if (r >= 0)
		r = hf_git_version(landings->dirfd, err);
	/* First finish or undo an interrupted landing on the old branch. */
	if (r == 0 && work.opts->branch)
		r = hf_land_recover(landings, name, err);
	if (r < 0)
		return r;
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r == 0)
		r = open_record(&work, name, err);
	if (r == 0) {
		r = land_confined(&work, err);
		if (r < 0)
			put_back(&work, err);
	}
	if (r >= 0 && work.landing.state == HF_LAND_LANDED) {
		hf_land_clean(&work);
		hf_land_settle_kept(&work);
	}
	if (work.landing.common)
		hf_land_give(&work.landing);
	if (r < 0)
		return hf_err_wrap(err, r, "candidate", name);
	hf_land_tell_end(&work);
	return hf_land_fill_report(&work, ret_report, err);
}
