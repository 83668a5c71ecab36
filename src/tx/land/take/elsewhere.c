/*
 * tx/land/take/elsewhere.c - finds new commits outside of HEAD: on branches and tags, in stashes and linked worktrees, and on no branch.
 *
 * The repository's own refs and reflogs are visible in the sandbox: their commits are not new. A branch whose every change HEAD has, as after a
 * cherry-pick, does not count, nor do commits that an amended or squashed commit of HEAD replaced.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

#define LABEL_MAX 512
#define LOOSE_MAX 20 /* commits on no branch to check */

struct search {
	struct hf_land_work *work;
	const struct hf_left *left;
	struct hf_buf known; /* "^COMMIT" lines: HEAD, base, and all that the repository has */
	struct hf_buf new;   /* "COMMIT PARENT..." lines: the others */
};

static void search_done(struct search *search)
{
	hf_buf_done(&search->known);
	hf_buf_done(&search->new);
}

static struct hf_git inside(const struct search *search, struct hf_buf *out)
{
	const struct hf_land_work *work = search->work;

	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .out = out };
}

/* Calls `fn` with each line, whose end is cut off, until it does not return 0. */
static int each_line(struct search *search, struct hf_buf *text, int (*fn)(struct search *search, char *line, struct hf_err *err), struct hf_err *err)
{
	int r = 0;

	for (char *line = text->s, *next; r == 0 && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		r = fn(search, line, err);
	}
	return r;
}

static int add_known(struct search *search, char *line, struct hf_err *err)
{
	hf_buf_add_format(&search->known, "^%s\n", line);
	return search->known.err ? hf_fail_sys(err, ENOMEM, "memory", line) : 0;
}

/* 0; 1: git failed; or an error. */
static int list_new(struct search *search, struct hf_err *err)
{
	struct hf_git git = inside(search, &search->new);
	int r;

	git.in = search->known.s;
	git.in_len = search->known.len;
	r = hf_git(&git, err, "rev-list", "--parents", "--ignore-missing", "--exclude=refs/remotes/*", "--all", "--reflog", "--stdin", "--not", "--remotes", NULL);
	return r < 0 ? r : r != 0;
}

static int is_new(const struct search *search, const char *oid)
{
	size_t len = strlen(oid);

	for (const char *line = search->new.s; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, oid, len) == 0 && (line[len] == ' ' || line[len] == '\n'))
			return 1;
	return 0;
}

/* Counts commits whose change HEAD does not have. */
static int count(const struct search *search, const char *oid, unsigned *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(search, &out);
	char range[HF_LAND_OID_MAX + 8];
	int r;

	(void)snprintf(range, sizeof(range), "HEAD...%s", oid);
	r = hf_git(&git, err, "rev-list", "--count", "--cherry-pick", "--right-only", range, NULL);
	*ret = r != 0;
	for (const char *c = out.s; r == 0 && *c >= '0' && *c <= '9'; c++)
		*ret = *ret * 10 + (unsigned)(*c - '0');
	return r < 0 ? r : 0;
}

/* -- refs and stashes ------------------------------------------------------------------------- */

/* The linked worktree of the work tree that has the branch checked out. 1 or 0. */
static int find_worktree(const struct search *search, const char *branch, struct hf_worktree *ret)
{
	const char *at = NULL;

	while (hf_worktree_next(search->work, &search->left->worktrees, &at, ret))
		if (strcmp(ret->branch, branch) == 0)
			return 1;
	return 0;
}

/* "worktree-PATH", or of a worktree outside of the work tree "worktree-NAME"; '-' for bytes that a ref cannot contain. */
static void make_label(const char *path, char out[LABEL_MAX])
{
	(void)snprintf(out, LABEL_MAX, "worktree-%.300s", path[0] == '/' ? strrchr(path, '/') + 1 : path);
	for (char *c = out; *c; c++) {
		int is_bad_dot = *c == '.' && (c[-1] == '/' || c[-1] == '.' || c[1] == '/' || c[1] == '\0' || strncmp(c, ".lock", 5) == 0);

		if (is_bad_dot || (unsigned char)*c <= ' ' || strchr("\177~^:?*[\\@", *c))
			*c = '-';
	}
}

