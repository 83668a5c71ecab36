/* plan/sandbox/copy_file.c - one regular file: content, holes, attributes, times. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define CLONE_MIN (64 * 1024) /* below that reading and writing is as fast */
#define CHUNK     ((size_t)1 << 20)
#define TRIES     10
#define XATTR_MAX 65536

/* Copies [at, end), which is data. Inside the kernel where that can be done. */
static int copy_range(int from, int to, off_t at, off_t end)
{
	AUTO_FREE char *room = NULL;

	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = room ? -1 : hf_sys.copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);

		if (n < 0 && !room) {
			if (errno == EINTR)
				continue;
			if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP &&
			    errno != EBADF)
				return -errno;
			room = malloc(CHUNK);
			if (!room)
				return -ENOMEM;
			continue;
		}
		if (room) {
			size_t want = (size_t)(end - at) < CHUNK ? (size_t)(end - at) : CHUNK;
			int r;

			n = hf_pread_all(from, room, want, at);
			if (n < 0)
				return (int)n;
			r = hf_pwrite_all(to, room, (size_t)n, at, &(size_t){ 0 });
			if (r < 0)
				return r;
		}
		if (n == 0)
			return 0; /* shorter by now; that is noticed afterwards */
		at += n;
	}
	return 0;
}

int hf_copy_content(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA);
		off_t hole;
		int r;

		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (data < 0)
			data = at;
		hole = lseek(from, data, SEEK_HOLE);
		if (hole < 0 || hole > size)
			hole = size;
		r = copy_range(from, to, data, hole);
		if (r < 0)
			return r;
		at = hole;
	}
	return hf_sys.ftruncate(to, size) < 0 ? -errno : 0;
}

static int carry_xattrs(int from, int to)
{
	AUTO_FREE char *names = malloc(XATTR_MAX);
	AUTO_FREE char *value = malloc(XATTR_MAX);
	ssize_t len;

	if (!names || !value)
		return -ENOMEM;
	len = hf_sys.flistxattr(from, names, XATTR_MAX);
	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t n = hf_sys.fgetxattr(from, name, value, XATTR_MAX);

		if (n < 0 && errno == ENODATA)
			continue;
		/* Labels of the system may be refused; the user's own must not be lost. */
		if ((n < 0 || hf_sys.fsetxattr(to, name, value, (size_t)n, 0) < 0) &&
		    (strncmp(name, "user.", 5) == 0 || strncmp(name, "system.posix_acl", 16) == 0))
			return -errno;
	}
	return 0;
}

int hf_copy_attributes(int from, int to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int r = 0;

	/* Only root may give a file away; a group of ours is kept. */
	if (hf_sys.fchown(to, st->st_uid, st->st_gid) < 0 && errno != EPERM)
		return -errno;
	r = carry_xattrs(from, to);
	if (r == 0 && hf_sys.fchmod(to, st->st_mode & 07777) < 0)
		r = -errno;
	if (r == 0 && futimens(to, times) < 0)
		r = -errno;
	return r;
}

static int is_same_version(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int hf_copy_file(int from_dir, int to_dir, const char *path, int clone, struct stat *ret_from,
		 struct stat *ret_to)
{
	AUTO_FD from = hf_sys.openat2(from_dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
				      0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	AUTO_FD to = -1;
	struct stat before;
	int r;

	if (from < 0)
		return -errno;
	to = hf_create_at(to_dir, path, O_RDWR, 0600);
	if (to < 0)
		return to;
	if (hf_sys.fstat(from, &before) < 0)
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -ESTALE;
	for (int try = 0; try < TRIES; try++) {
		if (try > 0 && hf_sys.ftruncate(to, 0) < 0)
			return -errno;
		/* Cloning takes the file as it is at one moment; a copy is compared afterwards. */
		r = clone && before.st_size > CLONE_MIN ? hf_sys.clone_range(to, from) : -1;
		r = r == 0 ? 0 : hf_copy_content(from, to, before.st_size);
		if (r < 0)
			return r;
		if (hf_sys.fstat(from, ret_from) < 0)
			return -errno;
		if (is_same_version(&before, ret_from)) {
			r = hf_copy_attributes(from, to, ret_from);
			return r < 0 ? r : hf_sys.fstat(to, ret_to) < 0 ? -errno : 0;
		}
		before = *ret_from;
	}
	return -EBUSY; /* written to all the time */
}
