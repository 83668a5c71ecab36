/*
 * plan/recovery/recover.c - what a process began with a plan, and did not end.
 *
 * No intent: nothing was moved. A torn one: nothing was moved either, because the first rename comes
 * after the intent is on disk. A whole one is a promise once the first sync has ended, which its
 * phase tells, or an operation that was done; until then it is synced and the fence is proven now, or
 * it is dropped. A promise is kept forwards, unless the commit itself had turned back, or
 * a target's entry was replaced before the promise reached it: then everything that was done is
 * undone. Each operation is looked at first, so recovery can be killed and begun again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/state/state.h"

static void tell(struct hf_work *work, const char *outcome, const char *reason)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("outcome", outcome),
				     HF_FIELD_TEXT("reason", reason) };

	hf_plan_event(work->plans, HF_EV_PLAN_RECOVERED, work->record.name, fields, 2);
}

/* Puts a file of the plan away that cannot be an intent (L12). */
static int quarantine(struct hf_work *work, const char *why, struct hf_err *err)
{
	char moved[HF_QUARANTINE_NAME_MAX], key[HF_NAME_KEY_MAX] = "", label[HF_NAME_KEY_MAX + 16],
		file[HF_NAME_KEY_MAX + 32];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", why) };
	int r;

	(void)!hf_name_key(work->record.name, strlen(work->record.name), key, NULL);
	(void)snprintf(label, sizeof(label), "plans.%s", key);
	(void)snprintf(file, sizeof(file), "plans/%s/" HF_INTENT, key);
	r = hf_state_quarantine_from(work->plans->state, work->plan_fd, label, HF_INTENT, moved, err);
	if (r < 0)
		return r;
	hf_plan_event(work->plans, HF_EV_RECORD_QUARANTINED, work->record.name, fields, 3);
	hf_quarantine_trim(work->plans->state, work->plans->journal, moved);
	return 0;
}

static int save_state(struct hf_work *work, enum hf_plan_state state, const char *reason,
		      struct hf_err *err)
{
	int r = hf_plan_become(&work->record, state, reason, err);

	return r < 0 ? r : hf_plan_save(work->plans, &work->record, work->token, 0, err);
}

static int exists(const struct hf_work *work, const char *name)
{
	struct stat st;

	return hf_dirtree_look(work->plan_fd, name, &st);
}

/* PREPARED without an intent: it was never written, or it was ended and the record was not. */
static int without_intent(struct hf_work *work, struct hf_err *err)
{
	int done, undone, r;

	if (work->record.state != HF_PLAN_PREPARED)
		return 0;
	undone = exists(work, HF_INTENT_UNDONE);
	done = undone == 0 ? exists(work, HF_INTENT_UNDO) : 0;
	if (done == 0)
		done = exists(work, HF_INTENT_GONE);
	if (undone < 0 || done < 0)
		return hf_fail_sys(err, undone < 0 ? -undone : -done, "fstatat", work->record.name);
	if (undone)
		r = save_state(work, HF_PLAN_ROLLED_BACK, "the commit was undone", err);
	else if (done)
		r = save_state(work, HF_PLAN_COMMITTED, NULL, err);
	else
		r = save_state(work, work->record.torn ? HF_PLAN_ERRORED : HF_PLAN_ACTIVE, NULL, err);
	if (r < 0)
		return r;
	tell(work, undone ? "taken-back" : done ? "committed" : "unchanged",
	     undone || done ? "it died before it wrote its record" : "it died before the outcome was decided");
	return 1;
}

/* The first entry in that state (enum hf_op_state): HF_OP_DONE, it was moved; HF_OP_FOREIGN, it cannot be any more. *ret is NULL: none is. */
static int find(const struct hf_work *work, int wanted, const struct hf_op **ret, struct hf_err *err)
{
	*ret = NULL;
	for (size_t i = 0; i < work->intent.n_ops && !*ret; i++) {
		const struct hf_op *op = &work->intent.ops[i];
		int state;

		/* Modes do not keep an entry from landing, and do not show that it has. */
		if (op->kind == HF_OP_META || op->kind == HF_OP_STAGE_MODE)
			continue;
		state = hf_op_look(&work->sites[op->target], op, work->intent.phase);
		if (state < 0)
			return hf_fail_sys(err, -state, "fstatat", op->path);
		if (state == wanted)
			*ret = op;
	}
	return 0;
}

