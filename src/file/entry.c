/* file/entry.c - from a path to a pinned directory and a leaf, and what may stand there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/entry.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define LOOK_AGAIN_NS (16 * HF_MSEC)

#define HASH_LEN  33   /* a colon and 128 bits */
#define LINKS_MAX 40   /* symlinks behind each other, as the kernel has it */
#define WALK_MAX  4096 /* directories above each other */

void hf_entry_name(dev_t dev, ino_t ino, const char *leaf, char out[HF_NAME_MAX + 1])
{
	XXH128_hash_t sum;
	size_t n, room;

	if (snprintf(out, HF_NAME_MAX + 1, "%llx:%llx:%s", (unsigned long long)dev,
		     (unsigned long long)ino, leaf) <= HF_NAME_MAX)
		return;
	/* Another sign in front: no short leaf ever has the name of a long one. */
	n = (size_t)snprintf(out, HF_NAME_MAX + 1, "+%llx:%llx:", (unsigned long long)dev,
			     (unsigned long long)ino);
	room = HF_NAME_MAX - HASH_LEN - n;
	memcpy(out + n, leaf, room); /* the leaf is longer, or it would have fitted above */
	sum = XXH3_128bits(leaf, strlen(leaf));
	(void)snprintf(out + n + room, HASH_LEN + 1, ":%016llx%016llx",
		       (unsigned long long)sum.high64, (unsigned long long)sum.low64);
}

void hf_entry_inner_name(const struct hf_file *file, char out[HF_NAME_MAX + 1])
{
	(void)snprintf(out, HF_NAME_MAX + 1, "with:%016llx:%.40s",
		       (unsigned long long)XXH3_64bits(file->name, strlen(file->name)), file->leaf);
}

static const char *kind_word(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "neither a file nor a directory";
	}
}

/*
 * Editors that rename the file to a backup and then write it anew leave a moment without it. That
 * is no missing file, so we look again, for 31 ms in all.
 */
static int look_again(const struct hf_file *file, struct stat *ret_st)
{
	for (long pause = HF_MSEC;; pause *= 2) {
		int r = hf_sys.fstatat(file->dirfd, file->leaf, ret_st, AT_SYMLINK_NOFOLLOW);

		if (r == 0 || errno != ENOENT || file->flags & HF_FILE_CREATE || pause > LOOK_AGAIN_NS)
			return r;
		hf_pause(pause);
	}
}

int hf_entry_look(const struct hf_file *file, struct stat *ret_st, struct hf_err *err)
{
	if (look_again(file, ret_st) < 0) {
		if (errno != ENOENT)
			return FAIL_SYS(err, "fstatat", file->path);
		if (file->flags & HF_FILE_CREATE)
			return 0;
		return FAIL(err, -ENOENT, "fstatat", file->path,
			    "no such file; --create makes it");
	}
	if (S_ISREG(ret_st->st_mode))
		return 1;
	if (!S_ISLNK(ret_st->st_mode))
		return FAIL(err, HF_E_KIND, "fstatat", file->path, "it is %s",
			    kind_word(ret_st->st_mode));
	if (file->flags & HF_FILE_REPLACE_SYMLINK)
		return 2;
	return FAIL(err, HF_E_KIND, "fstatat", file->path,
		    "it is a symbolic link; --follow follows it in its own directory, with --root DIR "
		    "inside DIR; --replace-symlink replaces the link itself");
}

/* The leaf of `path`, and its parent (to be freed). */
static int split(const char *path, char leaf[NAME_MAX + 1], char **ret_parent, struct hf_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;

	if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return FAIL(err, HF_E_KIND, "path", path, "it names a directory");
	if (strlen(last) > HF_LEAF_MAX)
		return FAIL(err, -ENAMETOOLONG, "path", path,
			    "its last part has %zu bytes; at most %d leave room for the lock file "
			    "beside it",
			    strlen(last), HF_LEAF_MAX);
	*ret_parent = !slash	     ? strdup(".") :
		      slash == path ? strdup("/") :
				      strndup(path, (size_t)(slash - path));
	if (!*ret_parent)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	hf_copy_text(leaf, NAME_MAX + 1, last);
	return 0;
}

static int same_directory(int a, int b)
{
	struct stat x, y;

	if (hf_stat_at(a, "", &x) < 0 || hf_stat_at(b, "", &y) < 0)
		return -EIO;
	return hf_is_same_file(&x, &y);
}

/*
 * Is the pinned directory `root` or below it? By inode, upwards from the descriptor: what
 * the path looked like, and what becomes of it meanwhile, does not matter (L12).
 */
static int check_inside(const struct hf_file *file, int dirfd, const char *path, struct hf_err *err)
{
	const char *root = file->root;
	AUTO_FD rootfd = hf_open_at(file->basefd, root, O_PATH | O_DIRECTORY, 0);
	AUTO_FD at = -1;

	if (rootfd < 0)
		return hf_fail_sys(err, -rootfd, "openat", root);
	at = hf_open_at(dirfd, ".", O_PATH | O_DIRECTORY, 0);
	for (int i = 0; at >= 0 && i < WALK_MAX; i++) {
		AUTO_FD above = -1;
		int r = same_directory(at, rootfd);

		if (r != 0)
			return r < 0 ? hf_fail_sys(err, -r, "statx", path) : 0;
		above = hf_open_at(at, "..", O_PATH | O_DIRECTORY, 0);
		if (above < 0)
			return hf_fail_sys(err, -above, "openat ..", path);
		r = same_directory(at, above);
		if (r != 0)
			break;
		hf_auto_close(&at);
		at = fd_take(&above);
	}
	if (at < 0)
		return hf_fail_sys(err, -at, "openat", path);
	return FAIL(err, HF_E_OUTSIDE, "path", path, "its directory is not inside %.150s", root);
}

