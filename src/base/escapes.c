/* base/escapes.c - the escape sequences of a terminal. */
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/escapes.h"

#define BEL 0x07
#define CAN 0x18
#define SUB 0x1a
#define ESC 0x1b

/* -- sequences ------------------------------------------------------------------------ */

static enum hf_escape_step keep(struct hf_escapes *e, char c)
{
	if (e->len < sizeof(e->kept))
		e->kept[e->len++] = c;
	e->total++;
	return HF_ESCAPE_INSIDE;
}

static enum hf_escape_step begin(struct hf_escapes *e)
{
	e->state = HF_ESCAPES_ESCAPE;
	e->len = e->total = 0;
	return keep(e, ESC);
}

static enum hf_escape_step end(struct hf_escapes *e, enum hf_escape_kind kind)
{
	e->state = HF_ESCAPES_TEXT;
	e->kind = kind;
	return HF_ESCAPE_END;
}

static enum hf_escape_step end_string(struct hf_escapes *e)
{
	return end(e, e->kept[1] == ']' ? HF_ESCAPE_OSC : HF_ESCAPE_STRING);
}

/* The first byte after ESC. An intermediate byte, as in "ESC ( B", is followed by another one. */
static enum hf_escape_step take_first(struct hf_escapes *e, char c)
{
	if (c == '[')
		e->state = HF_ESCAPES_CSI;
	else if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X')
		e->state = HF_ESCAPES_STRING;
	else if (c < ' ' || c > '/')
		return end(e, HF_ESCAPE_SHORT);
	return HF_ESCAPE_INSIDE;
}

static enum hf_escape_step take_inside(struct hf_escapes *e, char c)
{
	if (c == CAN || c == SUB)
		return end(e, HF_ESCAPE_NONE);
	/* The preceding ESC begins another sequence. */
	if (e->state == HF_ESCAPES_STRING_ESCAPE && c != '\\')
		(void)begin(e);
	if (c == ESC && e->state != HF_ESCAPES_STRING)
		return begin(e);
	(void)keep(e, c);
	if (e->total >= HF_ESCAPE_LONGEST)
		return end(e, HF_ESCAPE_NONE);
	switch (e->state) {
	case HF_ESCAPES_ESCAPE:
		return take_first(e, c);
	case HF_ESCAPES_CSI:
		return c >= '@' && c <= '~' ? end(e, HF_ESCAPE_CSI) : HF_ESCAPE_INSIDE;
	case HF_ESCAPES_STRING:
		if (c == ESC)
			e->state = HF_ESCAPES_STRING_ESCAPE;
		return c == BEL ? end_string(e) : HF_ESCAPE_INSIDE;
	case HF_ESCAPES_STRING_ESCAPE:
		return end_string(e);
	case HF_ESCAPES_TEXT:
	default:
		return HF_ESCAPE_TEXT;
	}
}

enum hf_escape_step hf_escape_take(struct hf_escapes *e, char c)
{
	if (e->state != HF_ESCAPES_TEXT)
		return take_inside(e, c);
	return c == ESC ? begin(e) : HF_ESCAPE_TEXT;
}

const char *hf_escape_osc(const struct hf_escapes *e, size_t *ret_len)
{
	size_t end_len = e->len > 0 && e->kept[e->len - 1] == BEL ? 1 : 2;

	if (e->kind != HF_ESCAPE_OSC || e->len < e->total)
		return NULL;
	*ret_len = e->len - 2 - end_len;
	return e->kept + 2;
}

/* -- text ----------------------------------------------------------------------------- */

/* CSI sequences that move the cursor. */
static int moves_cursor(const struct hf_escapes *e)
{
	return e->kind == HF_ESCAPE_CSI && strchr("ABCDEFGHIZ`adef", e->kept[e->len - 1]) != NULL;
}

/* U+202A to U+202E and U+2066 to U+2069 change the text direction and can disguise a command. */
static int turns_text(const unsigned char *c, size_t size)
{
	return size == 3 && c[0] == 0xe2 &&
	       ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

size_t hf_plain_text(char *out, size_t cap, const char *text, size_t len)
{
	struct hf_escapes e = { 0 };
	size_t at = 0, n = 0;

	while (at < len) {
		const unsigned char *c = (const unsigned char *)text + at;
		size_t size = hf_utf8_char(c, len - at);
		int is_c1 = size == 2 && c[0] == 0xc2 && c[1] < 0xa0;
		enum hf_escape_step step = HF_ESCAPE_INSIDE;
		const char *add = "?";
		size_t add_len = 1;

		if (is_c1)
			(void)hf_escape_take(&e, ESC);
		for (size_t i = is_c1; i < (size ? size : 1); i++)
			step = hf_escape_take(&e, (char)(is_c1 ? c[1] - 0x40 : c[i]));
		at += size ? size : 1;
		if (step == HF_ESCAPE_INSIDE || (step == HF_ESCAPE_END && !moves_cursor(&e)))
			continue;
		if (step == HF_ESCAPE_END) {
			if (n == 0 || out[n - 1] == ' ')
				continue;
			add = " ";
		} else if (size > 0 && *c >= 0x20 && *c != 0x7f && !turns_text(c, size)) {
			add = (const char *)c;
			add_len = size;
		}
		if (n + add_len >= cap)
			break;
		memcpy(out + n, add, add_len);
		n += add_len;
	}
	out[n] = '\0';
	return n;
}
