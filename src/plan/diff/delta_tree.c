/*
 * plan/diff/delta_tree.c - the whole tree of a clone or copy against its manifest and its target.
 *
 * What the sandbox changed is found from the manifest alone: an entry of the copy whose inode,
 * size or times are not the recorded ones. Whether the target's entry is still the one that was
 * copied is the manifest's to say, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/diff/delta.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"

struct walk_tree {
	struct hf_delta_walk *walk;
	const struct hf_manifest *manifest;
	struct hf_buf path;
};

/* A directory of the copy, and the target's of that name: -1 when there is none. */
struct level {
	int copy_fd, target_fd;
	struct stat target;
	int known; /* 1: the target's is the one that was copied */
};

static int fail(const struct walk_tree *w, int r, const char *op)
{
	return hf_fail_sys(w->walk->err, -r, op, w->path.len ? w->path.s : ".");
}

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

static struct hf_delta *add(struct walk_tree *w, const struct level *l, const struct stat *copy,
			    const struct stat *target, enum hf_change_kind kind, uint8_t op)
{
	struct hf_delta *d = hf_deltas_add(w->walk->out, w->path.s);

	if (!d)
		return NULL;
	d->kind = kind;
	d->op = op;
	d->parent_ino = (uint64_t)l->target.st_ino;
	if (target && target->st_ino)
		hf_side_take(&d->old, target);
	if (copy)
		hf_side_take(&d->new, copy);
	if (!l->known)
		d->verdict = HF_VERDICT_PARENT_UNKNOWN;
	return d;
}

static int judge_present(struct walk_tree *w, const struct level *l, const char *name,
			 const struct stat *target, struct hf_delta *d)
{
	AUTO(hf_buf_done) struct hf_buf where = HF_BUF_INIT;
	const struct hf_manifest_entry *e = hf_manifest_find(w->manifest, d->path);
	AUTO_FD fd = -1;
	int r;

	if (d->verdict)
		return 0;
	if (!S_ISDIR(target->st_mode)) {
		d->verdict = hf_base_same(w->walk->base, d->path, target) ? HF_VERDICT_NONE
									  : HF_VERDICT_CHANGED;
		return 0;
	}
	if (!e || e->row.ino != (uint64_t)target->st_ino) {
		d->verdict = HF_VERDICT_CHANGED;
		return 0;
	}
	fd = hf_dirtree_open(l->target_fd, name);
	if (fd < 0)
		return fail(w, fd, "openat2");
	r = hf_base_same_below(w->walk->base, fd, d->path, &where);
	if (r < 0)
		return fail(w, r, "read");
	if (r == 0) {
		d->verdict = HF_VERDICT_BELOW;
		d->shown = strdup(where.s);
	}
	return 0;
}

static int take_new_dir_inside(struct walk_tree *w, const struct level *l, const char *name)
{
	AUTO_FD fd = -1;
	int r;

	if (!(w->walk->flags & HF_DELTA_INSIDE))
		return 0;
	fd = hf_dirtree_open(l->copy_fd, name);
	if (fd < 0)
		return fail(w, fd, "openat2");
	r = hf_delta_inside(w->walk, fd, &w->path);
	return r < 0 && r > -4096 ? fail(w, r, "read") : r;
}

/* An entry of the copy that is new, changed, or of another type than what was copied. */
static int take_changed(struct walk_tree *w, const struct level *l, const char *name,
			const struct stat *copy, const struct stat *target, int had)
{
	int present = target->st_ino != 0;
	int type = present && ((copy->st_mode ^ target->st_mode) & S_IFMT) != 0;
	struct hf_delta *d = add(w, l, copy, target,
				 !present ? HF_CHANGE_ADDED :
				 type     ? HF_CHANGE_TYPE :
					    HF_CHANGE_CHANGED,
				 present ? HF_OP_EXCHANGE : HF_OP_NEW);
	int r = 0;

	if (!d)
		return fail(w, -ENOMEM, "memory");
	if (present) {
		r = judge_present(w, l, name, target, d);
		if (r == 0 && !S_ISDIR(copy->st_mode)) {
			r = hf_same_entry(l->copy_fd, name, copy, l->target_fd, name, target, NULL);
			if (r < 0)
				return fail(w, r, "compare");
			d->same = r && (d->verdict || in_ns(copy->st_mtim) == in_ns(target->st_mtim));
			if (d->same)
				d->verdict = HF_VERDICT_NONE;
			r = 0;
		}
	} else if (had && !d->verdict) {
		d->verdict = HF_VERDICT_DELETED;
	}
	return r < 0 || !S_ISDIR(copy->st_mode) ? r : take_new_dir_inside(w, l, name);
}

