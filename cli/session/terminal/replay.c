/* cli/session/terminal/replay.c - removes terminal queries from a terminal's history. */
#include <string.h>

#include "session/terminal/replay.h"

#define ENQ 0x05 /* a query of one byte */

/* ESC [ … final: status and cursor (n), attributes (c), size and title (t), version (q), modes (p), colours (x), keyboard (u). */
static int is_question(const char *sequence, size_t n)
{
	char final = sequence[n - 1], mark = n > 3 ? sequence[2] : '\0';

	switch (final) {
	case 'n':
	case 'c':
	case 't':
	case 'x':
		return 1;
	case 'q':
		return mark == '>';
	case 'u':
		return mark == '?';
	case 'p':
		return n > 3 && sequence[n - 2] == '$';
	default:
		return 0;
	}
}

/* A longer sequence is dropped. */
static int is_shown(const struct hf_escapes *e)
{
	if (e->len < e->total)
		return 0;
	switch (e->kind) {
	case HF_ESCAPE_SHORT:
		return e->kept[e->len - 1] != 'Z';
	case HF_ESCAPE_CSI:
		return !is_question(e->kept, e->len);
	case HF_ESCAPE_OSC:
		/* ESC ] … sets a title or a colour; with "?" it is a query. */
		return !memchr(e->kept, '?', e->len);
	case HF_ESCAPE_NONE:
	case HF_ESCAPE_STRING: /* ESC P, ESC _ and ESC ^ talk to programs */
	default:
		return 0;
	}
}

void replay_add(struct replay *replay, const char *bytes, size_t n, struct hf_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		enum hf_escape_step step = hf_escape_take(&replay->escapes, bytes[i]);

		if (step == HF_ESCAPE_TEXT && bytes[i] != ENQ)
			hf_buf_add_char(out, bytes[i]);
		else if (step == HF_ESCAPE_END && is_shown(&replay->escapes))
			hf_buf_add(out, replay->escapes.kept, replay->escapes.len);
	}
}
