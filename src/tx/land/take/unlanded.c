/*
 * tx/land/take/unlanded.c - a safety net: finds files that the agent changed, and that would vanish with the sandbox.
 *
 * git does not report each change: with core.fileMode=false it ignores modes, a clean filter or a conversion of line ends can remove an edit, and it does
 * not list new files in a submodule. Here the sandbox's own files are compared with the commit. A file that is neither landed, ignored nor unchanged is
 * reported, and its sandbox kept.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

#define LISTED_MAX 1000

struct suspect {
	const struct hf_touched_path *touched;
	unsigned mode; /* in the index; 0: it is not tracked */
	int is_converted; /* 1: a checkout may write other bytes than the commit has */
	int is_done;   /* 1: it is accounted for */
};

struct suspects {
	struct hf_land_work *work;
	const struct hf_touched *touched;
	struct suspect *list; /* sorted by path */
	size_t n, left;
};

static void suspects_done(struct suspects *suspects)
{
	free(suspects->list);
}

static struct hf_git inside(const struct suspects *suspects, struct hf_buf *out)
{
	const struct hf_land_work *work = suspects->work;

	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .out = out };
}

/* A path in a git directory, or the file that leads to one. */
static int is_of_git(const char *path)
{
	for (const char *at = strstr(path, ".git"); at; at = strstr(at + 1, ".git"))
		if ((at == path || at[-1] == '/') && (at[4] == '\0' || at[4] == '/'))
			return 1;
	return 0;
}

static int collect(struct suspects *suspects, const struct hf_touched *touched)
{
	suspects->list = calloc(touched->n + 1, sizeof(*suspects->list));
	for (size_t i = 0; suspects->list && i < touched->n; i++) {
		const struct hf_touched_path *path = &touched->paths[i];

		if ((S_ISREG(path->new_mode) || S_ISLNK(path->new_mode)) && !is_of_git(path->path))
			suspects->list[suspects->n++] = (struct suspect){ .touched = path };
	}
	suspects->left = suspects->n;
	return suspects->list ? 0 : -ENOMEM;
}

static int by_path(const void *key, const void *suspect)
{
	return strcmp(key, ((const struct suspect *)suspect)->touched->path);
}

static void settle(struct suspects *suspects, struct suspect *suspect)
{
	suspects->left -= suspect && !suspect->is_done;
	if (suspect)
		suspect->is_done = 1;
}

/* Paths that are accounted for, each with a NUL. */
static void settle_list(struct suspects *suspects, const struct hf_buf *list)
{
	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1)
		settle(suspects, bsearch(at, suspects->list, suspects->n, sizeof(*suspects->list), by_path));
}

static int keep(struct suspects *suspects, struct suspect *suspect, struct hf_err *err)
{
	struct hf_land_paths *unlanded = &suspects->work->landing.unlanded;
	const char *path = suspect->touched->path;

	settle(suspects, suspect);
	return unlanded->n < LISTED_MAX && hf_land_paths_add(unlanded, path, strlen(path), "kept") < 0 ? hf_fail_sys(err, ENOMEM, "memory", path) : 0;
}

/* -- submodules and linked worktrees ------------------------------------------------------------ */

/* The files below the directory are another repository's. Return 1 if there is any. */
static int settle_below(struct suspects *suspects, const char *dir)
{
	size_t len = strlen(dir);
	int any = 0;

	for (size_t i = 0; i < suspects->n; i++) {
		struct suspect *suspect = &suspects->list[i];

		if (suspect->is_done || strncmp(suspect->touched->path, dir, len) != 0 || suspect->touched->path[len] != '/')
			continue;
		settle(suspects, suspect);
		any = 1;
	}
	return any;
}

/* Keeps DIR/PATH if the agent touched it. */
static int keep_below(struct suspects *suspects, const char *dir, const char *path, struct hf_err *err)
{
	struct hf_land_paths *unlanded = &suspects->work->landing.unlanded;
	AUTO_FREE char *joined = NULL;

	if (asprintf(&joined, "%s/%s", dir, path) < 0) {
		joined = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", dir);
	}
	return hf_touched_find(suspects->touched, joined) && unlanded->n < LISTED_MAX &&
	       hf_land_paths_add(unlanded, joined, strlen(joined), "kept") < 0 ? hf_fail_sys(err, ENOMEM, "memory", dir) : 0;
}

