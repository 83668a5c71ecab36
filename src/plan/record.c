/* plan/record.c - a plan's record as a line of JSON, and back. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/plan/registry.h"

#define SUM_LABEL ",\"x\":\""
#define SUM_LEN   (sizeof(SUM_LABEL) - 1 + 16 + 2) /* label, digits, quote and brace */

void hf_plan_record_done(struct hf_plan_record *record)
{
	for (size_t i = 0; i < record->n_sandboxes; i++)
		free(record->sandboxes[i].target.path);
	free(record->sandboxes);
	record->sandboxes = NULL;
	record->n_sandboxes = 0;
}

struct hf_sandbox_record *hf_plan_sandbox(struct hf_plan_record *record, const char *name)
{
	for (size_t i = 0; i < record->n_sandboxes; i++)
		if (strcmp(record->sandboxes[i].name, name) == 0)
			return &record->sandboxes[i];
	return NULL;
}

/* -- writing ------------------------------------------------------------------ */

static void add_key(struct hf_buf *out, const char *key)
{
	hf_buf_add_text(out, ",\"");
	hf_buf_add_text(out, key);
	hf_buf_add_text(out, "\":");
}

static void add_text(struct hf_buf *out, const char *key, const char *text)
{
	add_key(out, key);
	(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
}

static void add_number(struct hf_buf *out, const char *key, int64_t number)
{
	add_key(out, key);
	hf_buf_add_i64(out, number);
}

/* Numbers of the kernel may use all 64 bits; JSON's integers here do not. */
static void add_hex(struct hf_buf *out, const char *key, uint64_t number)
{
	add_key(out, key);
	hf_buf_add_char(out, '"');
	hf_buf_add_hex64(out, number);
	hf_buf_add_char(out, '"');
}

/* A path may hold any byte: what is not printable ASCII, and '%', is written as %XX. */
static void add_path(struct hf_buf *out, const char *key, const char *path)
{
	static const char digits[] = "0123456789ABCDEF";

	add_key(out, key);
	hf_buf_add_char(out, '"');
	for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
		if (*c > 0x20 && *c < 0x7f && *c != '%' && *c != '"' && *c != '\\') {
			hf_buf_add_char(out, (char)*c);
			continue;
		}
		hf_buf_add_char(out, '%');
		hf_buf_add_char(out, digits[*c >> 4]);
		hf_buf_add_char(out, digits[*c & 15]);
	}
	hf_buf_add_char(out, '"');
}

static void add_name(struct hf_buf *out, const char *key, const char *name)
{
	char text[HF_NAME_KEY_MAX] = "";

	/* A name may hold any bytes; its key is what JSON can carry. */
	if (hf_name_key(name, strlen(name), text, NULL) < 0)
		text[0] = '\0';
	add_text(out, key, text);
}

static void add_time(struct hf_buf *out, const char *key, struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	hf_wall_format(time, text);
	add_text(out, key, text);
}

static void add_sandbox(struct hf_buf *out, const struct hf_sandbox_record *s)
{
	hf_buf_add_text(out, "{\"v\":1");
	add_name(out, "key", s->name);
	add_text(out, "strategy", hf_strategy_word(s->strategy));
	add_text(out, "why", s->why);
	add_path(out, "target", s->target.path);
	add_hex(out, "dev", s->target.dev);
	add_hex(out, "ino", s->target.ino);
	add_hex(out, "mount", s->target.mnt_id);
	add_hex(out, "fs", s->target.fs_type);
	add_text(out, "boot_id", s->target.boot_id);
	add_number(out, "t0", s->t0.real_ns);
	add_number(out, "t0_boot", s->t0.boot_ns);
	add_text(out, "t0_boot_id", s->t0.boot_id);
	add_number(out, "entered", s->entered);
	add_text(out, "entered_boot", s->entered_boot);
	add_number(out, "root_ns", s->root_ns);
	hf_buf_add_char(out, '}');
}

void hf_plan_encode(const struct hf_plan_record *r, struct hf_buf *out)
{
	size_t start = out->len;

	hf_buf_add_text(out, "{\"v\":1");
	add_name(out, "key", r->name);
	add_number(out, "token", (int64_t)r->token);
	add_text(out, "state", hf_plan_state_word(r->state));
	add_text(out, "reason", r->reason);
	if (r->session[0])
		add_name(out, "session", r->session);
	add_time(out, "created", r->created);
	add_time(out, "changed", r->changed);
	add_number(out, "torn", r->torn);
	add_number(out, "phase", r->phase);
	hf_buf_add_text(out, ",\"sandboxes\":[");
	for (size_t i = 0; i < r->n_sandboxes; i++) {
		if (i > 0)
			hf_buf_add_char(out, ',');
		add_sandbox(out, &r->sandboxes[i]);
	}
	hf_buf_add_char(out, ']');
	if (out->err)
		return;
	uint64_t sum = XXH3_64bits(out->s + start, out->len - start);
	hf_buf_add_text(out, SUM_LABEL);
	hf_buf_add_hex64(out, sum);
	hf_buf_add_text(out, "\"}\n");
}

