/* run/options_json.c - options as JSON: writing them, and reading them without trust in what stands there. */
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/run/options_json.h"

/* -- writing ------------------------------------------------------------------------ */

static void add_hex(struct hf_buf *out, const char *word)
{
	static const char digits[] = "0123456789abcdef";

	for (const unsigned char *c = (const unsigned char *)word; *c; c++) {
		hf_buf_add_char(out, digits[*c >> 4]);
		hf_buf_add_char(out, digits[*c & 15]);
	}
}

/* UTF-8 stands as it is, for people; a word that is not, as {"hex":…}. */
void hf_json_add_word(struct hf_buf *out, const char *word)
{
	size_t len = strlen(word), at = 0, size;

	while (at < len && (size = hf_utf8_char((const unsigned char *)word + at, len - at)) > 0)
		at += size;
	if (at == len) {
		(void)hf_buf_add_json(out, word, len, SIZE_MAX);
		return;
	}
	hf_buf_add_text(out, "{\"hex\":\"");
	add_hex(out, word);
	hf_buf_add_text(out, "\"}");
}

static void add_words(struct hf_buf *out, char *const *words)
{
	if (!words) {
		hf_buf_add_text(out, "null");
		return;
	}
	hf_buf_add_char(out, '[');
	for (size_t i = 0; words[i]; i++) {
		if (i > 0)
			hf_buf_add_char(out, ',');
		hf_json_add_word(out, words[i]);
	}
	hf_buf_add_char(out, ']');
}

static void add_option(struct hf_buf *out, const struct hf_option *option, struct hf_run_opts *o, int *n)
{
	int64_t number = hf_option_number(option, o);
	const char *text = option->kind == HF_OPTION_TEXT ? *hf_option_text(option, o) : NULL;

	if (!text && number == 0)
		return;
	hf_buf_add_format(out, "%s\"%s\":", (*n)++ ? "," : "", option->key);
	if (text)
		hf_json_add_word(out, text);
	else if (option->kind == HF_OPTION_TREE || option->kind == HF_OPTION_TERM)
		hf_json_add_word(out, hf_option_word(option, number));
	else
		hf_buf_add_i64(out, number);
}

void hf_options_add_json(struct hf_buf *out, const struct hf_run_opts *given)
{
	struct hf_run_opts o = *given;
	int n = 0;

	hf_buf_add_text(out, "\"argv\":");
	add_words(out, o.argv);
	hf_buf_add_text(out, ",\"cwd\":");
	if (o.cwd)
		hf_json_add_word(out, o.cwd);
	else
		hf_buf_add_text(out, "null");
	hf_buf_add_text(out, ",\"env\":");
	add_words(out, o.env);
	hf_buf_add_text(out, ",\"options\":{");
	for (const struct hf_option *option = hf_options; option->key; option++)
		add_option(out, option, &o, &n);
	hf_buf_add_char(out, '}');
}

/* -- reading ------------------------------------------------------------------------ */

static int unhex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes the word's bytes to `out` (which has room) with NUL; the length, or -1. */
static ssize_t word_bytes(json_t *value, char *out)
{
	json_t *hex = json_is_object(value) ? json_object_get(value, "hex") : NULL;
	const char *s = json_string_value(hex ? hex : value);
	size_t len = json_string_length(hex ? hex : value);

	if (!s)
		return -1;
	if (!hex) {
		memcpy(out, s, len + 1);
		return strlen(s) == len ? (ssize_t)len : -1;
	}
	for (size_t i = 0; i + 1 < len; i += 2) {
		int high = unhex(s[i]), low = unhex(s[i + 1]);

		if (high < 0 || low < 0 || (high == 0 && low == 0))
			return -1;
		out[i / 2] = (char)(high << 4 | low);
	}
	out[len / 2] = '\0';
	return len % 2 == 0 ? (ssize_t)(len / 2) : -1;
}

char *hf_json_take_word(json_t *value)
{
	json_t *hex = json_is_object(value) ? json_object_get(value, "hex") : NULL;
	char *word = malloc(json_string_length(hex ? hex : value) + 1);

	if (word && word_bytes(value, word) < 0) {
		free(word);
		return NULL;
	}
	return word;
}

static void free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

