/* journal/line.c - encoding and decoding of one record. */
#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/line.h"

#define HEAD       "{\"v\":1,\"seq\":"
#define SUM_LABEL  ",\"x\":\""
#define SUM_LEN    (sizeof(SUM_LABEL) - 1 + 16 + 2) /* label, digits, quote and brace */
#define ESCAPE_MAX 6                                /* bytes that one byte may become */

/* Every text field at its longest, all bytes escaped, and the rest fits in one line. */
_Static_assert((HF_EVENT_FIELDS_MAX + 1) * (HF_JOURNAL_TEXT_MAX * ESCAPE_MAX + 64) + 512 <
		       HF_JOURNAL_LINE_MAX,
	       "no record can be longer than a line may be");

static const struct hf_event_field *find_spec(const struct hf_event_info *info, const char *key)
{
	for (const struct hf_event_field *f = info->fields; f->key; f++)
		if (key && strcmp(f->key, key) == 0)
			return f;
	return NULL;
}

static int given_times(const char *key, const struct hf_field *fields, size_t n)
{
	int times = 0;

	for (size_t i = 0; i < n; i++)
		times += fields[i].key && strcmp(fields[i].key, key) == 0;
	return times;
}

static const char *type_name(enum hf_type type)
{
	return type == HF_TEXT ? "text" : type == HF_INT ? "a number" : "true or false";
}

static int check_fields(const struct hf_event_info *info, const char *name,
			const struct hf_field *fields, size_t n, struct hf_err *err)
{
	if (info->needs_name && !name)
		return FAIL(err, HF_E_EVENT, "event", info->name, "it needs a name");
	for (size_t i = 0; i < n; i++) {
		const struct hf_event_field *spec = find_spec(info, fields[i].key);

		if (!spec)
			return FAIL(err, HF_E_EVENT, "event", info->name, "it has no field '%.40s'",
				    fields[i].key ? fields[i].key : "(null)");
		if (spec->type != fields[i].type)
			return FAIL(err, HF_E_EVENT, "event", info->name, "field '%s' takes %s",
				    spec->key, type_name(spec->type));
	}
	for (const struct hf_event_field *f = info->fields; f->key; f++) {
		int times = given_times(f->key, fields, n);

		if (times > 1)
			return FAIL(err, HF_E_EVENT, "event", info->name,
				    "field '%s' is given %d times", f->key, times);
		if (f->required && times == 0)
			return FAIL(err, HF_E_EVENT, "event", info->name, "field '%s' is missing",
				    f->key);
	}
	return 0;
}

static int add_value(struct hf_buf *body, const struct hf_field *field)
{
	int cut = 0;

	switch (field->type) {
	case HF_INT:
		hf_buf_add_i64(body, field->number);
		break;
	case HF_BOOL:
		hf_buf_add_text(body, field->number ? "true" : "false");
		break;
	case HF_TEXT:
	default:
		if (field->text)
			cut = hf_buf_add_json(body, field->text, strlen(field->text),
					      HF_JOURNAL_TEXT_MAX);
		else
			hf_buf_add_text(body, "null");
		break;
	}
	return cut;
}

int hf_line_body(struct hf_buf *body, enum hf_event event, const char *name,
		 const struct hf_field *fields, size_t n_fields, struct hf_err *err)
{
	const struct hf_event_info *info = hf_event_info(event);
	int cut = 0;
	int r;

	if (!info)
		return FAIL(err, HF_E_EVENT, "event", "journal", "no event has number %d",
			    (int)event);
	r = check_fields(info, name, fields, n_fields, err);
	if (r < 0)
		return r;
	hf_buf_add_text(body, ",\"event\":\"");
	hf_buf_add_text(body, info->name);
	hf_buf_add_char(body, '"');
	if (name) {
		hf_buf_add_text(body, ",\"name\":");
		cut |= hf_buf_add_json(body, name, strlen(name), HF_JOURNAL_TEXT_MAX);
	}
	for (size_t i = 0; i < n_fields; i++) {
		hf_buf_add_text(body, ",\"");
		hf_buf_add_text(body, fields[i].key);
		hf_buf_add_text(body, "\":");
		cut |= add_value(body, &fields[i]);
	}
	if (cut)
		hf_buf_add_text(body, ",\"cut\":true");
	return body->err ? hf_fail_sys(err, -body->err, "memory", "journal") : 0;
}

