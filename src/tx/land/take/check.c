/* tx/land/take/check.c - what cannot land: changes that the agent only saw, objects that are not there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/take/touched.h"

/* Is it what git LFS puts in a file's place? Its content is elsewhere, and would not come along. */
static int is_lfs_pointer(const struct hf_land_work *work, const char *oid, struct hf_err *err)
{
	static const char head[] = "version https://git-lfs.github.com/spec/";
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = work->landing.common, .out = &out };
	int r = hf_git(&git, err, "cat-file", "-s", oid, NULL);

	if (r != 0 || out.len > 4) /* a number below 1000, and its newline */
		return r < 0 ? r : 0;
	r = hf_git(&git, err, "cat-file", "blob", oid, NULL);
	return r < 0 ? r : r == 0 && strncmp(out.s, head, sizeof(head) - 1) == 0;
}

static int uses_lfs(const struct hf_land_work *work)
{
	AUTO_FREE char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/lfs", work->landing.common) < 0)
		path = NULL;
	return path && hf_sys.fstatat(AT_FDCWD, path, &st, 0) == 0;
}

/* ":OLDMODE NEWMODE OLDOID NEWOID S", NUL, path, NUL, for each change between base and tip. */
static int check_change(struct hf_land_work *work, const struct hf_touched *touched, const char *row, const char *path,
			int lfs, struct hf_err *err)
{
	char text[200], oid[HF_LAND_OID_MAX];
	const char *at = row;
	int r;

	if (strncmp(row + 1, "160000", 6) == 0 || strncmp(row + 8, "160000", 6) == 0) {
		(void)snprintf(text, sizeof(text), "it changes the submodule or nested repository %.100s", path);
		return hf_land_reject(work, err, text);
	}
	if (!hf_touched_has(touched, path) &&
	    hf_land_paths_add(&work->landing.outside, path, strlen(path), "outside") < 0)
		return hf_fail_sys(err, ENOMEM, "memory", path);
	if (!lfs || strncmp(row + 8, "100", 3) != 0)
		return 0;
	for (int i = 0; i < 3 && at; i++)
		at = strchr(at + 1, ' ');
	if (!at || strcspn(at + 1, " ") >= sizeof(oid))
		return 0;
	(void)snprintf(oid, sizeof(oid), "%.*s", (int)strcspn(at + 1, " "), at + 1);
	r = is_lfs_pointer(work, oid, err);
	(void)snprintf(text, sizeof(text), "it changes %.80s, whose content git LFS keeps in the sandbox only", path);
	return r > 0 ? hf_land_reject(work, err, text) : r;
}

int hf_land_check_changes(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .dir = work->landing.common, .out = &out, .said = &said };
	int lfs = uses_lfs(work);
	int r = hf_git(&git, err, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--full-index", work->landing.base,
		       work->landing.tip, NULL);

	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its changes cannot be read", &said, err);
	work->landing.files = 0;
	hf_land_paths_done(&work->landing.outside);
	for (const char *at = out.s; r == 0 && at < out.s + out.len;) {
		const char *path = at + strlen(at) + 1;

		if (at[0] != ':' || strlen(at) < 16 || path >= out.s + out.len)
			break;
		r = check_change(work, touched, at, path, lfs, err);
		work->landing.files++;
		at = path + strlen(path) + 1;
	}
	return r;
}
