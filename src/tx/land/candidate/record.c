/* tx/land/candidate/record.c - a candidate's record: JSON with a checksum, replaced as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"
#include "hf/tx/land/candidate/land.h"

#define RECORD_MAX ((size_t)8 << 20)
#define SUM_LEN    17 /* 16 digits and a newline, before the object */

/* -- paths -------------------------------------------------------------------------- */

void hf_land_paths_done(struct hf_land_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free((char *)(uintptr_t)paths->list[i].path);
	free(paths->list);
	*paths = (struct hf_land_paths){ 0 };
}

int hf_land_paths_add(struct hf_land_paths *paths, const char *path, size_t len, const char *kind)
{
	struct hf_land_path *grown = reallocarray(paths->list, paths->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	paths->list = grown;
	grown[paths->n] = (struct hf_land_path){ strndup(path, len), kind };
	return grown[paths->n].path ? (paths->n++, 0) : -ENOMEM;
}

/* -- the fields --------------------------------------------------------------------- */

#define AT(member) offsetof(struct hf_landing, member)

static const struct {
	const char *key;
	size_t at;
} texts[] = {
	{ "top", AT(top) },         { "git_dir", AT(git_dir) }, { "common", AT(common) },
	{ "branch", AT(branch) },   { "plan", AT(plan) },       { "session", AT(session) },
	{ "verify", AT(verify) },   { "message", AT(message) }, { "text", AT(text) },
	{ "checkout", AT(checkout) },
}, oids[] = {
	{ "base", AT(base) }, { "tip", AT(tip) }, { "from", AT(from) }, { "commit", AT(commit) },
}, numbers[] = {
	{ "verify_limit_ns", AT(verify_limit_ns) }, { "verify_ns", AT(verify_ns) },
	{ "since", AT(since) }, { "changed", AT(changed) },
}, bits[] = {
	{ "token", AT(token) }, { "dev", AT(dev) }, { "ino", AT(ino) },
};

#define EACH(i, list) for (size_t i = 0; i < sizeof(list) / sizeof((list)[0]); i++)

static void *field(struct hf_landing *landing, size_t at)
{
	return (char *)landing + at;
}

void hf_landing_done(struct hf_landing *landing)
{
	EACH(i, texts)
		hf_auto_free(field(landing, texts[i].at));
	hf_land_paths_done(&landing->paths);
	hf_land_paths_done(&landing->outside);
}

int hf_landing_set(char **text, const char *value)
{
	char *copy = strdup(value ? value : "");

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

int hf_landing_init(struct hf_landing *landing, const char *name)
{
	*landing = (struct hf_landing){ .verify_ns = -1, .state = HF_LAND_WORKING };
	hf_copy_text(landing->name, sizeof(landing->name), name);
	landing->since = landing->changed = hf_wall_now();
	EACH(i, texts)
		if (hf_landing_set(field(landing, texts[i].at), "") < 0)
			return -ENOMEM;
	return 0;
}

/* -- writing ------------------------------------------------------------------------- */

/* Any byte but NUL: what is not printable ASCII, and '%', becomes %XX. */
static json_t *packed(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c >= 0x20 && *c < 0x7f && *c != '%') {
			hf_buf_add_char(&out, (char)*c);
			continue;
		}
		hf_buf_add_char(&out, '%');
		hf_buf_add_char(&out, digits[*c >> 4]);
		hf_buf_add_char(&out, digits[*c & 15]);
	}
	return out.err ? NULL : json_string(out.s);
}

static json_t *hex(uint64_t number)
{
	char text[17];

	(void)snprintf(text, sizeof(text), "%016llx", (unsigned long long)number);
	return json_string(text);
}

