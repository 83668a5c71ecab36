/* hook/mode.c - opening, reading and writing the record of a work mode. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/hook/mode.h"
#include "hf/journal/put_away.h"
#include "hf/run/options_json.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

#define DIRECTORY "modes"

/* A hook holds it for microseconds; only the until command may take longer, and is run without it. */
#define GUARD_NS (2 * HF_SEC)

static const struct hf_backoff backoff = { .yields = 8, .min_ns = 100 * HF_USEC, .max_ns = 5 * HF_MSEC };

void hf_hook_tell(const struct hf_hooks *hooks, enum hf_event event, const char *id,
		  const struct hf_field *fields, size_t n)
{
	if (hooks->journal)
		(void)hf_journal_append(hooks->journal, event, id, fields, n, 0, NULL);
}

static int open_directory(struct hf_hooks *hooks, int create, struct hf_err *err)
{
	if (hooks->dirfd >= 0)
		return 0;
	return hf_state_subdir(hooks->state, DIRECTORY, create, &hooks->dirfd, err);
}

/* -- the JSON of a record ------------------------------------------------------------ */

static void add_number(struct hf_buf *out, const char *key, uint64_t value)
{
	hf_buf_add_format(out, ",\"%s\":", key);
	hf_buf_add_u64(out, value);
}

static void add_word(struct hf_buf *out, const char *key, const char *word)
{
	hf_buf_add_format(out, ",\"%s\":", key);
	hf_json_add_word(out, word);
}

static void encode(struct hf_buf *out, const struct hf_mode *mode)
{
	hf_buf_add_text(out, "{\"v\":1");
	add_word(out, "id", mode->id);
	add_word(out, "goal", mode->goal);
	add_word(out, "until", mode->until);
	add_word(out, "cwd", mode->cwd ? mode->cwd : "");
	add_word(out, "turn", mode->turn);
	add_number(out, "since_ns", (uint64_t)mode->since.ns);
	add_number(out, "ttl_ns", (uint64_t)mode->ttl_ns);
	add_number(out, "until_ns", (uint64_t)mode->until_ns);
	add_number(out, "max", mode->max);
	add_number(out, "blocks", mode->blocks);
	add_number(out, "idle", mode->idle);
	add_number(out, "tools", mode->tools);
	add_number(out, "tools_seen", mode->tools_seen);
	add_number(out, "total", mode->total);
	/* JSON's numbers are signed here; a digest has 64 bits. */
	hf_buf_add_text(out, ",\"digest\":\"");
	hf_buf_add_hex64(out, mode->digest);
	hf_buf_add_text(out, "\"");
	add_number(out, "asked_ns", (uint64_t)mode->asked.ns);
	add_number(out, "answered_ns", (uint64_t)mode->answered.ns);
	add_number(out, "answer_block", mode->answer_block != 0);
	hf_buf_add_text(out, "}\n");
}

/* A member that is a number of 0 to `max`; -1 when it is none. */
static int64_t take_number(json_t *root, const char *key, int64_t max)
{
	json_t *value = json_object_get(root, key);
	int64_t number = json_integer_value(value);

	return json_is_integer(value) && number >= 0 && number <= max ? number : -1;
}

static int take_word(json_t *root, const char *key, char *out, size_t cap)
{
	AUTO_FREE char *word = hf_json_take_word(json_object_get(root, key));

	if (!word || strlen(word) >= cap)
		return -EINVAL;
	memcpy(out, word, strlen(word) + 1);
	return 0;
}

