/* plan/target/target.c - resolving, proving and judging a target. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define WALK_MAX   (PATH_MAX / 3 - 1) /* directories above each other: "../.." */
#define SAMPLE_MAX 512  /* entries whose owner is looked at */

#ifndef F2FS_SUPER_MAGIC
#define F2FS_SUPER_MAGIC 0xF2F52010
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

int hf_path_is_in(const char *path, const char *base)
{
	size_t len = strlen(base);

	if (len == 1 && base[0] == '/')
		return 1;
	return strncmp(path, base, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

#define T0_TRIES 100

/*
 * The time that the kernel stamps a change with now. Later stamps, on whatever file system, are never
 * below it. It is asked for by a change of a file in memory whose times were looked at before: from
 * Linux 6.13 on that gives a fine stamp, so that what changed before is below it even within one
 * tick of the coarse clock (which lags up to 8 ms). Older kernels give the coarse time.
 */
static int stamp_now(int64_t *ret_ns)
{
	AUTO_FD fd = memfd_create("holdfast-t0", MFD_CLOEXEC);
	struct timespec now;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && write(fd, "", 1) == 1 && fstat(fd, &st) == 0) {
		*ret_ns = (int64_t)st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec;
		return 0;
	}
	/* The coarse clock is never ahead of a later stamp either. */
	if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
		return -errno;
	*ret_ns = (int64_t)now.tv_sec * HF_SEC + now.tv_nsec;
	return 0;
}

int hf_t0_take(struct hf_t0 *ret, struct hf_err *err)
{
	struct hf_t0 t0 = { 0 };
	char boot_id[HF_BOOT_ID_LEN + 1];
	int r = hf_here_boot(boot_id, err);

	if (r < 0)
		return r;
	/*
	 * Both clocks at one moment, the stamp first: a pause between the two can only hide a clock
	 * that was set back by less than the pause, never invent one.
	 */
	for (int i = 0; i < T0_TRIES; i++) {
		int64_t before = hf_boot_now().ns;

		r = stamp_now(&t0.real_ns);
		if (r < 0)
			return hf_fail_sys(err, -r, "fstat", "T0");
		t0.boot_ns = hf_boot_now().ns;
		if (t0.boot_ns - before < HF_MSEC)
			break;
	}
	hf_copy_text(t0.boot_id, sizeof(t0.boot_id), boot_id);
	*ret = t0;
	return 0;
}

/* Opens without following anything. Kernels have openat2; filters may hide it. */
static int open_plain(const char *path)
{
	int fd = hf_sys.openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
				RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 && errno == ENOSYS)
		return hf_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? -errno : fd;
}

static int identify(int fd, const char *shown, struct hf_target *ret, struct hf_err *err)
{
	struct statx st;
	struct statfs fs;

	if (hf_sys.statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &st) < 0)
		return FAIL_SYS(err, "statx", shown);
	if (hf_sys.fstatfs(fd, &fs) < 0)
		return FAIL_SYS(err, "fstatfs", shown);
	ret->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	ret->ino = st.stx_ino;
	ret->mnt_id = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
	ret->fs_type = (uint64_t)(unsigned long)fs.f_type;
	return 0;
}

