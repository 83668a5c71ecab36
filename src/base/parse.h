/*
 * base/parse.h - numbers, durations and sizes from outside, or a refusal.
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

/* Decimal digits, at most `max`. A leading zero is fine here. */
int hf_parse_u64(const char *s, size_t len, uint64_t max, uint64_t *ret);

/* As hf_parse_u64, but "007" is refused: one number has one text. */
int hf_parse_u64_canonical(const char *s, size_t len, uint64_t max, uint64_t *ret);

/* As hf_parse_u64, with an optional '-' in front; the whole range of int64_t. */
int hf_parse_i64(const char *s, size_t len, int64_t *ret);

/* Exactly 16 lower-case hexadecimal digits, as hf_buf_add_hex64 writes them. */
int hf_parse_hex64(const char *s, size_t len, uint64_t *ret);

/* "500ms 30s 5m 1h 2d" or plain seconds, each with an optional fraction. In ns. */
int hf_parse_duration(const char *s, size_t len, int64_t *ret_ns);

/* Bytes, with an optional K, M or G (powers of 1024). */
int hf_parse_size(const char *s, size_t len, uint64_t *ret);

/* "400ms", "1.5s", "12s", "3m20s", "5h02m", "4d11h": for people, two units at most. */
void hf_buf_add_duration(struct hf_buf *b, int64_t ns);

#endif
