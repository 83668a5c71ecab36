/* unit/base/test_parse.c - numbers, durations and sizes, read and written. */
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/parse.h"
#include "helper/random.h"
#include "helper/test.h"
#include "holdfast/clock.h"

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
	{ ".5", 500 * HF_MSEC },
	{ ".5h", 1800 * HF_SEC },
	{ "5min", 300 * HF_SEC },
	{ "10sec", 10 * HF_SEC },
	{ "1w", 7 * 86400 * HF_SEC },
	{ "1h30m", 5400 * HF_SEC },
	{ "1w2d3h4m5s6ms", ((9 * 24 + 3) * 3600 + 245) * HF_SEC + 6 * HF_MSEC },
	{ "1m1.5s", 61500 * HF_MSEC },
	{ "0h0m", 0 },
	{ "inf", INT64_MAX },
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
		"", "-1", "+1", " 1", "1 ", "5.", "1e3",
		"1hh", "s", "ms", "1 s", "1S", "1H", "1M", "1us",
		"1ns", "1.5.5", "1.s", "1..5", "1.-5", "1,5", "1.5 h",
		"0x1", "1sm", "1s1", "1h30", "30m1h", "1m1m", "1m1min", "1.5h30m", "1h ", "infinity", "-0", "Inf", "nan", "1.e3",
		"1\n", ".", "..", "-", "m", "1.5x",
		/* past the end of time, whole and with its fraction */
		"9223372036.854775808", "9223372037", "106752d", "9223372036854775807",
		"9223372036854775807ms", "18446744073709551616", "99999999999999999999999999h",
		"9223372036.9", "2562047.9h", "106751d24h", "15251w", ".", ".h", "1h.",
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
		{ "1T", UINT64_C(1) << 40 },
		{ "1k", 1024 },
		{ "4g", UINT64_C(4) << 30 },
		{ "1.5M", 3 << 19 },
		{ ".5K", 512 },
		{ "1KB", 1024 },
		{ "4GiB", UINT64_C(4) << 30 },
		{ "1.5mb", 3 << 19 },
		{ "100B", 100 },
		{ "0.0001K", 0 },
	};
	static const char *const bad[] = {
		"K", "B", "KB", "iB", "1iB", "1KBB", "1Ki", "1KiK", "1.5B", "1KK", "1.5", "1.M", ".", ".K", "-1K", "1 K", "18014398509481984K",
		"17179869184G", "17592186044416M", "8388608.5T", "K1",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return hf_run_tests("parse", tests);
}
