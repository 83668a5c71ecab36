/*
 * plan/diff/diff.c - plan diff: every entry that a commit would add, change or delete.
 *
 * A delta that is a whole directory is one step for a commit; here what is in it is listed as well,
 * each file of a new directory as added and each of one that goes as deleted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

struct diff {
	const struct hf_unit *unit;
	const char *const *ignore;
	const char *prefix; /* of overlayfs' attributes; NULL */
	hf_change_fn *fn;
	void *arg;
	struct hf_buf path;
	struct hf_err *err;
};

static int open_file(int dirfd, const char *name, mode_t mode)
{
	return S_ISREG(mode) && dirfd >= 0 ? hf_open_noatime(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
					   : -1;
}

/* What a symbolic link says, in `room`; NULL for anything else. */
static const char *read_link(int dirfd, const char *name, mode_t mode, char room[PATH_MAX])
{
	ssize_t n = S_ISLNK(mode) && dirfd >= 0 ? hf_sys.readlinkat(dirfd, name, room, PATH_MAX - 1) : -1;

	if (n < 0)
		return NULL;
	room[n] = '\0';
	return room;
}

/* One entry of the list. A side that is not there has mode 0. */
static int show(const struct diff *diff, enum hf_change_kind kind, int old_dir, const struct stat *old,
		int new_dir, const struct stat *new)
{
	const char *leaf = hf_dirtree_leaf(diff->path.s);
	AUTO_FD old_fd = open_file(old_dir, leaf, old->st_mode);
	AUTO_FD new_fd = open_file(new_dir, leaf, new->st_mode);
	char old_link[PATH_MAX], new_link[PATH_MAX];
	struct hf_change change = {
		.sandbox = diff->unit->sandbox->name,
		.path = diff->path.s[0] ? diff->path.s : ".",
		.kind = kind,
		.old_mode = old->st_mode,
		.new_mode = new->st_mode,
		.old_bytes = S_ISREG(old->st_mode) ? (int64_t)old->st_size : -1,
		.new_bytes = S_ISREG(new->st_mode) ? (int64_t)new->st_size : -1,
		.old_fd = old_fd < 0 ? -1 : old_fd,
		.new_fd = new_fd < 0 ? -1 : new_fd,
		.old_link = read_link(old_dir, leaf, old->st_mode, old_link),
		.new_link = read_link(new_dir, leaf, new->st_mode, new_link),
	};

	return diff->fn(diff->arg, &change);
}

static int is_whiteout(const struct diff *diff, int dirfd, const char *name, const struct stat *st)
{
	struct hf_overlay_marks marks;

	if (!diff->prefix)
		return 0;
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0))
		return 1;
	return S_ISREG(st->st_mode) && st->st_size == 0 &&
	       hf_attrs_marks(dirfd, name, diff->prefix, &marks, NULL) == 0 && marks.whiteout;
}

static int plain_type(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

/* Everything below a directory, as added or as deleted. */
static int show_below(struct diff *diff, int fd, enum hf_change_kind kind)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	static const struct stat none;
	size_t len = diff->path.len;
	int r = hf_listing_read(fd, &listing);

	if (r < 0)
		return hf_fail_sys(diff->err, -r, "read", diff->path.s);
	for (size_t i = 0; r >= 0 && i < listing.n; i++) {
		const char *name = listing.entries[i].name;
		int added = kind == HF_CHANGE_ADDED;
		struct stat st;

		r = hf_path_set(&diff->path, len, name);
		if (r == 0)
			r = hf_dirtree_look(fd, name, &st);
		if (r <= 0)
			continue;
		r = 0;
		if (hf_ignored(diff->ignore, diff->path.s, S_ISDIR(st.st_mode)) ||
		    (added && is_whiteout(diff, fd, name, &st)))
			continue;
		r = show(diff, added && !plain_type(st.st_mode) ? HF_CHANGE_SKIPPED : kind, added ? -1 : fd,
			 added ? &none : &st, added ? fd : -1, added ? &st : &none);
		if (r >= 0 && S_ISDIR(st.st_mode)) {
			AUTO_FD child = hf_dirtree_open(fd, name);

			r = child < 0 ? hf_fail_sys(diff->err, -child, "openat2", diff->path.s)
				      : show_below(diff, child, kind);
		}
	}
	diff->path.len = len;
	diff->path.s[len] = '\0';
	return r < 0 ? r : 0;
}

static int show_tree(struct diff *diff, int dirfd, const char *leaf, enum hf_change_kind kind)
{
	AUTO_FD fd = hf_dirtree_open(dirfd, leaf);

	return fd < 0 ? hf_fail_sys(diff->err, -fd, "openat2", diff->path.s)
		      : show_below(diff, fd, kind);
}

