/* tx/land/take/left.c - what the agent left in its sandbox: its HEAD, and what it did not commit. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

void hf_left_done(struct hf_left *left)
{
	hf_buf_done(&left->paths);
	hf_buf_done(&left->gone);
	hf_buf_done(&left->worktrees);
	hf_buf_done(&left->index);
}

/* -- what has no holder ---------------------------------------------------------------- */

struct obstacles {
	const struct hf_touched *touched;
	const struct hf_landing *landing;
};

/*
 * In a child, inside. No process is left in the sandbox, so a lock there has no holder: a git that was killed made it, the agent's
 * or ours. Those of index, HEAD and its branch also when they are only seen through it: a user's git, whose lock is none in the sandbox. The same for
 * a merge or cherry-pick that a user has under way: a commit here would become part of it. What stays is told by the git that it stops.
 */
static int remove_obstacles(void *arg)
{
	static const char *const names[] = { "index.lock", "HEAD.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD" };
	const struct obstacles *obstacles = arg;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s", obstacles->landing->git_dir, names[i]) < (int)sizeof(path))
			(void)unlink(path);
	if (snprintf(path, sizeof(path), "%s/%s.lock", obstacles->landing->common, obstacles->landing->branch) < (int)sizeof(path))
		(void)unlink(path);
	for (size_t i = 0; i < obstacles->touched->n_locks; i++)
		(void)unlink(obstacles->touched->locks[i]);
	return 0;
}

int hf_left_unlock(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	struct obstacles obstacles = { touched, &work->landing };
	struct hf_git git = { .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top,
			      .before = remove_obstacles, .before_arg = &obstacles };

	return hf_git_act(&git, "remove locks in", err);
}

/* -- linked worktrees ------------------------------------------------------------------- */

int hf_worktree_next(const struct hf_land_work *work, const struct hf_buf *list, const char **at, struct hf_worktree *ret)
{
	const char *top = work->landing.top, *line = *at ? *at : list->s;
	size_t len = strlen(top);
	int is_found = 0;

	*ret = (struct hf_worktree){ .path = "" };
	for (; line < list->s + list->len; line += strlen(line) + 1) {
		if (!*line && is_found)
			break;
		if (strncmp(line, "worktree ", 9) == 0) {
			int is_below = strncmp(line + 9, top, len) == 0 && line[9 + len] == '/';
			const char *path = is_below ? line + 10 + len : line + 9;

			is_found = strcmp(path, top) != 0 && strlen(path) < sizeof(ret->path);
			hf_copy_text(ret->path, sizeof(ret->path), is_found ? path : "");
			ret->head[0] = ret->branch[0] = '\0';
		}
		if (strncmp(line, "HEAD ", 5) == 0)
			hf_copy_text(ret->head, sizeof(ret->head), line + 5);
		if (strncmp(line, "branch ", 7) == 0)
			hf_copy_text(ret->branch, sizeof(ret->branch), hf_land_short(line + 7));
	}
	*at = line;
	return is_found;
}

static int is_worktree(const struct hf_land_work *work, const struct hf_left *left, const char *path)
{
	struct hf_worktree worktree;
	const char *at = NULL;

	while (hf_worktree_next(work, &left->worktrees, &at, &worktree))
		if (strcmp(worktree.path, path) == 0)
			return 1;
	return 0;
}

/* 0, or an error. */
static int read_worktrees(const struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *left, struct hf_err *err)
{
	struct hf_git git = { .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .out = &left->worktrees };
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (!touched->has_worktrees && (snprintf(path, sizeof(path), "%s/worktrees", work->landing.common) >= (int)sizeof(path) ||
					hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0))
		return 0;
	r = hf_git(&git, err, "worktree", "list", "--porcelain", "-z", NULL);
	return r < 0 ? r : 0;
}

/* -- by one status --------------------------------------------------------------------- */

#define OID_IS "# branch.oid "

