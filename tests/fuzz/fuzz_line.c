/*
 * tests/fuzz/fuzz_line.c - any bytes as a line of the journal.
 *
 * The first byte selects: even, the rest is the line; odd, the rest is all but its checksum,
 * which is put behind it here, because no fuzzer finds one by trying.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/buf.h"
#include "fuzz.h"
#include "hf/journal/line.h"

static int is_shown(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return 0;
	return 1;
}

static void field_is_shown(void *arg, const char *key, const char *text)
{
	static const char *const common[] = { "v", "seq", "ts", "pid", "event", "name", "x" };

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		MUST(strcmp(key, common[i]) != 0);
	MUST(is_shown(text));
	++*(size_t *)arg;
}

static int same_text(const char *text, const json_t *value)
{
	return text ? json_is_string(value) && strcmp(text, json_string_value(value)) == 0
		    : !json_is_string(value);
}

/* The record says what the JSON says, and the JSON what the bytes say. */
static void record_is_consistent(const struct hf_record *record, json_t *root)
{
	char stamp[HF_WALL_TEXT_MAX];
	int64_t value = 0;
	size_t fields = 0;

	MUST(json_is_object(root) && record->fields == root);
	MUST(json_integer_value(json_object_get(root, "v")) == HF_LINE_VERSION);
	MUST(record->seq >= 1 && record->seq <= HF_SEQ_MAX);
	MUST((uint64_t)json_integer_value(json_object_get(root, "seq")) == record->seq);
	MUST(record->pid > 0);
	MUST(hf_record_int(record, "pid", &value) == 1 && value == record->pid);
	hf_wall_format(record->time, stamp);
	MUST(same_text(stamp, json_object_get(root, "ts")));
	MUST(record->event && same_text(record->event, json_object_get(root, "event")));
	MUST(same_text(record->name, json_object_get(root, "name")));
	MUST(!record->info || strcmp(record->info->name, record->event) == 0);
	MUST(strlen(hf_record_text(record, "x")) == 16);
	hf_record_each(record, field_is_shown, &fields);
	MUST(fields == json_object_size(root) - 6 - (json_object_get(root, "name") != NULL));
}

static void decode(const char *line, size_t len)
{
	struct hf_record record = { .pid = -77 };
	json_t *root = NULL;
	uint64_t seq = 0;
	int checked = hf_line_check(line, len, &seq);
	int r = hf_line_decode(line, len, &record, &root);

	MUST(checked == 0 || (checked == HF_E_FORMAT && seq == 0));
	if (r < 0) {
		MUST(r == HF_E_FORMAT && !root && record.pid == -77);
		return;
	}
	MUST(checked == 0 && record.seq == seq);
	MUST(record.line == line && record.line_len == len);
	record_is_consistent(&record, root);
	json_decref(root);
}

static void decode_with_checksum(const char *body, size_t len)
{
	struct hf_buf line = HF_BUF_INIT;

	hf_buf_add(&line, body, len);
	hf_buf_add_text(&line, ",\"x\":\"");
	hf_buf_add_hex64(&line, XXH3_64bits(body, len));
	hf_buf_add_text(&line, "\"}");
	MUST(line.err == 0);
	decode(line.s, line.len);
	hf_buf_done(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	if (size == 0)
		decode(text, 0);
	else if (data[0] & 1)
		decode_with_checksum(text + 1, size - 1);
	else
		decode(text + 1, size - 1);
	return 0;
}
