/* tests/unit/test_base.c - errors, the buffer, parsing, and the clocks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "hf/base/buf.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "helper/test.h"
#include "holdfast/clock.h"
#include "holdfast/version.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FFFD         "\xef\xbf\xbd"

/* A fixed seed: a failure of today is a failure of tomorrow. */
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

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

/* -- err ---------------------------------------------------------------------- */

static void every_listed_code_has_its_entry(void **state)
{
	static const struct hf_err_info listed[] = {
#define ROW(name, number, status, text) { number, status, #name, text },
		HF_ERR_LIST(ROW)
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < COUNT(listed); i++) {
		const struct hf_err_info *info = hf_err_info(listed[i].code);

		assert_non_null(info);
		assert_ptr_equal(info, hf_err_at(i));
		assert_int_equal(info->code, listed[i].code);
		assert_int_equal(info->exit_status, listed[i].exit_status);
		assert_string_equal(info->name, listed[i].name);
		assert_string_equal(info->text, listed[i].text);
	}
	assert_null(hf_err_at(COUNT(listed)));
	assert_null(hf_err_at(SIZE_MAX));
}

static void codes_are_distinct_and_no_errno(void **state)
{
	(void)state;
	for (size_t i = 0; hf_err_at(i); i++) {
		/* MAX_ERRNO of the kernel is 4095. */
		assert_true(hf_err_at(i)->code < -4095);
		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(hf_err_at(i)->code, hf_err_at(k)->code);
			assert_string_not_equal(hf_err_at(i)->name, hf_err_at(k)->name);
		}
	}
	assert_null(hf_err_info(0));
	assert_null(hf_err_info(-EINVAL));
	assert_null(hf_err_info(8001));
}

static void exit_status_follows_the_contract(void **state)
{
	(void)state;
	assert_int_equal(hf_err_exit_status(0), 0);
	assert_int_equal(hf_err_exit_status(7), 0);
	assert_int_equal(hf_err_exit_status(-EINVAL), 2);
	assert_int_equal(hf_err_exit_status(-EIO), 4);
	assert_int_equal(hf_err_exit_status(-ENOSPC), 4);
	assert_int_equal(hf_err_exit_status(-7999), 4);
	assert_int_equal(hf_err_exit_status(HF_E_GONE), 1);
	assert_int_equal(hf_err_exit_status(HF_E_NAME), 2);
	assert_int_equal(hf_err_exit_status(HF_E_UNTRUSTED), 3);
	for (size_t i = 0; hf_err_at(i); i++) {
		int status = hf_err_at(i)->exit_status;

		assert_int_equal(hf_err_exit_status(hf_err_at(i)->code), status);
		assert_in_range(status, 1, 4);
	}
}

