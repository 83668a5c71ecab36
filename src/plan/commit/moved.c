/* plan/commit/moved.c - looking through targets for entries that changed since they were verified. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/moved.h"
#include "hf/plan/stage/stage.h"
#include "hf/sys/calls.h"

struct look {
	struct hf_base base;
	struct hf_buf path;  /* of what is looked at; of what moved, in the end */
	struct stat stdio[3];
};

void hf_plans_set_verified(struct hf_plans *plans, struct hf_verified *verified)
{
	plans->verified = verified;
}

static int is_stdio(const struct look *look, const struct stat *st)
{
	for (int i = 0; i < 3; i++)
		if (S_ISREG(st->st_mode) && look->stdio[i].st_ino == st->st_ino && look->stdio[i].st_dev == st->st_dev)
			return 1;
	return 0;
}

/* Of a git directory, what tells which commits there are. */
static int counts(const char *path, const struct stat *st)
{
	size_t len = hf_git_dir_of(path);
	const char *below = path + len + 1;

	if (len == 0)
		return strcmp(hf_dirtree_leaf(path), ".git") != 0 || !S_ISDIR(st->st_mode);
	return S_ISREG(st->st_mode) &&
	       (strcmp(below, "HEAD") == 0 || strcmp(below, "packed-refs") == 0 ||
		(strncmp(below, "refs/", 5) == 0 && !strstr(below, ".lock")));
}

static int look_below(struct look *look, int fd);

/* One entry of the directory `fd`, whose path is in look->path. */
static int look_at(struct look *look, int fd, const char *name)
{
	AUTO_FD child = -1;
	struct stat st;
	int r = hf_dirtree_look(fd, name, &st);

	if (r <= 0)
		return r == -EACCES ? 0 : r;
	if (counts(look->path.s, &st) && !is_stdio(look, &st) && !hf_base_same(&look->base, look->path.s, &st))
		return HF_PLAN_MOVED;
	if (!S_ISDIR(st.st_mode))
		return 0;
	child = hf_dirtree_open(fd, name);
	/* What the user cannot read no verifier of this user has read; a mount is not seen through an overlay. */
	if (child < 0)
		return child == -EACCES || child == -EXDEV || child == -ENOENT || child == -ENOTDIR || child == -ELOOP ? 0 : child;
	return look_below(look, child);
}

static int look_below(struct look *look, int fd)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	size_t len = look->path.len;
	int r = hf_listing_read(fd, &listing);

	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		look->path.len = len;
		if (len)
			hf_buf_add_char(&look->path, '/');
		hf_buf_add_text(&look->path, listing.entries[i].name);
		r = look->path.err ? look->path.err : look_at(look, fd, listing.entries[i].name);
	}
	return r;
}

static int look_through(struct look *look, const struct hf_unit *unit)
{
	AUTO_FD fd = hf_dirtree_open(unit->target_fd, "");
	struct stat st;

	if (fd < 0 || hf_sys.fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	hf_buf_reset(&look->path);
	hf_buf_add_text(&look->path, "");
	if (!hf_base_same(&look->base, "", &st)) {
		hf_buf_add_text(&look->path, ".");
		return look->path.err ? look->path.err : HF_PLAN_MOVED;
	}
	return look_below(look, fd);
}

int hf_moved(const struct hf_work *work, struct hf_verified *verified, struct hf_err *err)
{
	struct look look = { .path = HF_BUF_INIT };
	struct hf_t0 now;
	int r = hf_t0_take(&now, err);

	if (r < 0)
		return r;
	/* By the fine clock, as for T0 (work.c). */
	now.boot_ns = hf_boot_now().ns;
	now.real_ns = hf_wall_now().ns;
	look.base.threshold_ns = hf_base_threshold(&verified->since, &now);
	for (int i = 0; i < 3; i++)
		if (hf_sys.fstat(i, &look.stdio[i]) < 0)
			memset(&look.stdio[i], 0, sizeof(look.stdio[i]));
	for (size_t i = 0; r == 0 && i < work->n_units; i++) {
		const struct hf_unit *unit = &work->units[i];

		if (unit->sandbox->strategy != HF_STRATEGY_OVERLAY)
			continue;
		r = look_through(&look, unit);
		if (r == HF_PLAN_MOVED)
			hf_copy_text(verified->moved, sizeof(verified->moved), look.path.s);
		else if (r < 0)
			(void)hf_fail_sys(err, -r, "check", unit->sandbox->target.path);
	}
	hf_buf_done(&look.path);
	return r;
}