/* Reads all members; 0, or -EINVAL when one is not what encode() writes. */
static int decode(json_t *root, const char *id, struct hf_mode *mode)
{
	int64_t since = take_number(root, "since_ns", INT64_MAX), ttl = take_number(root, "ttl_ns", INT64_MAX);
	int64_t max = take_number(root, "max", UINT32_MAX), blocks = take_number(root, "blocks", UINT32_MAX);
	int64_t idle = take_number(root, "idle", UINT32_MAX), tools = take_number(root, "tools", INT64_MAX);
	int64_t seen = take_number(root, "tools_seen", INT64_MAX), total = take_number(root, "total", INT64_MAX);
	int64_t answered = take_number(root, "answered_ns", INT64_MAX), block = take_number(root, "answer_block", 1);
	int64_t asked = take_number(root, "asked_ns", INT64_MAX), until = take_number(root, "until_ns", HF_KEEP_UNTIL_LONGEST_NS);
	const char *digest = json_string_value(json_object_get(root, "digest"));

	if (take_number(root, "v", 1) != 1 || since < 0 || ttl < 0 || max < 1 || blocks < 0 || idle < 0 ||
	    tools < 0 || seen < 0 || total < 0 || asked < 0 || answered < 0 || block < 0 || until < 1 || !digest ||
	    hf_parse_hex64(digest, strlen(digest), &mode->digest) < 0)
		return -EINVAL;
	if (take_word(root, "id", mode->id, sizeof(mode->id)) < 0 || strcmp(mode->id, id) != 0 ||
	    take_word(root, "goal", mode->goal, sizeof(mode->goal)) < 0 ||
	    take_word(root, "until", mode->until, sizeof(mode->until)) < 0 ||
	    take_word(root, "turn", mode->turn, sizeof(mode->turn)) < 0)
		return -EINVAL;
	mode->cwd = hf_json_take_word(json_object_get(root, "cwd"));
	if (!mode->cwd)
		return -EINVAL;
	mode->since = (struct hf_wall){ since };
	mode->ttl_ns = ttl;
	mode->until_ns = until;
	mode->max = (uint32_t)max;
	mode->blocks = (uint32_t)blocks;
	mode->idle = (uint32_t)idle;
	mode->tools = (uint64_t)tools;
	mode->tools_seen = (uint64_t)seen;
	mode->total = (uint64_t)total;
	mode->asked = (struct hf_boot){ asked };
	mode->answered = (struct hf_boot){ answered };
	mode->answer_block = (int)block;
	return 0;
}

/* -- the file -------------------------------------------------------------------------- */

void hf_mode_close(struct hf_mode *mode)
{
	hf_noinherit_close(&mode->fd);
	free(mode->cwd);
	mode->cwd = NULL;
}

static void put_away(struct hf_mode *mode)
{
	char moved[HF_QUARANTINE_NAME_MAX], file[HF_NAME_KEY_MAX + 16];

	if (hf_state_quarantine(mode->hooks->state, DIRECTORY, mode->key, moved, NULL) < 0)
		return;
	(void)snprintf(file, sizeof(file), DIRECTORY "/%s", mode->key);
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", "it is not a record of a work mode") };

	hf_hook_tell(mode->hooks, HF_EV_RECORD_QUARANTINED, mode->id, fields, 3);
	hf_quarantine_trim(mode->hooks->state, mode->hooks->journal, moved);
}

/* Opens and locks the file that has the name when the lock is held. 1, 0: there is none, or an error. */
static int open_locked(struct hf_mode *mode, int create, struct hf_err *err)
{
	struct hf_mono deadline = hf_mono_in(GUARD_NS);

	for (;;) {
		struct stat st;
		int fd = -1, r = hf_open_private(mode->hooks->dirfd, mode->key, O_RDWR | (create ? O_CREAT : 0),
						 mode->key, &fd, &st, err);

		if (r == -ENOENT && !create)
			return 0;
		if (r < 0)
			return r;
		mode->fd = hf_noinherit_dup(fd);
		hf_auto_close(&fd);
		if (mode->fd < 0)
			return hf_fail_sys(err, -mode->fd, "dup", mode->key);
		r = hf_flock_until(mode->fd, LOCK_EX, deadline, &backoff);
		if (r < 0)
			return hf_fail_sys(err, -r, "flock", mode->key);
		if (hf_is_named(mode->hooks->dirfd, mode->key, &st))
			return 1;
		hf_noinherit_close(&mode->fd); /* it was ended meanwhile */
	}
}

static int begin(struct hf_mode *mode, const char *id, struct hf_err *err)
{
	size_t len = strlen(id);
	int r = hf_name_check_stored(id, len, err);

	if (r == 0)
		r = hf_name_key(id, len, mode->key, err);
	if (r < 0)
		return r;
	memcpy(mode->id, id, len + 1);
	return 0;
}

