/* base/parse.c - checked parsing. */
#include <string.h>

#include "hf/base/parse.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"

int hf_parse_u64(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (len == 0)
		return HF_E_SYNTAX;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return HF_E_SYNTAX;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(s[i] - '0'), &value))
			return HF_E_SYNTAX;
	}
	if (value > max)
		return HF_E_SYNTAX;
	*ret = value;
	return 0;
}

int hf_parse_u64_canonical(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
	if (len > 1 && s[0] == '0')
		return HF_E_SYNTAX;
	return hf_parse_u64(s, len, max, ret);
}

int hf_parse_i64(const char *s, size_t len, int64_t *ret)
{
	int negative = len > 0 && s[0] == '-';
	uint64_t value;

	if (hf_parse_u64(s + negative, len - (size_t)negative,
			 (uint64_t)INT64_MAX + (uint64_t)negative, &value) < 0)
		return HF_E_SYNTAX;
	*ret = negative ? (int64_t)(UINT64_C(0) - value) : (int64_t)value;
	return 0;
}

int hf_parse_hex64(const char *s, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	if (len != 16)
		return HF_E_SYNTAX;
	for (size_t i = 0; i < len; i++) {
		unsigned digit;

		if (s[i] >= '0' && s[i] <= '9')
			digit = (unsigned)(s[i] - '0');
		else if (s[i] >= 'a' && s[i] <= 'f')
			digit = (unsigned)(s[i] - 'a' + 10);
		else
			return HF_E_SYNTAX;
		value = value << 4 | digit;
	}
	*ret = value;
	return 0;
}

static const struct {
	const char *suffix;
	int64_t ns;
} duration_units[] = {
	{ "ms", HF_MSEC },	  { "s", HF_SEC },	      { "m", 60 * HF_SEC },
	{ "h", 3600 * HF_SEC }, { "d", 24 * 3600 * HF_SEC }, { "", HF_SEC },
};

int hf_parse_duration(const char *s, size_t len, int64_t *ret_ns)
{
	size_t digits = 0, fraction = 0;
	uint64_t whole = 0;
	int64_t unit = 0, ns, part = 0;

	while (digits < len && s[digits] >= '0' && s[digits] <= '9')
		digits++;
	/* ".5s" and "5.s" are typing errors more often than they are meant. */
	if (hf_parse_u64(s, digits, INT64_MAX, &whole) < 0)
		return HF_E_SYNTAX;
	if (digits < len && s[digits] == '.') {
		const char *f = s + digits + 1;

		while (digits + 1 + fraction < len && f[fraction] >= '0' && f[fraction] <= '9')
			fraction++;
		if (fraction == 0)
			return HF_E_SYNTAX;
	}
	for (size_t i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++) {
		size_t at = digits + (fraction ? 1 + fraction : 0);
		const char *suffix = duration_units[i].suffix;

		if (len - at == strlen(suffix) && memcmp(s + at, suffix, len - at) == 0)
			unit = duration_units[i].ns;
	}
	if (unit == 0 || __builtin_mul_overflow((int64_t)whole, unit, &ns))
		return HF_E_SYNTAX;
	for (size_t i = fraction; i > 0; i--)
		part = (part + (s[digits + i] - '0') * unit) / 10;
	if (__builtin_add_overflow(ns, part, &ns))
		return HF_E_SYNTAX;
	*ret_ns = ns;
	return 0;
}

int hf_parse_size(const char *s, size_t len, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	const char *suffix = len > 0 ? memchr(suffixes, s[len - 1], sizeof(suffixes) - 1) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	uint64_t value;

	if (hf_parse_u64(s, len - (suffix ? 1 : 0), UINT64_MAX >> shift, &value) < 0)
		return HF_E_SYNTAX;
	*ret = value << shift;
	return 0;
}

void hf_buf_add_duration(struct hf_buf *b, int64_t ns)
{
	int64_t sec;

	if (ns < 0)
		ns = 0;
	if (ns < HF_MSEC) {
		hf_buf_add_format(b, "%dus", (int)(ns / HF_USEC));
		return;
	}
	if (ns < HF_SEC) {
		hf_buf_add_format(b, "%dms", (int)(ns / HF_MSEC));
		return;
	}
	sec = ns / HF_SEC;
	if (sec < 10)
		hf_buf_add_format(b, "%d.%ds", (int)sec, (int)(ns / (HF_SEC / 10) % 10));
	else if (sec < 60)
		hf_buf_add_format(b, "%ds", (int)sec);
	else if (sec < 3600)
		hf_buf_add_format(b, "%dm%02ds", (int)(sec / 60), (int)(sec % 60));
	else if (sec < 86400)
		hf_buf_add_format(b, "%dh%02dm", (int)(sec / 3600), (int)(sec / 60 % 60));
	else
		hf_buf_add_format(b, "%lldd%02dh", (long long)(sec / 86400),
				  (int)(sec / 3600 % 24));
}
