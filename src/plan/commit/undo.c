/*
 * plan/commit/undo.c - plan undo and plan rollback.
 *
 * After a commit the stages hold the old versions, and the intent is kept as `undo`. Taking the
 * commit back is a commit of its own: the same operations, reversed and in the reverse order, with
 * an intent, two syncs and recovery. Its conflict rule is stricter than that of a commit: an entry
 * must be exactly as the commit left it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/git/index.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"

static const struct hf_plan_commit_opts no_opts = { .size = sizeof(no_opts) };

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

/* -- is everything as the commit left it? ------------------------------------------------------- */

/* Did anything below change after the commit? Its end is the last change of the intent's file. */
static int same_since(int dirfd, const char *name, int64_t end_ns, int depth)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	struct stat st;
	AUTO_FD fd = -1;
	int r = hf_dirtree_look(dirfd, name, &st);

	if (r <= 0 || in_ns(st.st_ctim) > end_ns)
		return r < 0 ? r : 0;
	if (!S_ISDIR(st.st_mode))
		return 1;
	fd = hf_dirtree_open(dirfd, name);
	r = fd < 0 ? fd : hf_listing_read(fd, &listing);
	if (r < 0)
		return r;
	r = 1;
	for (size_t i = 0; r == 1 && i < listing.n; i++)
		r = same_since(fd, listing.entries[i].name, end_ns, depth + 1);
	return r;
}

/* Is the entry of one operation what the commit made of it? 1, 0, -errno. */
static int is_as_committed(struct hf_site *site, const struct hf_op *op, int64_t end_ns)
{
	const char *leaf = hf_dirtree_leaf(op->path);
	size_t len = (size_t)(leaf - op->path);
	AUTO_FD dir = hf_dirtree_descend(site->target_fd, op->path, len - (len > 0));
	struct stat st;
	int r = dir < 0 ? 0 : hf_dirtree_look(dir, leaf, &st);

	if (r < 0 || dir < 0)
		return r < 0 ? r : dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP ? 0 : dir;
	if (op->kind == HF_OP_DELETE)
		return r == 0;
	if (r == 0 || (uint64_t)st.st_ino != op->new_ino || st.st_mode != op->new_mode)
		return 0;
	if (op->kind == HF_OP_META)
		return 1;
	if (S_ISDIR(st.st_mode))
		return same_since(dir, leaf, end_ns, 0);
	return (uint64_t)st.st_size == op->new_size && in_ns(st.st_mtim) == op->new_mtime_ns &&
	       in_ns(st.st_ctim) <= end_ns;
}

static int is_forced(const struct hf_plan_commit_opts *opts, const char *path)
{
	for (const char *const *f = opts->force; f && *f; f++)
		if (strcmp(*f, path) == 0)
			return 1;
	return 0;
}

static int add_conflict(const struct hf_work *work, const struct hf_op *op,
			struct hf_plan_report *report)
{
	return hf_report_conflict(report, &(struct hf_conflict){
		.sandbox = work->intent.targets[op->target].sandbox, .path = op->path,
		.kind = hf_verdict_word(HF_VERDICT_CHANGED) });
}

static int check(struct hf_work *work, const struct hf_plan_commit_opts *opts, int64_t end_ns,
		 struct hf_plan_report *report, struct hf_err *err)
{
	for (size_t i = 0; i < work->intent.n_ops; i++) {
		const struct hf_op *op = &work->intent.ops[i];
		int r;

		if (op->flags & HF_OP_HIDDEN || op->kind == HF_OP_LEAVE || op->kind == HF_OP_STAGE_MODE)
			continue;
		r = is_as_committed(&work->sites[op->target], op, end_ns);
		if (r < 0)
			return hf_fail_sys(err, -r, "check", op->path);
		if (r == 0 && !is_forced(opts, op->path) && !hf_index_is_same(work, i))
			r = add_conflict(work, op, report);
		if (r < 0)
			return hf_fail_sys(err, ENOMEM, "memory", op->path);
	}
	return 0;
}

