/*
 * plan/diff/delta_overlay.c - an upper directory against its target, with the rule of conflicts.
 *
 * The walk goes down both at once. Whether a directory of the target is the one that stood there
 * at T0 is decided on the way, because no entry of a directory that was swapped can be trusted:
 * its files may all be older than T0 (base.h has the tests).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/diff/delta.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"

/* A pair of directories: one of the upper, one of the target. */
struct pair {
	struct hf_delta_walk *walk;
	struct hf_buf *path; /* of both, below the target; the caller's again after each call */
	size_t len;          /* of it */
	int upper_fd, target_fd;
	struct stat target; /* of the directory itself */
	int known;          /* 1: the target's is the one of T0 */
	int whiteout_files; /* the upper's may hold whiteouts as files */
};

/* One entry of the upper and what the target has under that name. */
struct entry {
	const char *name;
	struct stat upper, target; /* target.st_ino 0: there is none */
	struct hf_overlay_marks marks;
	struct hf_buf attrs; /* marks to be taken off */
};

static void entry_done(struct entry *e)
{
	hf_buf_done(&e->attrs);
}

static int walk_pair(const struct pair *pair);

static int fail(const struct pair *pair, int r, const char *op)
{
	return hf_fail_sys(pair->walk->err, -r, op, pair->path->len ? pair->path->s : ".");
}

/* -- adding deltas ------------------------------------------------------------------- */

static struct hf_delta *add(const struct pair *pair, struct entry *e, enum hf_change_kind kind,
			    uint8_t op)
{
	struct hf_delta *d = hf_deltas_add(pair->walk->out, pair->path->s);

	if (!d)
		return NULL;
	d->kind = kind;
	d->op = op;
	d->parent_ino = (uint64_t)pair->target.st_ino;
	if (e->target.st_ino)
		hf_side_take(&d->old, &e->target);
	if (op != HF_OP_DELETE) {
		hf_side_take(&d->new, &e->upper);
		if (e->attrs.len) {
			d->attrs = e->attrs.s;
			d->attrs_len = e->attrs.len;
			e->attrs = (struct hf_buf)HF_BUF_INIT;
		}
	}
	if (!pair->known)
		d->verdict = HF_VERDICT_PARENT_UNKNOWN;
	return d;
}

/* The target has nothing under that name: was there something at T0? */
static void judge_absent(const struct pair *pair, const struct entry *e, struct hf_delta *d)
{
	char dir_end = pair->path->s[pair->len];
	int had;

	if (d->verdict)
		return;
	/*
	 * The mark "origin" says that it stood below somewhere, not where: a file that was moved in
	 * the sandbox has it as well. So only the names of T0 tell.
	 */
	pair->path->s[pair->len] = '\0';
	had = hf_base_had(pair->walk->base, pair->path->s, &pair->target, e->name, 0);
	pair->path->s[pair->len] = dir_end;
	if (had)
		d->verdict = had < 0 ? HF_VERDICT_NAME_UNKNOWN : HF_VERDICT_DELETED;
}

/* The target's entry is to be replaced or deleted. */
static int judge_present(const struct pair *pair, const struct entry *e, struct hf_delta *d)
{
	AUTO(hf_buf_done) struct hf_buf where = HF_BUF_INIT;
	AUTO_FD fd = -1;
	int r;

	if (!S_ISDIR(e->target.st_mode)) {
		if (!d->verdict && !hf_base_same(pair->walk->base, d->path, &e->target))
			d->verdict = HF_VERDICT_CHANGED;
		return 0;
	}
	if (d->verdict)
		return 0;
	if (!hf_base_same_dir(pair->walk->base, d->path, &e->target, &pair->target)) {
		d->verdict = HF_VERDICT_CHANGED;
		return 0;
	}
	fd = hf_dirtree_open(pair->target_fd, e->name);
	if (fd < 0)
		return fail(pair, fd, "openat2");
	r = hf_base_same_below(pair->walk->base, fd, d->path, &where);
	if (r < 0)
		return fail(pair, r, "read");
	if (r == 0) {
		d->verdict = HF_VERDICT_BELOW;
		d->shown = strdup(where.s);
	}
	return 0;
}

/* -- one entry ------------------------------------------------------------------------ */

static int take_deletion(const struct pair *pair, struct entry *e)
{
	struct hf_delta *d;

	if (!e->target.st_ino)
		return 0;
	d = add(pair, e, HF_CHANGE_DELETED, HF_OP_DELETE);
	return d ? judge_present(pair, e, d) : fail(pair, -ENOMEM, "memory");
}

/* What stands inside a directory that lands as a whole. */
static int take_inside(const struct pair *pair, const struct entry *e)
{
	AUTO_FD fd = -1;
	int r;

	if (!(pair->walk->flags & HF_DELTA_INSIDE))
		return 0;
	fd = hf_dirtree_open(pair->upper_fd, e->name);
	if (fd < 0)
		return fail(pair, fd, "openat2");
	r = hf_delta_inside(pair->walk, fd, pair->path);
	return r < 0 && r > -4096 ? fail(pair, r, "read") : r;
}

