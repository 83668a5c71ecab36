/* run/session/stored.c - command.json: writing it, and reading it as if an enemy had. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/run/session/stored.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state.h"

#define COMMAND     "command.json"
#define COMMAND_NEW ".command.json.new"

/* -- writing ------------------------------------------------------------------------ */

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

static void encode(const struct hf_run_opts *given, struct hf_buf *out)
{
	char *const none[] = { NULL };
	struct hf_run_opts o = *given;

	if (!o.env)
		o.env = none;
	hf_buf_add_text(out, "{\"v\":2,");
	hf_options_add_json(out, &o);
	hf_buf_add_text(out, "}\n");
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

void hf_stored_done(struct hf_stored *stored)
{
	hf_options_free(&stored->o);
	memset(stored, 0, sizeof(*stored));
}

/* What is wrong with it; NULL: nothing. */
static const char *decode(json_t *root, const char *name, struct hf_stored *stored)
{
	json_int_t version = json_integer_value(json_object_get(root, "v"));
	size_t used = version == 1 ? 2 : 5;
	const char *why;

	if (!json_is_object(root) || (version != 1 && version != 2))
		return "not of a version that is known";
	if (json_object_size(root) != used)
		return "it has fields that nobody wrote, or lacks some";
	if (!hf_options_take_argv(root, HF_OPTIONS_STORED, &stored->o))
		return "its command is not one";
	/* Before there were options: the words of the command are all. */
	if (version == 1)
		return NULL;
	stored->has_options = 1;
	why = hf_options_take_rest(root, HF_OPTIONS_STORED, &stored->o);
	if (why)
		return why;
	stored->o.flags |= HF_RUN_RESUME;
	return hf_options_check(name, &stored->o, NULL) < 0 ? "its options cannot be" : NULL;
}

static const char *read_stored(int fd, const struct stat *st, const char *name, struct hf_stored *ret)
{
	AUTO_FREE char *text = NULL;
	const char *why = "its size is not one";
	json_t *root;
	ssize_t n;

	if (st->st_size <= 0 || (size_t)st->st_size > HF_OPTIONS_JSON_MAX)
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

static int quarantine(struct hf_sessions *sessions, int dirfd, const char *name, const char *why,
		      struct hf_err *err)
{
	int r = hf_session_put_away(sessions, dirfd, name, COMMAND, why, err);

	return r < 0 ? r
		     : FAIL(err, HF_E_FORMAT, "resume", name,
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
