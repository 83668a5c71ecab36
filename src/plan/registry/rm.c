/* plan/registry/rm.c - removing plans: one by name, and (gc) those that are over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/commit/work.h"
#include "hf/plan/target/census.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define AGE_NS (INT64_C(24) * 3600 * HF_SEC)

/* 1 it holds changes that were not committed, 0 none, -1 not known. */
static int is_dirty(struct hf_plans *plans, const struct hf_plan_record *record)
{
	AUTO_FD plan_fd = -1;
	int dirty = 0;

	if (record->state == HF_PLAN_COMMITTED || record->state == HF_PLAN_ROLLED_BACK ||
	    record->state == HF_PLAN_CLEANED)
		return 0;
	if (hf_plan_dir(plans, record->name, 0, &plan_fd, NULL) < 0)
		return -1;
	for (size_t i = 0; i < record->n_sandboxes && dirty != 1; i++) {
		AUTO_FD fd = -1;
		int one = hf_sandbox_dir(plan_fd, record->sandboxes[i].name, 0, &fd, NULL) < 0 ?
				  0 :
				  hf_sandbox_is_dirty(fd, &record->sandboxes[i]);

		dirty = one == 0 ? dirty : one;
	}
	return dirty;
}

/*
 * A census that is still being written gets its name at its end, and would be a new entry of a directory that is just
 * being emptied. Without the name that it has until then it never does.
 */
static void stop_census(int plan_fd, const struct hf_plan_record *record)
{
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		AUTO_FD fd = -1;

		if (hf_sandbox_dir(plan_fd, record->sandboxes[i].name, 0, &fd, NULL) == 0)
			(void)hf_sys.unlinkat(fd, HF_CENSUS_NEW, 0);
	}
}

/* `record` NULL: there is none. */
static int remove_tree(struct hf_plans *plans, const char *plan, const struct hf_plan_record *record,
		       struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	AUTO_FD fd = -1;
	int r = hf_name_key(plan, strlen(plan), key, err);

	if (r < 0)
		return r;
	r = hf_plan_dir(plans, plan, 0, &fd, err);
	if (r < 0)
		return r;
	/* A stage that cannot be removed does not keep the plan. */
	if (record) {
		stop_census(fd, record);
		(void)hf_stage_forget(fd, record);
	}
	/* First the records that do not say CLEANED. */
	r = hf_plan_forget_older(fd);
	if (r < 0)
		return hf_fail_sys(err, -r, "unlinkat", plan);
	/* The record last: until then the plan is known, and known to be CLEANED. */
	r = hf_tree_remove(fd, "s");
	if (r == 0 || r == -ENOENT)
		r = hf_tree_remove(fd, "discarded");
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = hf_tree_remove(plans->dirfd, key);
	return r < 0 ? hf_fail_sys(err, -r, "remove", plan) : 0;
}

static int is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

/*
 * On a full disk the record cannot say CLEANED. Then the sandboxes lose their name first, by one
 * rename, so that after a crash no later commit takes what is left of them for work.
 */
static int make_room(struct hf_plans *plans, const char *plan, struct hf_err *err)
{
	AUTO_FD fd = -1;
	int r = hf_plan_dir(plans, plan, 0, &fd, err);

	if (r == 0 && hf_sys.renameat2(fd, "s", fd, "discarded", RENAME_NOREPLACE) < 0 && errno != EEXIST && errno != ENOENT)
		r = hf_fail_sys(err, errno, "rename", plan);
	return r;
}

static int remove_locked(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
			 unsigned flags, struct hf_err *err)
{
	enum hf_plan_state state = record->state;
	struct hf_field fields[] = { HF_FIELD_TEXT("state", hf_plan_state_word(state)),
				     HF_FIELD_BOOL("discarded", 0) };
	int dirty, r;

	r = hf_plan_end_strays(plans, record, err);
	if (r >= 0)
		r = hf_plan_settle(plans, record, token, err);
	dirty = is_dirty(plans, record);
	/* What goes need not be settled: a full disk is no reason to keep it. */
	if (r < 0 && !(is_full(r) && (!dirty || flags & HF_PLAN_RM_DISCARD)))
		return r;
	if (dirty && !(flags & HF_PLAN_RM_DISCARD))
		return FAIL(err, HF_E_DIRTY, "plan", record->name,
			    "%s; commit it, or remove it with --discard",
			    dirty == 1 ? "it holds work" : "it is unknown whether it holds work");
	if (record->state != HF_PLAN_CLEANED) {
		r = hf_plan_become(record, HF_PLAN_CLEANED, NULL, err);
		if (r == 0)
			r = hf_plan_save(plans, record, token, 0, err);
		if (is_full(r))
			r = make_room(plans, record->name, err);
		if (r < 0)
			return r;
	}
	r = remove_tree(plans, record->name, record, err);
	fields[1].number = dirty != 0;
	if (r == 0)
		hf_plan_event(plans, HF_EV_PLAN_REMOVED, record->name, fields, 2);
	return r;
}

int hf_plan_is_headless(struct hf_plans *plans, const char *plan)
{
	AUTO_FD fd = -1;
	struct stat st;

	return hf_plan_dir(plans, plan, 0, &fd, NULL) == 0 && hf_sys.fstatat(fd, "s", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* No record: it was lost in a power cut, or put away. */
static int remove_headless(struct hf_plans *plans, const char *plan, unsigned flags, struct hf_err *err)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("state", "unknown"), HF_FIELD_BOOL("discarded", 1) };
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	int r;

	if (!(flags & HF_PLAN_RM_DISCARD))
		return FAIL(err, HF_E_DIRTY, "plan", plan,
			    "its record is lost, and its sandboxes may hold work; remove it with --discard");
	r = hf_plan_lock(plans, plan, 0, &lock, err);
	if (r == 0)
		r = remove_tree(plans, plan, NULL, err);
	if (r == 0)
		hf_plan_event(plans, HF_EV_PLAN_REMOVED, plan, fields, 2);
	return r;
}