static void assert_line(const struct hf_err *err, const char *expected)
{
	char text[HF_ERR_TEXT_MAX];

	assert_int_equal(hf_err_format(err, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void message_leaves_out_what_is_empty(void **state)
{
	(void)state;
	assert_line(&(struct hf_err){ .code = HF_E_GONE }, "the process has ended");
	assert_line(&(struct hf_err){ .code = HF_E_GONE, .subject = "pid 7" },
		    "pid 7: the process has ended");
	assert_line(&(struct hf_err){ .code = HF_E_GONE, .detail = "yesterday" },
		    "the process has ended: yesterday");
	assert_line(&(struct hf_err){ .code = -EACCES, .sys = EACCES, .op = "openat",
				      .subject = "d/f" },
		    "d/f: Permission denied (openat)");
	assert_line(&(struct hf_err){ .code = -EACCES, .op = "openat", .subject = "d/f",
				      .detail = "chmod it" },
		    "d/f: Permission denied (openat): chmod it");
	assert_line(&(struct hf_err){ .code = -4000, .op = "x" }, "unknown error (x)");
}

static void control_bytes_in_messages_become_question_marks(void **state)
{
	struct hf_err err = { .code = HF_E_NAME, .subject = "a\x1b[2Jb\r\nc\td\x7f\x01" };

	(void)state;
	hf_copy_text(err.detail, sizeof(err.detail), "\x1b]0;title\x07");
	assert_line(&err, "a?[2Jb??c?d??: not usable as a name: ?]0;title?");
}

/* U+009B is CSI to a terminal, as ESC [ is. */
static void c1_controls_in_messages_do_not_reach_the_terminal(void **state)
{
	struct hf_err err = { .code = HF_E_NAME, .subject = "a\xc2\x9b" "2J\xc2\x85z" };
	char text[HF_ERR_TEXT_MAX];

	(void)state;
	hf_err_format(&err, text, sizeof(text));
	assert_null(strstr(text, "\xc2\x9b"));
	assert_null(strstr(text, "\xc2\x85"));
	assert_non_null(strstr(text, "2J"));
	/* What only looks like one, in the middle of a longer character, stays. */
	hf_copy_text(err.subject, sizeof(err.subject), "\xc3\xa9\xe2\x82\xac");
	assert_line(&err, "\xc3\xa9\xe2\x82\xac: not usable as a name");
}

static void message_is_cut_as_snprintf_does(void **state)
{
	const struct hf_err err = { .code = HF_E_GONE, .subject = "pid 7", .detail = "x" };
	static const char whole[] = "pid 7: the process has ended: x";
	char text[64];

	(void)state;
	assert_int_equal(hf_err_format(&err, NULL, 0), strlen(whole));
	for (size_t cap = 0; cap < sizeof(text); cap++) {
		size_t fits = cap > strlen(whole) ? strlen(whole) : cap ? cap - 1 : 0;

		memset(text, '#', sizeof(text));
		assert_int_equal(hf_err_format(&err, text, cap), strlen(whole));
		assert_memory_equal(text, whole, fits);
		if (cap > 0)
			assert_int_equal(text[fits], '\0');
		for (size_t i = cap ? fits + 1 : 0; i < sizeof(text); i++)
			assert_int_equal(text[i], '#');
	}
}

static void longest_message_fits_its_buffer(void **state)
{
	struct hf_err err = { 0 };

	(void)state;
	memset(err.op, 'o', sizeof(err.op) - 1);
	memset(err.subject, 's', sizeof(err.subject) - 1);
	memset(err.detail, 'd', sizeof(err.detail) - 1);
	for (size_t i = 0; hf_err_at(i); i++) {
		err.code = hf_err_at(i)->code;
		assert_true(hf_err_format(&err, NULL, 0) < HF_ERR_TEXT_MAX);
	}
	for (int e = 1; e < 140; e++) {
		err.code = -e;
		assert_true(hf_err_format(&err, NULL, 0) < HF_ERR_TEXT_MAX);
	}
}

static void failing_fills_and_cuts_every_field(void **state)
{
	struct hf_err err = HF_ERR_INIT;
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(hf_fail(&err, HF_E_NAME, text, text, "%s", text), HF_E_NAME);
	assert_int_equal(err.code, HF_E_NAME);
	assert_int_equal(strlen(err.op), sizeof(err.op) - 1);
	assert_int_equal(strlen(err.subject), sizeof(err.subject) - 1);
	assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
	assert_int_equal(hf_fail_sys(&err, ENOSPC, "write", "f"), -ENOSPC);
	assert_int_equal(err.code, -ENOSPC);
	assert_int_equal(err.sys, ENOSPC);
	assert_string_equal(err.op, "write");
	assert_string_equal(err.subject, "f");
	assert_string_equal(err.detail, "");
}

static void a_failure_names_what_it_is_part_of(void **state)
{
	struct hf_err err = HF_ERR_INIT;
	char line[HF_ERR_TEXT_MAX], name[300];

	(void)state;
	assert_int_equal(hf_err_wrap(NULL, HF_E_GONE, "session", "x"), HF_E_GONE);
	assert_int_equal(hf_err_wrap(&err, 7, "session", "x"), 7);
	assert_string_equal(err.subject, "");
	(void)hf_fail(&err, HF_E_GONE, "open", "pid 4711", "no such process");
	/* Twice, as on a way up through two functions. */
	assert_int_equal(hf_err_wrap(&err, HF_E_GONE, "session", "fix-160"), HF_E_GONE);
	assert_int_equal(hf_err_wrap(&err, HF_E_GONE, "session", "fix-160"), HF_E_GONE);
	(void)hf_err_format(&err, line, sizeof(line));
	assert_string_equal(line, "session 'fix-160': pid 4711: the process has ended: no such process");
	(void)hf_fail(&err, HF_E_BUSY, "lock", "fix-160", "%s", "");
	(void)hf_err_wrap(&err, HF_E_BUSY, "session", "fix-160");
	assert_string_equal(err.subject, "session 'fix-160'");
	/* What is wrong with an argument is not part of anything; an older failure is not this one. */
	(void)hf_fail(&err, HF_E_NAME, "name", "..", "%s", "");
	(void)hf_err_wrap(&err, HF_E_NAME, "session", "..");
	(void)hf_err_wrap(&err, HF_E_GONE, "session", "..");
	assert_string_equal(err.subject, "..");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)hf_fail(&err, HF_E_GONE, "open", "pid 4711", "%s", "");
	(void)hf_err_wrap(&err, HF_E_GONE, "session", name);
	assert_int_equal(strlen(err.subject), sizeof(err.subject) - 1);
}

static void failure_is_never_reported_as_success(void **state)
{
	(void)state;
	assert_int_equal(hf_fail_sys(NULL, 0, "op", "subject"), -EIO);
	assert_int_equal(hf_fail_sys(NULL, ENOENT, NULL, NULL), -ENOENT);
	assert_int_equal(hf_fail(NULL, HF_E_NAME, "op", "subject", "detail"), HF_E_NAME);
}

static void running_version_is_that_of_the_headers(void **state)
{
	(void)state;
	assert_string_equal(hf_version(), HF_VERSION);
}

/* -- buf ---------------------------------------------------------------------- */

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

/* -- parse -------------------------------------------------------------------- */

static const char *const never_numbers[] = {
	"", "-", "+1", " 1", "1 ", "1.", ".1", "1e3", "0x10", "1_0", "1,0", "\n1", "1\n", "a",
	"--1", "\xd9\xa1", "1-", "-+1", "inf", "nan",
};

static void what_is_no_number_is_refused(void **state)
{
	uint64_t u = 77;
	int64_t i = 77;

	(void)state;
	for (size_t k = 0; k < COUNT(never_numbers); k++) {
		const char *s = never_numbers[k];

		ASSERT_ERR(hf_parse_u64(s, strlen(s), UINT64_MAX, &u), HF_E_SYNTAX);
		ASSERT_ERR(hf_parse_u64_canonical(s, strlen(s), UINT64_MAX, &u), HF_E_SYNTAX);
		ASSERT_ERR(hf_parse_i64(s, strlen(s), &i), HF_E_SYNTAX);
		ASSERT_ERR(hf_parse_size(s, strlen(s), &u), HF_E_SYNTAX);
	}
	ASSERT_ERR(hf_parse_u64("1\0", 2, UINT64_MAX, &u), HF_E_SYNTAX);
	ASSERT_ERR(hf_parse_u64(NULL, 0, UINT64_MAX, &u), HF_E_SYNTAX);
	/* Results are written only on success. */
	assert_int_equal(u, 77);
	assert_int_equal(i, 77);
}

static void assert_u64(const char *s, uint64_t max, int expected_result, uint64_t expected)
{
	uint64_t value = 77;

	ASSERT_ERR(hf_parse_u64(s, strlen(s), max, &value), expected_result);
	assert_int_equal(value, expected_result < 0 ? 77 : expected);
}

static void u64_stops_at_its_edges(void **state)
{
	(void)state;
	assert_u64("0", UINT64_MAX, 0, 0);
	assert_u64("0", 0, 0, 0);
	assert_u64("1", 0, HF_E_SYNTAX, 0);
	assert_u64("007", UINT64_MAX, 0, 7);
	assert_u64("-1", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("-0", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("18446744073709551615", UINT64_MAX, 0, UINT64_MAX);
	assert_u64("18446744073709551616", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("18446744073709551620", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("99999999999999999999", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("184467440737095516150", UINT64_MAX, HF_E_SYNTAX, 0);
	assert_u64("000000000000000000000000000000000018446744073709551615", UINT64_MAX, 0,
		   UINT64_MAX);
	assert_u64("2147483647", INT32_MAX, 0, INT32_MAX);
	assert_u64("2147483648", INT32_MAX, HF_E_SYNTAX, 0);
}

static void canonical_numbers_have_one_text(void **state)
{
	uint64_t value = 77;

	(void)state;
	ASSERT_OK(hf_parse_u64_canonical("0", 1, UINT64_MAX, &value));
	assert_int_equal(value, 0);
	ASSERT_OK(hf_parse_u64_canonical("10", 2, UINT64_MAX, &value));
	assert_int_equal(value, 10);
	ASSERT_ERR(hf_parse_u64_canonical("00", 2, UINT64_MAX, &value), HF_E_SYNTAX);
	ASSERT_ERR(hf_parse_u64_canonical("007", 3, UINT64_MAX, &value), HF_E_SYNTAX);
	ASSERT_ERR(hf_parse_u64_canonical("11", 2, 10, &value), HF_E_SYNTAX);
	assert_int_equal(value, 10);
}

static void assert_i64(const char *s, int expected_result, int64_t expected)
{
	int64_t value = 77;

	ASSERT_ERR(hf_parse_i64(s, strlen(s), &value), expected_result);
	assert_true(value == (expected_result < 0 ? 77 : expected));
}

static void i64_covers_its_whole_range_and_no_more(void **state)
{
	(void)state;
	assert_i64("0", 0, 0);
	assert_i64("-0", 0, 0);
	assert_i64("-1", 0, -1);
	assert_i64("9223372036854775807", 0, INT64_MAX);
	assert_i64("9223372036854775808", HF_E_SYNTAX, 0);
	assert_i64("-9223372036854775808", 0, INT64_MIN);
	assert_i64("-9223372036854775809", HF_E_SYNTAX, 0);
	assert_i64("18446744073709551615", HF_E_SYNTAX, 0);
	assert_i64("-18446744073709551615", HF_E_SYNTAX, 0);
}

static void numbers_written_are_numbers_read(void **state)
{
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t n = random_u64() >> random_u64() % 64, u = 0, h = 0;
		int64_t s = 0;

		hf_buf_reset(&b);
		hf_buf_add_u64(&b, n);
		ASSERT_OK(hf_parse_u64_canonical(b.s, b.len, UINT64_MAX, &u));
		assert_true(u == n);
		hf_buf_reset(&b);
		hf_buf_add_i64(&b, (int64_t)n);
		ASSERT_OK(hf_parse_i64(b.s, b.len, &s));
		assert_true(s == (int64_t)n);
		hf_buf_reset(&b);
		hf_buf_add_hex64(&b, n);
		ASSERT_OK(hf_parse_hex64(b.s, b.len, &h));
		assert_true(h == n);
	}
	hf_buf_done(&b);
}

static void hex_is_exactly_sixteen_lower_case_digits(void **state)
{
	static const char *const bad[] = {
		"", "0", "123456789abcdef", "0123456789abcdef0", "0123456789ABCDEF",
		"0x23456789abcdef", "0123456789abcdeg", " 123456789abcdef", "-123456789abcdef",
		"0123456789abcde`", "012345678:abcdef", "/123456789abcdef",
	};
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_parse_hex64(bad[i], strlen(bad[i]), &value), HF_E_SYNTAX);
	assert_int_equal(value, 77);
	ASSERT_OK(hf_parse_hex64("0123456789abcdef", 16, &value));
	assert_true(value == UINT64_C(0x0123456789abcdef));
	ASSERT_OK(hf_parse_hex64("ffffffffffffffff", 16, &value));
	assert_true(value == UINT64_MAX);
}

static const struct {
	const char *text;
	int64_t ns;
} durations[] = {
	{ "0", 0 },
	{ "2", 2 * HF_SEC },
	{ "2.5", 2500 * HF_MSEC },
	{ "500ms", 500 * HF_MSEC },
	{ "0.5ms", 500 * HF_USEC },
	{ "30s", 30 * HF_SEC },
	{ "0.25s", 250 * HF_MSEC },
	{ "5m", 300 * HF_SEC },
	{ "0.1m", 6 * HF_SEC },
	{ "1h", 3600 * HF_SEC },
	{ "1.5h", 5400 * HF_SEC },
	{ "2d", 172800 * HF_SEC },
	{ "0.000000001", 1 },
	{ "0.0000000019", 1 }, /* below a nanosecond: cut */
	{ "1.99999999999999999999999999", 2 * HF_SEC - 1 },
	{ "007s", 7 * HF_SEC },
	{ "106751d", 106751 * (86400 * HF_SEC) },
	{ "9223372036.854775807", INT64_MAX },
	{ "9223372036854.775807ms", INT64_MAX },
};

static void durations_with_units_and_fractions_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(durations); i++) {
		int64_t ns = -1;

		ASSERT_OK(hf_parse_duration(durations[i].text, strlen(durations[i].text), &ns));
		if (ns != durations[i].ns)
			fail_msg("%s: %lld", durations[i].text, (long long)ns);
	}
}

static void what_is_no_duration_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "5.", ".5", "1e3",
		"1hh", "s", "ms", "1 s", "1S", "1H", "1M", "1us",
		"1ns", "1w", "1.5.5", "1.s", "1..5", "1.-5", "1,5", "1.5 h",
		"0x1", "1sm", "1s1", "1h30m", "-0", "inf", "nan", "1.e3",
		"1\n", ".", "..", "-", "m", "1.5x",
		/* past the end of time, whole and with its fraction */
		"9223372036.854775808", "9223372037", "106752d", "9223372036854775807",
		"9223372036854775807ms", "18446744073709551616", "99999999999999999999999999h",
		"9223372036.9", "2562047.9h",
	};
	int64_t ns = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (hf_parse_duration(bad[i], strlen(bad[i]), &ns) != HF_E_SYNTAX)
			fail_msg("'%s' was read as %lld ns", bad[i], (long long)ns);
	ASSERT_ERR(hf_parse_duration("1s\0", 3, &ns), HF_E_SYNTAX);
	ASSERT_ERR(hf_parse_duration(NULL, 0, &ns), HF_E_SYNTAX);
	assert_int_equal(ns, 77);
}

/* (pointer, length): what stands behind the length is not looked at. */
static void only_the_given_length_is_read(void **state)
{
	uint64_t u;
	int64_t ns;

	(void)state;
	ASSERT_OK(hf_parse_u64("12345", 2, UINT64_MAX, &u));
	assert_int_equal(u, 12);
	ASSERT_OK(hf_parse_duration("12ms", 2, &ns));
	assert_int_equal(ns, 12 * HF_SEC);
	ASSERT_OK(hf_parse_duration("1.5h", 3, &ns));
	assert_int_equal(ns, 1500 * HF_MSEC);
	ASSERT_OK(hf_parse_size("1K", 1, &u));
	assert_int_equal(u, 1);
}

static void sizes_are_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "0G", 0 },
		{ "512", 512 },
		{ "512K", 512 << 10 },
		{ "8M", 8 << 20 },
		{ "1G", 1 << 30 },
		{ "18446744073709551615", UINT64_MAX },
		{ "18014398509481983K", UINT64_MAX - 1023 },
		{ "17179869183G", UINT64_MAX - ((1 << 30) - 1) },
	};
	static const char *const bad[] = {
		"K", "1k", "1KB", "1KK", "1.5M", "-1K", "1 K", "1T", "18014398509481984K",
		"17179869184G", "17592186044416M", "K1",
	};
	uint64_t value = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_parse_size(bad[i], strlen(bad[i]), &value), HF_E_SYNTAX);
	ASSERT_ERR(hf_parse_size("1\0", 2, &value), HF_E_SYNTAX);
	assert_int_equal(value, 77);
	for (size_t i = 0; i < COUNT(good); i++) {
		ASSERT_OK(hf_parse_size(good[i].text, strlen(good[i].text), &value));
		assert_true(value == good[i].bytes);
	}
}

