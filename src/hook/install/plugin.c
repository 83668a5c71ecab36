/*
 * hook/install/plugin.c - our hooks as a plugin of Copilot, in the state directory.
 *
 * Copilot takes no hooks on its command line, but the directory of a plugin (--plugin-dir), which may have some.
 * The two files are the same for every run of one program, so they are written once, and stay for a run
 * that is resumed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/hook/settings/settings.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define DIRECTORY "clients"
#define MANIFEST "{\"name\":\"holdfast\",\"version\":\"1.0.0\",\"description\":\"holdfast hooks\",\"hooks\":\"hooks.json\"}\n"

/* Writes it, unless it has these bytes. */
static int put(int dirfd, const char *name, const char *bytes, size_t len, struct hf_err *err)
{
	AUTO_FREE char *old = malloc(len + 1);
	char temp[64];
	ssize_t n;
	int r;

	if (!old)
		return hf_fail_sys(err, ENOMEM, "malloc", name);
	n = hf_read_file(dirfd, name, old, len + 1);
	if (n == (ssize_t)len && memcmp(old, bytes, len) == 0)
		return 0;
	(void)snprintf(temp, sizeof(temp), ".%s.%d.tmp", name, (int)gettid());
	r = hf_replace_file(dirfd, name, temp, bytes, len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", name) : 0;
}

int hf_hook_plugin(struct hf_state *state, const struct hf_settings_want *want, char **ret_path, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT, path = HF_BUF_INIT;
	AUTO_FD clients = -1;
	AUTO_FD plugin = -1;
	int r = hf_state_subdir(state, DIRECTORY, 1, &clients, err);

	hf_buf_add_format(&path, "%s/" DIRECTORY "/%s", hf_state_path(state), hf_client_word(want->client));
	if (path.err)
		return hf_fail_sys(err, ENOMEM, "malloc", DIRECTORY);
	if (r == 0)
		r = hf_private_subdir(clients, hf_client_word(want->client), path.s, 1, &plugin, err);
	if (r == 0)
		r = hf_settings_make(want, &text, err);
	/* The hooks first: a plugin without them is one of which nothing works. */
	if (r == 0)
		r = put(plugin, "hooks.json", text.s, text.len, err);
	if (r == 0)
		r = put(plugin, "plugin.json", MANIFEST, strlen(MANIFEST), err);
	if (r < 0)
		return r;
	*ret_path = strdup(path.s);
	return *ret_path ? 0 : hf_fail_sys(err, ENOMEM, "malloc", DIRECTORY);
}
