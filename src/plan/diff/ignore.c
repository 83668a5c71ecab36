/*
 * plan/diff/ignore.c - what a commit leaves out: globs for caches and build trees.
 *
 * As in a .gitignore without its exceptions: a glob without a slash (other than at its end)
 * matches the entry's name at any depth, one with a slash the whole path from the target on, one
 * with a slash at its end directories only. A directory that matches is left out with all in it.
 */
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "hf/plan/diff/delta.h"
#include "hf/plan/tree/dirtree.h"

static int matches(const char *glob, const char *path, int is_dir)
{
	char cut[PATH_MAX];
	size_t len = strlen(glob);

	if (len > 1 && glob[len - 1] == '/') {
		if (!is_dir || len >= sizeof(cut))
			return 0;
		memcpy(cut, glob, len - 1);
		cut[len - 1] = '\0';
		glob = cut;
	}
	if (!strchr(glob, '/'))
		return fnmatch(glob, hf_dirtree_leaf(path), 0) == 0;
	return fnmatch(glob[0] == '/' ? glob + 1 : glob, path, FNM_PATHNAME) == 0;
}

int hf_ignored(const char *const *globs, const char *path, int is_dir)
{
	for (; globs && *globs; globs++)
		if (matches(*globs, path, is_dir))
			return 1;
	return 0;
}
