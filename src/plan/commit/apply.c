/* plan/commit/apply.c - the renames of a commit, and their reverse. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/recovery/op_look.h"
#include "hf/sys/calls.h"

/* -- moving ---------------------------------------------------------------------------- */

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

static int rename_ends(const struct hf_ends *e, int out, unsigned flags)
{
	int from = out ? e->target_fd : e->stage_fd, to = out ? e->stage_fd : e->target_fd;
	const char *from_name = out ? e->target_name : e->stage_name;
	const char *to_name = out ? e->stage_name : e->target_name;

	return hf_sys.renameat2(from, from_name, to, to_name, flags) < 0 ? -errno : 0;
}

/*
 * A directory is moved by its owner only if it may write into it (".." changes). A mode without
 * that is set aside for the rename, and is right again afterwards at the place it came to.
 */
static int needs_write(uint32_t mode)
{
	return S_ISDIR(mode) && (mode & 0200) == 0;
}

static int free_mode(int dirfd, const char *name, uint64_t ino, uint32_t mode)
{
	return needs_write(mode) ? hf_dirtree_chmod(dirfd, name, ino, mode | 0200) : 0;
}

static int keep_mode(int dirfd, const char *name, uint64_t ino, uint32_t mode)
{
	return needs_write(mode) && dirfd >= 0 ? hf_dirtree_chmod(dirfd, name, ino, mode) : 0;
}

/* The rename of an operation; `out` is its reverse. Both entries keep their modes. */
static int move(const struct hf_op *op, const struct hf_ends *e, int back)
{
	int exchange = op->kind == HF_OP_EXCHANGE;
	int into_target = (op->kind == HF_OP_NEW) != back;
	uint64_t t_ino = back ? op->new_ino : op->old_ino, s_ino = back ? op->old_ino : op->new_ino;
	uint32_t t_mode = back ? op->new_mode : op->old_mode;
	uint32_t s_mode = back ? op->old_mode : op->new_mode;
	int r = 0, after = 0;

	if (op->kind == HF_OP_LEAVE)
		into_target = !back;
	if (exchange || !into_target)
		r = free_mode(e->target_fd, e->target_name, t_ino, t_mode);
	if (r == 0 && (exchange || into_target))
		r = free_mode(e->stage_fd, e->stage_name, s_ino, s_mode);
	if (r == 0)
		r = rename_ends(e, !exchange && !into_target, exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE);
	/* At their new places, or where they still are. */
	if (exchange || !into_target)
		after = r == 0 ? keep_mode(e->stage_fd, e->stage_name, t_ino, t_mode)
			       : keep_mode(e->target_fd, e->target_name, t_ino, t_mode);
	if (after == 0 && (exchange || into_target))
		after = r == 0 ? keep_mode(e->target_fd, e->target_name, s_ino, s_mode)
			       : keep_mode(e->stage_fd, e->stage_name, s_ino, s_mode);
	return r < 0 ? r : after;
}

/* Is what came out of the target the entry that was checked? 1, 0 or -errno. */
static int came_out_right(const struct hf_apply *apply, const struct hf_op *op, const struct hf_ends *e)
{
	struct stat st;
	int r = hf_dirtree_look(e->stage_fd, e->stage_name, &st);

	if (r <= 0)
		return r;
	if ((uint64_t)st.st_ino != op->old_ino || (st.st_mode & S_IFMT) != (op->old_mode & S_IFMT))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return (uint64_t)st.st_size == op->old_size && in_ns(st.st_mtim) == op->old_mtime_ns &&
		       st.st_mode == op->old_mode;
	if (!apply->recheck || !(op->flags & HF_OP_TREE))
		return 1;
	return apply->recheck(apply->arg, op, e->stage_fd, e->stage_name);
}

/*
 * The attributes of an entry that has `mode` now. An owner may set them only where it may write,
 * so that a mode without that is set aside for the moment; a crash in it is mended when
 * the operation is done or undone again.
 */
static int set_attrs(int dirfd, const char *name, uint64_t ino, uint32_t mode, const struct hf_op *op,
		     int back)
{
	int locked = !S_ISLNK(mode) && (mode & 0200) == 0;
	int r = locked ? hf_dirtree_chmod(dirfd, name, ino, mode | 0200) : 0, after;

	if (r == 0)
		r = hf_attrs_apply(dirfd, name, op->attrs, op->attrs_len, back);
	after = locked ? hf_dirtree_chmod(dirfd, name, ino, mode) : 0;
	return r < 0 ? r : after;
}

static int changes_acl(const struct hf_op *op)
{
	return op->attrs_len && memmem(op->attrs, op->attrs_len, "posix_acl", 9) != NULL;
}

static int set_meta(int dirfd, const char *name, const struct hf_op *op, int back)
{
	uint32_t mode = back ? op->old_mode : op->new_mode, was = back ? op->new_mode : op->old_mode;
	uint32_t uid = back ? op->old_uid : op->new_uid, gid = back ? op->old_gid : op->new_gid;
	int r = 0;

	if ((op->old_uid != op->new_uid || op->old_gid != op->new_gid) &&
	    hf_sys.fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH)) < 0)
		return -errno;
	if (op->attrs_len)
		r = set_attrs(dirfd, name, op->old_ino, was, op, back);
	/* Last: an ACL changes the mode. */
	if (r == 0 && !S_ISLNK(mode) && (mode != was || changes_acl(op)))
		r = hf_dirtree_chmod(dirfd, name, op->old_ino, mode);
	return r;
}

