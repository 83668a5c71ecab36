/*
 * plan/merge/merge.c - text files that both sides changed, merged by `git merge-file`.
 *
 * Everything is done on copies below "merged" of the sandbox. Only a clean result is used: it becomes the new
 * version of its delta, and lands like any other, with intent, checks and undo. The target's file may change
 * meanwhile; the rename finds that out, as ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/git/git_run.h"
#include "hf/plan/merge/merge.h"
#include "hf/plan/stage/stage.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define MERGE_MAX ((uint64_t)32 << 20) /* people's text is smaller */

#define OURS   "ours"
#define THEIRS "theirs"

struct merge {
	struct hf_work *work;
	struct hf_candidate *list;
	size_t n;
	struct hf_err *err;
};

static void merge_done(struct merge *merge)
{
	free(merge->list);
}

int hf_unmerged(struct hf_delta *d, const char *why)
{
	d->unmerged = why;
	return 0;
}

const char *hf_merge_git_why(int status)
{
	return status == -ENOENT	  ? "git is not installed, and the merge needs it" :
	       status == -ECHILD	  ? "SIGCHLD is ignored, so git's answer is lost" :
	       status == -ETIMEDOUT ? "git took too long" :
					  "git cannot merge it (binary, or too large)";
}

/* -- which ones ------------------------------------------------------------------------------ */

/* NULL, or why this delta is none that could be merged. */
static const char *not_mergeable(const struct hf_delta *d)
{
	if (d->op != HF_OP_EXCHANGE || !S_ISREG(d->old.mode) || !S_ISREG(d->new.mode))
		return "it is not a regular file on one side";
	if (hf_git_dir_of(d->path))
		return "it belongs to git";
	if (d->old.mode != d->new.mode || d->old.uid != d->new.uid || d->old.gid != d->new.gid)
		return "mode or owner differ";
	if (d->new.nlink != 1)
		return "it has several hard links in the sandbox";
	return d->old.size > MERGE_MAX || d->new.size > MERGE_MAX ? "it is larger than 32 MiB" : NULL;
}

static int add_candidate(struct merge *m, struct hf_unit *unit, struct hf_delta *d)
{
	struct hf_candidate *grown = reallocarray(m->list, m->n + 1, sizeof(*grown)), *c;

	if (!grown)
		return hf_fail_sys(m->err, ENOMEM, "memory", d->path);
	m->list = grown;
	c = &grown[m->n];
	*c = (struct hf_candidate){ .unit = unit, .delta = d };
	(void)snprintf(c->base, sizeof(c->base), "b%zu", m->n);
	(void)snprintf(c->result, sizeof(c->result), "%zu", m->n);
	c->dir = unit->merged_fd;
	m->n++;
	return 0;
}

/* A new directory for the copies and results of one sandbox. */
static int open_room(struct hf_unit *unit, struct hf_err *err)
{
	int r;

	if (unit->merged_fd >= 0)
		return 0;
	r = hf_stage_make_dir(unit->sandbox_fd, HF_STAGE_MERGED, err);
	if (r < 0)
		return r;
	unit->merged_fd = hf_dirtree_open(unit->sandbox_fd, HF_STAGE_MERGED);
	return unit->merged_fd < 0 ? hf_fail_sys(err, -unit->merged_fd, "openat2", HF_STAGE_MERGED) : 0;
}

static int find_candidates(struct merge *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->work->n_units; i++) {
		struct hf_unit *unit = &m->work->units[i];

		r = hf_tree_remove(unit->sandbox_fd, HF_STAGE_MERGED);
		if (r < 0)
			return hf_fail_sys(m->err, -r, "remove", HF_STAGE_MERGED);
		for (size_t k = 0; r == 0 && k < unit->deltas.n; k++) {
			struct hf_delta *d = &unit->deltas.list[k];

			if (d->verdict != HF_VERDICT_CHANGED)
				continue;
			d->unmerged = not_mergeable(d);
			if (d->unmerged)
				continue;
			r = open_room(unit, m->err);
			if (r == 0)
				r = add_candidate(m, unit, d);
		}
	}
	return r;
}

/* -- copies ------------------------------------------------------------------------------------ */

static int is_side(const struct hf_side *side, const struct stat *st)
{
	struct hf_side now = { 0 };

	hf_side_take(&now, st);
	return now.ino == side->ino && now.size == side->size && now.mtime_ns == side->mtime_ns &&
	       now.ctime_ns == side->ctime_ns && now.mode == side->mode;
}

