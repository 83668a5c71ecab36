/* cli/when.c - parses times as people write them: "5m" (ago), "yesterday", a date, a time of today. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "holdfast/clock.h"
#include "holdfast/parse.h"
#include "cli.h"

#define MOMENT_MAX 40 /* longer than any valid text */

static int64_t local(struct tm *tm)
{
	time_t sec;

	tm->tm_isdst = -1;
	sec = mktime(tm);
	return sec == (time_t)-1 ? -1 : (int64_t)sec * HF_SEC;
}

/* Returns the local midnight `days` days before today. */
static int64_t midnight(int64_t now_ns, int days)
{
	time_t now = (time_t)(now_ns / HF_SEC);
	struct tm tm;

	if (!localtime_r(&now, &tm))
		return -1;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= days;
	return local(&tm);
}

/* mktime() turns the 31st of February into a day of March. A date that it changes is invalid. */
static int is_date(const struct tm *given)
{
	struct tm folded = *given;

	return local(&folded) >= 0 && folded.tm_year == given->tm_year && folded.tm_mon == given->tm_mon && folded.tm_mday == given->tm_mday;
}

/* Parses "2026-11-18", "2026-11-18 07:30" or "2026-11-18T07:30:15": local time, or UTC with a final "Z". */
static int64_t date(const char *text)
{
	static const char *const shapes[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S" };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, shapes[i], &tm);

		if (end && strcmp(end, "Z") == 0 && is_date(&tm))
			return (int64_t)timegm(&tm) * HF_SEC;
		if (end && !*end && is_date(&tm))
			return local(&tm);
	}
	return -1;
}

/* Parses a time of today: "07:30" or "07:30:15". */
static int64_t time_of_day(const char *text, int64_t now_ns)
{
	static const char *const shapes[] = { "%H:%M", "%H:%M:%S" };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		time_t now = (time_t)(now_ns / HF_SEC);
		struct tm tm;
		const char *end;

		if (!localtime_r(&now, &tm))
			return -1;
		tm.tm_sec = 0;
		end = strptime(text, shapes[i], &tm);
		if (end && !*end)
			return local(&tm);
	}
	return -1;
}

int cli_when(const char *text, int64_t *ret_wall_ns)
{
	int64_t now = hf_wall_now().ns, ago, at;
	struct hf_wall exact;
	size_t len = strlen(text);

	if (len == 0 || len > MOMENT_MAX)
		return -1;
	if (hf_parse_duration(text, len, &ago) == 0)
		at = ago < now ? now - ago : 0;
	else if (hf_wall_parse(text, len, &exact) == 0) /* as the journal prints it */
		at = exact.ns;
	else if (text[0] == '@' && hf_parse_duration(text + 1, len - 1, &at) == 0) /* seconds since 1970, as date +%s prints them */
		at = strspn(text + 1, "0123456789.") == len - 1 ? at : -1;
	else if (strcmp(text, "now") == 0)
		at = now;
	else if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0)
		at = midnight(now, text[0] == 'y');
	else if (strchr(text, '-'))
		at = date(text);
	else
		at = time_of_day(text, now);
	if (at < 0)
		return -1;
	*ret_wall_ns = at;
	return 0;
}
