/* tx/options.c - options as text, and back. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/tx/options.h"

static const char *const keep_words[] = {
#define WORD(name, number, word) [number] = word,
	HF_TX_KEEP_LIST(WORD)
};

static const char *const commit_words[] = {
	HF_TX_COMMIT_LIST(WORD)
#undef WORD
};

static int number_of(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 1; word && i < n; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return 0;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum hf_tx_keep hf_tx_keep_of(const char *word)
{
	return (enum hf_tx_keep)number_of(keep_words, COUNT(keep_words), word);
}

enum hf_tx_commit hf_tx_commit_of(const char *word)
{
	return (enum hf_tx_commit)number_of(commit_words, COUNT(commit_words), word);
}

static void free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

void hf_tx_options_done(struct hf_tx_options *options)
{
	free_words(options->dirs);
	free_words(options->also);
	free_words(options->write);
	free(options->land);
	free(options->message);
	memset(options, 0, sizeof(*options));
}

/* -- writing ------------------------------------------------------------------------ */

/* Absolute and without symlinks, so that a resume from elsewhere finds it, and one that is given twice is seen. */
static int add_dirs(const char *const *dirs, const char *name, struct hf_buf *out, struct hf_err *err)
{
	AUTO(hf_tx_options_done) struct hf_tx_options seen = { 0 };
	size_t n = 0;

	while (dirs[n])
		n++;
	seen.dirs = calloc(n + 1, sizeof(*seen.dirs));
	if (!seen.dirs)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	hf_buf_add_text(out, "\"in\":[");
	for (size_t i = 0; i < n; i++) {
		char *path = realpath(dirs[i], NULL);
		struct stat st;
		size_t k = 0;

		if (!path || stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
			(void)FAIL(err, HF_E_TARGET, "realpath", dirs[i], "%s", strerrordesc_np(path ? ENOTDIR : errno));
			free(path);
			return HF_E_TARGET;
		}
		while (k < seen.n_dirs && strcmp(seen.dirs[k], path) != 0)
			k++;
		if (k < seen.n_dirs) {
			free(path);
			continue;
		}
		if (seen.n_dirs == HF_PLAN_SANDBOXES_MAX) {
			free(path);
			return FAIL(err, -EINVAL, "arguments", name, "at most %d directories", HF_PLAN_SANDBOXES_MAX);
		}
		seen.dirs[seen.n_dirs++] = path;
		hf_buf_add_text(out, seen.n_dirs > 1 ? "," : "");
		hf_json_add_word(out, path);
	}
	hf_buf_add_text(out, "]");
	return 0;
}

/* Files as well: a client's settings may be one. */
static int add_write(const char *const *places, const char *name, struct hf_buf *out, struct hf_err *err)
{
	hf_buf_add_text(out, out->len > 1 ? ",\"write\":[" : "\"write\":[");
	for (size_t i = 0; places[i]; i++) {
		AUTO_FREE char *path = realpath(places[i], NULL);

		if (!path)
			return FAIL(err, HF_E_TARGET, "realpath", places[i], "it should stay writable: %s", strerrordesc_np(errno));
		if (i == HF_PLAN_SANDBOXES_MAX)
			return FAIL(err, -EINVAL, "arguments", name, "at most %d places can stay writable", HF_PLAN_SANDBOXES_MAX);
		hf_buf_add_text(out, i ? "," : "");
		hf_json_add_word(out, path);
	}
	hf_buf_add_text(out, "]");
	return 0;
}

static void add_text(struct hf_buf *out, const char *key, const char *word)
{
	hf_buf_add_format(out, "%s\"%s\":\"%s\"", out->len > 1 ? "," : "", key, word);
}

