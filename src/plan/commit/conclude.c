/* plan/commit/conclude.c - the ends of a commit or an undo: on record and told, or withdrawn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/git/index.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

static int is_plain(const struct hf_op *op)
{
	return (op->flags & (HF_OP_HIDDEN | HF_OP_GIT_LOCK)) == 0;
}

void hf_intent_count(const struct hf_intent *intent, uint64_t *ret_added, uint64_t *ret_changed,
		     uint64_t *ret_deleted, uint64_t *ret_bytes)
{
	*ret_added = *ret_changed = *ret_deleted = *ret_bytes = 0;
	for (size_t i = 0; i < intent->n_ops; i++) {
		const struct hf_op *op = &intent->ops[i];

		if (!is_plain(op))
			continue;
		*ret_added += op->kind == HF_OP_NEW;
		*ret_changed += op->kind == HF_OP_EXCHANGE || op->kind == HF_OP_META;
		*ret_deleted += op->kind == HF_OP_DELETE;
		if ((op->kind == HF_OP_NEW || op->kind == HF_OP_EXCHANGE) && S_ISREG(op->new_mode))
			*ret_bytes += op->new_size;
	}
}

/* The old versions in a target's own stage are not kept: they would stand in people's way. */
static int has_stage_in_target(const struct hf_intent *intent)
{
	for (size_t i = 0; i < intent->n_targets; i++)
		if (intent->targets[i].in_target)
			return 1;
	return 0;
}

static void tell_conclusion(struct hf_work *work)
{
	uint64_t added, changed, deleted, bytes;

	hf_intent_count(&work->intent, &added, &changed, &deleted, &bytes);
	if (work->intent.purpose == HF_INTENT_COMMIT) {
		struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)work->intent.token),
					     HF_FIELD_INT("added", (int64_t)added),
					     HF_FIELD_INT("changed", (int64_t)changed),
					     HF_FIELD_INT("deleted", (int64_t)deleted) };

		hf_plan_event(work->plans, HF_EV_PLAN_COMMITTED, work->record.name, fields, 4);
	} else {
		struct hf_field fields[] = {
			HF_FIELD_INT("token", (int64_t)work->intent.token),
			HF_FIELD_INT("entries", (int64_t)(added + changed + deleted)),
		};

		hf_plan_event(work->plans, HF_EV_PLAN_UNDONE, work->record.name, fields, 2);
	}
}

/* Ends an intent of which every operation is done: kept for undo, or as a mark that it was. */
void hf_intent_end(struct hf_work *work)
{
	int commit = work->intent.purpose == HF_INTENT_COMMIT;
	const char *name = commit ? HF_INTENT_UNDO : HF_INTENT_UNDONE;

	if (!commit)
		(void)hf_sys.unlinkat(work->plan_fd, HF_INTENT_UNDO, 0);
	if (commit && has_stage_in_target(&work->intent))
		name = HF_INTENT_GONE;
	if (commit)
		hf_index_keep(work); /* before the rename below, whose time is the commit's end */
	/* The stage goes last: as long as the intent is there, it may be needed. */
	if (hf_sys.renameat2(work->plan_fd, HF_INTENT, work->plan_fd, name, 0) == 0)
		(void)hf_stage_clear(work->plan_fd, &work->record);
}

/*
 * The targets have changed, durably. Nothing that fails from here on takes that back or turns it
 * into an error: the record is then brought up to date by the next recovery.
 */
void hf_work_conclude(struct hf_work *work, int told)
{
	int commit = work->intent.purpose == HF_INTENT_COMMIT;

	if (hf_plan_become(&work->record, commit ? HF_PLAN_COMMITTED : HF_PLAN_ROLLED_BACK,
			   commit ? NULL : "the commit was undone", NULL) < 0 ||
	    hf_plan_save(work->plans, &work->record, work->token, HF_PLAN_SAVE_OVER_SYNCED, NULL) < 0)
		return;
	if (!told)
		tell_conclusion(work);
	hf_intent_end(work);
}

/* What the plan was before: a commit leaves a sandbox to work in, an undo a commit. */
static enum hf_plan_state state_before(const struct hf_work *work)
{
	return work->intent.purpose == HF_INTENT_COMMIT ? HF_PLAN_ACTIVE : HF_PLAN_COMMITTED;
}

