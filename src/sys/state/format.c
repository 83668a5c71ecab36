/* sys/state/format.c - FORMAT: the file that says that a directory is a state directory, and of which version. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "holdfast/clock.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define FORMAT_NAME "FORMAT"

#define TEXT_OF(version)   "holdfast " #version "\n"
#define EXPANDED(version)  TEXT_OF(version)
#define FORMAT_TEXT        EXPANDED(HF_STATE_FORMAT)

/* Only leftovers of an unfinished creation may stand beside a missing FORMAT. */
static int check_empty(const struct hf_state *state, struct hf_err *err)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	struct stat st;
	int r = hf_open_dir(state->dirfd, ".", &dir);

	if (r < 0)
		return hf_fail_sys(err, -r, "opendir", state->path);
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strncmp(entry->d_name, "." FORMAT_NAME ".", sizeof(FORMAT_NAME) + 1) == 0)
			continue;
		/* Another process finished creating it, and went on, while we looked. */
		if (strcmp(entry->d_name, FORMAT_NAME) == 0 ||
		    hf_sys.fstatat(state->dirfd, FORMAT_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
			break;
		r = FAIL(err, HF_E_UNTRUSTED, "readdir", state->path,
			 "it has content ('%.40s') but no FORMAT file, so it is not a state "
			 "directory; name an empty or new one",
			 entry->d_name);
	}
	return r;
}

static int create_format(const struct hf_state *state, struct hf_err *err)
{
	char temp[64];
	int r;

	r = check_empty(state, err);
	if (r < 0)
		return r;
	(void)snprintf(temp, sizeof(temp), "." FORMAT_NAME ".%d.%lld", (int)getpid(),
		       (long long)hf_wall_now().ns);
	/* Renamed, not linked: FORMAT never has two names, so nobody ever distrusts it. */
	r = hf_replace_file(state->dirfd, FORMAT_NAME, temp, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1,
			    HF_REPLACE_SYNC | HF_REPLACE_NEW);
	return r < 0 && r != -EEXIST ? hf_fail_sys(err, -r, "create FORMAT", state->path) : 0;
}

/* A name that differs only in case finds the file: names would meet here. */
static int check_case(const struct hf_state *state, struct hf_err *err)
{
	struct stat st;

	if (hf_sys.fstatat(state->dirfd, "format", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return FAIL(err, HF_E_UNTRUSTED, "fstatat", state->path,
			    "the directory does not distinguish upper and lower case");
	return 0;
}

int hf_state_check_format(const struct hf_state *state, int create, struct hf_err *err)
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
		return r < 0 ? r : hf_state_check_format(state, 0, err);
	}
	if (r < 0)
		return r;
	n = hf_read_all(fd, text, sizeof(text));
	if (n < 0 && n != -E2BIG)
		return hf_fail_sys(err, (int)-n, "read", shown);
	if (n == (ssize_t)sizeof(FORMAT_TEXT) - 1 && memcmp(text, FORMAT_TEXT, (size_t)n) == 0)
		return check_case(state, err);
	end = n > 9 ? memchr(text, '\n', (size_t)n) : NULL;
	if (!end || memcmp(text, "holdfast ", 9) != 0 ||
	    hf_parse_u64_canonical(text + 9, (size_t)(end - text - 9), UINT32_MAX, &version) < 0)
		return FAIL(err, HF_E_FORMAT, "read", shown, "not a known format");
	if (version > HF_STATE_FORMAT)
		return FAIL(err, HF_E_FORMAT, "read", shown, "version %u; this program reads version %d",
			    (unsigned)version, HF_STATE_FORMAT);
	return FAIL(err, HF_E_FORMAT, "read", shown,
		    version == HF_STATE_FORMAT
			    ? "version %u with requirements this program does not know"
			    : "version %u, an older layout that this program does not read; "
			      "stop its sessions with the program that made it, then move the "
			      "directory away, and a new one is made",
		    (unsigned)version);
}
