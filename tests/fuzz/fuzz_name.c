/* tests/fuzz/fuzz_name.c - any bytes as a name, as a key and as a stored id. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "holdfast/name.h"

static int is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static void sanitized_is_plain_and_stays(const char *text, size_t size)
{
	size_t cap = size + sizeof("unknown"), len;
	char *once = malloc(cap), *twice = malloc(cap);

	MUST(once && twice);
	len = hf_name_sanitize(text, size, once, cap);
	MUST(len < cap && len == strlen(once) && len == (size ? size : strlen("unknown")));
	for (size_t i = 0; i < len; i++)
		MUST(is_plain(once[i]));
	MUST(hf_name_sanitize(once, len, twice, cap) == len && strcmp(once, twice) == 0);
	free(once);
	free(twice);
}

static void key_goes_there_and_back(const char *text, size_t size)
{
	char key[HF_NAME_KEY_MAX], name[HF_NAME_MAX + 1];
	struct hf_err err = HF_ERR_INIT;
	int len = hf_name_key(text, size, key, &err);

	MUST((len > 0) == (size >= 1 && size <= HF_NAME_MAX));
	if (len < 0) {
		MUST(len == HF_E_NAME && err.code == len);
		return;
	}
	MUST(len < HF_NAME_KEY_MAX && strlen(key) == (size_t)len && key[0] != '.');
	for (int i = 0; i < len; i++)
		MUST(is_plain(key[i]) || key[i] == '%');
	MUST(hf_name_unkey(key, (size_t)len, name, NULL) == (int)size);
	MUST(memcmp(name, text, size) == 0);
}

static void accepted_key_is_the_only_one(const char *text, size_t size)
{
	char key[HF_NAME_KEY_MAX], name[HF_NAME_MAX + 1];
	int len = hf_name_unkey(text, size, name, NULL);

	if (len < 0) {
		MUST(len == HF_E_STORED_ID);
		return;
	}
	MUST(len >= 1 && len <= HF_NAME_MAX && name[len] == '\0');
	MUST(hf_name_key(name, (size_t)len, key, NULL) == (int)size);
	MUST(memcmp(key, text, size) == 0);
}

static void believed_id_cannot_walk(const char *text, size_t size)
{
	if (hf_name_check_stored(text, size, NULL) < 0)
		return;
	MUST(size > 0 && !memchr(text, '/', size) && !memmem(text, size, "..", 2));
	for (size_t i = 0; i < size; i++)
		MUST((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	sanitized_is_plain_and_stays(text, size);
	key_goes_there_and_back(text, size);
	accepted_key_is_the_only_one(text, size);
	believed_id_cannot_walk(text, size);
	return 0;
}
