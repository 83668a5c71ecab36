/* tx/land/take/elsewhere.c - work that the agent committed, but not on HEAD: it would go with the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top,
				.out = out, .said = said };
}

/*
 * Commits of the sandbox that HEAD does not have, one per line: what its branches, tags, stashes and reflogs (a HEAD that was detached) have, but
 * neither a ref of the repository nor a remote. 0; 1: what git said; or an error.
 */
static int list_elsewhere(struct hf_land_work *work, struct hf_buf *out, struct hf_buf *said, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	struct hf_git outside = { .dir = work->landing.common, .out = &refs };
	struct hf_git git = inside(work, out, said);
	int r = hf_git(&outside, err, "for-each-ref", "--format=^%(objectname)", NULL);

	if (r < 0)
		return r;
	/* What it began with is not new, even if the branch was rewritten since then. */
	hf_buf_add_format(&refs, "^%s\n", work->landing.base);
	if (refs.err)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	git.in = refs.s;
	git.in_len = refs.len;
	r = hf_git(&git, err, "rev-list", "--ignore-missing", "--exclude=refs/remotes/*", "--all", "--reflog", "--stdin", "--not", "--remotes", NULL);
	return r < 0 ? r : r != 0;
}

#define NEW_MAX 8 /* commits that are looked for by name */

/* Those of the list that the repository does not have: its own reflogs are seen through the sandbox, and have old commits of its user. */
static int find_new(const struct hf_land_work *work, const struct hf_buf *list, char ret[NEW_MAX][HF_LAND_OID_MAX], struct hf_err *err)
{
	static const char *const offline[] = { "GIT_NO_LAZY_FETCH=1", NULL };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = work->landing.common, .env = offline, .in = list->s, .in_len = list->len, .out = &out };
	int n = 0, r = list->len ? hf_git(&git, err, "cat-file", "--batch-check=%(objectname)", NULL) : 0;

	if (r != 0)
		return r < 0 ? r : FAIL(err, HF_E_LAND, "git", git.dir, "git cat-file failed");
	for (char *at = out.s, *next; n < NEW_MAX && at < out.s + out.len; at = next) {
		char *word;

		next = at + strcspn(at, "\n");
		next += *next == '\n';
		word = memchr(at, ' ', (size_t)(next - at));
		if (!word || strncmp(word, " missing\n", 9) != 0)
			continue;
		*word = '\0';
		if (hf_git_is_oid(at))
			hf_copy_text(ret[n++], HF_LAND_OID_MAX, at);
	}
	return n;
}

/* In words: which ref of the sandbox has one of the commits? */
static int tell_where(const struct hf_land_work *work, char new[NEW_MAX][HF_LAND_OID_MAX], int n, char *text, size_t cap, struct hf_err *err)
{
	static const struct {
		const char *begin, *what;
	} kinds[] = { { "refs/heads/", "branch " }, { "refs/tags/", "tag " }, { "refs/stash", "a stash" }, { "", "" } };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(work, &out, NULL);
	const char *words[2 * NEW_MAX + 3] = { "for-each-ref", "--format=%(refname)" };
	size_t kind = 0, len;
	int r;

	for (int i = 0; i < n; i++) {
		words[2 + 2 * i] = "--contains";
		words[3 + 2 * i] = new[i];
	}
	r = hf_git_words(&git, words, err);
	if (r < 0)
		return r;
	out.s[strcspn(out.s, "\n")] = '\0';
	if (r > 0 || !out.s[0]) {
		(void)snprintf(text, cap, "HEAD is where it began, but commit %.12s of the sandbox is new, and on no branch (HEAD was detached, or reset)", new[0]);
		return 0;
	}
	while (strncmp(out.s, kinds[kind].begin, strlen(kinds[kind].begin)) != 0)
		kind++;
	len = strlen(kinds[kind].begin);
	(void)snprintf(text, cap, "HEAD is where it began, but %s%.60s of the sandbox has new commits (%.12s)", kinds[kind].what, out.s + len, new[0]);
	return 0;
}

int hf_land_check_elsewhere(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf list = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	char new[NEW_MAX][HF_LAND_OID_MAX], text[200];
	int r = list_elsewhere(work, &list, &said, err), n;

	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "HEAD is where it began, and its other branches cannot be read", &said, err);
	n = find_new(work, &list, new, err);
	if (n <= 0)
		return n;
	r = tell_where(work, new, n, text, sizeof(text), err);
	return r < 0 ? r : hf_land_reject(work, err, text);
}
