/* plan/tree/dirtree.c - reading and descending, by descriptor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS)
#define BATCH   ((size_t)32 << 10)

/* The kernel's own record; glibc's struct dirent64 has a fixed name. */
struct kernel_dent {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* What a listing keeps of one, one behind the other. */
struct kept {
	uint64_t ino;
	unsigned char type;
};

static int is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct hf_dent *)a)->name, ((const struct hf_dent *)b)->name);
}

/* File systems may leave the type out. */
static unsigned char type_of(int fd, const char *name)
{
	struct stat st;

	if (hf_sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

static int keep_batch(int fd, const char *batch, ssize_t len, struct hf_buf *text, size_t *n)
{
	for (ssize_t at = 0; at < len;) {
		const struct kernel_dent *d = (const void *)(batch + at);
		struct kept kept = { .ino = d->ino, .type = d->type };

		at += d->len;
		if (is_dots(d->name))
			continue;
		if (kept.type == DT_UNKNOWN)
			kept.type = type_of(fd, d->name);
		hf_buf_add(text, &kept, sizeof(kept));
		hf_buf_add(text, d->name, strlen(d->name) + 1);
		(*n)++;
	}
	return text->err;
}

static int index_text(struct hf_buf *text, size_t n, struct hf_listing *ret)
{
	struct hf_dent *entries = n ? calloc(n, sizeof(*entries)) : NULL;
	const char *at = text->s;

	if (n && !entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct kept kept;

		memcpy(&kept, at, sizeof(kept));
		entries[i] = (struct hf_dent){ .name = at + sizeof(kept), .ino = kept.ino,
					       .type = kept.type };
		at += sizeof(kept) + strlen(entries[i].name) + 1;
	}
	if (n > 1)
		qsort(entries, n, sizeof(*entries), by_name);
	*ret = (struct hf_listing){ .entries = entries, .n = n,
				    .text = text->cap ? text->s : NULL };
	*text = (struct hf_buf)HF_BUF_INIT;
	return 0;
}

int hf_listing_read(int fd, struct hf_listing *ret)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FREE char *batch = malloc(BATCH);
	size_t n = 0;
	ssize_t len;

	if (!batch)
		return -ENOMEM;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((len = hf_sys.getdents64(fd, batch, BATCH)) > 0) {
		int r = keep_batch(fd, batch, len, &text, &n);

		if (r < 0)
			return r;
	}
	return len < 0 ? -errno : index_text(&text, n, ret);
}

void hf_listing_done(struct hf_listing *listing)
{
	free(listing->entries);
	free(listing->text);
	*listing = (struct hf_listing){ 0 };
}

const struct hf_dent *hf_listing_find(const struct hf_listing *listing, const char *name)
{
	struct hf_dent key = { .name = name };

	return listing->n ? bsearch(&key, listing->entries, listing->n, sizeof(key), by_name) : NULL;
}

static int open_beneath(int dirfd, const char *path, int flags)
{
	int fd = hf_sys.openat2(dirfd, path, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE);

	return fd < 0 ? -errno : fd;
}

int hf_dirtree_open(int dirfd, const char *name)
{
	return open_beneath(dirfd, name[0] ? name : ".", O_RDONLY);
}

int hf_dirtree_descend(int rootfd, const char *path, size_t len)
{
	char piece[PATH_MAX];
	AUTO_FD at = -1;

	if (len == 0)
		return open_beneath(rootfd, ".", O_PATH);
	while (len > 0) {
		size_t take = len;
		int fd;

		if (take >= sizeof(piece)) {
			const char *slash = memrchr(path, '/', sizeof(piece) - 1);

			if (!slash)
				return -ENAMETOOLONG;
			take = (size_t)(slash - path);
		}
		memcpy(piece, path, take);
		piece[take] = '\0';
		fd = open_beneath(at < 0 ? rootfd : at, piece, O_PATH);
		if (fd < 0)
			return fd;
		hf_auto_close(&at);
		at = fd;
		path += take;
		len -= take;
		while (len > 0 && *path == '/') {
			path++;
			len--;
		}
	}
	return fd_take(&at);
}

int hf_dirtree_path_ok(const char *path, size_t len)
{
	while (len > 0) {
		const char *slash = memchr(path, '/', len);
		size_t part = slash ? (size_t)(slash - path) : len;

		if (part == 0 || part > NAME_MAX || memchr(path, '\0', part) ||
		    (path[0] == '.' && (part == 1 || (part == 2 && path[1] == '.'))))
			return 0;
		if (!slash)
			return 1;
		path += part + 1;
		len -= part + 1;
		if (len == 0)
			return 0; /* a slash at the end */
	}
	return 1;
}

int hf_dirtree_target_ok(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && len < PATH_MAX && hf_dirtree_path_ok(path + 1, len - 1);
}

const char *hf_dirtree_leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int hf_dirtree_look(int dirfd, const char *name, struct stat *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH);

	if (hf_sys.fstatat(dirfd, name, ret, flags) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

void hf_dirtree_proc_path(int dirfd, const char *name, char *out)
{
	/* Without the slash it would name the link in /proc. */
	(void)snprintf(out, HF_ENTRY_PATH_MAX, "/proc/self/fd/%d/%s", dirfd, name[0] ? name : ".");
}

int hf_dirtree_chmod(int dirfd, const char *name, uint64_t ino, mode_t mode)
{
	char path[HF_ENTRY_PATH_MAX];
	AUTO_FD fd = -1;
	struct stat st;

	/* A place, not a file: modes may forbid to open it, and a FIFO would block. */
	fd = hf_sys.openat(dirfd, name[0] ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || hf_sys.fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_ino != ino || S_ISLNK(st.st_mode))
		return -ESTALE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return hf_sys.chmod(path, mode & 07777) < 0 ? -errno : 0;
}
