/* base/buf.c - the growing buffer. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"

char hf_buf_empty[1];

static const char hex_digits[] = "0123456789abcdef";

void hf_buf_done(struct hf_buf *b)
{
	if (b->cap > 0)
		free(b->s);
	*b = (struct hf_buf)HF_BUF_INIT;
}

void hf_buf_reset(struct hf_buf *b)
{
	b->len = 0;
	b->err = 0;
	if (b->cap > 0)
		b->s[0] = '\0';
}

int hf_buf_reserve(struct hf_buf *b, size_t more)
{
	size_t need, cap;
	char *grown;

	if (b->err)
		return b->err;
	if (more > HF_BUF_LIMIT || b->len + more + 1 > HF_BUF_LIMIT)
		return b->err = -E2BIG;
	need = b->len + more + 1;
	if (need <= b->cap)
		return 0;
	cap = b->cap > 0 ? b->cap : 128;
	while (cap < need)
		cap *= 2;
	grown = realloc(b->cap > 0 ? b->s : NULL, cap);
	if (!grown)
		return b->err = -ENOMEM;
	if (b->cap == 0)
		grown[0] = '\0';
	b->s = grown;
	b->cap = cap;
	return 0;
}

void hf_buf_add(struct hf_buf *b, const void *bytes, size_t len)
{
	if (len == 0 || hf_buf_reserve(b, len) < 0)
		return;
	memcpy(b->s + b->len, bytes, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void hf_buf_add_text(struct hf_buf *b, const char *text)
{
	hf_buf_add(b, text, strlen(text));
}

void hf_buf_add_char(struct hf_buf *b, char c)
{
	hf_buf_add(b, &c, 1);
}

void hf_buf_add_u64(struct hf_buf *b, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	hf_buf_add(b, digits + at, sizeof(digits) - at);
}

void hf_buf_add_i64(struct hf_buf *b, int64_t value)
{
	if (value < 0) {
		hf_buf_add_char(b, '-');
		hf_buf_add_u64(b, UINT64_C(0) - (uint64_t)value);
	} else {
		hf_buf_add_u64(b, (uint64_t)value);
	}
}

void hf_buf_add_hex64(struct hf_buf *b, uint64_t value)
{
	char digits[16];

	for (int i = 15; i >= 0; i--) {
		digits[i] = hex_digits[value & 15];
		value >>= 4;
	}
	hf_buf_add(b, digits, sizeof(digits));
}

void hf_buf_add_format(struct hf_buf *b, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0) {
		b->err = b->err ? b->err : -EINVAL;
		return;
	}
	if (hf_buf_reserve(b, (size_t)n) < 0)
		return;
	va_start(args, format);
	(void)vsnprintf(b->s + b->len, (size_t)n + 1, format, args);
	va_end(args);
	b->len += (size_t)n;
}

size_t hf_utf8_char(const unsigned char *s, size_t len)
{
	size_t need;
	unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */

	if (len == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		need = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		need = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		need = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (s[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (s[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (s[0] == 0xf4)
		high = 0x8f; /* past U+10FFFF */
	if (len < need || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < need; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return need;
}

static void add_json_char(struct hf_buf *b, const unsigned char *c, size_t size)
{
	static const char escapes[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};

	if (size == 0) {
		hf_buf_add_text(b, "\\ufffd");
	} else if (*c == '"' || *c == '\\') {
		hf_buf_add(b, (char[]){ '\\', (char)*c }, 2);
	} else if (*c < 0x20 && escapes[*c]) {
		hf_buf_add(b, (char[]){ '\\', escapes[*c] }, 2);
	} else if (*c < 0x20 || *c == 0x7f) {
		hf_buf_add(b,
			   (char[]){ '\\', 'u', '0', '0', hex_digits[*c >> 4], hex_digits[*c & 15] },
			   6);
	} else {
		hf_buf_add(b, c, size);
	}
}

static int is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

int hf_buf_add_json(struct hf_buf *b, const char *text, size_t len, size_t max)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i = 0;

	hf_buf_add_char(b, '"');
	while (i < len) {
		size_t run = i, size;

		/* Most text is plain: copy it in runs. */
		while (run < len && run < max && is_plain(s[run]))
			run++;
		if (run > i) {
			hf_buf_add(b, s + i, run - i);
			i = run;
			continue;
		}
		size = hf_utf8_char(s + i, len - i);
		if (i + (size ? size : 1) > max)
			break;
		add_json_char(b, s + i, size);
		i += size ? size : 1;
	}
	hf_buf_add_char(b, '"');
	return i < len;
}

void hf_buf_add_shown(struct hf_buf *b, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		size_t size = hf_utf8_char(s + i, len - i);
		/* U+0080 to U+009F are control characters too. */
		int c1 = size == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0;

		if (size == 0 || s[i] < 0x20 || s[i] == 0x7f || c1) {
			size = size ? size : 1;
			for (size_t k = 0; k < size; k++)
				hf_buf_add(b,
					   (char[]){ '\\', 'x', hex_digits[s[i + k] >> 4],
						     hex_digits[s[i + k] & 15] },
					   4);
		} else {
			hf_buf_add(b, s + i, size);
		}
		i += size;
	}
}

/* -- base64 --------------------------------------------------------------------------- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf_buf_add_base64(struct hf_buf *b, const void *bytes, size_t len)
{
	const unsigned char *from = bytes;

	if (hf_buf_reserve(b, (len + 2) / 3 * 4) < 0)
		return;
	for (size_t i = 0; i < len; i += 3) {
		unsigned a = from[i], c = i + 1 < len ? from[i + 1] : 0, d = i + 2 < len ? from[i + 2] : 0;
		unsigned all = a << 16 | c << 8 | d;

		hf_buf_add_char(b, base64_digits[all >> 18]);
		hf_buf_add_char(b, base64_digits[all >> 12 & 63]);
		hf_buf_add_char(b, i + 1 < len ? base64_digits[all >> 6 & 63] : '=');
		hf_buf_add_char(b, i + 2 < len ? base64_digits[all & 63] : '=');
	}
}

static int digit_of(char c)
{
	const char *at = c ? strchr(base64_digits, c) : NULL;

	return at ? (int)(at - base64_digits) : -1;
}

int hf_base64_read(const char *text, size_t len, struct hf_buf *ret)
{
	if (len % 4 != 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		int last = i + 4 == len;
		int pad = last ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
		unsigned all = 0;

		for (size_t k = 0; k < 4; k++) {
			int digit = (int)k >= 4 - pad ? 0 : digit_of(text[i + k]);

			if (digit < 0)
				return -EINVAL;
			all = all << 6 | (unsigned)digit;
		}
		/* One text for one value: the bits that are dropped are zero. */
		if ((pad == 1 && all & 0xff) || (pad == 2 && all & 0xffff))
			return -EINVAL;
		hf_buf_add_char(ret, (char)(all >> 16));
		if (pad < 2)
			hf_buf_add_char(ret, (char)(all >> 8 & 255));
		if (pad < 1)
			hf_buf_add_char(ret, (char)(all & 255));
	}
	return ret->err;
}

void hf_buf_add_shell_word(struct hf_buf *b, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:@%+,=";
	int is_plain = word[0] && word[strspn(word, plain)] == '\0';

	if (word[0] == '-')
		hf_buf_add_text(b, "-- ");
	if (!is_plain)
		hf_buf_add_char(b, '"');
	for (; *word; word++) {
		if (!is_plain && strchr("\"\\$`", *word))
			hf_buf_add_char(b, '\\');
		hf_buf_add_char(b, *word);
	}
	if (!is_plain)
		hf_buf_add_char(b, '"');
}

const char *hf_shell_word(const char *name, char out[HF_SHELL_WORD_MAX])
{
	struct hf_buf b = HF_BUF_INIT;

	hf_buf_add_shell_word(&b, name);
	(void)snprintf(out, HF_SHELL_WORD_MAX, "%s", b.s);
	hf_buf_done(&b);
	return out;
}
