/*
 * hook/settings/spans.h - where things stand in a JSON text, so that a text is edited and not written anew.
 *
 *     struct hf_item item = { 0 };
 *     while (hf_item_next(text, len, object_at, &item) > 0)
 *             ...                               item.at to item.end is the value
 *
 * jansson reads a text, and says nothing of places. These functions walk through a text that jansson has
 * accepted, or accepts without its comments, which count as blanks. They stay inside any other text as
 * well, and end.
 */
#ifndef HOOK_SETTINGS_SPANS_H
#define HOOK_SETTINGS_SPANS_H

#include <stddef.h>

/* A member of an object, or an element of an array. */
struct hf_item {
	size_t after;            /* just behind the bracket or comma before it; 0: none was found yet */
	size_t key_at, key_end;  /* with its quotes; both 0 in an array */
	size_t at, end;          /* its value */
	size_t next;             /* the comma or bracket behind it */
};

/* The first byte from `at` on that is neither blank nor comment; `len`: there is none. */
size_t hf_span_skip(const char *text, size_t len, size_t at);

/* The end of the comment that begins at `at`; `at` itself when none does. */
size_t hf_span_comment(const char *text, size_t len, size_t at);

/* The end of the string whose quote stands at `at`. */
size_t hf_span_string(const char *text, size_t len, size_t at);

/* The next item of the container whose bracket stands at `open`. 1; 0: there is none. */
int hf_item_next(const char *text, size_t len, size_t open, struct hf_item *item);

/* Is that the member of this name, however its letters are written? */
int hf_item_is(const char *text, const struct hf_item *item, const char *key);

/* Finds a member of the object at `open`. 1; 0: none; -EEXIST: there are several. */
int hf_item_find(const char *text, size_t len, size_t open, const char *key, struct hf_item *ret);

#endif