/* -- reading ------------------------------------------------------------------ */

/* The first thing that is wrong stays; later reads do nothing. */
struct reader {
	json_t *root;
	const char *why;
	size_t used; /* keys that were read: all must be */
};

static void wrong(struct reader *reader, const char *why)
{
	reader->why = reader->why ? reader->why : why;
}

static json_t *take(struct reader *reader, const char *key)
{
	json_t *value = reader->why ? NULL : json_object_get(reader->root, key);

	reader->used += value != NULL;
	return value;
}

static int64_t take_number(struct reader *reader, const char *key, int64_t max)
{
	json_t *value = take(reader, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max) {
		wrong(reader, "a number is missing or out of range");
		return 0;
	}
	return json_integer_value(value);
}

static const char *take_string(struct reader *reader, const char *key, size_t cap)
{
	json_t *value = take(reader, key);

	if (!json_is_string(value) || json_string_length(value) >= cap ||
	    strlen(json_string_value(value)) != json_string_length(value)) {
		wrong(reader, "a text is missing or too long");
		return "";
	}
	return json_string_value(value);
}

static void take_text(struct reader *reader, const char *key, char *out, size_t cap)
{
	hf_copy_text(out, cap, take_string(reader, key, cap));
}

static uint64_t take_hex(struct reader *reader, const char *key)
{
	const char *text = take_string(reader, key, 17);
	uint64_t number = 0;

	if (!reader->why && hf_parse_hex64(text, strlen(text), &number) < 0)
		wrong(reader, "a number is not one");
	return number;
}

static void take_name(struct reader *reader, const char *key, char out[HF_NAME_MAX + 1])
{
	const char *text = take_string(reader, key, HF_NAME_KEY_MAX);

	if (!reader->why && hf_name_unkey(text, strlen(text), out, NULL) != (int)strlen(out))
		wrong(reader, "a key is not one");
}

static void take_boot_id(struct reader *reader, const char *key, char out[HF_BOOT_ID_LEN + 1],
			 int may_be_empty)
{
	const char *text = take_string(reader, key, HF_BOOT_ID_LEN + 1);

	if (reader->why || (may_be_empty && !text[0]))
		return;
	if (!hf_boot_id_valid(text, strlen(text)))
		wrong(reader, "a boot id is not one");
	else
		hf_copy_text(out, HF_BOOT_ID_LEN + 1, text);
}

