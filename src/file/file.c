/* file/file.c - the public functions: arguments, the order of things, and one event for each refusal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/backup.h"
#include "hf/file/block/block.h"
#include "hf/file/commit/commit.h"
#include "hf/file/content.h"
#include "hf/file/entry.h"
#include "hf/file/commit/exchange.h"
#include "hf/file/sidecar.h"
#include "hf/file/commit/temp.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

#define ALL_FLAGS                                                                      \
	(HF_FILE_CREATE | HF_FILE_REPLACE_SYMLINK | HF_FILE_FOLLOW | HF_FILE_BREAK_LINKS | \
	 HF_FILE_FREE_ON_EXIT | HF_FILE_SIDECAR)

/* A refusal for safety leaves one event (L8); that of a token has left its own. */
static int refused(struct hf_journal *journal, const char *path, int r, const struct hf_err *why,
		   struct hf_err *err)
{
	const struct hf_err_info *info = hf_err_info(r);
	struct hf_field fields[] = { HF_FIELD_TEXT("path", path),
				     HF_FIELD_TEXT("reason", why->detail[0] ? why->detail :
						   info		       ? info->text :
									 "") };

	if (err)
		*err = *why;
	if (journal && info && info->exit_status == 3 && r != HF_E_STALE)
		(void)hf_journal_append(journal, HF_EV_FILE_REFUSED, NULL, fields, 2, 0, NULL);
	return r;
}

static void free_handle(struct hf_file *file)
{
	if (!file)
		return;
	hf_auto_close(&file->dirfd);
	hf_auto_close(&file->basefd);
	/* In a child the number of a flocked descriptor means nothing, and is only closed. */
	hf_noinherit_close(&file->sidecar);
	hf_auto_close(&file->old_fd);
	hf_noinherit_close(&file->new_fd);
	hf_noinherit_close(&file->lease_fd);
	hf_lock_free(file->lock);
	free(file->path);
	free(file->given);
	free(file->root);
	free(file);
}

static void auto_free_handle(struct hf_file **file)
{
	free_handle(*file);
}

static int check_opts(const char *path, const struct hf_file_opts *opts, struct hf_err *err)
{
	if (opts->size < sizeof(*opts) || opts->flags & ~(unsigned)ALL_FLAGS ||
	    opts->writer_wait_ns < 0)
		return FAIL(err, -EINVAL, "arguments", path, "size is not set, an unknown flag, or a negative time");
	if (opts->cancel_fd < 0)
		return FAIL(err, -EINVAL, "arguments", path, "cancel_fd is not a descriptor");
	if (opts->backups > HF_FILE_BACKUPS_MAX)
		return FAIL(err, -EINVAL, "arguments", path, "at most %d backups",
			    HF_FILE_BACKUPS_MAX);
	if (opts->flags & HF_FILE_FOLLOW && opts->flags & HF_FILE_REPLACE_SYMLINK)
		return FAIL(err, -EINVAL, "arguments", path, "a symlink is either followed or replaced");
	if (opts->mode & ~07777U || (opts->mode && !(opts->flags & HF_FILE_CREATE)))
		return FAIL(err, -EINVAL, "arguments", path, "a mode is only for new files, and at most 07777");
	if (opts->fence_name && (opts->fence_token == 0 || strlen(opts->fence_name) > HF_NAME_MAX ||
				 !hf_lock_kind_word(opts->fence_kind)))
		return FAIL(err, -EINVAL, "arguments", path,
			    "a fence needs a lock's kind, its name and a token");
	return 0;
}

static int open_handle(struct hf_locks *locks, const char *path, const struct hf_file_opts *opts,
		       struct hf_file **ret_file, struct hf_err *err)
{
	AUTO(auto_free_handle) struct hf_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	file->dirfd = file->basefd = file->sidecar = file->old_fd = file->new_fd = file->lease_fd = -1;
	file->locks = hf_locks_kind(locks, HF_LOCK_KIND_FILE);
	file->journal = opts->journal;
	file->process = getpid();
	file->flags = opts->flags;
	file->backups = opts->backups;
	file->new_mode = (mode_t)opts->mode;
	file->wait = (struct hf_lock_opts){ .size = sizeof(file->wait),
					    .cancel_fd = opts->cancel_fd,
					    .go_on = opts->go_on,
					    .go_on_arg = opts->go_on_arg };
	file->writer_wait_ns = opts->writer_wait_ns ? opts->writer_wait_ns : HF_FILE_WRITER_WAIT_NS;
	file->writer_left_ns = file->writer_wait_ns;
	if (opts->fence_name) {
		hf_copy_text(file->fence_name, sizeof(file->fence_name), opts->fence_name);
		file->fence_kind = opts->fence_kind;
		file->fence_token = opts->fence_token;
		file->fence_locks = opts->fence_locks;
		r = hf_lock_check_token(hf_locks_kind(opts->fence_locks ? opts->fence_locks : locks, opts->fence_kind), opts->fence_name,
					opts->fence_token, err);
		if (r < 0)
			return r;
	}
	if (opts->held_name && strlen(opts->held_name) <= HF_NAME_MAX) {
		hf_copy_text(file->held_name, sizeof(file->held_name), opts->held_name);
		file->held_token = opts->held_token;
	}
	r = hf_entry_resolve(file, path, opts->root, err);
	if (r < 0)
		return r;
	*ret_file = ptr_take(&file);
	return 0;
}