/* -- the reverse ------------------------------------------------------------------------------------ */

/* What stands in the target now goes back to where it came from. */
static int reverse_op(struct hf_work *work, const struct hf_op *op, struct hf_op *ret)
{
	struct stat st;
	AUTO_FD dir = -1;
	size_t len;

	*ret = *op;
	ret->old_ino = op->new_ino;
	ret->old_mode = op->new_mode;
	ret->old_size = op->new_size;
	ret->old_mtime_ns = op->new_mtime_ns;
	ret->old_ctime_ns = 0; /* an undo keeps no old versions */
	ret->old_uid = op->new_uid;
	ret->old_gid = op->new_gid;
	ret->new_ino = op->old_ino;
	ret->new_mode = op->old_mode;
	ret->new_size = op->old_size;
	ret->new_mtime_ns = op->old_mtime_ns;
	ret->new_uid = op->old_uid;
	ret->new_gid = op->old_gid;
	ret->flags &= (uint8_t)~HF_OP_TREE;
	if (op->kind != HF_OP_META) {
		ret->attrs = "";
		ret->attrs_len = 0;
	}
	if (op->kind == HF_OP_NEW)
		ret->kind = HF_OP_DELETE;
	else if (op->kind == HF_OP_DELETE)
		ret->kind = HF_OP_NEW;
	/* Forced: what stands there now is taken as it is. */
	len = (size_t)(hf_dirtree_leaf(op->path) - op->path);
	dir = hf_dirtree_descend(work->sites[op->target].target_fd, op->path, len - (len > 0));
	if (dir >= 0 && ret->kind != HF_OP_META && ret->old_mode &&
	    hf_dirtree_look(dir, hf_dirtree_leaf(op->path), &st) > 0) {
		ret->old_ino = (uint64_t)st.st_ino;
		ret->old_mode = st.st_mode;
		ret->old_size = (uint64_t)st.st_size;
		ret->old_mtime_ns = in_ns(st.st_mtim);
	}
	return 0;
}

/* Attributes of directories go the other way round as well. */
static int reverse_attrs(struct hf_work *work, struct hf_op *op)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	char **grown;

	hf_attrs_reverse(op->attrs, op->attrs_len, &out);
	if (out.err || !hf_work_string(work, "%s", ""))
		return -ENOMEM;
	/* The string that was just kept gives its place to the list. */
	grown = &work->strings[work->n_strings - 1];
	free(*grown);
	*grown = out.s;
	op->attrs = out.s;
	op->attrs_len = out.len;
	out = (struct hf_buf)HF_BUF_INIT;
	return 0;
}

static int reverse(struct hf_work *work, struct hf_err *err)
{
	struct hf_intent *intent = &work->intent;
	struct hf_op *ops = calloc(intent->n_ops + 1, sizeof(*ops));
	size_t n = 0;
	int r = ops ? 0 : -ENOMEM;

	for (size_t i = intent->n_ops; r == 0 && i-- > 0;) {
		const struct hf_op *op = &intent->ops[i];

		/* What only the sandbox needed does not come back: the plan is over. */
		if (op->flags & HF_OP_GIT_LOCK || op->kind == HF_OP_LEAVE || op->kind == HF_OP_STAGE_MODE ||
		    (op->kind == HF_OP_META && op->flags & HF_OP_HIDDEN && op->attrs_len))
			continue;
		r = reverse_op(work, op, &ops[n]);
		if (r == 0 && ops[n].kind == HF_OP_META && ops[n].attrs_len)
			r = reverse_attrs(work, &ops[n]);
		n++;
	}
	if (r < 0) {
		free(ops);
		return hf_fail_sys(err, -r, "memory", work->record.name);
	}
	free(intent->ops);
	intent->ops = ops;
	intent->n_ops = n;
	intent->purpose = HF_INTENT_TAKE_BACK;
	intent->n_fences = 0;
	return 0;
}

/* -- the verbs ----------------------------------------------------------------------------------------- */

