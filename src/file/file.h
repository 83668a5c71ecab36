/*
 * file/file.h - the handle of a shared file and what its parts do for each other.
 *
 *   entry.c    path to (directory, leaf); what kind of thing stands there; root; the name
 *   sidecar.c  the lock file beside it
 *   temp.c     the temporary file; what crashes left
 *   content.c  version of the content, copying, comparing
 *   meta.c     owner, mode, attributes
 *   commit.c   the rename
 *   backup.c   earlier versions
 *   markers.c  finding marker lines; style.c: writing them; block.c: the new content
 */
#ifndef FILE_FILE_H
#define FILE_FILE_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "holdfast/file.h"
#include "holdfast/name.h"

#define HF_LEAF_MAX 249 /* "." and ".lock" around it must fit into NAME_MAX */

/* What the entry was when it was read; what commit compares. */
struct hf_version {
	int exists;
	int is_symlink;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
	struct timespec ctime;
	int has_hash; /* changed so shortly before that its times alone prove nothing */
	uint64_t hash;
};

/* How far a commit has come. */
enum hf_landing {
	HF_NOT_LANDED,
	HF_LANDED_NEW,       /* there was no file */
	HF_LANDED_EXCHANGED, /* the old one has the temporary name */
	HF_LANDED_OVER,      /* the old one is gone */
};

struct hf_file {
	struct hf_locks *locks;
	struct hf_journal *journal;
	pid_t process; /* a forked child is refused */
	unsigned flags;
	unsigned backups;
	int dirfd;                /* the resolved parent, pinned */
	dev_t dir_dev;
	uid_t dir_uid;
	char leaf[NAME_MAX + 1];
	char *path;               /* for messages: as it was given, or where a symlink led */
	char name[HF_NAME_MAX + 1];

	char fence_name[HF_NAME_MAX + 1]; /* "": none */
	uint64_t fence_token;
	char held_name[HF_NAME_MAX + 1];
	uint64_t held_token;

	struct hf_lock *lock; /* NULL: not locked, or borrowed */
	uint64_t token;       /* 0: not locked */
	int sidecar;          /* -1: not locked */

	struct hf_version version;
	int was_read;
	int old_fd;
	int new_fd;
	char temp[NAME_MAX + 1]; /* its name while new_fd is open; "": it has none any more */
	enum hf_landing landing;
};

/* -- entry.c ------------------------------------------------------------------- */

/* Fills dirfd, leaf, path and name from the path given; checks root and kind. */
int hf_entry_resolve(struct hf_file *file, const char *path, const char *root, struct hf_err *err);

/*
 * Looks at the entry. Returns 1 a regular file, 2 a symlink that may be replaced, 0 nothing
 * there and that is fine; -ENOENT; HF_E_KIND; -errno.
 */
int hf_entry_look(const struct hf_file *file, struct stat *ret_st, struct hf_err *err);

/* The lock's name of a directory entry. */
void hf_entry_name(dev_t dev, ino_t ino, const char *leaf, char out[HF_NAME_MAX + 1]);

/* -- sidecar.c ----------------------------------------------------------------- */

/* Opens and locks ".<leaf>.lock"; sets file->sidecar. Errors as hf_file_lock. */
int hf_sidecar_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		    struct hf_err *err);

/* -- temp.c -------------------------------------------------------------------- */

/* Removes what crashes have left, as far as it is proven to be nobody's any more. */
void hf_temp_sweep(const struct hf_file *file);

/* Makes the temporary file: new_fd and temp. `mode` is its first mode (umask applies). */
int hf_temp_make(struct hf_file *file, mode_t mode, struct hf_err *err);

/* Closes it and, unless it was renamed away (then temp is ""), removes it. */
void hf_temp_drop(struct hf_file *file);

/* Name of the entry that keeps the old version until it is a backup. */
void hf_temp_old_name(const struct hf_file *file, char out[NAME_MAX + 1]);

/* -- content.c ----------------------------------------------------------------- */

/* The version of an entry that was looked at; `fd` is -1 for none or a symlink. */
int hf_version_take(const struct stat *st, int fd, int kind, struct hf_version *ret);

/* Is the entry still that? 1 yes, 0 no, -errno. */
int hf_version_is_current(const struct hf_file *file);

/* Is the content still that? Only looks where the times prove nothing. 1, 0, -errno. */
int hf_version_same_content(const struct hf_file *file);

/* Copies [at, at + len) of `from` to the end of `to`. A shorter file is fine. 0 or -errno. */
int hf_content_copy(int from, off_t at, off_t len, int to);

/* Do both hold the same bytes? 1, 0, -errno. */
int hf_content_equal(int a, int b);

/* -- meta.c -------------------------------------------------------------------- */

/* Owner, mode, extended attributes and ACL of `from` for `to`. */
int hf_meta_carry(const struct hf_file *file, int from, int to, struct hf_err *err);

/* -- backup.c ------------------------------------------------------------------ */

/* Keeps the old version under a second name until the rename has happened. */
int hf_backup_keep(const struct hf_file *file, struct hf_err *err);

/* The rename happened: what was kept becomes leaf.~1~. */
int hf_backup_rotate(const struct hf_file *file, struct hf_err *err);

/* The rename did not happen. */
void hf_backup_forget(const struct hf_file *file);

/* What a crash left between keep and rotate: finished, or forgotten. */
void hf_backup_recover(const struct hf_file *file);

#endif
