/*
 * tx/land/move/verify.c - the candidate as it will land: on top of the branch, in a sandbox of its own, verified.
 *
 * What lands is taken out of the sandbox before the verifier runs: what that writes is thrown away with the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/move/onto.h"
#include "hf/tx/land/move/view.h"
#include "holdfast/exit.h"

/* What became of the branch since the agent began. */
enum moved {
	FORWARD,   /* the tip has all of it: the branch moves forward to the tip as it is, and signatures hold */
	ONWARD,    /* it has commits that the tip does not have */
	REWRITTEN, /* it lost what the agent began with: only the agent's own commits are put onto it */
	UNSIGNED,  /* as FORWARD, but unsigned commits must be signed, so all are made again */
};

struct site {
	struct hf_land_work *work;
	char plan[HF_NAME_MAX + 1];
	struct hf_view view;
};

static void site_done(struct site *site)
{
	hf_view_done(&site->view);
	if (site->plan[0])
		hf_land_remove_plan(site->work->landings, site->plan);
}

static struct hf_git inside(const struct site *site, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = site->work->landings->plans, .plan = site->plan,
				.dir = site->work->landing.top, .out = out, .said = said };
}

/* What a user's git has under way in the work tree is not under way here. */
static int remove_traces(const struct site *site, struct hf_err *err)
{
	static const char *const names[] = { "index.lock", "HEAD.lock", "rebase-merge", "rebase-apply", "sequencer",
					     "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE" };
	enum { N = sizeof(names) / sizeof(names[0]) };
	struct hf_git git = inside(site, NULL, NULL);
	const char *argv[N + 4] = { "rm", "-rf", "--" };
	char *paths[N] = { NULL };
	int any = 0, r = 0;

	for (size_t i = 0; r == 0 && i < N; i++) {
		struct stat st;

		if (asprintf(&paths[i], "%s/%s", site->work->landing.git_dir, names[i]) < 0) {
			paths[i] = NULL;
			r = hf_fail_sys(err, ENOMEM, "memory", "rm");
		}
		argv[3 + i] = paths[i];
		/* The sandbox is new: what is there is there outside, too. One that comes later makes git fail, and all is tried again. */
		any |= r == 0 && hf_sys.fstatat(AT_FDCWD, paths[i], &st, AT_SYMLINK_NOFOLLOW) == 0;
	}
	if (r == 0 && any)
		r = hf_git_other(&git, argv, err);
	for (size_t i = 0; i < N; i++)
		free(paths[i]);
	return r < 0 ? r : 0;
}

