/*
 * plan/stage/stage.c - from deltas to operations.
 *
 * The order of the operations:
 *
 *   modes that would forbid to move something (not for root)
 *   what is left out is moved out of directories that land as a whole
 *   git's index.lock, where entries below a git directory change
 *   exchanges and new entries; then deletions, so that no reader misses both; then modes
 *   index.lock comes back
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/stage/stage.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define OPS_FIRST 64

int hf_stage_no_memory(const struct hf_stage *s)
{
	return hf_fail_sys(s->err, ENOMEM, "memory", s->work->record.name);
}

struct hf_op *hf_stage_op(struct hf_stage *s, enum hf_op_kind kind, const char *path, const char *slot)
{
	struct hf_intent *intent = &s->work->intent;

	if (!path || !slot)
		return NULL;
	if (intent->n_ops == s->room) {
		size_t room = s->room ? 2 * s->room : OPS_FIRST;
		struct hf_op *grown = reallocarray(intent->ops, room, sizeof(*grown));

		if (!grown)
			return NULL;
		intent->ops = grown;
		s->room = room;
	}
	intent->ops[intent->n_ops] = (struct hf_op){ .kind = (uint8_t)kind, .target = s->index,
						     .path = path, .slot = slot, .attrs = "" };
	return &intent->ops[intent->n_ops++];
}

/* -- one delta -------------------------------------------------------------------------------- */

static void fill_op(struct hf_op *op, const struct hf_delta *d)
{
	op->old_ino = d->old.ino;
	op->old_mode = d->old.mode;
	op->old_size = d->old.size;
	op->old_mtime_ns = d->old.mtime_ns;
	op->old_ctime_ns = d->old.ctime_ns;
	op->old_uid = d->old.uid;
	op->old_gid = d->old.gid;
	op->new_ino = d->new.ino;
	op->new_mode = d->new.mode;
	op->new_size = d->new.size;
	op->new_mtime_ns = d->new.mtime_ns;
	op->new_uid = d->new.uid;
	op->new_gid = d->new.gid;
	op->parent_ino = d->inner ? 0 : d->parent_ino;
	if (d->attrs_len) {
		op->attrs = d->attrs;
		op->attrs_len = d->attrs_len;
	}
	if (d->inner)
		op->flags |= HF_OP_HIDDEN;
	/* One that was overruled is taken as it is: no second look below it. */
	if (S_ISDIR(d->old.mode) && d->kind != HF_CHANGE_MODE && !d->forced)
		op->flags |= HF_OP_TREE;
}

/* The passes below pick the deltas of one kind each. */
static int add_landing(struct hf_stage *s, const struct hf_delta *d)
{
	struct hf_op *op = hf_stage_op(s, d->op, d->path, d->slot);

	if (!op)
		return hf_stage_no_memory(s);
	fill_op(op, d);
	return 0;
}

static int add_deletion(struct hf_stage *s, const struct hf_delta *d)
{
	struct hf_op *op = hf_stage_op(s, HF_OP_DELETE, d->path, hf_stage_slot(s, HF_STAGE_OLD));

	if (!op)
		return hf_stage_no_memory(s);
	fill_op(op, d);
	op->new_mode = 0;
	op->new_ino = 0;
	return 0;
}

static int add_meta(struct hf_stage *s, const struct hf_delta *d)
{
	struct hf_op *op = hf_stage_op(s, HF_OP_META, d->path, "");

	if (!op)
		return hf_stage_no_memory(s);
	fill_op(op, d);
	return 0;
}

static int add_leaving(struct hf_stage *s, const struct hf_delta *d)
{
	struct hf_op *op = hf_stage_op(s, HF_OP_LEAVE, hf_stage_slot(s, HF_STAGE_LEFT), d->slot);

	if (!op)
		return hf_stage_no_memory(s);
	fill_op(op, d);
	op->old_mode = 0;
	op->old_ino = 0;
	op->flags |= HF_OP_HIDDEN;
	return 0;
}

/* -- modes that are in the way ------------------------------------------------------------------- */

static int blocks(uint32_t mode)
{
	return (mode & 0300) != 0300;
}

