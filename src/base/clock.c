/* base/clock.c - the three clocks and the one text form of time. */
#include <string.h>
#include <time.h>

#include "holdfast/clock.h"
#include "holdfast/err.h"

static int64_t now_ns(clockid_t id)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * HF_SEC + ts.tv_nsec;
}

struct hf_mono hf_mono_now(void)
{
	return (struct hf_mono){ now_ns(CLOCK_MONOTONIC) };
}

struct hf_boot hf_boot_now(void)
{
	return (struct hf_boot){ now_ns(CLOCK_BOOTTIME) };
}

struct hf_wall hf_wall_now(void)
{
	return (struct hf_wall){ now_ns(CLOCK_REALTIME) };
}

struct hf_mono hf_mono_in(int64_t ns)
{
	struct hf_mono at = hf_mono_now();

	if (__builtin_add_overflow(at.ns, ns, &at.ns))
		at.ns = INT64_MAX;
	return at;
}

int64_t hf_mono_left(struct hf_mono deadline)
{
	int64_t now = hf_mono_now().ns;

	return deadline.ns > now ? deadline.ns - now : 0;
}

/* Writes `value` as exactly `width` digits. */
static char *put_digits(char *at, int64_t value, int width)
{
	for (int i = width - 1; i >= 0; i--) {
		at[i] = (char)('0' + value % 10);
		value /= 10;
	}
	return at + width;
}

/*
 * The civil calendar, by hand: gmtime_r and timegm first read the time zone's files, which
 * costs a short-lived command more than all else it does with time.
 *
 * Days since 1970-01-01 and back. Years begin in March here, so that the leap day is the
 * last; 400 of them (an era) have 146,097 days.
 */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = y / 400, of_era = y % 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void civil_from_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
	int64_t since = days + 719468; /* 0000-03-01 */
	int64_t era = since / 146097, of_era = since % 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * of_year + 2) / 153;

	*ret_day = of_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

#define DAY_SEC       INT64_C(86400)
#define LAST_WALL_SEC INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

void hf_wall_format(struct hf_wall wall, char out[HF_WALL_TEXT_MAX])
{
	int64_t sec = wall.ns > 0 ? wall.ns / HF_SEC : 0;
	int64_t usec = wall.ns > 0 ? wall.ns % HF_SEC / HF_USEC : 0;
	int64_t year, month, day;
	char *at = out;

	sec = sec <= LAST_WALL_SEC ? sec : LAST_WALL_SEC;
	civil_from_days(sec / DAY_SEC, &year, &month, &day);
	sec %= DAY_SEC;
	at = put_digits(at, year, 4);
	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	at = put_digits(at, day, 2);
	*at++ = 'T';
	at = put_digits(at, sec / 3600, 2);
	*at++ = ':';
	at = put_digits(at, sec / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, sec % 60, 2);
	*at++ = '.';
	at = put_digits(at, usec, 6);
	*at++ = 'Z';
	*at = '\0';
}

int hf_wall_parse(const char *text, size_t len, struct hf_wall *ret)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
	char again[HF_WALL_TEXT_MAX];
	struct hf_wall wall;
	int64_t n[7] = { 0 };
	size_t field = 0;

	if (!text || len != sizeof(shape) - 1)
		return HF_E_SYNTAX;
	for (size_t i = 0; i < len; i++) {
		if (shape[i] == 'd') {
			if (text[i] < '0' || text[i] > '9')
				return HF_E_SYNTAX;
			n[field] = n[field] * 10 + (text[i] - '0');
		} else {
			if (text[i] != shape[i])
				return HF_E_SYNTAX;
			field++;
		}
	}
	/* Years past 2261 do not fit in 64-bit nanoseconds. */
	if (n[0] < 1970 || n[0] > 2261 || n[1] < 1 || n[1] > 12)
		return HF_E_SYNTAX;
	wall.ns = ((days_from_civil(n[0], n[1], n[2]) * 24 + n[3]) * 60 + n[4]) * 60 * HF_SEC +
		  n[5] * HF_SEC + n[6] * HF_USEC;
	/* The 31st of February and 25:61 fold over; only what prints the same was a date. */
	hf_wall_format(wall, again);
	if (memcmp(again, text, len) != 0)
		return HF_E_SYNTAX;
	*ret = wall;
	return 0;
}
