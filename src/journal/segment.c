/* journal/segment.c - listing segments and finding a segment's first and last record. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/journal/line.h"
#include "hf/journal/segment.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define PREFIX "events."
#define SUFFIX ".jsonl"
#define DIGITS 20

/* No more than this of a segment is read at once. Behind it, the counters tell how far numbers went. */
#define WINDOW_MAX (UINT64_C(16) << 20)

void hf_segment_name(uint64_t first, char out[HF_SEGMENT_NAME_MAX])
{
	(void)snprintf(out, HF_SEGMENT_NAME_MAX, PREFIX "%0*llu" SUFFIX, DIGITS,
		       (unsigned long long)first);
}

static int parse_name(const char *name, uint64_t *ret)
{
	const size_t prefix = sizeof(PREFIX) - 1, suffix = sizeof(SUFFIX) - 1;

	return strlen(name) == prefix + DIGITS + suffix && memcmp(name, PREFIX, prefix) == 0 &&
	       strcmp(name + prefix + DIGITS, SUFFIX) == 0 &&
	       hf_parse_u64(name + prefix, DIGITS, UINT64_MAX, ret) == 0;
}

static int by_first(const void *a, const void *b)
{
	uint64_t x = ((const struct hf_segment *)a)->first;
	uint64_t y = ((const struct hf_segment *)b)->first;

	return x < y ? -1 : x > y;
}

void hf_segment_list_done(struct hf_segment_list *list)
{
	free(list->items);
	*list = (struct hf_segment_list){ 0 };
}

int hf_segment_list(int dirfd, struct hf_segment_list *ret)
{
	AUTO(hf_segment_list_done) struct hf_segment_list list = { 0 };
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	size_t cap = 0;
	int r = hf_open_dir(dirfd, ".", &dir);

	if (r < 0)
		return r;
	while ((errno = 0, entry = readdir(dir))) {
		struct hf_segment segment = { 0 };
		struct stat st;

		if (!parse_name(entry->d_name, &segment.first))
			continue;
		if (hf_sys.fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue; /* removed meanwhile */
			return -errno;
		}
		segment.bytes = (uint64_t)st.st_size;
		segment.allocated = (uint64_t)st.st_blocks * 512;
		if (segment.allocated > segment.bytes)
			segment.allocated = segment.bytes;
		if (list.count == cap) {
			size_t grown_cap = cap ? cap * 2 : 16;
			struct hf_segment *grown =
				realloc(list.items, grown_cap * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			list.items = grown;
			cap = grown_cap;
		}
		list.items[list.count++] = segment;
	}
	if (errno)
		return -errno;
	if (list.count > 1)
		qsort(list.items, list.count, sizeof(list.items[0]), by_first);
	*ret = list;
	list = (struct hf_segment_list){ 0 };
	return 0;
}

int hf_segment_tail(int fd, uint64_t size, struct hf_tail *ret)
{
	AUTO(hf_buf_done) struct hf_buf buf = HF_BUF_INIT;
	struct hf_tail tail = { 0 };
	uint64_t window = 4096;

	/*
	 * Normally the last line lies in the first small window. Behind a crash
	 * there may be garbage of any length: then look further back.
	 */
	for (;; window *= 8) {
		uint64_t from = window < size ? size - window : 0;
		size_t len = (size_t)(size - from), end;
		ssize_t n;

		if (size == 0) {
			*ret = tail;
			return 0;
		}
		hf_buf_reset(&buf);
		if (hf_buf_reserve(&buf, len) < 0)
			return buf.err;
		n = hf_pread_all(fd, buf.s, len, (off_t)from);
		if (n < 0)
			return (int)n;
		if ((size_t)n != len)
			return -EAGAIN; /* it shrank under us: look again */
		/* A hole at the end, of any size: go on before it. */
		if (!tail.torn && hf_is_zero(buf.s, len) && len > 1) {
			tail.torn = 1;
			size = (uint64_t)hf_data_end(fd, (off_t)size);
			window = 4096 / 8;
			continue;
		}
		tail.torn = tail.torn || buf.s[len - 1] != '\n';
		for (end = len; end > 0;) {
			const char *newline = memrchr(buf.s, '\n', end);
			const char *before;
			size_t start;

			if (!newline)
				break;
			end = (size_t)(newline - buf.s);
			before = end ? memrchr(buf.s, '\n', end) : NULL;
			start = before ? (size_t)(before - buf.s) + 1 : 0;
			if (!before && from > 0)
				break; /* the line begins before the window */
			if (hf_line_check(buf.s + start, end - start, &tail.seq) == 0) {
				*ret = tail;
				return 0;
			}
		}
		if (from == 0 || window >= WINDOW_MAX) {
			tail.seq = 0;
			*ret = tail;
			return 0;
		}
	}
}

int hf_segment_first(int fd, uint64_t size, uint64_t *ret_seq)
{
	AUTO(hf_buf_done) struct hf_buf buf = HF_BUF_INIT;
	uint64_t window = HF_JOURNAL_LINE_MAX;
	off_t at = hf_hole_end(fd, 0, (off_t)size);

	size -= (uint64_t)at;
	for (;; window *= 8) {
		size_t len = (size_t)(window < size ? window : size), start = 0;
		const char *newline;
		ssize_t n;

		hf_buf_reset(&buf);
		if (hf_buf_reserve(&buf, len) < 0)
			return buf.err;
		n = hf_pread_all(fd, buf.s, len, at);
		if (n < 0)
			return (int)n;
		while ((newline = memchr(buf.s + start, '\n', (size_t)n - start))) {
			size_t end = (size_t)(newline - buf.s);

			if (hf_line_check(buf.s + start, end - start, ret_seq) == 0)
				return 0;
			start = end + 1;
		}
		if (len == size || window >= WINDOW_MAX) {
			*ret_seq = 0;
			return 0;
		}
	}
}
