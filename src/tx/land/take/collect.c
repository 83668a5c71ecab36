/*
 * tx/land/take/collect.c - what the agent left becomes commits, in its own sandbox, and those come into the repository.
 *
 * The agent may have done anything to its repository. Nothing here believes it: a state that cannot be understood is rejected,
 * and the sandbox kept.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/take/touched.h"

/* REJECTED, its plan kept. */
int hf_land_reject(struct hf_land_work *work, struct hf_err *err, const char *text)
{
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_REJECTED, err,
				  "%.160s; the sandbox is kept: holdfast plan diff %.40s", text, work->landing.plan);

	return r < 0 ? r : 1;
}

int hf_land_reject_said(struct hf_land_work *work, const char *what, const struct hf_buf *said, struct hf_err *err)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "%s: %.120s", what, said->len ? said->s : "git failed without a word");
	return hf_land_reject(work, err, text);
}

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top,
				.out = out, .said = said };
}

/* No process is left in the sandbox, so a lock there has no holder: a git that was killed made it, the agent's or ours. */
static int remove_locks(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	AUTO_FREE const char **argv = calloc(touched->n_locks + 6, sizeof(*argv));
	AUTO_FREE char *index = NULL;
	AUTO_FREE char *head = NULL;
	struct hf_git git = inside(work, NULL, NULL);
	size_t n = 0;
	int r;

	if (asprintf(&index, "%s/index.lock", work->landing.git_dir) < 0)
		index = NULL;
	if (asprintf(&head, "%s/HEAD.lock", work->landing.git_dir) < 0)
		head = NULL;
	if (!argv || !index || !head)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	argv[n++] = "rm";
	argv[n++] = "-f";
	argv[n++] = "--";
	/* These two also when they are only seen through it: a user's git, whose lock is none in the sandbox. */
	argv[n++] = index;
	argv[n++] = head;
	for (size_t i = 0; i < touched->n_locks; i++)
		argv[n++] = touched->locks[i];
	r = hf_git_other(&git, argv, err);
	return r < 0 ? r : 0;
}

/* A rebase, merge or the like that the agent began and did not end. */
static int check_under_way(struct hf_land_work *work, struct hf_err *err)
{
	static const char heads[] = "MERGE_HEAD\nREBASE_HEAD\nCHERRY_PICK_HEAD\nREVERT_HEAD\n";
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, &out, &said);
	int r;

	git.in = heads;
	git.in_len = sizeof(heads) - 1;
	r = hf_git(&git, err, "cat-file", "--batch-check=%(objecttype)", NULL);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its repository cannot be read", &said, err);
	/* What is missing is said with its name; what is there is "commit". */
	if (strstr(out.s, "commit\n"))
		return hf_land_reject(work, err, "a merge, rebase or cherry-pick was begun and not ended");
	git.in = NULL;
	r = hf_git(&git, err, "ls-files", "--unmerged", "-z", NULL);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its index cannot be read", &said, err);
	return out.len ? hf_land_reject(work, err, "it has unmerged paths") : 0;
}

static void make_message(const struct hf_land_work *work, struct hf_buf *out)
{
	const struct hf_landing *landing = &work->landing;
	char name[HF_NAME_MAX + 1];

	(void)hf_name_sanitize(landing->name, strlen(landing->name), name, sizeof(name));
	if (landing->message[0])
		hf_buf_add_text(out, landing->message);
	else
		hf_buf_add_format(out, "Work of %s", name);
	hf_buf_add_text(out, "\n\n");
	if (landing->session[0]) {
		(void)hf_name_sanitize(landing->session, strlen(landing->session), name, sizeof(name));
		hf_buf_add_format(out, "Holdfast-Session: %s\n", name);
	}
	if (landing->token)
		hf_buf_add_format(out, "Holdfast-Token: %llu\n", (unsigned long long)landing->token);
}

/* Without an identity, git would refuse to commit what an agent leaves. */
static int has_identity(const struct hf_land_work *work, struct hf_err *err)
{
	struct hf_git git = inside(work, NULL, NULL);
	int r = hf_git(&git, err, "var", "GIT_COMMITTER_IDENT", NULL);

	return r < 0 ? r : r == 0;
}

