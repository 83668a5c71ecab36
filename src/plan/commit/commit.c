/*
 * plan/commit/commit.c - plan commit: the sandboxes' changes reach their targets, all of them or none.
 *
 * The plan's lock is held from the first look to the end, so that the set of sandboxes is frozen and
 * exactly one process commits it (L11). The second finds the record COMMITTED.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/moved.h"
#include "hf/plan/commit/work.h"

static const struct hf_plan_commit_opts no_opts = { .size = sizeof(no_opts) };

static int check_opts(const struct hf_plan_commit_opts *opts, const char *plan, struct hf_err *err)
{
	if (opts->size != sizeof(*opts) || opts->n_fences > HF_FENCES_MAX)
		return FAIL(err, -EINVAL, "arguments", plan, "size of the options, or too many fences");
	for (size_t i = 0; i < opts->n_fences; i++)
		if (!opts->fences[i].name || !opts->fences[i].name[0] || opts->fences[i].token == 0)
			return FAIL(err, -EINVAL, "arguments", plan, "a fence needs a name and a token");
	return 0;
}

/* May this plan be committed now? 1 it already is, 0 yes, or an error. */
static int check_state(const struct hf_work *work, const struct hf_plan_commit_opts *opts,
		       struct hf_err *err)
{
	char word[HF_SHELL_WORD_MAX];
	const struct hf_plan_record *record = &work->record;

	switch (record->state) {
	case HF_PLAN_COMMITTED:
		return 1;
	case HF_PLAN_CREATED:
	case HF_PLAN_ACTIVE:
		break;
	case HF_PLAN_ERRORED:
		if (record->torn)
			break;
		return FAIL(err, HF_E_PLAN_STATE, "commit", record->name, "it is ERRORED: %.180s",
			    record->reason);
	case HF_PLAN_PREPARED:
	case HF_PLAN_ROLLED_BACK:
	case HF_PLAN_CLEANED:
	default:
		return FAIL(err, HF_E_PLAN_STATE, "commit", record->name, "it is %s",
			    hf_plan_state_word(record->state));
	}
	if (record->torn && !(opts->flags & HF_PLAN_COMMIT_TORN))
		return FAIL(err, HF_E_TORN, "commit", record->name,
			    "check 'holdfast plan diff %s', then commit with --force, or roll back", hf_shell_word(record->name, word));
	return 0;
}

static int set_fences(struct hf_work *work, const struct hf_plan_commit_opts *opts, struct hf_err *err)
{
	work->intent.fences = calloc(opts->n_fences + 1, sizeof(*work->intent.fences));
	if (!work->intent.fences)
		return hf_fail_sys(err, ENOMEM, "memory", work->record.name);
	for (size_t i = 0; i < opts->n_fences; i++)
		work->intent.fences[i] = (struct hf_intent_fence){ opts->fences[i].name,
								   opts->fences[i].token };
	work->intent.n_fences = opts->n_fences;
	return 0;
}

/* -- conflicts ------------------------------------------------------------------------------- */

/* A target changed between the check and the rename: everything was undone. */
static int changed_under_hands(struct hf_work *work, const struct hf_op *stuck,
			       struct hf_plan_report *report, struct hf_err *err)
{
	enum hf_verdict verdict = stuck->flags & HF_OP_GIT_LOCK ? HF_VERDICT_GIT_BUSY
								: HF_VERDICT_CHANGED;

	if (work->record.state == HF_PLAN_PREPARED)
		return HF_E_CHANGED; /* the undoing stopped: the error says so */
	if (hf_report_conflict(report, &(struct hf_conflict){
				.sandbox = work->intent.targets[stuck->target].sandbox,
				.path = stuck->path, .kind = hf_verdict_word(verdict) }) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", work->record.name);
	return hf_report_refuse(work, "commit", report, err);
}

static int check(struct hf_work *work, const struct hf_plan_commit_opts *opts,
		 struct hf_plan_report *report, struct hf_err *err)
{
	int r = hf_conflict_depends(work, opts->depends, opts->flags & HF_PLAN_COMMIT_STRICT, err);

	if (r == 0)
		r = hf_conflict_leases(work, err);
	if (r == 0)
		r = hf_conflict_force(work, opts->force, err);
	if (r == 0 && opts->flags & HF_PLAN_COMMIT_MERGE)
		r = hf_merge(work, err);
	if (r == 0)
		r = hf_conflict_report(work, report, err);
	return r > 0 ? hf_report_refuse(work, "commit", report, err) : r;
}

/* A directory that went as a whole is looked through once more where it is now. */
static int recheck(void *arg, const struct hf_op *op, int dirfd, const char *name)
{
	AUTO(hf_buf_done) struct hf_buf where = HF_BUF_INIT;
	const struct hf_work *work = arg;
	const char *sandbox = work->intent.targets[op->target].sandbox;
	AUTO_FD fd = hf_dirtree_open(dirfd, name);

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < work->n_units; i++)
		if (work->units[i].sandbox->name == sandbox)
			return hf_base_same_below(&work->units[i].base, fd, op->path, &where);
	return -ENOENT;
}

/* -- the whole ---------------------------------------------------------------------------------- */

