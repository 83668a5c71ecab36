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
#include <unistd.h>

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

/* -- as the agent left it ------------------------------------------------------------------ */

/* Lock files of the sandbox's repository, absolute. */
struct locks {
	char *index, *head;
	const struct hf_touched *touched;
};

static void locks_done(struct locks *locks)
{
	free(locks->index);
	free(locks->head);
}

static int find_locks(const struct hf_land_work *work, const struct hf_touched *touched, struct locks *ret, struct hf_err *err)
{
	ret->touched = touched;
	if (asprintf(&ret->index, "%s/index.lock", work->landing.git_dir) < 0)
		ret->index = NULL;
	if (asprintf(&ret->head, "%s/HEAD.lock", work->landing.git_dir) < 0)
		ret->head = NULL;
	return ret->index && ret->head ? 0 : hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
}

/*
 * In a child, inside. No process is left in the sandbox, so a lock there has no holder: a git that was killed made it, the agent's
 * or ours. Those of index and HEAD also when they are only seen through it: a user's git, whose lock is none in the sandbox.
 * One that stays is told by the git that it stops.
 */
static int remove_locks(void *arg)
{
	const struct locks *locks = arg;

	(void)unlink(locks->index);
	(void)unlink(locks->head);
	for (size_t i = 0; i < locks->touched->n_locks; i++)
		(void)unlink(locks->touched->locks[i]);
	return 0;
}

/* Its commit, and whether a rebase, merge or the like was begun and not ended. 0; 1 it is rejected; an error. */
static int look(struct hf_land_work *work, struct locks *locks, char tip[HF_LAND_OID_MAX], struct hf_err *err)
{
	static const char heads[] = "HEAD^{commit}\nMERGE_HEAD\nREBASE_HEAD\nCHERRY_PICK_HEAD\nREVERT_HEAD\n";
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, &out, &said);
	size_t len;
	int r;

	git.before = remove_locks;
	git.before_arg = locks;
	git.in = heads;
	git.in_len = sizeof(heads) - 1;
	r = hf_git(&git, err, "cat-file", "--batch-check=%(objectname) %(objecttype)", NULL);
	if (r < 0)
		return r;
	/* "OID commit" for each that is there; "NAME missing" for the others. */
	len = strspn(out.s, "0123456789abcdef");
	if (r > 0 || len >= HF_LAND_OID_MAX || strncmp(out.s + len, " commit\n", 8) != 0)
		return hf_land_reject(work, err, "the agent left no repository with a commit");
	hf_copy_text(tip, HF_LAND_OID_MAX, out.s);
	tip[len] = '\0';
	if (strstr(out.s + len + 8, " commit\n"))
		return hf_land_reject(work, err, "a merge, rebase or cherry-pick was begun and not ended");
	git.before = NULL;
	git.in = NULL;
	r = hf_git(&git, err, "ls-files", "--unmerged", "-z", NULL);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its index cannot be read", &said, err);
	return out.len ? hf_land_reject(work, err, "it has unmerged paths") : 0;
}

/* -- what it did not commit ---------------------------------------------------------------- */

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

static int nothing_to_land(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	int r = touched->n_changes ? check_elsewhere(work, err) : 0;

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
	AUTO(locks_done) struct locks locks = { 0 };
	struct hf_git git = inside(work, NULL, &said);
	char tip[HF_LAND_OID_MAX] = "";
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	/* Nothing in it differs from what is outside: no git needs to look. */
	if (r == 0 && touched.n_changes == 0)
		return nothing_to_land(work, &touched, err);
	if (r == 0)
		r = find_locks(work, &touched, &locks, err);
	if (r == 0)
		r = look(work, &locks, tip, err);
	if (r == 0)
		while ((r = commit_rest(work, &touched, err)) == -EAGAIN) {
			/* Seen through the sandbox: a lock of a user's git, which is gone in a moment. */
			hf_pause(50 * HF_MSEC);
			git.before = remove_locks;
			git.before_arg = &locks;
			r = hf_git_act(&git, "remove locks in", err);
			git.before = NULL;
			if (r < 0)
				return r;
		}
	if (r == 0)
		r = hf_git_oid(&git, "HEAD^{commit}", tip, err);
	if (r != 0)
		return r;
	if (strcmp(tip, landing->base) == 0)
		return nothing_to_land(work, &touched, err);
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
