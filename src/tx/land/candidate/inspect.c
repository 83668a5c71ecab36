/* tx/land/candidate/inspect.c - looking at candidates, giving them up, and recovering those whose process died. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/name/names.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"

/* -- places ---------------------------------------------------------------------------------- */

struct seen {
	struct hf_proc_id holder; /* of the candidate's lock; pid 0: none */
	int place;
};

static void note_holder(void *arg, const struct hf_lock_info *info)
{
	struct seen *seen = arg;

	if (info->n_holders && info->holders[0].liveness != HF_DEAD)
		seen->holder = info->holders[0].id;
}

static void note_place(void *arg, const struct hf_lock_info *info)
{
	struct seen *seen = arg;

	for (size_t i = 0; i < info->n_holders; i++)
		if (info->holders[i].id.pid == seen->holder.pid)
			seen->place = 1;
	for (size_t i = 0; seen->place == 0 && i < info->n_waiters; i++)
		if (info->waiters[i].id.pid == seen->holder.pid)
			seen->place = (int)(i + 1 + info->n_holders);
}

static void find_place(struct hf_landings *landings, const struct hf_landing *landing, struct hf_land_info *info)
{
	struct hf_locks *locks = hf_locks_kind(landings->locks, HF_LOCK_KIND_LAND);
	char name[HF_NAME_MAX + 1];
	struct seen seen = { 0 };

	hf_land_lock_name(landing->name, name);
	(void)!hf_lock_look(locks, name, note_holder, &seen, NULL);
	info->alive = seen.holder.pid > 0;
	/* While its command works, the run of that name holds no lock but its own. */
	if (!info->alive && landing->state == HF_LAND_WORKING && strncmp(landing->plan, HF_PLAN_OF_RUN, strlen(HF_PLAN_OF_RUN)) == 0) {
		(void)!hf_lock_look(hf_locks_kind(landings->locks, HF_LOCK_KIND_NAME), landing->name, note_holder, &seen, NULL);
		info->alive = seen.holder.pid > 0;
		return;
	}
	if (!info->alive)
		return;
	hf_land_branch_lock_name(landing, name);
	(void)!hf_lock_look(locks, name, note_place, &seen, NULL);
	info->place = seen.place;
}

static int is_interrupted(enum hf_land_state state)
{
	return state == HF_LAND_LANDING || state == HF_LAND_REBASING || state == HF_LAND_VERIFYING;
}

static void note_nothing(void *arg, const struct hf_plan_info *info)
{
	(void)arg;
	(void)info;
}

/* Was the only thing that holds its work removed by another verb? */
static int is_gone(struct hf_landings *landings, const struct hf_landing *landing)
{
	return !landing->tip[0] && landing->plan[0] && (landing->state == HF_LAND_WORKING || landing->state == HF_LAND_REJECTED) &&
	       hf_plan_look(landings->plans, landing->plan, note_nothing, NULL, NULL) == HF_E_NO_PLAN;
}

/* Returns 1 if the branch was written after the candidate, also if the files do not show that. */
static int has_moved(const struct hf_landing *landing)
{
	char path[PATH_MAX];
	struct stat st;

	/* A packed ref has no file, or an old one. */
	for (int i = 0; i < 2; i++) {
		const char *file = i == 0 ? landing->branch : "packed-refs";

		if (snprintf(path, sizeof(path), "%s/%s", landing->common, file) >= (int)sizeof(path))
			return 1;
		if (hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0 ? errno != ENOENT
							       : st.st_mtim.tv_sec * HF_SEC + st.st_mtim.tv_nsec >= landing->changed.ns)
			return 1;
	}
	return 0;
}

int hf_landing_is_part(const struct hf_landing *landing)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = landing->common, .out = &out };
	char range[HF_GIT_REF_MAX + HF_LAND_OID_MAX + 4];

	if (!landing->tip[0] || !has_moved(landing) ||
	    snprintf(range, sizeof(range), "%s...%s", landing->branch, landing->tip) >= (int)sizeof(range))
		return 0;
	/* Lists its commits, without merged and cherry-picked ones. */
	return hf_git(&git, NULL, "rev-list", "--right-only", "--cherry-pick", "--max-count=1", range, NULL) == 0 && out.len == 0;
}

