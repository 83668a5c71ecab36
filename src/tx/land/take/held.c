/*
 * tx/land/take/held.c - counts the files that an agent changed in its sandbox, and finds out whether it changed anything.
 *
 * A sandbox that begins at HEAD hides the user's uncommitted edits by files of its own. These are not the agent's work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

#define LIMIT_NS (5 * HF_SEC) /* a run that ends does not wait for a broken repository */

struct holding {
	struct hf_land_work work;
	struct hf_touched touched;
	struct hf_left left;
	char *is_changed; /* of each touched path */
	unsigned others;  /* changed paths below or above these */
	int is_work;
};

static void holding_done(struct holding *holding)
{
	free(holding->is_changed);
	hf_left_done(&holding->left);
	hf_touched_done(&holding->touched);
	hf_land_work_done(&holding->work);
}

static struct hf_git inside(const struct holding *holding, struct hf_buf *out)
{
	const struct hf_landing *landing = &holding->work.landing;

	return (struct hf_git){ .plans = holding->work.landings->plans, .plan = landing->plan, .dir = landing->top, .out = out, .limit_ns = LIMIT_NS };
}

static void note_changed(struct holding *holding, const char *path)
{
	const struct hf_touched_path *found = hf_touched_find(&holding->touched, path);

	if (found)
		holding->is_changed[found - holding->touched.paths] = 1;
	else
		holding->others++;
}

/* Compares the sandbox with its HEAD. */
static int read_status(struct holding *holding, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(holding, &out);
	int r = hf_git(&git, err, HF_GIT_COMPARES, "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames", "--untracked-files=all", NULL);

	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1) {
		const char *path = hf_status_path(at);

		if (strncmp(at, "# branch.oid ", 13) == 0)
			hf_copy_text(holding->left.tip, sizeof(holding->left.tip), at + 13);
		holding->is_work |= at[0] == 'u' || (at[0] == '1' && at[2] != '.');
		if (path && (hf_touched_has(&holding->touched, path) || hf_touched_below(&holding->touched, path)))
			note_changed(holding, path);
	}
	return r;
}

static int read_commits(struct holding *holding, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(holding, &out);
	int r;

	if (strcmp(holding->left.tip, holding->work.landing.base) == 0)
		return 0;
	holding->is_work = 1;
	r = hf_git(&git, err, "diff-tree", "-r", "-z", "--name-only", "--no-renames", holding->work.landing.base, "HEAD", NULL);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		note_changed(holding, at);
	return r;
}

/* Finds edits that git does not report, and files that it ignores. */
static int read_rest(struct holding *holding, struct hf_err *err)
{
	struct hf_touched *touched = &holding->touched;
	AUTO_FREE char *is_tracked = calloc(touched->n + 1, 1);
	struct hf_git git = inside(holding, &holding->left.index);
	struct hf_index_row row;
	const char *at = NULL;
	int r = is_tracked ? hf_git(&git, err, "ls-files", "-s", "-v", "-z", NULL) : hf_fail_sys(err, ENOMEM, "memory", git.dir);

	if (r != 0)
		return r;
	while (hf_index_next(&holding->left.index, &at, &row)) {
		const struct hf_touched_path *found = hf_touched_find(touched, row.path);

		if (found)
			is_tracked[found - touched->paths] = 1;
		holding->is_work |= row.tag != 'H' && hf_touched_has(touched, row.path);
	}
	for (size_t i = 0; i < touched->n; i++)
		holding->is_work |= touched->paths[i].new_mode != 0 && !S_ISDIR(touched->paths[i].new_mode) && !is_tracked[i];
	if (holding->is_work)
		return 0;
	holding->left.is_read = 1;
	r = hf_left_find_unlanded(&holding->work, touched, &holding->left, err);
	holding->is_work |= holding->work.landing.unlanded.n > 0;
	return r;
}

int hf_land_look_held(struct hf_landings *landings, const char *name, struct hf_land_held *ret, struct hf_err *err)
{
	AUTO(holding_done) struct holding holding = { .work = { .landings = landings, HF_LAND_WORK_INIT }, .left = HF_LEFT_INIT };
	struct hf_landing *landing = &holding.work.landing;
	int r = hf_landing_load(landings, name, landing, err);

	if (r == 0)
		r = hf_touched_read(landings, landing, landing->plan, &holding.touched, err);
	if (r < 0)
		return r;
	hf_land_paths_done(&landing->unlanded);
	holding.is_changed = calloc(holding.touched.n + 1, 1);
	if (!holding.is_changed)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	holding.is_work = holding.touched.is_unfinished;
	r = read_status(&holding, err);
	if (r == 0)
		r = read_commits(&holding, err);
	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", landing->top, "git cannot read the sandbox");
	*ret = (struct hf_land_held){ .files = holding.others };
	for (size_t i = 0; i < holding.touched.n; i++)
		ret->files += holding.is_changed[i] != 0;
	if (ret->files == 0 && !holding.is_work)
		r = read_rest(&holding, err);
	ret->is_nothing = r == 0 && ret->files == 0 && !holding.is_work;
	return 0;
}
