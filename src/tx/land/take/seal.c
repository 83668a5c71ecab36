/*
 * tx/land/take/seal.c - what the agent made is set apart from what a verifier writes in the same sandbox.
 *
 *   sealed     HEAD when the verifier began: what lands. What the agent had left uncommitted was committed for that, on top of
 *   unsealed   HEAD before that commit
 *   after      HEAD when the verifier had said no: a commit that it made is not the agent's either
 *
 * If the agent goes on in the sandbox (run --resume), it finds there what it left, as it left it, but nothing is staged any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .said = said };
}

/* Reads rows "T PATH": only H is a file without a mark that could hide an edit. */
static int has_marks(const struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL);
	int r;

	git.out = &out;
	r = hf_git(&git, err, "ls-files", "-v", "-z", NULL);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		if (at[0] != 'H')
			return 1;
	return r < 0 ? r : r != 0;
}

/*
 * Returns 1 if a verifier in the sandbox sees the sealed commit and files that the user's git ignores, but nothing else: no uncommitted file, and no
 * ignored file of the agent. Otherwise 0, or an error.
 */
static int ask_exact(const struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL);
	int r;

	git.out = &out;
	r = hf_git(&git, err, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching", "--ignore-submodules=none", NULL);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1) {
		AUTO_FREE char *path = at[0] == '!' && strlen(at) > 2 ? strdup(at + 2) : NULL;

		if (!path)
			return 0;
		if (path[strlen(path) - 1] == '/')
			path[strlen(path) - 1] = '\0';
		if (hf_touched_has(touched, path) || hf_touched_below(touched, path))
			return 0;
	}
	if (r == 0)
		r = has_marks(work, err);
	return r < 0 ? r : r == 0;
}

int hf_land_seal_work(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	AUTO(hf_left_done) struct hf_left left = HF_LEFT_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(work, NULL);
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	landing->sealed[0] = landing->unsealed[0] = landing->after[0] = '\0';
	landing->is_verified = 0;
	hf_copy_text(left.tip, sizeof(left.tip), landing->base);
	if (r == 0 && touched.n_changes > 0)
		r = hf_left_commit(work, &touched, &left, err);
	if (r == 0)
		r = hf_left_find_unlanded(work, &touched, &left, err);
	if (r == 0 && left.is_read)
		r = hf_land_find_rest(work, &touched, &left, err);
	if (r == 0 && !left.tip[0]) {
		r = hf_git_oid(&git, "HEAD^{commit}", left.tip, err);
		if (r > 0)
			r = hf_land_reject(work, err, "its HEAD cannot be read");
		hf_copy_text(landing->unsealed, sizeof(landing->unsealed), left.head);
	}
	landing->is_exact = 0;
	if (r != 0)
		return r;
	hf_copy_text(landing->sealed, sizeof(landing->sealed), left.tip);
	r = ask_exact(work, &touched, err);
	landing->is_exact = r == 1;
	return r < 0 ? r : 0;
}

