/* run/session/log/log_index.c - records of when output came, from which stream and in which attempt. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/session/log/log_index.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* Output of one stream that comes within this time has one record. */
#define SAME_NS (5 * HF_MSEC)

/*
 * A record: where in the run's output it begins, and a word. Its two highest bits are the stream, the rest the time in
 * microseconds; with stream 0 the rest is the number of the attempt.
 */
#define STREAM_SHIFT 62
#define VALUE_MASK   ((UINT64_C(1) << STREAM_SHIFT) - 1)

static void put_mark(unsigned char *to, uint64_t at, uint64_t word)
{
	at = htole64(at);
	word = htole64(word);
	memcpy(to, &at, sizeof(at));
	memcpy(to + sizeof(at), &word, sizeof(word));
}

/* -- writing ---------------------------------------------------------------------- */

void hf_log_index_take(struct hf_log_index *index, int fd)
{
	struct stat st;

	hf_auto_close(&index->fd);
	*index = (struct hf_log_index){ .fd = fd };
	if (fd < 0)
		return;
	if (hf_stat_at(fd, "", &st) < 0) {
		hf_auto_close(&index->fd);
		return;
	}
	index->size = (uint64_t)st.st_size - (uint64_t)st.st_size % HF_LOG_MARK_SIZE;
	if (index->size != (uint64_t)st.st_size && ftruncate(fd, (off_t)index->size) < 0)
		hf_auto_close(&index->fd);
}

void hf_log_index_note(struct hf_log_index *index, uint64_t at, const struct hf_log_span *span)
{
	unsigned char marks[HF_LOG_MARKS_MAX];
	int64_t since = span->at.ns - index->last.at.ns;
	size_t n = 0;

	if (index->fd < 0)
		return;
	if (span->attempt != index->last.attempt) {
		put_mark(marks, at, span->attempt);
		n += HF_LOG_MARK_SIZE;
	} else if (span->stream == index->last.stream && since >= 0 && since < SAME_NS) {
		return;
	}
	put_mark(marks + n, at, (uint64_t)span->stream << STREAM_SHIFT | ((uint64_t)span->at.ns / 1000 & VALUE_MASK));
	n += HF_LOG_MARK_SIZE;
	if (hf_write_all(index->fd, (const char *)marks, n) < 0) {
		/* The next one is tried again, behind whole records. */
		if (ftruncate(index->fd, (off_t)index->size) < 0)
			hf_auto_close(&index->fd);
		return;
	}
	index->size += n;
	index->last = *span;
}

/* -- reading ---------------------------------------------------------------------- */

void hf_log_cursor_take(struct hf_log_cursor *cursor, int fd)
{
	hf_auto_close(&cursor->fd);
	cursor->fd = fd;
	cursor->pos = 0;
	cursor->i = cursor->n = 0;
	cursor->span = (struct hf_log_span){ .stream = HF_LOG_UNKNOWN };
}

/* 1 when there are records. A hole that was planted is passed over. */
static int fill(struct hf_log_cursor *cursor)
{
	struct stat st;
	ssize_t n;

	if (cursor->fd < 0)
		return 0;
	for (;;) {
		off_t end;

		do
			n = hf_sys.pread(cursor->fd, cursor->marks, sizeof(cursor->marks), (off_t)cursor->pos);
		while (n < 0 && errno == EINTR);
		cursor->i = 0;
		cursor->n = n > 0 ? (size_t)n / HF_LOG_MARK_SIZE : 0;
		if (cursor->n < HF_LOG_MARKS_READ || !hf_is_zero((const char *)cursor->marks, sizeof(cursor->marks)) ||
		    hf_stat_at(cursor->fd, "", &st) < 0)
			break;
		end = hf_hole_end(cursor->fd, (off_t)cursor->pos, st.st_size);
		end -= end % HF_LOG_MARK_SIZE;
		if (end <= (off_t)cursor->pos)
			break;
		cursor->pos = (uint64_t)end;
	}
	cursor->pos += cursor->n * HF_LOG_MARK_SIZE;
	return cursor->n > 0;
}

uint64_t hf_log_cursor_go(struct hf_log_cursor *cursor, uint64_t at, struct hf_log_span *ret)
{
	uint64_t border = UINT64_MAX;

	while (cursor->i < cursor->n || fill(cursor)) {
		const unsigned char *mark = cursor->marks + cursor->i * HF_LOG_MARK_SIZE;
		uint64_t word;

		memcpy(&border, mark, sizeof(border));
		memcpy(&word, mark + sizeof(border), sizeof(word));
		border = le64toh(border);
		word = le64toh(word);
		if (border > at)
			break;
		border = UINT64_MAX;
		cursor->i++;
		if (word >> STREAM_SHIFT == 0) {
			cursor->span.attempt = (uint32_t)word;
		} else {
			cursor->span.stream = (enum hf_log_stream)(word >> STREAM_SHIFT);
			cursor->span.at.ns = (int64_t)((word & VALUE_MASK) % (INT64_MAX / 1000)) * 1000;
		}
	}
	*ret = cursor->span;
	return border;
}
