/*
 * tx/land/move/onto.c - puts the commits of a candidate onto the branch, on objects.
 *
 * No file is checked out, except for .gitattributes, so no file of the user can be in the way. git merge-tree takes the base of a merge from
 * the history of its two commits. A commit that moves therefore gets a history of three made-up commits: the first has the tree of its parent; its two
 * children have the tree of the commit and the tree that it goes onto. These stay in the sandbox.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/move/onto.h"

#define ATTRIBUTES ":(top,glob)**/.gitattributes"

static struct hf_git inside(const struct hf_onto *onto, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = onto->work->landings->plans, .plan = onto->plan, .dir = onto->work->landing.top, .env = onto->env,
				.out = out, .said = said };
}

/* git reads attributes from the work tree: there it finds the branch's, without the user's edits. Returns an exit status, or an error. */
static int show_attributes(const struct hf_onto *onto, struct hf_buf *said, struct hf_err *err)
{
	struct hf_git git = inside(onto, NULL, said);
	int r = hf_git(&git, err, "diff-index", "--quiet", onto->work->head, "--", ATTRIBUTES, NULL);

	if (r == 1)
		r = hf_git(&git, err, "restore", "--source", onto->work->head, "--staged", "--worktree", "--", ATTRIBUTES, NULL);
	return r == 0 ? hf_git(&git, err, "clean", "-q", "-f", "-d", "--", ATTRIBUTES, NULL) : r;
}

/* -- one commit ------------------------------------------------------------------------------ */

struct commit {
	struct hf_buf raw;
	char tree[HF_LAND_OID_MAX], parent[HF_LAND_OID_MAX]; /* the first parent; "": none */
	char *name, *email, *date;                           /* of the author */
	const char *encoding, *message;
};

static void commit_done(struct commit *commit)
{
	hf_buf_done(&commit->raw);
	free(commit->name);
	free(commit->email);
	free(commit->date);
}

/* "NAME <EMAIL> SECONDS ZONE", as variables of git. */
static int read_author(struct commit *commit, const char *line)
{
	const char *open = strstr(line, " <"), *close = strrchr(line, '>');

	if (line[0] == '<')
		open = line - 1;
	if (!open || !close || close < open + 2)
		return -EINVAL;
	if (asprintf(&commit->name, "GIT_AUTHOR_NAME=%.*s", open > line ? (int)(open - line) : 0, line) < 0)
		commit->name = NULL;
	if (asprintf(&commit->email, "GIT_AUTHOR_EMAIL=%.*s", (int)(close - open - 2), open + 2) < 0)
		commit->email = NULL;
	if (asprintf(&commit->date, "GIT_AUTHOR_DATE=@%s", close + 1 + strspn(close + 1, " ")) < 0)
		commit->date = NULL;
	return commit->name && commit->email && commit->date ? 0 : -ENOMEM;
}

static int read_header(struct commit *commit, char *line)
{
	if (strncmp(line, "tree ", 5) == 0)
		hf_copy_text(commit->tree, sizeof(commit->tree), line + 5);
	else if (strncmp(line, "parent ", 7) == 0 && !commit->parent[0])
		hf_copy_text(commit->parent, sizeof(commit->parent), line + 7);
	else if (strncmp(line, "encoding ", 9) == 0)
		commit->encoding = line + 9;
	else if (strncmp(line, "author ", 7) == 0 && !commit->name)
		return read_author(commit, line + 7);
	return 0;
}

static int read_commit(const struct hf_onto *onto, const char *oid, struct commit *ret, struct hf_buf *said, struct hf_err *err)
{
	struct hf_git git = inside(onto, &ret->raw, said);
	int r = hf_git(&git, err, "cat-file", "commit", oid, NULL);
	char *line = ret->raw.s;

	if (r != 0)
		return r;
	ret->encoding = "UTF-8";
	while (*line && *line != '\n') {
		size_t len = strcspn(line, "\n");
		char *next = line + len + (line[len] == '\n');

		line[len] = '\0';
		r = read_header(ret, line);
		if (r < 0)
			return r == -ENOMEM ? hf_fail_sys(err, ENOMEM, "memory", oid) :
					      FAIL(err, HF_E_LAND, "git", onto->work->landing.common, "commit %s has no author that can be read", oid);
		line = next;
	}
	ret->message = *line ? line + 1 : line;
	return 0;
}

static void take_oid(struct hf_buf *out, char ret[HF_LAND_OID_MAX])
{
	if (out->len && out->s[out->len - 1] == '\n')
		out->s[out->len - 1] = '\0';
	hf_copy_text(ret, HF_LAND_OID_MAX, out->s);
}