static int check_out(const struct site *site, const char *oid, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(site, NULL, &said);
	int r = remove_traces(site, err);

	if (r == 0)
		r = hf_view_unmark(&site->view, err);
	if (r == 0)
		r = hf_git(&git, err, "checkout", "--quiet", "--force", "--detach", oid, NULL);
	if (r > 0 && site->work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	return r > 0 ? hf_git_failed(&said, site->work->landing.top, "checkout", err) : r;
}

/* CONFLICT, with the paths that git could not merge, or with what git said. */
static int conflict(const struct site *site, const struct hf_buf *said, struct hf_err *err)
{
	struct hf_landing *landing = &site->work->landing;
	int r;

	if (!landing->paths.n && site->work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	if (landing->paths.n)
		r = hf_landing_become(site->work->landings, landing, HF_LAND_CONFLICT, err,
				      "the branch has changed: %zu path%s in conflict, the first: %.100s",
				      landing->paths.n, landing->paths.n == 1 ? "" : "s", landing->paths.list[0].path);
	else
		r = hf_landing_become(site->work->landings, landing, HF_LAND_CONFLICT, err,
				      "it cannot be applied to the present branch: %.150s", said->len ? said->s : "git refused it");
	return r < 0 ? r : 1;
}

static int identity(const struct site *site, const char *const **ret, struct hf_err *err)
{
	static const char *const nobody[] = { "GIT_COMMITTER_NAME=Holdfast", "GIT_COMMITTER_EMAIL=holdfast@localhost",
					      "GIT_AUTHOR_NAME=Holdfast", "GIT_AUTHOR_EMAIL=holdfast@localhost", NULL };
	struct hf_git git = inside(site, NULL, NULL);
	int r = hf_git(&git, err, "var", "GIT_COMMITTER_IDENT", NULL);

	*ret = r == 0 ? NULL : nobody;
	return r < 0 ? r : 0;
}

static int refuse_unsigned(struct hf_land_work *work, const struct hf_buf *said, struct hf_err *err)
{
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_REJECTED, err, "its commits cannot be signed: %.150s",
				  said->len ? said->s : "git failed without a message");

	return r < 0 ? r : 1;
}

/* Onto the branch as it is now. */
static int put_on_top(struct site *site, enum moved moved, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_work *work = site->work;
	struct hf_landing *landing = &work->landing;
	struct hf_onto onto = { .work = work, .plan = site->plan, .since = moved == REWRITTEN ? landing->base : work->head,
				.is_merge = landing->merge == HF_LAND_MERGE && moved != UNSIGNED };
	enum hf_land_sign sign;
	int r = hf_land_ask_sign(landing, &sign, err);

	if (r < 0)
		return r;
	if (landing->merge == HF_LAND_FF_ONLY && moved != UNSIGNED) {
		r = hf_landing_become(work->landings, landing, HF_LAND_CONFLICT, err,
				      "the branch has moved, and only a fast-forward is allowed");
		return r < 0 ? r : 1;
	}
	if (landing->merge == HF_LAND_MERGE && moved == REWRITTEN) {
		r = hf_landing_become(work->landings, landing, HF_LAND_CONFLICT, err,
				      "the branch no longer has %.12s, where it started: a merge would bring that back, a rebase would not",
				      landing->base);
		return r < 0 ? r : 1;
	}
	r = hf_landing_become(work->landings, landing, HF_LAND_REBASING, err, "onto %.12s", work->head);
	if (r == 0 && work->opts->step)
		work->opts->step(work->opts->arg, HF_LAND_REBASING, landing->text);
	if (r == 0)
		r = identity(site, &onto.env, err);
	if (r == 0)
		r = remove_traces(site, err);
	if (r == 0)
		r = hf_view_unmark(&site->view, err);
	if (r < 0)
		return r;
	onto.sign = sign != HF_LAND_SIGN_NONE;
	r = hf_land_put_onto(&onto, landing->commit, &said, err);
	if (r == HF_ONTO_UNSIGNED && sign == HF_LAND_SIGN_ALL)
		return refuse_unsigned(work, &said, err);
	if (r == HF_ONTO_UNSIGNED) {
		landing->is_unsigned = 1;
		onto.sign = 0;
		r = hf_land_put_onto(&onto, landing->commit, &said, err);
	}
	landing->is_signed = r == HF_ONTO_DONE && onto.sign;
	landing->rebased = landing->merge == HF_LAND_REBASE && moved != UNSIGNED;
	return r > 0 ? conflict(site, &said, err) : r;
}

/* What the agent did not change must be as it is on the branch; else another's uncommitted work would land with it. */
static int check_outside(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct hf_land_change change;
	const char *at = NULL;
	int r;

	if (!landing->outside.n)
		return 0;
	r = hf_land_changes(work, work->head, landing->commit, NULL, err);
	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", landing->common, "git diff-tree failed");
	while (hf_land_next_change(work, &at, &change))
		for (size_t i = 0; i < landing->outside.n; i++)
			if (strcmp(landing->outside.list[i].path, change.path) == 0 &&
			    hf_land_paths_add(&landing->paths, change.path, strlen(change.path), "outside") < 0)
				return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	if (!landing->paths.n)
		return 0;
	r = hf_landing_become(work->landings, landing, HF_LAND_CONFLICT, err,
			      "it commits %zu path%s that another process changed in the work tree, the first: %.90s",
			      landing->paths.n, landing->paths.n == 1 ? "" : "s", landing->paths.list[0].path);
	return r < 0 ? r : 1;
}

static int judge(struct hf_land_work *work, int status, struct hf_err *err)
{
	char text[64];
	int r;

	if (status == 0)
		return 0;
	if (status == HF_GIT_TIMED_OUT)
		(void)snprintf(text, sizeof(text), "verify did not end in time");
	else if (status > HF_EXIT_SIGNAL)
		(void)snprintf(text, sizeof(text), "verify failed: killed by signal %d", status - HF_EXIT_SIGNAL);
	else if (status == HF_EXIT_NO_FILE || status == HF_EXIT_NO_EXEC)
		(void)snprintf(text, sizeof(text), "verify could not be run: exit %d", status);
	else
		(void)snprintf(text, sizeof(text), "verify failed: exit %d", status);
	r = hf_landing_become(work->landings, &work->landing, HF_LAND_REJECTED, err, "%s (on top of %.12s)", text, work->head);
	return r < 0 ? r : 1;
}

static int run_verifier(struct site *site, struct hf_err *err)
{
	struct hf_land_work *work = site->work;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(site, NULL, NULL);
	struct hf_mono begun;
	int r = check_out(site, landing->commit, err);

	if (r == 0)
		r = hf_view_hide(&site->view, err);
	if (r != 0)
		return r;
	r = hf_landing_become(work->landings, landing, HF_LAND_VERIFYING, err, "%.12s on top of %.12s", landing->commit,
				  work->head);

	if (r < 0)
		return r;
	if (work->opts->step)
		work->opts->step(work->opts->arg, HF_LAND_VERIFYING, landing->text);
	git.out_fd = work->opts->out_fd;
	git.limit_ns = landing->verify_limit_ns;
	git.as_user = 1;
	git.env = (const char *const *)(work->landings->envp ? work->landings->envp : landing->env);
	begun = hf_mono_now();
	/* Where the session's own verifier ran. A directory that is not there any more is a no. */
	if (landing->dir[0] && strcmp(landing->dir, landing->top) != 0)
		r = hf_git_other(&git, (const char *const[]){ "sh", "-c", "cd -- \"$1\" && exec sh -c \"$2\"", "sh", landing->dir, landing->verify, NULL }, err);
	else
		r = hf_git_other(&git, (const char *const[]){ "sh", "-c", landing->verify, NULL }, err);
	landing->verify_ns = hf_mono_now().ns - begun.ns;
	if (r >= 0) {
		int seen = hf_view_check(&site->view, landing->commit, err);

		if (seen < 0)
			return seen;
	}
	return r < 0 ? r : judge(work, r, err);
}

static int prepare(struct site *site, enum moved moved, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_work *work = site->work;
	struct hf_landing *landing = &work->landing;
	struct hf_land_came came = { 0 };
	int r;

	if (moved == FORWARD) {
		hf_copy_text(landing->commit, sizeof(landing->commit), landing->tip);
		return 0;
	}
	r = put_on_top(site, moved, err);
	if (r != 0)
		return r;
	r = hf_land_export(work, site->plan, work->head, landing->commit, &came, &said, err);
	/* Fewer than before, when a merge was made straight or a change was there already. */
	if (r == 0 && came.is_known)
		landing->commits = came.commits;
	return r > 0 ? hf_git_failed(&said, landing->top, "index-pack", err) : r;
}

/* Is `commit` an ancestor of `of`? 1, 0 or an error. */
static int is_ancestor(const struct hf_land_work *work, const char *commit, const char *of, struct hf_err *err)
{
	struct hf_git git = { .dir = work->landing.common };
	int r = strcmp(commit, of) == 0 ? 0 : hf_git(&git, err, "merge-base", "--is-ancestor", commit, of, NULL);

	return r < 0 ? r : r == 0;
}

static int compare(const struct hf_land_work *work, enum moved *ret, struct hf_err *err)
{
	const struct hf_landing *landing = &work->landing;
	int has_base = is_ancestor(work, landing->base, work->head, err);
	/* The tip has all of its base. */
	int has_head = has_base <= 0 || strcmp(landing->base, work->head) == 0 ? has_base : is_ancestor(work, work->head, landing->tip, err);

	*ret = has_base == 0 ? REWRITTEN : !has_head ? ONWARD : landing->sign && hf_land_count_signed(landing) < landing->commits ? UNSIGNED : FORWARD;
	return has_base < 0 ? has_base : has_head < 0 ? has_head : 0;
}

/* Returns 1 if the run has verified this very commit in the agent's sandbox, and no file of the user was visible there, 0 or an error. */
static int was_verified(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_view_done) struct hf_view view = HF_VIEW_INIT(work, work->landing.plan);
	const struct hf_landing *landing = &work->landing;
	int r;

	if (!(work->opts->flags & HF_LAND_VERIFIED) || !landing->is_exact || strcmp(landing->sealed, landing->tip) != 0)
		return 0;
	r = hf_view_check(&view, landing->tip, err);
	return r == -EAGAIN ? 0 : r < 0 ? r : 1;
}