/* Is HEAD where the verifier left it? Then nothing was committed by hand since. 1, 0 or an error. */
static int is_untouched(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_git git = inside(work, NULL);
	char head[HF_LAND_OID_MAX];
	int r = hf_git_oid(&git, "HEAD^{commit}", head, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (strcmp(head, work->landing.sealed) == 0 || strcmp(head, work->landing.after) == 0)
		return 1;
	/* Its verifier was killed with its run, and may have made that commit: it does not land, and is not thrown away either. */
	work->keeps_plan = !work->landing.is_verified;
	return work->keeps_plan;
}

/*
 * In the run that sealed it, whatever its verifier did to the repository since; later, by hand, while HEAD is where that left it: after a commit
 * made inside by hand, all of it is wanted.
 */
int hf_land_find_sealed(struct hf_land_work *work, char ret_tip[HF_LAND_OID_MAX], struct hf_err *err)
{
	int r;

	if (!work->landing.sealed[0])
		return 0;
	r = work->opts->session ? 1 : is_untouched(work, err);
	if (r == 1)
		hf_copy_text(ret_tip, HF_LAND_OID_MAX, work->landing.sealed);
	return r;
}

/* Its lock, and its record. 1; 0: there is none; or an error. */
static int open_record(struct hf_land_work *work, const char *name, struct hf_lock **ret_lock, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	char lock_name[HF_NAME_MAX + 1];
	int r;

	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(work->landings, lock_name, NULL, ret_lock, err);
	if (r < 0)
		return r;
	r = hf_landing_load(work->landings, name, &work->landing, &why);
	if (r == HF_E_NO_LANDING || (r == 0 && (work->landing.state == HF_LAND_LANDED || work->landing.state == HF_LAND_DROPPED)))
		return 0;
	if (r < 0 && err)
		*err = why;
	return r < 0 ? r : 1;
}

int hf_land_note_after(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	struct hf_git git;
	int r = open_record(&work, name, &lock, err);

	if (r <= 0 || !work.landing.sealed[0])
		return r < 0 ? r : 0;
	git = inside(&work, NULL);
	/* A run that ends does not wait for a repository that its verifier broke. */
	git.limit_ns = 5 * HF_SEC;
	r = hf_git_oid(&git, "HEAD^{commit}", work.landing.after, err);
	/* A repository that its verifier broke has none. */
	if (r > 0)
		work.landing.after[0] = '\0';
	work.landing.is_verified = 1;
	return r < 0 ? r : hf_landing_note(landings, &work.landing, err);
}

/* -- the agent goes on ----------------------------------------------------------------------- */

#define AT_ONCE 20 /* paths on one command line */

/* What a verifier left in the work tree, each with a NUL. What is only seen through the sandbox is not among them. */
struct traces {
	struct hf_buf changed, new;
	struct hf_buf dirs; /* that new ones are in, the outer ones first */
};

static void traces_done(struct traces *traces)
{
	hf_buf_done(&traces->changed);
	hf_buf_done(&traces->new);
	hf_buf_done(&traces->dirs);
}

/* Is it a directory on the way to the new path before? git lists them in order. */
static int is_added(const struct traces *traces, const char *dir, size_t len)
{
	const char *last = traces->new.s + traces->new.len;

	if (traces->new.len == 0)
		return 0;
	for (last--; last > traces->new.s && last[-1]; last--)
		continue;
	return strncmp(last, dir, len) == 0 && last[len] == '/';
}

static void add_dirs(struct traces *traces, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (!is_added(traces, path, (size_t)(slash - path))) {
			hf_buf_add(&traces->dirs, path, (size_t)(slash - path));
			hf_buf_add(&traces->dirs, "", 1);
		}
}

/* The inner ones first. */
static void turn_around(const struct hf_buf *list, struct hf_buf *ret)
{
	const char *end = list->s + list->len;

	while (end > list->s) {
		const char *at = end - 1;

		while (at > list->s && at[-1])
			at--;
		hf_buf_add(ret, at, (size_t)(end - at));
		end = at;
	}
}

static void note_trace(const struct hf_touched *touched, const char *row, struct traces *traces)
{
	struct hf_buf *list = row[0] == '?' ? &traces->new : row[0] == '1' && row[3] != '.' ? &traces->changed : NULL;
	const char *path = hf_status_path(row);
	char *plain;
	size_t len;

	if (!list || !path)
		return;
	/* Another repository ends with a slash. */
	len = strlen(path);
	plain = strndup(path, len > 0 && path[len - 1] == '/' ? len - 1 : len);
	if (!plain)
		list->err = -ENOMEM;
	else if (hf_touched_has(touched, plain) || hf_touched_below(touched, plain)) {
		if (list == &traces->new)
			add_dirs(traces, plain);
		hf_buf_add(list, plain, strlen(plain) + 1);
	}
	free(plain);
}

static int read_traces(struct hf_land_work *work, const struct hf_touched *touched, struct traces *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = inside(work, NULL);
	int r;

	git.out = &out;
	r = hf_git(&git, err, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", NULL);
	for (const char *at = out.s; r == 0 && at < out.s + out.len; at += strlen(at) + 1)
		note_trace(touched, at, ret);
	return ret->changed.err || ret->new.err || ret->dirs.err ? hf_fail_sys(err, ENOMEM, "memory", work->landing.name) : r;
}

/* Runs a program with words and then the paths, some at a time. What it cannot do is left undone. */
static int on_paths(const struct hf_land_work *work, const char *const words[3], const struct hf_buf *paths, struct hf_err *err)
{
	struct hf_git git = inside(work, NULL);
	const char *at = paths->s;
	int r = 0;

	while (r >= 0 && at < paths->s + paths->len) {
		const char *argv[AT_ONCE + 4] = { words[0], words[1], words[2] };

		for (size_t n = 3; n < AT_ONCE + 3 && at < paths->s + paths->len; at += strlen(at) + 1)
			argv[n++] = at;
		r = hf_git_other(&git, argv, err);
	}
	return r < 0 ? r : 0;
}

/* A directory that its owner may not write to, as of a module cache, would stay. */
static int remove_new(const struct hf_land_work *work, const struct traces *traces, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf inner_first = HF_BUF_INIT;
	int r = on_paths(work, (const char *const[3]){ "chmod", "-f", "u+rwx" }, &traces->dirs, err);

	turn_around(&traces->dirs, &inner_first);
	if (r == 0 && inner_first.err)
		r = hf_fail_sys(err, ENOMEM, "memory", work->landing.name);
	if (r == 0)
		r = on_paths(work, (const char *const[3]){ "chmod", "-fR", "u+rwX" }, &traces->new, err);
	if (r == 0)
		r = on_paths(work, (const char *const[3]){ "rm", "-rf", "--" }, &traces->new, err);
	if (r == 0)
		r = on_paths(work, (const char *const[3]){ "rmdir", "--ignore-fail-on-non-empty", "--" }, &inner_first, err);
	return r;
}

/*
 * In the sandbox: what the verifier wrote goes, but for what git ignores, and the commit that was made to seal it is taken back. What a user has edited, and is
 * seen there, stays.
 */
static int unseal(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	AUTO(traces_done) struct traces traces = { HF_BUF_INIT, HF_BUF_INIT, HF_BUF_INIT };
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(work, &said);
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	if (r == 0)
		r = hf_left_unlock(work, &touched, err);
	if (r == 0)
		r = is_untouched(work, err);
	if (r <= 0)
		return r;
	r = hf_git(&git, err, "reset", "--quiet", "--mixed", landing->sealed, NULL);
	if (r == 0)
		r = read_traces(work, &touched, &traces, err);
	if (r == 0 && traces.changed.len > 0) {
		struct hf_git put = inside(work, &said);

		put.in = traces.changed.s;
		put.in_len = traces.changed.len;
		r = hf_git(&put, err, "checkout-index", "--force", "-z", "--stdin", NULL);
	}
	if (r == 0)
		r = remove_new(work, &traces, err);
	if (r == 0 && landing->unsealed[0])
		r = hf_git(&git, err, "reset", "--quiet", "--mixed", landing->unsealed, NULL);
	return r > 0 ? hf_git_failed(&said, landing->top, "reset", err) : r;
}

void hf_land_settle_kept(struct hf_land_work *work)
{
	if (!work->landing.keep_plan || !work->landing.sealed[0])
		return;
	work->landing.unsealed[0] = '\0';
	(void)!unseal(work, NULL);
}

int hf_land_reopen(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	static const struct hf_land_opts none = { .size = sizeof(none) };
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, .opts = &none, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	struct hf_landing *landing = &work.landing;
	/* A landing that was killed is finished or undone first. */
	int r = hf_land_recover(landings, name, err);

	if (r >= 0 || r == HF_E_NO_LANDING)
		r = open_record(&work, name, &lock, err);
	if (r == 0 && landing->state == HF_LAND_LANDED)
		return FAIL(err, HF_E_FINISHED, "land", name, "its work has landed");
	if (r <= 0)
		return r;
	r = landing->sealed[0] ? unseal(&work, err) : 0;
	if (r < 0)
		return r;
	landing->sealed[0] = landing->unsealed[0] = landing->after[0] = landing->commit[0] = landing->from[0] = '\0';
	landing->is_verified = 0;
	hf_land_paths_done(&landing->paths);
	hf_land_paths_done(&landing->unlanded);
	hf_land_rest_forget(&landing->rest);
	if (hf_landing_set(&landing->checkout, "") < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	return hf_landing_become(landings, landing, HF_LAND_WORKING, err, "its agent continues");
}