static int show_replaced(struct diff *diff, int old_fd, int new_fd);

/* One name of two directories of which one replaces the other. A side that lacks it has mode 0. */
static int show_name(struct diff *diff, int old_fd, int new_fd, const char *name)
{
	struct stat old = { 0 }, new = { 0 };
	int r = hf_dirtree_look(old_fd, name, &old);

	if (r >= 0)
		r = hf_dirtree_look(new_fd, name, &new);
	if (r < 0)
		return hf_fail_sys(diff->err, -r, "fstatat", diff->path.s);
	if (new.st_mode && is_whiteout(diff, new_fd, name, &new))
		memset(&new, 0, sizeof(new));
	if ((!old.st_mode && !new.st_mode) ||
	    hf_ignored(diff->ignore, diff->path.s, S_ISDIR(new.st_mode ? new.st_mode : old.st_mode)))
		return 0;
	if (S_ISDIR(old.st_mode) && S_ISDIR(new.st_mode)) {
		AUTO_FD below_old = hf_dirtree_open(old_fd, name);
		AUTO_FD below_new = hf_dirtree_open(new_fd, name);

		r = old.st_mode != new.st_mode ? show(diff, HF_CHANGE_MODE, old_fd, &old, new_fd, &new) : 0;
		if (r < 0)
			return r;
		return below_old < 0 || below_new < 0 ?
			       hf_fail_sys(diff->err, below_old < 0 ? -below_old : -below_new, "openat2", diff->path.s) :
			       show_replaced(diff, below_old, below_new);
	}
	if (old.st_mode && new.st_mode && hf_same_entry(new_fd, name, &new, old_fd, name, &old, diff->prefix) == 1)
		return 0;
	r = show(diff, new.st_mode && !plain_type(new.st_mode) ? HF_CHANGE_SKIPPED :
		       !old.st_mode			       ? HF_CHANGE_ADDED :
		       !new.st_mode			       ? HF_CHANGE_DELETED :
		       (old.st_mode ^ new.st_mode) & S_IFMT    ? HF_CHANGE_TYPE :
								 HF_CHANGE_CHANGED, old_fd, &old, new_fd, &new);
	if (r >= 0 && S_ISDIR(old.st_mode))
		r = show_tree(diff, old_fd, name, HF_CHANGE_DELETED);
	if (r >= 0 && S_ISDIR(new.st_mode))
		r = show_tree(diff, new_fd, name, HF_CHANGE_ADDED);
	return r < 0 ? r : 0;
}

/* A directory that was deleted and made anew: what is the same in both is no change. Names of both, in order. */
static int show_replaced(struct diff *diff, int old_fd, int new_fd)
{
	AUTO(hf_listing_done) struct hf_listing old = { 0 };
	AUTO(hf_listing_done) struct hf_listing new = { 0 };
	size_t len = diff->path.len;
	int r = hf_listing_read(old_fd, &old);

	if (r == 0)
		r = hf_listing_read(new_fd, &new);
	if (r < 0)
		return hf_fail_sys(diff->err, -r, "read", diff->path.s);
	for (size_t i = 0, k = 0; r == 0 && (i < old.n || k < new.n);) {
		int order = i == old.n ? 1 : k == new.n ? -1 : strcmp(old.entries[i].name, new.entries[k].name);
		const char *name = order <= 0 ? old.entries[i].name : new.entries[k].name;

		i += order <= 0;
		k += order >= 0;
		r = hf_path_set(&diff->path, len, name);
		r = r < 0 ? hf_fail_sys(diff->err, -r, "memory", name) : show_name(diff, old_fd, new_fd, name);
	}
	diff->path.len = len;
	diff->path.s[len] = '\0';
	return r;
}

static int show_both(struct diff *diff, int old_dir, int new_dir, const char *leaf)
{
	AUTO_FD old = hf_dirtree_open(old_dir, leaf);
	AUTO_FD new = hf_dirtree_open(new_dir, leaf);

	return old < 0 || new < 0 ? hf_fail_sys(diff->err, old < 0 ? -old : -new, "openat2", diff->path.s)
				  : show_replaced(diff, old, new);
}

