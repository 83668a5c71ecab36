/* plan/target/manifest.c - writing and reading the list of what was copied. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"

#define MANIFEST_NEW ".manifest.new"
#define BYTES_MAX    ((uint64_t)4 << 30)

void hf_manifest_done(struct hf_manifest *manifest)
{
	free(manifest->entries);
	free(manifest->memory);
	*manifest = (struct hf_manifest){ 0 };
}

int hf_manifest_save(int sandbox_fd, const struct hf_manifest *manifest)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_manifest_head head = { .n = manifest->n };

	memcpy(head.magic, "hfmanif1", sizeof(head.magic));
	hf_buf_add(&out, &head, sizeof(head));
	for (size_t i = 0; i < manifest->n; i++) {
		struct hf_manifest_row row = manifest->entries[i].row;

		row.path_len = (uint32_t)strlen(manifest->entries[i].path);
		hf_buf_add(&out, &row, sizeof(row));
		hf_buf_add(&out, manifest->entries[i].path, row.path_len);
	}
	if (out.err)
		return out.err;
	head.bytes = out.len - sizeof(head);
	head.sum = XXH3_64bits(out.s + sizeof(head), (size_t)head.bytes);
	memcpy(out.s, &head, sizeof(head));
	return hf_replace_file(sandbox_fd, HF_MANIFEST, MANIFEST_NEW, out.s, out.len, 0);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hf_manifest_entry *)a)->path,
		      ((const struct hf_manifest_entry *)b)->path);
}

/* Splits the bytes behind the head into entries; paths get their NULs by being moved down. */
static int split(struct hf_manifest *m, const struct hf_manifest_head *head, char *bytes)
{
	uint64_t left = head->bytes;
	char *out = bytes;

	for (m->n = 0; m->n < head->n; m->n++) {
		struct hf_manifest_entry *e = &m->entries[m->n];

		if (left < sizeof(e->row))
			return HF_E_FORMAT;
		memcpy(&e->row, bytes, sizeof(e->row));
		bytes += sizeof(e->row);
		left -= sizeof(e->row);
		if (left < e->row.path_len || e->row.path_len >= 4096 ||
		    memchr(bytes, '\0', e->row.path_len))
			return HF_E_FORMAT;
		memmove(out, bytes, e->row.path_len);
		bytes += e->row.path_len;
		left -= e->row.path_len;
		e->path = out;
		out += e->row.path_len;
		*out++ = '\0'; /* there is room: the row before it was longer than this */
	}
	return left == 0 ? 0 : HF_E_FORMAT;
}

static int read_all(int fd, struct hf_manifest *m)
{
	struct hf_manifest_head head;
	struct stat st;

	if (hf_sys.fstat(fd, &st) < 0)
		return -errno;
	if (hf_pread_all(fd, (char *)&head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.magic, "hfmanif1", sizeof(head.magic)) != 0 ||
	    (uint64_t)st.st_size > BYTES_MAX || head.bytes != (uint64_t)st.st_size - sizeof(head) ||
	    head.n > head.bytes / sizeof(struct hf_manifest_row))
		return HF_E_FORMAT;
	m->memory = malloc((size_t)head.bytes + 1);
	m->entries = calloc((size_t)head.n + 1, sizeof(*m->entries));
	if (!m->memory || !m->entries)
		return -ENOMEM;
	if (hf_pread_all(fd, m->memory, (size_t)head.bytes, sizeof(head)) != (ssize_t)head.bytes ||
	    XXH3_64bits(m->memory, (size_t)head.bytes) != head.sum)
		return HF_E_FORMAT;
	return split(m, &head, m->memory);
}

int hf_manifest_load(int sandbox_fd, struct hf_manifest *ret, struct hf_err *err)
{
	AUTO(hf_manifest_done) struct hf_manifest m = { 0 };
	AUTO_FD fd = -1;
	int r = hf_open_private(sandbox_fd, HF_MANIFEST, O_RDONLY, HF_MANIFEST, &fd, NULL, err);

	if (r < 0)
		return r;
	r = read_all(fd, &m);
	if (r == HF_E_FORMAT)
		return FAIL(err, r, "manifest", "sandbox", "the list of what was copied is damaged");
	if (r < 0)
		return hf_fail_sys(err, -r, "read", HF_MANIFEST);
	if (m.n > 0)
		qsort(m.entries, m.n, sizeof(*m.entries), by_path);
	*ret = m;
	m = (struct hf_manifest){ 0 };
	return 0;
}

const struct hf_manifest_entry *hf_manifest_find(const struct hf_manifest *manifest,
						 const char *path)
{
	struct hf_manifest_entry key = { .path = path };

	return manifest->n == 0 ? NULL :
				  bsearch(&key, manifest->entries, manifest->n, sizeof(key), by_path);
}

static int64_t in_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

int hf_manifest_lost(const struct hf_manifest_row *row, const struct stat *copy)
{
	return S_ISREG(row->mode) && row->copy_ino == (uint64_t)copy->st_ino && row->mode == copy->st_mode &&
	       in_ns(copy->st_ctim) <= row->copy_ctime_ns && (uint64_t)copy->st_size < row->size;
}

int hf_manifest_untouched(const struct hf_manifest_row *row, const struct stat *copy)
{
	return row->copy_ino == (uint64_t)copy->st_ino && row->mode == copy->st_mode &&
	       row->copy_ctime_ns == in_ns(copy->st_ctim) &&
	       row->copy_mtime_ns == in_ns(copy->st_mtim) &&
	       (S_ISDIR(copy->st_mode) || row->size == (uint64_t)copy->st_size);
}