static int add_mode_op(struct hf_stage *s, enum hf_op_kind kind, const char *path, const char *slot,
		       const struct stat *st, uint32_t from, uint32_t to)
{
	struct hf_op *op = hf_stage_op(s, kind, path, slot);

	if (!op)
		return hf_stage_no_memory(s);
	op->old_ino = op->new_ino = (uint64_t)st->st_ino;
	op->old_mode = from;
	op->new_mode = to;
	op->old_uid = op->new_uid = st->st_uid;
	op->old_gid = op->new_gid = st->st_gid;
	op->flags |= HF_OP_HIDDEN;
	return 0;
}

static char *dir_of(struct hf_stage *s, const char *path)
{
	size_t len = (size_t)(hf_dirtree_leaf(path) - path);

	return (char *)hf_work_string(s->work, "%.*s", (int)(len ? len - 1 : 0), path);
}

/* Opens the directory of one delta on both sides for the time of the commit, if it is closed. */
static int open_modes(struct hf_stage *s, const struct hf_delta *d, const char **last)
{
	char *path = dir_of(s, d->path), *slot = d->slot ? dir_of(s, d->slot) : NULL;
	AUTO_FD target = -1;
	AUTO_FD upper = -1;
	struct stat st;
	int r = 0;

	if (!path)
		return hf_stage_no_memory(s);
	if (*last && strcmp(*last, path) == 0)
		return 0;
	*last = path;
	target = hf_dirtree_descend(s->unit->target_fd, path, strlen(path));
	if (target >= 0 && hf_sys.fstat(target, &st) == 0 && blocks(st.st_mode))
		r = add_mode_op(s, HF_OP_META, path, "", &st, st.st_mode, st.st_mode | 0300);
	if (r == 0 && slot && !s->unit->in_target) {
		upper = hf_dirtree_descend(s->unit->stage_fd, slot, strlen(slot));
		if (upper >= 0 && hf_sys.fstat(upper, &st) == 0 && blocks(st.st_mode))
			r = add_mode_op(s, HF_OP_STAGE_MODE, "", slot, &st, st.st_mode,
					st.st_mode | 0300);
	}
	return r;
}

/* Is it one that opens a directory of the target? */
static int opens(const struct hf_stage *s, const struct hf_op *op)
{
	return op->kind == HF_OP_META && op->target == s->index && op->flags & HF_OP_HIDDEN &&
	       op->attrs_len == 0 && op->new_mode == (op->old_mode | 0300) && blocks(op->old_mode);
}

static int is_opened(const struct hf_stage *s, const char *path)
{
	for (size_t i = 0; i < s->work->intent.n_ops; i++)
		if (opens(s, &s->work->intent.ops[i]) && strcmp(s->work->intent.ops[i].path, path) == 0)
			return 1;
	return 0;
}

/* -- passes ------------------------------------------------------------------------------------------ */

static int pass_modes(struct hf_stage *s)
{
	const char *last = NULL;
	int r = 0;

	if (geteuid() == 0)
		return 0;
	for (size_t i = 0; r == 0 && i < s->unit->deltas.n; i++) {
		const struct hf_delta *d = &s->unit->deltas.list[i];

		if (!d->inner && !d->same && d->op && d->op != HF_OP_META)
			r = open_modes(s, d, &last);
	}
	return r;
}

static int pass_leaving(struct hf_stage *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !s->unit->in_target && i < s->unit->deltas.n; i++)
		if (s->unit->deltas.list[i].op == HF_OP_LEAVE)
			r = add_leaving(s, &s->unit->deltas.list[i]);
	return r;
}

static int pass_git(struct hf_stage *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->unit->deltas.n; i++)
		if (s->unit->deltas.list[i].op)
			r = hf_stage_git_lock(s, &s->unit->deltas.list[i]);
	return r;
}

static int pass_landing(struct hf_stage *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->unit->deltas.n; i++) {
		const struct hf_delta *d = &s->unit->deltas.list[i];

		if (hf_stage_lands(d))
			r = add_landing(s, d);
		/* Marks inside what has just landed. */
		else if (d->inner && d->op == HF_OP_META && !s->unit->in_target)
			r = add_meta(s, d);
	}
	return r;
}

static int pass_deletions(struct hf_stage *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->unit->deltas.n; i++)
		if (s->unit->deltas.list[i].op == HF_OP_DELETE)
			r = add_deletion(s, &s->unit->deltas.list[i]);
	return r;
}

static int has_meta(const struct hf_unit *unit, const char *path)
{
	for (size_t i = 0; i < unit->deltas.n; i++)
		if (unit->deltas.list[i].op == HF_OP_META && !unit->deltas.list[i].inner &&
		    strcmp(unit->deltas.list[i].path, path) == 0)
			return 1;
	return 0;
}

