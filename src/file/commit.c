/*
 * file/commit.c - the moment at which a file becomes the new one.
 *
 * Order (L9): content, owner, mode and attributes of the temporary file; fsync; then under
 * the guards of the file's own lock and of the fence, with both tokens proven (L5): is the
 * entry still what was read? exchange the two; is what came out what was read? else exchange
 * them back. Then fsync of the directory; if that fails, exchange them back. Last, the old
 * file (now under the temporary name) goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* An action under up to two guards, taken in the order of their names: no circle. */
struct guarded {
	struct hf_file *file;
	int (*action)(struct hf_file *file);
	const char *names[2];
	uint64_t tokens[2];
	int n;
	struct hf_err err; /* of a refused token */
};

static int run_next(void *arg)
{
	struct guarded *g = arg;
	int i = --g->n;

	if (i < 0)
		return g->action(g->file);
	return hf_lock_guarded(g->file->locks, g->names[i], g->tokens[i], run_next, g, &g->err);
}

static void add_guard(struct guarded *g, const char *name, uint64_t token)
{
	int place = g->n;

	if (g->n == 1 && strcmp(name, g->names[0]) == 0) {
		/* The fence is this file's own lock: its token decides. */
		g->tokens[0] = token;
		return;
	}
	/* run_next takes the last first. */
	if (g->n == 1 && strcmp(name, g->names[0]) > 0) {
		g->names[1] = g->names[0];
		g->tokens[1] = g->tokens[0];
		place = 0;
	}
	g->names[place] = name;
	g->tokens[place] = token;
	g->n++;
}

static int run_guarded(struct hf_file *file, int (*action)(struct hf_file *file),
		       struct hf_err *ret_refusal)
{
	struct guarded g = { .file = file, .action = action, .err = HF_ERR_INIT };
	int r;

	if (file->token)
		add_guard(&g, file->name, file->token);
	if (file->fence_name[0])
		add_guard(&g, file->fence_name, file->fence_token);
	r = run_next(&g);
	*ret_refusal = g.err;
	return r;
}

/* -- what happens there ---------------------------------------------------------- */

static int exchange(const struct hf_file *file)
{
	return hf_sys.renameat2(file->dirfd, file->temp, file->dirfd, file->leaf,
				RENAME_EXCHANGE) == 0
		       ? 0
		       : -errno;
}