/* 1 copied, 0 it changed or cannot be read, or -errno of writing. */
static int copy_side(int from_dir, const char *leaf, const struct hf_side *side, int dir, const char *name)
{
	AUTO_FD from = hf_open_noatime(from_dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	AUTO_FD to = -1;
	struct stat st;
	int r;

	if (from < 0 || hf_sys.fstat(from, &st) < 0 || !is_side(side, &st))
		return 0;
	(void)hf_sys.unlinkat(dir, name, 0);
	to = hf_create_at(dir, name, O_WRONLY, 0600);
	r = to < 0 ? to : hf_copy_content(from, to, st.st_size);
	if (r < 0)
		return r;
	return hf_sys.fstat(from, &st) == 0 && is_side(side, &st);
}

/* -- the base that another commit kept ----------------------------------------------------------- */

/* The old side of an operation as it was before the operation. */
static struct stat old_stat(const struct hf_op *op)
{
	struct stat st = { .st_ino = op->old_ino, .st_mode = op->old_mode, .st_uid = op->old_uid,
			   .st_gid = op->old_gid, .st_size = (off_t)op->old_size };

	st.st_mtim.tv_sec = op->old_mtime_ns / HF_SEC;
	st.st_mtim.tv_nsec = op->old_mtime_ns % HF_SEC;
	st.st_ctim.tv_sec = op->old_ctime_ns / HF_SEC;
	st.st_ctim.tv_nsec = op->old_ctime_ns % HF_SEC;
	return st;
}

/* Was that entry, before it was moved out of the target, what our sandbox began with? */
static int is_base(const struct hf_candidate *c, const struct hf_intent *intent, const struct hf_op *op)
{
	struct stat st = old_stat(op);

	return (op->kind == HF_OP_EXCHANGE || op->kind == HF_OP_DELETE) && !(op->flags & HF_OP_HIDDEN) &&
	       op->parent_ino == c->delta->parent_ino && S_ISREG(op->old_mode) &&
	       op->old_size <= MERGE_MAX &&
	       intent->targets[op->target].ino == c->unit->sandbox->target.ino &&
	       strcmp(op->path, c->delta->path) == 0 && hf_base_same(&c->unit->base, op->path, &st);
}

/* Copies the version that the operation moved to the stage, if it is still that. 1, 0 or -errno. */
static int copy_kept(struct hf_candidate *c, int plan_fd, const char *sandbox, const struct hf_op *op)
{
	const char *leaf = hf_dirtree_leaf(op->slot);
	struct hf_side side = { 0 };
	struct stat st, was = old_stat(op);
	AUTO_FD stage = -1;
	AUTO_FD dir = -1;

	if (hf_sandbox_dir(plan_fd, sandbox, 0, &stage, NULL) < 0)
		return 0;
	dir = hf_dirtree_descend(stage, op->slot, leaf == op->slot ? 0 : (size_t)(leaf - op->slot) - 1);
	if (dir < 0 || hf_dirtree_look(dir, leaf, &st) <= 0)
		return 0;
	hf_side_take(&side, &st);
	/* The move has changed its ctime; nothing else may have changed. */
	was.st_ctim = st.st_ctim;
	return is_side(&side, &was) ? copy_side(dir, leaf, &side, c->dir, c->base) : 0;
}

static int look_in_plan(void *arg, const char *plan)
{
	AUTO(hf_intent_done) struct hf_intent intent = HF_INTENT_INIT;
	struct merge *m = arg;
	const char *why;
	AUTO_FD fd = -1;
	int r = 0;

	if (strcmp(plan, m->work->record.name) == 0 || hf_plan_dir(m->work->plans, plan, 0, &fd, NULL) < 0 ||
	    hf_intent_load(fd, HF_INTENT_UNDO, &intent, &why, NULL) < 0)
		return 0;
	for (size_t i = 0; i < intent.n_ops; i++)
		for (size_t k = 0; k < m->n; k++) {
			struct hf_candidate *c = &m->list[k];

			if (c->found || !is_base(c, &intent, &intent.ops[i]))
				continue;
			r = copy_kept(c, fd, intent.targets[intent.ops[i].target].sandbox, &intent.ops[i]);
			if (r < 0)
				return hf_fail_sys(m->err, -r, "copy", c->delta->path);
			if (r == 0)
				continue;
			c->found = 1;
			c->delta->base_kind = "kept";
			c->delta->base = strdup(plan);
			if (!c->delta->base)
				return hf_fail_sys(m->err, ENOMEM, "memory", plan);
		}
	return 0;
}

/* -- merging one ---------------------------------------------------------------------------------- */

/* Both directories that the two versions are in. */
struct places {
	int ours, theirs;
	const char *leaf;
};

static void places_done(struct places *places)
{
	hf_auto_close(&places->ours);
	hf_auto_close(&places->theirs);
}

static int open_places(const struct hf_candidate *c, struct places *ret)
{
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	const char *leaf = hf_dirtree_leaf(c->delta->path);
	size_t len = (size_t)(leaf - c->delta->path), top;

	hf_buf_add_text(&path, hf_unit_top(c->unit));
	top = path.len;
	hf_buf_add_char(&path, '/');
	hf_buf_add_text(&path, c->delta->path);
	if (path.err)
		return path.err;
	ret->leaf = leaf;
	ret->theirs = hf_dirtree_descend(c->unit->target_fd, c->delta->path, len - (len > 0));
	ret->ours = hf_dirtree_descend(c->unit->sandbox_fd, path.s, top + len);
	return ret->theirs < 0 ? ret->theirs : ret->ours < 0 ? ret->ours : 0;
}

/* Mode, owner, attributes and ACLs of the target's file, which are those of both; the time is now. */
static int dress(const struct hf_candidate *c, const struct places *p, int to, struct stat *ret)
{
	AUTO_FD from = hf_open_noatime(p->theirs, p->leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	int r;

	if (from < 0)
		return from;
	if (hf_sys.fstat(from, &st) < 0 || clock_gettime(CLOCK_REALTIME, &st.st_mtim) < 0)
		return -errno;
	st.st_atim = st.st_mtim;
	r = hf_copy_attributes(from, to, &st);
	if (r < 0)
		return r;
	if (hf_sys.fstat(to, ret) < 0)
		return -errno;
	return ret->st_mode == c->delta->old.mode && ret->st_uid == c->delta->old.uid &&
			       ret->st_gid == c->delta->old.gid
		       ? 0
		       : -EPERM;
}

static int use_result(struct hf_candidate *c, const struct stat *st)
{
	struct hf_delta *d = c->delta;

	if (asprintf(&d->merged, HF_STAGE_MERGED "/%s", c->result) < 0) {
		d->merged = NULL;
		return -ENOMEM;
	}
	hf_side_take(&d->new, st);
	/* The result is no file of overlayfs: it has no marks to be taken off. */
	free(d->attrs);
	d->attrs = NULL;
	d->attrs_len = 0;
	d->verdict = HF_VERDICT_NONE;
	return 0;
}

static int run_merge(struct hf_candidate *c, const struct places *p)
{
	char *argv[] = { (char *)"git", (char *)"merge-file", (char *)"-p", (char *)"-q",
			 (char *)OURS, c->base, (char *)THEIRS, NULL };
	AUTO_FD out = hf_create_at(c->dir, c->result, O_WRONLY, 0600);
	struct stat st;
	int r;

	if (out < 0)
		return out;
	r = hf_git_run(c->dir, argv, out, -1);
	if (r > 0 && r < 128) {
		c->delta->verdict = HF_VERDICT_MERGE_CONFLICT;
		return hf_unmerged(c->delta, "both sides changed the same lines");
	}
	if (r != 0)
		return hf_unmerged(c->delta, hf_merge_git_why(r));
	r = dress(c, p, out, &st);
	if (r == -EPERM || r == -EACCES)
		return hf_unmerged(c->delta, "its owner or attributes cannot be preserved");
	return r < 0 ? r : use_result(c, &st);
}

/* 0 merged or not, -errno. */
static int merge_one(struct merge *m, struct hf_candidate *c)
{
	AUTO(hf_buf_done) struct hf_buf attrs = HF_BUF_INIT;
	AUTO(places_done) struct places p = { -1, -1, NULL };
	const char *prefix = hf_unit_prefix(c->unit);
	int r = open_places(c, &p);

	if (r == 0)
		r = hf_attrs_compare(p.ours, p.leaf, prefix, p.theirs, p.leaf, &attrs);
	if (r < 0)
		return r;
	if (attrs.len)
		return hf_unmerged(c->delta, "attributes differ");
	if (hf_is_written(p.ours, p.leaf) || hf_is_written(p.theirs, p.leaf)) {
		c->delta->verdict = HF_VERDICT_OPEN_FOR_WRITING;
		return 0;
	}
	if (!c->found) {
		r = hf_merge_git_base(c, m->err);
		if (r <= 0)
			return r;
	}
	r = copy_side(p.theirs, p.leaf, &c->delta->old, c->dir, THEIRS);
	if (r > 0)
		r = copy_side(p.ours, p.leaf, &c->delta->new, c->dir, OURS);
	if (r == 0)
		return hf_unmerged(c->delta, "it cannot be read, or is changing");
	return r < 0 ? r : run_merge(c, &p);
}

/* What is left of copies only takes room. */
static void tidy(const struct merge *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct hf_candidate *c = &m->list[i];

		(void)hf_sys.unlinkat(c->dir, c->base, 0);
		(void)hf_sys.unlinkat(c->dir, OURS, 0);
		(void)hf_sys.unlinkat(c->dir, THEIRS, 0);
		if (!c->delta->merged)
			(void)hf_sys.unlinkat(c->dir, c->result, 0);
	}
}

int hf_merge(struct hf_work *work, struct hf_err *err)
{
	AUTO(merge_done) struct merge m = { .work = work, .err = err };
	int r = find_candidates(&m);

	if (r == 0 && m.n > 0)
		r = hf_plan_each(work->plans, look_in_plan, &m, err);
	for (size_t i = 0; r == 0 && i < m.n; i++) {
		r = merge_one(&m, &m.list[i]);
		if (r < 0 && r > -4096)
			r = hf_fail_sys(err, -r, "merge", m.list[i].delta->path);
	}
	tidy(&m);
	return r;
}
