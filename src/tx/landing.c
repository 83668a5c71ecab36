/* tx/landing.c - the commit of an attempt that succeeded, in a child of the keeper, and what came of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/recovery/committed.h"
#include "hf/sys/io.h"
#include "hf/tx/branch.h"

#define COMMIT_NS (10 * 60 * HF_SEC) /* for others that commit to the same targets */

static void note_dirty(void *arg, const struct hf_plan_info *info)
{
	int *dirty = arg;

	*dirty = info->dirty != 0;
}

/* A sandbox without a change: is that all there is to say? What was verified is still compared with what is there (moved.h). */
static int is_nothing(struct hf_tx *tx)
{
	return tx->o.commit == HF_TX_COMMIT_ON_SUCCESS && !tx->verify && (!tx->lands || hf_tx_branch_nothing(tx));
}

int hf_tx_is_landing(void *arg)
{
	struct hf_tx *tx = arg;
	int dirty = 1;

	atomic_store(&tx->shared->step, HF_TX_STEP_NONE);
	if (hf_plan_look(tx->plans, tx->plan, note_dirty, &dirty, NULL) < 0)
		return 1;
	if (dirty || !is_nothing(tx))
		return dirty != 0;
	tx->shared->report.committed = 1;
	atomic_store(&tx->shared->step, HF_TX_STEP_COMMITTED);
	return HF_STAGE_EMPTY;
}

/* -- the child ----------------------------------------------------------------------- */

static void list_conflicts(struct hf_tx_report *to, const struct hf_plan_report *from)
{
	to->n_conflicts = from->n_conflicts;
	to->n_listed = from->n_conflicts < HF_TX_CONFLICTS_MAX ? from->n_conflicts : HF_TX_CONFLICTS_MAX;
	for (size_t i = 0; i < to->n_listed; i++) {
		hf_copy_text(to->conflicts[i].sandbox, sizeof(to->conflicts[i].sandbox), from->conflicts[i].sandbox);
		hf_copy_text(to->conflicts[i].path, sizeof(to->conflicts[i].path), from->conflicts[i].path);
		hf_copy_text(to->conflicts[i].kind, sizeof(to->conflicts[i].kind), from->conflicts[i].kind);
		hf_copy_text(to->conflicts[i].by, sizeof(to->conflicts[i].by), from->conflicts[i].by);
	}
}

static void copy_figures(struct hf_tx_report *to, const struct hf_plan_report *from)
{
	to->committed = 1;
	to->added = from->added;
	to->changed = from->changed;
	to->deleted = from->deleted;
	to->bytes = from->bytes;
	to->same = from->same;
	to->n_conflicts = to->n_listed = 0;
}

static enum hf_tx_step commit(struct hf_tx *tx, struct hf_plans *plans)
{
	struct hf_plan_fence fence = { .name = tx->name, .token = tx->token };
	struct hf_plan_commit_opts opts = { .size = sizeof(opts), .fences = &fence, .n_fences = 1, .wait_ns = COMMIT_NS };
	struct hf_mono until = hf_mono_in(HF_TX_LEAVE_NS);
	struct hf_plan_report report;
	int r;

	opts.flags = tx->o.flags & HF_TX_MERGE ? HF_PLAN_COMMIT_MERGE : 0;
	if (tx->verify)
		hf_plans_set_verified(plans, &tx->verified);
	/* The tree of the session is proven empty, but on a loaded machine the helper of the sandbox learns that later. */
	while ((r = hf_plan_commit(plans, tx->plan, &opts, &report, &tx->shared->err)) == HF_E_IN_USE && hf_mono_left(until) > 0) {
		hf_plan_report_done(&report);
		hf_pause(5 * HF_MSEC);
	}
	if (r == HF_PLAN_MOVED)
		hf_copy_text(tx->shared->moved, sizeof(tx->shared->moved), tx->verified.moved);
	else if (r == 0)
		copy_figures(&tx->shared->report, &report);
	else
		list_conflicts(&tx->shared->report, &report);
	hf_plan_report_done(&report);
	return r < 0 ? HF_TX_STEP_FAILED : r == HF_PLAN_MOVED ? HF_TX_STEP_MOVED : HF_TX_STEP_COMMITTED;
}

static int is_agreed(struct hf_tx *tx, struct hf_plans *plans)
{
	if (tx->o.commit == HF_TX_COMMIT_ASK && !tx->shared->is_agreed)
		tx->shared->is_agreed = tx->given->ask(tx->given->arg, plans, tx->plan) == 1;
	return tx->o.commit != HF_TX_COMMIT_ASK || tx->shared->is_agreed;
}

/* The handles of the keeper are not for a forked child. 0: there are none, and shared->err says why. */
static int open_own(struct hf_tx *tx, struct hf_journal **ret_journal, struct hf_plans **ret_plans)
{
	tx->shared->err = (struct hf_err)HF_ERR_INIT;
	if (hf_journal_open(tx->state, NULL, ret_journal, NULL) < 0)
		*ret_journal = NULL;
	if (hf_plans_open(tx->state, *ret_journal, ret_plans, &tx->shared->err) < 0)
		return 0;
	hf_tx_confine(tx, *ret_plans);
	return 1;
}

