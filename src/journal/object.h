/*
 * journal/object.h - records as one JSON object with a checksum `x`, as in a line of the journal.
 *
 * Writing: the caller opens the object with `{"v":1`, adds members, and seals it. Reading: the first thing that
 * is wrong stays as `why`, and later reads do nothing; every member must be read.
 */
#ifndef JOURNAL_OBJECT_H
#define JOURNAL_OBJECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "hf/base/buf.h"
#include "holdfast/clock.h"

void hf_object_add_key(struct hf_buf *out, const char *key);
void hf_object_add_text(struct hf_buf *out, const char *key, const char *text);
void hf_object_add_number(struct hf_buf *out, const char *key, int64_t number);
void hf_object_add_time(struct hf_buf *out, const char *key, struct hf_wall time);

/* 16 digits as a text: numbers of the kernel may use all 64 bits, integers of JSON here do not. */
void hf_object_add_hex(struct hf_buf *out, const char *key, uint64_t number);

/* Adds the checksum of what was written from `start` on, and ends the object and its line. */
void hf_object_seal(struct hf_buf *out, size_t start);

struct hf_object {
	json_t *root;
	const char *why; /* the first thing that was wrong; NULL: nothing */
	size_t used;     /* members that were read: all must be */
};

/* Checks the sum and parses; `why` says what was wrong. To be ended by hf_object_done in any case. */
void hf_object_parse(struct hf_object *ret, const char *text, size_t len);
void hf_object_done(struct hf_object *object);

void hf_object_wrong(struct hf_object *object, const char *why);

/* The member, or NULL. */
json_t *hf_object_take(struct hf_object *object, const char *key);

/* From 0 to `max`. */
int64_t hf_object_take_number(struct hf_object *object, const char *key, int64_t max);

/* A text without NUL, shorter than `cap`; "" where it is wrong. Lives as long as the object. */
const char *hf_object_take_string(struct hf_object *object, const char *key, size_t cap);
void hf_object_take_text(struct hf_object *object, const char *key, char *out, size_t cap);
uint64_t hf_object_take_hex(struct hf_object *object, const char *key);

/* Of any date: the clock may have been wrong when it was written, or is wrong now. */
void hf_object_take_time(struct hf_object *object, const char *key, struct hf_wall *ret);

#endif