/* Was any entry moved? 1, 0 or an error. */
static int is_begun(const struct hf_work *work, struct hf_err *err)
{
	const struct hf_op *moved;
	int r = find(work, HF_OP_DONE, &moved, err);

	return r < 0 ? r : moved != NULL;
}

static int has_all_stages(const struct hf_work *work)
{
	for (size_t i = 0; i < work->intent.n_targets; i++)
		if (work->sites[i].stage_fd < 0)
			return 0;
	return 1;
}

/* `moved` 0: no entry ever was, so that none can have been changed since. */
static int go_back(struct hf_work *work, int moved, struct hf_err *err)
{
	struct hf_apply apply = { .intent = &work->intent, .sites = work->sites };
	int r;

	r = hf_intent_set_phase(work->plan_fd, HF_INTENT_UNDOING);
	if (r < 0)
		return hf_fail_sys(err, -r, "pwrite", HF_INTENT);
	work->intent.phase = HF_INTENT_UNDOING;
	r = hf_apply_back(&apply);
	if (r < 0)
		return hf_fail_sys(err, -r, "undo", apply.stuck->path);
	return hf_work_withdraw(work, moved ? apply.n_left : 0, err);
}

static int go_back_and_tell(struct hf_work *work, int moved, const char *reason, struct hf_err *err)
{
	int r = go_back(work, moved, err);

	if (r == 0)
		tell(work, work->record.state == HF_PLAN_ERRORED ? "errored" : "undone", reason);
	return r;
}

/* The foreign entry is named, so that its owner can decide which version it wants. */
static int foreign(struct hf_work *work, const struct hf_op *op, struct hf_err *err)
{
	struct hf_field fields[1];
	char reason[HF_PLAN_WHY_MAX];
	int r;

	(void)snprintf(reason, sizeof(reason),
		       "%.120s was changed by another process after the commit was interrupted; "
		       "the commit was undone, the sandbox has its version",
		       op->path);
	r = go_back(work, 1, err);
	if (r < 0)
		return r;
	if (work->record.state != HF_PLAN_ERRORED)
		r = save_state(work, HF_PLAN_ERRORED, reason, err);
	fields[0] = (struct hf_field)HF_FIELD_TEXT("reason", reason);
	if (r == 0)
		hf_plan_event(work->plans, HF_EV_PLAN_ERRORED, work->record.name, fields, 1);
	return r;
}

static int go_forward(struct hf_work *work, struct hf_err *err)
{
	struct hf_apply apply = { .intent = &work->intent, .sites = work->sites };
	const struct hf_op *stranger;
	int r = find(work, HF_OP_FOREIGN, &stranger, err);

	if (r < 0)
		return r;
	if (stranger)
		return foreign(work, stranger, err);
	r = hf_apply_forward(&apply);
	if (r == HF_E_CHANGED)
		return foreign(work, apply.stuck, err);
	if (r < 0)
		return hf_apply_failed(&work->intent, apply.stuck, r, err);
	/* On disk as well: the next recovery may find the stage gone, and the intent not. */
	r = hf_intent_set_phase(work->plan_fd, HF_INTENT_APPLIED);
	if (r < 0)
		return hf_fail_sys(err, -r, "pwrite", HF_INTENT);
	work->intent.phase = HF_INTENT_APPLIED;
	r = hf_work_sync(work);
	if (r < 0)
		return hf_fail_sys(err, -r, "syncfs", work->record.name);
	tell(work, work->intent.purpose == HF_INTENT_COMMIT ? "committed" : "taken-back",
	     "it died before it had finished");
	hf_work_conclude(work, 1);
	return 0;
}

static int is_ended(const struct hf_work *work)
{
	return work->intent.phase == HF_INTENT_APPLIED &&
	       work->record.state == (work->intent.purpose == HF_INTENT_COMMIT ? HF_PLAN_COMMITTED
									       : HF_PLAN_ROLLED_BACK);
}