static json_t *encode_paths(const struct hf_land_paths *paths)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < paths->n; i++) {
		json_t *row = json_array();

		if (json_array_append_new(row, packed(paths->list[i].path)) < 0 ||
		    json_array_append_new(row, json_string(paths->list[i].kind)) < 0 ||
		    json_array_append_new(list, row) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *encode(struct hf_landing *landing)
{
	json_t *root = json_object();
	int bad = !root;

#define SET(key, value) (bad |= json_object_set_new(root, key, value) < 0)
	SET("v", json_integer(1));
	SET("name", packed(landing->name));
	SET("state", json_string(hf_land_state_word(landing->state)));
	SET("merge", json_string(hf_land_merge_word(landing->merge)));
	SET("rebased", json_integer(landing->rebased));
	SET("commits", json_integer(landing->commits));
	SET("files", json_integer(landing->files));
	EACH(i, texts)
		SET(texts[i].key, packed(*(char **)field(landing, texts[i].at)));
	EACH(i, oids)
		SET(oids[i].key, json_string(field(landing, oids[i].at)));
	EACH(i, numbers)
		SET(numbers[i].key, json_integer(*(int64_t *)field(landing, numbers[i].at)));
	EACH(i, bits)
		SET(bits[i].key, hex(*(uint64_t *)field(landing, bits[i].at)));
	SET("paths", encode_paths(&landing->paths));
	SET("outside", encode_paths(&landing->outside));
#undef SET
	if (bad)
		json_decref(root);
	return bad ? NULL : root;
}

int hf_landing_save(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], temp[HF_NAME_KEY_MAX + 8];
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *text = NULL;
	json_t *root;
	int r = hf_name_key(landing->name, strlen(landing->name), key, err);

	if (r < 0)
		return r;
	landing->changed = hf_wall_now();
	root = encode(landing);
	text = root ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(root);
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	hf_buf_add_hex64(&out, XXH3_64bits(text, strlen(text)));
	hf_buf_add_char(&out, '\n');
	hf_buf_add_text(&out, text);
	hf_buf_add_char(&out, '\n');
	if (out.err)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	(void)snprintf(temp, sizeof(temp), ".%s.new", key);
	r = hf_replace_file(landings->dirfd, key, temp, out.s, out.len, HF_REPLACE_SYNC);
	return r < 0 ? hf_fail_sys(err, -r, "write", landing->name) : 0;
}

/* -- reading, as if an enemy had written it -------------------------------------------- */

static int unhex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place, into a copy; NULL when it is none of ours. */
static char *unpacked(const json_t *value)
{
	char *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL, *to = text;

	for (const char *from = text; from && *from; from++) {
		int c = (unsigned char)*from;

		if (c == '%') {
			int high = unhex(from[1]), low = high < 0 ? -1 : unhex(from[2]);

			c = low < 0 ? 0 : high * 16 + low;
			from += 2;
		}
		if (c == 0) {
			free(text);
			return NULL;
		}
		*to++ = (char)c;
	}
	if (to)
		*to = '\0';
	return text;
}

static int is_oid(const char *text)
{
	size_t len = strspn(text, "0123456789abcdef");

	return text[len] == '\0' && (len == 0 || len == 40 || len == 64);
}

static int word_in(const json_t *root, const char *key, int from, int to, const char *(*word)(int))
{
	const char *text = json_string_value(json_object_get(root, key));

	for (int i = from; text && i <= to; i++)
		if (strcmp(word(i), text) == 0)
			return i;
	return -1;
}

static const char *state_word(int i)
{
	return hf_land_state_word((enum hf_land_state)i);
}

static const char *merge_word(int i)
{
	return hf_land_merge_word((enum hf_land_merge)i);
}

static const char *known_kind(const char *text)
{
	static const char *const kinds[] = { "content", "dirty", "outside" };

	EACH(i, kinds)
		if (text && strcmp(text, kinds[i]) == 0)
			return kinds[i];
	return NULL;
}

static const char *decode_paths(const json_t *list, struct hf_land_paths *ret)
{
	size_t i;
	json_t *row;

	json_array_foreach(list, i, row) {
		AUTO_FREE char *path = unpacked(json_array_get(row, 0));
		const char *kind = known_kind(json_string_value(json_array_get(row, 1)));

		if (!path || !kind || hf_land_paths_add(ret, path, strlen(path), kind) < 0)
			return "a path of it cannot be";
	}
	return NULL;
}

static const char *decode(const json_t *root, struct hf_landing *ret)
{
	AUTO_FREE char *name = unpacked(json_object_get(root, "name"));
	int state = word_in(root, "state", HF_LAND_WORKING, HF_LAND_DROPPED, state_word);
	int merge = word_in(root, "merge", HF_LAND_REBASE, HF_LAND_FF_ONLY, merge_word);
	const char *why;

	if (json_integer_value(json_object_get(root, "v")) != 1)
		return "not of a version that is known";
	if (!name || strcmp(name, ret->name) != 0)
		return "it is the record of another candidate";
	if (state < 0 || merge < 0)
		return "its state or way to merge is none";
	ret->state = (enum hf_land_state)state;
	ret->merge = (enum hf_land_merge)merge;
	ret->rebased = json_integer_value(json_object_get(root, "rebased")) != 0;
	ret->commits = (unsigned)json_integer_value(json_object_get(root, "commits"));
	ret->files = (unsigned)json_integer_value(json_object_get(root, "files"));
	EACH(i, texts) {
		char **at = field(ret, texts[i].at);

		free(*at);
		*at = unpacked(json_object_get(root, texts[i].key));
		if (!*at)
			return "a text of it is missing";
	}
	EACH(i, oids) {
		const char *text = json_string_value(json_object_get(root, oids[i].key));

		if (!text || !is_oid(text))
			return "an object name of it is none";
		hf_copy_text(field(ret, oids[i].at), HF_LAND_OID_MAX, text);
	}
	EACH(i, numbers)
		*(int64_t *)field(ret, numbers[i].at) = json_integer_value(json_object_get(root, numbers[i].key));
	EACH(i, bits) {
		const char *text = json_string_value(json_object_get(root, bits[i].key));

		if (!text || hf_parse_hex64(text, strlen(text), field(ret, bits[i].at)) < 0)
			return "a number of it is none";
	}
	if (strncmp(ret->branch, "refs/heads/", 11) != 0 || ret->top[0] != '/' || ret->common[0] != '/' ||
	    ret->git_dir[0] != '/' || (ret->checkout[0] && ret->checkout[0] != '/'))
		return "a path or branch of it is none";
	why = decode_paths(json_object_get(root, "paths"), &ret->paths);
	return why ? why : decode_paths(json_object_get(root, "outside"), &ret->outside);
}

static int quarantine(struct hf_landings *landings, const char *name, const char *key, const char *why,
		      struct hf_err *err)
{
	char moved[HF_QUARANTINE_NAME_MAX], file[HF_NAME_KEY_MAX + 16];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", why) };
	int r = hf_state_quarantine(landings->state, "landings", key, moved, err);

	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), "landings/%s", key);
	hf_land_event(landings, HF_EV_RECORD_QUARANTINED, name, fields, 3);
	return FAIL(err, HF_E_FORMAT, "land", name, "its record was put away: %s", why);
}

