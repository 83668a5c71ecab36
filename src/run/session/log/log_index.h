/*
 * run/session/log/log_index.h - beside each part of a log: when its bytes came, from which stream, in which attempt.
 *
 *     idx.<token of the run>.<offset of the part in the run's output>
 *
 * Records of 16 bytes, appended before the bytes that they speak of: a reader that has bytes has their record.
 * A record holds until the next one. A part without an index, or the bytes before its first record, are of unknown time.
 */
#ifndef RUN_SESSION_LOG_LOG_INDEX_H
#define RUN_SESSION_LOG_LOG_INDEX_H

#include <stdint.h>

#include "holdfast/run.h"

#define HF_LOG_MARK_SIZE  16
#define HF_LOG_MARKS_MAX  (2 * HF_LOG_MARK_SIZE) /* what one write to the log adds at most */
#define HF_LOG_MARKS_READ 128                    /* records that are read at once */

/* Being written. */
struct hf_log_index {
	int fd;           /* -1: none */
	uint64_t size;
	struct hf_log_span last; /* attempt 0: none was written to this part */
};

#define HF_LOG_INDEX_INIT { .fd = -1 }

/* Goes on with an index that is open: a torn record at its end is cut off. -1: there is none. */
void hf_log_index_take(struct hf_log_index *index, int fd);

/* What is written at `at` from now on. After a failure this part has no further records. */
void hf_log_index_note(struct hf_log_index *index, uint64_t at, const struct hf_log_span *span);

/* Being read, forwards. */
struct hf_log_cursor {
	int fd;               /* -1: none */
	uint64_t pos;         /* in the file: what is read next */
	struct hf_log_span span; /* of the records passed so far */
	size_t i, n;          /* in `marks` */
	unsigned char marks[HF_LOG_MARKS_READ * HF_LOG_MARK_SIZE];
};

#define HF_LOG_CURSOR_INIT { .fd = -1 }

/* Begins anew with this index, which is the cursor's then. */
void hf_log_cursor_take(struct hf_log_cursor *cursor, int fd);

/* What the byte at `at` is, which does not lie before the one of the last call. Returns where that ends; UINT64_MAX: not known yet. */
uint64_t hf_log_cursor_go(struct hf_log_cursor *cursor, uint64_t at, struct hf_log_span *ret);

#endif