/*
 * An intent whose phase says no more than that it was written. In another boot an operation that was
 * done says that the first sync had ended; without one, the intent may be on disk and what it is to
 * bring may not. In this boot nothing was moved yet, and nothing is lost; but what was not synced is
 * synced before the first rename. Goes on to go_forward() or drops it.
 */
static int promise_or_drop(struct hf_work *work, struct hf_err *err)
{
	char boot_id[HF_BOOT_ID_LEN + 1];
	int same_boot, r = hf_here_boot(boot_id, err);

	if (r < 0)
		return r;
	same_boot = strcmp(boot_id, work->intent.boot_id) == 0;
	r = same_boot ? 0 : is_begun(work, err);
	if (r < 0)
		return r;
	if (r == 1)
		return go_forward(work, err);
	if (!same_boot || !has_all_stages(work))
		return go_back_and_tell(work, 0, "it died before the outcome was decided", err);
	r = hf_work_sync(work);
	if (r < 0)
		return hf_fail_sys(err, -r, "syncfs", work->record.name);
	/* The promise holds only while its token is current (L5). */
	r = hf_work_begin_apply(work, err);
	if (r == HF_E_STALE || r == HF_E_NOT_HELD)
		return go_back_and_tell(work, 0, "its token is no longer current", err);
	return r < 0 ? r : go_forward(work, err);
}

/* The targets may be gone for good, or just not mounted: then it waits. */
static int finish(struct hf_work *work, struct hf_err *err)
{
	int r = hf_sites_open(work, err);

	if (r < 0)
		return r;
	/* Everything was done and told, but for the end of the intent. */
	if (is_ended(work)) {
		hf_intent_end(work);
		return 0;
	}
	/* A record that was lost in a power cut may be behind its intent. */
	work->record.state = HF_PLAN_PREPARED;
	work->record.reason[0] = '\0';
	switch (work->intent.phase) {
	case HF_INTENT_PREPARED:
		return promise_or_drop(work, err);
	case HF_INTENT_UNDOING:
		return go_back_and_tell(work, 1, "the undo was interrupted", err);
	case HF_INTENT_APPLY:
	case HF_INTENT_APPLIED:
	default:
		return go_forward(work, err);
	}
}

int hf_work_recover(struct hf_work *work, struct hf_err *err)
{
	const char *why;
	int r = hf_intent_load(work->plan_fd, HF_INTENT, &work->intent, &why, err);

	(void)hf_sys.unlinkat(work->plan_fd, HF_INTENT_NEW, 0);
	if (r == HF_E_FORMAT)
		r = quarantine(work, why, err) < 0 ? HF_E_FORMAT : -ENOENT;
	if (r == -ENOENT) {
		(void)hf_stage_clear(work->plan_fd, &work->record);
		return without_intent(work, err);
	}
	if (r < 0)
		return r;
	/* Another's commit may be at the same target: recovery keeps the order of locks. */
	r = hf_work_lock_targets(work, err);
	if (r == 0)
		r = finish(work, err);
	for (size_t i = 0; work->sites && i < work->intent.n_targets; i++)
		hf_site_done(&work->sites[i]);
	free(work->sites);
	work->sites = NULL;
	hf_intent_done(&work->intent);
	while (work->n_target_locks > 0)
		hf_plan_unlock(&work->target_locks[--work->n_target_locks]);
	return r < 0 ? r : 1;
}

int hf_plan_recover(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_err *err)
{
	AUTO(hf_work_done) struct hf_work work = HF_WORK_INIT;
	int ended, r = hf_work_lock(&work, plans, plan, wait_ns, err);

	if (r < 0)
		return r;
	r = hf_work_recover(&work, err);
	if (r < 0)
		return r;
	ended = hf_plan_end_strays(plans, &work.record, err);
	if (ended <= 0)
		return ended < 0 ? ended : r;
	r = hf_plan_settle(plans, &work.record, work.token, err);
	return r < 0 ? r : 1;
}

int hf_plan_heal(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	int r = hf_plan_load(plans, plan, &record, err);

	/* A commit that still goes on has the lock: that is waited for, or said to be busy. */
	if (r == 0 && record.state == HF_PLAN_PREPARED)
		r = hf_plan_recover(plans, plan, wait_ns, err);
	return r < 0 ? r : 0;
}
