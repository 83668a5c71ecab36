/* run/session/command.c - the command of a session, stored for --resume. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/session/store.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"

#define COMMAND     "command.json"
#define COMMAND_NEW ".command.json.new"

/* More than the kernel takes as arguments, in JSON's longest form. */
#define COMMAND_MAX ((size_t)16 << 20)

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

/* The same command again, as in most runs: nothing needs to be written. */
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

int hf_session_save_command(struct hf_sessions *sessions, const char *name, char *const *argv,
			    struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FD dirfd = -1;
	int r = hf_session_dir(sessions, name, 1, &dirfd, err);

	if (r < 0)
		return r;
	hf_buf_add_text(&text, "{\"v\":1,\"argv\":[");
	for (size_t i = 0; argv[i]; i++) {
		if (i > 0)
			hf_buf_add_char(&text, ',');
		add_json_word(&text, argv[i]);
	}
	hf_buf_add_text(&text, "]}\n");
	if (text.err)
		return hf_fail_sys(err, -text.err, "memory", name);
	if (is_stored(dirfd, &text))
		return 0;
	/* Not synced: it is for --resume, and a power cut leaves the old or the new one,
	 * or one that fails its checks and is then asked for again. */
	r = hf_replace_file(dirfd, COMMAND, COMMAND_NEW, text.s, text.len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", COMMAND) : 0;
}

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

/* The words as one block: the pointers, then their bytes. */
static char **build_argv(json_t *words, size_t bytes)
{
	size_t n = json_array_size(words);
	char **argv = n > 0 ? malloc((n + 1) * sizeof(*argv) + bytes) : NULL;
	char *at = (char *)(argv ? argv + n + 1 : NULL);

	if (!argv)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		ssize_t len = word_bytes(json_array_get(words, i), at);

		if (len < 0) {
			free(argv);
			return NULL;
		}
		argv[i] = at;
		at += len + 1;
	}
	argv[n] = NULL;
	return argv;
}

int hf_session_load_command(struct hf_sessions *sessions, const char *name, char ***ret_argv,
			    struct hf_err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	struct stat st;
	json_t *root;
	ssize_t n;
	int r = hf_session_dir(sessions, name, 0, &dirfd, err);

	if (r == 0)
		r = hf_open_private(dirfd, COMMAND, O_RDONLY, COMMAND, &fd, &st, err);
	if (r < 0)
		return r;
	if (st.st_size <= 0 || (size_t)st.st_size > COMMAND_MAX)
		return FAIL(err, HF_E_FORMAT, "command", name, "its stored command is not one");
	text = malloc((size_t)st.st_size);
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	n = hf_pread_all(fd, text, (size_t)st.st_size, 0);
	root = n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	/* Twice the bytes of the file hold the words and a NUL for each. */
	*ret_argv = root ? build_argv(json_object_get(root, "argv"), 2 * (size_t)st.st_size) : NULL;
	json_decref(root);
	return *ret_argv ? 0
			 : FAIL(err, HF_E_FORMAT, "command", name,
				"its stored command is not one; give it again behind --");
}
