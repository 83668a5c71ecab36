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

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/take/touched.h"

/* REJECTED, its plan kept. A long text is cut, but not the command behind it. */
static int reject(struct hf_land_work *work, const char *text, const char *command, struct hf_err *err)
{
	static const char kept[] = "; the sandbox is kept: ";
	size_t taken = sizeof(kept) + strlen(command);
	int room = taken < HF_LAND_TEXT_MAX ? (int)(HF_LAND_TEXT_MAX - taken) : 0;
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_REJECTED, err, "%.*s%s%s", room, text, kept, command);

	return r < 0 ? r : 1;
}

int hf_land_reject(struct hf_land_work *work, struct hf_err *err, const char *text)
{
	char word[HF_SHELL_WORD_MAX], command[HF_SHELL_WORD_MAX + 32];

	(void)snprintf(command, sizeof(command), "'holdfast plan diff %s'", hf_shell_word(work->landing.plan, word));
	return reject(work, text, command, err);
}

int hf_land_reject_said(struct hf_land_work *work, const char *what, const struct hf_buf *said, struct hf_err *err)
{
	char text[300];

	(void)snprintf(text, sizeof(text), "%.160s: %.120s", what, said->len ? said->s : "git failed without a message");
	return hf_land_reject(work, err, text);
}

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top,
				.out = out, .said = said };
}

/* -- what it did not commit ---------------------------------------------------------------- */

/* "Signed-off-by: A", or the second line of such a value. */
static int is_trailer(const char *line, size_t len, int is_first)
{
	size_t token = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");

	return (token > 0 && token + 1 < len && line[token] == ':' && line[token + 1] == ' ') || (!is_first && (line[0] == ' ' || line[0] == '\t'));
}

/* Is the last paragraph, after the subject, one of trailers? What follows is part of it then. White space at the end goes. */
static int ends_in_trailers(struct hf_buf *message)
{
	const char *paragraph = NULL;

	while (message->len > 0 && strchr(" \t\r\n", message->s[message->len - 1]))
		message->s[--message->len] = '\0';
	for (const char *at = message->s; (at = strstr(at, "\n\n")) != NULL;) {
		at += strspn(at, "\n");
		paragraph = at;
	}
	for (const char *line = paragraph; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!is_trailer(line, strcspn(line, "\n"), line == paragraph))
			return 0;
	return paragraph != NULL;
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
	hf_buf_add_text(out, ends_in_trailers(out) ? "\n" : "\n\n");
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

/* Of the files that git ignores those that a glob of `also` matches. */
static int add_also(struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *left, struct hf_err *err)
{
	char *const *also = work->landing.also;
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
		for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
			r = hf_left_add(work, touched, at, left, err);
	}
	return r;
}

/* Into the index goes what the agent changed and did not commit. */
static int stage_rest(struct hf_land_work *work, const struct hf_left *left, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL, &said);
	int r = 0;

	if (left->paths.err || left->gone.err)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	/* By a call of its own, and without a look at the files: of a directory that became a symbolic link, they would be sought behind that. */
	git.in = left->gone.s;
	git.in_len = left->gone.len;
	if (left->gone.len)
		r = hf_git(&git, err, "update-index", "--force-remove", "-z", "--stdin", NULL);
	git.in = left->paths.s;
	git.in_len = left->paths.len;
	if (r == 0 && left->paths.len)
		r = hf_git(&git, err, HF_GIT_COMPARES, "update-index", "--add", "--remove", "-z", "--stdin", NULL);
	if (r > 0 && work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	return r > 0 ? hf_land_reject_said(work, "its uncommitted work cannot be added", &said, err) : r;
}

/* The commit failed: is there nothing to commit? Something was changed, and changed back. */
static int is_same(const struct hf_land_work *work, struct hf_err *err)
{
	struct hf_git git = inside(work, NULL, NULL);
	int r = hf_git(&git, err, "diff-index", "--cached", "--quiet", "HEAD", "--", NULL);

	return r < 0 ? r : r == 0;
}