static const char *read_record(int fd, const struct stat *st, struct hf_landing *ret)
{
	AUTO_FREE char *text = NULL;
	const char *why;
	uint64_t sum;
	json_t *root;
	ssize_t n;

	if (st->st_size <= SUM_LEN + 1 || (size_t)st->st_size > RECORD_MAX)
		return "its size cannot be";
	text = malloc((size_t)st->st_size + 1);
	n = text ? hf_pread_all(fd, text, (size_t)st->st_size, 0) : -1;
	if (n <= SUM_LEN + 1)
		return "it cannot be read";
	n -= text[n - 1] == '\n';
	if (hf_parse_hex64(text, 16, &sum) < 0 || sum != XXH3_64bits(text + SUM_LEN, (size_t)n - SUM_LEN))
		return "its checksum is wrong";
	root = json_loadb(text + SUM_LEN, (size_t)n - SUM_LEN, JSON_REJECT_DUPLICATES, NULL);
	why = json_is_object(root) ? decode(root, ret) : "it is no object";
	json_decref(root);
	return why;
}

int hf_landing_load(struct hf_landings *landings, const char *name, struct hf_landing *ret, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	char key[HF_NAME_KEY_MAX];
	const char *why;
	AUTO_FD fd = -1;
	struct stat st;
	int r = hf_name_key(name, name ? strlen(name) : 0, key, err);

	if (r < 0)
		return r;
	r = hf_open_private(landings->dirfd, key, O_RDONLY, name, &fd, &st, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_LANDING, "land", name, "'holdfast land list' shows those there are");
	if (r == HF_E_UNTRUSTED)
		return quarantine(landings, name, key, "not a file of ours", err);
	if (r < 0)
		return r;
	if (hf_landing_init(&landing, name) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	why = read_record(fd, &st, &landing);
	if (why)
		return quarantine(landings, name, key, why, err);
	*ret = landing;
	landing = (struct hf_landing){ 0 };
	return 0;
}

int hf_landing_become(struct hf_landings *landings, struct hf_landing *landing, enum hf_land_state state,
		      struct hf_err *err, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	landing->state = state;
	if (hf_landing_set(&landing->text, text) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	return hf_landing_save(landings, landing, err);
}