int hf_mode_exists(struct hf_hooks *hooks, const char *id, struct hf_err *err)
{
	struct hf_mode mode = HF_MODE_INIT;
	struct stat st;
	int r = begin(&mode, id, err);

	if (r == 0)
		r = open_directory(hooks, 0, err);
	if (r == 0)
		r = hf_stat_at(hooks->dirfd, mode.key, &st);
	return r == 0 ? 1 : r == -ENOENT ? 0 : r;
}

int hf_mode_open(struct hf_hooks *hooks, const char *id, int create, struct hf_mode *ret, struct hf_err *err)
{
	char text[HF_MODE_MAX];
	json_t *root;
	ssize_t n;
	int r;

	ret->hooks = hooks;
	r = begin(ret, id, err);
	if (r < 0)
		return r;
	r = open_directory(hooks, create, err);
	if (r == -ENOENT && !create)
		return 0;
	if (r == 0)
		r = open_locked(ret, create, err);
	if (r <= 0)
		return r;
	n = hf_read_all(ret->fd, text, sizeof(text));
	ret->size = n > 0 ? (size_t)n : 0;
	if (n == 0 && create)
		return 1;
	root = n > 0 ? json_loadb(text, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	r = root ? decode(root, id, ret) : -EINVAL;
	json_decref(root);
	if (r == 0)
		return 1;
	put_away(ret);
	hf_mode_close(ret);
	*ret = (struct hf_mode)HF_MODE_INIT;
	return create ? hf_mode_open(hooks, id, create, ret, err) : 0;
}

int hf_mode_save(struct hf_mode *mode, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	size_t done = 0;
	int r;

	encode(&out, mode);
	if (out.err || out.len > HF_MODE_MAX)
		return hf_fail_sys(err, out.err ? -out.err : E2BIG, "encode", mode->key);
	/* The record is one object: a reader does not look at what a longer one has left behind it. */
	r = hf_pwrite_all(mode->fd, out.s, out.len, 0, &done);
	if (r < 0)
		return hf_fail_sys(err, -r, "pwrite", mode->key);
	if (out.len < mode->size && hf_sys.ftruncate(mode->fd, (off_t)out.len) < 0)
		return FAIL_SYS(err, "ftruncate", mode->key);
	mode->size = out.len;
	return 0;
}

int hf_mode_end(struct hf_mode *mode, const char *why, struct hf_err *err)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", why), HF_FIELD_INT("blocks", (int64_t)mode->total) };

	if (hf_sys.unlinkat(mode->hooks->dirfd, mode->key, 0) < 0)
		return FAIL_SYS(err, "unlinkat", mode->key);
	hf_hook_tell(mode->hooks, HF_EV_KEEP_ENDED, mode->id, fields, 2);
	return 0;
}

int64_t hf_mode_left(const struct hf_mode *mode)
{
	int64_t age = hf_wall_now().ns - mode->since.ns;

	if (age < 0)
		age = 0;
	return age < mode->ttl_ns ? mode->ttl_ns - age : 0;
}

/* -- all of them ------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_list(char ***list)
{
	for (size_t i = 0; *list && (*list)[i]; i++)
		free((*list)[i]);
	free(*list);
}

int hf_mode_each(struct hf_hooks *hooks, int (*fn)(void *arg, const char *id), void *arg, struct hf_err *err)
{
	AUTO(free_list) char **ids = NULL;
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	size_t n = 0, cap = 0;
	int r = open_directory(hooks, 0, err);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = hf_open_dir(hooks->dirfd, ".", &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : hf_fail_sys(err, -r, "opendir", DIRECTORY);
	while ((entry = readdir(dir))) {
		char id[HF_NAME_MAX + 1];

		if (hf_name_unkey(entry->d_name, strlen(entry->d_name), id, NULL) < 0)
			continue;
		if (n + 1 >= cap) {
			char **more = realloc(ids, (cap = cap ? cap * 2 : 16) * sizeof(*ids));

			if (!more)
				return hf_fail_sys(err, ENOMEM, "malloc", DIRECTORY);
			ids = more;
		}
		ids[n] = strdup(id);
		ids[n + 1] = NULL;
		if (!ids[n++])
			return hf_fail_sys(err, ENOMEM, "malloc", DIRECTORY);
	}
	if (n > 1)
		qsort(ids, n, sizeof(*ids), by_text);
	for (size_t i = 0; i < n; i++)
		if ((r = fn(arg, ids[i])) < 0)
			return r;
	return 0;
}
