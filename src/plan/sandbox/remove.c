/* plan/sandbox/remove.c - removing a sandbox's tree, and whether it holds a change. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/target/manifest.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* Directories above each other; below that the level is moved up (see lift). */
#define DEPTH_MAX 200

/*
 * A directory as its owner: opened by path only, made accessible, and then opened. The work
 * directory of an overlay has mode 000, and so may what a command made.
 */
static int open_for_removal(int dirfd, const char *name)
{
	AUTO_FD fd = hf_open_at(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;
	char path[40];

	if (fd >= 0 && (hf_sys.fstat(fd, &st) < 0 || (st.st_mode & 0300) == 0300))
		return fd_take(&fd);
	hf_auto_close(&fd);
	fd = hf_open_at(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	/* Through the descriptor: the name may be a symlink by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (hf_sys.chmod(path, 0700) < 0)
		return -errno;
	return hf_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
}

static int remove_level(int top, int dirfd, const char *name, int depth, unsigned *lifted);

/*
 * Too deep for the stack and for descriptors: it becomes an entry of the top directory. To move a
 * directory to another parent its owner must be able to write it, because ".." is an entry of it.
 */
static int lift(int top, int dirfd, const char *name, unsigned *lifted)
{
	AUTO_FD fd = open_for_removal(dirfd, name);
	char other[32];

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd_take(&fd);
	(void)snprintf(other, sizeof(other), ".lifted-%u", ++*lifted);
	return hf_sys.renameat2(dirfd, name, top, other, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int remove_entries(int top, int fd, int depth, unsigned *lifted)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = hf_open_dir(fd, ".", &dir);

	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_level(top, fd, entry->d_name, depth + 1, lifted);
	return r;
}

static int remove_level(int top, int dirfd, const char *name, int depth, unsigned *lifted)
{
	AUTO_FD fd = -1;
	int r;

	if (hf_sys.unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM && errno != EACCES)
		return -errno;
	if (depth > DEPTH_MAX)
		return lift(top, dirfd, name, lifted);
	fd = open_for_removal(dirfd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = remove_entries(depth == 0 ? fd : top, fd, depth, lifted);
	if (r == 0 && hf_sys.unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int hf_tree_remove(int dirfd, const char *name)
{
	unsigned lifted = 0, before;
	int r;

	/* Again while a round has lifted something to the top: each round is DEPTH_MAX less deep. */
	do {
		before = lifted;
		r = remove_level(dirfd, dirfd, name, 0, &lifted);
	} while (r == -ENOTEMPTY && lifted > before);
	return r;
}

/* The mode of the target's own root may be all that was changed. */
static int is_root_changed(int upper, const struct hf_target *target)
{
	AUTO_FD fd = -1;
	struct stat a, b;

	return hf_target_open(target, &fd, NULL) == 0 && hf_sys.fstat(upper, &a) == 0 &&
	       hf_sys.fstat(fd, &b) == 0 && ((a.st_mode ^ b.st_mode) & 07777) != 0;
}

/*
 * A clone or copy against its manifest: one stat for each entry, up to the first that differs. A name that
 * came or went shows in the directory's ctime. What cannot be looked at is not known (-1).
 */
static int is_copy_changed(int sandbox_fd)
{
	AUTO(hf_manifest_done) struct hf_manifest manifest = { 0 };
	AUTO_FD tree = hf_dirtree_open(sandbox_fd, HF_SANDBOX_TREE);

	if (tree < 0 || hf_manifest_load(sandbox_fd, &manifest, NULL) < 0)
		return -1;
	for (size_t i = 0; i < manifest.n; i++) {
		const char *path = manifest.entries[i].path;
		struct stat st;

		if (hf_sys.fstatat(tree, path, &st, AT_SYMLINK_NOFOLLOW | (path[0] ? 0 : AT_EMPTY_PATH)) < 0)
			return errno == ENOENT || errno == ENOTDIR ? 1 : -1;
		if (!hf_manifest_untouched(&manifest.entries[i].row, &st))
			return 1;
	}
	return 0;
}

int hf_sandbox_is_dirty(int sandbox_fd, const struct hf_sandbox_record *sandbox)
{
	AUTO_DIR dir = NULL;
	AUTO_FD fd = -1;
	struct dirent *entry;
	int r, found = 0;

	if (sandbox->strategy != HF_STRATEGY_OVERLAY)
		return is_copy_changed(sandbox_fd);
	if (!sandbox->entered)
		return 0;
	fd = hf_open_at(sandbox_fd, HF_SANDBOX_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = fd < 0 ? fd : hf_open_dir(fd, ".", &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : -1;
	while (!found && (entry = readdir(dir)))
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (!found)
		found = is_root_changed(fd, &sandbox->target);
	return found;
}
