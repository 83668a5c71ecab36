/* cli/screen/visible.c - shows control bytes as text. */
#include <string.h>
#include <sys/types.h>

#include "screen/visible.h"

#define ESC 0x1b

static void add_hex(struct hf_buf *out, unsigned char byte)
{
	hf_buf_add_format(out, "\\x%02x", byte);
}

static void add_control(struct hf_buf *out, unsigned char byte)
{
	hf_buf_add_char(out, '^');
	hf_buf_add_char(out, (char)(byte ^ 0x40));
}

/* Returns the size of a character with this first byte; 0 if no character begins with it. */
static size_t char_size(unsigned char first)
{
	return first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 :
	       first >= 0xf0 && first < 0xf5			  ? 4 : 0;
}

/*
 * Returns the length of the colour sequence at `s`; 0 if it is not one; -1 if more bytes could
 * make it one.
 */
static ssize_t colour_size(const char *s, size_t n)
{
	size_t i = 2;

	if (n >= 2 && s[1] != '[')
		return 0;
	if (n < 2)
		return -1;
	while (i < n && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';' || s[i] == ':'))
		i++;
	/* Longer than any real sequence, and than the held buffer. */
	if (i >= VISIBLE_HELD_MAX - 1)
		return 0;
	if (i < n)
		return s[i] == 'm' ? (ssize_t)i + 1 : 0;
	return -1;
}

/* Returns 1 for "ESC [ m" and "ESC [ 0 m", which reset colours. */
static int is_reset(const char *s, size_t n)
{
	return strspn(s + 2, "0;") == n - 3;
}

/* Adds one unit of `s`. Returns the number of bytes used; 0 if more are needed. `all`: no more will follow. */
static size_t add_one(struct visible *visible, const char *s, size_t n, int all, struct hf_buf *out)
{
	unsigned char c = (unsigned char)s[0];
	size_t size = char_size(c);
	ssize_t colour;

	if (c == '\n' || c == '\t') {
		hf_buf_add_char(out, (char)c);
		return 1;
	}
	if (c == '\r' && n < 2 && !all)
		return 0;
	/* CR LF is a line end. */
	if (c == '\r' && n >= 2 && s[1] == '\n')
		return 1;
	if (c == ESC) {
		colour = colour_size(s, n);
		if (colour < 0 && !all)
			return 0;
		if (colour > 0) {
			hf_buf_add(out, s, (size_t)colour);
			visible->coloured = !is_reset(s, (size_t)colour);
			return (size_t)colour;
		}
	}
	if (c < 0x20 || c == 0x7f) {
		add_control(out, c);
		return 1;
	}
	if (size > n && !all)
		return 0;
	/* U+0080 to U+009F are control characters too. */
	if (size == 0 || size > n || hf_utf8_char((const unsigned char *)s, n) != size ||
	    (c == 0xc2 && (unsigned char)s[1] < 0xa0)) {
		add_hex(out, c);
		return 1;
	}
	hf_buf_add(out, s, size);
	return size;
}

/* Adds all complete units. Returns the number of bytes used. */
static size_t add_all(struct visible *visible, const char *s, size_t n, int all, struct hf_buf *out)
{
	size_t at = 0;

	while (at < n) {
		size_t taken = add_one(visible, s + at, n - at, all, out);

		if (taken == 0)
			break;
		at += taken;
	}
	return at;
}

void visible_add(struct visible *visible, const char *bytes, size_t n, struct hf_buf *out)
{
	size_t at = 0;

	/* The held bytes grow one by one until they are a complete unit. */
	while (visible->n_held > 0 && at < n) {
		size_t taken;

		visible->held[visible->n_held++] = bytes[at++];
		taken = add_all(visible, visible->held, visible->n_held, 0, out);
		visible->n_held -= taken;
		memmove(visible->held, visible->held + taken, visible->n_held);
	}
	if (at == n)
		return;
	at += add_all(visible, bytes + at, n - at, 0, out);
	visible->n_held = n - at;
	memcpy(visible->held, bytes + at, visible->n_held);
}

void visible_end(struct visible *visible, struct hf_buf *out)
{
	(void)add_all(visible, visible->held, visible->n_held, 1, out);
	visible->n_held = 0;
	if (visible->coloured)
		hf_buf_add_text(out, "\033[0m");
	visible->coloured = 0;
}