/* The tree of a commit; of "" the empty one. Returns an exit status, or an error. */
static int find_tree(const struct hf_onto *onto, const char *commit, char ret[HF_LAND_OID_MAX], struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(onto, &out, NULL);
	char rev[HF_LAND_OID_MAX + 8];
	int r;

	(void)snprintf(rev, sizeof(rev), "%s^{tree}", commit);
	if (commit[0])
		return hf_git_oid(&git, rev, ret, err);
	r = hf_git(&git, err, "mktree", NULL);
	take_oid(&out, ret);
	return r;
}

/* -- new commits ----------------------------------------------------------------------------- */

/* Runs commit-tree with `git` and at most two parents. Returns its exit status, or an error. */
static int write_commit(struct hf_git *git, const char *encoding, int sign, const char *tree, const char *const parents[2], const char *message,
			char ret[HF_LAND_OID_MAX], struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	char setting[96];
	const char *words[16] = { "-c", setting, "commit-tree", sign ? "--gpg-sign" : "--no-gpg-sign", "-F", "-", tree };
	size_t n = 7;
	int r;

	(void)snprintf(setting, sizeof(setting), "i18n.commitEncoding=%.64s", encoding);
	for (int i = 0; i < 2 && parents[i]; i++) {
		words[n++] = "-p";
		words[n++] = parents[i];
	}
	git->out = &out;
	git->in = message;
	git->in_len = strlen(message);
	r = hf_git_words(git, words, err);
	take_oid(&out, ret);
	return r;
}

/* A commit that only merge-tree sees. */
static int make_up(const struct hf_onto *onto, const char *tree, const char *parent, char ret[HF_LAND_OID_MAX], struct hf_buf *said, struct hf_err *err)
{
	static const char *const nobody[] = { "GIT_AUTHOR_NAME=Holdfast", "GIT_AUTHOR_EMAIL=holdfast@localhost", "GIT_COMMITTER_NAME=Holdfast",
					      "GIT_COMMITTER_EMAIL=holdfast@localhost", NULL };
	struct hf_git git = inside(onto, NULL, said);

	git.env = nobody;
	return write_commit(&git, "UTF-8", 0, tree, (const char *const[]){ parent, NULL }, "holdfast: a step of a merge\n", ret, err);
}

static int add_conflicts(struct hf_landing *landing, const struct hf_buf *out, struct hf_err *err)
{
	for (const char *at = out->s + strlen(out->s) + 1; at < out->s + out->len && *at; at += strlen(at) + 1)
		if (hf_land_paths_add(&landing->paths, at, strlen(at), "content") < 0)
			return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	return landing->paths.n ? HF_ONTO_CONFLICT : HF_ONTO_REFUSED;
}

/* Merges two commits. Returns how it ended, with the tree in *ret, or an error. */
static int merge(const struct hf_onto *onto, const char *ours, const char *theirs, char ret[HF_LAND_OID_MAX], struct hf_buf *said, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(onto, &out, said);
	int r = hf_git(&git, err, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, NULL);

	if (r == 1)
		return add_conflicts(&onto->work->landing, &out, err);
	if (r != 0)
		return r < 0 ? r : HF_ONTO_REFUSED;
	hf_copy_text(ret, HF_LAND_OID_MAX, out.s);
	return HF_ONTO_DONE;
}

/* The change from `before` to `after`, made to `tree`, which is replaced. Returns how it ended, or an error. */
static int apply(const struct hf_onto *onto, const char *before, const char *after, char tree[HF_LAND_OID_MAX], struct hf_buf *said, struct hf_err *err)
{
	char parent[HF_LAND_OID_MAX], ours[HF_LAND_OID_MAX], theirs[HF_LAND_OID_MAX];
	int r;

	if (strcmp(before, tree) == 0)
		hf_copy_text(tree, HF_LAND_OID_MAX, after);
	if (strcmp(before, after) == 0 || strcmp(after, tree) == 0)
		return HF_ONTO_DONE;
	r = make_up(onto, before, NULL, parent, said, err);
	if (r == 0)
		r = make_up(onto, tree, parent, ours, said, err);
	if (r == 0)
		r = make_up(onto, after, parent, theirs, said, err);
	if (r != 0)
		return r < 0 ? r : HF_ONTO_REFUSED;
	return merge(onto, ours, theirs, tree, said, err);
}

/* Where the new commits are, and the last commit that was put there. */
struct place {
	char tip[HF_LAND_OID_MAX], tree[HF_LAND_OID_MAX];
	char last[HF_LAND_OID_MAX], last_tree[HF_LAND_OID_MAX];
};

