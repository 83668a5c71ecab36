/* unit/base/test_buf.c - the buffer: growth, limits, JSON and the shown form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "hf/base/buf.h"
#include "helper/random.h"
#include "helper/test.h"

#define FFFD         "\xef\xbf\xbd"

/* Half of the bytes from all 256, half from those where UTF-8 and JSON get hard. */
static unsigned char random_byte(void)
{
	static const unsigned char hard[] = { 0,    '"',  '\\', '/',  0x1b, 0x1f, 0x7f, 0x80,
					      0x85, 0x9b, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf,
					      0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 'a' };
	uint64_t r = random_u64();

	return r & 256 ? (unsigned char)r : hard[(r & 255) % sizeof(hard)];
}

static size_t random_bytes(char *to, size_t max)
{
	size_t len = random_u64() % (max + 1);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)random_byte();
	return len;
}

static void buffer_grows_and_always_ends_with_nul(void **state)
{
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	assert_string_equal(b.s, "");
	for (size_t i = 0; i < 100000; i++) {
		hf_buf_add_char(&b, (char)('a' + i % 26));
		assert_int_equal(b.len, i + 1);
		assert_int_equal(b.s[b.len], '\0');
	}
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.s[i], 'a' + i % 26);
	assert_int_equal(b.err, 0);
	hf_buf_done(&b);
	assert_string_equal(b.s, "");
	assert_int_equal(b.cap, 0);
}

static void buffer_holds_nul_bytes_and_empty_adds(void **state)
{
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	hf_buf_add(&b, NULL, 0);
	hf_buf_add_text(&b, "");
	assert_int_equal(b.cap, 0);
	hf_buf_add(&b, "a\0b", 3);
	hf_buf_add_format(&b, "%s-%d", "x", 42);
	assert_int_equal(b.len, 7);
	assert_memory_equal(b.s, "a\0bx-42", 8);
	hf_buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.s, "");
	assert_true(b.cap > 0);
	hf_buf_done(&b);
	hf_buf_done(&b);
}

static void error_past_the_limit_sticks_and_keeps_the_content(void **state)
{
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	hf_buf_add_text(&b, "abc");
	assert_int_equal(hf_buf_reserve(&b, HF_BUF_LIMIT - 3), -E2BIG);
	assert_int_equal(b.err, -E2BIG);
	hf_buf_add_text(&b, "more");
	hf_buf_add_u64(&b, 1);
	hf_buf_add_format(&b, "%d", 1);
	(void)hf_buf_add_json(&b, "x", 1, 1);
	hf_buf_add_shown(&b, "\x01", 1);
	assert_int_equal(hf_buf_reserve(&b, 0), -E2BIG);
	assert_string_equal(b.s, "abc");
	assert_int_equal(b.len, 3);
	hf_buf_reset(&b);
	hf_buf_add_text(&b, "new");
	assert_string_equal(b.s, "new");
	assert_int_equal(b.err, 0);
	hf_buf_done(&b);
}

static void absurd_sizes_do_not_wrap_around(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 3, SIZE_MAX / 2,
					HF_BUF_LIMIT + 1, HF_BUF_LIMIT };

	(void)state;
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct hf_buf b = HF_BUF_INIT;

		hf_buf_add_text(&b, "abc");
		assert_int_equal(hf_buf_reserve(&b, sizes[i]), -E2BIG);
		assert_string_equal(b.s, "abc");
		hf_buf_done(&b);
	}
}

static void the_limit_itself_can_be_reserved(void **state)
{
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	assert_int_equal(hf_buf_reserve(&b, HF_BUF_LIMIT - 1), 0);
	assert_true(b.cap >= HF_BUF_LIMIT);
	hf_buf_done(&b);
}

