/* plan/recovery/restored.c - the list of what was put back, as a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/plan/recovery/restored.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "holdfast/clock.h"

#define RESTORED_NEW "restored.new"

static const char magic[8] = { 'h', 'f', 'r', 'e', 's', 't', 'o', '1' };

struct head {
	char magic[8];
	uint64_t bytes, sum;
} __attribute__((packed));

struct row {
	uint64_t ino;
	int64_t ctime_ns;
	uint32_t path_len; /* a NUL stands behind the path */
} __attribute__((packed));

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hf_restored_entry *)a)->path,
		      ((const struct hf_restored_entry *)b)->path);
}

void hf_restored_done(struct hf_restored *restored)
{
	free(restored->entries);
	free(restored->memory);
	*restored = (struct hf_restored){ 0 };
}

void hf_restored_add(struct hf_buf *rows, const char *path, const struct stat *st)
{
	struct row row = { .ino = (uint64_t)st->st_ino, .ctime_ns = in_ns(st->st_ctim),
			   .path_len = (uint32_t)strlen(path) };

	hf_buf_add(rows, &row, sizeof(row));
	hf_buf_add(rows, path, row.path_len + 1);
}

/* How many rows these bytes are, or 0 when they are none. Fills `out` if it is not NULL. */
static size_t parse(const char *bytes, size_t len, struct hf_restored_entry *out)
{
	size_t n = 0;

	for (size_t at = 0; at < len; n++) {
		struct row row;

		if (len - at < sizeof(row))
			return 0;
		memcpy(&row, bytes + at, sizeof(row));
		at += sizeof(row);
		if (len - at <= row.path_len || bytes[at + row.path_len] != '\0' ||
		    memchr(bytes + at, '\0', row.path_len))
			return 0;
		if (out)
			out[n] = (struct hf_restored_entry){ bytes + at, row.ino, row.ctime_ns };
		at += row.path_len + 1;
	}
	return n;
}

static int index_bytes(char *bytes, size_t len, struct hf_restored *ret)
{
	size_t n = parse(bytes, len, NULL);
	struct hf_restored_entry *entries = n ? calloc(n, sizeof(*entries)) : NULL;

	if (n && !entries)
		return -ENOMEM;
	if (n) {
		(void)parse(bytes, len, entries);
		qsort(entries, n, sizeof(*entries), by_path);
	}
	*ret = (struct hf_restored){ .entries = entries, .n = n };
	return 0;
}

int hf_restored_load(int sandbox_fd, struct hf_restored *ret)
{
	AUTO_FREE char *bytes = NULL;
	AUTO_FD fd = -1;
	struct head head;
	struct stat st;
	ssize_t n;
	int r = hf_open_private(sandbox_fd, HF_RESTORED, O_RDONLY, HF_RESTORED, &fd, &st, NULL);

	*ret = (struct hf_restored){ 0 };
	if (r < 0)
		return r == -ENOENT || r < -4095 ? 0 : r;
	if (st.st_size < (off_t)sizeof(head) || (uint64_t)st.st_size > HF_BUF_LIMIT)
		return 0;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	n = hf_pread_all(fd, bytes, (size_t)st.st_size, 0);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.bytes != (uint64_t)n - sizeof(head) ||
	    head.sum != XXH3_64bits(bytes + sizeof(head), (size_t)head.bytes))
		return 0;
	r = index_bytes(bytes + sizeof(head), (size_t)head.bytes, ret);
	if (r == 0)
		ret->memory = ptr_take(&bytes);
	return r;
}

static const struct hf_restored_entry *find(const struct hf_restored *restored, const char *path)
{
	struct hf_restored_entry key = { .path = path };

	return restored->n ? bsearch(&key, restored->entries, restored->n, sizeof(key), by_path) : NULL;
}

int hf_restored_is(const struct hf_restored *restored, const char *path, const struct stat *st)
{
	const struct hf_restored_entry *e = restored ? find(restored, path) : NULL;

	return e && e->ino == (uint64_t)st->st_ino && e->ctime_ns == in_ns(st->st_ctim);
}

/* The rows of before whose paths are not among the new ones. */
static int keep_others(int sandbox_fd, const struct hf_buf *rows, struct hf_buf *out)
{
	AUTO(hf_restored_done) struct hf_restored new = { 0 };
	AUTO(hf_restored_done) struct hf_restored old = { 0 };
	int r = index_bytes(rows->s, rows->len, &new);

	if (r == 0)
		r = hf_restored_load(sandbox_fd, &old);
	for (size_t i = 0; r == 0 && i < old.n; i++) {
		const struct hf_restored_entry *e = &old.entries[i];
		struct stat st = { .st_ino = e->ino };

		if (find(&new, e->path))
			continue;
		st.st_ctim.tv_sec = e->ctime_ns / HF_SEC;
		st.st_ctim.tv_nsec = e->ctime_ns % HF_SEC;
		hf_restored_add(out, e->path, &st);
	}
	return r < 0 ? r : out->err;
}

int hf_restored_write(int sandbox_fd, const struct hf_buf *rows)
{
	AUTO(hf_buf_done) struct hf_buf bytes = HF_BUF_INIT;
	struct head head;
	int r;

	memcpy(head.magic, magic, sizeof(magic));
	hf_buf_add(&bytes, &head, sizeof(head));
	hf_buf_add(&bytes, rows->s, rows->len);
	r = bytes.err ? bytes.err : keep_others(sandbox_fd, rows, &bytes);
	if (r < 0)
		return r;
	head.bytes = bytes.len - sizeof(head);
	head.sum = XXH3_64bits(bytes.s + sizeof(head), (size_t)head.bytes);
	memcpy(bytes.s, &head, sizeof(head));
	return hf_replace_file(sandbox_fd, HF_RESTORED, RESTORED_NEW, bytes.s, bytes.len, 0);
}
