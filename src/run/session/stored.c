/* run/session/stored.c - command.json: writing it, and reading it as if an enemy had. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options.h"
#include "hf/run/session/stored.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state.h"

#define COMMAND     "command.json"
#define COMMAND_NEW ".command.json.new"

/* More than the kernel takes as arguments, in JSON's longest form. */
#define COMMAND_MAX ((size_t)16 << 20)

/* -- writing ------------------------------------------------------------------------ */

/* Words may hold any bytes: each is stored as its hexadecimal digits. */
static void add_word(struct hf_buf *out, const char *word)
{
	static const char digits[] = "0123456789abcdef";

	for (const unsigned char *c = (const unsigned char *)word; *c; c++) {
		hf_buf_add_char(out, digits[*c >> 4]);
		hf_buf_add_char(out, digits[*c & 15]);
	}
}

/* UTF-8 stands as it is, for people; a word that is not, as {"hex":…}. */
static void add_json_word(struct hf_buf *out, const char *word)
{
	size_t len = strlen(word), at = 0, size;

	while (at < len && (size = hf_utf8_char((const unsigned char *)word + at, len - at)) > 0)
		at += size;
	if (at == len) {
		(void)hf_buf_add_json(out, word, len, SIZE_MAX);
		return;
	}
	hf_buf_add_text(out, "{\"hex\":\"");
	add_word(out, word);
	hf_buf_add_text(out, "\"}");
}

/* The same again, as in most runs: nothing needs to be written. */
static int is_stored(int dirfd, const struct hf_buf *text)
{
	AUTO_FREE char *old = NULL;
	AUTO_FD fd = -1;
	struct stat st;

	if (hf_open_private(dirfd, COMMAND, O_RDONLY, COMMAND, &fd, &st, NULL) < 0 ||
	    st.st_size != (off_t)text->len)
		return 0;
	old = malloc(text->len);
	return old && hf_pread_all(fd, old, text->len, 0) == (ssize_t)text->len &&
	       memcmp(old, text->s, text->len) == 0;
}

