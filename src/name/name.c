/* name/name.c - sanitized form, key, and the check of stored ids. */
#include <string.h>

#include "hf/base/fail.h"
#include "holdfast/name.h"

static const char upper_hex[] = "0123456789ABCDEF";
static const char nothing[] = "unknown";

_Static_assert(3 * HF_NAME_MAX + 1 == HF_NAME_KEY_MAX, "each byte may become three bytes");

/* By hand, not isalnum: the locale has no say in what is a file name. */
static int is_plain(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

/* `len` bytes for a message: sanitized, so that the message cannot be forged. */
static const char *shown(const char *name, size_t len, char out[HF_NAME_MAX + 1])
{
	if (!name || len == 0)
		return "(empty)";
	(void)hf_name_sanitize(name, len, out, HF_NAME_MAX + 1);
	return out;
}

size_t hf_name_sanitize(const char *name, size_t len, char *out, size_t cap)
{
	size_t fits;

	if (!name || len == 0) {
		name = nothing;
		len = sizeof(nothing) - 1;
	}
	if (cap == 0)
		return len;
	fits = len < cap ? len : cap - 1;
	for (size_t i = 0; i < fits; i++)
		out[i] = is_plain((unsigned char)name[i]) ? name[i] : '_';
	out[fits] = '\0';
	return len;
}

int hf_name_key(const char *name, size_t len, char out[HF_NAME_KEY_MAX], struct hf_err *err)
{
	char text[HF_NAME_MAX + 1];
	size_t n = 0;

	if (!name || len == 0)
		return FAIL(err, HF_E_NAME, "name", shown(name, len, text), "a name has at least "
			    "one byte");
	if (len > HF_NAME_MAX)
		return FAIL(err, HF_E_NAME, "name", shown(name, len, text),
			    "%zu bytes long; a name may have at most %d", len, HF_NAME_MAX);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (is_plain(c)) {
			out[n++] = (char)c;
		} else {
			out[n++] = '%';
			out[n++] = upper_hex[c >> 4];
			out[n++] = upper_hex[c & 15];
		}
	}
	out[n] = '\0';
	return (int)n;
}

static int hex_value(char c)
{
	const char *at = c ? strchr(upper_hex, c) : NULL;

	return at ? (int)(at - upper_hex) : -1;
}

int hf_name_unkey(const char *key, size_t len, char out[HF_NAME_MAX + 1], struct hf_err *err)
{
	char name[HF_NAME_MAX + 1], text[HF_NAME_MAX + 1];
	size_t n = 0;

	if (!key || len == 0)
		return FAIL(err, HF_E_STORED_ID, "key", shown(key, len, text), "a key has at "
			    "least one byte");
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)key[i++];

		if (c == '%') {
			int high = i < len ? hex_value(key[i]) : -1;
			int low = i + 1 < len ? hex_value(key[i + 1]) : -1;

			if (high < 0 || low < 0)
				return FAIL(err, HF_E_STORED_ID, "key", shown(key, len, text),
					    "byte %zu: '%%' without two upper-case digits", i - 1);
			c = (unsigned char)(high << 4 | low);
			i += 2;
			/* One name, one key: an encoded plain byte would be a second. */
			if (is_plain(c))
				return FAIL(err, HF_E_STORED_ID, "key", shown(key, len, text),
					    "byte %zu: encodes a byte that needs no encoding",
					    i - 3);
		} else if (!is_plain(c)) {
			return FAIL(err, HF_E_STORED_ID, "key", shown(key, len, text),
				    "byte %zu: 0x%02x is never part of a key", i - 1, c);
		}
		if (n == HF_NAME_MAX)
			return FAIL(err, HF_E_STORED_ID, "key", shown(key, len, text),
				    "longer than any name");
		name[n++] = (char)c;
	}
	memcpy(out, name, n);
	out[n] = '\0';
	return (int)n;
}

int hf_name_check_stored(const char *id, size_t len, struct hf_err *err)
{
	char text[HF_NAME_MAX + 1];

	if (!id || len == 0)
		return FAIL(err, HF_E_STORED_ID, "stored id", "(empty)", "it is empty");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)id[i];

		if (c == '/')
			return FAIL(err, HF_E_STORED_ID, "stored id", shown(id, len, text),
				    "byte %zu is '/'", i);
		if (c == '.' && i + 1 < len && id[i + 1] == '.')
			return FAIL(err, HF_E_STORED_ID, "stored id", shown(id, len, text),
				    "byte %zu starts '..'", i);
		if (is_control(c))
			return FAIL(err, HF_E_STORED_ID, "stored id", shown(id, len, text),
				    "byte %zu is the control byte 0x%02x", i, c);
	}
	return 0;
}
