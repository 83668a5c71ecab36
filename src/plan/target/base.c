/* plan/target/base.c - comparing entries of a target with what they were at T0. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/plan/target/base.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"

/* File systems stamp with a clock that ticks 100 to 1,000 times a second. */
#define TICK_NS (10 * HF_MSEC)

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

int64_t hf_base_threshold(const struct hf_t0 *t0, const struct hf_t0 *now)
{
	int64_t offset0 = t0->real_ns - t0->boot_ns, offset = now->real_ns - now->boot_ns;

	if (now->real_ns < t0->real_ns)
		return INT64_MIN;
	/* Another boot: its boot time says nothing of ours. */
	if (strcmp(t0->boot_id, now->boot_id) != 0)
		return now->real_ns == t0->real_ns ? INT64_MIN : t0->real_ns;
	/* T0 was taken from the coarse clock, which is behind the fine one: less means set back. */
	if (offset >= offset0)
		return t0->real_ns;
	return t0->boot_ns + offset - TICK_NS;
}

int hf_stamped_before(const struct stat *st, int64_t threshold_ns)
{
	/* File systems with times in whole seconds (small inodes of ext4, ext3) cut the stamp. */
	if (st->st_ctim.tv_nsec == 0 && threshold_ns > 0)
		threshold_ns -= threshold_ns % HF_SEC;
	return in_ns(st->st_ctim) < threshold_ns;
}

/* Older than the sandbox, or put back by an attempt of ours and not changed since. */
static int is_old(const struct hf_base *base, const char *path, const struct stat *st)
{
	return hf_stamped_before(st, base->threshold_ns) || hf_restored_is(base->restored, path, st);
}

static int same_as_row(const struct hf_manifest_row *row, const struct stat *st)
{
	return row->ino == (uint64_t)st->st_ino && row->mode == st->st_mode &&
	       row->uid == st->st_uid && row->gid == st->st_gid &&
	       row->ctime_ns == in_ns(st->st_ctim) && row->mtime_ns == in_ns(st->st_mtim) &&
	       (S_ISDIR(st->st_mode) || row->size == (uint64_t)st->st_size);
}

int hf_base_same(const struct hf_base *base, const char *path, const struct stat *st)
{
	if (base->manifest) {
		const struct hf_manifest_entry *e = hf_manifest_find(base->manifest, path);

		return e && (same_as_row(&e->row, st) || hf_restored_is(base->restored, path, st));
	}
	return is_old(base, path, st);
}

/* The same for the directory that `path` is in. */
static int parent_is_old(const struct hf_base *base, const char *path, const struct stat *parent)
{
	AUTO_FREE char *dir = NULL;
	const char *slash = strrchr(path, '/');

	if (hf_stamped_before(parent, base->threshold_ns))
		return 1;
	dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	return dir && hf_restored_is(base->restored, dir, parent);
}

/* What the census knows of that directory, or NULL. */
static const struct hf_census_dir *known_dir(const struct hf_base *base, const char *path)
{
	const struct hf_census *census = hf_census_ask(base->census);

	return census ? hf_census_find(census, path, strlen(path)) : NULL;
}

int hf_base_same_dir(const struct hf_base *base, const char *path, const struct stat *st,
		     const struct stat *parent)
{
	const struct hf_census_dir *dir;

	if (base->manifest) {
		const struct hf_manifest_entry *e = hf_manifest_find(base->manifest, path);

		return e && S_ISDIR(e->row.mode) && e->row.ino == (uint64_t)st->st_ino;
	}
	/* A rename into this place would have set its ctime, and that of its new parent. */
	if (is_old(base, path, st) || parent_is_old(base, path, parent))
		return 1;
	dir = known_dir(base, path);
	return dir && dir->ino == (uint64_t)st->st_ino;
}

int hf_base_had(const struct hf_base *base, const char *dir, const struct stat *st, const char *name,
		int now)
{
	const struct hf_census_dir *known;

	if (base->manifest) {
		AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;

		hf_buf_add_text(&path, dir);
		if (path.len)
			hf_buf_add_char(&path, '/');
		hf_buf_add_text(&path, name);
		return path.err ? -1 : hf_manifest_find(base->manifest, path.s) != NULL;
	}
	if (is_old(base, dir, st))
		return now;
	known = known_dir(base, dir);
	return known ? hf_census_entry(base->census->census, known, name) != NULL : -1;
}

mode_t hf_base_dir_mode(const struct hf_base *base, const char *path, const struct stat *st)
{
	const struct hf_census_dir *dir;

	if (base->manifest) {
		const struct hf_manifest_entry *e = hf_manifest_find(base->manifest, path);

		return e ? e->row.mode : 0;
	}
	if (is_old(base, path, st))
		return st->st_mode;
	dir = known_dir(base, path);
	return dir ? dir->mode : 0;
}

static int below(const struct hf_base *base, int fd, struct hf_buf *path)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	size_t len = path->len;
	int r = hf_listing_read(fd, &listing);

	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		const char *name = listing.entries[i].name;
		struct stat st;

		path->len = len;
		if (len)
			hf_buf_add_char(path, '/');
		hf_buf_add_text(path, name);
		if (path->err)
			return path->err;
		r = hf_dirtree_look(fd, name, &st);
		if (r < 0)
			return r;
		if (r == 0)
			continue; /* gone meanwhile: nothing to lose */
		if (!hf_base_same(base, path->s, &st))
			return 1;
		r = 0;
		if (S_ISDIR(st.st_mode)) {
			AUTO_FD child = hf_dirtree_open(fd, name);

			r = child < 0 ? child : below(base, child, path);
		}
	}
	return r;
}

int hf_base_same_below(const struct hf_base *base, int fd, const char *path, struct hf_buf *ret_where)
{
	int r;

	hf_buf_reset(ret_where);
	hf_buf_add_text(ret_where, path);
	r = ret_where->err ? ret_where->err : below(base, fd, ret_where);
	return r < 0 ? r : r == 0;
}
