/*
 * hook/settings/settings_text.h - changing a JSON text without touching the rest of it.
 *
 * `open` is where an opening bracket stands; an item (spans.h) is a member of what it opens. All return 0 or -ENOMEM.
 */
#ifndef HOOK_SETTINGS_SETTINGS_TEXT_H
#define HOOK_SETTINGS_SETTINGS_TEXT_H

#include <jansson.h>

#include "hf/base/buf.h"
#include "hf/hook/settings/spans.h"

/* How the text is written. */
struct hf_text_style {
	char unit[17];   /* of indentation */
	const char *eol; /* "\n" or "\r\n" */
};

struct hf_text_style hf_text_style_of(const struct hf_buf *text, size_t root);

/* The value as a person writes it: a line for each member. */
int hf_text_add_value(struct hf_buf *out, json_t *value, const struct hf_text_style *style, unsigned depth);

/* Replaces from..to by `len` bytes. */
int hf_text_splice(struct hf_buf *text, size_t from, size_t to, const char *bytes, size_t len);

/* Puts a member directly behind the bracket. `key` NULL: into an array. */
int hf_text_put_first(struct hf_buf *text, size_t open, const char *key, json_t *value, const struct hf_text_style *style,
		      unsigned depth);

/* Takes an item out, with the comma that goes with it. Comments around it stay. */
int hf_text_take_item(struct hf_buf *text, size_t open, const struct hf_item *item);

/* Where the item begins: with its key, if it has one. */
size_t hf_item_begin(const struct hf_item *item);

/* Is there nothing but white space? */
int hf_text_is_blank(const struct hf_buf *text, size_t from, size_t to);

#endif
