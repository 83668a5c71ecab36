/* sys/state.c - opening, making and trusting the state directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "holdfast/clock.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/state.h"

#define FORMAT_NAME    "FORMAT"
#define FORMAT_TEXT    "holdfast 1\n"
#define FORMAT_VERSION 1

struct hf_state {
	int dirfd;
	int shared;
	char *path;
};

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

static int choose_path(const char *given, struct hf_buf *path, struct hf_err *err)
{
	const char *xdg = set_env("XDG_STATE_HOME");

	if (!given)
		given = set_env("HOLDFAST_DIR");
	if (given && !given[0])
		return FAIL(err, -EINVAL, "path", "state directory", "the path is empty");
	if (given) {
		hf_buf_add_text(path, given);
	} else if (xdg && xdg[0] == '/') {
		hf_buf_add_text(path, xdg);
		hf_buf_add_text(path, "/holdfast");
	} else {
		int r = add_home(path, err);

		if (r < 0)
			return r;
		hf_buf_add_text(path, "/.local/state/holdfast");
	}
	if (path->err)
		return hf_fail_sys(err, -path->err, "memory", "state directory");
	/* With "/" or "/." behind it O_NOFOLLOW would follow. */
	while (path->len > 1 && (path->s[path->len - 1] == '/' ||
				 (path->s[path->len - 1] == '.' && path->s[path->len - 2] == '/')))
		path->s[--path->len] = '\0';
	return 0;
}

static int make_with_parents(struct hf_buf *path, struct hf_err *err)
{
	for (size_t i = 1; i <= path->len; i++) {
		char kept = path->s[i];
		int r;

		if (kept != '/' && kept != '\0')
			continue;
		path->s[i] = '\0';
		r = hf_sys.mkdirat(AT_FDCWD, path->s, 0700);
		if (r < 0 && errno != EEXIST)
			return FAIL_SYS(err, "mkdir", path->s);
		path->s[i] = kept;
	}
	return 0;
}

static int check_directory(int fd, const char *shown, struct hf_err *err)
{
	struct stat st;

	if (hf_sys.fstat(fd, &st) < 0)
		return FAIL_SYS(err, "fstat", shown);
	if (st.st_uid != geteuid())
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "owned by uid %u, but you are uid %u; use a directory of your own",
			    (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & 077)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "mode %04o lets others in; chmod 700 it if its content is yours",
			    (unsigned)st.st_mode & 07777);
	return 0;
}

