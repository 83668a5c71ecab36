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
#include "hf/tx/land/git/git.h"

void hf_checkout_done(struct hf_checkout *checkout)
{
	if (checkout->plan[0] && !checkout->keep)
		hf_land_remove_plan(checkout->work->landings, checkout->plan);
	for (size_t i = 0; i < checkout->n_ignore; i++)
		free(checkout->ignore[i]);
	free(checkout->ignore);
	free(checkout->top);
	free(checkout->git_dir);
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

static int has_branch(const char *top, const char *branch, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = top, .out = &out };
	int r = hf_git(&git, err, "symbolic-ref", "--quiet", "HEAD", NULL);

	out.s[strcspn(out.s, "\n")] = '\0';
	return r < 0 ? r : r == 0 && strcmp(out.s, branch) == 0;
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

static int find_git_dir(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = checkout->top, .out = &out };
	int r = hf_git(&git, err, "rev-parse", "--absolute-git-dir", NULL);

	if (r < 0)
		return r;
	out.s[strcspn(out.s, "\n")] = '\0';
	checkout->git_dir = r == 0 ? strdup(out.s) : NULL;
	return checkout->git_dir ? 0 : FAIL(err, HF_E_LAND, "git", checkout->top, "its git directory cannot be found");
}

int hf_checkout_find(struct hf_land_work *work, struct hf_checkout *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common, .out = &out };
	int r;

	ret->work = work;
	if (is_rebasing_anywhere(landing))
		return become_conflict(work, err, "the branch is being rebased in a work tree; end that first");
	r = has_branch(landing->top, landing->branch, err);
	if (r < 0)
		return r;
	if (r) {
		ret->top = strdup(landing->top);
	} else {
		r = hf_git(&git, err, "worktree", "list", "--porcelain", "-z", NULL);
		if (r != 0)
			return r < 0 ? r : FAIL(err, HF_E_LAND, "git", landing->common, "git worktree list failed");
		ret->top = find_in_list(&out, landing->branch);
	}
	return ret->top ? find_git_dir(ret, err) : 0;
}

/* -- what the user has changed there ------------------------------------------------------- */

static struct hf_git inside(const struct hf_checkout *checkout, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = checkout->work->landings->plans, .plan = checkout->plan, .dir = checkout->top,
				.out = out, .said = said };
}

static int is_listed(const struct hf_buf *list, const char *path)
{
	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1)
		if (strcmp(at, path) == 0)
			return 1;
	return 0;
}