static int read_kept(struct hf_work *work, int64_t *ret_end_ns, struct hf_err *err)
{
	const char *why = "";
	struct stat st;
	int r = hf_intent_load(work->plan_fd, HF_INTENT_UNDO, &work->intent, &why, err);

	if (r == -ENOENT)
		return FAIL(err, HF_E_PLAN_STATE, "undo", work->record.name,
			    "its old versions were not kept");
	if (r == HF_E_FORMAT)
		return FAIL(err, r, "undo", work->record.name, "the kept intent cannot be used: %s", why);
	if (r < 0)
		return r;
	if (hf_sys.fstatat(work->plan_fd, HF_INTENT_UNDO, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return FAIL_SYS(err, "fstatat", HF_INTENT_UNDO);
	*ret_end_ns = in_ns(st.st_ctim);
	return 0;
}

static int take_back(struct hf_work *work, const struct hf_plan_commit_opts *opts,
		     struct hf_plan_report *report, struct hf_err *err)
{
	const struct hf_op *stuck = NULL;
	int64_t end_ns = 0;
	int r;

	if (work->record.state != HF_PLAN_COMMITTED)
		return FAIL(err, HF_E_PLAN_STATE, "undo", work->record.name,
			    "it is %s; only a commit can be undone",
			    hf_plan_state_word(work->record.state));
	/* Read under the locks: no other commit removes the old versions meanwhile. */
	r = hf_work_lock_targets(work, err);
	if (r == 0)
		r = read_kept(work, &end_ns, err);
	if (r == 0)
		r = hf_sites_open(work, err);
	if (r == 0)
		r = check(work, opts, end_ns, report, err);
	if (r == 0 && report->n_conflicts)
		r = hf_report_refuse(work, "undo", report, err);
	if (r == 0)
		r = reverse(work, err);
	if (r == 0)
		r = hf_carry_out(work, NULL, NULL, &stuck, err);
	if (r == HF_E_CHANGED && stuck && work->record.state != HF_PLAN_PREPARED) {
		r = add_conflict(work, stuck, report);
		r = r < 0 ? hf_fail_sys(err, ENOMEM, "memory", stuck->path) :
			    hf_report_refuse(work, "undo", report, err);
	}
	if (r == 0)
		hf_intent_count(&work->intent, &report->added, &report->changed, &report->deleted,
				&report->bytes);
	return r;
}

int hf_plan_undo(struct hf_plans *plans, const char *plan, const struct hf_plan_commit_opts *opts,
		 struct hf_plan_report *ret_report, struct hf_err *err)
{
	AUTO(hf_work_done) struct hf_work work = HF_WORK_INIT;
	struct hf_plan_report ignored = { 0 }, *report = ret_report ? ret_report : &ignored;
	struct hf_err why = HF_ERR_INIT;
	int r;

	memset(report, 0, sizeof(*report));
	if (!opts)
		opts = &no_opts;
	r = opts->size == sizeof(*opts) ? hf_work_begin(&work, plans, plan, opts->wait_ns, &why)
					: FAIL(&why, -EINVAL, "arguments", plan, "size of the options");
	if (r == 0)
		r = take_back(&work, opts, report, &why);
	hf_plan_report_done(&ignored);
	return r < 0 && plans ? hf_plan_refused(plans, plan, "undo", r, &why, err) : r;
}

int hf_plan_rollback(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_err *err)
{
	AUTO(hf_work_done) struct hf_work work = HF_WORK_INIT;
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", "on request") };
	int r = hf_work_begin(&work, plans, plan, wait_ns, err);

	if (r < 0)
		return r;
	if (work.record.state == HF_PLAN_ROLLED_BACK)
		return 0;
	r = hf_plan_check_unused(plans, &work.record, err);
	if (r == 0)
		r = hf_plan_become(&work.record, HF_PLAN_ROLLED_BACK, NULL, err);
	if (r == 0)
		r = hf_plan_save(plans, &work.record, work.token, HF_PLAN_SAVE_DURABLE, err);
	if (r == 0)
		hf_plan_event(plans, HF_EV_PLAN_ROLLED_BACK, plan, fields, 1);
	return r;
}
