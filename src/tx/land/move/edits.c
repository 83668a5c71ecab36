/* tx/land/move/edits.c - finds the user's edits of files that a landing changes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/move/checkout.h"

struct hf_git hf_checkout_inside(const struct hf_checkout *checkout, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = checkout->work->landings->plans, .plan = checkout->plan, .dir = checkout->top,
				.out = out, .said = said };
}

/* What is at the path, which is never sought behind a symbolic link. 0; -ENOENT; -ENOTDIR: something is in the place of a directory that leads there. */
static int look(const struct hf_checkout *checkout, const char *path, struct stat *ret)
{
	AUTO_FREE char *full = NULL;
	char *at;

	if (asprintf(&full, "%s/%s", checkout->top, path) < 0) {
		full = NULL;
		return -ENOMEM;
	}
	at = full + strlen(checkout->top) + 1;
	while ((at = strchr(at, '/'))) {
		*at = '\0';
		if (hf_sys.fstatat(AT_FDCWD, full, ret, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (!S_ISDIR(ret->st_mode))
			return -ENOTDIR;
		*at++ = '/';
	}
	return hf_sys.fstatat(AT_FDCWD, full, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Returns 1 if the directory holds untracked files, ignored or not; 0 or an error. */
static int has_others(const struct hf_checkout *checkout, const char *path, struct hf_err *err)
{
	static const char *const literal[] = { "GIT_LITERAL_PATHSPECS=1", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = hf_checkout_inside(checkout, &out, NULL);
	int r;

	git.env = literal;
	r = hf_git(&git, err, "ls-files", "--others", "-z", "--", path, NULL);
	return r < 0 ? r : r != 0 || out.len;
}

/*
 * Is something of the user's where a path is to be added? Not a file that the landing changes, in whose place a directory comes: its own
 * row tells; nor a directory that holds only what the landing removes, as the rows of those tell. 1, 0 or an error.
 */
static int is_in_the_way(const struct hf_checkout *checkout, const char *path, struct hf_err *err)
{
	AUTO_FREE char *at = NULL;
	struct hf_land_change change;
	struct stat st;
	char *slash;
	int r = look(checkout, path, &st);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		return S_ISDIR(st.st_mode) ? has_others(checkout, path, err) : 1;
	at = strdup(path);
	if (!at)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	while ((slash = strrchr(at, '/'))) {
		const char *row = NULL;

		*slash = '\0';
		while (hf_land_next_change(checkout->work, &row, &change))
			if (change.old_mode != 0 && strcmp(change.path, at) == 0)
				return 0;
	}
	return 1;
}

/* A file that the user has just as it will be: git learns that, and leaves it. 1: so it is. */
static int take_as_it_is(struct hf_checkout *checkout, const char *path, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *rev = NULL;
	struct hf_git git = hf_checkout_inside(checkout, &out, NULL);
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

int hf_checkout_is_in_doubt(const struct hf_checkout *checkout)
{
	struct hf_land_change change;
	const char *at = NULL;
	struct stat st;

	while (hf_land_next_change(checkout->work, &at, &change)) {
		int r = look(checkout, change.path, &st);

		if (r != (change.old_mode == 0 ? -ENOENT : 0))
			return 1;
	}
	return 0;
}

/* "1 XY SUB MODE MODE MODE OID OID PATH", "u ...": is the path there, and changed in the index (X)? */
struct edits {
	struct hf_buf list;
	char **edited; /* paths, sorted; in `list` */
	size_t n;
};

static void edits_done(struct edits *edits)
{
	free(edits->edited);
	hf_buf_done(&edits->list);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Behind so many spaces. */
static char *field(char *row, int n)
{
	for (; n > 0 && row; n--) {
		row = strchr(row, ' ');
		row = row ? row + 1 : NULL;
	}
	return row;
}

/*
 * Paths that differ from HEAD in the work tree or the index. Where only times differ, the index learns that: git may
 * write it, since it is the sandbox's own.
 */
static int find_edited(struct hf_checkout *checkout, struct edits *ret, struct hf_err *err)
{
	static const char *const may_write[] = { "GIT_OPTIONAL_LOCKS=1", NULL };
	struct hf_git git = hf_checkout_inside(checkout, &ret->list, NULL);
	size_t rows = 0;
	int r;

	git.env = may_write;
	r = hf_git(&git, err, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all", NULL);
	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", checkout->top, "git status failed");
	for (const char *at = ret->list.s; at < ret->list.s + ret->list.len; at += strlen(at) + 1)
		rows++;
	ret->edited = calloc(rows + 1, sizeof(*ret->edited));
	if (!ret->edited)
		return hf_fail_sys(err, ENOMEM, "memory", checkout->top);
	for (char *at = ret->list.s, *next; at < ret->list.s + ret->list.len; at = next) {
		char *path = at[0] == '1' ? field(at, 8) : at[0] == 'u' ? field(at, 10) : NULL;

		next = at + strlen(at) + 1;
		if (!path)
			continue;
		/* Told by the byte before it. */
		path[-1] = at[0] == 'u' || at[2] != '.' ? 's' : ' ';
		ret->edited[ret->n++] = path;
	}
	if (ret->n)
		qsort(ret->edited, ret->n, sizeof(*ret->edited), by_path);
	return 0;
}

/* Returns 1 if the user's file differs from HEAD, which a mark hides from git status, 0 or an error. */
static int is_edited(struct hf_checkout *checkout, const struct hf_land_change *change, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = hf_checkout_inside(checkout, &out, NULL);
	struct stat st;
	int r = look(checkout, change->path, &st);

	if (r == -ENOENT)
		return 0;
	if (r < 0 || (st.st_mode & S_IFMT) != (change->old_mode & S_IFMT))
		return 1;
	if (!S_ISREG(st.st_mode))
		return 0;
	r = hf_git(&git, err, "hash-object", "--", change->path, NULL);
	out.s[strcspn(out.s, "\n")] = '\0';
	return r < 0 ? r : r != 0 || strcmp(out.s, change->old_oid) != 0;
}

/* git neither refreshes marked entries nor replaces their files while the times in the index are old. */
static int refresh_marked(struct hf_checkout *checkout, const struct hf_buf *skipped, const struct hf_buf *assumed, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = hf_checkout_inside(checkout, NULL, &said);
	int r = hf_git_mark(&git, "--no-skip-worktree", skipped, err);

	if (r == 0)
		r = hf_git_mark(&git, "--no-assume-unchanged", assumed, err);
	/* It fails with 1 if the user has edited another path. */
	if (r == 0 && (skipped->len || assumed->len) && (r = hf_git(&git, err, "update-index", "-q", "--refresh", NULL)) == 1)
		r = 0;
	if (r == 0)
		r = hf_git_mark(&git, "--skip-worktree", skipped, err);
	if (r == 0)
		r = hf_git_mark(&git, "--assume-unchanged", assumed, err);
	return r > 0 ? hf_git_failed(&said, checkout->top, "update-index", err) : r;
}

/* Adds changed paths with an edit under skip-worktree or assume-unchanged. In rows "T PATH", S or a small letter is a mark. */
static int find_marked(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(edits_done) struct edits marked = { .list = HF_BUF_INIT };
	AUTO(hf_buf_done) struct hf_buf skipped = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf assumed = HF_BUF_INIT;
	struct hf_git git = hf_checkout_inside(checkout, &marked.list, NULL);
	struct hf_land_change change;
	const char *at = NULL;
	size_t rows = 0;
	int r = hf_git(&git, err, "ls-files", "-v", "-z", NULL);

	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", checkout->top, "git ls-files failed");
	for (char *row = marked.list.s; row < marked.list.s + marked.list.len; row += strlen(row) + 1)
		rows += row[0] != 'H';
	marked.edited = calloc(rows + 1, sizeof(*marked.edited));
	if (!marked.edited)
		return hf_fail_sys(err, ENOMEM, "memory", checkout->top);
	for (char *row = marked.list.s; row < marked.list.s + marked.list.len; row += strlen(row) + 1)
		if (row[0] == 'S' || islower((unsigned char)row[0]))
			marked.edited[marked.n++] = row + 2;
	if (marked.n)
		qsort(marked.edited, marked.n, sizeof(*marked.edited), by_path);
	while (marked.n && r >= 0 && hf_land_next_change(checkout->work, &at, &change)) {
		char **found = change.old_mode == 0 ? NULL : bsearch(&change.path, marked.edited, marked.n, sizeof(*marked.edited), by_path);

		if (!found)
			continue;
		r = is_edited(checkout, &change, err);
		if (r > 0 && hf_land_paths_add(&checkout->work->landing.paths, change.path, strlen(change.path), "dirty") < 0)
			r = hf_fail_sys(err, ENOMEM, "memory", change.path);
		if (r == 0 && ((*found)[-2] == 'S' || (*found)[-2] == 's'))
			hf_buf_add(&skipped, *found, strlen(*found) + 1);
		if (r == 0 && islower((unsigned char)(*found)[-2]))
			hf_buf_add(&assumed, *found, strlen(*found) + 1);
	}
	return r < 0 ? r : refresh_marked(checkout, &skipped, &assumed, err);
}

int hf_checkout_find_edits(struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(edits_done) struct edits edits = { .list = HF_BUF_INIT };
	struct hf_landing *landing = &checkout->work->landing;
	struct hf_land_change change;
	const char *at = NULL;
	int r = find_edited(checkout, &edits, err);

	while (r >= 0 && hf_land_next_change(checkout->work, &at, &change)) {
		char **edited = edits.n ? bsearch(&change.path, edits.edited, edits.n, sizeof(*edits.edited), by_path) : NULL;

		if (!edited) {
			r = change.old_mode == 0 ? is_in_the_way(checkout, change.path, err) : 0;
			if (r <= 0)
				continue;
		}
		r = edited && (*edited)[-1] == 's' ? 0 : take_as_it_is(checkout, change.path, err);
		if (r == 0 && hf_land_paths_add(&landing->paths, change.path, strlen(change.path), "dirty") < 0)
			r = hf_fail_sys(err, ENOMEM, "memory", change.path);
	}
	return r < 0 ? r : find_marked(checkout, err);
}