int hf_tx_options_write(const struct hf_tx_opts *given, const char *name, struct hf_buf *out, struct hf_err *err)
{
	int r;

	if (given->size != sizeof(*given) || (unsigned)given->strategy > HF_STRATEGY_COPY ||
	    (size_t)given->keep >= COUNT(keep_words) || (size_t)given->commit >= COUNT(commit_words) ||
	    given->flags & ~(unsigned)(HF_TX_MERGE | HF_TX_READONLY_REST | HF_TX_NO_NETWORK | HF_TX_REQUIRE_CHANGE | HF_TX_SIGN | HF_TX_DISCARD) || (unsigned)given->land_merge > HF_LAND_REBASE ||
	    (unsigned)given->base > HF_LAND_BASE_WORKTREE || (given->land && !given->land[0]))
		return FAIL(err, -EINVAL, "arguments", name, "size is not set, or an option has an invalid value");
	for (size_t i = 0; given->also && given->also[i]; i++)
		if (i == HF_LAND_ALSO_MAX || !given->also[i][0])
			return FAIL(err, -EINVAL, "arguments", name, "at most %d globs of ignored files are possible, and none may be empty", HF_LAND_ALSO_MAX);
	hf_buf_add_text(out, "{");
	if (given->dirs && given->dirs[0]) {
		r = add_dirs(given->dirs, name, out, err);
		if (r < 0)
			return r;
	}
	if (given->strategy)
		add_text(out, "strategy", hf_strategy_word(given->strategy));
	if (given->keep)
		add_text(out, "keep", keep_words[given->keep]);
	if (given->commit)
		add_text(out, "commit", commit_words[given->commit]);
	if (given->flags & HF_TX_MERGE)
		hf_buf_add_format(out, "%s\"merge\":true", out->len > 1 ? "," : "");
	if (given->flags & HF_TX_READONLY_REST)
		hf_buf_add_format(out, "%s\"readonly\":true", out->len > 1 ? "," : "");
	if (given->flags & HF_TX_NO_NETWORK)
		hf_buf_add_format(out, "%s\"network\":false", out->len > 1 ? "," : "");
	if (given->flags & HF_TX_REQUIRE_CHANGE)
		hf_buf_add_format(out, "%s\"require_change\":true", out->len > 1 ? "," : "");
	if (given->flags & HF_TX_SIGN)
		hf_buf_add_format(out, "%s\"sign\":true", out->len > 1 ? "," : "");
	if (given->flags & HF_TX_DISCARD)
		hf_buf_add_format(out, "%s\"discard\":true", out->len > 1 ? "," : "");
	if (given->write && given->write[0]) {
		r = add_write(given->write, name, out, err);
		if (r < 0)
			return r;
	}
	if (given->land) {
		hf_buf_add_text(out, out->len > 1 ? ",\"land\":" : "\"land\":");
		hf_json_add_word(out, given->land);
	}
	if (given->message) {
		hf_buf_add_text(out, out->len > 1 ? ",\"message\":" : "\"message\":");
		hf_json_add_word(out, given->message);
	}
	if (given->also && given->also[0]) {
		hf_buf_add_text(out, out->len > 1 ? ",\"also\":" : "\"also\":");
		for (size_t i = 0; given->also[i]; i++) {
			hf_buf_add_char(out, i ? ',' : '[');
			hf_json_add_word(out, given->also[i]);
		}
		hf_buf_add_char(out, ']');
	}
	if (given->land_merge)
		add_text(out, "land_merge", hf_land_merge_word(given->land_merge));
	if (given->base == HF_LAND_BASE_WORKTREE)
		add_text(out, "base", "worktree");
	if (given->retry)
		hf_buf_add_format(out, "%s\"retry\":%u", out->len > 1 ? "," : "", given->retry);
	if (given->speculate)
		hf_buf_add_format(out, "%s\"speculate\":%u", out->len > 1 ? "," : "", given->speculate);
	if (out->len == 1)
		hf_buf_reset(out);
	else
		hf_buf_add_text(out, "}");
	return out->err ? hf_fail_sys(err, -out->err, "memory", name) : 0;
}

/* -- reading ------------------------------------------------------------------------ */

/* A list of 1 to `max` words that are not empty: how many, or 0. */
static size_t take_words(json_t *list, size_t max, char ***ret)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n == 0 || n > max)
		return 0;
	*ret = calloc(n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++) {
		(*ret)[i] = hf_json_take_word(json_array_get(list, i));
		if (!(*ret)[i] || !(*ret)[i][0])
			return 0;
	}
	return *ret ? n : 0;
}

/* The same of absolute paths. */
static size_t take_paths(json_t *list, char ***ret)
{
	size_t n = take_words(list, HF_PLAN_SANDBOXES_MAX, ret);

	for (size_t i = 0; i < n; i++)
		if ((*ret)[i][0] != '/')
			return 0;
	return n;
}