static void durations_for_people_have_two_units_at_most(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} table[] = {
		{ INT64_MIN, "0us" },
		{ 0, "0us" },
		{ 999, "0us" },
		{ HF_MSEC - 1, "999us" },
		{ HF_MSEC, "1ms" },
		{ HF_SEC - 1, "999ms" },
		{ HF_SEC, "1.0s" },
		{ 10 * HF_SEC - 1, "9.9s" },
		{ 12 * HF_SEC, "12s" },
		{ 60 * HF_SEC - 1, "59s" },
		{ 200 * HF_SEC, "3m20s" },
		{ 3600 * HF_SEC - 1, "59m59s" },
		{ (5 * 3600 + 120) * HF_SEC, "5h02m" },
		{ 86400 * HF_SEC - 1, "23h59m" },
		{ (4 * 24 + 11) * 3600 * HF_SEC, "4d11h" },
		{ INT64_MAX, "106751d23h" },
	};
	struct hf_buf b = HF_BUF_INIT;

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		hf_buf_reset(&b);
		hf_buf_add_duration(&b, table[i].ns);
		assert_string_equal(b.s, table[i].text);
	}
	hf_buf_done(&b);
}

/* -- clock -------------------------------------------------------------------- */

#define PARSED_END INT64_C(9214646400) /* 2262-01-01T00:00:00Z in seconds */