/* What an operation left in the target: the entry and the directory that it is in. */
static void note_op(struct hf_work *work, const struct hf_op *op, struct hf_buf *rows)
{
	const char *leaf = hf_dirtree_leaf(op->path);
	size_t len = (size_t)(leaf - op->path);
	AUTO_FD dir = -1;
	AUTO_FREE char *path = strndup(op->path, len - (len > 0));
	struct stat st;

	dir = hf_dirtree_descend(work->sites[op->target].target_fd, op->path, len - (len > 0));
	if (dir < 0 || !path || hf_sys.fstat(dir, &st) < 0)
		return;
	/* Several operations of one directory stand together; the last that is written counts. */
	if (op->parent_ino == (uint64_t)st.st_ino)
		hf_restored_add(rows, path, &st);
	if (!op->old_mode || hf_dirtree_look(dir, leaf, &st) <= 0 || (uint64_t)st.st_ino != op->old_ino ||
	    st.st_mode != op->old_mode)
		return;
	if (S_ISDIR(st.st_mode) || ((uint64_t)st.st_size == op->old_size &&
				    (int64_t)st.st_mtim.tv_sec * HF_SEC + st.st_mtim.tv_nsec ==
					    op->old_mtime_ns))
		hf_restored_add(rows, op->path, &st);
}

int hf_work_note_restored(struct hf_work *work)
{
	int r = 0;

	if (work->intent.purpose != HF_INTENT_COMMIT)
		return 0;
	for (size_t t = 0; r == 0 && t < work->intent.n_targets; t++) {
		AUTO(hf_buf_done) struct hf_buf rows = HF_BUF_INIT;
		AUTO_FD fd = -1;

		for (size_t i = 0; i < work->intent.n_ops; i++) {
			const struct hf_op *op = &work->intent.ops[i];

			if (op->target == t && op->kind != HF_OP_LEAVE && op->kind != HF_OP_STAGE_MODE)
				note_op(work, op, &rows);
		}
		r = rows.err ? rows.err :
			       hf_sandbox_dir(work->plan_fd, work->intent.targets[t].sandbox, 0, &fd, NULL);
		if (r == 0)
			r = hf_restored_write(fd, &rows);
	}
	return r;
}

int hf_work_withdraw(struct hf_work *work, size_t n_left, struct hf_err *err)
{
	char reason[HF_PLAN_WHY_MAX] = "";
	enum hf_plan_state state = state_before(work);
	int r;

	/* An undo that was undone: what was moved twice is as the commit left it, as of now. */
	if (work->intent.purpose == HF_INTENT_TAKE_BACK)
		(void)hf_intent_touch(work->plan_fd, HF_INTENT_UNDO);
	/* Without it the next attempt finds more conflicts, nothing worse. */
	(void)hf_work_note_restored(work);
	/* What is undone must be on disk before the intent goes, which would undo it again. */
	r = hf_work_sync(work);
	if (r < 0)
		return hf_fail_sys(err, -r, "syncfs", work->record.name);
	if (n_left) {
		(void)snprintf(reason, sizeof(reason),
			       "other processes changed %zu entries while an interrupted commit was "
			       "undone; these were not restored", n_left);
		state = HF_PLAN_ERRORED;
	} else if (work->record.torn && state == HF_PLAN_ACTIVE) {
		state = HF_PLAN_ERRORED;
	}
	r = hf_plan_become(&work->record, state, reason, err);
	if (r == 0)
		r = hf_plan_save(work->plans, &work->record, work->token, HF_PLAN_SAVE_OVER_SYNCED, err);
	if (r == 0 && hf_sys.unlinkat(work->plan_fd, HF_INTENT, 0) < 0 && errno != ENOENT)
		r = FAIL_SYS(err, "unlinkat", HF_INTENT);
	/* Its removal is one more change of the target's own directory. */
	if (r == 0 && !n_left && has_stage_in_target(&work->intent)) {
		(void)hf_stage_clear(work->plan_fd, &work->record);
		(void)hf_work_note_restored(work);
	}
	return r;
}