static int is_meta(const struct hf_op *op)
{
	return op->kind == HF_OP_META || op->kind == HF_OP_STAGE_MODE;
}

static int do_meta(const struct hf_op *op, const struct hf_ends *e, int back)
{
	if (op->kind == HF_OP_META)
		return set_meta(e->target_fd, e->target_name, op, back);
	return set_meta(e->stage_fd, e->stage_name, op, back);
}

/* One that landed sheds what only the sandbox needed. */
static int finish_landed(const struct hf_op *op, const struct hf_ends *e)
{
	return op->attrs_len ? set_attrs(e->target_fd, e->target_name, op->new_ino, op->new_mode, op, 0)
			     : 0;
}

static int do_open(const struct hf_apply *apply, const struct hf_op *op, const struct hf_ends *e)
{
	int r;

	if (is_meta(op))
		return do_meta(op, e, 0);
	r = move(op, e, 0);
	if (r == -ENOENT || r == -EEXIST)
		return HF_E_CHANGED;
	if (r < 0)
		return r;
	if (op->kind == HF_OP_EXCHANGE || op->kind == HF_OP_DELETE) {
		r = came_out_right(apply, op, e);
		if (r <= 0) {
			int back = move(op, e, 1);

			return back < 0 ? back : r < 0 ? r : HF_E_CHANGED;
		}
	}
	return finish_landed(op, e);
}

static int do_op(const struct hf_apply *apply, const struct hf_op *op)
{
	struct hf_site *site = &apply->sites[op->target];
	struct hf_ends e;
	int r = hf_ends_find(site, op, &e);

	if (r < 0)
		return r;
	switch (hf_ends_state(op, &e, apply->intent->phase)) {
	case HF_OP_OPEN:
		return do_open(apply, op, &e);
	case HF_OP_DONE:
		/* The rename may have been the last thing that a process did. */
		r = is_meta(op) ? 0 : finish_landed(op, &e);
		if (r == 0 && !is_meta(op) && op->new_mode && e.target.st_mode != op->new_mode)
			r = keep_mode(e.target_fd, e.target_name, op->new_ino, op->new_mode);
		if (r == 0 && !is_meta(op) && op->old_mode && e.stage.st_ino != 0 &&
		    (uint64_t)e.stage.st_ino == op->old_ino)
			r = keep_mode(e.stage_fd, e.stage_name, op->old_ino, op->old_mode);
		return r;
	case HF_OP_CHANGED:
		return 0;
	case HF_OP_FOREIGN:
	default:
		return HF_E_CHANGED;
	}
}

int hf_apply_forward(struct hf_apply *apply)
{
	for (size_t i = 0; i < apply->intent->n_ops; i++) {
		int r = do_op(apply, &apply->intent->ops[i]);

		if (r < 0) {
			apply->stuck = &apply->intent->ops[i];
			return r;
		}
	}
	return 0;
}

/* -- back --------------------------------------------------------------------------------- */

static int undo_op(struct hf_apply *apply, const struct hf_op *op)
{
	struct hf_ends e;
	int r = hf_ends_find(&apply->sites[op->target], op, &e), state;

	if (r < 0)
		return r;
	state = hf_ends_state(op, &e, apply->intent->phase);
	if (is_meta(op)) {
		if (state == HF_OP_DONE || (state == HF_OP_OPEN && op->attrs_len))
			return do_meta(op, &e, 1);
		return 0;
	}
	if (state == HF_OP_OPEN) {
		r = op->old_mode ? keep_mode(e.target_fd, e.target_name, op->old_ino, op->old_mode) : 0;
		return r < 0 || !op->new_mode
			       ? r
			       : keep_mode(e.stage_fd, e.stage_name, op->new_ino, op->new_mode);
	}
	if (state != HF_OP_DONE) {
		/* Git's lock that its user removed, and what was never done, are no loss. */
		apply->n_left += state == HF_OP_CHANGED && !(op->flags & HF_OP_GIT_LOCK);
		return 0;
	}
	/* Its attributes first: what is in the stage always has those of the sandbox. */
	if (op->attrs_len)
		r = set_attrs(e.target_fd, e.target_name, op->new_ino, op->new_mode, op, 1);
	if (r == 0)
		r = move(op, &e, 1);
	if (r == -EEXIST || r == -ENOENT) {
		apply->n_left++;
		return 0;
	}
	return r;
}

int hf_apply_back(struct hf_apply *apply)
{
	int first = 0;

	apply->n_left = 0;
	for (size_t i = apply->intent->n_ops; i-- > 0;) {
		int r = undo_op(apply, &apply->intent->ops[i]);

		if (r < 0 && first == 0) {
			first = r;
			apply->stuck = &apply->intent->ops[i];
		}
	}
	return first;
}

int hf_apply_failed(const struct hf_intent *intent, const struct hf_op *op, int r, struct hf_err *err)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s%s", intent->targets[op->target].path, op->path[0] ? "/" : "", op->path);
	return hf_fail_sys(err, -r, "apply", path);
}
