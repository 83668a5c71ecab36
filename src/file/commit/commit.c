/*
 * file/commit/commit.c - the moment at which a file becomes the new one.
 *
 * Order (L9): content, owner, mode and attributes of the temporary file; fsync; a lease on the
 * old file, so that no process opens it for writing; then under the guards of the file's own
 * lock and of the fence, with both tokens proven (L5): is the entry still what was read?
 * exchange the two; is what came out what was read? else bring it back (exchange.c). Then
 * fsync of the directory; if that fails, or a process waits to write into the old file, exchange
 * them back. Last, the old file (now under the temporary name) goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/backup.h"
#include "hf/file/commit/commit.h"
#include "hf/file/content.h"
#include "hf/file/entry.h"
#include "hf/file/commit/exchange.h"
#include "hf/file/commit/lease.h"
#include "hf/file/commit/meta.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

struct guarded {
	struct hf_file *file;
	int (*action)(struct hf_file *file, void *arg);
	void *arg;
	struct hf_err *refusal;
};

static int run_action(void *arg)
{
	struct guarded *g = arg;

	return g->action(g->file, g->arg);
}

/* The lock of the file is of this machine, its fence of another store: proven one inside the other, in this order everywhere. */
static int run_fenced(void *arg)
{
	struct guarded *g = arg;
	const struct hf_lock_claim claim = { g->file->fence_kind, g->file->fence_name, g->file->fence_token };

	return hf_lock_guarded_many(g->file->fence_locks, &claim, 1, run_action, g, g->refusal);
}

int hf_commit_guarded(struct hf_file *file, int (*action)(struct hf_file *file, void *arg), void *arg,
		      struct hf_err *ret_refusal)
{
	struct hf_err refusal = HF_ERR_INIT;
	struct guarded g = { .file = file, .action = action, .arg = arg, .refusal = &refusal };
	struct hf_lock_claim claims[2];
	size_t n = 0;
	int r;

	if (file->token)
		claims[n++] = (struct hf_lock_claim){ HF_LOCK_KIND_FILE, file->name, file->token };
	if (file->fence_name[0] && !file->fence_locks)
		claims[n++] = (struct hf_lock_claim){ file->fence_kind, file->fence_name,
						      file->fence_token };
	r = hf_lock_guarded_many(file->locks, claims, n, file->fence_name[0] && file->fence_locks ? run_fenced : run_action, &g, &refusal);
	if (ret_refusal)
		*ret_refusal = refusal;
	return r;
}

/* -- what happens there ---------------------------------------------------------- */

static int land_over(struct hf_file *file)
{
	if (hf_sys.renameat2(file->dirfd, file->temp, file->dirfd, file->leaf, 0) < 0)
		return -errno;
	file->temp[0] = '\0';
	file->landing = HF_LANDED_OVER;
	return 0;
}

static int land(struct hf_file *file, void *arg)
{
	int r = hf_version_is_current(file);

	(void)arg;
	if (r <= 0)
		return r < 0 ? r : HF_E_CHANGED;
	if (file->version.exists) {
		r = hf_exchange(file);
		return r == -ENOTSUP ? land_over(file) : r;
	}
	r = hf_rename_new(file->dirfd, file->temp, file->dirfd, file->leaf);
	if (r == 0) {
		file->temp[0] = '\0';
		file->landing = HF_LANDED_NEW;
	}
	return r == -EEXIST ? HF_E_CHANGED : r;
}

static int take_back(struct hf_file *file, void *arg)
{
	(void)arg;
	return hf_exchange_undo(file);
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
	struct stat st;
	int r = 0;

	if (file->old_fd >= 0)
		r = hf_meta_carry(file, file->old_fd, file->new_fd, err);
	if (r < 0)
		return r;
	if (hf_sys.fsync(file->new_fd) < 0)
		return FAIL_SYS(err, "fsync", file->path);
	if (hf_sys.fstat(file->new_fd, &st) < 0)
		return FAIL_SYS(err, "fstat", file->path);
	file->made = hf_stamp_of(&st);
	if (file->old_fd >= 0)
		r = hf_lease_take(file, err);
	if (r < 0)
		return r;
	r = hf_version_same_content(file);
	if (r <= 0)
		return explain(file, r < 0 ? r : HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	return 0;
}

/*
 * Was the old file changed after all? A change within the same tick of the clock shows only
 * in the content. A lease that was asked back tells of a process that waits to change it.
 */
static int is_changed_late(const struct hf_file *file)
{
	return file->old_fd >= 0 && (hf_version_same_content(file) == 0 || !hf_lease_holds(file));
}

/* The rename has happened; is it on disk? */
static int finish(struct hf_file *file, int backup, struct hf_err *err)
{
	int r = hf_entry_check_path(file, err);

	/* Otherwise the path never led to the new content. */
	if (r < 0 && (hf_commit_guarded(file, take_back, NULL, NULL) == 0 || r == HF_E_MOVED))
		return r;
	if (is_changed_late(file) && hf_commit_guarded(file, take_back, NULL, NULL) == 0)
		return explain(file, HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	r = hf_sync_dir(file->dirfd);
	if (r < 0 && hf_commit_guarded(file, take_back, NULL, NULL) == 0)
		return hf_fail_sys(err, -r, "fsync of the directory", file->path);
	/* A process that had found the old file before the exchange has opened it by now. */
	if (!hf_lease_holds(file) && hf_commit_guarded(file, take_back, NULL, NULL) == 0)
		return explain(file, HF_E_CHANGED, &(struct hf_err)HF_ERR_INIT, err);
	/* If this fails, the next process that reads the file finishes it. */
	if (backup)
		(void)hf_backup_rotate(file, NULL);
	if (r < 0)
		return FAIL(err, r, "fsync of the directory", file->path,
			    "the new content is in place, but may not survive a power cut");
	return 1;
}

static int commit(struct hf_file *file, struct hf_err *err)
{
	int backup = file->backups > 0 && file->old_fd >= 0;
	struct hf_err refusal = HF_ERR_INIT;
	int r;

	r = prepare(file, err);
	if (r == 0 && backup)
		r = keep_old(file, err);
	if (r < 0)
		return r;
	r = hf_commit_guarded(file, land, NULL, &refusal);
	if (r < 0)
		r = explain(file, r, &refusal, err);
	else
		r = finish(file, backup, err);
	if (backup && file->landing == HF_NOT_LANDED)
		hf_backup_forget(file);
	return r;
}

int hf_commit(struct hf_file *file, struct hf_err *err)
{
	int r;

	file->landing = HF_NOT_LANDED;
	r = hf_entry_check_path(file, err);
	if (r < 0)
		return r;
	if (file->old_fd >= 0) {
		r = hf_content_equal(file->old_fd, file->new_fd);
		if (r != 0)
			return r < 0 ? hf_fail_sys(err, -r, "compare", file->path) : 0;
	}
	r = commit(file, err);
	hf_exchange_settle(file);
	hf_lease_drop(file);
	return r;
}
