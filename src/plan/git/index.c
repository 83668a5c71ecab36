/* plan/git/index.c - keeping git's index, and comparing its entries without their times. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hf/base/cleanup.h"
#include "hf/plan/git/git_run.h"
#include "hf/plan/git/index.h"
#include "hf/plan/stage/stage.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHUNK     ((size_t)64 << 10)
#define KEPT_NAME "index-%zu" /* in the sandbox's directory; the number of the operation */
#define KEPT_MAX  32

/* The length of the git directory's path, or 0: the operation is not about an index. */
static size_t git_dir_of(const struct hf_op *op)
{
	size_t len = hf_git_dir_of(op->path);

	if (len == 0 || strcmp(hf_dirtree_leaf(op->path), "index") != 0 || op->flags & HF_OP_HIDDEN)
		return 0;
	return op->kind == HF_OP_EXCHANGE || op->kind == HF_OP_NEW ? len : 0;
}

static void keep(const struct hf_work *work, size_t i)
{
	const struct hf_op *op = &work->intent.ops[i];
	size_t len = (size_t)(hf_dirtree_leaf(op->path) - op->path);
	AUTO_FD dir = hf_dirtree_descend(work->sites[op->target].target_fd, op->path, len - 1);
	AUTO_FD sandbox = -1;
	char name[KEPT_MAX];

	if (dir < 0 || hf_sandbox_dir(work->plan_fd, work->intent.targets[op->target].sandbox, 0, &sandbox, NULL) < 0)
		return;
	(void)snprintf(name, sizeof(name), KEPT_NAME, i);
	(void)hf_sys.unlinkat(sandbox, name, 0); /* of a commit before, or of this one before a crash */
	(void)hf_sys.linkat(dir, "index", sandbox, name, 0);
}

void hf_index_keep(struct hf_work *work)
{
	for (size_t i = 0; work->sites && i < work->intent.n_ops; i++)
		if (git_dir_of(&work->intent.ops[i]))
			keep(work, i);
}

/* What git says is in the index; -1: it does not. `index` is absolute, or below the target. */
static int list(int target_fd, const char *git_dir, const char *index)
{
	AUTO_FREE char *dir = NULL;
	AUTO_FREE char *variable = NULL;
	AUTO_FD out = memfd_create("holdfast-index", MFD_CLOEXEC);
	char *argv[] = { (char *)"git", NULL, (char *)"--work-tree=.", (char *)"-c", (char *)"core.fsmonitor=false",
			 (char *)"ls-files", (char *)"-v", (char *)"--stage", (char *)"-z", NULL };
	const char *extra[2] = { NULL, NULL };

	if (out < 0 || asprintf(&dir, "--git-dir=%s", git_dir) < 0 ||
	    asprintf(&variable, "GIT_INDEX_FILE=%s", index) < 0)
		return -1;
	argv[1] = dir;
	extra[0] = variable;
	return hf_git_run_with(target_fd, argv, extra, out, -1) == 0 ? fd_take(&out) : -1;
}

static int same_bytes(int a, int b)
{
	AUTO_FREE char *x = malloc(CHUNK);
	AUTO_FREE char *y = malloc(CHUNK);
	ssize_t n = (ssize_t)CHUNK, m;

	for (off_t at = 0; x && y && n == (ssize_t)CHUNK; at += n) {
		n = hf_pread_all(a, x, CHUNK, at);
		m = hf_pread_all(b, y, CHUNK, at);
		if (n < 0 || n != m || memcmp(x, y, (size_t)n) != 0)
			return 0;
	}
	return x && y;
}

int hf_index_is_same(struct hf_work *work, size_t i)
{
	const struct hf_op *op = &work->intent.ops[i];
	size_t len = git_dir_of(op);
	AUTO(hf_buf_done) struct hf_buf kept = HF_BUF_INIT;
	AUTO_FREE char *git_dir = strndup(op->path, len);
	AUTO_FD before = -1;
	AUTO_FD now = -1;
	char name[KEPT_MAX];
	struct stat st;

	(void)snprintf(name, sizeof(name), KEPT_NAME, i);
	hf_sandbox_path(work->plans, work->record.name, work->intent.targets[op->target].sandbox, name, &kept);
	/* git takes an index that is not there for an empty one. */
	if (len == 0 || !git_dir || kept.err || hf_sys.fstatat(AT_FDCWD, kept.s, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	before = list(work->sites[op->target].target_fd, git_dir, kept.s);
	now = before < 0 ? -1 : list(work->sites[op->target].target_fd, git_dir, op->path);
	return now >= 0 && same_bytes(before, now);
}
