/* tx/land/move/view.c - a verifier sees the commit that lands. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/move/view.h"
#include "hf/tx/land/take/touched.h"

#define DEPTH_MAX 16 /* of submodules in each other */

void hf_view_done(struct hf_view *view)
{
	hf_buf_done(&view->others);
}

/* A repository of the work tree: its top, or the submodule at `path`, which ends with a slash. */
struct place {
	const struct hf_view *view;
	char *dir;
	const char *path; /* "": the top */
	int depth;
};

static void place_done(struct place *place)
{
	free(place->dir);
}

static struct hf_git inside(const struct place *place, struct hf_buf *out, struct hf_buf *said)
{
	const struct hf_view *view = place->view;

	return (struct hf_git){ .plans = view->work->landings->plans, .plan = view->plan, .dir = place->dir, .out = out, .said = said };
}

static int find_place(const struct hf_view *view, const char *path, int depth, struct place *ret, struct hf_err *err)
{
	*ret = (struct place){ .view = view, .path = path, .depth = depth };
	if (asprintf(&ret->dir, "%s%s%s", view->work->landing.top, path[0] ? "/" : "", path) < 0) {
		ret->dir = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", path);
	}
	return 0;
}

/* Returns the path from the top of the work tree. */
static char *join(const struct place *place, const char *path, const char *end)
{
	char *joined;

	return asprintf(&joined, "%s%s%s", place->path, path, end) < 0 ? NULL : joined;
}

/* -- marks ----------------------------------------------------------------------------------- */

static int is_sparse(const struct place *place, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(place, &out, NULL);
	int r = hf_git(&git, err, "config", "--type=bool", "--get", "core.sparseCheckout", NULL);

	return r < 0 ? r : strcmp(out.s, "true\n") == 0;
}

static int clear(const struct place *place, const char *option, const struct hf_buf *paths, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(place, NULL, &said);
	int r = hf_git_mark(&git, option, paths, err);

	return r > 0 ? hf_git_failed(&said, place->dir, "update-index", err) : r;
}

static int is_there(const struct place *place, const char *path)
{
	AUTO_FREE char *full = NULL;
	struct stat st;

	if (asprintf(&full, "%s/%s", place->dir, path) < 0)
		full = NULL;
	return !full || hf_sys.fstatat(AT_FDCWD, full, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Reads rows "T PATH": T is S or s for skip-worktree, and a small letter for assume-unchanged. */
static int unmark(const struct place *place, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf skipped = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf assumed = HF_BUF_INIT;
	struct hf_git git = inside(place, &out, NULL);
	int sparse = -1;
	int r = hf_git(&git, err, "-c", "sparse.expectFilesOutsideOfPatterns=false", "ls-files", "-v", "-z", NULL);

	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1) {
		int is_skipped = at[0] == 'S' || at[0] == 's';

		if (islower((unsigned char)at[0]))
			hf_buf_add(&assumed, at + 2, strlen(at + 2) + 1);
		/* A sparse checkout leaves these files out on purpose. */
		if (is_skipped && !is_there(place, at + 2) && sparse < 0)
			sparse = is_sparse(place, err);
		if (is_skipped && (sparse != 1 || is_there(place, at + 2)))
			hf_buf_add(&skipped, at + 2, strlen(at + 2) + 1);
	}
	/* The checkout reports a repository that git cannot read. */
	if (r == 0)
		r = clear(place, "--no-assume-unchanged", &assumed, err);
	if (r == 0)
		r = clear(place, "--no-skip-worktree", &skipped, err);
	return r < 0 ? r : 0;
}

int hf_view_unmark(const struct hf_view *view, struct hf_err *err)
{
	AUTO(place_done) struct place top = { 0 };
	int r = find_place(view, "", 0, &top, err);

	return r < 0 ? r : unmark(&top, err);
}

/* -- before a verifier ----------------------------------------------------------------------- */

static int refuse(const struct place *place, const char *oid, const struct hf_buf *said, struct hf_err *err)
{
	struct hf_land_work *work = place->view->work;
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_CONFLICT, err,
				  "the submodule %.100s is not at %.12s, which the commit records, and cannot be verified there: %.100s", place->path, oid,
				  said->len ? said->s : "git failed without a message");

	return r < 0 ? r : 1;
}