int hf_file_open(struct hf_locks *locks, const char *path, const struct hf_file_opts *opts,
		 struct hf_file **ret_file, struct hf_err *err)
{
	struct hf_file_opts use = { .size = sizeof(use) };
	struct hf_err why = HF_ERR_INIT;
	int r;

	if (!locks || !path || !path[0] || !ret_file)
		return FAIL(err, -EINVAL, "arguments", "file", "no path given");
	if (opts)
		use = *opts;
	r = check_opts(path, &use, &why);
	if (r == 0)
		r = open_handle(locks, path, &use, ret_file, &why);
	return r < 0 ? refused(use.journal, path, r, &why, err) : 0;
}

const char *hf_file_lock_name(const struct hf_file *file)
{
	return file->name;
}

uint64_t hf_file_token(const struct hf_file *file)
{
	return file->token;
}

int hf_file_lock_fd(const struct hf_file *file)
{
	return file->sidecar;
}

int hf_file_made_sidecar(const struct hf_file *file)
{
	return file->made_sidecar;
}

/* What every call on a handle checks first. */
static int check_call(const struct hf_file *file, struct hf_err *err)
{
	if (!file)
		return FAIL(err, -EINVAL, "arguments", "file", "NULL");
	if (file->process != getpid())
		return FAIL(err, HF_E_FORKED, "file", file->path, "open it again in this process");
	return 0;
}

/* 1 when the caller works under this very lock already (inside "file with"). */
static int is_held_already(struct hf_file *file)
{
	return file->held_token != 0 && strcmp(file->held_name, file->name) == 0 &&
	       hf_lock_check_token(file->locks, file->name, file->held_token, NULL) == 0;
}

/*
 * Inside "file with" the file's own lock is held around all of its commands. Edits there take
 * turns by a lock of their own. A "file with" inside it takes none: its own edits need that.
 */
static int lock_inside(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		       struct hf_err *err)
{
	struct hf_lock_opts opts = file->wait;
	char name[HF_NAME_MAX + 1];
	int r = 0;

	opts.wait_ns = wait_ns;
	hf_entry_inner_name(file, name);
	if (!(file->flags & HF_FILE_FREE_ON_EXIT))
		r = hf_lock_acquire(file->locks, name, &opts, &file->lock, ret_blocker, err);
	if (r == 0)
		file->token = file->held_token;
	return r;
}

int hf_file_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		 struct hf_err *err)
{
	struct hf_lock_opts opts;
	struct hf_mono deadline = hf_mono_in(wait_ns < 0 ? INT64_MAX : wait_ns);
	struct hf_err why = HF_ERR_INIT;
	int r = check_call(file, err);

	if (r < 0)
		return r;
	if (file->token)
		return FAIL(err, -EINVAL, "lock", file->path, "it is already locked");
	if (is_held_already(file))
		return lock_inside(file, wait_ns, ret_blocker, err);
	opts = file->wait;
	opts.wait_ns = wait_ns;
	if (file->flags & HF_FILE_FREE_ON_EXIT)
		opts.flags = HF_LOCK_FREE_ON_EXIT;
	r = hf_lock_acquire(file->locks, file->name, &opts, &file->lock, ret_blocker, err);
	if (r < 0)
		return r;
	if (wait_ns > 0)
		wait_ns = hf_mono_left(deadline);
	r = hf_sidecar_lock(file, wait_ns, ret_blocker, &why);
	if (r < 0) {
		(void)hf_lock_release(file->lock, NULL);
		hf_lock_free(ptr_take(&file->lock));
		return refused(file->journal, file->path, r, &why, err);
	}
	file->token = hf_lock_token(file->lock);
	return 0;
}