/* After the exchange: is what has the temporary name the file that was read? */
static int took_out_the_old(const struct hf_file *file)
{
	const struct hf_version *version = &file->version;
	struct stat st;

	if (hf_sys.fstatat(file->dirfd, file->temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_ino == version->ino && st.st_dev == version->dev &&
	       st.st_size == version->size && st.st_mtim.tv_sec == version->mtime.tv_sec &&
	       st.st_mtim.tv_nsec == version->mtime.tv_nsec;
}

/* Somebody's version came out: it goes back, whatever happens; it is never removed. */
static int put_back(struct hf_file *file)
{
	char rescue[NAME_MAX + 1];
	int r = exchange(file);

	if (r == 0)
		return HF_E_CHANGED;
	r = hf_rename_new(file->dirfd, file->temp, file->dirfd, file->leaf);
	if (r < 0) {
		(void)snprintf(rescue, sizeof(rescue), "%.*s.~c~", HF_LEAF_MAX, file->leaf);
		(void)hf_rename_new(file->dirfd, file->temp, file->dirfd, rescue);
	}
	file->temp[0] = '\0';
	return HF_E_CHANGED;
}

static int replace(struct hf_file *file)
{
	int r = exchange(file);

	if (r == 0) {
		file->landing = HF_LANDED_EXCHANGED;
		if (took_out_the_old(file))
			return 0;
		file->landing = HF_NOT_LANDED;
		return put_back(file);
	}
	if (r == -ENOENT)
		return HF_E_CHANGED;
	if (r != -EINVAL && r != -ENOSYS && r != -EOPNOTSUPP)
		return r;
	if (hf_sys.renameat2(file->dirfd, file->temp, file->dirfd, file->leaf, 0) < 0)
		return -errno;
	file->temp[0] = '\0';
	file->landing = HF_LANDED_OVER;
	return 0;
}

static int land(struct hf_file *file)
{
	int r = hf_version_is_current(file);

	if (r <= 0)
		return r < 0 ? r : HF_E_CHANGED;
	if (file->version.exists)
		return replace(file);
	r = hf_rename_new(file->dirfd, file->temp, file->dirfd, file->leaf);
	if (r == 0) {
		file->temp[0] = '\0';
		file->landing = HF_LANDED_NEW;
	}
	return r == -EEXIST ? HF_E_CHANGED : r;
}

/* Only what is still ours is taken back. */
static int take_back(struct hf_file *file)
{
	struct stat ours, st;
	int r = -ENOSYS;

	if (hf_stat_at(file->new_fd, "", &ours) < 0 ||
	    hf_stat_at(file->dirfd, file->leaf, &st) < 0 || st.st_ino != ours.st_ino ||
	    st.st_dev != ours.st_dev)
		return -ESTALE;
	if (file->landing == HF_LANDED_EXCHANGED)
		r = exchange(file);
	else if (file->landing == HF_LANDED_NEW)
		r = hf_sys.unlinkat(file->dirfd, file->leaf, 0) < 0 ? -errno : 0;
	if (r == 0)
		file->landing = HF_NOT_LANDED;
	return r;
}

/* -- around it ------------------------------------------------------------------- */

static int explain(const struct hf_file *file, int r, const struct hf_err *refusal,
		   struct hf_err *err)
{
	if (r == HF_E_CHANGED)
		return FAIL(err, r, "rename", file->path,
			    file->version.exists ? "it is no longer the file that was read"
						 : "it appeared while its content was made");
	if (refusal->code == r) {
		if (err)
			*err = *refusal;
		return r;
	}
	return hf_fail_sys(err, -r, "rename", file->path);
}

/* The second name that a backup needs is a change of the file's ctime: ours. */
static int keep_old(struct hf_file *file, struct hf_err *err)
{
	struct stat st;
	int r = hf_version_is_current(file);

	if (r <= 0)
		return explain(file, r < 0 ? r : HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	r = hf_backup_keep(file, err);
	if (r < 0)
		return r;
	if (hf_sys.fstat(file->old_fd, &st) < 0) {
		r = FAIL_SYS(err, "fstat", file->path);
		hf_backup_forget(file);
		return r;
	}
	file->version.ctime = st.st_ctim;
	return 0;
}

static int prepare(struct hf_file *file, struct hf_err *err)
{
	int r = 0;

	if (file->old_fd >= 0)
		r = hf_meta_carry(file, file->old_fd, file->new_fd, err);
	if (r < 0)
		return r;
	if (hf_sys.fsync(file->new_fd) < 0)
		return FAIL_SYS(err, "fsync", file->path);
	r = hf_version_same_content(file);
	if (r <= 0)
		return explain(file, r < 0 ? r : HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	return 0;
}

/* The rename has happened; is it on disk? */
static int finish(struct hf_file *file, int backup, struct hf_err *err)
{
	struct hf_err ignored;
	int r;

	/* A change within the same tick of the clock, after all looks: only the content tells. */
	if (file->old_fd >= 0 && hf_version_same_content(file) == 0 &&
	    run_guarded(file, take_back, &ignored) == 0)
		return explain(file, HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	r = hf_sync_dir(file->dirfd);
	if (r < 0 && run_guarded(file, take_back, &ignored) == 0)
		return hf_fail_sys(err, -r, "fsync of the directory", file->path);
	/* Should this fail, the next one who reads the file finishes it. */
	if (backup)
		(void)hf_backup_rotate(file, NULL);
	if (r < 0)
		return FAIL(err, r, "fsync of the directory", file->path,
			    "the new content is in place, but may not survive a power cut");
	return 1;
}

int hf_commit(struct hf_file *file, struct hf_err *err)
{
	int backup = file->backups > 0 && file->old_fd >= 0;
	struct hf_err refusal = HF_ERR_INIT;
	int r;

	file->landing = HF_NOT_LANDED;
	if (file->old_fd >= 0) {
		r = hf_content_equal(file->old_fd, file->new_fd);
		if (r != 0)
			return r < 0 ? hf_fail_sys(err, -r, "compare", file->path) : 0;
	}
	r = prepare(file, err);
	if (r == 0 && backup)
		r = keep_old(file, err);
	if (r < 0)
		return r;
	r = run_guarded(file, land, &refusal);
	if (r < 0)
		r = explain(file, r, &refusal, err);
	else
		r = finish(file, backup, err);
	if (backup && file->landing == HF_NOT_LANDED)
		hf_backup_forget(file);
	return r;
}
