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
#include "hf/tx/land/take/outside.h"
#include "hf/tx/land/take/touched.h"

static int exists(const char *dir, const char *name)
{
	AUTO_FREE char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		path = NULL;
	return path && hf_sys.fstatat(AT_FDCWD, path, &st, 0) == 0;
}

/* "oid sha256:ABCD…": lfs/objects/AB/CD/ABCD… of the repository has what the pointer stands for. */
static int has_content(const struct hf_land_work *work, const char *pointer)
{
	static const char key[] = "\noid sha256:";
	const char *oid = strstr(pointer, key);
	char name[128];

	if (!oid || strspn(oid + sizeof(key) - 1, "0123456789abcdef") != 64)
		return 0;
	oid += sizeof(key) - 1;
	(void)snprintf(name, sizeof(name), "lfs/objects/%.2s/%.2s/%.64s", oid, oid + 2, oid);
	return exists(work->landing.common, name);
}

/* A pointer of git LFS whose content is in the sandbox alone, and would go with it? 1, 0 or an error. */
static int is_lost_pointer(const struct hf_land_work *work, const char *oid, struct hf_err *err)
{
	static const char head[] = "version https://git-lfs.github.com/spec/";
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = work->landing.common, .out = &out };
	int r = hf_git(&git, err, "cat-file", "-s", oid, NULL);

	if (r != 0 || out.len > 4) /* a number below 1000, and its newline */
		return r < 0 ? r : 0;
	r = hf_git(&git, err, "cat-file", "blob", oid, NULL);
	return r < 0 ? r : r == 0 && strncmp(out.s, head, sizeof(head) - 1) == 0 && !has_content(work, out.s);
}

static int check_change(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_land_change *change,
			int lfs, struct hf_err *err)
{
	int is_bump = S_ISGITLINK(change->old_mode) && S_ISGITLINK(change->new_mode);
	char text[200];
	int r;

	if (!is_bump && (S_ISGITLINK(change->old_mode) || S_ISGITLINK(change->new_mode))) {
		(void)snprintf(text, sizeof(text), "it changes the submodule or nested repository %.100s", change->path);
		return hf_land_reject(work, err, text);
	}
	if (is_bump && hf_touched_below(touched, change->path))
		return hf_land_take_bump(work, change, err);
	if (!hf_touched_has(touched, change->path) &&
	    hf_land_paths_add(&work->landing.outside, change->path, strlen(change->path), "outside") < 0)
		return hf_fail_sys(err, ENOMEM, "memory", change->path);
	if (!lfs || !S_ISREG(change->new_mode))
		return 0;
	r = is_lost_pointer(work, change->new_oid, err);
	(void)snprintf(text, sizeof(text), "it changes %.80s, whose content git LFS keeps in the sandbox only", change->path);
	return r > 0 ? hf_land_reject(work, err, text) : r;
}

static int is_matched(const struct hf_land_work *work, const char *glob, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *spec = NULL;
	struct hf_git git = { .dir = work->landing.common, .out = &out };
	int r;

	if (asprintf(&spec, ":(top,glob)%s", glob + strspn(glob, "/")) < 0) {
		spec = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", glob);
	}
	r = hf_git(&git, err, "diff-tree", "-r", "-z", "--no-renames", "--name-only", work->landing.base, work->landing.tip, "--", spec, NULL);
	return r < 0 ? r : out.len > 0;
}

int hf_land_check_also(struct hf_land_work *work, struct hf_err *err)
{
	char *const *also = work->landing.also;
	const char *unmatched[HF_LAND_ALSO_MAX + 1] = { NULL };
	size_t n = 0;

	for (size_t i = 0; also && also[i] && i < HF_LAND_ALSO_MAX; i++) {
		int r = is_matched(work, also[i], err);

		if (r < 0)
			return r;
		if (r == 0)
			unmatched[n++] = also[i];
	}
	return hf_landing_set_list(&work->landing.unmatched, unmatched) < 0 ? hf_fail_sys(err, ENOMEM, "memory", work->landing.name) : 0;
}

int hf_land_check_changes(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_change change;
	const char *at = NULL;
	int lfs = hf_touched_has_lfs(work, touched);
	int r = hf_land_changes(work, work->landing.base, work->landing.tip, &said, err);

	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its changes cannot be read", &said, err);
	hf_land_paths_done(&work->landing.outside);
	while (r == 0 && hf_land_next_change(work, &at, &change))
		r = check_change(work, touched, &change, lfs, err);
	if (r == 0 && work->landing.outside.n > 0)
		r = hf_land_leave_out(work, err);
	if (r != 0)
		return r;
	r = hf_land_changes(work, work->landing.base, work->landing.tip, &said, err);
	if (r != 0)
		return r < 0 ? r : hf_land_reject_said(work, "its changes cannot be read", &said, err);
	hf_land_count_changes(work);
	return 0;
}
