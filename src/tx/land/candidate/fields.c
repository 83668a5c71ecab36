/* tx/land/candidate/fields.c - the fields of a candidate, as JSON and back. Nothing in it is trusted. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/git.h"

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

static void free_kept(struct hf_land_kept *kept)
{
	free((char *)(uintptr_t)kept->ref);
	free((char *)(uintptr_t)kept->commit);
	free((char *)(uintptr_t)kept->text);
	free((char *)(uintptr_t)kept->label);
}

void hf_land_rest_done(struct hf_land_rest *rest)
{
	for (size_t i = 0; i < rest->n; i++)
		free_kept(&rest->list[i]);
	free(rest->list);
	*rest = (struct hf_land_rest){ 0 };
}

void hf_land_rest_forget(struct hf_land_rest *rest)
{
	size_t n = 0;

	for (size_t i = 0; i < rest->n; i++)
		if (rest->list[i].ref[0])
			rest->list[n++] = rest->list[i];
		else
			free_kept(&rest->list[i]);
	rest->n = n;
}

int hf_land_rest_add(struct hf_land_rest *rest, const char *label, const char *text, const char *commit, const char *ref, unsigned commits)
{
	struct hf_land_kept *grown = reallocarray(rest->list, rest->n + 1, sizeof(*grown)), *kept;

	if (!grown)
		return -ENOMEM;
	rest->list = grown;
	kept = &grown[rest->n++];
	*kept = (struct hf_land_kept){ strdup(ref), strdup(commit), strdup(text), strdup(label), commits };
	if (kept->ref && kept->commit && kept->text && kept->label)
		return 0;
	free_kept(kept);
	rest->n--;
	return -ENOMEM;
}

#define AT(member) offsetof(struct hf_landing, member)

static const struct {
	const char *key;
	size_t at;
} texts[] = {
	{ "top", AT(top) },         { "git_dir", AT(git_dir) }, { "common", AT(common) },
	{ "branch", AT(branch) },   { "plan", AT(plan) },       { "session", AT(session) },
	{ "verify", AT(verify) },   { "message", AT(message) }, { "text", AT(text) },
	{ "checkout", AT(checkout) }, { "dir", AT(dir) },
}, lists[] = {
	{ "also", AT(also) }, { "env", AT(env) }, { "write", AT(write) },
}, oids[] = {
	{ "base", AT(base) }, { "tip", AT(tip) }, { "from", AT(from) }, { "commit", AT(commit) },
	{ "forecast", AT(forecast) },
	{ "sealed", AT(sealed) }, { "unsealed", AT(unsealed) }, { "after", AT(after) }, { "landed", AT(landed) },
}, numbers[] = {
	{ "verify_limit_ns", AT(verify_limit_ns) }, { "verify_ns", AT(verify_ns) },
	{ "since", AT(since) }, { "changed", AT(changed) }, { "confine", AT(confine) }, { "is_verified", AT(is_verified) },
	{ "is_exact", AT(is_exact) }, { "keep_plan", AT(keep_plan) }, { "sign", AT(sign) },
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
	EACH(i, lists)
		hf_landing_free_list(field(landing, lists[i].at));
	hf_landing_free_list(&landing->unmatched);
	hf_land_paths_done(&landing->paths);
	hf_land_paths_done(&landing->outside);
	hf_land_paths_done(&landing->unlanded);
	hf_land_rest_done(&landing->rest);
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
	*landing = (struct hf_landing){ .verify_ns = -1, .state = HF_LAND_WORKING, .merge = HF_LAND_REBASE };
	hf_copy_text(landing->name, sizeof(landing->name), name);
	landing->since = landing->changed = hf_wall_now();
	EACH(i, texts)
		if (hf_landing_set(field(landing, texts[i].at), "") < 0)
			return -ENOMEM;
	return 0;
}

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

static json_t *encode_rest(const struct hf_land_rest *rest)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < rest->n; i++) {
		const struct hf_land_kept *kept = &rest->list[i];
		json_t *row = json_pack("[o?, o?, o?, o?, i]", packed(kept->label), packed(kept->text), packed(kept->commit), packed(kept->ref), (int)kept->commits);

		if (json_array_append_new(list, row) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *encode_list(char *const *list)
{
	json_t *array = json_array();

	for (size_t i = 0; array && list && list[i]; i++)
		if (json_array_append_new(array, packed(list[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

json_t *hf_landing_encode(struct hf_landing *landing)
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
	SET("added", json_integer(landing->added));
	SET("deleted", json_integer(landing->deleted));
	EACH(i, texts)
		SET(texts[i].key, packed(*(char **)field(landing, texts[i].at)));
	EACH(i, lists)
		SET(lists[i].key, encode_list(*(char ***)field(landing, lists[i].at)));
	EACH(i, oids)
		SET(oids[i].key, json_string(field(landing, oids[i].at)));
	EACH(i, numbers)
		SET(numbers[i].key, json_integer(*(int64_t *)field(landing, numbers[i].at)));
	EACH(i, bits)
		SET(bits[i].key, hex(*(uint64_t *)field(landing, bits[i].at)));
	SET("paths", encode_paths(&landing->paths));
	SET("outside", encode_paths(&landing->outside));
	SET("unlanded", encode_paths(&landing->unlanded));
	SET("rest", encode_rest(&landing->rest));
#undef SET
	if (bad)
		json_decref(root);
	return bad ? NULL : root;
}

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
	static const char *const kinds[] = { "content", "dirty", "outside", "kept" };

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
			return "a path is invalid";
	}
	return NULL;
}

static const char *decode_rest(const json_t *list, struct hf_land_rest *ret)
{
	size_t i;
	json_t *row;

	json_array_foreach(list, i, row) {
		AUTO_FREE char *label = unpacked(json_array_get(row, 0));
		AUTO_FREE char *text = unpacked(json_array_get(row, 1));
		AUTO_FREE char *commit = unpacked(json_array_get(row, 2));
		AUTO_FREE char *ref = unpacked(json_array_get(row, 3));

		if (!label || !text || !commit || !hf_git_is_oid(commit) || !ref || (ref[0] && strncmp(ref, "refs/holdfast/", 14) != 0) ||
		    hf_land_rest_add(ret, label, text, commit, ref, (unsigned)json_integer_value(json_array_get(row, 4))) < 0)
			return "its list of kept work is invalid";
	}
	return NULL;
}

/* A record of an older build has none. */
static const char *decode_list(const json_t *array, char ***ret)
{
	size_t i, n = json_array_size(array);
	json_t *row;

	hf_landing_free_list(ret);
	if (n == 0)
		return NULL;
	*ret = calloc(n + 1, sizeof(**ret));
	json_array_foreach(array, i, row)
		if (!*ret || !((*ret)[i] = unpacked(row)))
			return "a list is invalid";
	return NULL;
}