/* "1 XY SUB MODE MODE MODE OID OID PATH": behind the eighth space; "? PATH". */
const char *hf_status_path(const char *row)
{
	int spaces = strncmp(row, "1 ", 2) == 0 ? 8 : strncmp(row, "? ", 2) == 0 ? 1 : 0;

	if (spaces == 0)
		return NULL;
	for (int i = 0; i < spaces && row; i++) {
		row = strchr(row, ' ');
		row = row ? row + 1 : NULL;
	}
	return row;
}

static int add(struct hf_land_work *work, const struct hf_touched *touched, const char *path, int is_gone, struct hf_left *left,
	       struct hf_err *err)
{
	size_t len = strlen(path);
	/* So git lists a repository in the work tree that is no submodule. */
	int is_repository = len > 1 && path[len - 1] == '/';
	AUTO_FREE char *name = strndup(path, is_repository ? len - 1 : len);
	char text[200];

	if (!name)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	if (!hf_touched_has(touched, name) && !hf_touched_below(touched, name))
		return 0;
	/* Its commits and edits are found by elsewhere.c and unlanded.c. */
	if (is_repository && is_worktree(work, left, name))
		return 0;
	if (is_repository) {
		(void)snprintf(text, sizeof(text), "it made or changed another repository, %.100s, which a commit cannot contain", name);
		return hf_land_reject(work, err, text);
	}
	hf_buf_add(is_gone ? &left->gone : &left->paths, path, len + 1);
	return 0;
}

int hf_left_add(struct hf_land_work *work, const struct hf_touched *touched, const char *path, struct hf_left *left, struct hf_err *err)
{
	return add(work, touched, path, 0, left, err);
}

static int read_row(struct hf_land_work *work, const struct hf_touched *touched, const char *row, struct hf_left *left, struct hf_err *err)
{
	const char *path;
	char text[200];

	if (strncmp(row, OID_IS, strlen(OID_IS)) == 0 && hf_git_is_oid(row + strlen(OID_IS)))
		hf_copy_text(left->tip, sizeof(left->tip), row + strlen(OID_IS));
	if (strncmp(row, "u ", 2) == 0)
		return hf_land_reject(work, err, "it has unmerged paths");
	if (strncmp(row, "? ", 2) == 0)
		return hf_left_add(work, touched, row + 2, left, err);
	path = strncmp(row, "1 ", 2) == 0 && strlen(row) > 10 ? hf_status_path(row) : NULL;
	if (!path)
		return 0;
	left->is_staged |= row[2] != '.';
	/* "SCMU": a submodule with other commits, with edits, with new files. The second kind could not be committed. */
	if (row[5] == 'S' && row[7] == 'M' && hf_touched_below(touched, path)) {
		(void)snprintf(text, sizeof(text), "it changes files of the submodule %.100s", path);
		return hf_land_reject(work, err, text);
	}
	return row[3] != '.' ? add(work, touched, path, row[3] == 'D', left, err) : 0;
}

int hf_left_read(struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct obstacles obstacles = { touched, &work->landing };
	struct hf_git git = { .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .out = &out,
			      .said = &said, .before = remove_obstacles, .before_arg = &obstacles };
	int r = 0;

	if (touched->is_unfinished)
		return hf_land_reject(work, err, "a merge, rebase, cherry-pick or bisect is unfinished");
	ret->is_read = 1;
	hf_land_paths_done(&work->landing.unlanded);
	if (touched->n > 0) {
		git.out = &ret->index;
		r = hf_git(&git, err, "ls-files", "-s", "-v", "-z", NULL);
		if (r == 0)
			r = hf_left_unmark(work, touched, ret, &said, err);
		git.out = &out;
	}
	if (r == 0 && (touched->n > 0 || touched->has_worktrees))
		r = read_worktrees(work, touched, ret, err);
	if (r == 0)
		r = hf_git(&git, err, HF_GIT_COMPARES, "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames", "--untracked-files=all",
			   "--ignore-submodules=untracked", NULL);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "the agent left a repository that git cannot read", &said, err);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		r = read_row(work, touched, at, ret, err);
	hf_copy_text(ret->head, sizeof(ret->head), ret->tip);
	if (r == 0 && !ret->tip[0])
		r = hf_land_reject(work, err, "the agent left a repository without a commit");
	return r;
}
