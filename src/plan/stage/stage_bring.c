/*
 * plan/stage/stage_bring.c - the place from which new versions land, and how they get there.
 *
 * Where sandbox and target are on one mount, the sandbox itself is the stage and nothing is copied.
 * Else what is to land is copied into ".holdfast-<key>" in the target (stage_clear.c removes it).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/copytree.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/stage/stage.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

/* -- stages ------------------------------------------------------------------------------- */

int hf_stage_make_dir(int dirfd, const char *name, struct hf_err *err)
{
	if (hf_mkdir_at(dirfd, name, 0700) < 0 && errno != EEXIST)
		return FAIL_SYS(err, "mkdirat", name);
	return 0;
}

static int mark_staged(const struct hf_work *work)
{
	AUTO_FD fd = hf_open_or_create_at(work->plan_fd, HF_STAGED, O_WRONLY, 0600);

	return fd < 0 ? fd : 0;
}

/* What an attempt before this one left goes: it came to nothing, or its intent would be there. */
int hf_stage_open(struct hf_stage *s)
{
	struct hf_unit *unit = s->unit;
	char name[HF_NAME_KEY_MAX + 16];
	struct stat st;
	int r;

	if (!unit->in_target) {
		unit->stage_fd = hf_dirtree_open(unit->sandbox_fd, "");
		r = unit->stage_fd < 0 ? unit->stage_fd : hf_tree_remove(unit->sandbox_fd, HF_STAGE_OLD);
		if (r == 0)
			r = hf_tree_remove(unit->sandbox_fd, HF_STAGE_LEFT);
		if (r < 0)
			return hf_fail_sys(s->err, -r, "remove", unit->sandbox->name);
		return 0;
	}
	hf_stage_name(s->work->record.name, name);
	r = hf_dirtree_look(unit->target_fd, name, &st);
	if (r > 0 && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
		return FAIL(s->err, HF_E_TARGET, "stage", unit->sandbox->target.path,
			    "%s has the name of the directory for new versions, and is not Holdfast's", name);
	if (r > 0)
		r = hf_tree_remove(unit->target_fd, name);
	if (r < 0)
		return hf_fail_sys(s->err, -r, "remove", unit->sandbox->target.path);
	r = mark_staged(s->work);
	if (r < 0)
		return hf_fail_sys(s->err, -r, "openat", HF_STAGED);
	if (hf_mkdir_at(unit->target_fd, name, 0700) < 0)
		return FAIL_SYS(s->err, "mkdirat", unit->sandbox->target.path);
	unit->stage_fd = hf_dirtree_open(unit->target_fd, name);
	return unit->stage_fd < 0 ? hf_fail_sys(s->err, -unit->stage_fd, "openat2", unit->sandbox->target.path) : 0;
}

/* Where the new version of a delta is, below the sandbox's directory. */
static void add_source(const struct hf_unit *unit, const struct hf_delta *d, struct hf_buf *out)
{
	if (d->merged)
		hf_buf_add_text(out, d->merged);
	else
		hf_buf_add_format(out, "%s/%s", hf_unit_top(unit), d->path);
}

const char *hf_stage_slot(struct hf_stage *s, const char *dir)
{
	if (s->unit->in_target)
		return hf_work_string(s->work, "%zu", s->work->n_slots++);
	return hf_work_string(s->work, "%s/%zu", dir, s->work->n_slots++);
}

/* -- copies --------------------------------------------------------------------------------- */

/* A copy failed: of which file, and so on which file system. */
static int copy_failed(const struct hf_stage *s, const struct hf_delta *d, int error)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", s->unit->sandbox->target.path, d->path);
	return hf_fail_sys(s->err, error, "copy", path);
}

/* Copies the new version of a delta into the stage, and takes its side from there. */
static int copy_into_stage(struct hf_stage *s, struct hf_copytree *copy, struct hf_delta *d)
{
	AUTO(hf_buf_done) struct hf_buf from = HF_BUF_INIT;
	const char *slot = hf_stage_slot(s, "");
	AUTO_FD dir = -1;
	struct stat st;
	int r;

	add_source(s->unit, d, &from);
	if (from.err || !slot)
		return hf_stage_no_memory(s);
	dir = hf_dirtree_descend(s->unit->sandbox_fd, from.s,
				 (size_t)(hf_dirtree_leaf(from.s) - from.s) - 1);
	r = dir < 0 ? dir : hf_copytree(copy, dir, hf_dirtree_leaf(from.s), d->path, slot);
	if (r == 0)
		r = hf_dirtree_look(s->unit->stage_fd, slot, &st);
	if (r <= 0)
		return copy_failed(s, d, r < 0 ? -r : ENOENT);
	hf_side_take(&d->new, &st);
	free(d->slot);
	d->slot = strdup(slot);
	free(d->attrs);
	d->attrs = NULL;
	d->attrs_len = 0;
	return d->slot ? 0 : hf_stage_no_memory(s);
}

/* A file of a copy that is linked to one outside becomes one of its own (base content, same names). */
static int cut_link(struct hf_stage *s, struct hf_delta *d)
{
	AUTO(hf_copytree_done) struct hf_copytree copy = HF_COPYTREE_INIT;
	AUTO(hf_buf_done) struct hf_buf from = HF_BUF_INIT;
	static const char temp[] = "cut";
	const char *leaf;
	AUTO_FD dir = -1;
	struct stat st;
	int r;

	add_source(s->unit, d, &from);
	if (from.err)
		return hf_stage_no_memory(s);
	leaf = hf_dirtree_leaf(from.s);
	dir = hf_dirtree_descend(s->unit->sandbox_fd, from.s, (size_t)(leaf - from.s) - 1);
	copy.to_root = s->unit->sandbox_fd;
	(void)hf_tree_remove(s->unit->sandbox_fd, temp);
	r = dir < 0 ? dir : hf_copytree(&copy, dir, leaf, "", temp);
	if (r == 0 && hf_sys.renameat2(s->unit->sandbox_fd, temp, dir, leaf, 0) < 0)
		r = -errno;
	if (r == 0)
		r = hf_dirtree_look(dir, leaf, &st);
	if (r <= 0)
		return copy_failed(s, d, r < 0 ? -r : ENOENT);
	hf_side_take(&d->new, &st);
	return 0;
}

/* -- all of a unit ---------------------------------------------------------------------------- */

int hf_stage_bring(struct hf_stage *s)
{
	AUTO(hf_copytree_done) struct hf_copytree copy = HF_COPYTREE_INIT;
	struct hf_deltas *deltas = &s->unit->deltas;
	int r = 0;

	copy.to_root = s->unit->stage_fd;
	copy.prefix = hf_unit_prefix(s->unit);
	copy.ignore = s->ignore;
	for (size_t i = 0; r == 0 && i < deltas->n; i++) {
		struct hf_delta *d = &deltas->list[i];

		if (s->unit->in_target) {
			if (hf_stage_lands(d))
				r = copy_into_stage(s, &copy, d);
		} else {
			AUTO(hf_buf_done) struct hf_buf slot = HF_BUF_INIT;

			if (d->outside_link && !d->same)
				r = cut_link(s, d);
			add_source(s->unit, d, &slot);
			free(d->slot);
			d->slot = slot.err ? NULL : slot.s;
			slot = (struct hf_buf)HF_BUF_INIT;
			if (r == 0 && !d->slot)
				r = hf_stage_no_memory(s);
		}
	}
	return r;
}