static void check_round_trip(int64_t ns)
{
	char text[HF_WALL_TEXT_MAX], expected[64], date[32];
	struct hf_wall back = { -1 };
	time_t sec = (time_t)(ns / HF_SEC);
	struct tm tm;

	hf_wall_format((struct hf_wall){ ns }, text);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&sec, &tm));
	snprintf(expected, sizeof(expected), "%s.%06lldZ", date,
		 (long long)(ns % HF_SEC / HF_USEC));
	assert_string_equal(text, expected);
	assert_int_equal(strlen(text), HF_WALL_TEXT_MAX - 1);
	ASSERT_OK(hf_wall_parse(text, strlen(text), &back));
	assert_true(back.ns == ns - ns % HF_USEC);
}

static void wall_time_survives_format_and_parse(void **state)
{
	static const int64_t edges[] = {
		0,
		1,
		HF_USEC - 1,
		HF_USEC,
		HF_SEC - 1,
		951782399 * HF_SEC,  /* 2000-02-28T23:59:59 */
		951782400 * HF_SEC,  /* 2000-02-29 */
		951868800 * HF_SEC,  /* 2000-03-01 */
		4107542399 * HF_SEC, /* 2100-02-28T23:59:59: no leap year */
		4107542400 * HF_SEC,
		PARSED_END * HF_SEC - 1,
	};

	(void)state;
	for (size_t i = 0; i < COUNT(edges); i++)
		check_round_trip(edges[i]);
	for (int i = 0; i < 50000; i++)
		check_round_trip((int64_t)(random_u64() % ((uint64_t)PARSED_END * HF_SEC)));
}