/* NULL-ended, to be freed; NULL when it is no list of words. */
static char **take_words(json_t *list)
{
	size_t n = json_array_size(list);
	char **words = json_is_array(list) ? calloc(n + 1, sizeof(*words)) : NULL;

	for (size_t i = 0; words && i < n; i++) {
		words[i] = hf_json_take_word(json_array_get(list, i));
		if (!words[i]) {
			free_words(words);
			return NULL;
		}
	}
	return words;
}

static const struct hf_option *find_option(const char *key)
{
	const struct hf_option *option = hf_options;

	while (option->key && strcmp(option->key, key) != 0)
		option++;
	return option->key ? option : NULL;
}

/* 0 when it may not have that value. */
static int take_number(const struct hf_option *option, json_t *value, enum hf_options_form form,
		       struct hf_run_opts *o)
{
	int64_t number = json_integer_value(value);
	int64_t least = option->kind == HF_OPTION_GRACE						     ? INT64_MIN
			: option->kind == HF_OPTION_DURATION && form == HF_OPTIONS_GIVEN ? HF_RUN_NONE
											     : 1;
	int64_t most = option->kind == HF_OPTION_COUNT  ? UINT32_MAX
		       : option->kind == HF_OPTION_FLAG ? 1
							: INT64_MAX;

	if (!json_is_integer(value) || number < least || number > most || number == 0)
		return 0;
	hf_option_set_number(option, o, number);
	return 1;
}

static int take_option(const char *key, json_t *value, enum hf_options_form form, struct hf_run_opts *o)
{
	const struct hf_option *option = find_option(key);
	int64_t number;
	char *word;

	if (!option)
		return 0;
	switch (option->kind) {
	case HF_OPTION_TEXT:
		word = hf_json_take_word(value);
		if (!word || (!word[0] && form == HF_OPTIONS_STORED)) {
			free(word);
			return 0;
		}
		/* One key stands once in an object, so nothing is lost here. */
		*hf_option_text(option, o) = word;
		return 1;
	case HF_OPTION_TREE:
	case HF_OPTION_TERM:
		number = json_is_string(value) ? hf_option_of_word(option, json_string_value(value)) : 0;
		hf_option_set_number(option, o, number);
		return number != 0;
	case HF_OPTION_DURATION:
	case HF_OPTION_GRACE:
	case HF_OPTION_COUNT:
	case HF_OPTION_SIZE:
	case HF_OPTION_FLAG:
	default:
		return take_number(option, value, form, o);
	}
}

int hf_options_take_argv(json_t *root, enum hf_options_form form, struct hf_run_opts *ret)
{
	json_t *argv = json_object_get(root, "argv");

	if (json_is_null(argv))
		return form == HF_OPTIONS_GIVEN;
	ret->argv = take_words(argv);
	return ret->argv && (ret->argv[0] || form == HF_OPTIONS_GIVEN);
}

const char *hf_options_take_rest(json_t *root, enum hf_options_form form, struct hf_run_opts *ret)
{
	json_t *cwd = json_object_get(root, "cwd"), *env = json_object_get(root, "env");
	json_t *options = json_object_get(root, "options"), *value;
	int given = form == HF_OPTIONS_GIVEN;
	const char *key;

	ret->cwd = hf_json_take_word(cwd);
	if (!(given && json_is_null(cwd)) && (!ret->cwd || (!given && ret->cwd[0] && ret->cwd[0] != '/')))
		return "its directory is invalid";
	ret->env = take_words(env);
	if (!ret->env && !(given && json_is_null(env)))
		return "its environment is invalid";
	if (!json_is_object(options))
		return "its options are invalid";
	json_object_foreach (options, key, value)
		if (!take_option(key, value, form, ret))
			return "an option has an invalid value";
	return NULL;
}

void hf_options_free(struct hf_run_opts *o)
{
	for (const struct hf_option *option = hf_options; option->key; option++)
		if (option->kind == HF_OPTION_TEXT)
			free((void *)(uintptr_t)*hf_option_text(option, o));
	free_words((char **)(uintptr_t)o->argv);
	free_words((char **)(uintptr_t)o->env);
	free((void *)(uintptr_t)o->cwd);
	memset(o, 0, sizeof(*o));
}