static void take_time(struct reader *reader, const char *key, struct hf_wall *ret)
{
	const char *text = take_string(reader, key, HF_WALL_TEXT_MAX);

	if (!reader->why && hf_wall_parse(text, strlen(text), ret) < 0)
		wrong(reader, "a time is not one");
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Absolute, without "." or ".." or empty parts: what realpath gives, and nothing that wanders. */
static int is_plain_path(const char *path)
{
	if (path[0] != '/' || strlen(path) >= 4096)
		return 0;
	for (const char *part = path; *part == '/' && part[1];) {
		size_t len = strcspn(part + 1, "/");

		if (len == 0 || (len == 1 && part[1] == '.') ||
		    (len == 2 && part[1] == '.' && part[2] == '.'))
			return 0;
		part += 1 + len;
		if (*part == '/' && !part[1])
			return 0;
	}
	return 1;
}

static char *take_path(struct reader *reader, const char *key)
{
	const char *text = take_string(reader, key, 3 * 4096);
	char *path = reader->why ? NULL : malloc(strlen(text) + 1);
	size_t n = 0;

	if (!path) {
		wrong(reader, "out of memory");
		return NULL;
	}
	for (; *text; text++, n++) {
		int high, low;

		path[n] = *text;
		if (*text != '%')
			continue;
		high = hex_digit(text[1]);
		low = high < 0 ? -1 : hex_digit(text[2]);
		if (low < 0 || high * 16 + low == 0) {
			wrong(reader, "a path is not encoded as it should be");
			break;
		}
		path[n] = (char)(high * 16 + low);
		text += 2;
	}
	path[n] = '\0';
	if (!is_plain_path(path))
		wrong(reader, "a path is not absolute and plain");
	return path;
}

static void take_state(struct reader *reader, enum hf_plan_state *ret)
{
	const char *word = take_string(reader, "state", 16);

#define OF(name, number)             \
	if (strcmp(word, #name) == 0) \
		*ret = HF_PLAN_##name;
	HF_PLAN_STATE_LIST(OF)
#undef OF
	if (*ret == 0)
		wrong(reader, "there is no such state");
}

static void finish(struct reader *reader, struct reader *part)
{
	if (!part->why && part->used != json_object_size(part->root))
		part->why = "it has fields that nobody wrote";
	if (part->why)
		wrong(reader, part->why);
}

static void read_sandbox(struct reader *reader, json_t *object, struct hf_sandbox_record *s)
{
	struct reader part = { .root = object };
	int strategy;

	if (!json_is_object(object)) {
		wrong(reader, "a sandbox is not a JSON object");
		return;
	}
	if (take_number(&part, "v", 1) != 1)
		wrong(&part, "not a version that is known");
	take_name(&part, "key", s->name);
	strategy = hf_strategy_of(take_string(&part, "strategy", 16));
	if (strategy <= HF_STRATEGY_AUTO)
		wrong(&part, "there is no such strategy");
	else
		s->strategy = (enum hf_strategy)strategy;
	take_text(&part, "why", s->why, sizeof(s->why));
	s->target.path = take_path(&part, "target");
	s->target.dev = take_hex(&part, "dev");
	s->target.ino = take_hex(&part, "ino");
	s->target.mnt_id = take_hex(&part, "mount");
	s->target.fs_type = take_hex(&part, "fs");
	take_boot_id(&part, "boot_id", s->target.boot_id, 0);
	s->t0.real_ns = take_number(&part, "t0", INT64_MAX);
	s->t0.boot_ns = take_number(&part, "t0_boot", INT64_MAX);
	take_boot_id(&part, "t0_boot_id", s->t0.boot_id, 0);
	s->entered = (int)take_number(&part, "entered", 1);
	take_boot_id(&part, "entered_boot", s->entered_boot, 1);
	s->root_ns = (int)take_number(&part, "root_ns", 1);
	finish(reader, &part);
}

static void read_sandboxes(struct reader *reader, struct hf_plan_record *r)
{
	json_t *list = take(reader, "sandboxes");
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n > HF_PLAN_SANDBOXES_MAX) {
		wrong(reader, "the sandboxes are missing or too many");
		return;
	}
	r->sandboxes = calloc(n + 1, sizeof(*r->sandboxes));
	if (!r->sandboxes) {
		wrong(reader, "out of memory");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		read_sandbox(reader, json_array_get(list, i), &r->sandboxes[i]);
		r->n_sandboxes = i + 1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(r->sandboxes[k].name, r->sandboxes[i].name) == 0)
				wrong(reader, "two sandboxes have one name");
	}
}

static void read_all(struct reader *reader, struct hf_plan_record *r)
{
	if (take_number(reader, "v", 1) != 1)
		wrong(reader, "not a version that is known");
	take_name(reader, "key", r->name);
	r->token = (uint64_t)take_number(reader, "token", INT64_MAX);
	take_state(reader, &r->state);
	take_text(reader, "reason", r->reason, sizeof(r->reason));
	if (json_object_get(reader->root, "session"))
		take_name(reader, "session", r->session);
	take_time(reader, "created", &r->created);
	take_time(reader, "changed", &r->changed);
	r->torn = (int)take_number(reader, "torn", 1);
	r->phase = (int)take_number(reader, "phase", 255);
	read_sandboxes(reader, r);
	(void)take(reader, "x");
	finish(reader, reader);
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

int hf_plan_decode(const char *text, size_t len, struct hf_plan_record *ret, const char **ret_why)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	struct reader reader = { 0 };

	*ret_why = NULL;
	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (!sum_is_right(text, len)) {
		*ret_why = "its checksum is wrong";
		return HF_E_FORMAT;
	}
	reader.root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(reader.root))
		reader.why = "not a JSON object";
	else
		read_all(&reader, &record);
	json_decref(reader.root);
	*ret_why = reader.why;
	if (reader.why)
		return strcmp(reader.why, "out of memory") == 0 ? -ENOMEM : HF_E_FORMAT;
	*ret = record;
	record = (struct hf_plan_record)HF_PLAN_RECORD_INIT;
	return 0;
}