/* Opens the regular file that was looked at. Fills *st anew from the descriptor. */
static int open_old(struct hf_file *file, struct stat *st, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(file->dirfd, file->leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd == -ENOENT || fd == -ELOOP || fd == -ENXIO)
		return FAIL(err, HF_E_CHANGED, "openat", file->path, "it was replaced just now");
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", file->path);
	if (hf_sys.fstat(fd, st) < 0)
		return FAIL_SYS(err, "fstat", file->path);
	if (!S_ISREG(st->st_mode))
		return FAIL(err, HF_E_CHANGED, "openat", file->path, "it was replaced just now");
	if (st->st_nlink > 1 && !(file->flags & HF_FILE_BREAK_LINKS))
		return FAIL(err, HF_E_KIND, "fstat", file->path,
			    "it has %lu names (hard links), and only this one would get the new "
			    "content; --break-links does that",
			    (unsigned long)st->st_nlink);
	/* Others may read from it: they expect a descriptor like any other. */
	if (fcntl(fd, F_SETFL, 0) < 0)
		return FAIL_SYS(err, "fcntl", file->path);
	file->old_fd = fd_take(&fd);
	return 0;
}

static int read_version(struct hf_file *file, struct hf_err *err)
{
	struct stat st = { 0 };
	int r, kind;

	file->was_read = 0;
	hf_auto_close(&file->old_fd);
	/* Only under the lock is no other process in the middle of a commit. */
	if (file->token) {
		hf_exchange_recover(file);
		hf_backup_recover(file);
	}
	kind = hf_entry_look(file, &st, err);
	if (kind < 0)
		return kind;
	if (kind == 1) {
		r = open_old(file, &st, err);
		if (r < 0)
			return r;
	}
	r = hf_version_take(&st, file->old_fd, kind, &file->version);
	if (r < 0)
		return hf_fail_sys(err, -r, "read", file->path);
	file->was_read = 1;
	return 0;
}

int hf_file_read(struct hf_file *file, int *ret_fd, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	int r = check_call(file, err);

	if (r < 0)
		return r;
	r = read_version(file, &why);
	if (r < 0)
		return refused(file->journal, file->path, r, &why, err);
	*ret_fd = file->old_fd;
	return 0;
}

int hf_file_write(struct hf_file *file, int *ret_fd, struct hf_err *err)
{
	int r = check_call(file, err);

	if (r < 0)
		return r;
	if (!file->was_read)
		return FAIL(err, -EINVAL, "write", file->path, "it was not read before");
	hf_exchange_settle(file);
	/* A new file gets what the umask and the directory's default ACL say. */
	r = hf_temp_make(file, file->old_fd >= 0 || file->new_mode ? 0600 : 0666, err);
	if (r == 0 && file->old_fd < 0 && file->new_mode && hf_sys.fchmod(file->new_fd, file->new_mode) < 0)
		r = FAIL_SYS(err, "fchmod", file->path);
	if (r < 0)
		return r;
	*ret_fd = file->new_fd;
	return 0;
}

const char *hf_file_kept(const struct hf_file *file)
{
	return file->kept[0] ? file->kept : NULL;
}

int hf_file_new_fd(const struct hf_file *file)
{
	return file->new_fd;
}

int hf_file_commit(struct hf_file *file, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	int r = check_call(file, err);

	if (r < 0)
		return r;
	if (file->new_fd < 0)
		return FAIL(err, -EINVAL, "commit", file->path, "nothing was written");
	/* The lock file of another tool may have come since we took our lock: what that tool writes under it is then seen as a change. */
	r = file->lock && file->sidecar < 0 && file->token != file->held_token ? hf_sidecar_lock(file, file->writer_left_ns, NULL, &why) : 0;
	if (r == 0)
		r = hf_commit(file, &why);
	hf_exchange_settle(file);
	file->was_read = 0; /* the version is another one now */
	return r < 0 ? refused(file->journal, file->path, r, &why, err) : r;
}

void hf_file_discard(struct hf_file *file)
{
	if (file && file->process == getpid())
		hf_exchange_settle(file);
}

int hf_file_block(struct hf_file *file, const struct hf_block *block, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	int r = check_call(file, err);

	if (r < 0)
		return r;
	hf_exchange_settle(file);
	r = read_version(file, &why);
	if (r == 0)
		r = hf_block_write(file, block, &why);
	if (r < 0)
		hf_exchange_settle(file);
	return r < 0 ? refused(file->journal, file->path, r, &why, err) : r;
}

int hf_file_close(struct hf_file *file, struct hf_err *err)
{
	int r = 0;

	if (file && file->process == getpid()) {
		hf_exchange_settle(file);
		/* In this order: the next holder of the named lock finds the other one free. */
		hf_noinherit_unlock_close(&file->sidecar);
		if (file->lock)
			r = hf_lock_release(file->lock, err);
	}
	free_handle(file);
	return r;
}