int hf_land_verify(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_land_place_done) struct hf_land_place place = { 0 };
	AUTO(site_done) struct site site = { .work = work };
	struct hf_landing *landing = &work->landing;
	enum moved moved;
	int r;

	hf_land_paths_done(&landing->paths);
	landing->rebased = 0;
	r = compare(work, &moved, err);
	if (r < 0)
		return r;
	if (moved == FORWARD)
		r = landing->verify[0] ? was_verified(work, err) : 1;
	if (r < 0)
		return r;
	if (r == 1) {
		hf_copy_text(landing->commit, sizeof(landing->commit), landing->tip);
		return check_outside(work, err);
	}
	r = hf_land_place_again(landing->top, landing->git_dir, landing->common, &place, err);
	if (r < 0)
		return r;
	hf_land_plan_name(landing->name, landing->forecasted ? HF_LAND_PLAN_FORECAST : 'v', site.plan);
	site.view = (struct hf_view)HF_VIEW_INIT(work, site.plan);
	r = hf_land_new_plan(work->landings, site.plan, &place, err);
	if (r == 0)
		r = prepare(&site, moved, err);
	if (r == 0)
		r = check_outside(work, err);
	if (r == 0 && landing->verify[0] && strcmp(landing->commit, work->head) != 0)
		r = run_verifier(&site, err);
	return r;
}
