/*
 * base/parse.h - numbers from outside, or a refusal; durations and sizes are in holdfast/parse.h.
 *
 * All take (pointer, length), accept only the whole of it, and write the result
 * only on success. No sign, space, locale or overflow gets through. They return
 * 0 or HF_E_SYNTAX.
 */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "hf/base/buf.h"
#include "holdfast/parse.h"

/* Decimal digits, at most `max`. A leading zero is fine here. */
int hf_parse_u64(const char *s, size_t len, uint64_t max, uint64_t *ret);

/* As hf_parse_u64, but "007" is refused: one number has one text. */
int hf_parse_u64_canonical(const char *s, size_t len, uint64_t max, uint64_t *ret);

/* As hf_parse_u64, with an optional '-' in front; the whole range of int64_t. */
int hf_parse_i64(const char *s, size_t len, int64_t *ret);

/* Exactly 16 lower-case hexadecimal digits, as hf_buf_add_hex64 writes them. */
int hf_parse_hex64(const char *s, size_t len, uint64_t *ret);

/* "400ms", "1.5s", "12s", "3m20s", "5h02m", "4d11h": for people, two units at most. */
void hf_buf_add_duration(struct hf_buf *b, int64_t ns);

#endif
