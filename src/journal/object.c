/* journal/object.c - one JSON object with a checksum, written and read. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/object.h"

#define SUM_LABEL ",\"x\":\""
#define SUM_LEN   (sizeof(SUM_LABEL) - 1 + 16 + 2) /* label, digits, quote and brace */

void hf_object_add_key(struct hf_buf *out, const char *key)
{
	hf_buf_add_text(out, ",\"");
	hf_buf_add_text(out, key);
	hf_buf_add_text(out, "\":");
}

void hf_object_add_text(struct hf_buf *out, const char *key, const char *text)
{
	hf_object_add_key(out, key);
	(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
}

void hf_object_add_number(struct hf_buf *out, const char *key, int64_t number)
{
	hf_object_add_key(out, key);
	hf_buf_add_i64(out, number);
}

void hf_object_add_time(struct hf_buf *out, const char *key, struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	hf_wall_format(time, text);
	hf_object_add_text(out, key, text);
}

void hf_object_add_hex(struct hf_buf *out, const char *key, uint64_t number)
{
	hf_object_add_key(out, key);
	hf_buf_add_char(out, '"');
	hf_buf_add_hex64(out, number);
	hf_buf_add_char(out, '"');
}

void hf_object_seal(struct hf_buf *out, size_t start)
{
	uint64_t sum;

	if (out->err)
		return;
	sum = XXH3_64bits(out->s + start, out->len - start);
	hf_buf_add_text(out, SUM_LABEL);
	hf_buf_add_hex64(out, sum);
	hf_buf_add_text(out, "\"}\n");
}

static int sum_is_right(const char *text, size_t len)
{
	const char *sum = text + len - SUM_LEN;
	uint64_t value;

	return len > SUM_LEN && memcmp(sum, SUM_LABEL, sizeof(SUM_LABEL) - 1) == 0 &&
	       memcmp(text + len - 2, "\"}", 2) == 0 &&
	       hf_parse_hex64(sum + sizeof(SUM_LABEL) - 1, 16, &value) == 0 &&
	       value == XXH3_64bits(text, len - SUM_LEN);
}

void hf_object_parse(struct hf_object *ret, const char *text, size_t len)
{
	*ret = (struct hf_object){ 0 };
	if (!sum_is_right(text, len)) {
		ret->why = "its checksum is wrong";
		return;
	}
	ret->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(ret->root))
		ret->why = "not a JSON object";
}

void hf_object_done(struct hf_object *object)
{
	json_decref(object->root);
	object->root = NULL;
}

void hf_object_wrong(struct hf_object *object, const char *why)
{
	object->why = object->why ? object->why : why;
}

json_t *hf_object_take(struct hf_object *object, const char *key)
{
	json_t *value = object->why ? NULL : json_object_get(object->root, key);

	object->used += value != NULL;
	return value;
}

int64_t hf_object_take_number(struct hf_object *object, const char *key, int64_t max)
{
	json_t *value = hf_object_take(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max) {
		hf_object_wrong(object, "a number is missing or out of range");
		return 0;
	}
	return json_integer_value(value);
}

const char *hf_object_take_string(struct hf_object *object, const char *key, size_t cap)
{
	json_t *value = hf_object_take(object, key);

	if (!json_is_string(value) || json_string_length(value) >= cap ||
	    strlen(json_string_value(value)) != json_string_length(value)) {
		hf_object_wrong(object, "a text is missing or too long");
		return "";
	}
	return json_string_value(value);
}

void hf_object_take_text(struct hf_object *object, const char *key, char *out, size_t cap)
{
	hf_copy_text(out, cap, hf_object_take_string(object, key, cap));
}

uint64_t hf_object_take_hex(struct hf_object *object, const char *key)
{
	const char *text = hf_object_take_string(object, key, 17);
	uint64_t number = 0;

	if (!object->why && hf_parse_hex64(text, strlen(text), &number) < 0)
		hf_object_wrong(object, "a number is not one");
	return number;
}

void hf_object_take_time(struct hf_object *object, const char *key, struct hf_wall *ret)
{
	const char *text = hf_object_take_string(object, key, HF_WALL_TEXT_MAX);

	if (!object->why && hf_wall_parse(text, strlen(text), ret) < 0)
		hf_object_wrong(object, "a time is not one");
}
