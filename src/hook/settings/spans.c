/* hook/settings/spans.c - where things stand in a JSON text. */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "hf/hook/settings/spans.h"

size_t hf_span_comment(const char *text, size_t len, size_t at)
{
	const char *end;

	if (at + 1 >= len || text[at] != '/')
		return at;
	if (text[at + 1] == '/') {
		while (at < len && text[at] != '\n' && text[at] != '\r')
			at++;
		return at;
	}
	if (text[at + 1] != '*')
		return at;
	end = memmem(text + at + 2, len - at - 2, "*/", 2);
	return end ? (size_t)(end - text) + 2 : len;
}

size_t hf_span_skip(const char *text, size_t len, size_t at)
{
	while (at < len) {
		size_t behind = hf_span_comment(text, len, at);

		if (behind > at)
			at = behind;
		else if (strchr(" \t\r\n", text[at]) && text[at])
			at++;
		else
			break;
	}
	return at;
}

size_t hf_span_string(const char *text, size_t len, size_t at)
{
	for (at++; at < len; at++) {
		if (text[at] == '\\')
			at++;
		else if (text[at] == '"')
			return at + 1;
	}
	return len;
}

/* The end of the value at `at`: of a word or number, a string, or everything to the closing bracket. */
static size_t value_end(const char *text, size_t len, size_t at)
{
	size_t depth = 0;

	while (at < len) {
		size_t behind = hf_span_comment(text, len, at);
		char c = text[at];

		if (behind > at) {
			if (depth == 0)
				return at;
			at = behind;
			continue;
		}
		if (c == '"') {
			at = hf_span_string(text, len, at);
			if (depth == 0)
				return at;
			continue;
		}
		if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']' || (c && strchr(" \t\r\n", c))))
			return at;
		at++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return at;
	}
	return len;
}

int hf_item_next(const char *text, size_t len, size_t open, struct hf_item *item)
{
	int object = text[open] == '{';
	size_t at;

	if (item->after == 0)
		item->after = open + 1;
	else if (item->next < len && text[item->next] == ',')
		item->after = item->next + 1;
	else
		return 0;
	at = hf_span_skip(text, len, item->after);
	if (at >= len || text[at] == '}' || text[at] == ']')
		return 0;
	item->key_at = item->key_end = 0;
	if (object) {
		item->key_at = at;
		item->key_end = value_end(text, len, at);
		at = hf_span_skip(text, len, item->key_end);
		if (at >= len || text[at] != ':')
			return 0;
		at = hf_span_skip(text, len, at + 1);
	}
	item->at = at;
	item->end = value_end(text, len, at);
	item->next = hf_span_skip(text, len, item->end);
	return item->end > item->at;
}

int hf_item_is(const char *text, const struct hf_item *item, const char *key)
{
	json_t *name = json_loadb(text + item->key_at, item->key_end - item->key_at, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	int is = json_is_string(name) && json_string_length(name) == strlen(key) &&
		 memcmp(json_string_value(name), key, strlen(key)) == 0;

	json_decref(name);
	return is;
}

int hf_item_find(const char *text, size_t len, size_t open, const char *key, struct hf_item *ret)
{
	struct hf_item item = { 0 };
	int n = 0;

	while (hf_item_next(text, len, open, &item) > 0) {
		if (!hf_item_is(text, &item, key))
			continue;
		if (n++ == 0)
			*ret = item;
	}
	return n > 1 ? -EEXIST : n;
}