/* Adds to `paths` those of a list that the agent changed; what is only seen through the sandbox is another's. */
static int add_touched(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_buf *list,
		       struct hf_buf *paths, struct hf_err *err)
{
	for (const char *at = list->s; at < list->s + list->len; at += strlen(at) + 1) {
		size_t len = strlen(at);

		if (len && at[len - 1] == '/')
			return hf_land_reject(work, err, "it holds another repository, which a commit cannot");
		if (hf_touched_has(touched, at) || hf_touched_below(touched, at))
			hf_buf_add(paths, at, len + 1);
	}
	return 0;
}

/* Of the files that git ignores those that a glob of `also` matches. */
static int add_also(struct hf_land_work *work, const struct hf_touched *touched, struct hf_buf *paths, struct hf_err *err)
{
	const char *const *also = work->opts->also;
	int r = 0;

	for (size_t i = 0; r == 0 && also && also[i]; i++) {
		AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
		AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
		AUTO_FREE char *spec = NULL;
		struct hf_git git = inside(work, &out, &said);

		if (asprintf(&spec, ":(top,glob)%s", also[i] + strspn(also[i], "/")) < 0)
			return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
		r = hf_git(&git, err, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", spec, NULL);
		if (r > 0)
			return hf_land_reject_said(work, "--also", &said, err);
		if (r == 0)
			r = add_touched(work, touched, &out, paths, err);
	}
	return r;
}

/* Into the index goes what the agent changed and did not commit. */
static int stage_rest(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf paths = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, &out, &said);
	int r = hf_git(&git, err, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard", NULL);

	if (r > 0)
		return hf_land_reject_said(work, "its work tree cannot be read", &said, err);
	if (r == 0)
		r = add_touched(work, touched, &out, &paths, err);
	if (r == 0)
		r = add_also(work, touched, &paths, err);
	if (r != 0 || paths.err || !paths.len)
		return r != 0 ? r : paths.err ? hf_fail_sys(err, ENOMEM, "memory", work->landing.name) : 0;
	git.in = paths.s;
	git.in_len = paths.len;
	git.out = NULL;
	r = hf_git(&git, err, "update-index", "--add", "--remove", "-z", "--stdin", NULL);
	if (r > 0 && work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	return r > 0 ? hf_land_reject_said(work, "what it left cannot be added", &said, err) : r;
}

static int commit_rest(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	static const char *const nobody[] = { "GIT_AUTHOR_NAME=Holdfast", "GIT_AUTHOR_EMAIL=holdfast@localhost",
					      "GIT_COMMITTER_NAME=Holdfast", "GIT_COMMITTER_EMAIL=holdfast@localhost", NULL };
	AUTO(hf_buf_done) struct hf_buf message = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL, &said);
	int r = stage_rest(work, touched, err);

	if (r != 0)
		return r;
	r = hf_git(&git, err, "diff-index", "--cached", "--quiet", "HEAD", "--", NULL);
	if (r == 0 || r < 0)
		return r;
	r = has_identity(work, err);
	if (r < 0)
		return r;
	git.env = r ? NULL : nobody;
	make_message(work, &message);
	git.in = message.s;
	git.in_len = message.len;
	git.hooks = 1;
	if (message.err)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	r = hf_git(&git, err, "commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "-F", "-", NULL);
	if (r > 0 && work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	return r > 0 ? hf_land_reject_said(work, "what it left cannot be committed (a hook?)", &said, err) : r;
}

/* -- the whole -------------------------------------------------------------------------- */

/* Commits that no ref of the repository has, on another branch than HEAD? Then nothing is not all there is. */
static int check_elsewhere(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git outside = { .dir = work->landing.common, .out = &refs };
	struct hf_git git = inside(work, &out, NULL);
	int r = hf_git(&outside, err, "for-each-ref", "--format=^%(objectname)", NULL);

	if (r < 0)
		return r;
	/* What it began with is not new, even if the branch was rewritten since then. */
	hf_buf_add_format(&refs, "^%s\n", work->landing.base);
	if (refs.err)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	git.in = refs.s;
	git.in_len = refs.len;
	r = hf_git(&git, err, "rev-list", "--count", "--branches", "--ignore-missing", "--stdin", NULL);
	return r < 0 ? r : r == 0 && strcmp(out.s, "0\n") != 0;
}

static int nothing_to_land(struct hf_land_work *work, struct hf_err *err)
{
	int r = check_elsewhere(work, err);

	if (r < 0)
		return r;
	if (r)
		return hf_land_reject(work, err, "HEAD is where it began, but another branch of the sandbox has new commits");
	hf_copy_text(work->landing.commit, sizeof(work->landing.commit), work->landing.base);
	work->landing.commits = 0;
	work->landing.files = 0;
	r = hf_land_prove(work, err);
	if (r != 0)
		return r;
	return hf_land_reject(work, err, "it made nothing, and the commit that it began with is not part of the branch (rewritten?)");
}

static int count_commits(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	char range[2 * HF_LAND_OID_MAX + 4];
	struct hf_git git = { .dir = work->landing.common, .out = &out };
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", work->landing.base, work->landing.tip);
	r = hf_git(&git, err, "rev-list", "--count", range, NULL);
	work->landing.commits = 0;
	for (const char *c = out.s; r == 0 && *c >= '0' && *c <= '9'; c++)
		work->landing.commits = work->landing.commits * 10 + (unsigned)(*c - '0');
	return r < 0 ? r : 0;
}

static int keep(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = { .dir = landing->common, .said = &said };
	char ref[HF_NAME_KEY_MAX + 32];
	int r;

	hf_land_ref(landing->name, ref);
	r = hf_git(&git, err, "update-ref", "-m", "holdfast: kept", ref, landing->tip, NULL);
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, landing->common, "update-ref", err);
	struct hf_field fields[] = { HF_FIELD_TEXT("branch", hf_land_short(landing->branch)),
				     HF_FIELD_TEXT("commit", landing->tip), HF_FIELD_INT("commits", landing->commits),
				     HF_FIELD_INT("files", landing->files) };
	hf_land_event(work->landings, HF_EV_LAND_KEPT, landing->name, fields, 4);
	return 0;
}

int hf_land_collect(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(work, NULL, &said);
	char tip[HF_LAND_OID_MAX] = "";
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	if (r == 0)
		r = remove_locks(work, &touched, err);
	if (r == 0)
		r = hf_git_oid(&git, "HEAD^{commit}", tip, err);
	if (r > 0)
		return hf_land_reject(work, err, "the agent left no repository with a commit");
	if (r == 0)
		r = check_under_way(work, err);
	if (r == 0)
		while ((r = commit_rest(work, &touched, err)) == -EAGAIN) {
			/* Seen through the sandbox: a lock of a user's git, which is gone in a moment. */
			hf_pause(50 * HF_MSEC);
			r = remove_locks(work, &touched, err);
			if (r < 0)
				return r;
		}
	if (r == 0)
		r = hf_git_oid(&git, "HEAD^{commit}", tip, err);
	if (r != 0)
		return r;
	if (strcmp(tip, landing->base) == 0)
		return nothing_to_land(work, err);
	r = hf_land_export(work, landing->plan, tip, landing->base, &said, err);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its commits cannot be taken", &said, err);
	/* From here on the real repository is asked, which the agent has not touched. */
	git = (struct hf_git){ .dir = landing->common };
	r = hf_git(&git, err, "merge-base", "--is-ancestor", landing->base, tip, NULL);
	if (r != 0)
		return r < 0 ? r :
			       hf_land_reject(work, err, "its history no longer contains the commit that it began with (rewritten?)");
	hf_copy_text(landing->tip, sizeof(landing->tip), tip);
	r = hf_land_check_changes(work, &touched, err);
	if (r == 0)
		r = count_commits(work, err);
	return r != 0 ? r : keep(work, err);
}
