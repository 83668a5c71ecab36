/* sys/state/state.c - the handle of the state directory: choose, open or make, trust. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

void hf_state_free(struct hf_state *state)
{
	if (!state)
		return;
	hf_auto_close(&state->dirfd);
	free(state->path);
	free(state);
}

int hf_state_dirfd(const struct hf_state *state)
{
	return state->dirfd;
}

const char *hf_state_path(const struct hf_state *state)
{
	return state->path;
}

int hf_state_is_shared(const struct hf_state *state)
{
	return state->shared;
}

static void auto_state_free(struct hf_state **state)
{
	hf_state_free(*state);
}

static int is_network_fs(int fd)
{
	/* Magic numbers of file systems that another host may be using as well. */
	static const unsigned long magics[] = {
		0x6969,	    /* nfs */
		0xff534d42, /* cifs */
		0xfe534d42, /* smb3 */
		0x517b,	    /* smb */
		0x01021997, /* 9p */
		0x65735546, /* fuse: cannot be told, so assume it */
		0x00c36400, /* ceph */
		0x0bd00bd0, /* lustre */
		0x01161970, /* gfs2 */
		0x7461636f, /* ocfs2 */
		0x5346414f, /* afs */
		0x47504653, /* gpfs */
		0x19830326, /* fhgfs */
	};
	struct statfs fs;

	if (hf_sys.fstatfs(fd, &fs) < 0)
		return 1; /* in doubt nobody is declared dead */
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == magics[i])
			return 1;
	return 0;
}

/* The descriptor's own path: absolute, and true even if cwd changes. */
static int keep_path(struct hf_state *state, const char *given, struct hf_err *err)
{
	char link[64], text[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", state->dirfd);
	n = hf_sys.readlinkat(AT_FDCWD, link, text, sizeof(text) - 1);
	if (n > 0 && text[0] == '/') {
		text[n] = '\0';
		state->path = strdup(text);
	} else {
		state->path = strdup(given);
	}
	return state->path ? 0 : hf_fail_sys(err, ENOMEM, "memory", given);
}

int hf_state_open(const char *path, unsigned flags, struct hf_state **ret_state,
		  struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf chosen = HF_BUF_INIT;
	AUTO(auto_state_free) struct hf_state *state = NULL;
	int create = !(flags & HF_STATE_NO_CREATE);
	size_t own;
	int r;

	if (!ret_state || flags & ~(unsigned)HF_STATE_NO_CREATE)
		return FAIL(err, -EINVAL, "arguments", "hf_state_open", "unknown flag");
	state = calloc(1, sizeof(*state));
	if (!state)
		return hf_fail_sys(err, ENOMEM, "memory", "hf_state_open");
	state->dirfd = -1;
	r = hf_state_choose(path, &chosen, &own, err);
	if (r < 0)
		return r;
	r = hf_private_dir(AT_FDCWD, chosen.s, chosen.s, &state->dirfd, err);
	/* -EACCES: a parent that we made under an odd umask lets nobody through. */
	if ((r == -ENOENT || r == -EACCES) && create) {
		r = hf_state_make(&chosen, own, err);
		if (r == 0)
			r = hf_private_dir(AT_FDCWD, chosen.s, chosen.s, &state->dirfd, err);
	}
	if (r < 0)
		return r;
	r = keep_path(state, chosen.s, err);
	if (r < 0)
		return r;
	r = hf_state_check_format(state, create, err);
	if (r < 0)
		return r;
	state->shared = is_network_fs(state->dirfd);
	*ret_state = ptr_take(&state);
	return 0;
}

int hf_state_adopt(int fd, const char *path, struct hf_state **ret_state, struct hf_err *err)
{
	AUTO(auto_state_free) struct hf_state *state = calloc(1, sizeof(*state));
	int r;

	if (!state)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	state->dirfd = -1;
	state->path = strdup(path);
	if (!state->path)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	r = hf_private_dir(fd, ".", path, &state->dirfd, err);
	if (r < 0)
		return r;
	state->shared = is_network_fs(state->dirfd);
	*ret_state = ptr_take(&state);
	return 0;
}

int hf_state_subdir(const struct hf_state *state, const char *name, int create, int *ret_fd,
		    struct hf_err *err)
{
	char shown[PATH_MAX + 32];

	(void)snprintf(shown, sizeof(shown), "%s/%s", state->path, name);
	return hf_private_subdir(state->dirfd, name, shown, create, ret_fd, err);
}

