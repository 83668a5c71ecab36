/*
 * plan/commit/conflict.c - what else forbids a commit, what is overruled, and the list that is shown.
 *
 * A lease (F_SETLEASE) is granted for reading only when no process has the file open or mapped
 * for writing; it is given back at once. On a file of the target this finds stores through
 * mappings, which need not change a ctime; on one of the sandbox a process that still writes
 * to what would become the target's file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/stage/stage.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* -- leases -------------------------------------------------------------------------------- */

int hf_is_written(int dirfd, const char *name)
{
	AUTO_FD fd = hf_open_noatime(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return 0;
	if (hf_sys.set_lease(fd, F_RDLCK) == 0) {
		(void)hf_sys.set_lease(fd, F_UNLCK);
		return 0;
	}
	return errno == EAGAIN;
}

/* The same for every file below a directory. */
static int is_written_below(int dirfd, const char *name, const struct stat *st)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	AUTO_FD fd = -1;
	int r = 0;

	if (S_ISREG(st->st_mode))
		return hf_is_written(dirfd, name);
	if (!S_ISDIR(st->st_mode))
		return 0;
	fd = hf_dirtree_open(dirfd, name);
	if (fd < 0 || hf_listing_read(fd, &listing) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		struct stat below = { .st_mode = DTTOIF(listing.entries[i].type) };

		r = is_written_below(fd, listing.entries[i].name, &below);
	}
	return r;
}

/* Looks at one side of a delta. `top` is the directory that its path is in there; NULL: the root. */
static int side_is_written(int rootfd, const char *top, const char *path, uint32_t mode,
			   struct hf_place *place)
{
	AUTO(hf_buf_done) struct hf_buf full = HF_BUF_INIT;
	struct stat st = { .st_mode = mode };
	const char *leaf;
	size_t len;

	if (top)
		hf_buf_add_format(&full, "%s/", top);
	hf_buf_add_text(&full, path);
	if (full.err)
		return full.err;
	leaf = hf_dirtree_leaf(full.s);
	len = (size_t)(leaf - full.s);
	len -= len > 0;
	if (place->fd < 0 || strlen(place->path) != len || memcmp(place->path, full.s, len) != 0) {
		hf_auto_close(&place->fd);
		free(place->path);
		place->path = strndup(full.s, len);
		place->fd = place->path ? hf_dirtree_descend(rootfd, full.s, len) : -1;
		if (place->fd < 0)
			return place->path ? 0 : -ENOMEM;
	}
	return is_written_below(place->fd, leaf, &st);
}

static int leases_of_unit(const struct hf_unit *unit)
{
	struct hf_place theirs = { -1, NULL }, ours = { -1, NULL };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < unit->deltas.n; i++) {
		struct hf_delta *d = &unit->deltas.list[i];

		if (d->inner || d->same || d->verdict || !d->op || d->op == HF_OP_META)
			continue;
		r = d->old.mode ? side_is_written(unit->target_fd, NULL, d->path, d->old.mode, &theirs) : 0;
		/*
		 * Below the new directory of an overlay nothing is opened: no process is in the sandbox
		 * any more. Which processes work in a copy is not known, so there every file is tried.
		 */
		if (r == 0 && (S_ISREG(d->new.mode) || unit->sandbox->strategy != HF_STRATEGY_OVERLAY))
			r = side_is_written(unit->sandbox_fd, hf_unit_top(unit), d->path, d->new.mode, &ours);
		if (r > 0)
			d->verdict = HF_VERDICT_OPEN_FOR_WRITING;
	}
	hf_auto_close(&theirs.fd);
	hf_auto_close(&ours.fd);
	free(theirs.path);
	free(ours.path);
	return r < 0 ? r : 0;
}

/* -- git ------------------------------------------------------------------------------------- */

/* Another process works in a git directory of which the commit would change entries. */
static void look_for_git(const struct hf_unit *unit)
{
	for (size_t i = 0; i < unit->deltas.n; i++) {
		struct hf_delta *d = &unit->deltas.list[i];
		size_t len = d->op && !d->same && !d->inner && !d->verdict ? hf_git_dir_of(d->path) : 0;
		AUTO_FD dir = -1;
		struct stat st;

		if (len == 0)
			continue;
		if (strcmp(d->path + len, "/index.lock") == 0) {
			d->verdict = HF_VERDICT_GIT_BUSY; /* git was killed in the sandbox */
			continue;
		}
		dir = hf_dirtree_descend(unit->target_fd, d->path, len);
		if (dir >= 0 && hf_dirtree_look(dir, "index.lock", &st) > 0)
			d->verdict = HF_VERDICT_GIT_BUSY;
	}
}

int hf_conflict_leases(struct hf_work *work, struct hf_err *err)
{
	for (size_t i = 0; i < work->n_units; i++) {
		int r = leases_of_unit(&work->units[i]);

		if (r < 0)
			return hf_fail_sys(err, -r, "lease", work->units[i].sandbox->name);
		look_for_git(&work->units[i]);
	}
	return 0;
}

/* -- what the caller demands ------------------------------------------------------------------ */