/* left->tip becomes "" when there is a new commit. */
static int commit_rest(struct hf_land_work *work, struct hf_left *left, struct hf_err *err)
{
	static const char *const nobody[] = { "GIT_AUTHOR_NAME=Holdfast", "GIT_AUTHOR_EMAIL=holdfast@localhost",
					      "GIT_COMMITTER_NAME=Holdfast", "GIT_COMMITTER_EMAIL=holdfast@localhost", NULL };
	AUTO(hf_buf_done) struct hf_buf message = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL, &said);
	enum hf_land_sign sign = HF_LAND_SIGN_NONE;
	int is_unsigned = 0, r = stage_rest(work, left, err);

	if (r != 0 || (!left->is_staged && !left->paths.len && !left->gone.len))
		return r;
	r = hf_land_ask_sign(&work->landing, &sign, err);
	if (r < 0)
		return r;
	make_message(work, &message);
	git.in = message.s;
	git.in_len = message.len;
	git.hooks = 1;
	if (message.err)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	for (int try = 0; try < 3; try++) {
		r = hf_git(&git, err, "-c", "diff.ignoreSubmodules=none", "commit", "--quiet", sign ? "--gpg-sign" : "--no-gpg-sign", "--cleanup=whitespace", "-F", "-",
			   NULL);
		if (r <= 0) {
			left->tip[0] = '\0';
			work->landing.is_unsigned |= is_unsigned;
			return r;
		}
		r = is_same(work, err);
		if (r != 0)
			return r < 0 ? r : 0;
		/* git asks for the name of its user before it runs a hook. */
		r = has_identity(work, err);
		if (r < 0)
			return r;
		if (r == 0 && !git.env) {
			git.env = nobody;
		} else if (sign == HF_LAND_SIGN_IF_POSSIBLE) {
			sign = HF_LAND_SIGN_NONE;
			is_unsigned = 1;
		} else {
			break;
		}
	}
	if (work->failures++ < HF_LAND_TRIES)
		return -EAGAIN;
	return hf_land_reject_said(work, sign ? "its uncommitted work cannot be committed with a signature" : "its uncommitted work cannot be committed (a hook?)", &said, err);
}

/* -- the whole -------------------------------------------------------------------------- */

/* HEAD has not moved, but the sandbox has commits elsewhere: its owner decides. */
static int reject_rest(struct hf_land_work *work, const struct hf_land_kept *kept, struct hf_err *err)
{
	char word[HF_SHELL_WORD_MAX], top[HF_SHELL_WORD_MAX], in[HF_SHELL_WORD_MAX + 4], command[2 * HF_SHELL_WORD_MAX + 64], text[160];
	int is_stash = strcmp(kept->label, "stash") == 0;

	(void)snprintf(text, sizeof(text), "HEAD has not moved, but %.110s", kept->text);
	(void)snprintf(in, sizeof(in), "-C %s ", hf_shell_word(work->landing.top, top));
	/* In another directory git needs the path, but the reason is more important. */
	if (strlen(text) + strlen(in) + strlen(hf_shell_word(work->landing.plan, word)) > HF_LAND_TEXT_MAX - 72)
		in[0] = '\0';
	(void)snprintf(command, sizeof(command), "'holdfast plan enter %s -- git %s%s%.12s'", word, in, is_stash ? "stash pop" : "merge ",
		       is_stash ? "" : kept->commit);
	return reject(work, text, command, err);
}

