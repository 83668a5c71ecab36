/* cli/session/terminal/detach_keys.c - finds the keys that detach. */
#include <string.h>

#include "session/terminal/detach_keys.h"

/* Returns the key that `text` names, or -1. */
static int key_of(const char *text, size_t len)
{
	if (len == 1 && text[0] > ' ')
		return text[0];
	if (len != 6 || strncmp(text, "ctrl-", 5) != 0)
		return -1;
	if (text[5] >= 'a' && text[5] <= 'z')
		return text[5] - 'a' + 1;
	return text[5] >= '@' && text[5] <= '_' ? text[5] - '@' : -1;
}

int detach_keys_parse(struct detach_keys *keys, const char *text)
{
	*keys = (struct detach_keys){ .n = 0 };
	while (*text) {
		size_t len = strcspn(text, ",");
		int key = key_of(text, len);

		if (key < 0 || keys->n == DETACH_KEYS_MAX)
			return -1;
		keys->keys[keys->n++] = (char)key;
		text += len;
		if (*text == ',' && *++text == '\0')
			return -1;
	}
	return 0;
}

void detach_keys_release(struct detach_keys *keys, char *out, size_t *ret_n)
{
	memcpy(out, keys->keys, keys->held);
	*ret_n = keys->held;
	keys->held = 0;
}

/* After a mismatch: passes on the first held bytes, until the rest is again a beginning of the keys. */
static size_t shift(struct detach_keys *keys, char *out)
{
	size_t n = 0;

	while (keys->held > 0) {
		out[n] = keys->keys[n];
		n++;
		keys->held--;
		/* The rest is keys[n] to keys[n + held - 1]. */
		if (memcmp(keys->keys, keys->keys + n, keys->held) == 0)
			break;
	}
	return n;
}

int detach_keys_feed(struct detach_keys *keys, const char *typed, size_t n, char *out, size_t *ret_n)
{
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		while (keys->held > 0 && typed[i] != keys->keys[keys->held])
			*ret_n += shift(keys, out + *ret_n);
		if (keys->n == 0 || typed[i] != keys->keys[keys->held]) {
			out[(*ret_n)++] = typed[i];
			continue;
		}
		if (++keys->held == keys->n) {
			keys->held = 0;
			return 1;
		}
	}
	return 0;
}