int hf_plan_rm(struct hf_plans *plans, const char *plan, unsigned flags, struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	int r = hf_plans_check(plans, plan, err);

	if (r < 0)
		return r;
	if (flags & ~(unsigned)HF_PLAN_RM_DISCARD)
		return FAIL(err, -EINVAL, "arguments", plan, "unknown flag");
	r = hf_plan_heal(plans, plan, 0, err);
	if (r == HF_E_NO_PLAN && hf_plan_is_headless(plans, plan))
		return remove_headless(plans, plan, flags, err);
	if (r == 0)
		r = hf_plan_lock(plans, plan, 0, &lock, err);
	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	return r < 0 ? r : remove_locked(plans, &record, hf_lock_token(lock), flags, err);
}

/* -- gc ---------------------------------------------------------------------------- */

struct collection {
	struct hf_plans *plans;
	unsigned flags;
	int64_t age_ns;
	void (*fn)(void *arg, const struct hf_plan_gc_item *item);
	void *arg;
	int removed;
};

static void tell(const struct collection *c, const char *plan, int removed, const char *why)
{
	struct hf_plan_gc_item item = { .name = plan, .removed = removed, .why = why };

	if (c->fn)
		c->fn(c->arg, &item);
}

/* NULL: it may go, with *ret_why. Else why it stays. */
static const char *stays(const struct collection *c, const struct hf_plan_record *record,
			 const char **ret_why)
{
	int dirty, is_young, used = hf_plan_in_use(c->plans, record, NULL);

	if (used != 0)
		return "processes are in it";
	if (record->state == HF_PLAN_CLEANED) {
		*ret_why = "its removal was interrupted";
		return NULL;
	}
	if (record->state == HF_PLAN_PREPARED)
		return "its commit is in progress, or needs recovery";
	if (hf_plan_check_session(c->plans, record, NULL, 0, NULL) < 0)
		return "its session runs";
	is_young = hf_wall_now().ns - record->changed.ns < c->age_ns;
	dirty = is_dirty(c->plans, record);
	/* Plans that a landing made for itself are removed by the landing. */
	if (dirty && c->flags & HF_PLAN_GC_DISCARD && !is_young && record->name[0] != '.') {
		*ret_why = "its uncommitted work is discarded";
		return NULL;
	}
	if (record->state == HF_PLAN_ERRORED)
		return "it waits for a decision";
	if (dirty)
		return dirty == 1 ? "it holds work that was not committed" :
				    "it is unknown whether it holds work";
	if (is_young)
		return "it changed lately";
	*ret_why = record->state == HF_PLAN_COMMITTED	? "committed" :
		   record->state == HF_PLAN_ROLLED_BACK ? "rolled back" :
							  "it holds no change";
	return NULL;
}

/* A directory without a record: made, or removed, by a process that died. Only sandboxes count as work. */
static int collect_bare(struct collection *c, const char *plan)
{
	if (hf_plan_is_headless(c->plans, plan)) {
		tell(c, plan, 0, "it has no record, but sandboxes; 'plan rm --discard' removes them");
		return 0;
	}
	if (!(c->flags & HF_PLAN_GC_DRY_RUN) && remove_tree(c->plans, plan, NULL, NULL) < 0)
		return 0;
	c->removed++;
	tell(c, plan, 1, "it is an empty directory");
	return 0;
}

static int collect(void *arg, const char *plan)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	struct collection *c = arg;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];
	const char *why, *reason = "";
	int r = hf_plan_lock(c->plans, plan, 0, &lock, &err);

	if (r < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		tell(c, plan, 0, r == HF_E_BUSY ? "another process works on it" : text);
		return 0;
	}
	r = hf_plan_load(c->plans, plan, &record, &err);
	if (r == HF_E_NO_PLAN)
		return collect_bare(c, plan);
	if (r < 0) {
		tell(c, plan, 0, "its record cannot be read");
		return 0;
	}
	why = stays(c, &record, &reason);
	/* Reported before the removal. */
	tell(c, plan, why == NULL, why ? why : reason);
	if (why)
		return 0;
	if (!(c->flags & HF_PLAN_GC_DRY_RUN) &&
	    remove_locked(c->plans, &record, hf_lock_token(lock), c->flags & HF_PLAN_GC_DISCARD ? HF_PLAN_RM_DISCARD : 0, &err) < 0) {
		tell(c, plan, 0, err.detail[0] ? err.detail : "it could not be removed");
		return 0;
	}
	c->removed++;
	return 0;
}

int hf_plan_gc(struct hf_plans *plans, const struct hf_plan_gc_opts *opts,
	       void (*fn)(void *arg, const struct hf_plan_gc_item *item), void *arg,
	       struct hf_err *err)
{
	struct collection c = { .plans = plans, .age_ns = AGE_NS, .fn = fn, .arg = arg };
	int r = hf_plans_check(plans, "gc", err);

	if (r < 0)
		return r;
	if (opts && (opts->size < sizeof(*opts) || opts->flags & ~(unsigned)(HF_PLAN_GC_DRY_RUN | HF_PLAN_GC_DISCARD)))
		return FAIL(err, -EINVAL, "arguments", "gc", "size is not set, or an unknown flag");
	if (opts) {
		c.flags = opts->flags;
		c.age_ns = opts->age_ns < 0 ? AGE_NS : opts->age_ns;
	}
	r = hf_plan_each(plans, collect, &c, err);
	return r < 0 ? r : c.removed;
}
