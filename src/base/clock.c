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

#define LAST_WALL_SEC INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

void hf_wall_format(struct hf_wall wall, char out[HF_WALL_TEXT_MAX])
{
	int64_t sec = wall.ns > 0 ? wall.ns / HF_SEC : 0;
	int64_t usec = wall.ns > 0 ? wall.ns % HF_SEC / HF_USEC : 0;
	time_t t = (time_t)(sec <= LAST_WALL_SEC ? sec : LAST_WALL_SEC);
	struct tm tm;
	char *at = out;

	memset(&tm, 0, sizeof(tm));
	(void)gmtime_r(&t, &tm);
	at = put_digits(at, tm.tm_year + 1900, 4);
	*at++ = '-';
	at = put_digits(at, tm.tm_mon + 1, 2);
	*at++ = '-';
	at = put_digits(at, tm.tm_mday, 2);
	*at++ = 'T';
	at = put_digits(at, tm.tm_hour, 2);
	*at++ = ':';
	at = put_digits(at, tm.tm_min, 2);
	*at++ = ':';
	at = put_digits(at, tm.tm_sec, 2);
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
	struct tm tm;
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
	memset(&tm, 0, sizeof(tm));
	tm.tm_year = (int)n[0] - 1900;
	tm.tm_mon = (int)n[1] - 1;
	tm.tm_mday = (int)n[2];
	tm.tm_hour = (int)n[3];
	tm.tm_min = (int)n[4];
	tm.tm_sec = (int)n[5];
	/* Years past 2261 do not fit in 64-bit nanoseconds. */
	if (n[0] < 1970 || n[0] > 2261)
		return HF_E_SYNTAX;
	wall.ns = (int64_t)timegm(&tm) * HF_SEC + n[6] * HF_USEC;
	/* timegm folds the 31st of February over; only what prints the same was a date. */
	hf_wall_format(wall, again);
	if (memcmp(again, text, len) != 0)
		return HF_E_SYNTAX;
	*ret = wall;
	return 0;
}