static int take_whole(const struct pair *pair, struct entry *e)
{
	int present = e->target.st_ino != 0;
	int type = present && S_ISDIR(e->target.st_mode) != S_ISDIR(e->upper.st_mode);
	struct hf_delta *d = add(pair, e,
				 !present ? HF_CHANGE_ADDED :
				 type     ? HF_CHANGE_TYPE :
					    HF_CHANGE_CHANGED,
				 present ? HF_OP_EXCHANGE : HF_OP_NEW);
	int r = 0;

	if (!d)
		return fail(pair, -ENOMEM, "memory");
	if (present)
		r = judge_present(pair, e, d);
	else
		judge_absent(pair, e, d);
	return r < 0 || !S_ISDIR(e->upper.st_mode) ? r : take_inside(pair, e);
}

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

/*
 * Only those that could be equal are read: both sides changed it, nothing did, or it was deleted and made anew (as
 * git does that goes to another branch and back). One that is the same file with another time lands for that time.
 */
static int may_be_same(const struct hf_delta *d, const struct entry *e)
{
	return d->verdict == HF_VERDICT_CHANGED || d->verdict == HF_VERDICT_PARENT_UNKNOWN || !e->marks.origin ||
	       in_ns(e->upper.st_mtim) == in_ns(e->target.st_mtim);
}

static int take_file(const struct pair *pair, struct entry *e)
{
	struct hf_delta *d;
	int r;

	if (!e->target.st_ino || S_ISDIR(e->target.st_mode))
		return take_whole(pair, e);
	d = add(pair, e,
		(e->upper.st_mode ^ e->target.st_mode) & S_IFMT ? HF_CHANGE_TYPE : HF_CHANGE_CHANGED,
		HF_OP_EXCHANGE);
	if (!d)
		return fail(pair, -ENOMEM, "memory");
	r = judge_present(pair, e, d);
	if (r < 0 || !may_be_same(d, e))
		return r;
	r = hf_same_entry(pair->upper_fd, e->name, &e->upper, pair->target_fd, e->name, &e->target,
			  pair->walk->prefix);
	if (r < 0)
		return fail(pair, r, "compare");
	if (r) {
		d->same = 1;
		d->verdict = HF_VERDICT_NONE;
	}
	return 0;
}

/* -- directories ------------------------------------------------------------------------ */

/* Mode, owner and attributes of a directory that both have. */
static int take_meta(const struct pair *pair, struct entry *e)
{
	AUTO(hf_buf_done) struct hf_buf attrs = HF_BUF_INIT;
	mode_t was = hf_base_dir_mode(pair->walk->base, pair->path->s, &e->target);
	int fresh = hf_base_same(pair->walk->base, pair->path->s, &e->target);
	struct hf_delta *d;
	int moded, r = hf_attrs_compare(pair->upper_fd, e->name, pair->walk->prefix, pair->target_fd,
					e->name, &attrs);

	if (r < 0)
		return fail(pair, r, "compare");
	/* The sandbox has the mode of T0: whatever the target has now, others gave it. */
	moded = e->upper.st_mode != e->target.st_mode && e->upper.st_mode != was;
	if (!moded && attrs.len == 0 && e->upper.st_uid == e->target.st_uid &&
	    e->upper.st_gid == e->target.st_gid)
		return 0;
	d = add(pair, e, HF_CHANGE_MODE, HF_OP_META);
	if (!d)
		return fail(pair, -ENOMEM, "memory");
	if (!moded)
		d->new.mode = d->old.mode;
	d->new.ino = d->old.ino;
	d->attrs_len = attrs.len;
	d->attrs = attrs.len ? attrs.s : NULL;
	if (attrs.len)
		attrs = (struct hf_buf)HF_BUF_INIT;
	/* Nothing else tells what the directory's attributes were. */
	if (!d->verdict && !fresh && !(moded && was && e->target.st_mode == was && d->attrs_len == 0))
		d->verdict = HF_VERDICT_MODE;
	return 0;
}

static int take_merged(const struct pair *pair, struct entry *e)
{
	AUTO_FD upper = hf_dirtree_open(pair->upper_fd, e->name);
	AUTO_FD target = hf_dirtree_open(pair->target_fd, e->name);
	struct pair below = { .walk = pair->walk, .path = pair->path, .len = pair->path->len,
			      .upper_fd = upper, .target_fd = target, .target = e->target,
			      .whiteout_files = e->marks.holds_whiteouts };
	int r;

	if (upper < 0 || target < 0)
		return fail(pair, upper < 0 ? upper : target, "openat2");
	hf_buf_reset(&e->attrs);
	below.known = pair->known && hf_base_same_dir(pair->walk->base, pair->path->s, &e->target,
						      &pair->target);
	r = take_meta(pair, e);
	return r < 0 ? r : walk_pair(&below);
}

