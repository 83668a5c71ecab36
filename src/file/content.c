/* file/content.c - which version a file is, copying parts of it, and comparing two. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/file/content.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHUNK ((size_t)64 << 10)

/*
 * A file system may stamp changes with a clock that ticks every 10 ms: two changes within a
 * tick have the same times. What was changed that recently is compared by its content, too.
 */
#define TICK_NS (20 * HF_MSEC)

/* Of a large file, waiting for the next tick is cheaper than reading it all once more. */
#define HASH_MAX ((off_t)1 << 20)

/* Chunk by chunk, each one's hash the seed of the next. */
static int hash_content(int fd, uint64_t *ret)
{
	AUTO_FREE char *chunk = malloc(CHUNK);
	uint64_t hash = 0;
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = hf_pread_all(fd, chunk, CHUNK, at)) > 0) {
		hash = XXH3_64bits_withSeed(chunk, (size_t)n, hash);
		at += n;
	}
	if (n < 0)
		return (int)n;
	*ret = hash;
	return 0;
}

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

int hf_version_take(const struct stat *st, int fd, int kind, struct hf_version *ret)
{
	struct hf_version version = { .exists = kind != 0, .is_symlink = kind == 2 };

	if (version.exists) {
		version.dev = st->st_dev;
		version.ino = st->st_ino;
		version.size = st->st_size;
		version.mtime = st->st_mtim;
		version.ctime = st->st_ctim;
	}
	if (fd >= 0 && in_ns(st->st_ctim) + TICK_NS >= hf_wall_now().ns) {
		int r;

		if (st->st_size > HASH_MAX && in_ns(st->st_ctim) <= hf_wall_now().ns) {
			hf_pause(TICK_NS);
			*ret = version;
			return 0;
		}
		r = hash_content(fd, &version.hash);

		if (r < 0)
			return r;
		version.has_hash = 1;
	}
	*ret = version;
	return 0;
}

static int same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

struct hf_stamp hf_stamp_of(const struct stat *st)
{
	return (struct hf_stamp){ st->st_ino, st->st_size, st->st_mtim };
}

int hf_stamp_equal(const struct hf_stamp *a, const struct hf_stamp *b)
{
	return a->ino == b->ino && a->size == b->size && same_time(a->mtime, b->mtime);
}

int hf_version_is_current(const struct hf_file *file)
{
	const struct hf_version *version = &file->version;
	struct stat st;

	if (hf_sys.fstatat(file->dirfd, file->leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? !version->exists : -errno;
	return version->exists && st.st_ino == version->ino && st.st_dev == version->dev &&
	       st.st_size == version->size && same_time(st.st_mtim, version->mtime) &&
	       same_time(st.st_ctim, version->ctime);
}

int hf_version_same_content(const struct hf_file *file)
{
	uint64_t now;
	int r;

	if (!file->version.has_hash)
		return 1;
	r = hash_content(file->old_fd, &now);
	return r < 0 ? r : now == file->version.hash;
}

/* For file systems and kernels where copy_file_range does not do it. */
static int copy_by_hand(int from, off_t at, off_t len, int to)
{
	AUTO_FREE char *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	while (len > 0) {
		size_t want = len < (off_t)CHUNK ? (size_t)len : CHUNK;
		ssize_t n = hf_pread_all(from, chunk, want, at);
		int r;

		if (n <= 0)
			return (int)n;
		r = hf_write_all(to, chunk, (size_t)n);
		if (r < 0)
			return r;
		at += n;
		len -= n;
	}
	return 0;
}

int hf_content_copy(int from, off_t at, off_t len, int to)
{
	while (len > 0) {
		size_t want = len < (1 << 30) ? (size_t)len : (size_t)1 << 30;
		ssize_t n = hf_sys.copy_file_range(from, &at, to, NULL, want, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS ||
			      errno == EOPNOTSUPP || errno == EBADF))
			return copy_by_hand(from, at, len, to);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len -= n;
	}
	return 0;
}

int hf_content_equal(int a, int b)
{
	AUTO_FREE char *x = malloc(CHUNK);
	AUTO_FREE char *y = malloc(CHUNK);
	struct stat left, right;
	off_t at = 0;

	if (!x || !y)
		return -ENOMEM;
	if (hf_sys.fstat(a, &left) < 0 || hf_sys.fstat(b, &right) < 0)
		return -errno;
	if (left.st_size != right.st_size)
		return 0;
	for (;;) {
		ssize_t n = hf_pread_all(a, x, CHUNK, at);
		ssize_t m = n < 0 ? 0 : hf_pread_all(b, y, CHUNK, at);

		if (n < 0 || m < 0)
			return (int)(n < 0 ? n : m);
		if (n != m || memcmp(x, y, (size_t)n) != 0)
			return 0;
		if (n < (ssize_t)CHUNK)
			return 1;
		at += n;
	}
}
