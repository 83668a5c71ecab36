/*
 * cli/screen/visible.h - output of commands, made safe for a terminal.
 *
 * Newline, tab and colours (SGR, "ESC [ … m") go through, text too. Other control bytes would steer the
 * terminal (title, screen, answers that are typed at the prompt): they are shown as "^[",
 * "^G", …; what is not UTF-8, and the control characters above 0x7f, as "\x9b". The
 * bytes may be cut into pieces anywhere.
 */
#ifndef CLI_SCREEN_VISIBLE_H
#define CLI_SCREEN_VISIBLE_H

#include "hf/base/buf.h"

#define VISIBLE_HELD_MAX 40 /* bytes of a colour sequence */

struct visible {
	char held[VISIBLE_HELD_MAX]; /* the beginning of a sequence or of a character */
	size_t n_held;
	int coloured; /* a colour is on */
};

/* Adds what `bytes` look like to `out`. */
void visible_add(struct visible *visible, const char *bytes, size_t n, struct hf_buf *out);

/* The end: what was held, and the colour off. */
void visible_end(struct visible *visible, struct hf_buf *out);

#endif
