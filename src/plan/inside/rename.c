/*
 * plan/inside/rename.c - renames and exchanges directories of the lower layer.
 *
 * Overlayfs without redirects cannot rename such a directory. So a new one is filled beside the
 * new name by renaming the leaves, which the kernel copies up one by one; the empty old ones are
 * removed; and the new one gets its name by one rename. If anything fails on the way,
 * what was moved is moved back.
 *
 * No memory is allocated (helper.h): names are read in pieces of a buffer on the stack, and a
 * directory is read from its start again as long as something was taken out of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/inside/helper.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define LISTING   8192
#define DEPTH_MAX 150 /* of directories that came from the target; each takes 9 KiB of stack */
#define XATTR_MAX 65536

struct listing {
	ssize_t len, at;
	char room[LISTING] __attribute__((aligned(8)));
};

/* The next name of `fd`, NULL at the end. `kind` gets DT_. -errno in *error. */
static const char *next_name(struct listing *list, int fd, unsigned char *kind, int *error)
{
	for (;;) {
		const char *entry;
		uint16_t len;

		if (list->at >= list->len) {
			list->at = 0;
			list->len = hf_sys.getdents64(fd, list->room, sizeof(list->room));
			if (list->len < 0)
				*error = -errno;
			if (list->len <= 0)
				return NULL;
		}
		/* struct linux_dirent64: inode, offset, length, type, name */
		entry = list->room + list->at;
		memcpy(&len, entry + 16, sizeof(len));
		list->at += len;
		*kind = (unsigned char)entry[18];
		if (strcmp(entry + 19, ".") != 0 && strcmp(entry + 19, "..") != 0)
			return entry + 19;
	}
}

static void rewind_names(struct listing *list, int fd)
{
	list->at = list->len = 0;
	(void)lseek(fd, 0, SEEK_SET);
}

/* Opens a directory to take entries out of it or to put some in, also a read-only one of ours. */
static int open_writable(int dirfd, const char *name, const struct stat *st)
{
	AUTO_FD fd = hf_open_at(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char path[40];

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((st->st_mode & 0700) != 0700 && hf_sys.chmod(path, (st->st_mode & 07777) | 0700) < 0)
		return -errno;
	return hf_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
}

static void carry_xattrs(int from, int to)
{
	static char names[XATTR_MAX], value[XATTR_MAX]; /* one rename at a time in a process */
	ssize_t len = hf_sys.flistxattr(from, names, sizeof(names));

	for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
		ssize_t n = hf_sys.fgetxattr(from, name, value, sizeof(value));

		if (n >= 0)
			(void)hf_sys.fsetxattr(to, name, value, (size_t)n, 0);
	}
}

/* What the directory was: attributes, owner, mode, and last its times. */
static int carry(int from, int to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct stat now;

	carry_xattrs(from, to);
	if (hf_sys.fstat(to, &now) < 0)
		return -errno;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
	    hf_sys.fchown(to, st->st_uid, st->st_gid) < 0)
		return -errno;
	if (hf_sys.fchmod(to, st->st_mode & 07777) < 0)
		return -errno;
	(void)futimens(to, times);
	return 0;
}

/*
 * Errors after which the entries of a directory can be moved one by one: the overlay cannot move
 * it; it is not writable, so that its ".." cannot change; or (when undoing) a part of it is still
 * in its old place.
 */
static int is_to_be_split(int error)
{
	return error == EXDEV || error == EACCES || error == ENOTEMPTY || error == EEXIST;
}

/* Fills `to` with all entries of `from`. Sub-directories of the lower layer are made anew. */
static int move_entries(int from, int to, int depth);

