/* tx/land/take/bump.c - a submodule at another commit. The commit must exist outside of the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

static int reject(struct hf_land_work *work, const char *path, const char *why, struct hf_err *err)
{
	char text[240];

	(void)snprintf(text, sizeof(text), "it changes the submodule %.80s, %s", path, why);
	return hf_land_reject(work, err, text);
}

/* Finds the submodule's real repository. Returns 1, 0 if the work tree has none, or an error. */
static int find_repository(const struct hf_landing *landing, const char *dir, struct hf_buf *ret, struct hf_err *err)
{
	struct hf_git git = { .dir = dir, .out = ret };
	int r = hf_git(&git, err, "rev-parse", "--path-format=absolute", "--git-common-dir", NULL);

	ret->s[strcspn(ret->s, "\n")] = '\0';
	/* In a directory that is not checked out, git finds the outer repository. */
	return r < 0 ? r : r == 0 && strcmp(ret->s, landing->common) != 0 && (hf_path_is_in(ret->s, landing->common) || hf_path_is_in(ret->s, landing->top));
}

/* Returns 1 if a remote branch in the sandbox has the commit, 0 or an error. */
static int is_published(const struct hf_land_work *work, const char *dir, const char *oid, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .plans = work->landings->plans, .plan = work->landing.plan, .dir = dir, .out = &out };
	int r = hf_git(&git, err, "rev-list", "-1", oid, "--not", "--remotes", NULL);

	return r < 0 ? r : r == 0 && out.len == 0;
}

int hf_land_take_bump(struct hf_land_work *work, const struct hf_land_change *change, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf common = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO_FREE char *dir = NULL;
	AUTO_FREE char *rev = NULL;
	struct hf_landing *landing = &work->landing;
	struct hf_land_work sub = { .landings = work->landings, .opts = work->opts, HF_LAND_WORK_INIT };
	struct hf_git git = { .dir = NULL };
	char tip[HF_LAND_OID_MAX];
	int r;

	if (asprintf(&dir, "%s/%s", landing->top, change->path) < 0 || asprintf(&rev, "%s^{commit}", change->new_oid) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", change->path);
	r = find_repository(landing, dir, &common, err);
	if (r <= 0)
		return r < 0 ? r : reject(work, change->path, "which the work tree has not checked out", err);
	git.dir = dir;
	r = hf_git(&git, err, "cat-file", "-e", rev, NULL);
	if (r <= 0)
		return r;
	r = is_published(work, dir, change->new_oid, err);
	if (r <= 0)
		return r < 0 ? r : reject(work, change->path, "and none of its remote branches has the new commit: a clone could not check it out", err);
	hf_copy_text(tip, sizeof(tip), change->new_oid);
	hf_copy_text(sub.landing.name, sizeof(sub.landing.name), landing->name);
	sub.landing.top = dir;
	sub.landing.git_dir = sub.landing.common = common.s;
	r = hf_land_export(&sub, landing->plan, change->old_oid, tip, NULL, &said, err);
	return r > 0 ? reject(work, change->path, said.len ? said.s : "whose new commit cannot be copied", err) : r;
}
