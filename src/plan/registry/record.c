/* plan/registry/record.c - a plan's record as a line of JSON, and back. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/object.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/registry/registry.h"

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

/* A path may hold any byte: what is not printable ASCII, and '%', is written as %XX. */
static void add_path(struct hf_buf *out, const char *key, const char *path)
{
	static const char digits[] = "0123456789ABCDEF";

	hf_object_add_key(out, key);
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
	hf_object_add_text(out, key, text);
}

static void add_sandbox(struct hf_buf *out, const struct hf_sandbox_record *s)
{
	hf_buf_add_text(out, "{\"v\":1");
	add_name(out, "key", s->name);
	hf_object_add_text(out, "strategy", hf_strategy_word(s->strategy));
	hf_object_add_text(out, "why", s->why);
	add_path(out, "target", s->target.path);
	hf_object_add_hex(out, "dev", s->target.dev);
	hf_object_add_hex(out, "ino", s->target.ino);
	hf_object_add_hex(out, "mount", s->target.mnt_id);
	hf_object_add_hex(out, "fs", s->target.fs_type);
	hf_object_add_text(out, "boot_id", s->target.boot_id);
	hf_object_add_number(out, "t0", s->t0.real_ns);
	hf_object_add_number(out, "t0_boot", s->t0.boot_ns);
	hf_object_add_text(out, "t0_boot_id", s->t0.boot_id);
	hf_object_add_number(out, "entered", s->entered);
	hf_object_add_text(out, "entered_boot", s->entered_boot);
	hf_object_add_number(out, "root_ns", s->root_ns);
	hf_buf_add_char(out, '}');
}

void hf_plan_encode(const struct hf_plan_record *r, struct hf_buf *out)
{
	size_t start = out->len;

	hf_buf_add_text(out, "{\"v\":1");
	add_name(out, "key", r->name);
	hf_object_add_number(out, "token", (int64_t)r->token);
	hf_object_add_text(out, "state", hf_plan_state_word(r->state));
	hf_object_add_text(out, "reason", r->reason);
	if (r->session[0])
		add_name(out, "session", r->session);
	hf_object_add_time(out, "created", r->created);
	hf_object_add_time(out, "changed", r->changed);
	hf_object_add_number(out, "torn", r->torn);
	hf_object_add_number(out, "phase", r->phase);
	hf_buf_add_text(out, ",\"sandboxes\":[");
	for (size_t i = 0; i < r->n_sandboxes; i++) {
		if (i > 0)
			hf_buf_add_char(out, ',');
		add_sandbox(out, &r->sandboxes[i]);
	}
	hf_buf_add_char(out, ']');
	hf_object_seal(out, start);
}

/* -- reading ------------------------------------------------------------------ */

static void take_name(struct hf_object *reader, const char *key, char out[HF_NAME_MAX + 1])
{
	const char *text = hf_object_take_string(reader, key, HF_NAME_KEY_MAX);

	if (!reader->why && hf_name_unkey(text, strlen(text), out, NULL) != (int)strlen(out))
		hf_object_wrong(reader, "a key is invalid");
}

static void take_boot_id(struct hf_object *reader, const char *key, char out[HF_BOOT_ID_LEN + 1],
			 int may_be_empty)
{
	const char *text = hf_object_take_string(reader, key, HF_BOOT_ID_LEN + 1);

	if (reader->why || (may_be_empty && !text[0]))
		return;
	if (!hf_boot_id_valid(text, strlen(text)))
		hf_object_wrong(reader, "a boot id is invalid");
	else
		hf_copy_text(out, HF_BOOT_ID_LEN + 1, text);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char *take_path(struct hf_object *reader, const char *key)
{
	const char *text = hf_object_take_string(reader, key, 3 * 4096);
	char *path = reader->why ? NULL : malloc(strlen(text) + 1);
	size_t n = 0;

	if (!path) {
		hf_object_wrong(reader, "out of memory");
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
			hf_object_wrong(reader, "a path has an invalid encoding");
			break;
		}
		path[n] = (char)(high * 16 + low);
		text += 2;
	}
	path[n] = '\0';
	if (!hf_dirtree_target_ok(path))
		hf_object_wrong(reader, "a path is not absolute and plain");
	return path;
}

static void take_state(struct hf_object *reader, enum hf_plan_state *ret)
{
	const char *word = hf_object_take_string(reader, "state", 16);
	int state = hf_plan_state_of(word);

	if (state > 0)
		*ret = (enum hf_plan_state)state;
	if (*ret == 0)
		hf_object_wrong(reader, "unknown state");
}