/* Return 1 if the sandboxes hold the git directories of a submodule, 0 or an error. Writes to other places would reach the real ones. */
static int is_own(const struct place *place, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_landing *landing = &place->view->work->landing;
	struct hf_git git = inside(place, &out, NULL);
	int r = hf_git(&git, err, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", NULL);

	if (r != 0)
		return r < 0 ? r : 0;
	for (char *at = out.s, *end; *at; at = end) {
		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = '\0';
		if (!hf_path_is_in(at, landing->top) && !hf_path_is_in(at, landing->common))
			return 0;
	}
	return 1;
}

static int hide(struct hf_view *view, const struct place *place, struct hf_err *err);

/* Checks a submodule out at the recorded commit. Its repository may lack that commit. */
static int take_submodule(struct hf_view *view, const struct place *outer, const char *path, const char *oid, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(place_done) struct place place = { 0 };
	AUTO_FREE char *joined = join(outer, path, "/");
	struct hf_git git;
	int r = joined ? find_place(view, joined, outer->depth + 1, &place, err) : hf_fail_sys(err, ENOMEM, "memory", path);

	if (r == 0)
		r = place.depth > DEPTH_MAX ? 0 : is_own(&place, err);
	if (r == 0) {
		hf_buf_add_text(&said, "its repository is elsewhere");
		return refuse(&place, oid, &said, err);
	}
	if (r > 0)
		r = unmark(&place, err);
	if (r < 0)
		return r;
	git = inside(&place, NULL, &said);
	r = hf_git(&git, err, "checkout", "--quiet", "--force", "--detach", oid, NULL);
	if (r > 0)
		return refuse(&place, oid, &said, err);
	return r < 0 ? r : hide(view, &place, err);
}

/* Returns the text after `n` spaces. */
static char *field(char *row, int n)
{
	for (; n > 0 && row; n--) {
		row = strchr(row, ' ');
		row = row ? row + 1 : NULL;
	}
	return row;
}

/* In "1 XY SUB MODE MODE MODE OID OID PATH" a SUB "S..." marks a submodule that is dirty or not at the second OID. Return 0, 1 or an error. */
static int hide_row(struct hf_view *view, const struct place *place, char *row, struct hf_err *err)
{
	char *oid = field(row, 7), *path = field(row, 8);

	/* A removed submodule shows nothing. */
	if (row[0] != '1' || !oid || !path || row[5] != 'S' || row[3] == 'D')
		return 0;
	path[-1] = '\0';
	return take_submodule(view, place, path, oid, err);
}

static int hide(struct hf_view *view, const struct place *place, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(place, &out, &said);
	int has_new = 0;
	int r = hf_git(&git, err, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none", NULL);

	for (char *at = out.s, *next; r == 0 && at < out.s + out.len; at = next) {
		size_t len = strlen(at);

		next = at + len + 1;
		if (at[0] == '?' && at[len - 1] == '/') {
			hf_buf_add_text(&view->others, place->path);
			hf_buf_add(&view->others, at + 2, len - 1);
		} else if (at[0] == '?') {
			has_new = 1;
		} else {
			r = hide_row(view, place, at, err);
		}
	}
	if (r == 0 && view->others.err)
		return hf_fail_sys(err, ENOMEM, "memory", place->dir);
	if (r == 1)
		return r;
	git.out = NULL;
	if (r == 0 && has_new)
		r = hf_git(&git, err, "clean", "-q", "-f", "-d", NULL);
	return r > 0 ? hf_git_failed(&said, place->dir, "status", err) : r;
}

int hf_view_hide(struct hf_view *view, struct hf_err *err)
{
	AUTO(place_done) struct place top = { 0 };
	int r = find_place(view, "", 0, &top, err);

	hf_buf_reset(&view->others);
	return r < 0 ? r : hide(view, &top, err);
}

/* -- after a verifier ------------------------------------------------------------------------------- */

/* The changes inside the sandbox, read at the first use. */
struct looks {
	struct hf_view *view;
	struct hf_touched touched;
	int is_read;
};

static void looks_done(struct looks *looks)
{
	hf_touched_done(&looks->touched);
}

/* Return 1 if the path, or a path below it, was changed inside, 0 or an error. */
static int is_inside(struct looks *looks, const char *path, struct hf_err *err)
{
	struct hf_land_work *work = looks->view->work;
	int r = looks->is_read ? 0 : hf_touched_read(work->landings, &work->landing, looks->view->plan, &looks->touched, err);

	looks->is_read |= r == 0;
	return r < 0 ? r : hf_touched_has(&looks->touched, path) || hf_touched_below(&looks->touched, path);
}

static int check(struct looks *looks, const struct place *place, const char *commit, struct hf_err *err);

static int check_submodule(struct looks *looks, const char *path, int depth, const char *oid, struct hf_err *err)
{
	AUTO(place_done) struct place place = { 0 };
	AUTO_FREE char *slashed = NULL;
	int r;

	if (asprintf(&slashed, "%s/", path) < 0) {
		slashed = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", path);
	}
	r = find_place(looks->view, slashed, depth, &place, err);
	return r < 0 || depth > DEPTH_MAX || !is_there(&place, ".git") ? r : check(looks, &place, oid, err);
}

/* Reads ":MODE MODE OID OID S" and PATH, each with a NUL: tracked files that differ from the checkout. */
static int check_known(struct looks *looks, const struct place *place, const char *commit, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(place, &out, NULL);
	int r = hf_git(&git, err, "diff-index", "--raw", "--no-abbrev", "-z", "--no-renames", "--ignore-submodules=none", commit, "--", NULL);
	char *at = out.s;

	if (r != 0)
		return r < 0 ? r : 0; /* the verifier broke its own copy of the repository, which is a change inside */
	while (r == 0 && at < out.s + out.len) {
		int is_submodule = strncmp(at, ":160000 ", 8) == 0;
		char *oid = field(at, 2), *path = at + strlen(at) + 1;
		AUTO_FREE char *joined = path < out.s + out.len ? join(place, path, "") : NULL;

		if (!joined || !oid)
			return hf_fail_sys(err, joined ? EINVAL : ENOMEM, "diff-index", place->dir);
		at = path + strlen(path) + 1;
		oid[strcspn(oid, " ")] = '\0';
		r = is_inside(looks, joined, err);
		r = r == 0 ? -EAGAIN : r > 0 && is_submodule ? check_submodule(looks, joined, place->depth + 1, oid, err) : r < 0 ? r : 0;
	}
	return r;
}

static int is_listed(const struct hf_buf *list, const char *path)
{
	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1)
		if (strcmp(at, path) == 0)
			return 1;
	return 0;
}

static int check_new(struct looks *looks, const struct place *place, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(place, &out, NULL);
	int r = hf_git(&git, err, "ls-files", "--others", "--exclude-standard", "-z", NULL);

	if (r > 0)
		return 0;
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1) {
		AUTO_FREE char *joined = join(place, at, "");
		size_t len = joined ? strlen(joined) : 0;

		if (len == 0)
			return hf_fail_sys(err, ENOMEM, "memory", place->dir);
		if (joined[len - 1] == '/' && is_listed(&looks->view->others, joined))
			continue;
		if (joined[len - 1] == '/')
			joined[len - 1] = '\0';
		r = is_inside(looks, joined, err);
		r = r == 0 ? -EAGAIN : r > 0 ? 0 : r;
	}
	return r;
}

static int check(struct looks *looks, const struct place *place, const char *commit, struct hf_err *err)
{
	int r = check_known(looks, place, commit, err);

	return r == 0 ? check_new(looks, place, err) : r;
}

int hf_view_check(struct hf_view *view, const char *commit, struct hf_err *err)
{
	AUTO(looks_done) struct looks looks = { .view = view };
	AUTO(place_done) struct place top = { 0 };
	int r = find_place(view, "", 0, &top, err);

	return r < 0 ? r : check(&looks, &top, commit, err);
}
