/* run/session/notes/queued.c - queued.json: writing it, and reading it without trust in what stands there. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/run/session/notes/queued.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"
#include "holdfast/name.h"

#define QUEUED     "queued.json"
#define QUEUED_NEW ".queued.json.new"

int hf_queued_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_run_opts *given, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	char *const none[] = { NULL };
	struct hf_run_opts o = *given;
	char here[PATH_MAX];
	AUTO_FD dirfd = -1;
	int r = hf_session_dir(sessions, name, 1, &dirfd, err);

	if (r < 0)
		return r;
	/* Only shown: what a variable holds is nothing to store before the command has it. */
	o.env = none;
	if (!o.cwd)
		o.cwd = getcwd(here, sizeof(here));
	hf_buf_add_text(&text, "{\"v\":1,\"token\":");
	hf_buf_add_u64(&text, token);
	hf_buf_add_char(&text, ',');
	hf_options_add_json(&text, &o);
	hf_buf_add_text(&text, "}\n");
	r = text.err ? text.err : hf_replace_file(dirfd, QUEUED, QUEUED_NEW, text.s, text.len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", QUEUED) : 0;
}

void hf_queued_remove(struct hf_sessions *sessions, const char *name)
{
	char key[HF_NAME_KEY_MAX];
	AUTO_FD dirfd = -1;

	if (hf_session_dir(sessions, name, 0, &dirfd, NULL) < 0)
		return;
	(void)hf_sys.unlinkat(dirfd, QUEUED, 0);
	/* Fails where something of an earlier run is in it. */
	if (hf_name_key(name, strlen(name), key, NULL) >= 0)
		(void)hf_sys.unlinkat(sessions->dirfd, key, AT_REMOVEDIR);
}

static int decode(json_t *root, uint64_t token, struct hf_run_opts *ret)
{
	return json_is_object(root) && json_integer_value(json_object_get(root, "v")) == 1 && json_object_size(root) == 6 &&
	       (uint64_t)json_integer_value(json_object_get(root, "token")) == token &&
	       hf_options_take_argv(root, HF_OPTIONS_STORED, ret) && !hf_options_take_rest(root, HF_OPTIONS_STORED, ret);
}

int hf_queued_load(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_run_opts *ret)
{
	AUTO_FREE char *text = NULL;
	json_t *root = NULL;
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	struct stat st;
	int found;

	memset(ret, 0, sizeof(*ret));
	if (hf_session_dir(sessions, name, 0, &dirfd, NULL) < 0 ||
	    hf_open_private(dirfd, QUEUED, O_RDONLY, QUEUED, &fd, &st, NULL) < 0 || st.st_size <= 0 ||
	    (size_t)st.st_size > HF_OPTIONS_JSON_MAX)
		return 0;
	text = malloc((size_t)st.st_size);
	if (text && hf_pread_all(fd, text, (size_t)st.st_size, 0) == (ssize_t)st.st_size)
		root = json_loadb(text, (size_t)st.st_size, JSON_REJECT_DUPLICATES, NULL);
	found = root && decode(root, token, ret);
	json_decref(root);
	if (!found)
		hf_options_free(ret);
	return found;
}
