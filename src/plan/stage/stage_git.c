/* plan/stage/stage_git.c - git's index.lock, ours while entries below a git directory are applied. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/stage/stage.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

size_t hf_git_dir_of(const char *path)
{
	const char *at = path;

	while ((at = strstr(at, ".git/"))) {
		if (at == path || at[-1] == '/')
			return (size_t)(at - path) + 4;
		at++;
	}
	return 0;
}

/* An empty file of ours in the stage, to become git's lock. */
static int make_lock_file(struct hf_stage *s, const char *slot, struct stat *ret)
{
	AUTO_FD fd = -1;

	if (!s->unit->in_target && hf_stage_make_dir(s->unit->stage_fd, HF_STAGE_LEFT, s->err) < 0)
		return s->err ? s->err->code : -EIO;
	fd = hf_create_at(s->unit->stage_fd, slot, O_WRONLY, 0600);
	if (fd < 0)
		return hf_fail_sys(s->err, -fd, "openat", slot);
	return hf_sys.fstat(fd, ret) < 0 ? FAIL_SYS(s->err, "fstat", slot) : 0;
}

static int has_git_lock(const struct hf_stage *s, const char *path)
{
	for (size_t i = 0; i < s->work->intent.n_ops; i++) {
		const struct hf_op *op = &s->work->intent.ops[i];

		if (op->flags & HF_OP_GIT_LOCK && op->target == s->index && strcmp(op->path, path) == 0)
			return 1;
	}
	return 0;
}

int hf_stage_git_lock(struct hf_stage *s, const struct hf_delta *d)
{
	size_t len = hf_git_dir_of(d->path);
	const char *path, *slot;
	struct hf_op *op;
	AUTO_FD dir = -1;
	struct stat st, parent;
	int r;

	if (len == 0 || d->inner || d->same)
		return 0;
	path = hf_work_string(s->work, "%.*s/index.lock", (int)len, d->path);
	slot = hf_stage_slot(s, HF_STAGE_LEFT);
	if (!path || !slot)
		return hf_stage_no_memory(s);
	if (has_git_lock(s, path))
		return 0;
	dir = hf_dirtree_descend(s->unit->target_fd, path, len);
	if (dir < 0 || hf_sys.fstat(dir, &parent) < 0)
		return 0; /* no git directory there */
	r = make_lock_file(s, slot, &st);
	if (r < 0)
		return r;
	op = hf_stage_op(s, HF_OP_NEW, path, slot);
	if (!op)
		return hf_stage_no_memory(s);
	op->new_ino = (uint64_t)st.st_ino;
	op->new_mode = st.st_mode;
	op->new_uid = st.st_uid;
	op->new_gid = st.st_gid;
	op->new_mtime_ns = (int64_t)st.st_mtim.tv_sec * HF_SEC + st.st_mtim.tv_nsec;
	op->parent_ino = (uint64_t)parent.st_ino;
	op->flags = HF_OP_GIT_LOCK | HF_OP_HIDDEN;
	return 0;
}

/* The locks come back into the stage, under other names. */
int hf_stage_git_return(struct hf_stage *s)
{
	size_t n = s->work->intent.n_ops;

	for (size_t i = 0; i < n; i++) {
		struct hf_op lock = s->work->intent.ops[i], *op;

		if (!(lock.flags & HF_OP_GIT_LOCK) || lock.kind != HF_OP_NEW || lock.target != s->index)
			continue;
		op = hf_stage_op(s, HF_OP_DELETE, lock.path, hf_stage_slot(s, HF_STAGE_LEFT));
		if (!op)
			return hf_stage_no_memory(s);
		op->old_ino = lock.new_ino;
		op->old_mode = lock.new_mode;
		op->old_mtime_ns = lock.new_mtime_ns;
		op->parent_ino = lock.parent_ino;
		op->flags = HF_OP_GIT_LOCK | HF_OP_HIDDEN;
	}
	return 0;
}