void hf_tx_seal(void *arg, char *const *envp)
{
	struct hf_tx *tx = arg;
	enum hf_tx_step step = HF_TX_STEP_FAILED;
	struct hf_journal *journal = NULL;
	struct hf_plans *plans = NULL;

	tx->envp = envp;
	if (open_own(tx, &journal, &plans))
		step = hf_tx_branch_seal(tx, plans, journal);
	atomic_store(&tx->shared->step, (int)step);
}

void hf_tx_land(void *arg, char *const *envp)
{
	struct hf_tx *tx = arg;
	enum hf_tx_step step = HF_TX_STEP_FAILED;
	struct hf_journal *journal = NULL;
	struct hf_plans *plans = NULL;

	tx->envp = envp;
	if (open_own(tx, &journal, &plans)) {
		if (tx->o.commit == HF_TX_COMMIT_NEVER)
			step = HF_TX_STEP_LEFT;
		else if (!is_agreed(tx, plans))
			step = HF_TX_STEP_DECLINED;
		else
			step = tx->lands ? hf_tx_branch_land(tx, plans, journal) : commit(tx, plans);
	}
	atomic_store(&tx->shared->step, (int)step);
}

/* -- the keeper ------------------------------------------------------------------------ */

static void tell_committed(const struct hf_tx *tx)
{
	const struct hf_tx_report *report = &tx->shared->report;
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)tx->token),
				     HF_FIELD_INT("attempt", tx->attempt),
				     HF_FIELD_INT("added", (int64_t)report->added),
				     HF_FIELD_INT("changed", (int64_t)report->changed),
				     HF_FIELD_INT("deleted", (int64_t)report->deleted),
				     HF_FIELD_INT("bytes", (int64_t)report->bytes) };

	hf_tx_event(tx, HF_EV_RUN_COMMITTED, fields, report->branch[0] ? 5 : 6); /* a landing does not count bytes */
}

/* HF_TX_REQUIRE_CHANGE. A change that the branch has already is one. */
static int has_no_change(const struct hf_tx *tx)
{
	const struct hf_tx_report *report = &tx->shared->report;

	if (!(tx->o.flags & HF_TX_REQUIRE_CHANGE))
		return 0;
	return report->branch[0] ? report->commits == 0 && !report->is_there : report->added + report->changed + report->deleted == 0;
}

static struct hf_result fail_unchanged(struct hf_tx *tx, const char *how)
{
	tx->shared->report.no_change = 1;
	return hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_NO, "%.200s, but nothing was changed", how);
}

static struct hf_result judge_committed(struct hf_tx *tx, const char *how)
{
	if (!has_no_change(tx)) {
		tell_committed(tx);
		return hf_tx_committed_result(&tx->shared->report, how);
	}
	return fail_unchanged(tx, how);
}

static struct hf_result judge_conflict(const struct hf_tx *tx)
{
	const struct hf_tx_report *report = &tx->shared->report;
	const struct hf_tx_conflict *first = &report->conflicts[0];
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)tx->token),
				     HF_FIELD_INT("attempt", tx->attempt),
				     HF_FIELD_INT("count", (int64_t)report->n_conflicts),
				     HF_FIELD_TEXT("first", report->n_listed ? first->path : ""),
				     HF_FIELD_TEXT("kind", report->n_listed ? first->kind : "") };

	hf_tx_event(tx, HF_EV_RUN_CONFLICT, fields, 5);
	if (report->n_conflicts == 0)
		return hf_result_make(HF_OUTCOME_CONFLICT, HF_EXIT_NO, "nothing was committed: %.400s", tx->shared->err.detail);
	return hf_result_make(HF_OUTCOME_CONFLICT, HF_EXIT_NO, "nothing was committed: %zu conflict%s, the first: %.400s (%s)",
			      report->n_conflicts, report->n_conflicts == 1 ? "" : "s", first->path, first->kind);
}

static struct hf_result judge_failed(const struct hf_tx *tx)
{
	const struct hf_err *err = &tx->shared->err;
	char text[HF_ERR_TEXT_MAX];

	if (err->code == HF_E_CONFLICT)
		return judge_conflict(tx);
	if (err->code == HF_E_STALE || err->code == HF_E_NOT_HELD)
		return hf_judge_cause(HF_CAUSE_LOST, 0, "");
	(void)hf_err_format(err, text, sizeof(text));
	return hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "its work was not committed: %s", text);
}

/* Refused by the verifier; or, where no commit of it could be kept, because of what the command left. */
static struct hf_result judge_refused(const struct hf_tx *tx)
{
	const struct hf_tx_report *report = &tx->shared->report;

