/*
 * plan/git/git.c - does git, run in a target, write somewhere else?
 *
 * A commit in a sub-directory, a linked worktree or a submodule writes to a git directory above
 * or beside the target, past every sandbox. The rules are git's own for finding a repository:
 * upwards from the directory, ".git" as directory or as a file that names one, "commondir" in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* `name` as seen from `base`, resolved. NULL when there is no such thing. */
static char *resolve(const char *base, const char *name)
{
	AUTO_FREE char *joined = NULL;

	if (asprintf(&joined, "%s%s%s", name[0] == '/' ? "" : base, name[0] == '/' ? "" : "/", name) <
	    0)
		return NULL;
	return realpath(joined, NULL);
}

static int exists(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int is_git_dir(const char *dir)
{
	/* A linked worktree has HEAD and commondir and no objects of its own. */
	return exists(dir, "HEAD") &&
	       (exists(dir, "commondir") || (exists(dir, "objects") && exists(dir, "refs")));
}

/* The first line of a small file, behind `prefix`; 0 when it is not that. */
static int read_line(const char *dir, const char *name, const char *prefix, char *out, size_t cap)
{
	char path[PATH_MAX], text[PATH_MAX + 16];
	size_t skip = strlen(prefix);
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 0;
	n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);
	if (n <= (ssize_t)skip || strncmp(text, prefix, skip) != 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	hf_copy_text(out, cap, text + skip);
	return out[0] != '\0';
}

char *hf_git_find(const char *dir)
{
	AUTO_FREE char *at = strdup(dir);

	while (at) {
		char named[PATH_MAX];
		struct stat st;
		char *found = NULL;
		char *slash;

		if (exists(at, ".git")) {
			AUTO_FREE char *dot = resolve(at, ".git");

			if (dot && hf_sys.fstatat(AT_FDCWD, dot, &st, 0) == 0) {
				if (S_ISDIR(st.st_mode) && is_git_dir(dot))
					found = ptr_take(&dot);
				else if (S_ISREG(st.st_mode) &&
					 read_line(at, ".git", "gitdir: ", named, sizeof(named)))
					found = resolve(at, named);
			}
		}
		/* A bare repository, or the inside of a git directory. */
		if (!found && is_git_dir(at))
			found = strdup(at);
		if (found)
			return found;
		slash = strrchr(at, '/');
		if (!slash || at[1] == '\0')
			return NULL;
		slash[slash == at ? 1 : 0] = '\0';
	}
	return NULL;
}

static int is_covered(const struct hf_plan_record *record, const struct hf_target *target,
		      const char *path)
{
	if (hf_path_is_in(path, target->path))
		return 1;
	for (size_t i = 0; i < record->n_sandboxes; i++)
		if (hf_path_is_in(path, record->sandboxes[i].target.path))
			return 1;
	return 0;
}

int hf_git_check(const struct hf_plan_record *record, const struct hf_target *target,
		 struct hf_err *err)
{
	AUTO_FREE char *git = hf_git_find(target->path);
	AUTO_FREE char *common = NULL;
	char named[PATH_MAX];
	const char *outside;

	if (!git)
		return 0;
	if (read_line(git, "commondir", "", named, sizeof(named)))
		common = resolve(git, named);
	outside = !is_covered(record, target, git)		   ? git :
		  common && !is_covered(record, target, common) ? common :
								     NULL;
	if (outside)
		return FAIL(err, HF_E_TARGET, "target", target->path,
			    "git commands in it write to %.100s, outside the sandbox; give the repository's top instead, or that "
			    "directory first ('plan add' allows it with --git-outside)", outside);
	return 0;
}

int hf_git_is_across(const struct hf_plan_record *record)
{
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		const char *path = record->sandboxes[i].target.path;
		AUTO_FREE char *git = exists(path, ".git") ? NULL : hf_git_find(path);

		/* git stops at the edge of the overlay otherwise. Only when it is safe to go on. */
		if (git && !hf_path_is_in(git, path) &&
		    is_covered(record, &record->sandboxes[i].target, git))
			return 1;
	}
	return 0;
}
