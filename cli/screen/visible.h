/*
 * cli/screen/visible.h - makes the output of commands safe for a terminal.
 *
 * Text, newline, tab and colours (SGR, "ESC [ … m") pass unchanged. Other control bytes could change the
 * terminal (title, screen, answers typed at the prompt), so they are shown as "^[", "^G" and so on. Invalid
 * UTF-8 and control characters above 0x7f are shown as "\x9b". The input may be split at any byte.
 */
#ifndef CLI_SCREEN_VISIBLE_H
#define CLI_SCREEN_VISIBLE_H

#include "hf/base/buf.h"

#define VISIBLE_HELD_MAX 40 /* bytes of a colour sequence */

struct visible {
	char held[VISIBLE_HELD_MAX]; /* the start of an incomplete sequence or character */
	size_t n_held;
	int coloured; /* a colour is on */
};

/* Adds the visible form of `bytes` to `out`. */
void visible_add(struct visible *visible, const char *bytes, size_t n, struct hf_buf *out);

/* Ends the output: adds the held bytes and resets the colour. */
void visible_end(struct visible *visible, struct hf_buf *out);

#endif