static int add_ref(struct search *search, const char *kind, const char *name, const char *oid, struct hf_err *err)
{
	struct hf_landing *landing = &search->work->landing;
	const char *onto = hf_land_short(landing->branch);
	struct hf_worktree worktree;
	char label[LABEL_MAX], text[512];
	unsigned n;
	int r = count(search, oid, &n, err);

	if (r < 0 || n == 0)
		return r;
	(void)snprintf(label, sizeof(label), "%s-%.300s", kind, name);
	if (strcmp(kind, "worktree") == 0)
		make_label(name, label);
	if (strcmp(kind, "branch") == 0 && find_worktree(search, name, &worktree))
		(void)snprintf(text, sizeof(text), "worktree %.200s holds %u commit%s that %.60s does not have", worktree.path, n, n == 1 ? "" : "s", onto);
	else
		(void)snprintf(text, sizeof(text), "%s %.200s of the sandbox has %u commit%s that %.60s does not have", kind, name, n, n == 1 ? "" : "s", onto);
	return hf_land_rest_add(&landing->rest, label, text, oid, "", n) < 0 ? hf_fail_sys(err, ENOMEM, "memory", name) : 0;
}

/* "OID PEELED REF", where PEELED is empty unless it is an annotated tag. */
static int take_ref(struct search *search, char *line, struct hf_err *err)
{
	char *peeled = strchr(line, ' '), *ref = peeled ? strchr(peeled + 1, ' ') : NULL;
	const char *commit;

	if (!ref)
		return 0;
	*peeled++ = '\0';
	*ref++ = '\0';
	commit = *peeled ? peeled : line;
	if (!hf_git_is_oid(commit) || strncmp(ref, "refs/remotes/", 13) == 0 || strcmp(ref, "refs/stash") == 0 || !is_new(search, commit))
		return 0;
	if (strncmp(ref, "refs/heads/", 11) == 0)
		return add_ref(search, "branch", ref + 11, commit, err);
	if (strncmp(ref, "refs/tags/", 10) == 0)
		return add_ref(search, "tag", ref + 10, commit, err);
	return add_ref(search, "ref", ref + 5, commit, err);
}

static int take_stash(struct search *search, char *line, struct hf_err *err)
{
	struct hf_landing *landing = &search->work->landing;
	char text[120];

	if (!hf_git_is_oid(line) || !is_new(search, line))
		return 0;
	(void)snprintf(text, sizeof(text), "a stash of the sandbox is not on %.60s", hf_land_short(landing->branch));
	return hf_land_rest_add(&landing->rest, "stash", text, line, "", 1) < 0 ? hf_fail_sys(err, ENOMEM, "memory", line) : 0;
}

static int take_refs(struct search *search, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf stashes = HF_BUF_INIT;
	struct hf_git git = inside(search, &refs);
	struct hf_worktree worktree;
	const char *at = NULL;
	int r = hf_git(&git, err, "for-each-ref", "--format=%(objectname) %(*objectname) %(refname)", NULL);

	if (r >= 0)
		r = each_line(search, &refs, take_ref, err);
	git.out = &stashes;
	if (r == 0)
		r = hf_git(&git, err, "rev-list", "--walk-reflogs", "--ignore-missing", "refs/stash", "--", NULL);
	/* Without a stash git fails. */
	if (r == 0)
		r = each_line(search, &stashes, take_stash, err);
	while (r >= 0 && hf_worktree_next(search->work, &search->left->worktrees, &at, &worktree))
		if (!worktree.branch[0] && is_new(search, worktree.head))
			r = add_ref(search, "worktree", worktree.path, worktree.head, err);
	return r < 0 ? r : 0;
}

/* -- commits on no branch ---------------------------------------------------------------------- */

/* A line "COMMIT PARENT...": 1 if another new commit is built on it. */
static int is_parent(const struct search *search, const char *oid, size_t len)
{
	for (const char *line = search->new.s; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *end = line + strcspn(line, "\n"), *at = strchr(line, ' ');

		for (; at && at < end; at = strchr(at + 1, ' '))
			if (strncmp(at + 1, oid, len) == 0)
				return 1;
	}
	return 0;
}

/* HEAD's reflog, newest first: "COMMIT MESSAGE" with the new value of each step. 1: a checkout left the commit. */
static int is_left_by_checkout(const struct hf_buf *log, const char *oid)
{
	int is_checkout = 0;

	for (const char *line = log->s; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *message = strchr(line, ' ');

		if (is_checkout && strncmp(line, oid, strlen(oid)) == 0)
			return 1;
		is_checkout = message && strncmp(message, " checkout: ", 11) == 0;
	}
	return 0;
}

static int has_path(const struct hf_buf *list, const char *path)
{
	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1)
		if (strcmp(at, path) == 0)
			return 1;
	return 0;
}

/* 1: HEAD changes each path that the commit changes, as after an amend or a squash; 0; or an error. */
static int is_replaced(const struct search *search, const char *oid, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf old = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf now = HF_BUF_INIT;
	const char *base = search->work->landing.base;
	struct hf_git git = inside(search, &old);
	int r = hf_git(&git, err, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, oid, NULL);

	git.out = &now;
	if (r == 0)
		r = hf_git(&git, err, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, "HEAD", NULL);
	if (r != 0 || !now.len)
		return r < 0 ? r : 0;
	for (const char *at = old.s; at < old.s + old.len; at += strlen(at) + 1)
		if (!has_path(&now, at))
			return 0;
	return 1;
}

