/* tx/land/take/outside.c - making commits anew without the paths that a user was editing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/outside.h"
#include "hf/tx/land/take/touched.h"
#include "holdfast/state.h"

#define PATHS_MAX 20 /* on one command line */

struct leaving {
	struct hf_land_work *work;
	const char *paths[PATHS_MAX]; /* of landing.outside: those that are left out */
	size_t n;
	struct hf_buf entries;        /* what base has in their places, for update-index --index-info */
	char *index;                  /* "GIT_INDEX_FILE=..." */
	char tip[HF_LAND_OID_MAX];    /* of the commits that were made so far */
	char tree[HF_LAND_OID_MAX];   /* its tree */
	char before[HF_LAND_OID_MAX]; /* the tree of the agent's commit that it stands for */
	unsigned commits, is_signed;
};

/* And the lock of a git that was killed. */
static void remove_index(const struct leaving *leaving)
{
	const char *path = leaving->index ? strchr(leaving->index, '=') + 1 : NULL;
	AUTO_FREE char *lock = NULL;

	if (!path)
		return;
	(void)unlink(path);
	if (asprintf(&lock, "%s.lock", path) < 0)
		lock = NULL;
	else
		(void)unlink(lock);
}

static void leaving_done(struct leaving *leaving)
{
	remove_index(leaving);
	free(leaving->index);
	hf_buf_done(&leaving->entries);
}

/* Runs git with the words and then the paths, each as it is. The exit status, or an error. */
static int ask_paths(const struct leaving *leaving, const char *dir, const char *const *words, struct hf_buf *out, struct hf_err *err)
{
	static const char *const literal[] = { "GIT_LITERAL_PATHSPECS=1", NULL };
	const char *all[HF_GIT_WORDS_MAX + 1];
	struct hf_git git = { .dir = dir, .out = out, .env = literal };
	size_t n = 0;

	while (words[n] && n < HF_GIT_WORDS_MAX - PATHS_MAX) {
		all[n] = words[n];
		n++;
	}
	for (size_t i = 0; i < leaving->n; i++)
		all[n++] = leaving->paths[i];
	all[n] = NULL;
	return hf_git_words(&git, all, err);
}

/* -- which paths ----------------------------------------------------------------------------- */

static int is_in_status(const struct hf_buf *out, const char *path)
{
	for (const char *row = out->s; row < out->s + out->len; row += strlen(row) + 1) {
		const char *at = hf_status_path(row);

		if (at && strcmp(at, path) == 0)
			return 1;
	}
	return 0;
}

