/* cli/session/terminal/replay.c - removes terminal queries from a terminal's history. */
#include <string.h>

#include "session/terminal/replay.h"

#define ESC 0x1b
#define BEL 0x07
#define ENQ 0x05 /* a query of one byte */

/* A longer sequence is dropped. */
#define SEQUENCE_MAX 4096

void replay_done(struct replay *replay)
{
	hf_buf_done(&replay->sequence);
}

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

static void finish(struct replay *replay, int shown, struct hf_buf *out)
{
	if (shown)
		hf_buf_add(out, replay->sequence.s, replay->sequence.len);
	hf_buf_reset(&replay->sequence);
	replay->state = REPLAY_TEXT;
}

/* ESC ] … sets a title or a colour; with "?" it is a query. ESC P, ESC _ and ESC ^ talk to programs and are never shown. */
static int is_shown_string(const struct hf_buf *sequence)
{
	return sequence->s[1] == ']' && !memchr(sequence->s, '?', sequence->len);
}

static void add_in_sequence(struct replay *replay, char c, struct hf_buf *out)
{
	hf_buf_add_char(&replay->sequence, c);
	if (replay->sequence.len > SEQUENCE_MAX) {
		finish(replay, 0, out);
		return;
	}
	switch (replay->state) {
	case REPLAY_ESCAPE:
		if (c == '[')
			replay->state = REPLAY_CSI;
		else if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X')
			replay->state = REPLAY_STRING;
		else if (c < ' ' || c > '/')
			finish(replay, c != 'Z', out);
		break;
	case REPLAY_CSI:
		if (c >= '@' && c <= '~')
			finish(replay, !is_question(replay->sequence.s, replay->sequence.len), out);
		break;
	case REPLAY_STRING:
		if (c == BEL)
			finish(replay, is_shown_string(&replay->sequence), out);
		else if (c == ESC)
			replay->state = REPLAY_STRING_ESCAPE;
		break;
	case REPLAY_STRING_ESCAPE:
		if (c == '\\')
			finish(replay, is_shown_string(&replay->sequence), out);
		else
			replay->state = REPLAY_STRING;
		break;
	case REPLAY_TEXT:
	default:
		break;
	}
}

void replay_add(struct replay *replay, const char *bytes, size_t n, struct hf_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (replay->state != REPLAY_TEXT) {
			add_in_sequence(replay, bytes[i], out);
		} else if (bytes[i] == ESC) {
			hf_buf_add_char(&replay->sequence, ESC);
			replay->state = REPLAY_ESCAPE;
		} else if (bytes[i] != ENQ) {
			hf_buf_add_char(out, bytes[i]);
		}
	}
}