/* One look. 1: a step was under way when the record was read, and its process was gone after that: it may have ended between the two. */
static int look(struct hf_landings *landings, const char *name, struct hf_landing *landing, struct hf_land_info *info, struct hf_err *err)
{
	int r = hf_landing_load(landings, name, landing, err);

	if (r < 0)
		return r;
	*info = (struct hf_land_info){ .name = landing->name, .state = landing->state, .top = landing->top,
				       .branch = hf_land_short(landing->branch), .base = landing->base, .tip = landing->tip,
				       .commit = landing->state == HF_LAND_LANDED ? landing->commit : "", .plan = landing->plan,
				       .session = landing->session, .verify = landing->verify, .text = landing->text,
				       .merge = landing->merge, .dev = landing->dev, .ino = landing->ino,
				       .commits = landing->commits, .files = landing->files, .added = landing->added,
				       .deleted = landing->deleted, .rebased = landing->rebased,
				       .verify_ns = landing->verify_ns, .since = landing->since, .changed = landing->changed,
				       .paths = landing->paths.list, .n_paths = landing->paths.n, .token = landing->token,
				       .unlanded = landing->unlanded.list, .n_unlanded = landing->unlanded.n,
				       .kept = landing->rest.list, .n_kept = landing->rest.n };
	find_place(landings, landing, info);
	if (!info->alive && is_gone(landings, landing))
		info->plan = "";
	return !info->alive && (is_interrupted(landing->state) || landing->state == HF_LAND_QUEUED);
}

int hf_land_look(struct hf_landings *landings, const char *name, hf_land_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing first = { 0 };
	AUTO(hf_landing_done) struct hf_landing second = { 0 };
	struct hf_land_info info;
	int r;

	if (!landings || !name || !fn)
		return FAIL(err, -EINVAL, "arguments", "hf_land_look", "NULL");
	r = look(landings, name, &first, &info, err);
	if (r > 0)
		r = look(landings, name, &second, &info, err);
	if (r < 0)
		return r;
	fn(arg, &info);
	return 0;
}

int hf_land_list(struct hf_landings *landings, hf_land_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_names_done) struct hf_names names = { 0 };
	int r, first = 0;

	if (!landings || !fn)
		return FAIL(err, -EINVAL, "arguments", "hf_land_list", "NULL");
	r = hf_names_read(landings->dirfd, &names);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "landings");
	for (size_t i = 0; i < names.n; i++) {
		r = hf_land_look(landings, names.list[i], fn, arg, first ? NULL : err);
		if (r < 0 && !first)
			first = r;
	}
	return first;
}

int hf_land_head(const struct hf_land_info *info, char ret_oid[HF_LAND_OID_MAX], struct hf_err *err)
{
	struct hf_git git = { .dir = info->top };
	char rev[512];
	int r;

	(void)snprintf(rev, sizeof(rev), "refs/heads/%s^{commit}", info->branch);
	r = hf_git_oid(&git, rev, ret_oid, err);
	return r > 0 ? FAIL(err, HF_E_LAND, "git", info->top, "the branch '%.120s' no longer exists", info->branch) : r;
}

int hf_land_proven(const struct hf_land_info *info, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .dir = info->top, .said = &said };
	char rev[512];
	int r;

	if (!info->commit[0])
		return FAIL(err, -EINVAL, "land", info->name, "it has not landed");
	(void)snprintf(rev, sizeof(rev), "refs/heads/%s", info->branch);
	r = hf_git(&git, err, "merge-base", "--is-ancestor", info->commit, rev, NULL);
	if (r > 1)
		return hf_git_failed(&said, info->top, "merge-base", err);
	return r < 0 ? r : r == 0;
}

/* -- drop and recover --------------------------------------------------------------------------- */

static int remove_work(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	struct hf_land_work work = { .landings = landings, HF_LAND_WORK_INIT };
	struct hf_err why = HF_ERR_INIT;
	int r = landing->plan[0] ? hf_plan_rm(landings->plans, landing->plan, HF_PLAN_RM_DISCARD, &why) : 0;

	if (r < 0 && r != HF_E_NO_PLAN) {
		if (err)
			*err = why;
		return r;
	}
	work.landing = *landing;
	work.landing.plan = (char[]){ "" }; /* it is gone */
	hf_land_clean(&work);
	hf_land_give(landing);
	return 0;
}

/* A ref that was moved since then stays. */
static int remove_rest(struct hf_landing *landing, struct hf_err *err)
{
	struct hf_git git = { .dir = landing->common };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < landing->rest.n; i++)
		if (landing->rest.list[i].ref[0])
			r = hf_git(&git, err, "update-ref", "-d", landing->rest.list[i].ref, landing->rest.list[i].commit, NULL);
	if (r >= 0)
		hf_land_rest_done(&landing->rest);
	return r < 0 ? r : 0;
}