	return hf_result_make(report->commit[0] ? HF_OUTCOME_VERIFY_FAILED : HF_OUTCOME_FAILED, HF_EXIT_NO, "not landed on %.60s: %s",
			      report->branch, tx->shared->err.detail);
}

/* Was what the child failed with the end that it was told? Not what no end can be the reason of. */
static int is_cut_short(const struct hf_tx *tx, enum hf_cause cause)
{
	int code = tx->shared->err.code;

	return code == HF_E_CANCELLED || (cause != HF_CAUSE_NONE && code != HF_E_CONFLICT && code != HF_E_STALE && code != HF_E_NOT_HELD);
}

/* What a verifier writes into a git work tree does not land: before it runs, what the command left is committed. */
int hf_tx_is_sealed(void *arg)
{
	struct hf_tx *tx = arg;

	atomic_store(&tx->shared->step, HF_TX_STEP_NONE);
	return tx->lands;
}

int hf_tx_sealed(void *arg, enum hf_cause cause, struct hf_result *result)
{
	struct hf_tx *tx = arg;
	int step = atomic_load(&tx->shared->step);

	if (step == HF_TX_STEP_SEALED)
		return 0;
	if (step == HF_TX_STEP_REFUSED)
		*result = judge_refused(tx);
	else if (step == HF_TX_STEP_FAILED && !is_cut_short(tx, cause))
		*result = judge_failed(tx);
	else if (cause != HF_CAUSE_NONE)
		*result = hf_judge_cause(cause, 0, " before it could be verified");
	else
		*result = hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "the process that should commit its work was killed");
	return -EIO;
}

/* What was verified is not what is there. The result is for a target that never comes to rest. */
static int judge_moved(struct hf_tx *tx, struct hf_result *result)
{
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)tx->token), HF_FIELD_INT("attempt", tx->attempt),
				     HF_FIELD_TEXT("path", tx->shared->moved) };

	struct hf_tx_report *report = &tx->shared->report;
	struct hf_tx_conflict *first = &report->conflicts[0];

	*first = (struct hf_tx_conflict){ .kind = "changed-while-verified" };
	hf_copy_text(first->path, sizeof(first->path), tx->shared->moved);
	report->n_conflicts = report->n_listed = 1;
	hf_tx_event(tx, HF_EV_RUN_MOVED, fields, 3);
	hf_tx_say(tx, "%s changed during the verification; it is verified again with the present content", tx->shared->moved);
	*result = hf_result_make(HF_OUTCOME_CONFLICT, HF_EXIT_NO, "nothing was committed: the target changed during each verification, the last time %.60s",
				 tx->shared->moved);
	return HF_STAGE_VERIFY;
}

/* The child did not say what it came to, or that it was told to end: what is there decides. */
static int judge_silent(struct hf_tx *tx, enum hf_cause cause, struct hf_result *result)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_plan_report report;
	int r;

	if (tx->lands) {
		r = hf_tx_branch_settled(tx->state, tx->journal, tx->plans, tx->name, tx->plan, &tx->shared->report, &err);
	} else {
		r = hf_plan_committed(tx->plans, tx->plan, -1, &report, &err);
		if (r == 1)
			copy_figures(&tx->shared->report, &report);
	}
	if (r == 1) {
		*result = judge_committed(tx, result->cause);
		return 0;
	}
	if (r < 0) {
		tx->shared->err = err;
		*result = judge_failed(tx);
	} else if (cause != HF_CAUSE_NONE) {
		*result = hf_judge_cause(cause, 0, " before the commit");
	} else {
		*result = hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "the process that should commit was killed; nothing was committed");
	}
	return -EINTR;
}

int hf_tx_landed(void *arg, enum hf_cause cause, struct hf_result *result)
{
	struct hf_tx *tx = arg;

	switch ((enum hf_tx_step)atomic_load(&tx->shared->step)) {
	case HF_TX_STEP_COMMITTED:
		*result = judge_committed(tx, result->cause);
		return 0;
	case HF_TX_STEP_LEFT:
		if (tx->o.flags & HF_TX_REQUIRE_CHANGE && hf_tx_plan_is_clean(tx)) {
			*result = fail_unchanged(tx, result->cause);
			return 0;
		}
		*result = hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%.60s, not committed, as requested", result->cause);
		return 0;
	case HF_TX_STEP_DECLINED:
		*result = hf_result_make(HF_OUTCOME_DECLINED, HF_EXIT_NO, "nothing was committed: the answer was no");
		return -ECANCELED;
	case HF_TX_STEP_FAILED:
		if (is_cut_short(tx, cause))
			return judge_silent(tx, cause, result);
		*result = judge_failed(tx);
		return -EIO;
	case HF_TX_STEP_REFUSED:
		*result = judge_refused(tx);
		return -EIO;
	case HF_TX_STEP_MOVED:
		return judge_moved(tx, result);
	case HF_TX_STEP_SEALED:
	case HF_TX_STEP_NONE:
	default:
		return judge_silent(tx, cause, result);
	}
}
