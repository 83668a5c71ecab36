/* plan/recovery/op_look.c - where an operation's entries are, and whether it is done. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/recovery/op_look.h"
#include "hf/sys/calls.h"

/* -- where an entry is -------------------------------------------------------------- */

static void place_done(struct hf_place *place)
{
	hf_auto_close(&place->fd);
	free(place->path);
	place->path = NULL;
}

void hf_site_done(struct hf_site *site)
{
	place_done(&site->target_dir);
	place_done(&site->stage_dir);
	place_done(&site->aside_dir);
	hf_auto_close(&site->target_fd);
	hf_auto_close(&site->stage_fd);
}

/* The directory that `path` is in, kept open in *place. Returns the descriptor or -errno. */
static int find_dir(int rootfd, struct hf_place *place, const char *path)
{
	size_t len = (size_t)(hf_dirtree_leaf(path) - path);
	char *copy;
	int fd;

	len -= len > 0; /* the slash */
	if (place->fd >= 0 && strlen(place->path) == len && memcmp(place->path, path, len) == 0)
		return place->fd;
	fd = hf_dirtree_descend(rootfd, path, len);
	if (fd < 0)
		return fd;
	copy = strndup(path, len);
	if (!copy) {
		hf_auto_close(&fd);
		return -ENOMEM;
	}
	place_done(place);
	place->path = copy;
	place->fd = fd;
	return fd;
}

static int look_at(int dirfd, const char *name, struct stat *ret)
{
	int r = hf_dirtree_look(dirfd, name, ret);

	if (r == 0)
		memset(ret, 0, sizeof(*ret));
	return r < 0 ? r : 0;
}

/* A directory that is gone has no entries. */
static int missing(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EXDEV;
}

static int look_in_target(struct hf_site *site, const struct hf_op *op, struct hf_ends *ret)
{
	struct stat st;
	int r;

	ret->target_name = hf_dirtree_leaf(op->path);
	ret->target_fd = find_dir(site->target_fd, &site->target_dir, op->path);
	if (missing(ret->target_fd))
		return 0;
	if (ret->target_fd < 0)
		return ret->target_fd;
	/* Another directory under that name: what stands in it is nothing of ours. */
	if (op->parent_ino) {
		if (hf_sys.fstat(ret->target_fd, &st) < 0)
			return -errno;
		if ((uint64_t)st.st_ino != op->parent_ino) {
			ret->target_fd = -ESTALE;
			return 0;
		}
	}
	r = look_at(ret->target_fd, ret->target_name, &ret->target);
	return r;
}

static int look_in_stage(struct hf_site *site, const struct hf_op *op, struct hf_ends *ret)
{
	ret->stage_name = hf_dirtree_leaf(op->slot);
	ret->stage_fd = site->stage_fd < 0 ? -ENOENT
					   : find_dir(site->stage_fd, &site->stage_dir, op->slot);
	if (missing(ret->stage_fd))
		return 0;
	return ret->stage_fd < 0 ? ret->stage_fd
				 : look_at(ret->stage_fd, ret->stage_name, &ret->stage);
}

int hf_ends_find(struct hf_site *site, const struct hf_op *op, struct hf_ends *ret)
{
	int r = 0;

	*ret = (struct hf_ends){ .target_fd = -ENOENT, .stage_fd = -ENOENT, .target_name = "",
			      .stage_name = "" };
	if (op->kind == HF_OP_LEAVE) {
		/* Its second place is in the stage as well. */
		ret->target_name = hf_dirtree_leaf(op->path);
		ret->target_fd = site->stage_fd < 0 ? -ENOENT :
				 find_dir(site->stage_fd, &site->aside_dir, op->path);
		if (!missing(ret->target_fd))
			r = ret->target_fd < 0 ? ret->target_fd
					       : look_at(ret->target_fd, ret->target_name, &ret->target);
	} else if (op->kind != HF_OP_STAGE_MODE) {
		r = look_in_target(site, op, ret);
	}
	if (r == 0 && op->kind != HF_OP_META)
		r = look_in_stage(site, op, ret);
	return r;
}

/* -- what state it is in ------------------------------------------------------------- */

static int is(const struct stat *st, uint64_t ino)
{
	return st->st_ino != 0 && (uint64_t)st->st_ino == ino;
}

static int moved_state(const struct hf_op *op, const struct hf_ends *e, enum hf_intent_phase phase)
{
	int was = op->old_mode ? is(&e->target, op->old_ino) : e->target.st_ino == 0;
	int gone = phase == HF_INTENT_APPLIED || op->flags & HF_OP_GIT_LOCK;

	switch (op->kind) {
	case HF_OP_EXCHANGE:
		if (is(&e->target, op->new_ino))
			return HF_OP_DONE;
		if (is(&e->stage, op->new_ino))
			return was && e->target_fd >= 0 ? HF_OP_OPEN : HF_OP_FOREIGN;
		return is(&e->stage, op->old_ino) || gone ? HF_OP_CHANGED : HF_OP_FOREIGN;
	case HF_OP_NEW:
		if (is(&e->target, op->new_ino))
			return HF_OP_DONE;
		if (is(&e->stage, op->new_ino))
			return was && e->target_fd >= 0 ? HF_OP_OPEN : HF_OP_FOREIGN;
		return HF_OP_CHANGED; /* it left the stage */
	case HF_OP_DELETE:
		if (is(&e->stage, op->old_ino))
			return e->target.st_ino == 0 ? HF_OP_DONE : HF_OP_CHANGED;
		if (was)
			return HF_OP_OPEN;
		return gone ? HF_OP_CHANGED : HF_OP_FOREIGN;
	case HF_OP_LEAVE:
	default:
		if (is(&e->target, op->new_ino))
			return HF_OP_DONE;
		return is(&e->stage, op->new_ino) ? HF_OP_OPEN : HF_OP_CHANGED;
	}
}

static int same_meta(const struct stat *st, uint32_t mode, uint32_t uid, uint32_t gid)
{
	return st->st_mode == mode && st->st_uid == uid && st->st_gid == gid;
}

/* Attributes have no state of their own: setting them again does no harm. */
static int meta_state(const struct hf_op *op, const struct stat *st)
{
	if (!is(st, op->old_ino))
		return HF_OP_FOREIGN;
	if (same_meta(st, op->new_mode, op->new_uid, op->new_gid))
		return op->attrs_len && same_meta(st, op->old_mode, op->old_uid, op->old_gid)
			       ? HF_OP_OPEN
			       : HF_OP_DONE;
	return same_meta(st, op->old_mode, op->old_uid, op->old_gid) ? HF_OP_OPEN : HF_OP_CHANGED;
}

int hf_ends_state(const struct hf_op *op, const struct hf_ends *e, enum hf_intent_phase phase)
{
	if (op->kind == HF_OP_META)
		return meta_state(op, &e->target);
	if (op->kind == HF_OP_STAGE_MODE)
		return meta_state(op, &e->stage);
	return moved_state(op, e, phase);
}

int hf_op_look(struct hf_site *site, const struct hf_op *op, enum hf_intent_phase phase)
{
	struct hf_ends e;
	int r = hf_ends_find(site, op, &e);

	return r < 0 ? r : hf_ends_state(op, &e, phase);
}
