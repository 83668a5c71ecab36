/* sys/state/state_path.c - which directory is the state directory, and making it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "holdfast/clock.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state/state.h"

#define MAKE_TRIES    50
#define MAKE_PAUSE_NS (2 * HF_MSEC)

static const char *set_env(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] ? value : NULL;
}

/* Home directory: $HOME, else the password file's. */
static int add_home(struct hf_buf *path, struct hf_err *err)
{
	const char *home = set_env("HOME");
	struct passwd pw, *found = NULL;
	char text[4096];

	if (!home && getpwuid_r(geteuid(), &pw, text, sizeof(text), &found) == 0 && found)
		home = pw.pw_dir;
	if (!home || home[0] != '/')
		return FAIL(err, -ENOENT, "HOME", "state directory",
			    "neither HOLDFAST_DIR nor HOME is set to a directory");
	hf_buf_add_text(path, home);
	return 0;
}

int hf_state_choose(const char *given, struct hf_buf *path, size_t *ret_own, struct hf_err *err)
{
	const char *xdg = set_env("XDG_STATE_HOME");
	size_t own = SIZE_MAX;

	if (given && !given[0])
		return FAIL(err, -EINVAL, "path", "state directory", "the path is empty");
	/* A relative one would be another directory after each cd, with locks that no other process sees. */
	if (!given && (given = set_env("HOLDFAST_DIR")) && given[0] != '/')
		return FAIL(err, -EINVAL, "path", "HOLDFAST_DIR", "'%s' is not an absolute path", given);
	if (given) {
		hf_buf_add_text(path, given);
	} else if (xdg && xdg[0] == '/') {
		hf_buf_add_text(path, xdg);
		hf_buf_add_text(path, "/holdfast");
	} else {
		int r = add_home(path, err);

		if (r < 0)
			return r;
		own = path->len;
		hf_buf_add_text(path, "/.local/state/holdfast");
	}
	if (path->err)
		return hf_fail_sys(err, -path->err, "memory", "state directory");
	/* With "/" or "/." behind it O_NOFOLLOW would follow. */
	while (path->len > 1 && (path->s[path->len - 1] == '/' ||
				 (path->s[path->len - 1] == '.' && path->s[path->len - 2] == '/')))
		path->s[--path->len] = '\0';
	*ret_own = own;
	return 0;
}

/*
 * May the directory `path` be given its owner's bits back? Below our own part of the path, if it is
 * empty: a umask of an earlier call stopped us there. Elsewhere only if it also cannot be entered or
 * read, because mode 0500 may be what its owner wants.
 */
static int is_our_leftover(const char *path, int own)
{
	AUTO_DIR dir = NULL;
	const struct dirent *entry;
	struct stat st;

	if (hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_mode & 077 ||
	    (!own && (st.st_mode & 0500) == 0500))
		return 0;
	if (!(st.st_mode & 0400))
		return 1;
	if (hf_open_dir(AT_FDCWD, path, &dir) < 0)
		return 0;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return 0;
	return 1;
}

/*
 * Makes one directory of the path; `parent` is the length of the path before it. Another process
 * that just made the parent may not have set its mode yet, so a refusal is final only after a while.
 */
static int make_one(struct hf_buf *path, size_t parent, size_t own)
{
	for (int try = 0;; try++) {
		int r = hf_mkdir_at(AT_FDCWD, path->s, 0700);

		if (r != -EACCES || parent == 0 || try == MAKE_TRIES)
			return r;
		path->s[parent] = '\0';
		if (is_our_leftover(path->s, parent > own))
			(void)hf_mend_mode(AT_FDCWD, path->s, S_IFDIR, 0700);
		path->s[parent] = '/';
		if (try > 0)
			hf_pause(MAKE_PAUSE_NS);
	}
}

int hf_state_make(struct hf_buf *path, size_t own, struct hf_err *err)
{
	size_t parent = 0;

	for (size_t i = 1; i <= path->len; i++) {
		char kept = path->s[i];
		int r;

		if (kept != '/' && kept != '\0')
			continue;
		path->s[i] = '\0';
		r = make_one(path, parent, own);
		if (r < 0 && r != -EEXIST)
			return FAIL(err, r, "mkdir", path->s, "cannot make a state directory there; name another with --dir or HOLDFAST_DIR");
		path->s[i] = kept;
		parent = i;
	}
	return 0;
}

int hf_state_try(const char *given, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	struct stat st;
	size_t own;
	int r = hf_state_choose(given, &path, &own, err);

	if (r < 0)
		return r;
	/* The nearest directory that is there: in it the first one has to be made. */
	while (path.len > 0 && hf_sys.fstatat(AT_FDCWD, path.s, &st, 0) < 0) {
		const char *slash = memrchr(path.s, '/', path.len);

		/* "/x" leaves "/", a lone relative name leaves ".". */
		path.len = slash && slash > path.s ? (size_t)(slash - path.s) : 0;
		path.s[path.len] = '\0';
		if (path.len == 0) {
			hf_buf_add_char(&path, slash ? '/' : '.');
			break;
		}
	}
	own = path.len;
	hf_buf_add_format(&path, "/.holdfast-try.%d", (int)getpid());
	if (path.err)
		return hf_fail_sys(err, -path.err, "memory", "state directory");
	r = hf_sys.mkdirat(AT_FDCWD, path.s, 0700) < 0 ? -errno : 0;
	if (r == 0 && hf_sys.unlinkat(AT_FDCWD, path.s, AT_REMOVEDIR) < 0)
		r = -errno;
	path.s[own] = '\0';
	return r < 0 ? FAIL(err, r, "mkdir", path.s,
			    "cannot write here; free space or give yourself write permission, or "
			    "name another directory with --dir, HOLDFAST_DIR or HOME")
		     : 0;
}