/* What is wrong with it; NULL: nothing. */
static const char *decode(json_t *root, struct hf_tx_options *ret)
{
	const char *key;
	json_t *value;

	ret->keep = HF_TX_KEEP_ON_FAILURE;
	ret->commit = HF_TX_COMMIT_ON_SUCCESS;
	if (!json_is_object(root))
		return "it is not an object";
	json_object_foreach (root, key, value) {
		const char *word = json_string_value(value);
		int fine = 0;

		if (strcmp(key, "in") == 0)
			fine = (ret->n_dirs = take_paths(value, &ret->dirs)) > 0;
		else if (strcmp(key, "strategy") == 0)
			fine = word && (int)(ret->strategy = (enum hf_strategy)hf_strategy_of(word)) >= 0;
		else if (strcmp(key, "keep") == 0)
			fine = (ret->keep = hf_tx_keep_of(word)) != 0;
		else if (strcmp(key, "commit") == 0)
			fine = (ret->commit = hf_tx_commit_of(word)) != 0;
		else if (strcmp(key, "retry") == 0 && json_is_integer(value) && json_integer_value(value) > 0 &&
			 json_integer_value(value) <= UINT32_MAX)
			fine = (ret->retry = (uint32_t)json_integer_value(value)) != 0;
		else if (strcmp(key, "speculate") == 0 && json_is_integer(value) && json_integer_value(value) > 0 &&
			 json_integer_value(value) <= UINT32_MAX)
			fine = (ret->speculate = (uint32_t)json_integer_value(value)) != 0;
		else if (strcmp(key, "land") == 0)
			fine = (ret->land = hf_json_take_word(value)) != NULL && ret->land[0];
		else if (strcmp(key, "message") == 0)
			fine = (ret->message = hf_json_take_word(value)) != NULL;
		else if (strcmp(key, "also") == 0)
			fine = take_words(value, HF_LAND_ALSO_MAX, &ret->also) > 0;
		else if (strcmp(key, "land_merge") == 0)
			fine = word && (int)(ret->land_merge = (enum hf_land_merge)hf_land_merge_of(word)) >= 0;
		else if (strcmp(key, "base") == 0)
			fine = word && strcmp(word, "worktree") == 0 && (ret->base = HF_LAND_BASE_WORKTREE) != 0;
		else if (strcmp(key, "merge") == 0)
			fine = json_is_true(value) && (ret->flags |= HF_TX_MERGE) != 0;
		else if (strcmp(key, "readonly") == 0)
			fine = json_is_true(value) && (ret->flags |= HF_TX_READONLY_REST) != 0;
		else if (strcmp(key, "require_change") == 0)
			fine = json_is_true(value) && (ret->flags |= HF_TX_REQUIRE_CHANGE) != 0;
		else if (strcmp(key, "sign") == 0)
			fine = json_is_true(value) && (ret->flags |= HF_TX_SIGN) != 0;
		else if (strcmp(key, "discard") == 0)
			fine = json_is_true(value) && (ret->flags |= HF_TX_DISCARD) != 0;
		else if (strcmp(key, "network") == 0)
			fine = json_is_false(value) && (ret->flags |= HF_TX_NO_NETWORK) != 0;
		else if (strcmp(key, "write") == 0)
			fine = take_paths(value, &ret->write) > 0;
		if (!fine)
			return "an option has an invalid value";
	}
	return NULL;
}

int hf_tx_options_read(const char *text, const char *name, struct hf_tx_options *ret, struct hf_err *err)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *why = "it is not JSON";

	memset(ret, 0, sizeof(*ret));
	if (root)
		why = decode(root, ret);
	json_decref(root);
	if (!why)
		return 0;
	hf_tx_options_done(ret);
	return FAIL(err, HF_E_FORMAT, "sandbox options", name, "%s", why);
}

int hf_tx_options_merge(const char *given, const char *stored, const char *name, char **ret, struct hf_err *err)
{
	json_t *old = stored ? json_loads(stored, JSON_REJECT_DUPLICATES, NULL) : json_object();
	json_t *new = given ? json_loads(given, JSON_REJECT_DUPLICATES, NULL) : json_object();
	int bad = !json_is_object(old) || !json_is_object(new) || json_object_update(old, new) < 0;

	*ret = NULL;
	if (!bad && json_object_size(old) > 0)
		bad = !(*ret = json_dumps(old, JSON_COMPACT | JSON_ENSURE_ASCII));
	json_decref(old);
	json_decref(new);
	return bad ? FAIL(err, HF_E_FORMAT, "sandbox options", name, "they cannot be read") : 0;
}

void hf_tx_options_describe(const char *text, struct hf_buf *out)
{
	AUTO(hf_tx_options_done) struct hf_tx_options o = { 0 };

	if (hf_tx_options_read(text, "", &o, NULL) < 0)
		return;
	for (size_t i = 0; i < o.n_dirs; i++)
		hf_buf_add_format(out, "%s%s", i ? " " : ", in ", o.dirs[i]);
	if (o.strategy)
		hf_buf_add_format(out, ", strategy %s", hf_strategy_word(o.strategy));
	if (o.keep != HF_TX_KEEP_ON_FAILURE)
		hf_buf_add_format(out, ", keep %s", keep_words[o.keep]);
	if (o.commit != HF_TX_COMMIT_ON_SUCCESS)
		hf_buf_add_format(out, ", commit %s", commit_words[o.commit]);
	if (o.flags & HF_TX_MERGE)
		hf_buf_add_text(out, ", merge");
	if (o.flags & HF_TX_READONLY_REST)
		hf_buf_add_text(out, ", read-only rest");
	if (o.flags & HF_TX_REQUIRE_CHANGE)
		hf_buf_add_text(out, ", require a change");
	if (o.flags & HF_TX_SIGN)
		hf_buf_add_text(out, ", sign");
	for (size_t i = 0; o.write && o.write[i]; i++)
		hf_buf_add_format(out, "%s%s", i ? " " : ", write ", o.write[i]);
	if (o.flags & HF_TX_NO_NETWORK)
		hf_buf_add_text(out, ", no network");
	if (o.land)
		hf_buf_add_format(out, ", land %s", o.land);
	for (size_t i = 0; o.also && o.also[i]; i++)
		hf_buf_add_format(out, "%s%s", i ? " " : ", also ", o.also[i]);
	if (o.retry)
		hf_buf_add_format(out, ", retry %u", o.retry);
	if (o.speculate)
		hf_buf_add_format(out, ", speculate %u", o.speculate);
}
