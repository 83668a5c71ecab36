/* unit/base/test_clock.c - wall times as text, deadlines, clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "helper/random.h"
#include "helper/test.h"
#include "holdfast/clock.h"

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
		HF_TEST(wall_time_survives_format_and_parse),
		HF_TEST(times_before_1970_are_written_as_its_start),
		HF_TEST(what_is_no_date_is_refused),
		HF_TEST(every_changed_byte_of_a_date_is_noticed),
		HF_TEST(a_deadline_past_the_end_of_time_is_the_end_of_time),
		HF_TEST(deadlines_are_measured_from_now),
		HF_TEST(each_clock_is_the_one_it_is_called),
	};

	return hf_run_tests("clock", tests);
}