/* A file of which only the mode changed was copied as a whole by the sandbox all the same. */
static enum hf_change_kind refine(const struct diff *diff, const struct hf_delta *d, int old_dir,
				  const struct stat *old, int new_dir, const struct stat *new)
{
	const char *leaf = hf_dirtree_leaf(d->path);
	struct stat alike = *new;

	if (d->kind != HF_CHANGE_CHANGED || !S_ISREG(old->st_mode) || old->st_mode == new->st_mode)
		return d->kind;
	alike.st_mode = old->st_mode;
	return hf_same_entry(new_dir, leaf, &alike, old_dir, leaf, old, diff->prefix) == 1 ? HF_CHANGE_MODE
											  : d->kind;
}

static int show_delta(struct diff *diff, const struct hf_delta *d)
{
	AUTO(hf_buf_done) struct hf_buf from = HF_BUF_INIT;
	const char *leaf = hf_dirtree_leaf(d->path);
	size_t len = (size_t)(leaf - d->path);
	AUTO_FD old_dir = -1;
	AUTO_FD new_dir = -1;
	struct stat old = { 0 }, new = { 0 };
	int r;

	hf_buf_reset(&diff->path);
	hf_buf_add_text(&diff->path, d->path);
	hf_buf_add_format(&from, "%s/%.*s",
			  diff->prefix ? HF_SANDBOX_UPPER : HF_SANDBOX_TREE, (int)len, d->path);
	if (diff->path.err || from.err)
		return hf_fail_sys(diff->err, ENOMEM, "memory", d->path);
	old_dir = hf_dirtree_descend(diff->unit->target_fd, d->path, len - (len > 0));
	new_dir = hf_dirtree_descend(diff->unit->sandbox_fd, from.s, from.len - 1);
	if (d->old.mode && old_dir >= 0 && hf_dirtree_look(old_dir, leaf, &old) <= 0)
		memset(&old, 0, sizeof(old));
	if (d->new.mode && new_dir >= 0 && hf_dirtree_look(new_dir, leaf, &new) <= 0)
		memset(&new, 0, sizeof(new));
	if (S_ISDIR(old.st_mode) && S_ISDIR(new.st_mode) && d->op == HF_OP_EXCHANGE) {
		r = old.st_mode != new.st_mode ? show(diff, HF_CHANGE_MODE, old_dir, &old, new_dir, &new) : 0;
		return r < 0 ? r : show_both(diff, old_dir, new_dir, leaf);
	}
	r = show(diff, refine(diff, d, old_dir, &old, new_dir, &new), old_dir, &old, new_dir, &new);
	if (r < 0 || d->op == HF_OP_META || d->kind == HF_CHANGE_SKIPPED)
		return r < 0 ? r : 0;
	if (S_ISDIR(old.st_mode))
		r = show_tree(diff, old_dir, leaf, HF_CHANGE_DELETED);
	if (r >= 0 && S_ISDIR(new.st_mode))
		r = show_tree(diff, new_dir, leaf, HF_CHANGE_ADDED);
	return r < 0 ? r : 0;
}

static int show_unit(struct diff *diff)
{
	int r = 0;

	diff->prefix = diff->unit->sandbox->strategy != HF_STRATEGY_OVERLAY ? NULL :
		       diff->unit->sandbox->root_ns                       ? HF_OVERLAY_TRUSTED :
									     HF_OVERLAY_USER;
	for (size_t i = 0; r >= 0 && i < diff->unit->deltas.n; i++)
		if (!diff->unit->deltas.list[i].same)
			r = show_delta(diff, &diff->unit->deltas.list[i]);
	return r < 0 ? r : 0;
}

int hf_plan_diff(struct hf_plans *plans, const char *plan, const struct hf_plan_diff_opts *opts,
		 hf_change_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_work_done) struct hf_work work = HF_WORK_INIT;
	struct diff diff = { .fn = fn, .arg = arg, .path = HF_BUF_INIT, .err = err };
	int r;

	if (!fn || (opts && opts->size != sizeof(*opts)))
		return FAIL(err, -EINVAL, "arguments", plan ? plan : "plan", "a function and a valid size are needed");
	r = hf_work_begin(&work, plans, plan, opts ? opts->wait_ns : 0, err);
	/* One that is over has no changes: its stages hold old versions. */
	if (r < 0 || work.record.state == HF_PLAN_COMMITTED || work.record.state == HF_PLAN_ROLLED_BACK ||
	    work.record.state == HF_PLAN_CLEANED)
		return r;
	diff.ignore = opts ? opts->ignore : NULL;
	r = hf_work_open_units(&work, err);
	if (r == 0)
		r = hf_work_find_deltas(&work, diff.ignore, 0, err);
	for (size_t i = 0; r == 0 && i < work.n_units; i++) {
		diff.unit = &work.units[i];
		r = show_unit(&diff);
	}
	hf_buf_done(&diff.path);
	return r;
}