static void numbers_are_written_as_printf_does(void **state)
{
	static const int64_t edges[] = { 0, 1, 9, 10, 99, -1, -9, -10, INT64_MAX, INT64_MIN };
	struct hf_buf b = HF_BUF_INIT;
	char expected[64];

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		int64_t n = i < COUNT(edges) ? edges[i]
					     : (int64_t)(random_u64() >> random_u64() % 64);

		hf_buf_reset(&b);
		hf_buf_add_i64(&b, n);
		hf_buf_add_char(&b, ' ');
		hf_buf_add_u64(&b, (uint64_t)n);
		hf_buf_add_char(&b, ' ');
		hf_buf_add_hex64(&b, (uint64_t)n);
		snprintf(expected, sizeof(expected), "%lld %llu %016llx", (long long)n,
			 (unsigned long long)n, (unsigned long long)n);
		assert_string_equal(b.s, expected);
	}
	hf_buf_done(&b);
}

static void assert_json(const char *text, size_t len, const char *expected)
{
	struct hf_buf b = HF_BUF_INIT;

	assert_int_equal(hf_buf_add_json(&b, text, len, SIZE_MAX), 0);
	assert_string_equal(b.s, expected);
	hf_buf_done(&b);
}

static void json_escapes_what_json_requires(void **state)
{
	(void)state;
	assert_json("", 0, "\"\"");
	assert_json("plain", 5, "\"plain\"");
	assert_json("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
	assert_json("\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"");
	assert_json("\x00\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"");
	assert_json("\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

static void json_replaces_each_byte_that_is_not_utf8(void **state)
{
	(void)state;
	assert_json("\xff", 1, "\"\\ufffd\"");
	assert_json("a\x80z", 3, "\"a\\ufffdz\"");
	assert_json("\xc3", 1, "\"\\ufffd\"");                       /* cut off */
	assert_json("\xc0\x80", 2, "\"\\ufffd\\ufffd\"");            /* overlong NUL */
	assert_json("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\""); /* surrogate */
	assert_json("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

/* What a reader must get: jansson itself says whether the bytes were UTF-8. */
static void check_json_reads_back(const char *text, size_t len)
{
	struct hf_buf b = HF_BUF_INIT;
	json_t *as_given = json_stringn(text, len);
	json_t *read;

	assert_int_equal(hf_buf_add_json(&b, text, len, SIZE_MAX), 0);
	assert_int_equal(strlen(b.s), b.len);
	read = json_loads(b.s, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	assert_non_null(read);
	assert_true(json_is_string(read));
	if (as_given) {
		assert_int_equal(json_string_length(read), len);
		assert_memory_equal(json_string_value(read), text, len);
	} else {
		assert_non_null(memmem(json_string_value(read), json_string_length(read), FFFD,
				       strlen(FFFD)));
	}
	json_decref(as_given);
	json_decref(read);
	hf_buf_done(&b);
}

static void json_of_all_one_and_two_byte_strings_reads_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++)
		check_json_reads_back((char[]){ (char)i }, 1);
	for (unsigned i = 0; i < 65536; i++)
		check_json_reads_back((char[]){ (char)(i >> 8), (char)i }, 2);
}

static void json_of_random_strings_reads_back(void **state)
{
	char text[48];

	(void)state;
	for (int i = 0; i < 100000; i++)
		check_json_reads_back(text, random_bytes(text, sizeof(text)));
}

static void json_is_cut_between_characters(void **state)
{
	static const char text[] = "ab\"\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\xc3\xa9";
	const size_t len = sizeof(text) - 1;

	(void)state;
	for (size_t max = 0; max <= len + 2; max++) {
		struct hf_buf b = HF_BUF_INIT;
		int cut = hf_buf_add_json(&b, text, len, max);
		json_t *read = json_loads(b.s, JSON_DECODE_ANY, NULL);
		size_t kept;

		assert_non_null(read);
		kept = json_string_length(read);
		assert_true(kept <= max);
		assert_int_equal(cut, kept < len);
		assert_memory_equal(json_string_value(read), text, kept);
		/* No more is given up than a part of one character. */
		assert_true(kept == len || kept + 4 > max);
		json_decref(read);
		hf_buf_done(&b);
	}
}

static void json_cut_of_random_bytes_is_still_json(void **state)
{
	char text[32];

	(void)state;
	for (int i = 0; i < 30000; i++) {
		struct hf_buf b = HF_BUF_INIT;
		size_t len = random_bytes(text, sizeof(text)), max = random_u64() % 34;
		int cut = hf_buf_add_json(&b, text, len, max);
		json_t *read = json_loads(b.s, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		assert_non_null(read);
		assert_true(len <= max ? !cut : cut);
		json_decref(read);
		hf_buf_done(&b);
	}
}

static void utf8_characters_are_what_jansson_takes(void **state)
{
	static const unsigned char leads[] = { 0xc1, 0xc2, 0xe0, 0xe1, 0xed, 0xee,
					       0xef, 0xf0, 0xf1, 0xf4, 0xf5 };

	(void)state;
	for (int i = 0; i < 200000; i++) {
		unsigned char s[4];
		size_t len = 2 + random_u64() % 3, size;

		s[0] = leads[random_u64() % sizeof(leads)];
		for (size_t k = 1; k < len; k++)
			s[k] = random_byte();
		size = hf_utf8_char(s, len);
		for (size_t n = 1; n <= len; n++) {
			json_t *valid = json_stringn((const char *)s, n);

			/* No lead here is one byte long, so the first valid prefix is it. */
			assert_int_equal(valid != NULL && (size == 0 || n <= size), n == size);
			json_decref(valid);
		}
	}
	assert_int_equal(hf_utf8_char((const unsigned char *)"", 0), 0);
}

static void assert_shown(const char *text, size_t len, const char *expected)
{
	struct hf_buf b = HF_BUF_INIT;

	hf_buf_add_shown(&b, text, len);
	assert_string_equal(b.s, expected);
	hf_buf_done(&b);
}

static void shown_form_spells_out_control_bytes(void **state)
{
	(void)state;
	assert_shown("plain text", 10, "plain text");
	assert_shown("a\x1b[31m\n", 7, "a\\x1b[31m\\x0a");
	assert_shown("\0\x7f", 2, "\\x00\\x7f");
	assert_shown("\xff\xc3", 2, "\\xff\\xc3");
	assert_shown("\xc2\x80\xc2\x9b\xc2\x9f", 6, "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
	assert_shown("\xc2\xa0\xc3\xa9", 4, "\xc2\xa0\xc3\xa9");
}

static void assert_harmless(const struct hf_buf *b)
{
	const unsigned char *s = (const unsigned char *)b->s;

	for (size_t i = 0; i < b->len;) {
		size_t size = hf_utf8_char(s + i, b->len - i);

		assert_int_not_equal(size, 0);
		assert_true(s[i] >= 0x20 && s[i] != 0x7f);
		assert_false(size == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0);
		i += size;
	}
}

static void shown_form_never_steers_a_terminal(void **state)
{
	char text[64];

	(void)state;
	for (int i = 0; i < 50000; i++) {
		struct hf_buf b = HF_BUF_INIT;

		hf_buf_add_shown(&b, text, random_bytes(text, sizeof(text)));
		assert_harmless(&b);
		hf_buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(buffer_grows_and_always_ends_with_nul),
		HF_TEST(buffer_holds_nul_bytes_and_empty_adds),
		HF_TEST(error_past_the_limit_sticks_and_keeps_the_content),
		HF_TEST(absurd_sizes_do_not_wrap_around),
		HF_TEST(the_limit_itself_can_be_reserved),
		HF_TEST(numbers_are_written_as_printf_does),
		HF_TEST(json_escapes_what_json_requires),
		HF_TEST(json_replaces_each_byte_that_is_not_utf8),
		HF_TEST(json_of_all_one_and_two_byte_strings_reads_back),
		HF_TEST(json_of_random_strings_reads_back),
		HF_TEST(json_is_cut_between_characters),
		HF_TEST(json_cut_of_random_bytes_is_still_json),
		HF_TEST(utf8_characters_are_what_jansson_takes),
		HF_TEST(shown_form_spells_out_control_bytes),
		HF_TEST(shown_form_never_steers_a_terminal),
	};

	return hf_run_tests("buf", tests);
}
