/*
 * plan/diff/delta_inner.c - what is inside a directory that lands as a whole.
 *
 * One rename brings the directory with everything in it, so what must not land is moved out of it
 * first, and marks of overlayfs are taken off afterwards. No file is opened, and for an overlay
 * none is looked at beyond its name, type and attributes.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/diff/delta.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"

static struct hf_delta *add_inner(struct hf_delta_walk *walk, int fd, const char *name,
				  const struct hf_buf *path, uint8_t op)
{
	struct hf_delta *d = hf_deltas_add(walk->out, path->s);
	struct stat st;

	if (!d || hf_sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	d->inner = 1;
	d->op = op;
	d->kind = op == HF_OP_LEAVE ? HF_CHANGE_SKIPPED : HF_CHANGE_MODE;
	hf_side_take(&d->new, &st);
	if (op == HF_OP_META)
		d->old = d->new;
	return d;
}

/* A deletion has no meaning in a new directory, and is not worth telling. */
static int leave(struct hf_delta_walk *walk, int fd, const char *name, struct hf_buf *path)
{
	return add_inner(walk, fd, name, path, HF_OP_LEAVE) ? 0 : errno == ENOENT ? 0 : -ENOMEM;
}

static int take_marks_off(struct hf_delta_walk *walk, int fd, const char *name, struct hf_buf *path,
			  struct hf_overlay_marks *ret)
{
	AUTO(hf_buf_done) struct hf_buf list = HF_BUF_INIT;
	struct hf_delta *d;
	int r = hf_attrs_marks(fd, name, walk->prefix, ret, &list);

	if (r < 0 || list.len == 0 || ret->whiteout)
		return r == -ENOENT ? 0 : r;
	d = add_inner(walk, fd, name, path, HF_OP_META);
	if (!d)
		return -ENOMEM;
	d->attrs_len = list.len;
	d->attrs = list.s;
	list = (struct hf_buf)HF_BUF_INIT;
	return 0;
}

static int is_special(unsigned char type)
{
	return type != DT_REG && type != DT_DIR && type != DT_LNK;
}

/*
 * A copy's tree is on a mount with other files: one of them may have been linked into it. Which
 * files have names outside is known when all names of the tree have been seen.
 */
static int note_link(struct hf_delta_walk *walk, int fd, const struct hf_dent *e, struct hf_buf *path)
{
	struct hf_delta *d;
	struct stat st;

	if (walk->prefix || e->type != DT_REG)
		return 0;
	if (hf_sys.fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink == 1)
		return 0;
	d = add_inner(walk, fd, e->name, path, 0);
	return d ? 0 : -ENOMEM;
}

int hf_delta_inside(struct hf_delta_walk *walk, int fd, struct hf_buf *path)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	size_t len = path->len;
	int r = hf_listing_read(fd, &listing);

	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		const struct hf_dent *e = &listing.entries[i];
		struct hf_overlay_marks marks = { 0 };

		r = hf_path_set(path, len, e->name);
		if (r < 0)
			return r;
		if (is_special(e->type) || hf_ignored(walk->ignore, path->s, e->type == DT_DIR)) {
			r = leave(walk, fd, e->name, path);
			continue;
		}
		r = note_link(walk, fd, e, path);
		if (r == 0 && walk->prefix && e->type != DT_LNK)
			r = take_marks_off(walk, fd, e->name, path, &marks);
		if (r < 0)
			return r;
		if (marks.foreign)
			return FAIL(walk->err, HF_E_FORMAT, "read", path->s,
				    "no Holdfast sandbox made it (redirect, metacopy)");
		if (marks.whiteout)
			r = leave(walk, fd, e->name, path);
		if (r == 0 && e->type == DT_DIR) {
			AUTO_FD child = hf_dirtree_open(fd, e->name);

			r = child < 0 ? child : hf_delta_inside(walk, child, path);
		}
	}
	path->len = len;
	path->s[len] = '\0';
	return r;
}
