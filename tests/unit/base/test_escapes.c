/* unit/base/test_escapes.c - escape sequences, and text without them. */
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/escapes.h"
#include "helper/random.h"
#include "helper/test.h"

static const char *plain(const char *text, size_t len)
{
	static char out[256];
	size_t n = hf_plain_text(out, sizeof(out), text, len);

	assert_int_equal(strlen(out), n);
	return out;
}

#define PLAIN(text) plain(text, sizeof(text) - 1)

static void text_has_no_sequence_left(void **state)
{
	(void)state;
	assert_string_equal(PLAIN("all is well"), "all is well");
	assert_string_equal(PLAIN("\033[1;31mred\033[0m and \033(Bplain\0337"), "red and plain");
	assert_string_equal(PLAIN("\033]0;title\007a\033]8;;http://x\033\\b\033Pq#0\033\\c"), "abc");
	/* Cursor movement separates words by one space. */
	assert_string_equal(PLAIN("one\033[5Ctwo\033[3;1Hthree \033[Kfour\033[2J\033[H"), "one two three four ");
	assert_string_equal(PLAIN("\033[Hfirst"), "first");
	/* C1 characters in UTF-8 begin them, too; in other characters the same bytes are nothing of the kind. */
	assert_string_equal(PLAIN("a\xc2\x9b"
				  "31mb\xc2\x9d"
				  "0;t\xc2\x9c"
				  "c\xc2\x85"),
			    "abc");
	assert_string_equal(PLAIN("\xe2\x9c\xb3 \xe2\x9c\x9b"), "\xe2\x9c\xb3 \xe2\x9c\x9b");
	assert_string_equal(PLAIN("\033]0;\xe2\x9c\xb3 a\007b"), "b");
}

static void what_is_no_text_is_seen(void **state)
{
	(void)state;
	assert_string_equal(PLAIN("a\tb\nc\x7f"
				  "d\0e"),
			    "a?b?c?d?e");
	assert_string_equal(PLAIN("\x9b"
				  "31m\xff\xc3\xe2\x9c"),
			    "?31m????");
	/* Overrides of direction. */
	assert_string_equal(PLAIN("rm \xe2\x80\xae"
				  "x\xe2\x81\xa6"
				  "y"),
			    "rm ?x?y");
}

static void sequence_without_an_end_hides_no_more_than_is_bounded(void **state)
{
	static char text[HF_ESCAPE_LONGEST + 100];
	static struct hf_escapes e;
	size_t shown = 0, inside = 0;

	(void)state;
	assert_string_equal(PLAIN("a\033]0;never ended"), "a");
	assert_string_equal(PLAIN("a\033[12"), "a");
	assert_string_equal(PLAIN("a\033"), "a");
	/* CAN and SUB give it up; ESC begins the next. */
	assert_string_equal(PLAIN("a\033]0;x\030b\033[1\032c\033[\033[1md\033]0;x\033[1me\033]0;\033\033\\f"), "abcdef");
	memset(text, 'x', sizeof(text));
	memcpy(text, "\033]0;", 4);
	for (size_t i = 0; i < sizeof(text); i++) {
		enum hf_escape_step step = hf_escape_take(&e, text[i]);

		shown += step == HF_ESCAPE_TEXT;
		inside += step == HF_ESCAPE_INSIDE;
		assert_true(e.len <= HF_ESCAPE_KEPT && e.total <= HF_ESCAPE_LONGEST);
	}
	assert_int_equal(shown, 100);
	assert_int_equal(inside, HF_ESCAPE_LONGEST - 1);
}

static void output_keeps_its_bound_and_whole_characters(void **state)
{
	char out[6];

	(void)state;
	assert_int_equal(hf_plain_text(out, sizeof(out), "abcdefgh", 8), 5);
	assert_string_equal(out, "abcde");
	assert_int_equal(hf_plain_text(out, sizeof(out), "abcd\xe2\x9c\xb3", 7), 4);
	assert_string_equal(out, "abcd");
	assert_int_equal(hf_plain_text(out, 1, "abc", 3), 0);
	assert_string_equal(out, "");
}

static const char *osc_of(const char *text, size_t *ret_len)
{
	static struct hf_escapes e;

	memset(&e, 0, sizeof(e));
	for (size_t i = 0; text[i]; i++)
		if (hf_escape_take(&e, text[i]) == HF_ESCAPE_END)
			return hf_escape_osc(&e, ret_len);
	return NULL;
}

static void osc_is_given_without_its_frame_or_not_at_all(void **state)
{
	static char longest[HF_ESCAPE_KEPT + 2];
	size_t len = 99;

	(void)state;
	assert_memory_equal(osc_of("\033]0;ab\007", &len), "0;ab", 4);
	assert_int_equal(len, 4);
	assert_memory_equal(osc_of("\033]0;ab\033\\", &len), "0;ab", 4);
	assert_int_equal(len, 4);
	assert_non_null(osc_of("\033]\007", &len));
	assert_int_equal(len, 0);
	assert_null(osc_of("\033[31m", &len));
	assert_null(osc_of("\033P0;ab\033\\", &len));
	assert_null(osc_of("\033]0;ab\030", &len));
	/* One byte too many. */
	memset(longest, 'x', sizeof(longest) - 1);
	memcpy(longest, "\033]", 2);
	longest[HF_ESCAPE_KEPT - 1] = '\007';
	assert_non_null(osc_of(longest, &len));
	assert_int_equal(len, HF_ESCAPE_KEPT - 3);
	longest[HF_ESCAPE_KEPT - 1] = 'x';
	longest[HF_ESCAPE_KEPT] = '\007';
	assert_null(osc_of(longest, &len));
}

/* The result is UTF-8 without control characters, and not longer than the input. */
static void any_bytes_become_plain_text(void **state)
{
	static const char often[] = "\033\033[]P\\;0m\007\xc2\x9b\x9d\xe2\x9c\030 a\r\n";

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char in[64], out[80];
		size_t len = random_u64() % sizeof(in), n;

		for (size_t i = 0; i < len; i++)
			in[i] = random_u64() % 4 ? often[random_u64() % sizeof(often)] : (char)random_u64();
		n = hf_plain_text(out, sizeof(out), in, len);
		assert_true(n <= len);
		for (size_t i = 0; i < n;) {
			size_t size = hf_utf8_char((const unsigned char *)out + i, n - i);

			assert_true(size > 0 && (unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
			assert_false(size == 2 && (unsigned char)out[i] == 0xc2 && (unsigned char)out[i + 1] < 0xa0);
			i += size;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(text_has_no_sequence_left),
		HF_TEST(what_is_no_text_is_seen),
		HF_TEST(sequence_without_an_end_hides_no_more_than_is_bounded),
		HF_TEST(output_keeps_its_bound_and_whole_characters),
		HF_TEST(osc_is_given_without_its_frame_or_not_at_all),
		HF_TEST(any_bytes_become_plain_text),
	};

	return hf_run_tests("escapes", tests);
}