static void finish(struct hf_object *reader, struct hf_object *part)
{
	if (!part->why && part->used != json_object_size(part->root))
		part->why = "it has unknown fields";
	if (part->why)
		hf_object_wrong(reader, part->why);
}

static void read_sandbox(struct hf_object *reader, json_t *object, struct hf_sandbox_record *s)
{
	struct hf_object part = { .root = object };
	int strategy;

	if (!json_is_object(object)) {
		hf_object_wrong(reader, "a sandbox is not a JSON object");
		return;
	}
	if (hf_object_take_number(&part, "v", 1) != 1)
		hf_object_wrong(&part, "unknown version");
	take_name(&part, "key", s->name);
	strategy = hf_strategy_of(hf_object_take_string(&part, "strategy", 16));
	if (strategy <= HF_STRATEGY_AUTO)
		hf_object_wrong(&part, "unknown strategy");
	else
		s->strategy = (enum hf_strategy)strategy;
	hf_object_take_text(&part, "why", s->why, sizeof(s->why));
	s->target.path = take_path(&part, "target");
	s->target.dev = hf_object_take_hex(&part, "dev");
	s->target.ino = hf_object_take_hex(&part, "ino");
	s->target.mnt_id = hf_object_take_hex(&part, "mount");
	s->target.fs_type = hf_object_take_hex(&part, "fs");
	take_boot_id(&part, "boot_id", s->target.boot_id, 0);
	s->t0.real_ns = hf_object_take_number(&part, "t0", INT64_MAX);
	s->t0.boot_ns = hf_object_take_number(&part, "t0_boot", INT64_MAX);
	take_boot_id(&part, "t0_boot_id", s->t0.boot_id, 0);
	s->entered = (int)hf_object_take_number(&part, "entered", 1);
	take_boot_id(&part, "entered_boot", s->entered_boot, 1);
	s->root_ns = (int)hf_object_take_number(&part, "root_ns", 1);
	finish(reader, &part);
}

static void read_sandboxes(struct hf_object *reader, struct hf_plan_record *r)
{
	json_t *list = hf_object_take(reader, "sandboxes");
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n > HF_PLAN_SANDBOXES_MAX) {
		hf_object_wrong(reader, "the sandboxes are missing or too many");
		return;
	}
	r->sandboxes = calloc(n + 1, sizeof(*r->sandboxes));
	if (!r->sandboxes) {
		hf_object_wrong(reader, "out of memory");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		read_sandbox(reader, json_array_get(list, i), &r->sandboxes[i]);
		r->n_sandboxes = i + 1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(r->sandboxes[k].name, r->sandboxes[i].name) == 0)
				hf_object_wrong(reader, "two sandboxes have the same name");
	}
}

static void read_all(struct hf_object *reader, struct hf_plan_record *r)
{
	if (hf_object_take_number(reader, "v", 1) != 1)
		hf_object_wrong(reader, "unknown version");
	take_name(reader, "key", r->name);
	r->token = (uint64_t)hf_object_take_number(reader, "token", INT64_MAX);
	take_state(reader, &r->state);
	hf_object_take_text(reader, "reason", r->reason, sizeof(r->reason));
	if (json_object_get(reader->root, "session"))
		take_name(reader, "session", r->session);
	hf_object_take_time(reader, "created", &r->created);
	hf_object_take_time(reader, "changed", &r->changed);
	r->torn = (int)hf_object_take_number(reader, "torn", 1);
	r->phase = (int)hf_object_take_number(reader, "phase", 255);
	read_sandboxes(reader, r);
	(void)hf_object_take(reader, "x");
	finish(reader, reader);
}

int hf_plan_decode(const char *text, size_t len, struct hf_plan_record *ret, const char **ret_why)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	struct hf_object reader;

	if (len > 0 && text[len - 1] == '\n')
		len--;
	hf_object_parse(&reader, text, len);
	if (!reader.why)
		read_all(&reader, &record);
	hf_object_done(&reader);
	*ret_why = reader.why;
	if (reader.why)
		return strcmp(reader.why, "out of memory") == 0 ? -ENOMEM : HF_E_FORMAT;
	*ret = record;
	record = (struct hf_plan_record)HF_PLAN_RECORD_INIT;
	return 0;
}