static int take_loose(struct search *search, const char *oid, const struct hf_buf *log, struct hf_err *err)
{
	struct hf_landing *landing = &search->work->landing;
	char text[160];
	unsigned n = 0;
	int r = is_left_by_checkout(log, oid) ? 0 : is_replaced(search, oid, err);

	if (r == 0)
		r = count(search, oid, &n, err);
	if (r != 0 || n == 0)
		return r < 0 ? r : 0;
	(void)snprintf(text, sizeof(text), "commit %.12s of the sandbox is new and on no branch (HEAD was detached or reset)", oid);
	return hf_land_rest_add(&landing->rest, "commit", text, oid, "", n) < 0 ? hf_fail_sys(err, ENOMEM, "memory", oid) : 0;
}

/* Commits that only reflogs reach. */
static int take_rest(struct search *search, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf log = HF_BUF_INIT;
	struct hf_git git = inside(search, &log);
	int n = 0, r;

	for (size_t i = 0; i < search->work->landing.rest.n; i++)
		hf_buf_add_format(&search->known, "^%s\n", search->work->landing.rest.list[i].commit);
	hf_buf_reset(&search->new);
	git.in = search->known.s;
	git.in_len = search->known.len;
	git.out = &search->new;
	/* A branch whose every change HEAD has is still a branch. */
	r = hf_git(&git, err, "rev-list", "--parents", "--ignore-missing", "--reflog", "--stdin", "--not", "--all", NULL);
	if (r != 0 || !search->new.len)
		return r < 0 ? r : 0;
	git = inside(search, &log);
	r = hf_git(&git, err, "log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--", NULL);
	for (const char *line = search->new.s; r >= 0 && n < LOOSE_MAX && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, " \n");
		char oid[HF_LAND_OID_MAX];

		if (len >= sizeof(oid) || is_parent(search, line, len))
			continue;
		memcpy(oid, line, len);
		oid[len] = '\0';
		n++;
		r = take_loose(search, oid, &log, err);
	}
	return r < 0 ? r : 0;
}

/* "COMMIT REF": a killed landing may have made the ref without a record. */
static int adopt(struct search *search, char *line, struct hf_err *err)
{
	struct hf_landing *landing = &search->work->landing;
	char *ref = strchr(line, ' '), own[HF_NAME_KEY_MAX + 32], text[200];
	size_t len;

	if (!ref)
		return 0;
	*ref++ = '\0';
	hf_land_ref(landing->name, own);
	len = strlen(own);
	if (strncmp(ref, own, len) != 0 || ref[len] != '+')
		return 0;
	for (size_t i = 0; i < landing->rest.n; i++)
		if (strcmp(landing->rest.list[i].ref, ref) == 0)
			return 0;
	(void)snprintf(text, sizeof(text), "%.100s of the sandbox is not on %.40s", ref + len + 1, hf_land_short(landing->branch));
	return hf_land_rest_add(&landing->rest, ref + len + 1, text, line, ref, 1) < 0 ? hf_fail_sys(err, ENOMEM, "memory", ref) : 0;
}

static int adopt_refs(struct search *search, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	struct hf_git outside = { .dir = search->work->landing.common, .out = &refs };
	int r = hf_git(&outside, err, "for-each-ref", "--format=%(objectname) %(refname)", "refs/holdfast/", NULL);

	return r < 0 ? r : each_line(search, &refs, adopt, err);
}

/* -- the whole ------------------------------------------------------------------------------- */

int hf_land_find_rest(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_err *err)
{
	AUTO(search_done) struct search search = { work, left, HF_BUF_INIT, HF_BUF_INIT };
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	struct hf_git outside = { .dir = work->landing.common, .out = &refs };
	int r;

	hf_land_rest_forget(&work->landing.rest);
	if (!hf_touched_has_refs(touched, left->head))
		return 0;
	r = hf_git(&outside, err, "rev-list", "--no-walk=unsorted", "--ignore-missing", "--all", "--reflog", NULL);
	if (r < 0)
		return r;
	/* The base is not new, even if the branch was rewritten since then. */
	hf_buf_add_format(&search.known, "^HEAD\n^%s\n", work->landing.base);
	r = each_line(&search, &refs, add_known, err);
	if (r == 0)
		r = adopt_refs(&search, err);
	if (r == 0)
		r = list_new(&search, err);
	if (r > 0)
		return hf_land_reject(work, err, "the branches of its sandbox cannot be read");
	if (r == 0 && search.new.len)
		r = take_refs(&search, err);
	return r == 0 && search.new.len ? take_rest(&search, err) : r;
}
