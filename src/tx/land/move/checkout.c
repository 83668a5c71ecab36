/*
 * tx/land/move/checkout.c - the work tree that has the branch checked out, as it will be.
 *
 * git itself changes it, inside a sandbox (read-tree -m -u, which keeps what its user has changed and refuses what
 * it would overwrite); the commit of the plan then brings files and index over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/move/checkout.h"
#include "hf/tx/land/git/refs.h"

#define REFRESH_MAX 200 /* git looks for each of them in all of the index */

void hf_checkout_done(struct hf_checkout *checkout)
{
	if (checkout->plan[0] && !checkout->keep)
		hf_land_remove_plan(checkout->work->landings, checkout->plan);
	for (size_t i = 0; i < checkout->n_ignore; i++)
		free(checkout->ignore[i]);
	free(checkout->ignore);
	hf_land_place_done(&checkout->place);
}

static int become_conflict(struct hf_land_work *work, struct hf_err *err, const char *text)
{
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_CONFLICT, err, "%s", text);

	return r < 0 ? r : 1;
}

/* -- where ----------------------------------------------------------------------------- */

/* Does the git directory say that the branch is being rebased there? */
static int is_rebasing(int dirfd, const char *git_dir, const char *branch)
{
	static const char *const names[] = { "rebase-merge/head-name", "rebase-apply/head-name" };

	for (size_t i = 0; i < 2; i++) {
		char path[PATH_MAX], text[512];
		ssize_t n;

		if (snprintf(path, sizeof(path), "%s/%s", git_dir, names[i]) >= (int)sizeof(path))
			continue;
		n = hf_read_file(dirfd, path, text, sizeof(text) - 1);
		if (n <= 0)
			continue;
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(text, branch) == 0)
			return 1;
	}
	return 0;
}

static int is_rebasing_anywhere(const struct hf_landing *landing)
{
	AUTO_FREE char *all = NULL;
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (is_rebasing(AT_FDCWD, landing->common, landing->branch))
		return 1;
	if (asprintf(&all, "%s/worktrees", landing->common) < 0 || hf_open_dir(AT_FDCWD, all, &dir) < 0)
		return 0;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && is_rebasing(dirfd(dir), entry->d_name, landing->branch))
			return 1;
	return 0;
}

static int has_branch(const struct hf_landing *landing, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = landing->top, .out = &out };
	char ref[HF_GIT_REF_MAX];
	int r;

	if (hf_git_head_ref(landing->git_dir, ref) == 0)
		return strcmp(ref, landing->branch) == 0;
	r = hf_git(&git, err, "symbolic-ref", "--quiet", "HEAD", NULL);
	out.s[strcspn(out.s, "\n")] = '\0';
	return r < 0 ? r : r == 0 && strcmp(out.s, landing->branch) == 0;
}

/* Of "worktree PATH", "HEAD OID", "branch REF", each with a NUL, an empty one behind each work tree. */
static char *find_in_list(const struct hf_buf *list, const char *branch)
{
	const char *path = NULL;

	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1) {
		struct stat st;

		if (strncmp(at, "worktree ", 9) == 0)
			path = at + 9;
		if (path && strncmp(at, "branch ", 7) == 0 && strcmp(at + 7, branch) == 0 &&
		    hf_sys.fstatat(AT_FDCWD, path, &st, 0) == 0 && S_ISDIR(st.st_mode))
			return strdup(path);
	}
	return NULL;
}

int hf_checkout_find(struct hf_land_work *work, struct hf_checkout *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common, .out = &out };
	AUTO_FREE char *top = NULL;
	int r;

	ret->work = work;
	if (is_rebasing_anywhere(landing))
		return become_conflict(work, err, "the branch is being rebased in a work tree; end that first");
	r = has_branch(landing, err);
	if (r < 0)
		return r;
	if (r) {
		r = hf_land_place_again(landing->top, landing->git_dir, landing->common, &ret->place, err);
		ret->top = ret->place.top;
		return r;
	}
	r = hf_git(&git, err, "worktree", "list", "--porcelain", "-z", NULL);
	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", landing->common, "git worktree list failed");
	top = find_in_list(&out, landing->branch);
	r = top ? hf_land_find_dirs(top, 0, &ret->place, err) : 0;
	ret->top = ret->place.top;
	return r;
}

/* -- the plan ------------------------------------------------------------------------------- */

/* The target of a sandbox of the plan. */
static const char *target_of(const struct hf_land_place *place, const char *sandbox)
{
	for (size_t i = 0; i < place->n_targets; i++) {
		char name[HF_LAND_SANDBOX_MAX];

		hf_land_sandbox_name(place, i, name);
		if (strcmp(name, sandbox) == 0)
			return place->targets[i];
	}
	return NULL;
}