/* New files in a submodule that it does not ignore. Its changed ones are refused before. */
static int check_submodule(struct suspects *suspects, const char *dir, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(suspects, &out);
	int r = settle_below(suspects, dir) ? hf_git(&git, err, "-C", dir, "ls-files", "-z", "--others", "--exclude-standard", NULL) : 0;

	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		r = keep_below(suspects, dir, at, err);
	return r < 0 ? r : 0;
}

/* Edits in a linked worktree that are not committed there; elsewhere.c finds its commits. */
static int check_worktree(struct suspects *suspects, const char *dir, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(suspects, &out);
	int r;

	(void)settle_below(suspects, dir);
	if (!hf_touched_below(suspects->touched, dir))
		return 0;
	r = hf_git(&git, err, "-C", dir, HF_GIT_COMPARES, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none", NULL);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		if (strlen(at) > 3)
			r = keep_below(suspects, dir, at + 3, err);
	/* git cannot read it: all of it is kept. */
	if (r > 0)
		r = hf_land_paths_add(&suspects->work->landing.unlanded, dir, strlen(dir), "kept") < 0 ? hf_fail_sys(err, ENOMEM, "memory", dir) : 0;
	return r;
}

static int check_worktrees(struct suspects *suspects, const struct hf_left *left, struct hf_err *err)
{
	struct hf_worktree worktree;
	const char *at = NULL;
	int r = 0;

	while (r == 0 && hf_worktree_next(suspects->work, &left->worktrees, &at, &worktree))
		r = check_worktree(suspects, worktree.path, err);
	return r;
}

/* Notes which are tracked, and looks into submodules. */
static int read_index(struct suspects *suspects, const struct hf_buf *index, struct hf_err *err)
{
	struct hf_index_row row;
	const char *at = NULL;
	int r = 0;

	while (r == 0 && hf_index_next(index, &at, &row)) {
		struct suspect *suspect = bsearch(row.path, suspects->list, suspects->n, sizeof(*suspects->list), by_path);

		if (suspect)
			suspect->mode = row.mode;
		else if (S_ISGITLINK(row.mode))
			r = check_submodule(suspects, row.path, err);
	}
	return r;
}

/* -- files that git ignores, or filters ------------------------------------------------------- */

/* Calls git with the paths of all suspects that are tracked, or are not, on its standard input. Its exit status, or an error. */
static int ask(struct suspects *suspects, int is_tracked, const char *const *words, struct hf_buf *out, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf in = HF_BUF_INIT;
	struct hf_git git = inside(suspects, out);

	for (size_t i = 0; i < suspects->n; i++) {
		const struct suspect *suspect = &suspects->list[i];

		if (!suspect->is_done && (suspect->mode != 0) == is_tracked)
			hf_buf_add(&in, suspect->touched->path, strlen(suspect->touched->path) + 1);
	}
	if (in.err)
		return hf_fail_sys(err, ENOMEM, "memory", git.dir);
	git.in = in.s;
	git.in_len = in.len;
	return in.len ? hf_git_words(&git, words, err) : 0;
}

/* Return 1 if a checkout of HEAD writes the same content, 0 or an error. */
static int is_as_checked_out(struct suspects *suspects, const char *path, struct hf_err *err)
{
	static const char script[] = "exec 2>/dev/null; git cat-file --filters \"HEAD:$1\" | git hash-object --no-filters --stdin && "
				     "git hash-object --no-filters -- \"$1\"";
	const char *const argv[] = { "sh", "-c", script, "sh", path, NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(suspects, &out);
	int r = hf_git_other(&git, argv, err);
	size_t len = strcspn(out.s, "\n");

	return r < 0 ? r : r == 0 && len > 0 && out.len == 2 * len + 2 && strncmp(out.s, out.s + len + 1, len) == 0;
}

/* Rows "PATH", "ATTRIBUTE", "VALUE", each with a NUL. */
static void read_attributes(struct suspects *suspects, const struct hf_buf *rows)
{
	const char *end = rows->s + rows->len;

	for (const char *path = rows->s; path < end;) {
		const char *name = path + strlen(path) + 1, *value = name < end ? name + strlen(name) + 1 : end;
		struct suspect *suspect = bsearch(path, suspects->list, suspects->n, sizeof(*suspects->list), by_path);

		if (value >= end)
			return;
		if (suspect && strcmp(value, "unspecified") != 0 && strcmp(value, "unset") != 0)
			suspect->is_converted = 1;
		path = value + strlen(value) + 1;
	}
}

/* 1: core.autocrlf converts the ends of lines. */
static int converts_lines(struct suspects *suspects, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(suspects, &out);
	int r = hf_git(&git, err, "config", "core.autocrlf", NULL);

	return r < 0 ? r : r == 0 && strncmp(out.s, "false", 5) != 0;
}

/* git says that a tracked file is unchanged. A filter or a conversion of its lines can be the reason. */
static int check_filters(struct suspects *suspects, struct hf_err *err)
{
	static const char *const words[] = { "check-attr", "-z", "--stdin", "filter", "text", "crlf", "eol", "ident", "working-tree-encoding", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	int converts = 0, r = ask(suspects, 1, words, &out, err);

	if (r == 0)
		converts = r = converts_lines(suspects, err);
	if (r < 0)
		return r;
	read_attributes(suspects, &out);
	for (size_t i = 0; r >= 0 && i < suspects->n; i++) {
		struct suspect *suspect = &suspects->list[i];

		if (suspect->is_done || !suspect->mode)
			continue;
		r = converts || suspect->is_converted ? is_as_checked_out(suspects, suspect->touched->path, err) : 1;
		if (r == 1)
			settle(suspects, suspect);
		else if (r == 0)
			r = keep(suspects, suspect, err);
	}
	return r < 0 ? r : 0;
}

/* With core.fileMode=false: the agent changed the mode of a tracked file. */
static int has_other_mode(const struct suspect *suspect)
{
	const struct hf_touched_path *touched = suspect->touched;
	mode_t is_executable = touched->new_mode & S_IXUSR;

	return suspect->mode && S_ISREG(touched->old_mode) && S_ISREG(touched->new_mode) && (touched->old_mode & S_IXUSR) != is_executable &&
	       (suspect->mode & S_IXUSR) != is_executable;
}

/* Keeps untracked files that git does not ignore. */
static int check_new(struct suspects *suspects, struct hf_err *err)
{
	static const char *const words[] = { "check-ignore", "-z", "--stdin", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	int r = ask(suspects, 0, words, &out, err);

	if (r >= 0)
		settle_list(suspects, &out);
	for (size_t i = 0; r >= 0 && i < suspects->n; i++)
		if (!suspects->list[i].is_done && !suspects->list[i].mode)
			r = keep(suspects, &suspects->list[i], err);
	return r < 0 ? r : 0;
}

static int check_tracked(struct suspects *suspects, struct hf_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < suspects->n; i++) {
		struct suspect *suspect = &suspects->list[i];

		if (!suspect->is_done && has_other_mode(suspect))
			r = keep(suspects, suspect, err);
		else if (!suspect->is_done && (!suspect->touched->is_content || S_ISLNK(suspect->touched->new_mode)))
			settle(suspects, suspect);
	}
	return r == 0 ? check_filters(suspects, err) : r;
}

/* The paths that the commits change: what collect.c knows of them, or what git says inside. */
static int settle_landed(struct suspects *suspects, const struct hf_left *left, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_land_work *work = suspects->work;
	struct hf_git git = inside(suspects, &out);
	struct hf_land_change change;
	const char *at = NULL;
	int r = 0;

	if (strcmp(left->tip, work->landing.base) == 0)
		return 0;
	if (work->landing.tip[0] && strcmp(work->changes_to, work->landing.tip) == 0) {
		while (hf_land_next_change(work, &at, &change))
			settle(suspects, bsearch(change.path, suspects->list, suspects->n, sizeof(*suspects->list), by_path));
		return 0;
	}
	r = hf_git(&git, err, "diff-tree", "-r", "-z", "--name-only", "--no-renames", work->landing.base, "HEAD", NULL);
	settle_list(suspects, &out);
	return r < 0 ? r : 0;
}

int hf_left_find_unlanded(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_err *err)
{
	AUTO(suspects_done) struct suspects suspects = { .work = work, .touched = touched };
	const struct hf_land_paths *unlanded = &work->landing.unlanded;
	int r = 0;

	if (!left->is_read)
		return 0;
	if (collect(&suspects, touched) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	for (size_t i = 0; i < unlanded->n; i++)
		settle(&suspects, bsearch(unlanded->list[i].path, suspects.list, suspects.n, sizeof(*suspects.list), by_path));
	r = check_worktrees(&suspects, left, err);
	/* Often that was all. */
	if (r == 0 && suspects.left > 0)
		r = settle_landed(&suspects, left, err);
	if (r == 0 && suspects.left > 0)
		r = read_index(&suspects, &left->index, err);
	if (r == 0 && suspects.left > 0)
		r = check_new(&suspects, err);
	if (r == 0 && suspects.left > 0)
		r = check_tracked(&suspects, err);
	return r;
}