/* The modes that directories get, and those that they get back. Children before their parents. */
static int pass_final_modes(struct hf_stage *s)
{
	size_t n = s->work->intent.n_ops;
	int r = 0;

	for (size_t i = s->unit->deltas.n; r == 0 && i-- > 0;) {
		const struct hf_delta *d = &s->unit->deltas.list[i];

		if (d->inner || d->op != HF_OP_META)
			continue;
		r = add_meta(s, d);
		if (r == 0 && is_opened(s, d->path))
			s->work->intent.ops[s->work->intent.n_ops - 1].old_mode = d->old.mode | 0300;
	}
	for (size_t i = n; r == 0 && i-- > 0;) {
		struct hf_op op = s->work->intent.ops[i];
		struct stat st = { .st_ino = op.old_ino, .st_uid = op.old_uid, .st_gid = op.old_gid };

		if (opens(s, &op) && !has_meta(s->unit, op.path))
			r = add_mode_op(s, HF_OP_META, op.path, "", &st, op.new_mode, op.old_mode);
	}
	return r;
}

static int stage_unit(struct hf_stage *s)
{
	int r = hf_stage_open(s);

	if (r == 0)
		r = hf_stage_bring(s);
	if (r == 0)
		r = pass_modes(s);
	if (r == 0)
		r = pass_leaving(s);
	if (r == 0)
		r = pass_git(s);
	if (r == 0)
		r = pass_landing(s);
	if (r == 0)
		r = pass_deletions(s);
	if (r == 0)
		r = pass_final_modes(s);
	return r < 0 ? r : hf_stage_git_return(s);
}

/* The directories that operations put things into. */
static int make_places(struct hf_stage *s)
{
	int old = 0, left = 0, r = 0;

	if (s->unit->in_target)
		return 0;
	for (size_t i = 0; i < s->work->intent.n_ops; i++) {
		const struct hf_op *op = &s->work->intent.ops[i];

		if (op->target != s->index)
			continue;
		old |= op->kind == HF_OP_DELETE && !(op->flags & HF_OP_GIT_LOCK);
		left |= op->kind == HF_OP_LEAVE || op->flags & HF_OP_GIT_LOCK;
	}
	if (old)
		r = hf_stage_make_dir(s->unit->stage_fd, HF_STAGE_OLD, s->err);
	return r == 0 && left ? hf_stage_make_dir(s->unit->stage_fd, HF_STAGE_LEFT, s->err) : r;
}

static int add_target(struct hf_stage *s)
{
	struct hf_intent_target *t = &s->work->intent.targets[s->index];
	struct stat target, stage;
	int r = hf_stat_at(s->unit->target_fd, "", &target);

	if (r == 0)
		r = hf_stat_at(s->unit->stage_fd, "", &stage);
	if (r < 0)
		return hf_fail_sys(s->err, -r, "statx", s->unit->sandbox->target.path);
	*t = (struct hf_intent_target){ .sandbox = s->unit->sandbox->name,
					.path = s->unit->sandbox->target.path,
					.dev = (uint64_t)target.st_dev, .ino = (uint64_t)target.st_ino,
					.stage_ino = (uint64_t)stage.st_ino,
					.in_target = s->unit->in_target };
	s->work->intent.n_targets++;
	return 0;
}

static int has_work(const struct hf_unit *unit)
{
	for (size_t i = 0; i < unit->deltas.n; i++)
		if (unit->deltas.list[i].op && !unit->deltas.list[i].same)
			return 1;
	return 0;
}

int hf_stage_build(struct hf_work *work, const char *const *ignore, struct hf_err *err)
{
	struct hf_stage s = { .work = work, .ignore = ignore, .err = err };
	int r = 0;

	work->intent.targets = calloc(work->n_units + 1, sizeof(*work->intent.targets));
	if (!work->intent.targets)
		return hf_stage_no_memory(&s);
	for (size_t i = 0; r == 0 && i < work->n_units; i++) {
		s.unit = &work->units[i];
		s.index = (uint16_t)work->intent.n_targets;
		if (!has_work(s.unit))
			continue;
		r = stage_unit(&s);
		if (r == 0)
			r = make_places(&s);
		if (r == 0)
			r = add_target(&s);
	}
	return r;
}
