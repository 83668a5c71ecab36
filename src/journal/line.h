/*
 * journal/line.h - one record as a line of JSON, and back.
 *
 *     {"v":1,"seq":42,"ts":"…Z","pid":4711,"event":"note","name":"x",…,"x":"0123456789abcdef"}
 *
 * The checksum is XXH3-64 over all bytes before `,"x":"`, and always stands
 * last, so a line can be judged without parsing it.
 */
#ifndef JOURNAL_LINE_H
#define JOURNAL_LINE_H

#include <jansson.h>

#include "hf/base/buf.h"
#include "holdfast/journal.h"

#define HF_LINE_VERSION 1

/*
 * Put behind a torn tail before its newline: a record that lacked only the newline
 * was not acknowledged, and must not become valid by getting one.
 */
#define HF_TORN_END "!"

/* Sequence numbers stay exact in every JSON reader (2^53 - 1). */
#define HF_SEQ_MAX UINT64_C(9007199254740991)

/*
 * Checks event, name and fields against the table and appends their part of
 * the line to `body`: what comes behind "pid". Returns 0, HF_E_EVENT or -ENOMEM.
 */
int hf_line_body(struct hf_buf *body, enum hf_event event, const char *name,
		 const struct hf_field *fields, size_t n_fields, struct hf_err *err);

/* Appends the whole line with newline to `out`. Errors stick to the buffer. */
void hf_line_finish(struct hf_buf *out, uint64_t seq, struct hf_wall time, int32_t pid,
		    const struct hf_buf *body);

/*
 * Is this (without newline) a whole line that we wrote? Checks the checksum and
 * reads the sequence number. Returns 0 or HF_E_FORMAT.
 */
int hf_line_check(const char *line, size_t len, uint64_t *ret_seq);

/*
 * Checks and parses. On success *ret_root is a new reference that the record
 * borrows from; the line must live as long. Returns 0 or HF_E_FORMAT.
 */
int hf_line_decode(const char *line, size_t len, struct hf_record *ret, json_t **ret_root);

#endif