/* Two directories: are they merged, or does the sandbox's replace the target's? */
static int take_both_dirs(const struct pair *pair, struct entry *e)
{
	char dir_end;
	int had;

	if (!e->marks.opaque)
		return take_merged(pair, e);
	/*
	 * Made anew in the sandbox. Where the target had none at T0, another process made one
	 * of that name as well, and the two go together.
	 */
	dir_end = pair->path->s[pair->len];
	pair->path->s[pair->len] = '\0';
	had = hf_base_had(pair->walk->base, pair->path->s, &pair->target, e->name, 1);
	pair->path->s[pair->len] = dir_end;
	if (had == 0 && !hf_base_same(pair->walk->base, pair->path->s, &e->target))
		return take_merged(pair, e);
	return take_whole(pair, e);
}

/* -- the walk ----------------------------------------------------------------------------- */

static int is_whiteout(const struct pair *pair, const struct entry *e)
{
	if (S_ISCHR(e->upper.st_mode))
		return e->upper.st_rdev == makedev(0, 0);
	return pair->whiteout_files && S_ISREG(e->upper.st_mode) && e->upper.st_size == 0 &&
	       e->marks.whiteout;
}

static int take_entry(const struct pair *pair, struct entry *e)
{
	mode_t type = e->upper.st_mode & S_IFMT;
	int r = 0;

	if (type == S_IFREG || type == S_IFDIR)
		r = hf_attrs_marks(pair->upper_fd, e->name, pair->walk->prefix, &e->marks, &e->attrs);
	if (r < 0)
		return fail(pair, r, "llistxattr");
	if (e->marks.foreign)
		return FAIL(pair->walk->err, HF_E_FORMAT, "read", pair->path->s,
			    "no Holdfast sandbox made it (redirect, metacopy)");
	if (hf_ignored(pair->walk->ignore, pair->path->s, type == S_IFDIR))
		return 0;
	if (is_whiteout(pair, e))
		return take_deletion(pair, e);
	if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK)
		return add(pair, e, HF_CHANGE_SKIPPED, 0) ? 0 : fail(pair, -ENOMEM, "memory");
	if (type == S_IFDIR && e->target.st_ino && S_ISDIR(e->target.st_mode))
		return take_both_dirs(pair, e);
	return type == S_IFDIR ? take_whole(pair, e) : take_file(pair, e);
}

static int walk_pair(const struct pair *pair)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	int r = hf_listing_read(pair->upper_fd, &listing);

	if (r < 0)
		return fail(pair, r, "read");
	for (size_t i = 0; r >= 0 && i < listing.n; i++) {
		AUTO(entry_done) struct entry e = { .name = listing.entries[i].name,
						    .attrs = HF_BUF_INIT };

		if (hf_path_set(pair->path, pair->len, e.name) < 0)
			return fail(pair, pair->path->err, "memory");
		r = hf_dirtree_look(pair->upper_fd, e.name, &e.upper);
		if (r == 0)
			continue; /* a sandbox in use: it has just gone */
		if (r > 0)
			r = hf_dirtree_look(pair->target_fd, e.name, &e.target);
		if (r < 0)
			return fail(pair, r, "fstatat");
		if (r == 0)
			memset(&e.target, 0, sizeof(e.target));
		r = take_entry(pair, &e);
	}
	pair->path->len = pair->len;
	if (pair->path->cap)
		pair->path->s[pair->len] = '\0';
	return r < 0 ? r : 0;
}

int hf_delta_overlay(struct hf_delta_walk *walk)
{
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	AUTO_FD upper = hf_dirtree_open(walk->sandbox_fd, walk->top);
	AUTO_FD target = hf_dirtree_open(walk->target_fd, "");
	AUTO(entry_done) struct entry e = { .name = "", .attrs = HF_BUF_INIT };
	struct pair pair = { .walk = walk, .path = &path, .upper_fd = upper, .target_fd = target,
			     .known = 1 };
	int r;

	/* A sandbox that was never entered has no upper directory, and no change. */
	if (upper == -ENOENT)
		return 0;
	if (upper < 0 || target < 0 || hf_buf_reserve(&path, 256) < 0)
		return fail(&pair, upper < 0 ? upper : target < 0 ? target : -ENOMEM, "openat2");
	if (hf_sys.fstat(upper, &e.upper) < 0 || hf_sys.fstat(target, &e.target) < 0)
		return fail(&pair, -errno, "fstat");
	path.s[0] = '\0';
	pair.target = e.target;
	r = hf_attrs_marks(upper, "", walk->prefix, &e.marks, NULL);
	if (r < 0)
		return fail(&pair, r, "llistxattr");
	pair.whiteout_files = e.marks.holds_whiteouts;
	r = take_meta(&pair, &e);
	return r < 0 ? r : walk_pair(&pair);
}