/* Keeps those that the user has not committed. 0 or an error; leaving->n is 0 when there is none. */
static int choose(struct leaving *leaving, struct hf_err *err)
{
	static const char *const words[] = { "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty", "--", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_landing *landing = &leaving->work->landing;
	size_t kept = 0;
	int r;

	if (landing->outside.n > PATHS_MAX)
		return 0;
	for (; leaving->n < landing->outside.n; leaving->n++)
		leaving->paths[leaving->n] = landing->outside.list[leaving->n].path;
	r = ask_paths(leaving, landing->top, words, &out, err);
	for (size_t i = 0; r == 0 && i < leaving->n; i++)
		if (is_in_status(&out, leaving->paths[i]))
			leaving->paths[kept++] = leaving->paths[i];
	leaving->n = kept;
	return r < 0 ? r : 0;
}

/* What base has there, or that it has nothing. */
static int read_base(struct leaving *leaving, struct hf_err *err)
{
	const struct hf_landing *landing = &leaving->work->landing;
	const char *const words[] = { "ls-tree", "-z", "--full-tree", landing->base, "--", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	int r = ask_paths(leaving, landing->common, words, &out, err);

	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", landing->common, "git ls-tree failed");
	for (size_t i = 0; i < leaving->n; i++)
		hf_buf_add_format(&leaving->entries, "0 %0*d\t%s%c", (int)strlen(landing->base), 0, leaving->paths[i], '\0');
	hf_buf_add(&leaving->entries, out.s, out.len);
	return leaving->entries.err ? hf_fail_sys(err, ENOMEM, "memory", landing->name) : 0;
}

/* -- the commits ----------------------------------------------------------------------------- */

/* The line without its end, as an object's name. */
static int take_oid(const char *line, char ret[HF_LAND_OID_MAX])
{
	size_t len = strcspn(line, "\n");

	if (len >= HF_LAND_OID_MAX)
		return 0;
	memcpy(ret, line, len);
	ret[len] = '\0';
	return hf_git_is_oid(ret);
}

/* 0; 1: git cannot; or an error. */
static int make_tree(const struct leaving *leaving, const char *commit, char ret[HF_LAND_OID_MAX], struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const char *const env[] = { leaving->index, NULL };
	struct hf_git git = { .dir = leaving->work->landing.common, .env = env };
	struct hf_git put = { .dir = git.dir, .env = env, .in = leaving->entries.s, .in_len = leaving->entries.len };
	struct hf_git write = { .dir = git.dir, .env = env, .out = &out };
	int r = hf_git(&git, err, "read-tree", commit, NULL);

	if (r == 0)
		r = hf_git(&put, err, "update-index", "-z", "--index-info", NULL);
	if (r == 0)
		r = hf_git(&write, err, "write-tree", NULL);
	return r < 0 ? r : r > 0 || !take_oid(out.s, ret);
}

/* The commit as it is stored, with another tree and another parent, and without a signature, which would not hold. */
static void rewrite(struct leaving *leaving, const char *raw, const char *tree, struct hf_buf *ret)
{
	const char *end;
	int is_signature = 0;

	hf_buf_add_format(ret, "tree %s\nparent %s\n", tree, leaving->tip);
	for (; *raw && *raw != '\n'; raw = end) {
		end = raw + strcspn(raw, "\n");
		end += *end == '\n';
		is_signature = raw[0] == ' ' ? is_signature : strncmp(raw, "gpgsig", 6) == 0;
		leaving->is_signed += is_signature && raw[0] != ' ';
		if (!is_signature && strncmp(raw, "tree ", 5) != 0 && strncmp(raw, "parent ", 7) != 0)
			hf_buf_add(ret, raw, (size_t)(end - raw));
	}
	hf_buf_add_text(ret, raw);
}

/* 0; 1: it cannot be made anew; or an error. */
static int make_commit(struct leaving *leaving, const char *commit, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf raw = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git read = { .dir = leaving->work->landing.common, .out = &raw };
	struct hf_git write = { .dir = read.dir, .out = &out };
	char tree[HF_LAND_OID_MAX], was[HF_LAND_OID_MAX];
	int r = hf_git(&read, err, "cat-file", "commit", commit, NULL);
	int is_empty;

	if (r != 0 || strlen(raw.s) != raw.len || strncmp(raw.s, "tree ", 5) != 0 || !take_oid(raw.s + 5, was))
		return r < 0 ? r : 1;
	is_empty = strcmp(was, leaving->before) == 0;
	memcpy(leaving->before, was, sizeof(was));
	r = make_tree(leaving, commit, tree, err);
	/* It changed nothing else. One that was empty before stays. */
	if (r != 0 || (strcmp(tree, leaving->tree) == 0 && !is_empty))
		return r;
	rewrite(leaving, raw.s, tree, &text);
	if (text.err)
		return hf_fail_sys(err, ENOMEM, "memory", commit);
	write.in = text.s;
	write.in_len = text.len;
	r = hf_git(&write, err, "hash-object", "-t", "commit", "-w", "--stdin", NULL);
	if (r != 0 || !take_oid(out.s, leaving->tip))
		return r < 0 ? r : 1;
	memcpy(leaving->tree, tree, sizeof(tree));
	leaving->commits++;
	return 0;
}

/* 1: all of them were made anew; 0: there is one that cannot be, as a merge; or an error. */
static int make_all(struct leaving *leaving, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_landing *landing = &leaving->work->landing;
	struct hf_git git = { .dir = landing->common, .out = &out };
	char range[2 * HF_LAND_OID_MAX + 4], rev[HF_LAND_OID_MAX + 8];
	int r;

	(void)snprintf(rev, sizeof(rev), "%s^{tree}", landing->base);
	hf_copy_text(leaving->tip, sizeof(leaving->tip), landing->base);
	r = hf_git_oid(&git, rev, leaving->tree, err);
	memcpy(leaving->before, leaving->tree, sizeof(leaving->before));
	(void)snprintf(range, sizeof(range), "%s..%s", landing->base, landing->tip);
	if (r == 0)
		r = hf_git(&git, err, "rev-list", "--merges", "--count", range, NULL);
	if (r != 0 || strcmp(out.s, "0\n") != 0)
		return r < 0 ? r : 0;
	r = hf_git(&git, err, "rev-list", "--reverse", "--topo-order", range, NULL);
	for (char *at = out.s, *next; r == 0 && *at; at = next) {
		next = at + strcspn(at, "\n");
		if (*next)
			*next++ = '\0';
		r = make_commit(leaving, at, err);
	}
	return r < 0 ? r : r == 0;
}

/* -- the whole ------------------------------------------------------------------------------- */

static int is_left_out(const struct leaving *leaving, const char *path)
{
	for (size_t i = 0; i < leaving->n; i++)
		if (leaving->paths[i] == path)
			return 1;
	return 0;
}

static void take_over(struct leaving *leaving)
{
	struct hf_landing *landing = &leaving->work->landing;
	size_t kept = 0;

	hf_copy_text(landing->tip, sizeof(landing->tip), leaving->tip);
	landing->commits = leaving->commits;
	landing->left_out = (unsigned)leaving->n;
	landing->unsigned_commits += leaving->is_signed;
	hf_copy_text(landing->first_left_out, sizeof(landing->first_left_out), leaving->paths[0]);
	for (size_t i = 0; i < landing->outside.n; i++) {
		if (is_left_out(leaving, landing->outside.list[i].path))
			free((char *)(uintptr_t)landing->outside.list[i].path);
		else
			landing->outside.list[kept++] = landing->outside.list[i];
	}
	landing->outside.n = kept;
}

int hf_land_leave_out(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(leaving_done) struct leaving leaving = { .work = work, .entries = HF_BUF_INIT };
	char key[HF_NAME_KEY_MAX];
	int r = choose(&leaving, err);

	if (r < 0 || leaving.n == 0)
		return r;
	/* By the candidate's name, whose lock is held: what a killed landing left is in nobody's use. */
	r = hf_name_key(work->landing.name, strlen(work->landing.name), key, err);
	if (r < 0)
		return r;
	if (asprintf(&leaving.index, "GIT_INDEX_FILE=%s/landings/.index-%s", hf_state_path(work->landings->state), key) < 0) {
		leaving.index = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	}
	remove_index(&leaving);
	r = read_base(&leaving, err);
	if (r == 0)
		r = make_all(&leaving, err);
	if (r == 1 && leaving.commits > 0)
		take_over(&leaving);
	return r < 0 ? r : 0;
}