/* Opens a directory whose own entry is no symlink, and checks that it is ours. */
static int open_directory(int dirfd, const char *name, const char *shown, int *ret_fd,
			  struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;
	int r;

	/* A symlink gives ENOTDIR here, as a plain file does; a file above it, too. */
	if (fd == -ELOOP || (fd == -ENOTDIR && hf_sys.fstatat(dirfd, name, &st,
							      AT_SYMLINK_NOFOLLOW) == 0))
		return FAIL(err, HF_E_UNTRUSTED, "openat", shown,
			    "not a directory of its own (a symbolic link or a file)");
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", shown);
	r = check_directory(fd, shown, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

/* Only leftovers of an unfinished creation may stand beside a missing FORMAT. */
static int check_empty(const struct hf_state *state, struct hf_err *err)
{
	int fd = hf_open_at(state->dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;
	int r = 0;

	if (!dir) {
		r = hf_fail_sys(err, fd < 0 ? -fd : errno, "opendir", state->path);
		hf_auto_close(&fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strncmp(entry->d_name, "." FORMAT_NAME ".", sizeof(FORMAT_NAME) + 1) == 0)
			continue;
		/* Somebody else finished creating it, and went on, while we looked. */
		if (strcmp(entry->d_name, FORMAT_NAME) == 0 ||
		    hf_sys.fstatat(state->dirfd, FORMAT_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
			break;
		r = FAIL(err, HF_E_UNTRUSTED, "readdir", state->path,
			 "it has content ('%.40s') but no FORMAT file, so it is not a state "
			 "directory; name an empty or missing one",
			 entry->d_name);
	}
	(void)closedir(dir);
	return r;
}

static int create_format(const struct hf_state *state, struct hf_err *err)
{
	char temp[64];
	AUTO_FD fd = -1;
	int r;

	r = check_empty(state, err);
	if (r < 0)
		return r;
	(void)snprintf(temp, sizeof(temp), "." FORMAT_NAME ".%d.%lld", (int)getpid(),
		       (long long)hf_wall_now().ns);
	fd = hf_open_at(state->dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", state->path);
	r = hf_write_all(fd, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1);
	if (r == 0 && hf_sys.fsync(fd) < 0)
		r = -errno;
	/* A rename, not a link: FORMAT never has two names, so nobody ever distrusts it. */
	if (r == 0)
		r = hf_rename_new(state->dirfd, temp, state->dirfd, FORMAT_NAME);
	if (r < 0)
		(void)hf_sys.unlinkat(state->dirfd, temp, 0);
	if (r == -EEXIST)
		r = 0;
	if (r < 0)
		return hf_fail_sys(err, -r, "create FORMAT", state->path);
	r = hf_sync_dir(state->dirfd);
	return r < 0 ? hf_fail_sys(err, -r, "fsync", state->path) : 0;
}

/* A name that differs only in case finds the file: names would meet here. */
static int check_case(const struct hf_state *state, struct hf_err *err)
{
	struct stat st;

	if (hf_sys.fstatat(state->dirfd, "format", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return FAIL(err, HF_E_UNTRUSTED, "fstatat", state->path,
			    "the directory does not tell upper from lower case");
	return 0;
}

static int check_format(const struct hf_state *state, int create, struct hf_err *err)
{
	char text[256], shown[PATH_MAX + 16];
	AUTO_FD fd = -1;
	uint64_t version;
	const char *end;
	ssize_t n;
	int r;

	(void)snprintf(shown, sizeof(shown), "%s/" FORMAT_NAME, state->path);
	r = hf_open_private(state->dirfd, FORMAT_NAME, O_RDONLY, shown, &fd, NULL, err);
	if (r == -ENOENT && create) {
		r = create_format(state, err);
		return r < 0 ? r : check_format(state, 0, err);
	}
	if (r < 0)
		return r;
	n = hf_read_all(fd, text, sizeof(text));
	if (n < 0 && n != -E2BIG)
		return hf_fail_sys(err, (int)-n, "read", shown);
	if (n == (ssize_t)sizeof(FORMAT_TEXT) - 1 && memcmp(text, FORMAT_TEXT, (size_t)n) == 0)
		return check_case(state, err);
	end = n > 9 ? memchr(text, '\n', (size_t)n) : NULL;
	if (end && memcmp(text, "holdfast ", 9) == 0 &&
	    hf_parse_u64_canonical(text + 9, (size_t)(end - text - 9), UINT32_MAX, &version) == 0)
		return FAIL(err, HF_E_FORMAT, "read", shown,
			    version == FORMAT_VERSION
				    ? "version %u with requirements this program does not know"
				    : "version %u; this program reads version 1",
			    (unsigned)version);
	return FAIL(err, HF_E_FORMAT, "read", shown, "not a format that any version wrote");
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
	int r;

	if (!ret_state || flags & ~(unsigned)HF_STATE_NO_CREATE)
		return FAIL(err, -EINVAL, "arguments", "hf_state_open", "unknown flag");
	state = calloc(1, sizeof(*state));
	if (!state)
		return hf_fail_sys(err, ENOMEM, "memory", "hf_state_open");
	state->dirfd = -1;
	r = choose_path(path, &chosen, err);
	if (r < 0)
		return r;
	r = open_directory(AT_FDCWD, chosen.s, chosen.s, &state->dirfd, err);
	if (r == -ENOENT && create) {
		r = make_with_parents(&chosen, err);
		if (r == 0)
			r = open_directory(AT_FDCWD, chosen.s, chosen.s, &state->dirfd, err);
	}
	if (r < 0)
		return r;
	r = keep_path(state, chosen.s, err);
	if (r < 0)
		return r;
	r = check_format(state, create, err);
	if (r < 0)
		return r;
	state->shared = is_network_fs(state->dirfd);
	*ret_state = ptr_take(&state);
	return 0;
}

int hf_private_subdir(int dirfd, const char *name, const char *shown, int create, int *ret_fd,
		      struct hf_err *err)
{
	int r = open_directory(dirfd, name, shown, ret_fd, err);

	if (r == -ENOENT && create) {
		if (hf_sys.mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
			return FAIL_SYS(err, "mkdir", shown);
		r = open_directory(dirfd, name, shown, ret_fd, err);
	}
	return r;
}

int hf_state_subdir(const struct hf_state *state, const char *name, int create, int *ret_fd,
		    struct hf_err *err)
{
	char shown[PATH_MAX + 32];

	(void)snprintf(shown, sizeof(shown), "%s/%s", state->path, name);
	return hf_private_subdir(state->dirfd, name, shown, create, ret_fd, err);
}

int hf_state_quarantine(const struct hf_state *state, const char *subdir, const char *file,
			char ret_name[HF_QUARANTINE_NAME_MAX], struct hf_err *err)
{
	AUTO_FD from = -1;
	int r = hf_state_subdir(state, subdir, 0, &from, err);

	return r < 0 ? r : hf_state_quarantine_from(state, from, subdir, file, ret_name, err);
}

int hf_state_quarantine_from(const struct hf_state *state, int from, const char *label,
			     const char *file, char ret_name[HF_QUARANTINE_NAME_MAX],
			     struct hf_err *err)
{
	char name[HF_QUARANTINE_NAME_MAX];
	AUTO_FD to = -1;
	int r;

	r = hf_state_subdir(state, "quarantine", 1, &to, err);
	if (r < 0)
		return r;
	for (int try = 0; try < 100; try++) {
		/* Cut, so that the whole stays below NAME_MAX. */
		(void)snprintf(name, sizeof(name), "%.100s.%.*s.%lld.%d", label,
			       (int)(200 - strnlen(label, 100)), file,
			       (long long)(hf_wall_now().ns / HF_USEC), try);
		r = hf_rename_new(from, file, to, name);
		if (r == 0) {
			(void)hf_sync_dir(to);
			(void)hf_sync_dir(from);
			hf_copy_text(ret_name, HF_QUARANTINE_NAME_MAX, name);
			return 0;
		}
		if (r != -EEXIST)
			return hf_fail_sys(err, -r, "rename to quarantine", file);
	}
	return hf_fail_sys(err, EEXIST, "rename to quarantine", file);
}