static int move_directory(int from, int to, const char *name, int depth, int error)
{
	AUTO_FD old = -1;
	AUTO_FD new = -1;
	struct stat st;
	int r, was_there = 0;

	if (depth > DEPTH_MAX)
		return -ELOOP;
	if (hf_sys.fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -error;
	if (hf_mkdir_at(to, name, 0700) < 0) {
		if (errno != EEXIST)
			return -errno;
		was_there = 1; /* undoing: it never lost its attributes */
	}
	old = open_writable(from, name, &st);
	new = hf_open_at(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (old < 0 || new < 0)
		return old < 0 ? old : new;
	r = move_entries(old, new, depth + 1);
	if (r == 0 && !was_there)
		r = carry(old, new, &st);
	if (r == 0 && hf_sys.unlinkat(from, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

static int move_entries(int from, int to, int depth)
{
	struct listing list = { .len = 0 };
	unsigned char kind;
	int r = 0, moved = 0;

	for (;;) {
		const char *name = next_name(&list, from, &kind, &r);

		if (r < 0)
			return r;
		if (!name && !moved)
			return 0;
		if (!name) {
			/* Something was taken out while it was read: look again from the start. */
			rewind_names(&list, from);
			moved = 0;
			continue;
		}
		moved = 1;
		if (hf_sys.renameat2(from, name, to, name, 0) == 0)
			continue;
		if (!is_to_be_split(errno))
			return -errno;
		r = move_directory(from, to, name, depth, errno);
		if (r < 0)
			return r;
	}
}

/* Moves all of `temp` back into `old_name`, whatever of that is left. */
static int undo(int old_dir, const char *old_name, int temp, const struct stat *st)
{
	AUTO_FD old = -1;
	int r;

	if (hf_mkdir_at(old_dir, old_name, 0700) < 0 && errno != EEXIST)
		return -errno;
	old = hf_open_at(old_dir, old_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (old < 0)
		return old;
	r = move_entries(temp, old, 0);
	if (r == 0)
		r = carry(old, old, st);
	return r;
}

/* An existing new name must be an empty directory. 0 or what rename(2) says. */
static int check_new(int new_dir, const char *new_name, int no_replace)
{
	AUTO_FD fd = -1;
	struct listing list = { .len = 0 };
	struct stat st;
	unsigned char kind;
	int r = 0;

	if (hf_sys.fstatat(new_dir, new_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (no_replace)
		return -EEXIST;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	fd = hf_open_at(new_dir, new_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	if (next_name(&list, fd, &kind, &r))
		return -ENOTEMPTY;
	return r;
}

/* Keeps errors that a caller can act on. EXDEV makes it copy instead. */
static int answer(int r)
{
	switch (-r) {
	case ENOSPC:
	case EDQUOT:
	case EIO:
	case EROFS:
	case EBUSY:
		return r;
	default:
		return -EXDEV;
	}
}

/* Gives the finished directory its name. An empty lower directory in the way is removed first. */
static int land(int new_dir, const char *temp, const char *new_name, int no_replace)
{
	if (hf_sys.renameat2(new_dir, temp, new_dir, new_name, no_replace ? RENAME_NOREPLACE : 0) == 0)
		return 0;
	if (errno != EXDEV || no_replace)
		return -errno;
	if (hf_sys.unlinkat(new_dir, new_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return hf_sys.renameat2(new_dir, temp, new_dir, new_name, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* Makes the directory anew, under its new name. Complete, or undone. */
static int make_anew(int old_dir, const char *old_name, int new_dir, const char *new_name, int no_replace)
{
	AUTO_FD old = -1;
	AUTO_FD temp = -1;
	char name[64];
	struct stat st;
	int r;

	if (hf_sys.fstatat(old_dir, old_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)snprintf(name, sizeof(name), ".holdfast-rename-%d", (int)getpid());
	if (hf_mkdir_at(new_dir, name, 0700) < 0)
		return answer(-errno);
	temp = hf_open_at(new_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	old = temp < 0 ? temp : open_writable(old_dir, old_name, &st);
	r = old < 0 ? old : move_entries(old, temp, 0);
	if (r == 0)
		r = carry(old, temp, &st);
	if (r == 0 && hf_sys.unlinkat(old_dir, old_name, AT_REMOVEDIR) < 0)
		r = -errno;
	if (r == 0)
		r = land(new_dir, name, new_name, no_replace);
	if (r == 0)
		return 0;
	if (temp >= 0 && (old >= 0 || hf_sys.fstatat(old_dir, old_name, &st, AT_SYMLINK_NOFOLLOW) < 0)) {
		int undone = undo(old_dir, old_name, temp, &st);

		if (undone < 0)
			return -EIO; /* the rest of it is in .holdfast-rename-PID */
	}
	(void)hf_sys.unlinkat(new_dir, name, AT_REMOVEDIR);
	return answer(r);
}

int hf_rename_directory(int old_dir, const char *old_name, int new_dir, const char *new_name,
			int no_replace)
{
	int r = check_new(new_dir, new_name, no_replace);

	return r < 0 ? r : make_anew(old_dir, old_name, new_dir, new_name, no_replace);
}

/* Replaces a directory of the lower layer by an equal directory of the upper layer. */
static int make_movable(int dir, const char *name)
{
	struct stat st;

	if (hf_sys.fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? make_anew(dir, name, dir, name, 1) : 0;
}

int hf_exchange_directories(int old_dir, const char *old_name, int new_dir, const char *new_name)
{
	int r = make_movable(old_dir, old_name);

	if (r == 0)
		r = make_movable(new_dir, new_name);
	if (r == 0 && hf_sys.renameat2(old_dir, old_name, new_dir, new_name, RENAME_EXCHANGE) < 0)
		r = answer(-errno);
	return r;
}