/* Mode, owner and attributes of a directory that was copied. */
static int take_meta(struct walk_tree *w, const struct level *parent, int copy_fd, const struct stat *copy,
		     int target_fd, const struct stat *target, const struct hf_manifest_row *row)
{
	AUTO(hf_buf_done) struct hf_buf attrs = HF_BUF_INIT;
	int r = hf_attrs_compare(copy_fd, "", NULL, target_fd, "", &attrs);
	int moded = copy->st_mode != row->mode && copy->st_mode != target->st_mode;
	struct hf_delta *d;

	if (r < 0)
		return fail(w, r, "compare");
	/* Attributes are carried when the copy's directory itself was changed by the sandbox. */
	if (row->copy_ctime_ns == in_ns(copy->st_ctim))
		return 0;
	if (!moded && attrs.len == 0)
		return 0;
	d = add(w, parent, copy, target, HF_CHANGE_MODE, HF_OP_META);
	if (!d)
		return fail(w, -ENOMEM, "memory");
	d->new.uid = d->old.uid;
	d->new.gid = d->old.gid;
	d->new.ino = d->old.ino;
	if (!moded)
		d->new.mode = d->old.mode;
	d->attrs_len = attrs.len;
	d->attrs = attrs.len ? attrs.s : NULL;
	if (attrs.len)
		attrs = (struct hf_buf)HF_BUF_INIT;
	if (!d->verdict && (target->st_mode != row->mode ||
			    (d->attrs_len && row->ctime_ns != in_ns(target->st_ctim))))
		d->verdict = HF_VERDICT_MODE;
	return 0;
}

static int walk_level(struct walk_tree *w, const struct level *l);

static int take_dir(struct walk_tree *w, const struct level *l, const char *name,
		    const struct stat *copy, const struct stat *target,
		    const struct hf_manifest_row *row)
{
	AUTO_FD copy_fd = hf_dirtree_open(l->copy_fd, name);
	AUTO_FD target_fd = hf_dirtree_open(l->target_fd, name);
	struct level below = { .copy_fd = copy_fd, .target_fd = target_fd, .target = *target };
	int r = 0;

	if (copy_fd < 0 || target_fd < 0)
		return fail(w, copy_fd < 0 ? copy_fd : target_fd, "openat2");
	/* Made anew on both sides: nothing in it was copied, so that all of it is compared. */
	below.known = l->known && (!row || row->ino == (uint64_t)target->st_ino);
	if (row)
		r = take_meta(w, l, copy_fd, copy, target_fd, target, row);
	return r < 0 ? r : walk_level(w, &below);
}

static int take_entry(struct walk_tree *w, const struct level *l, const char *name)
{
	const struct hf_manifest_entry *e = hf_manifest_find(w->manifest, w->path.s);
	struct stat copy, target = { 0 };
	int r = hf_dirtree_look(l->copy_fd, name, &copy);

	if (r > 0 && hf_ignored(w->walk->ignore, w->path.s, S_ISDIR(copy.st_mode)))
		return 0;
	if (r > 0)
		r = hf_dirtree_look(l->target_fd, name, &target);
	else if (r == 0)
		return 0;
	if (r < 0)
		return fail(w, r, "fstatat");
	if (r == 0)
		memset(&target, 0, sizeof(target));
	if (!S_ISREG(copy.st_mode) && !S_ISDIR(copy.st_mode) && !S_ISLNK(copy.st_mode))
		return add(w, l, &copy, &target, HF_CHANGE_SKIPPED, 0) ? 0 : fail(w, -ENOMEM, "memory");
	if (e && !S_ISDIR(copy.st_mode) &&
	    (hf_manifest_untouched(&e->row, &copy) ||
	     (w->walk->base->other_boot && hf_manifest_lost(&e->row, &copy))))
		return 0;
	if (S_ISDIR(copy.st_mode) && target.st_ino && S_ISDIR(target.st_mode))
		return take_dir(w, l, name, &copy, &target,
				e && S_ISDIR(e->row.mode) ? &e->row : NULL);
	/* A directory that the sandbox did not make, and the target lost: its changes have no place. */
	return take_changed(w, l, name, &copy, &target, e != NULL);
}

static int take_deleted(struct walk_tree *w, const struct level *l, const char *name)
{
	struct stat target;
	struct hf_delta *d;
	int r = hf_dirtree_look(l->target_fd, name, &target);

	if (r <= 0)
		return r < 0 ? fail(w, r, "fstatat") : 0;
	if (hf_ignored(w->walk->ignore, w->path.s, S_ISDIR(target.st_mode)))
		return 0;
	d = add(w, l, NULL, &target, HF_CHANGE_DELETED, HF_OP_DELETE);
	return d ? judge_present(w, l, name, &target, d) : fail(w, -ENOMEM, "memory");
}

