/*
 * tests/fuzz/fuzz_program.c - any bytes as terminal output, in pieces of any size: the result does not depend on the pieces.
 *
 * The first byte is the size of the pieces.
 */
#include <string.h>

#include "fuzz.h"
#include "hf/base/buf.h"
#include "hf/run/keeper/output/program.h"

static void text_is_plain(const char *text, size_t max)
{
	size_t len = strlen(text);

	MUST(len <= max);
	for (size_t i = 0, size; i < len; i += size) {
		size = hf_utf8_char((const unsigned char *)text + i, len - i);
		MUST(size > 0 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hf_program whole, pieces;
	const char *bytes = (const char *)data;
	size_t piece = size > 0 ? (size_t)data[0] + 1 : 0;
	char plain[512];

	if (size == 0)
		return 0;
	memset(&whole, 0, sizeof(whole));
	memset(&pieces, 0, sizeof(pieces));
	(void)hf_program_take(&whole, bytes + 1, size - 1);
	for (size_t at = 1; at < size; at += piece)
		(void)hf_program_take(&pieces, bytes + at, size - at < piece ? size - at : piece);
	MUST(whole.state == pieces.state && whole.n == pieces.n && whole.asked == pieces.asked && strcmp(whole.text, pieces.text) == 0);
	MUST(whole.n <= HF_PROGRAM_RECORDS && whole.asked <= HF_PROGRAM_ANSWERS && whole.escapes.len <= HF_ESCAPE_KEPT);
	MUST(whole.state != HF_ACTIVITY_BACKGROUND && strcmp(hf_activity_word(whole.state), "unknown") != 0);
	text_is_plain(whole.text, HF_ACTIVITY_TEXT_MAX);
	MUST(hf_plain_text(plain, sizeof(plain), bytes, size) <= size);
	text_is_plain(plain, sizeof(plain) - 1);
	return 0;
}