static int put_one(const struct hf_onto *onto, const char *oid, struct place *place, struct hf_buf *said, struct hf_err *err)
{
	AUTO(commit_done) struct commit commit = { .raw = HF_BUF_INIT };
	char before[HF_LAND_OID_MAX], tree[HF_LAND_OID_MAX];
	const char *env[8];
	struct hf_git git = inside(onto, NULL, said);
	size_t n = 0;
	int r = read_commit(onto, oid, &commit, said, err);

	hf_copy_text(before, sizeof(before), place->last_tree);
	if (r == 0 && (!place->last[0] || strcmp(commit.parent, place->last) != 0))
		r = find_tree(onto, commit.parent, before, err);
	if (r != 0)
		return r < 0 ? r : HF_ONTO_REFUSED;
	hf_copy_text(tree, sizeof(tree), place->tree);
	r = apply(onto, before, commit.tree, tree, said, err);
	if (r != HF_ONTO_DONE)
		return r;
	hf_copy_text(place->last, sizeof(place->last), oid);
	hf_copy_text(place->last_tree, sizeof(place->last_tree), commit.tree);
	/* The branch has this change already. A commit without a change was empty on purpose. */
	if (strcmp(tree, place->tree) == 0 && strcmp(before, commit.tree) != 0)
		return HF_ONTO_DONE;
	/* The first of two variables with one name counts. */
	env[n++] = commit.name;
	env[n++] = commit.email;
	env[n++] = commit.date;
	for (size_t i = 0; onto->env && onto->env[i] && i < 4; i++)
		env[n++] = onto->env[i];
	env[n] = NULL;
	git.env = env;
	hf_copy_text(place->tree, sizeof(place->tree), tree);
	r = write_commit(&git, commit.encoding, onto->sign, tree, (const char *const[]){ place->tip, NULL }, commit.message, place->tip, err);
	return r < 0 ? r : r == 0 ? HF_ONTO_DONE : onto->sign ? HF_ONTO_UNSIGNED : HF_ONTO_REFUSED;
}

static int put_all(const struct hf_onto *onto, struct place *place, struct hf_buf *said, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(onto, &out, said);
	char range[2 * HF_LAND_OID_MAX + 4];
	int r;

	/* With three dots git leaves out commits that were cherry-picked to the other side. */
	(void)snprintf(range, sizeof(range), "%s...%s", onto->since, onto->work->landing.tip);
	r = hf_git(&git, err, "rev-list", "--reverse", "--topo-order", "--no-merges", "--cherry-pick", "--right-only", range, NULL);
	if (r != 0)
		return r < 0 ? r : HF_ONTO_REFUSED;
	for (char *rest = NULL, *oid = strtok_r(out.s, "\n", &rest); r == 0 && oid; oid = strtok_r(NULL, "\n", &rest))
		r = put_one(onto, oid, place, said, err);
	return r;
}

static int put_merge(const struct hf_onto *onto, struct place *place, struct hf_buf *said, struct hf_err *err)
{
	const struct hf_landing *landing = &onto->work->landing;
	const char *const parents[2] = { onto->work->head, landing->tip };
	char message[HF_NAME_MAX + 16] = "Merge ";
	struct hf_git git = inside(onto, NULL, said);
	int r = hf_git(&git, err, "merge-base", "--is-ancestor", landing->tip, onto->work->head, NULL);

	if (r == 0)
		return HF_ONTO_DONE;
	r = r < 0 ? r : merge(onto, onto->work->head, landing->tip, place->tree, said, err);
	if (r != HF_ONTO_DONE)
		return r;
	(void)hf_name_sanitize(landing->name, strlen(landing->name), message + 6, sizeof(message) - 8);
	hf_copy_text(message + strlen(message), 2, "\n");
	r = write_commit(&git, "UTF-8", onto->sign, place->tree, parents, message, place->tip, err);
	return r < 0 ? r : r == 0 ? HF_ONTO_DONE : onto->sign ? HF_ONTO_UNSIGNED : HF_ONTO_REFUSED;
}

int hf_land_put_onto(const struct hf_onto *onto, char ret[HF_LAND_OID_MAX], struct hf_buf *said, struct hf_err *err)
{
	struct place place = { 0 };
	int r = show_attributes(onto, said, err);

	hf_copy_text(place.tip, sizeof(place.tip), onto->work->head);
	if (r == 0)
		r = find_tree(onto, place.tip, place.tree, err);
	if (r != 0)
		return r < 0 ? r : HF_ONTO_REFUSED;
	r = onto->is_merge ? put_merge(onto, &place, said, err) : put_all(onto, &place, said, err);
	if (r == HF_ONTO_DONE)
		hf_copy_text(ret, HF_LAND_OID_MAX, place.tip);
	return r;
}