/* Opens the parent of `path`, which is relative to `basefd`. */
static int pin(struct hf_file *file, int basefd, const char *path, struct hf_err *err)
{
	AUTO_FREE char *parent = NULL;
	AUTO_FD fd = -1;
	int r = split(path, file->leaf, &parent, err);

	if (r < 0)
		return r;
	fd = hf_open_at(basefd, parent, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", parent);
	if (file->root) {
		r = check_inside(file, fd, path, err);
		if (r < 0)
			return r;
	}
	hf_auto_close(&file->dirfd);
	file->dirfd = fd_take(&fd);
	return 0;
}

/* The leaf is a symlink to be followed: to where it points, one step. */
static int follow(struct hf_file *file, struct hf_err *err)
{
	char target[PATH_MAX];
	AUTO_FD before = -1;
	char *shown;
	ssize_t n = hf_sys.readlinkat(file->dirfd, file->leaf, target, sizeof(target));
	int r;

	if (n < 0)
		return FAIL_SYS(err, "readlinkat", file->path);
	if (n == 0 || n == sizeof(target))
		return hf_fail_sys(err, ENAMETOOLONG, "readlinkat", file->path);
	target[n] = '\0';
	before = hf_open_at(file->dirfd, ".", O_PATH | O_DIRECTORY, 0);
	if (before < 0)
		return hf_fail_sys(err, -before, "openat", file->path);
	r = pin(file, before, target, err);
	if (r < 0)
		return r;
	if (!file->root && same_directory(before, file->dirfd) != 1)
		return FAIL(err, HF_E_OUTSIDE, "path", file->path,
			    "it is a symbolic link to another directory (%.150s); --root DIR allows it inside DIR", target);
	if (asprintf(&shown, "%s -> %s", file->path, target) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", file->path);
	free(file->path);
	file->path = shown;
	return 0;
}

static int follow_all(struct hf_file *file, struct hf_err *err)
{
	struct stat st;

	for (int i = 0; i < LINKS_MAX; i++) {
		int r;

		if (hf_sys.fstatat(file->dirfd, file->leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISLNK(st.st_mode))
			return 0; /* the look that comes next says what is wrong */
		r = follow(file, err);
		if (r < 0)
			return r;
	}
	return hf_fail_sys(err, ELOOP, "readlinkat", file->path);
}

/* May other users change the file, or entries of the directory? The group of this process is taken for its own (user private groups). */
static int is_others(const struct stat *st, uid_t owner)
{
	return st->st_uid != geteuid() || owner != geteuid() || st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != getegid());
}

/* Fills dirfd, leaf and path. */
static int walk(struct hf_file *file, struct hf_err *err)
{
	int r;

	file->path = strdup(file->given);
	if (!file->path)
		return hf_fail_sys(err, ENOMEM, "memory", file->given);
	r = pin(file, file->basefd, file->given, err);
	return r == 0 && file->flags & HF_FILE_FOLLOW ? follow_all(file, err) : r;
}

int hf_entry_check_path(const struct hf_file *file, struct hf_err *err)
{
	struct hf_file now = { .dirfd = -1, .basefd = file->basefd, .given = file->given,
			       .root = file->root, .flags = file->flags };
	int same = -1, r = walk(&now, err);

	if (r == 0)
		same = strcmp(now.leaf, file->leaf) == 0 ? same_directory(now.dirfd, file->dirfd) : 0;
	hf_auto_close(&now.dirfd);
	free(now.path);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EIO)
		return r;
	if (r == 0 && same < 0)
		return hf_fail_sys(err, -same, "statx", file->path);
	return same == 1 ? 0 : FAIL(err, HF_E_MOVED, "path", file->path,
				    "another process moved or replaced its directory");
}

int hf_entry_resolve(struct hf_file *file, const char *path, const char *root, struct hf_err *err)
{
	struct stat st;
	int r;

	file->given = strdup(path);
	file->root = root ? strdup(root) : NULL;
	if (!file->given || (root && !file->root))
		return hf_fail_sys(err, ENOMEM, "memory", path);
	/* The program may change its working directory. */
	file->basefd = hf_open_at(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0);
	/* An absolute path needs no permission there. */
	if (file->basefd == -EACCES)
		file->basefd = AT_FDCWD;
	if (file->basefd < 0 && file->basefd != AT_FDCWD)
		return hf_fail_sys(err, -file->basefd, "openat", ".");
	r = walk(file, err);
	if (r < 0)
		return r;
	r = hf_stat_at(file->dirfd, "", &st);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", path);
	file->dir_dev = st.st_dev;
	file->dir_uid = st.st_uid;
	file->is_shared = is_others(&st, st.st_uid);
	hf_entry_name(st.st_dev, st.st_ino, file->leaf, file->name);
	r = hf_entry_look(file, &st, err);
	if (r == 1)
		file->is_shared |= is_others(&st, file->dir_uid);
	return r < 0 ? r : 0;
}