/* Of the git directory only the index; of the work tree what git wrote, which is all there is. */
static int note_change(void *arg, const struct hf_change *change)
{
	struct hf_checkout *checkout = arg;
	AUTO_FREE char *full = NULL;
	AUTO_FREE char *index = NULL;
	const char *target = target_of(&checkout->place, change->sandbox);
	char **grown;

	if (!target)
		return -EINVAL;
	if (asprintf(&full, "%s/%s", target, change->path) < 0 ||
	    asprintf(&index, "%s/index", checkout->place.git_dir) < 0)
		return -ENOMEM;
	if (!hf_path_is_in(full, checkout->work->landing.common) || strcmp(full, index) == 0 ||
	    strcmp(full, checkout->work->landing.common) == 0 || hf_path_is_in(checkout->place.git_dir, full))
		return 0;
	grown = reallocarray(checkout->ignore, checkout->n_ignore + 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	checkout->ignore = grown;
	if (asprintf(&grown[checkout->n_ignore], "/%s", change->path) < 0)
		return -ENOMEM;
	grown[++checkout->n_ignore] = NULL;
	return 0;
}

static int is_locked(const struct hf_checkout *checkout)
{
	AUTO_FREE char *path = NULL;
	struct stat st;

	return asprintf(&path, "%s/index.lock", checkout->place.git_dir) >= 0 &&
	       hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int tell_edits(struct hf_checkout *checkout, struct hf_err *err)
{
	struct hf_landing *landing = &checkout->work->landing;
	int r = hf_landing_become(checkout->work->landings, landing, HF_LAND_CONFLICT, err,
				  "%zu path%s with uncommitted edits in the work tree, the first: %.100s", landing->paths.n,
				  landing->paths.n == 1 ? "" : "s", landing->paths.list[0].path);

	return r < 0 ? r : 1;
}

/* Files and index as of the new commit. 0; 1 git refused; or an error. */
static int read_tree(struct hf_checkout *checkout, struct hf_buf *said, struct hf_err *err)
{
	const struct hf_land_work *work = checkout->work;
	struct hf_git git = hf_checkout_inside(checkout, NULL, said);
	int r = hf_git(&git, err, "read-tree", "-m", "-u", work->head, work->landing.commit, NULL);

	return r < 0 ? r : r != 0;
}

static int change_files(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_work *work = checkout->work;
	char text[240];
	int r = hf_land_changes(work, work->head, work->landing.commit, &said, err);

	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, checkout->top, "diff-tree", err);
	hf_land_paths_done(&work->landing.paths);
	/* git changes nothing when it refuses. Only then, or in doubt, all of the work tree is looked at. */
	r = hf_checkout_is_in_doubt(checkout) ? 1 : read_tree(checkout, &said, err);
	if (r <= 0)
		return r;
	r = hf_checkout_find_edits(checkout, err);
	if (r < 0)
		return is_locked(checkout) ? HF_E_BUSY : r;
	if (work->landing.paths.n)
		return tell_edits(checkout, err);
	r = read_tree(checkout, &said, err);
	if (r <= 0)
		return r;
	if (is_locked(checkout))
		return HF_E_BUSY;
	(void)snprintf(text, sizeof(text), "the work tree that has the branch checked out cannot follow: %.160s", said.s);
	return become_conflict(work, err, text);
}

int hf_checkout_prepare(struct hf_land_work *work, struct hf_checkout *checkout, struct hf_err *err)
{
	struct hf_plan_diff_opts all = { .size = sizeof(all) };
	int r;

	if (is_locked(checkout))
		return HF_E_BUSY;
	hf_land_plan_name(work->landing.name, 'c', checkout->plan);
	r = hf_land_new_plan(work->landings, checkout->plan, &checkout->place, err);
	if (r == 0)
		r = change_files(checkout, err);
	if (r == 0)
		r = hf_checkout_give(checkout, err);
	if (r == 0)
		r = hf_plan_diff(work->landings->plans, checkout->plan, &all, note_change, checkout, err);
	return r;
}

static void note_committed(void *arg, const struct hf_plan_info *info)
{
	*(int *)arg = info->state == HF_PLAN_COMMITTED || info->state == HF_PLAN_PREPARED;
}

int hf_checkout_is_committed(struct hf_land_work *work, const struct hf_checkout *checkout)
{
	int is = 0;

	return hf_plan_look(work->landings->plans, checkout->plan, note_committed, &is, NULL) == 0 && is;
}

/* Paths of the landing that are there now, each with a NUL. 0; 1: too many to be looked for one by one. */
static int list_landed(const struct hf_checkout *checkout, struct hf_buf *out)
{
	struct hf_land_change change;
	const char *at = NULL;
	int n = 0;

	while (hf_land_next_change(checkout->work, &at, &change))
		if (change.new_mode != 0) {
			hf_buf_add(out, change.path, strlen(change.path) + 1);
			n++;
		}
	return n > REFRESH_MAX || out->err;
}

void hf_checkout_refresh(const struct hf_checkout *checkout)
{
	static const char *const literal[] = { "GIT_LITERAL_PATHSPECS=1", NULL };
	AUTO(hf_buf_done) struct hf_buf paths = HF_BUF_INIT;
	struct hf_git git = { .dir = checkout->top, .env = literal };
	int r = list_landed(checkout, &paths);

	if (r == 0 && !paths.len)
		return;
	git.in = paths.s;
	git.in_len = paths.len;
	if (r == 0)
		r = hf_git(&git, NULL, "add", "--refresh", "--pathspec-from-file=-", "--pathspec-file-nul", NULL);
	git = (struct hf_git){ .dir = checkout->top };
	if (r != 0)
		(void)!hf_git(&git, NULL, "update-index", "-q", "--refresh", NULL);
}