/* It is over, and work that did not land is kept. */
static int drop_kept(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	int r = remove_rest(landing, err);

	landing->keep_plan = 0;
	hf_land_paths_done(&landing->unlanded);
	if (r == 0)
		r = remove_work(landings, landing, err);
	if (r == 0 && landing->state == HF_LAND_DROPPED)
		return hf_landing_become(landings, landing, HF_LAND_DROPPED, err, "dropped");
	return r == 0 ? hf_landing_become(landings, landing, HF_LAND_LANDED, err, "%.12s is part of %.100s; the rest was dropped", landing->commit,
					  hf_land_short(landing->branch)) : r;
}

static int drop(struct hf_landings *landings, const char *name, int and_rest, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1];
	int r;

	r = hf_land_recover(landings, name, err);
	if (r < 0)
		return r;
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r == 0)
		r = hf_landing_load(landings, name, &landing, err);
	if (r < 0)
		return r;
	if (and_rest && ((landing.state == HF_LAND_LANDED && (landing.unlanded.n || landing.keep_plan)) ||
			 ((landing.state == HF_LAND_LANDED || landing.state == HF_LAND_DROPPED) && landing.rest.n)))
		return drop_kept(landings, &landing, err);
	if (landing.state == HF_LAND_LANDED || landing.state == HF_LAND_DROPPED)
		return FAIL(err, HF_E_FINISHED, "land", name, "it is %s", hf_land_state_word(landing.state));
	hf_land_paths_done(&landing.unlanded);
	hf_land_rest_forget(&landing.rest);
	r = remove_work(landings, &landing, err);
	if (r == 0 && and_rest)
		r = remove_rest(&landing, err);
	if (r == 0)
		r = hf_landing_become(landings, &landing, HF_LAND_DROPPED, err, "given up");
	if (r == 0) {
		struct hf_field fields[] = { HF_FIELD_TEXT("branch", hf_land_short(landing.branch)),
					     HF_FIELD_TEXT("commit", landing.tip) };

		hf_land_event(landings, HF_EV_LAND_DROPPED, name, fields, 2);
	}
	return r;
}

int hf_land_drop(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	return landings && name ? drop(landings, name, 1, err) : FAIL(err, -EINVAL, "arguments", "hf_land_drop", "NULL");
}

int hf_land_forget(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	return drop(landings, name, 0, err);
}

/* A look at the record, without the lock: a reader must not keep a landing from it. 1, 0 or an error. */
static int may_need_recovery(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	int r = hf_landing_load(landings, name, &landing, err);

	return r < 0 ? r : is_interrupted(landing.state);
}

static int recover_one(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	static const struct hf_land_opts at_once = { .size = sizeof(at_once) };
	static const struct hf_land_opts opts = { .size = sizeof(opts), .wait_ns = 30 * HF_SEC };
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, .opts = &opts, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	AUTO(hf_land_unlock) struct hf_lock *branch = NULL;
	char lock_name[HF_NAME_MAX + 1];
	int r;

	r = may_need_recovery(landings, name, err);
	if (r <= 0)
		return r;
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, &at_once, &lock, err);
	if (r == 0)
		r = hf_landing_load(landings, name, &work.landing, err);
	if (r < 0)
		return r == HF_E_BUSY ? 0 : r;
	if (work.landing.state == HF_LAND_LANDING) {
		struct hf_git git = { .dir = work.landing.common };

		hf_land_branch_lock_name(&work.landing, lock_name);
		r = hf_land_lock(landings, lock_name, &opts, &branch, err);
		if (r == 0)
			r = hf_git_commit_of(&git, work.landing.common, work.landing.branch, work.landing.base, work.head, err);
		if (r >= 0)
			r = hf_land_resume(&work, err);
		if (r > 0)
			hf_land_clean(&work);
		hf_land_give(&work.landing);
		r = r < 0 ? r : 1;
	} else if (work.landing.state == HF_LAND_REBASING || work.landing.state == HF_LAND_VERIFYING) {
		r = hf_landing_become(landings, &work.landing, HF_LAND_QUEUED, err, "%s", HF_LAND_INTERRUPTED);
		r = r < 0 ? r : 1;
	}
	if (r > 0)
		hf_land_remove_made(landings, &work.landing);
	return r;
}

int hf_land_recover(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_names_done) struct hf_names names = { 0 };
	int r, any = 0;

	if (!landings)
		return FAIL(err, -EINVAL, "arguments", "hf_land_recover", "NULL");
	if (name)
		return recover_one(landings, name, err);
	r = hf_names_read(landings->dirfd, &names);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "landings");
	for (size_t i = 0; i < names.n; i++) {
		r = recover_one(landings, names.list[i], err);
		if (r < 0)
			return r;
		any |= r;
	}
	return any;
}