/* Is `path` directly below `dir`? Returns its leaf, or NULL. */
static const char *child_of(const char *path, const char *dir, size_t len)
{
	if (len) {
		if (strncmp(path, dir, len) != 0 || path[len] != '/')
			return NULL;
		path += len + 1;
	}
	return path[0] && !strchr(path, '/') ? path : NULL;
}

/* The first entry of the manifest that can be below the directory. */
static size_t first_below(const struct hf_manifest *m, const char *dir, size_t len)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strncmp(m->entries[mid].path, dir, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int find_deleted(struct walk_tree *w, const struct level *l, const struct hf_listing *listing,
			size_t len)
{
	AUTO_FREE char *dir = strndup(w->path.s, len);
	int r = 0;

	if (!dir)
		return -ENOMEM;
	for (size_t i = first_below(w->manifest, dir, len);
	     r == 0 && i < w->manifest->n && strncmp(w->manifest->entries[i].path, dir, len) == 0; i++) {
		const char *leaf = child_of(w->manifest->entries[i].path, dir, len);

		if (!leaf || hf_listing_find(listing, leaf))
			continue;
		r = hf_path_set(&w->path, len, leaf);
		if (r == 0)
			r = take_deleted(w, l, leaf);
	}
	return r;
}

static int walk_level(struct walk_tree *w, const struct level *l)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	size_t len = w->path.len;
	int r = hf_listing_read(l->copy_fd, &listing);

	if (r < 0)
		return fail(w, r, "read");
	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		r = hf_path_set(&w->path, len, listing.entries[i].name);
		if (r == 0)
			r = take_entry(w, l, listing.entries[i].name);
	}
	if (r == 0)
		r = find_deleted(w, l, &listing, len);
	w->path.len = len;
	w->path.s[len] = '\0';
	return r;
}

/* -- links to files outside ---------------------------------------------------------------- */

struct link_count {
	uint64_t ino, seen;
};

static int by_ino(const void *a, const void *b)
{
	uint64_t x = ((const struct link_count *)a)->ino, y = ((const struct link_count *)b)->ino;

	return x < y ? -1 : x > y;
}

/*
 * A file with more names than the change has of it may be one from outside, which a commit would
 * tie to the target. It is copied, as a copy of it would have been.
 */
static int find_outside_links(struct hf_deltas *deltas)
{
	AUTO_FREE struct link_count *counts = calloc(deltas->n + 1, sizeof(*counts));
	size_t n = 0;

	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < deltas->n; i++)
		if (S_ISREG(deltas->list[i].new.mode) && deltas->list[i].new.nlink > 1)
			counts[n++].ino = deltas->list[i].new.ino;
	if (n)
		qsort(counts, n, sizeof(*counts), by_ino);
	for (size_t i = 0; i < n; i++) {
		size_t j = i;

		while (j < n && counts[j].ino == counts[i].ino)
			j++;
		for (size_t k = i; k < j; k++)
			counts[k].seen = j - i;
		i = j - 1;
	}
	for (size_t i = 0; i < deltas->n; i++) {
		struct hf_delta *d = &deltas->list[i];
		struct link_count key = { .ino = d->new.ino }, *found;

		if (!S_ISREG(d->new.mode) || d->new.nlink <= 1)
			continue;
		found = bsearch(&key, counts, n, sizeof(key), by_ino);
		d->outside_link = found && found->seen < d->new.nlink;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hf_delta *)a)->path, ((const struct hf_delta *)b)->path);
}

int hf_delta_tree(struct hf_delta_walk *walk)
{
	struct walk_tree w = { .walk = walk, .manifest = walk->base->manifest, .path = HF_BUF_INIT };
	AUTO_FD copy = hf_dirtree_open(walk->sandbox_fd, walk->top);
	AUTO_FD target = hf_dirtree_open(walk->target_fd, "");
	const struct hf_manifest_entry *root = hf_manifest_find(w.manifest, "");
	struct level level = { .copy_fd = copy, .target_fd = target, .known = 1 };
	struct stat st;
	int r;

	if (copy < 0 || target < 0 || hf_buf_reserve(&w.path, 256) < 0)
		return fail(&w, copy < 0 ? copy : target < 0 ? target : -ENOMEM, "openat2");
	w.path.s[0] = '\0';
	if (hf_sys.fstat(copy, &st) < 0 || hf_sys.fstat(target, &level.target) < 0)
		r = fail(&w, -errno, "fstat");
	else
		r = root ? take_meta(&w, &level, copy, &st, target, &level.target, &root->row) : 0;
	if (r == 0)
		r = walk_level(&w, &level);
	if (r == 0)
		r = find_outside_links(walk->out);
	if (r == 0 && walk->out->n > 1)
		qsort(walk->out->list, walk->out->n, sizeof(*walk->out->list), by_path);
	hf_buf_done(&w.path);
	return r == -ENOMEM ? hf_fail_sys(walk->err, ENOMEM, "memory", "plan") : r;
}