static void add_words(struct hf_buf *out, char *const *words)
{
	hf_buf_add_char(out, '[');
	for (size_t i = 0; words && words[i]; i++) {
		if (i > 0)
			hf_buf_add_char(out, ',');
		add_json_word(out, words[i]);
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
		add_json_word(out, text);
	else if (option->kind == HF_OPTION_TREE || option->kind == HF_OPTION_TERM)
		add_json_word(out, hf_option_word(option, number));
	else
		hf_buf_add_i64(out, number);
}

static void encode(const struct hf_run_opts *given, struct hf_buf *out)
{
	struct hf_run_opts o = *given;
	int n = 0;

	hf_buf_add_text(out, "{\"v\":2,\"argv\":");
	add_words(out, o.argv);
	hf_buf_add_text(out, ",\"cwd\":");
	add_json_word(out, o.cwd);
	hf_buf_add_text(out, ",\"env\":");
	add_words(out, o.env);
	hf_buf_add_text(out, ",\"options\":{");
	for (const struct hf_option *option = hf_options; option->key; option++)
		add_option(out, option, &o, &n);
	hf_buf_add_text(out, "}}\n");
}

/* Never 0, and small enough for JSON. */
static uint64_t sum_of(const char *text, size_t len)
{
	return (XXH3_64bits(text, len) & INT64_MAX) | 1;
}

int hf_stored_save(struct hf_sessions *sessions, const char *name, const struct hf_run_opts *given,
		   uint64_t *ret_sum, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FD dirfd = -1;
	int r = hf_session_dir(sessions, name, 1, &dirfd, err);

	if (r < 0)
		return r;
	encode(given, &text);
	if (text.err)
		return hf_fail_sys(err, -text.err, "memory", name);
	*ret_sum = sum_of(text.s, text.len);
	/* Not synced: what a power cut leaves is compared with the sum in the record, which is. */
	r = is_stored(dirfd, &text) ? 0 : hf_replace_file(dirfd, COMMAND, COMMAND_NEW, text.s, text.len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", COMMAND) : 0;
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

/* The word, to be freed; NULL when it is none. */
static char *take_word(json_t *value)
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
		words[i] = take_word(json_array_get(list, i));
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
static int take_number(const struct hf_option *option, json_t *value, struct hf_run_opts *o)
{
	int64_t number = json_integer_value(value);
	int64_t least = option->kind == HF_OPTION_GRACE ? INT64_MIN : 1;
	int64_t most = option->kind == HF_OPTION_COUNT  ? UINT32_MAX
		       : option->kind == HF_OPTION_FLAG ? 1
							: INT64_MAX;

	if (!json_is_integer(value) || number < least || number > most || number == 0)
		return 0;
	hf_option_set_number(option, o, number);
	return 1;
}

static int take_option(struct hf_stored *stored, const char *key, json_t *value)
{
	const struct hf_option *option = find_option(key);
	int64_t number;
	char *word;

	if (!option)
		return 0;
	switch (option->kind) {
	case HF_OPTION_TEXT:
		word = take_word(value);
		if (!word || !word[0]) {
			free(word);
			return 0;
		}
		/* One key stands once in an object, so nothing is lost here. */
		*hf_option_text(option, &stored->o) = word;
		return 1;
	case HF_OPTION_TREE:
	case HF_OPTION_TERM:
		number = json_is_string(value) ? hf_option_of_word(option, json_string_value(value)) : 0;
		hf_option_set_number(option, &stored->o, number);
		return number != 0;
	case HF_OPTION_DURATION:
	case HF_OPTION_GRACE:
	case HF_OPTION_COUNT:
	case HF_OPTION_SIZE:
	case HF_OPTION_FLAG:
	default:
		return take_number(option, value, &stored->o);
	}
}

void hf_stored_done(struct hf_stored *stored)
{
	for (const struct hf_option *option = hf_options; option->key; option++)
		if (option->kind == HF_OPTION_TEXT)
			free((void *)(uintptr_t)*hf_option_text(option, &stored->o));
	free_words((char **)(uintptr_t)stored->o.argv);
	free_words((char **)(uintptr_t)stored->o.env);
	free((void *)(uintptr_t)stored->o.cwd);
	memset(stored, 0, sizeof(*stored));
}

/* What is wrong with it; NULL: nothing. */
static const char *decode(json_t *root, const char *name, struct hf_stored *stored)
{
	json_t *options = json_object_get(root, "options"), *value;
	json_int_t version = json_integer_value(json_object_get(root, "v"));
	const char *key;
	size_t used = version == 1 ? 2 : 5;

	if (!json_is_object(root) || (version != 1 && version != 2))
		return "not of a version that is known";
	if (json_object_size(root) != used)
		return "it has fields that nobody wrote, or lacks some";
	stored->o.argv = take_words(json_object_get(root, "argv"));
	if (!stored->o.argv || !stored->o.argv[0])
		return "its command is not one";
	/* Before there were options: the words of the command are all. */
	if (version == 1)
		return NULL;
	stored->has_options = 1;
	stored->o.cwd = take_word(json_object_get(root, "cwd"));
	if (!stored->o.cwd || (stored->o.cwd[0] && stored->o.cwd[0] != '/'))
		return "its directory is not one";
	stored->o.env = take_words(json_object_get(root, "env"));
	if (!stored->o.env)
		return "its environment is not one";
	if (!json_is_object(options))
		return "its options are none";
	json_object_foreach (options, key, value)
		if (!take_option(stored, key, value))
			return "an option has a value that it cannot have";
	stored->o.flags |= HF_RUN_RESUME;
	return hf_options_check(name, &stored->o, NULL) < 0 ? "its options cannot be" : NULL;
}

static const char *read_stored(int fd, const struct stat *st, const char *name, struct hf_stored *ret)
{
	AUTO_FREE char *text = NULL;
	const char *why = "its size is not one";
	json_t *root;
	ssize_t n;

	if (st->st_size <= 0 || (size_t)st->st_size > COMMAND_MAX)
		return why;
	text = malloc((size_t)st->st_size);
	n = text ? hf_pread_all(fd, text, (size_t)st->st_size, 0) : -1;
	if (n <= 0)
		return "it cannot be read";
	root = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	why = root ? decode(root, name, ret) : "it is not JSON";
	json_decref(root);
	ret->sum = sum_of(text, (size_t)n);
	return why;
}

/* Puts it away, whatever it is, and says so once (L8, L12). */
static int quarantine(struct hf_sessions *sessions, int dirfd, const char *name, const char *why,
		      struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], moved[HF_QUARANTINE_NAME_MAX], label[HF_NAME_KEY_MAX + 16],
		file[HF_NAME_KEY_MAX + 48];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", why) };
	int r = hf_name_key(name, strlen(name), key, err);

	if (r < 0)
		return r;
	(void)snprintf(label, sizeof(label), "sessions.%s", key);
	(void)snprintf(file, sizeof(file), "sessions/%s/%s", key, COMMAND);
	r = hf_state_quarantine_from(sessions->state, dirfd, label, COMMAND, moved, err);
	if (r < 0)
		return r;
	hf_session_event(sessions, HF_EV_RECORD_QUARANTINED, name, fields, 3);
	return FAIL(err, HF_E_FORMAT, "resume", name,
		    "what was stored of it was put away: %s; give command and options again, behind --", why);
}

int hf_stored_load(struct hf_sessions *sessions, const char *name, int put_away, struct hf_stored *ret,
		   struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	const char *why;
	struct stat st;
	int r = hf_session_dir(sessions, name, 0, &dirfd, err);

	memset(ret, 0, sizeof(*ret));
	if (r < 0)
		return r;
	r = hf_open_private(dirfd, COMMAND, O_RDONLY, COMMAND, &fd, &st, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_FORMAT, "resume", name,
			    "nothing is stored of it; give command and options again, behind --");
	if (r < 0 && r != HF_E_UNTRUSTED && r != -ELOOP)
		return r;
	why = r < 0 ? "not a file of ours" : read_stored(fd, &st, name, ret);
	if (!why)
		return 0;
	hf_stored_done(ret);
	return put_away ? quarantine(sessions, dirfd, name, why, err)
			: FAIL(err, HF_E_FORMAT, "resume", name, "%s", why);
}