void hf_line_finish(struct hf_buf *out, uint64_t seq, struct hf_wall time, int32_t pid,
		    const struct hf_buf *body)
{
	char stamp[HF_WALL_TEXT_MAX];
	size_t start = out->len;

	hf_wall_format(time, stamp);
	hf_buf_add(out, HEAD, sizeof(HEAD) - 1);
	hf_buf_add_u64(out, seq);
	hf_buf_add(out, ",\"ts\":\"", 7);
	hf_buf_add(out, stamp, sizeof(stamp) - 1);
	hf_buf_add(out, "\",\"pid\":", 8);
	hf_buf_add_u64(out, (uint64_t)pid);
	hf_buf_add(out, body->s, body->len);
	if (!out->err) {
		uint64_t sum = XXH3_64bits(out->s + start, out->len - start);

		hf_buf_add(out, SUM_LABEL, sizeof(SUM_LABEL) - 1);
		hf_buf_add_hex64(out, sum);
		hf_buf_add(out, "\"}\n", 3);
	}
}

int hf_line_check(const char *line, size_t len, uint64_t *ret_seq)
{
	const size_t head = sizeof(HEAD) - 1;
	const char *sum_at, *digits_end;
	uint64_t stored, seq;

	if (len < head + 1 + SUM_LEN || len >= HF_JOURNAL_LINE_MAX)
		return HF_E_FORMAT;
	sum_at = line + len - SUM_LEN;
	if (memcmp(line, HEAD, head) != 0 || memcmp(line + len - 2, "\"}", 2) != 0 ||
	    memcmp(sum_at, SUM_LABEL, sizeof(SUM_LABEL) - 1) != 0 ||
	    hf_parse_hex64(sum_at + sizeof(SUM_LABEL) - 1, 16, &stored) < 0 ||
	    stored != XXH3_64bits(line, len - SUM_LEN))
		return HF_E_FORMAT;
	digits_end = memchr(line + head, ',', len - head);
	if (!digits_end || hf_parse_u64_canonical(line + head, (size_t)(digits_end - line) - head,
						  HF_SEQ_MAX, &seq) < 0 ||
	    seq == 0)
		return HF_E_FORMAT;
	*ret_seq = seq;
	return 0;
}

int hf_line_decode(const char *line, size_t len, struct hf_record *ret, json_t **ret_root)
{
	struct hf_record record = { .line = line, .line_len = len };
	const char *stamp;
	json_t *root;
	json_int_t pid;
	int r;

	r = hf_line_check(line, len, &record.seq);
	if (r < 0)
		return r;
	root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		return HF_E_FORMAT;
	stamp = json_string_value(json_object_get(root, "ts"));
	record.event = json_string_value(json_object_get(root, "event"));
	record.name = json_string_value(json_object_get(root, "name"));
	pid = json_integer_value(json_object_get(root, "pid"));
	record.pid = pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
	if (!stamp || hf_wall_parse(stamp, strlen(stamp), &record.time) < 0 || !record.event ||
	    record.pid == 0) {
		json_decref(root);
		return HF_E_FORMAT;
	}
	record.info = hf_event_find(record.event, strlen(record.event));
	record.fields = root;
	*ret = record;
	*ret_root = root;
	return 0;
}

const char *hf_record_text(const struct hf_record *record, const char *key)
{
	return json_string_value(json_object_get(record->fields, key));
}

int hf_record_int(const struct hf_record *record, const char *key, int64_t *ret_value)
{
	const json_t *value = json_object_get(record->fields, key);

	if (json_is_integer(value))
		*ret_value = json_integer_value(value);
	else if (json_is_boolean(value))
		*ret_value = json_is_true(value);
	else
		return 0;
	return 1;
}

/* The keys that every record has; hf_record_each leaves them out. */
static int is_common(const char *key)
{
	static const char *const common[] = { "v", "seq", "ts", "pid", "event", "name", "x" };

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (strcmp(key, common[i]) == 0)
			return 1;
	return 0;
}

void hf_record_each(const struct hf_record *record,
		    void (*fn)(void *arg, const char *key, const char *text), void *arg)
{
	/* Iterating does not change the object; jansson's iterator wants it writable. */
	json_t *root = (json_t *)(uintptr_t)record->fields;
	const char *key;
	json_t *value;

	json_object_foreach(root, key, value) {
		AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

		if (is_common(key))
			continue;
		if (json_is_string(value))
			hf_buf_add_shown(&shown, json_string_value(value),
					 json_string_length(value));
		else if (json_is_integer(value))
			hf_buf_add_i64(&shown, json_integer_value(value));
		else if (json_is_boolean(value))
			hf_buf_add_text(&shown, json_is_true(value) ? "true" : "false");
		else
			hf_buf_add_text(&shown, "-");
		fn(arg, key, shown.s);
	}
}