const char *hf_landing_decode(const json_t *root, struct hf_landing *ret)
{
	AUTO_FREE char *name = unpacked(json_object_get(root, "name"));
	int state = word_in(root, "state", HF_LAND_WORKING, HF_LAND_DROPPED, state_word);
	int merge = word_in(root, "merge", HF_LAND_MERGE, HF_LAND_REBASE, merge_word);
	const char *why = NULL;

	if (json_integer_value(json_object_get(root, "v")) != 1)
		return "unknown version";
	if (!name || strcmp(name, ret->name) != 0)
		return "the record belongs to another candidate";
	if (state < 0 || merge < 0)
		return "its state or its way to merge is unknown";
	ret->state = (enum hf_land_state)state;
	ret->merge = (enum hf_land_merge)merge;
	ret->rebased = json_integer_value(json_object_get(root, "rebased")) != 0;
	ret->commits = (unsigned)json_integer_value(json_object_get(root, "commits"));
	ret->files = (unsigned)json_integer_value(json_object_get(root, "files"));
	ret->added = (unsigned)json_integer_value(json_object_get(root, "added"));
	ret->deleted = (unsigned)json_integer_value(json_object_get(root, "deleted"));
	EACH(i, texts) {
		char **at = field(ret, texts[i].at);

		/* A record of an older build has none. */
		if (texts[i].at == AT(dir) && !json_object_get(root, "dir"))
			continue;
		free(*at);
		*at = unpacked(json_object_get(root, texts[i].key));
		if (!*at)
			return "a text is missing";
	}
	EACH(i, lists)
		why = why ? why : decode_list(json_object_get(root, lists[i].key), field(ret, lists[i].at));
	if (why)
		return why;
	EACH(i, oids) {
		const char *text = json_string_value(json_object_get(root, oids[i].key));

		/* A record of an older build has none. */
		if (!text && (oids[i].at == AT(forecast) || oids[i].at == AT(sealed) || oids[i].at == AT(unsealed) || oids[i].at == AT(after) ||
			      oids[i].at == AT(landed)))
			text = "";
		if (!text || (text[0] && !hf_git_is_oid(text)))
			return "an object name is invalid";
		hf_copy_text(field(ret, oids[i].at), HF_LAND_OID_MAX, text);
	}
	EACH(i, numbers)
		*(int64_t *)field(ret, numbers[i].at) = json_integer_value(json_object_get(root, numbers[i].key));
	EACH(i, bits) {
		const char *text = json_string_value(json_object_get(root, bits[i].key));

		if (!text || hf_parse_hex64(text, strlen(text), field(ret, bits[i].at)) < 0)
			return "a number is invalid";
	}
	if (strncmp(ret->branch, "refs/heads/", 11) != 0 || ret->top[0] != '/' || ret->common[0] != '/' ||
	    ret->git_dir[0] != '/' || (ret->checkout[0] && ret->checkout[0] != '/') || (ret->dir[0] && ret->dir[0] != '/'))
		return "a path or the branch is invalid";
	why = decode_paths(json_object_get(root, "paths"), &ret->paths);
	why = why ? why : decode_paths(json_object_get(root, "outside"), &ret->outside);
	why = why ? why : decode_paths(json_object_get(root, "unlanded"), &ret->unlanded);
	return why ? why : decode_rest(json_object_get(root, "rest"), &ret->rest);
}
