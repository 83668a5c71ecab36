/* tx/land/git/repository.c - reading a repository's files instead of asking git. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/git/repository.h"

#define CONFIG_MAX ((size_t)64 << 10)

/*
 * Settings with which git finds the work tree or the refs elsewhere; all of them stand in the repository's own file, without includes.
 * "bare = false" stands in every one.
 */
static int is_usual_line(const char *line)
{
	static const char *const others[] = { "worktree", "refstorage", "bare" };
	const char *value;

	line += strspn(line, " \t");
	if (strncasecmp(line, "bare", 4) == 0) {
		value = line + 4 + strspn(line + 4, " \t");
		if (*value != '=')
			return 0;
		value += 1 + strspn(value + 1, " \t");
		return strncasecmp(value, "false", 5) == 0 && value[5 + strspn(value + 5, " \t\r")] == '\0';
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcasestr(line, others[i]))
			return 0;
	return 1;
}

static int is_usual_config(const char *git_dir)
{
	AUTO_FREE char *text = malloc(CONFIG_MAX + 1);
	char path[PATH_MAX];
	ssize_t n;

	if (!text || snprintf(path, sizeof(path), "%s/config", git_dir) >= (int)sizeof(path))
		return 0;
	n = hf_read_file(AT_FDCWD, path, text, CONFIG_MAX);
	if (n < 0 || memchr(text, '\0', (size_t)n))
		return 0;
	text[n] = '\0';
	for (char *line = text, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (!is_usual_line(line))
			return 0;
	}
	return 1;
}

/* Does the directory belong to this user? For another user's, git itself decides by its safe.directory. */
static int is_own(const char *path, dev_t *ret_dev)
{
	struct stat st;

	if (hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return 0;
	*ret_dev = st.st_dev;
	return 1;
}

static int has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
	       hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is there another ".git", of whatever kind, on the way up to `top`? */
static int is_other_between(const char *dir, const char *top)
{
	char at[PATH_MAX];

	if (strlen(dir) >= sizeof(at))
		return 1;
	hf_copy_text(at, sizeof(at), dir);
	while (strcmp(at, top) != 0) {
		if (has(at, ".git"))
			return 1;
		*strrchr(at, '/') = '\0';
	}
	return 0;
}

int hf_repository_find(const char *dir, struct hf_land_place *ret, struct hf_err *err)
{
	AUTO_FREE char *git_dir = hf_git_find(dir);
	AUTO_FREE char *top = NULL;
	dev_t of_top, of_git;
	struct stat st;
	size_t len;
	int r;

	len = git_dir ? strlen(git_dir) : 0;
	if (len < 6 || strcmp(git_dir + len - 5, "/.git") != 0)
		return 0;
	top = strndup(git_dir, len - 5);
	if (!top || !hf_path_is_in(dir, top) || hf_path_is_in(dir, git_dir) || is_other_between(dir, top))
		return 0;
	/* git does not look across file systems. */
	if (!is_own(top, &of_top) || !is_own(git_dir, &of_git) || hf_sys.fstatat(AT_FDCWD, dir, &st, 0) < 0 ||
	    st.st_dev != of_top || of_git != of_top || has(git_dir, "commondir") ||
	    has(git_dir, "config.worktree") || has(git_dir, "reftable") || !is_usual_config(git_dir))
		return 0;
	r = hf_land_place_again(top, git_dir, git_dir, ret, err);
	if (r < 0)
		return r;
	ret->moved_up = strcmp(top, dir) != 0;
	return 1;
}

int hf_repository_head(const struct hf_land_place *place, char ret_oid[HF_LAND_OID_MAX], char *ret_branch, size_t cap)
{
	char ref[HF_GIT_REF_MAX];

	if (hf_git_head_ref(place->git_dir, ref) == 0) {
		hf_copy_text(ret_branch, cap, hf_land_short(ref));
		return hf_git_read_ref(place->common, ref, ret_oid) == 0;
	}
	ret_branch[0] = '\0';
	return hf_git_loose_ref(place->git_dir, "HEAD", ret_oid) == 0;
}
