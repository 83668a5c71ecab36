/* base/parse.c - checked parsing. */
#include <string.h>
#include <sys/types.h>

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

static size_t count_digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= '0' && s[n] <= '9')
		n++;
	return n;
}

/* A number that may have a fraction: "12", "1.5", ".5". */
struct decimal {
	uint64_t whole;
	const char *fraction; /* its digits */
	size_t n_fraction;
};

/* Returns how many bytes it takes, or HF_E_SYNTAX. "5." is a typing error more often than it is meant. */
static ssize_t read_decimal(const char *s, size_t len, struct decimal *ret)
{
	size_t digits = count_digits(s, len);

	*ret = (struct decimal){ 0 };
	if (digits > 0 && hf_parse_u64(s, digits, INT64_MAX, &ret->whole) < 0)
		return HF_E_SYNTAX;
	if (digits == len || s[digits] != '.')
		return digits > 0 ? (ssize_t)digits : HF_E_SYNTAX;
	ret->fraction = s + digits + 1;
	ret->n_fraction = count_digits(ret->fraction, len - digits - 1);
	return ret->n_fraction > 0 ? (ssize_t)(digits + 1 + ret->n_fraction) : HF_E_SYNTAX;
}

/* number * unit, cut to a whole; below zero when that is too large. */
static int64_t times(const struct decimal *number, int64_t unit)
{
	int64_t value, part = 0;

	if (__builtin_mul_overflow((int64_t)number->whole, unit, &value))
		return -1;
	for (size_t i = number->n_fraction; i > 0; i--)
		part = (part + (number->fraction[i - 1] - '0') * unit) / 10;
	return __builtin_add_overflow(value, part, &value) ? -1 : value;
}

static const struct {
	const char *suffix;
	int64_t ns;
} duration_units[] = {
	{ "w", 7 * 24 * 3600 * HF_SEC }, { "d", 24 * 3600 * HF_SEC }, { "h", 3600 * HF_SEC }, { "min", 60 * HF_SEC },
	{ "m", 60 * HF_SEC },		 { "sec", HF_SEC },	       { "s", HF_SEC },	       { "ms", HF_MSEC },
};

/* The unit that stands at the beginning of `s`, and its length; 0: none. */
static int64_t read_unit(const char *s, size_t len, size_t *ret_len)
{
	size_t letters = 0;

	while (letters < len && s[letters] >= 'a' && s[letters] <= 'z')
		letters++;
	*ret_len = letters;
	for (size_t i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++)
		if (strlen(duration_units[i].suffix) == letters && memcmp(s, duration_units[i].suffix, letters) == 0)
			return duration_units[i].ns;
	return 0;
}

int hf_parse_duration(const char *s, size_t len, int64_t *ret_ns)
{
	int64_t before = INT64_MAX, sum = 0;
	size_t at = 0;

	if (len == 0)
		return HF_E_SYNTAX;
	if (len == 3 && memcmp(s, "inf", 3) == 0) {
		*ret_ns = INT64_MAX;
		return 0;
	}
	do {
		struct decimal number;
		ssize_t n = read_decimal(s + at, len - at, &number);
		int64_t unit, ns;
		size_t letters;

		if (n < 0)
			return HF_E_SYNTAX;
		unit = read_unit(s + at + n, len - at - (size_t)n, &letters);
		/* A lone number means seconds; "1h30" could mean anything. */
		if (unit == 0 && at == 0 && (size_t)n == len)
			unit = HF_SEC;
		at += (size_t)n + letters;
		/* The units fall, and only the last number may have a fraction. */
		if (unit == 0 || unit >= before || (number.n_fraction > 0 && at < len))
			return HF_E_SYNTAX;
		before = unit;
		ns = times(&number, unit);
		if (ns < 0 || __builtin_add_overflow(sum, ns, &sum))
			return HF_E_SYNTAX;
	} while (at < len);
	*ret_ns = sum;
	return 0;
}

/* "4GB" and "4GiB" are "4G". */
static size_t without_byte(const char *s, size_t len)
{
	if (len < 2 || (s[len - 1] != 'B' && s[len - 1] != 'b'))
		return len;
	return len > 2 && s[len - 2] == 'i' && memchr("KMGTkmgt", s[len - 3], 8) ? len - 2 : len - 1;
}

int hf_parse_size(const char *s, size_t len, uint64_t *ret)
{
	static const char suffixes[] = "KMGTkmgt";
	const char *suffix;
	struct decimal number;
	uint64_t value;
	unsigned shift;
	int64_t bytes;
	size_t n;

	len = without_byte(s, len);
	suffix = len > 0 ? memchr(suffixes, s[len - 1], sizeof(suffixes) - 1) : NULL;
	shift = suffix ? 10 * (unsigned)((suffix - suffixes) % 4 + 1) : 0;
	n = len - (suffix ? 1 : 0);
	if (hf_parse_u64(s, n, UINT64_MAX >> shift, &value) == 0) {
		*ret = value << shift;
		return 0;
	}
	/* A fraction of a byte is none. */
	if (shift == 0 || read_decimal(s, n, &number) != (ssize_t)n)
		return HF_E_SYNTAX;
	bytes = times(&number, INT64_C(1) << shift);
	if (bytes < 0)
		return HF_E_SYNTAX;
	*ret = (uint64_t)bytes;
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