/* `path` relative to the unit's target, or NULL: it is not in it. Absolute ones are cut. */
static const char *in_unit(const struct hf_unit *unit, const char *path)
{
	size_t len = strlen(unit->sandbox->target.path);

	if (path[0] != '/')
		return strncmp(path, "./", 2) == 0 ? path + 2 : path;
	if (strncmp(path, unit->sandbox->target.path, len) != 0 ||
	    (path[len] != '/' && path[len] != '\0'))
		return NULL;
	path += len;
	while (*path == '/')
		path++;
	return path;
}

static int add_demand(struct hf_unit *unit, const char *path, enum hf_verdict verdict)
{
	struct hf_delta *d = hf_deltas_add(&unit->deltas, path);

	if (!d)
		return -ENOMEM;
	d->verdict = verdict;
	d->inner = 1;
	return 0;
}

/* Is every directory down to the entry the one of T0? The stat of the last in *ret. */
static int known_way(const struct hf_unit *unit, const char *path, int *ret_fd, struct stat *ret)
{
	AUTO_FD fd = hf_dirtree_open(unit->target_fd, "");
	const char *at = path;

	if (fd < 0 || hf_sys.fstat(fd, ret) < 0)
		return 0;
	for (const char *slash = strchr(at, '/'); slash; slash = strchr(slash + 1, '/')) {
		char dir[PATH_MAX], name[NAME_MAX + 1];
		struct stat st;
		int child;

		if ((size_t)(slash - path) >= sizeof(dir) || (size_t)(slash - at) > NAME_MAX)
			return 0;
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - at), at);
		child = hf_dirtree_open(fd, name);
		if (child < 0)
			return 0;
		hf_auto_close(&fd);
		fd = child;
		if (hf_sys.fstat(fd, &st) < 0 || !hf_base_same_dir(&unit->base, dir, &st, ret))
			return 0;
		*ret = st;
		at = slash + 1;
	}
	*ret_fd = fd_take(&fd);
	return 1;
}

int hf_unit_unchanged(const struct hf_unit *unit, const char *path)
{
	AUTO(hf_buf_done) struct hf_buf where = HF_BUF_INIT;
	const char *leaf = hf_dirtree_leaf(path);
	size_t len = (size_t)(leaf - path);
	AUTO_FREE char *up = strndup(path, len - (len > 0));
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	struct stat parent, st;
	int r;

	if (!up)
		return -ENOMEM;
	if (!hf_dirtree_path_ok(path, strlen(path)) || !known_way(unit, path, &dir, &parent))
		return 0;
	r = hf_dirtree_look(dir, leaf, &st);
	if (r <= 0)
		return r == 0 && hf_base_had(&unit->base, up, &parent, leaf, 0) == 0;
	if (!hf_base_same(&unit->base, path, &st))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return !hf_is_written(dir, leaf);
	fd = hf_dirtree_open(dir, leaf);
	return fd >= 0 && hf_base_same_below(&unit->base, fd, path, &where) == 1;
}

/* One path that must be as it was: a file, a directory with all in it, or nothing. */
static int depends_on(struct hf_unit *unit, const char *path)
{
	int r = hf_unit_unchanged(unit, path);

	return r == 0 ? add_demand(unit, path, HF_VERDICT_DEPENDS) : r < 0 ? r : 0;
}

/* Everything in a target, but for what Holdfast itself puts there. */
static int strict(struct hf_unit *unit)
{
	AUTO(hf_buf_done) struct hf_buf where = HF_BUF_INIT;
	AUTO_FD fd = hf_dirtree_open(unit->target_fd, "");
	struct stat st;
	int r;

	if (fd < 0 || hf_sys.fstat(fd, &st) < 0)
		return -EIO;
	if (!hf_base_same(&unit->base, "", &st))
		return add_demand(unit, ".", HF_VERDICT_STRICT);
	r = hf_base_same_below(&unit->base, fd, "", &where);
	return r < 0 ? r : r ? 0 : add_demand(unit, where.s, HF_VERDICT_STRICT);
}

int hf_conflict_depends(struct hf_work *work, const char *const *depends, int is_strict,
			struct hf_err *err)
{
	for (size_t i = 0; i < work->n_units; i++) {
		int r = is_strict ? strict(&work->units[i]) : 0;

		for (const char *const *path = depends; r == 0 && path && *path; path++) {
			const char *below = in_unit(&work->units[i], *path);

			if (below && below[0])
				r = depends_on(&work->units[i], below);
		}
		if (r < 0)
			return hf_fail_sys(err, -r, "check", work->units[i].sandbox->target.path);
	}
	return 0;
}

static int force_one(struct hf_work *work, const char *path)
{
	int found = 0;

	for (size_t i = 0; i < work->n_units; i++) {
		const char *below = in_unit(&work->units[i], path);

		for (size_t k = 0; below && k < work->units[i].deltas.n; k++) {
			struct hf_delta *d = &work->units[i].deltas.list[k];

			if (strcmp(d->path, below) != 0)
				continue;
			found = 1;
			if (!d->verdict || d->verdict == HF_VERDICT_GIT_BUSY)
				continue;
			d->verdict = HF_VERDICT_NONE;
			d->forced = 1;
		}
	}
	return found;
}

int hf_conflict_force(struct hf_work *work, const char *const *force, struct hf_err *err)
{
	for (; force && *force; force++)
		if (!force_one(work, *force))
			return FAIL(err, HF_E_SYNTAX, "force", *force,
				    "the plan does not change that path, so it has no conflict");
	return 0;
}