static int exists(const struct hf_checkout *checkout, const char *path)
{
	AUTO_FREE char *full = NULL;
	struct stat st;

	return asprintf(&full, "%s/%s", checkout->top, path) >= 0 &&
	       hf_sys.fstatat(AT_FDCWD, full, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A file that the user has just as it will be: git learns that, and leaves it. 1: so it is. */
static int take_as_it_is(struct hf_checkout *checkout, const char *path, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *rev = NULL;
	struct hf_git git = inside(checkout, &out, NULL);
	char wanted[HF_LAND_OID_MAX];
	int r;

	if (asprintf(&rev, "%s:%s", checkout->work->landing.commit, path) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	r = hf_git_oid(&git, rev, wanted, err);
	if (r == 0)
		r = hf_git(&git, err, "hash-object", "--", path, NULL);
	if (r != 0)
		return r < 0 ? r : 0;
	out.s[strcspn(out.s, "\n")] = '\0';
	if (strcmp(out.s, wanted) != 0)
		return 0;
	r = hf_git(&git, err, "update-index", "--add", "--", path, NULL);
	return r < 0 ? r : r == 0;
}

struct lists {
	struct hf_buf changed; /* paths of which the landing changes the content */
	struct hf_buf added;   /* those of them that it adds */
	struct hf_buf edited;  /* paths that differ from the old commit in the work tree or the index */
	struct hf_buf staged;  /* those that do in the index */
};

static void lists_done(struct lists *lists)
{
	hf_buf_done(&lists->changed);
	hf_buf_done(&lists->added);
	hf_buf_done(&lists->edited);
	hf_buf_done(&lists->staged);
}

static int fill_lists(struct hf_checkout *checkout, struct lists *lists, struct hf_err *err)
{
	const struct hf_land_work *work = checkout->work;
	struct hf_git outside = { .dir = work->landing.common, .out = &lists->changed };
	struct hf_git git = inside(checkout, &lists->edited, NULL);
	int r = hf_git(&outside, err, "diff-tree", "-r", "-z", "--no-renames", "--name-only", work->head,
		       work->landing.commit, NULL);

	outside.out = &lists->added;
	if (r == 0)
		r = hf_git(&outside, err, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A",
			   work->head, work->landing.commit, NULL);
	if (r == 0)
		r = hf_git(&git, err, "diff-index", "-z", "--no-renames", "--name-only", "--ignore-submodules=all", work->head, "--", NULL);
	git.out = &lists->staged;
	if (r == 0)
		r = hf_git(&git, err, "diff-index", "--cached", "-z", "--no-renames", "--name-only", "--ignore-submodules=all",
			   work->head, "--", NULL);
	return r > 0 ? FAIL(err, HF_E_LAND, "git", checkout->top, "git diff-index failed") : r;
}

/* Notes each path that the landing changes and the user has changed, too. */
static int find_edits(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(lists_done) struct lists lists = { HF_BUF_INIT, HF_BUF_INIT, HF_BUF_INIT, HF_BUF_INIT };
	struct hf_landing *landing = &checkout->work->landing;
	int r = fill_lists(checkout, &lists, err);

	for (const char *at = lists.changed.s; r >= 0 && at < lists.changed.s + lists.changed.len; at += strlen(at) + 1) {
		if (!is_listed(&lists.edited, at) && !(is_listed(&lists.added, at) && exists(checkout, at)))
			continue;
		r = is_listed(&lists.staged, at) ? 0 : take_as_it_is(checkout, at, err);
		if (r == 0 && hf_land_paths_add(&landing->paths, at, strlen(at), "dirty") < 0)
			r = hf_fail_sys(err, ENOMEM, "memory", at);
	}
	return r < 0 ? r : 0;
}

/* -- the plan ------------------------------------------------------------------------------- */

struct allowed {
	struct hf_checkout *checkout;
	const struct hf_land_place *place;
};

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
	struct allowed *allowed = arg;
	struct hf_checkout *checkout = allowed->checkout;
	AUTO_FREE char *full = NULL;
	AUTO_FREE char *index = NULL;
	const char *target = target_of(allowed->place, change->sandbox);
	char **grown;

	if (!target)
		return -EINVAL;
	if (asprintf(&full, "%s/%s", target, change->path) < 0 ||
	    asprintf(&index, "%s/index", checkout->git_dir) < 0)
		return -ENOMEM;
	if (!hf_path_is_in(full, checkout->work->landing.common) || strcmp(full, index) == 0 ||
	    strcmp(full, checkout->work->landing.common) == 0 || hf_path_is_in(checkout->git_dir, full))
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

	return asprintf(&path, "%s/index.lock", checkout->git_dir) >= 0 &&
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

static int change_files(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_work *work = checkout->work;
	struct hf_git git = inside(checkout, NULL, &said);
	char text[240];
	int r = hf_git(&git, err, "update-index", "-q", "--refresh", NULL);

	/* 1: some files differ, which the lists tell. */
	if (r > 1)
		return is_locked(checkout) ? HF_E_BUSY : hf_git_failed(&said, checkout->top, "update-index", err);
	hf_land_paths_done(&work->landing.paths);
	if (r >= 0)
		r = find_edits(checkout, err);
	if (r < 0)
		return r;
	if (work->landing.paths.n)
		return tell_edits(checkout, err);
	r = hf_git(&git, err, "read-tree", "-m", "-u", work->head, work->landing.commit, NULL);
	if (r <= 0)
		return r;
	(void)snprintf(text, sizeof(text), "the work tree that has the branch checked out cannot follow: %.160s", said.s);
	return become_conflict(work, err, text);
}

int hf_checkout_prepare(struct hf_land_work *work, struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(hf_land_place_done) struct hf_land_place place = { 0 };
	struct hf_plan_diff_opts all = { .size = sizeof(all) };
	struct allowed allowed = { checkout, &place };
	int r;

	if (is_locked(checkout))
		return HF_E_BUSY;
	r = hf_land_find(checkout->top, work->landing.branch, &place, err);
	if (r <= 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", checkout->top, "it is no longer a work tree");
	hf_land_plan_name(work->landing.name, 'c', checkout->plan);
	r = hf_land_new_plan(work->landings, checkout->plan, &place, err);
	if (r == 0)
		r = change_files(checkout, err);
	if (r == 0)
		r = hf_plan_diff(work->landings->plans, checkout->plan, &all, note_change, &allowed, err);
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

void hf_checkout_refresh(const struct hf_checkout *checkout)
{
	struct hf_git git = { .dir = checkout->top };

	(void)!hf_git(&git, NULL, "update-index", "-q", "--refresh", NULL);
}