static void times_before_1970_are_written_as_its_start(void **state)
{
	char text[HF_WALL_TEXT_MAX];

	(void)state;
	hf_wall_format((struct hf_wall){ -1 }, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	hf_wall_format((struct hf_wall){ INT64_MIN }, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	hf_wall_format((struct hf_wall){ INT64_MAX }, text);
	assert_string_equal(text, "2262-04-11T23:47:16.854775Z");
}

static void what_is_no_date_is_refused(void **state)
{
	static const char *const bad[] = {
		"2026-02-31T00:00:00.000000Z", "2026-02-29T00:00:00.000000Z",
		"2100-02-29T00:00:00.000000Z", "2026-04-31T00:00:00.000000Z",
		"2026-00-10T00:00:00.000000Z", "2026-13-10T00:00:00.000000Z",
		"2026-01-00T00:00:00.000000Z", "2026-01-32T00:00:00.000000Z",
		"2026-01-10T24:00:00.000000Z", "2026-01-10T23:60:00.000000Z",
		"2026-01-10T23:59:60.000000Z", "1969-12-31T23:59:59.999999Z",
		"1970-00-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z",
		"2263-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z",
		"2026-01-10t00:00:00.000000Z", "2026-01-10 00:00:00.000000Z",
		"2026-01-10T00:00:00,000000Z", "2026-01-10T00:00:00.000000z",
		"2026-01-10T00:00:00.000000+", "2026-01-10T00:00:00.00000Z",
		"2026-01-10T00:00:00.0000000Z", "2026-01-10T00:00:00Z",
		"+026-01-10T00:00:00.000000Z", "2026- 1-10T00:00:00.000000Z",
		"2026-01-10T00:00:00.-00001Z", "",
	};
	struct hf_wall wall = { 77 };

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (hf_wall_parse(bad[i], strlen(bad[i]), &wall) != HF_E_SYNTAX)
			fail_msg("%s was read as %lld", bad[i], (long long)wall.ns);
	ASSERT_ERR(hf_wall_parse(NULL, 27, &wall), HF_E_SYNTAX);
	assert_int_equal(wall.ns, 77);
	ASSERT_OK(hf_wall_parse("2024-02-29T23:59:59.999999Z", 27, &wall));
}

static void every_changed_byte_of_a_date_is_noticed(void **state)
{
	static const char good[] = "2026-11-15T19:48:32.123456Z";
	struct hf_wall wall;
	char text[HF_WALL_TEXT_MAX], again[HF_WALL_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		for (int c = 0; c < 256; c++) {
			memcpy(text, good, sizeof(good));
			text[i] = (char)c;
			if (hf_wall_parse(text, sizeof(good) - 1, &wall) < 0)
				continue;
			hf_wall_format(wall, again);
			assert_string_equal(again, text);
		}
	}
}

static void a_deadline_past_the_end_of_time_is_the_end_of_time(void **state)
{
	(void)state;
	assert_true(hf_mono_in(INT64_MAX).ns == INT64_MAX);
	assert_true(hf_mono_in(INT64_MAX - hf_mono_now().ns + HF_SEC).ns == INT64_MAX);
	assert_true(hf_mono_left((struct hf_mono){ INT64_MAX }) > INT64_MAX / 2);
	assert_true(hf_mono_left((struct hf_mono){ INT64_MIN }) == 0);
	assert_true(hf_mono_left(hf_mono_now()) == 0);
	assert_true(hf_mono_left(hf_mono_in(INT64_MIN)) == 0);
}

static void deadlines_are_measured_from_now(void **state)
{
	struct hf_mono before = hf_mono_now();
	struct hf_mono at = hf_mono_in(3600 * HF_SEC);
	struct hf_mono after = hf_mono_now();
	int64_t left = hf_mono_left(at);

	(void)state;
	assert_true(before.ns > 0 && at.ns >= before.ns + 3600 * HF_SEC);
	assert_true(at.ns <= after.ns + 3600 * HF_SEC);
	assert_true(left > 0 && left <= 3600 * HF_SEC);
}

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(id, &ts), 0);
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

static void each_clock_is_the_one_it_is_called(void **state)
{
	int64_t mono = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME);
	int64_t wall = clock_ns(CLOCK_REALTIME);

	(void)state;
	assert_true(hf_mono_now().ns >= mono && hf_mono_now().ns <= clock_ns(CLOCK_MONOTONIC));
	assert_true(hf_boot_now().ns >= boot && hf_boot_now().ns <= clock_ns(CLOCK_BOOTTIME));
	/* The wall clock may be set meanwhile, but not by a year in a test. */
	assert_true(llabs(hf_wall_now().ns - wall) < 365 * (86400 * HF_SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_listed_code_has_its_entry),
		HF_TEST(codes_are_distinct_and_no_errno),
		HF_TEST(exit_status_follows_the_contract),
		HF_TEST(a_failure_names_what_it_is_part_of),
		HF_TEST(message_leaves_out_what_is_empty),
		HF_TEST(control_bytes_in_messages_become_question_marks),
		HF_TEST(c1_controls_in_messages_do_not_reach_the_terminal),
		HF_TEST(message_is_cut_as_snprintf_does),
		HF_TEST(longest_message_fits_its_buffer),
		HF_TEST(failing_fills_and_cuts_every_field),
		HF_TEST(failure_is_never_reported_as_success),
		HF_TEST(running_version_is_that_of_the_headers),
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
		HF_TEST(what_is_no_number_is_refused),
		HF_TEST(u64_stops_at_its_edges),
		HF_TEST(canonical_numbers_have_one_text),
		HF_TEST(i64_covers_its_whole_range_and_no_more),
		HF_TEST(numbers_written_are_numbers_read),
		HF_TEST(hex_is_exactly_sixteen_lower_case_digits),
		HF_TEST(durations_with_units_and_fractions_are_read),
		HF_TEST(what_is_no_duration_is_refused),
		HF_TEST(only_the_given_length_is_read),
		HF_TEST(sizes_are_powers_of_1024),
		HF_TEST(durations_for_people_have_two_units_at_most),
		HF_TEST(wall_time_survives_format_and_parse),
		HF_TEST(times_before_1970_are_written_as_its_start),
		HF_TEST(what_is_no_date_is_refused),
		HF_TEST(every_changed_byte_of_a_date_is_noticed),
		HF_TEST(a_deadline_past_the_end_of_time_is_the_end_of_time),
		HF_TEST(deadlines_are_measured_from_now),
		HF_TEST(each_clock_is_the_one_it_is_called),
	};

	return hf_run_tests("base", tests);
}