static int nothing_to_land(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_err *err)
{
	const struct hf_land_paths *unlanded = &work->landing.unlanded;
	const struct hf_land_rest *rest = &work->landing.rest;
	int r = hf_left_find_unlanded(work, touched, left, err);
	char text[200];

	for (size_t i = 0; r == 0 && i < rest->n; i++)
		if (!rest->list[i].ref[0])
			return reject_rest(work, &rest->list[i], err);
	if (r != 0)
		return r;
	if (hf_landing_set_list(&work->landing.unmatched, (const char *const *)work->landing.also) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	if (unlanded->n) {
		(void)snprintf(text, sizeof(text), "nothing landed; %zu changed file%s kept: %.100s%s", unlanded->n, unlanded->n == 1 ? " is" : "s are",
			       unlanded->list[0].path, unlanded->n == 1 ? "" : ", ...");
		return hf_land_reject(work, err, text);
	}
	hf_copy_text(work->landing.commit, sizeof(work->landing.commit), work->landing.landed[0] ? work->landing.landed : work->landing.base);
	work->landing.commits = 0;
	work->landing.files = work->landing.added = work->landing.deleted = 0;
	r = hf_land_prove(work, err);
	if (r != 0)
		return r;
	return hf_land_reject(work, err, "it changed nothing, and the commit where it started is not part of the branch (rewritten?)");
}

/* Is the tip built on what it began with, and how many commits are that? 0; 1 it is rejected; an error. */
static int count_commits(struct hf_land_work *work, const struct hf_land_came *came, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	char range[2 * HF_LAND_OID_MAX + 4];
	/* The real repository is asked, which the agent has not touched. */
	struct hf_git git = { .dir = work->landing.common, .out = &out };
	int r;

	work->landing.commits = came->commits;
	if (came->is_known)
		return 0;
	r = hf_git(&git, err, "merge-base", "--is-ancestor", work->landing.base, work->landing.tip, NULL);
	if (r > 0)
		work->landing.tip[0] = '\0';
	if (r != 0)
		return r < 0 ? r :
			       hf_land_reject(work, err, "its history no longer contains the commit where it started (rewritten?)");
	(void)snprintf(range, sizeof(range), "%s..%s", work->landing.base, work->landing.tip);
	r = hf_git(&git, err, "rev-list", "--count", range, NULL);
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

	r = hf_land_transaction_keep(landing, &work->refs, err);
	if (landing->verify[0])
		hf_land_transaction_done(&work->refs);
	hf_land_ref(landing->name, ref);
	/* The other way, which says why. */
	if (r > 0)
		r = hf_git(&git, err, "update-ref", ref, landing->tip, NULL);
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, landing->common, "update-ref", err);
	struct hf_field fields[] = { HF_FIELD_TEXT("branch", hf_land_short(landing->branch)),
				     HF_FIELD_TEXT("commit", landing->tip), HF_FIELD_INT("commits", landing->commits),
				     HF_FIELD_INT("files", landing->files) };
	hf_land_event(work->landings, HF_EV_LAND_KEPT, landing->name, fields, 4);
	return 0;
}

int hf_left_commit(struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *left, struct hf_err *err)
{
	int r = hf_left_read(work, touched, left, err);

	if (r == 0)
		r = add_also(work, touched, left, err);
	while (r == 0 && (r = commit_rest(work, left, err)) == -EAGAIN) {
		/* Seen through the sandbox: a lock of a user's git, which is gone in a moment. */
		hf_pause(50 * HF_MSEC);
		r = hf_left_unlock(work, touched, err);
	}
	return r;
}

int hf_land_is_all_landed(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, HF_LAND_WORK_INIT };
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	AUTO(hf_left_done) struct hf_left left = HF_LEFT_INIT;
	int r = hf_landing_load(landings, name, &work.landing, err);

	if (r < 0 || work.landing.state != HF_LAND_LANDED || work.landing.unlanded.n)
		return r < 0 ? r : 0;
	r = hf_touched_read(landings, &work.landing, work.landing.plan, &touched, err);
	if (r < 0 || touched.n_changes == 0 || touched.is_unfinished)
		return r < 0 ? r : touched.n_changes == 0;
	r = hf_left_read(&work, &touched, &left, err);
	return r < 0 ? r : r == 0 && strcmp(left.head, work.landing.tip) == 0 && !left.is_staged && !left.paths.len && !left.gone.len;
}

int hf_land_collect(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	AUTO(hf_left_done) struct hf_left left = HF_LEFT_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_land_came came = { 0 };
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	/* Nothing in it differs from what is outside: no git needs to look. */
	if (r == 0 && touched.n_changes == 0)
		return nothing_to_land(work, &touched, &left, err);
	if (r == 0)
		r = hf_land_find_sealed(work, left.tip, err);
	if (r == 0)
		r = hf_left_commit(work, &touched, &left, err);
	else if (r == 1)
		r = 0;
	if (r == 0 && left.is_read)
		r = hf_land_find_rest(work, &touched, &left, err);
	if (r != 0)
		return r;
	if (strcmp(left.tip, landing->base) == 0)
		return nothing_to_land(work, &touched, &left, err);
	r = hf_land_export(work, landing->plan, landing->base, left.tip, &came, &said, err);
	if (r != 0) {
		char what[PATH_MAX + 40];

		(void)snprintf(what, sizeof(what), "its commits cannot be copied into %s", landing->common);
		return r < 0 ? r : hf_land_reject_said(work, what, &said, err);
	}
	hf_copy_text(landing->tip, sizeof(landing->tip), left.tip);
	r = count_commits(work, &came, err);
	if (r == 0)
		r = hf_land_check_changes(work, &touched, err);
	if (r == 0)
		r = hf_left_find_unlanded(work, &touched, &left, err);
	if (r == 0)
		r = hf_land_check_also(work, err);
	if (r == 0)
		r = hf_land_keep_rest(work, err);
	return r != 0 ? r : keep(work, err);
}