/* What a commit did beside the operations that it counts. The targets have it: nothing fails here. */
static void report_deltas(const struct hf_work *work, struct hf_plan_report *report)
{
	for (size_t i = 0; i < work->n_units; i++)
		for (size_t k = 0; k < work->units[i].deltas.n; k++) {
			const struct hf_delta *d = &work->units[i].deltas.list[k];

			report->same += d->same != 0;
			if (d->merged)
				(void)hf_report_merged(report, &(struct hf_merged){
					.sandbox = work->units[i].sandbox->name, .path = d->path,
					.kind = d->base_kind, .base = d->base });
		}
}

/* Nothing to move: the record alone changes, and nothing is synced. */
static int conclude_empty(struct hf_work *work, struct hf_err *err)
{
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)work->token),
				     HF_FIELD_INT("added", 0), HF_FIELD_INT("changed", 0),
				     HF_FIELD_INT("deleted", 0) };
	int r = hf_work_prove_fences(work, err);

	if (r == 0)
		r = hf_plan_become(&work->record, HF_PLAN_PREPARED, NULL, err);
	if (r == 0)
		r = hf_plan_become(&work->record, HF_PLAN_COMMITTED, NULL, err);
	if (r == 0)
		r = hf_plan_save(work->plans, &work->record, work->token, 0, err);
	if (r == 0)
		hf_plan_event(work->plans, HF_EV_PLAN_COMMITTED, work->record.name, fields, 4);
	return r;
}

static int commit_changes(struct hf_work *work, const struct hf_plan_commit_opts *opts,
			  struct hf_plan_report *report, struct hf_err *err)
{
	const struct hf_op *stuck = NULL;
	int r = hf_stage_build(work, opts->ignore, err);

	if (r == 0 && work->intent.n_ops == 0)
		return conclude_empty(work, err);
	if (r == 0)
		r = hf_sites_open(work, err);
	if (r < 0) {
		(void)hf_stage_clear(work->plan_fd, &work->record);
		return r;
	}
	r = hf_carry_out(work, recheck, work, &stuck, err);
	if (r == HF_E_CHANGED && stuck)
		return changed_under_hands(work, stuck, report, err);
	if (r == 0)
		hf_intent_count(&work->intent, &report->added, &report->changed, &report->deleted,
				&report->bytes);
	return r;
}

static int has_deltas(const struct hf_work *work)
{
	for (size_t i = 0; i < work->n_units; i++)
		if (work->units[i].deltas.n > 0)
			return 1;
	return 0;
}

/* Another process has committed it. A holder whose token is stale must not take that for its own success (L5). */
static int committed_already(struct hf_work *work, const struct hf_plan_commit_opts *opts, struct hf_plan_report *report,
			     struct hf_err *err)
{
	int r = set_fences(work, opts, err);

	if (r == 0)
		r = hf_work_prove_fences(work, err);
	report->by_other = r == 0;
	return r;
}

/* 0, HF_PLAN_MOVED, or an error. */
static int commit_plan(struct hf_work *work, const struct hf_plan_commit_opts *opts,
		       struct hf_plan_report *report, struct hf_err *err)
{
	int r = hf_plan_check_session(work->plans, &work->record, opts->fences, opts->n_fences, err);

	if (r == 0)
		r = hf_plan_settle(work->plans, &work->record, work->token, err);
	if (r >= 0)
		r = check_state(work, opts, err);
	if (r != 0)
		return r < 0 ? r : committed_already(work, opts, report, err);
	r = set_fences(work, opts, err);
	if (r == 0)
		r = hf_work_lock_targets(work, err);
	if (r == 0)
		r = hf_work_open_units(work, err);
	if (r == 0)
		r = hf_work_find_deltas(work, opts->ignore, HF_DELTA_INSIDE, err);
	if (r == 0)
		r = check(work, opts, report, err);
	if (r == 0 && work->plans->verified && has_deltas(work))
		r = hf_moved(work, work->plans->verified, err);
	if (r == 0)
		r = commit_changes(work, opts, report, err);
	if (r == 0)
		report_deltas(work, report);
	return r;
}

int hf_plan_commit(struct hf_plans *plans, const char *plan, const struct hf_plan_commit_opts *opts,
		   struct hf_plan_report *ret_report, struct hf_err *err)
{
	AUTO(hf_work_done) struct hf_work work = HF_WORK_INIT;
	struct hf_plan_report ignored = { 0 }, *report = ret_report ? ret_report : &ignored;
	struct hf_err why = HF_ERR_INIT;
	int r;

	memset(report, 0, sizeof(*report));
	if (!opts)
		opts = &no_opts;
	r = check_opts(opts, plan ? plan : "plan", &why);
	if (r == 0)
		r = hf_work_begin(&work, plans, plan, opts->wait_ns, &why);
	/* A commit that another process is just ending may have ended while we waited. */
	if (r == 0)
		r = work.record.state == HF_PLAN_COMMITTED ? committed_already(&work, opts, report, &why)
							   : commit_plan(&work, opts, report, &why);
	hf_plan_report_done(&ignored);
	return r < 0 && plans ? hf_plan_refused(plans, plan, "commit", r, &why, err) : r;
}