int hf_target_open(const struct hf_target *target, int *ret_fd, struct hf_err *err)
{
	AUTO_FD fd = open_plain(target->path);
	struct hf_target now = { 0 };
	char boot_id[HF_BOOT_ID_LEN + 1];
	struct stat st;
	int r;

	/* With O_PATH the link itself is found, which is no directory. */
	if (fd == -ENOTDIR && hf_sys.fstatat(AT_FDCWD, target->path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		fd = -ELOOP;
	if (fd == -ENOENT || fd == -ENOTDIR)
		return FAIL(err, HF_E_TARGET, "openat2", target->path,
			    "the added directory is gone");
	if (fd == -ELOOP)
		return FAIL(err, HF_E_TARGET, "openat2", target->path,
			    "it or a parent is a symbolic link now, which is not followed");
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat2", target->path);
	r = identify(fd, target->path, &now, err);
	if (r == 0)
		r = hf_here_boot(boot_id, err);
	if (r < 0)
		return r;
	if (now.fs_type != target->fs_type && now.fs_type == OVERLAYFS_SUPER_MAGIC)
		return FAIL(err, HF_E_TARGET, "statx", target->path,
			    "it is seen through a sandbox here; do this outside 'plan enter'");
	if (now.ino != target->ino || now.fs_type != target->fs_type ||
	    (now.dev != target->dev && strcmp(boot_id, target->boot_id) == 0))
		return FAIL(err, HF_E_TARGET, "statx", target->path,
			    "the directory was replaced by another one since it was added");
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_target_resolve(const char *dir, struct hf_target *ret, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	AUTO_FD again = -1;
	struct hf_target target = { 0 };
	char link[64], path[PATH_MAX];
	char boot_id[HF_BOOT_ID_LEN + 1];
	ssize_t n;
	int r;

	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", dir);
	r = hf_here_boot(boot_id, err);
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = hf_sys.readlinkat(AT_FDCWD, link, path, sizeof(path));
	if (n < 0)
		return FAIL_SYS(err, "readlinkat", dir);
	if (n == sizeof(path) || path[0] != '/')
		return hf_fail_sys(err, ENAMETOOLONG, "readlinkat", dir);
	path[n] = '\0';
	r = identify(fd, dir, &target, err);
	if (r < 0)
		return r;
	hf_copy_text(target.boot_id, sizeof(target.boot_id), boot_id);
	target.path = path;
	/* The path must lead there by itself: a directory that was removed has none. */
	r = hf_target_open(&target, &again, err);
	if (r < 0)
		return r;
	target.path = strdup(path);
	if (!target.path)
		return hf_fail_sys(err, ENOMEM, "memory", dir);
	*ret = target;
	return 0;
}

/* -- what cannot be a target ------------------------------------------------------ */

/* 1 when `below` is `above` or lies in it, by the directories themselves. */
static int is_inside(int below, int above)
{
	char up[PATH_MAX] = ".";
	struct stat want, st, before = { 0 };

	if (hf_sys.fstat(above, &want) < 0)
		return -errno;
	for (size_t i = 0; i < WALK_MAX; i++) {
		/* What may not be looked at is not ours either. */
		if (hf_sys.fstatat(below, up, &st, 0) < 0)
			return errno == EACCES ? 0 : -errno;
		if (st.st_dev == want.st_dev && st.st_ino == want.st_ino)
			return 1;
		if (i > 0 && st.st_dev == before.st_dev && st.st_ino == before.st_ino)
			return 0;
		before = st;
		memcpy(i == 0 ? up : up + 3 * i - 1, i == 0 ? ".." : "/..", i == 0 ? 3 : 4);
	}
	return -ELOOP;
}

int hf_target_check(const struct hf_plans *plans, const struct hf_target *target,
		    struct hf_err *err)
{
	const char *state = hf_state_path(plans->state);
	char mount[PATH_MAX];
	AUTO_FD fd = -1;
	int r = hf_target_open(target, &fd, err);

	if (r < 0)
		return r;
	r = is_inside(hf_state_dirfd(plans->state), fd);
	if (r == 1)
		return FAIL(err, HF_E_TARGET, "target", target->path,
			    "the state directory %.100s is inside it, and locks would be private copies "
			    "there; use --dir or HOLDFAST_DIR", state);
	if (r == 0)
		r = is_inside(fd, hf_state_dirfd(plans->state));
	if (r == 1)
		return FAIL(err, HF_E_TARGET, "target", target->path,
			    "it is inside the state directory %.150s", state);
	if (r < 0)
		return hf_fail_sys(err, -r, "openat ..", target->path);
	r = hf_mount_below(target->path, mount, sizeof(mount));
	if (r < 0)
		return hf_fail_sys(err, -r, "mountinfo", target->path);
	if (r == 1)
		return FAIL(err, HF_E_TARGET, "target", target->path,
			    "%.120s is mounted below it, and a sandbox would hide that; unmount it, or add "
			    "directories next to it", mount);
	return 0;
}

/* -- what makes overlay unfit ------------------------------------------------------- */

static int has_true_times(uint64_t fs_type)
{
	static const uint64_t known[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
					  TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (fs_type == known[i])
			return 1;
	return 0;
}

/* Ids that the user namespace of an ordinary user does not have. */
static int is_foreign(int dirfd, const char *name, const struct stat *st)
{
	if (S_ISLNK(st->st_mode) || (st->st_uid == geteuid() && st->st_gid == getegid()))
		return 0;
	/* What may not be written outside either makes no difference. */
	return faccessat(dirfd, name, W_OK, AT_EACCESS) == 0;
}

static void say_foreign(char why[HF_PLAN_WHY_MAX], const char *path, const struct stat *st)
{
	(void)snprintf(why, HF_PLAN_WHY_MAX,
		       "%.80s belongs to uid %u, gid %u, and only uid %u, gid %u exist in your user "
		       "namespace: it could not be changed inside (EOVERFLOW)",
		       path, (unsigned)st->st_uid, (unsigned)st->st_gid, (unsigned)geteuid(),
		       (unsigned)getegid());
}

int hf_target_unfit(int fd, const struct hf_target *target, char why[HF_PLAN_WHY_MAX])
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	struct stat st;
	int found = 0;

	if (!has_true_times(target->fs_type)) {
		(void)snprintf(why, HF_PLAN_WHY_MAX,
			       "the file system of the target (type %llx) has no change times that a "
			       "commit could rely on", (unsigned long long)target->fs_type);
		return 1;
	}
	/* Root maps all ids that it has. */
	if (geteuid() == 0)
		return 0;
	if (hf_sys.fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && is_foreign(fd, ".", &st)) {
		say_foreign(why, target->path, &st);
		return 1;
	}
	if (hf_open_dir(fd, ".", &dir) < 0)
		return 0;
	for (int i = 0; !found && i < SAMPLE_MAX && (entry = readdir(dir)); i++) {
		if (strcmp(entry->d_name, "..") == 0 ||
		    hf_sys.fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		found = is_foreign(dirfd(dir), entry->d_name, &st);
		if (found)
			say_foreign(why, entry->d_name, &st);
	}
	return found;
}
