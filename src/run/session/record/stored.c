/* run/session/record/stored.c - command.json: writing it, and reading it without trust in what stands there. */
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
#include "hf/run/session/record/stored.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define COMMAND      "command.json"
#define COMMAND_NEXT ".command.json.next" /* of a run that is not on record yet */
#define COMMAND_NEW  ".command.json.new"

/* -- writing ------------------------------------------------------------------------ */

/* The bytes of `file`, to be freed; NULL: there is none that could be one of these. */
static char *read_bytes(int dirfd, const char *file, size_t *ret_len)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = -1;
	struct stat st;

	if (hf_open_private(dirfd, file, O_RDONLY, file, &fd, &st, NULL) < 0 || st.st_size <= 0 ||
	    (size_t)st.st_size > HF_OPTIONS_JSON_MAX)
		return NULL;
	text = malloc((size_t)st.st_size);
	if (!text || hf_pread_all(fd, text, (size_t)st.st_size, 0) != (ssize_t)st.st_size)
		return NULL;
	*ret_len = (size_t)st.st_size;
	return ptr_take(&text);
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

static int has_sum(int dirfd, const char *file, uint64_t sum)
{
	size_t len = 0;
	AUTO_FREE char *text = read_bytes(dirfd, file, &len);

	return text && sum_of(text, len) == sum;
}

static int put_in_place(int dirfd)
{
	return hf_sys.renameat2(dirfd, COMMAND_NEXT, dirfd, COMMAND, 0) < 0 ? -errno : 0;
}

int hf_stored_stage(struct hf_sessions *sessions, const char *name, const struct hf_run_opts *given, uint64_t before,
		    uint64_t *ret_sum, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FREE char *stored = NULL;
	AUTO_FD dirfd = -1;
	size_t len = 0;
	int r = hf_session_dir(sessions, name, 1, &dirfd, err);

	if (r < 0)
		return r;
	encode(given, &text);
	if (text.err)
		return hf_fail_sys(err, -text.err, "memory", name);
	*ret_sum = sum_of(text.s, text.len);
	stored = read_bytes(dirfd, COMMAND, &len);
	/* The same again, as in most runs: nothing needs to be written. */
	if (stored && len == text.len && memcmp(stored, text.s, len) == 0)
		return 0;
	/* The run before was killed when its record named them and they were not in place yet. */
	if (before != 0 && !(stored && sum_of(stored, len) == before) && has_sum(dirfd, COMMAND_NEXT, before))
		r = put_in_place(dirfd);
	/* Not synced: what a power cut leaves is compared with the sum in the record, which is. */
	if (r == 0)
		r = hf_replace_file(dirfd, COMMAND_NEXT, COMMAND_NEW, text.s, text.len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", COMMAND_NEXT) : 1;
}

void hf_stored_settle(struct hf_sessions *sessions, const char *name, int keep)
{
	AUTO_FD dirfd = -1;

	if (hf_session_dir(sessions, name, 0, &dirfd, NULL) < 0)
		return;
	/* If it fails they are found where they are: the record has their sum. */
	if (keep)
		(void)put_in_place(dirfd);
	else
		(void)hf_sys.unlinkat(dirfd, COMMAND_NEXT, 0);
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
		return "unknown version";
	if (json_object_size(root) != used)
		return "it has unknown fields, or lacks some";
	if (!hf_options_take_argv(root, HF_OPTIONS_STORED, &stored->o))
		return "its command is invalid";
	/* Before there were options: the words of the command are all. */
	if (version == 1)
		return NULL;
	stored->has_options = 1;
	why = hf_options_take_rest(root, HF_OPTIONS_STORED, &stored->o);
	if (why)
		return why;
	stored->o.flags |= HF_RUN_RESUME;
	return hf_options_check(name, &stored->o, NULL) < 0 ? "its options are invalid" : NULL;
}

static const char *parse_stored(const char *text, size_t len, const char *name, struct hf_stored *ret)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *why = root ? decode(root, name, ret) : "it is not JSON";

	json_decref(root);
	ret->sum = sum_of(text, len);
	return why;
}

static const char *read_stored(int fd, const struct stat *st, const char *name, struct hf_stored *ret)
{
	AUTO_FREE char *text = NULL;
	ssize_t n;

	if (st->st_size <= 0 || (size_t)st->st_size > HF_OPTIONS_JSON_MAX)
		return "its size is invalid";
	text = malloc((size_t)st->st_size);
	n = text ? hf_pread_all(fd, text, (size_t)st->st_size, 0) : -1;
	return n <= 0 ? "it cannot be read" : parse_stored(text, (size_t)n, name, ret);
}

/* Those that the record names and that were not put in their place. 1, or 0 when there are none. */
static int load_next(int dirfd, const char *name, uint64_t sum, struct hf_stored *ret)
{
	size_t len = 0;
	AUTO_FREE char *text = sum != 0 ? read_bytes(dirfd, COMMAND_NEXT, &len) : NULL;

	hf_stored_done(ret);
	if (text && sum_of(text, len) == sum && !parse_stored(text, len, name, ret))
		return 1;
	hf_stored_done(ret);
	return 0;
}

static int quarantine(struct hf_sessions *sessions, int dirfd, const char *name, const char *why,
		      struct hf_err *err)
{
	int r = hf_session_put_away(sessions, dirfd, name, COMMAND, why, err);

	return r < 0 ? r
		     : FAIL(err, HF_E_FORMAT, "resume", name,
			    "its stored command was quarantined: %s; give the options again, and the command after --", why);
}

int hf_stored_load(struct hf_sessions *sessions, const char *name, uint64_t sum, int put_away, struct hf_stored *ret,
		   struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	const char *why = NULL;
	struct stat st;
	int opened, r = hf_session_dir(sessions, name, 0, &dirfd, err);

	memset(ret, 0, sizeof(*ret));
	if (r < 0)
		return r;
	opened = hf_open_private(dirfd, COMMAND, O_RDONLY, COMMAND, &fd, &st, err);
	if (opened < 0 && opened != -ENOENT && opened != HF_E_UNTRUSTED && opened != -ELOOP)
		return opened;
	if (opened == 0)
		why = read_stored(fd, &st, name, ret);
	if ((opened == 0 && !why && (sum == 0 || ret->sum == sum)) || load_next(dirfd, name, sum, ret))
		return 0;
	if (opened == -ENOENT)
		return FAIL(err, HF_E_FORMAT, "resume", name,
			    "its command is not stored; give the options again, and the command after --");
	if (opened == 0 && !why)
		return FAIL(err, HF_E_FORMAT, "resume", name,
			    "its stored command and options differ from those of its run; give them again, the command after --");
	if (opened < 0)
		why = "not a regular file owned by this user";
	return put_away ? quarantine(sessions, dirfd, name, why, err)
			: FAIL(err, HF_E_FORMAT, "resume", name, "%s", why);
}
