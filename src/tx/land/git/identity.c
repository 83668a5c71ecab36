/* tx/land/git/identity.c - the author and committer that git knows. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"

#define CONFIG_MAX 65536

static int is_set(const char *const *env, const char *name)
{
	size_t len = strlen(name);
	const char *here = getenv(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return env[i][len + 1] != '\0';
	return here && here[0];
}

/* The settings have both keys of [user]. Read as text: git is asked where they seem to be missing. */
static int has_user(const char *dir, const char *name)
{
	AUTO_FREE char *text = malloc(CONFIG_MAX + 1);
	const char *user;
	char path[PATH_MAX];
	ssize_t n;

	if (!text || !dir || (size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return 0;
	n = hf_read_file(AT_FDCWD, path, text, CONFIG_MAX);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	user = strcasestr(text, "[user]");
	return user && strcasestr(user, "email") && strcasestr(user, "name");
}

int hf_git_has_identity(const char *dir, const char *common, const char *const *env, struct hf_err *err)
{
	const char *home = getenv("HOME"), *settings = getenv("XDG_CONFIG_HOME");
	struct hf_git git = { .dir = dir, .env = env };
	int r;

	if ((is_set(env, "GIT_AUTHOR_EMAIL") && is_set(env, "GIT_AUTHOR_NAME") && is_set(env, "GIT_COMMITTER_EMAIL") && is_set(env, "GIT_COMMITTER_NAME")) ||
	    has_user(home, ".gitconfig") || has_user(settings, "git/config") || has_user(home, ".config/git/config") || has_user(common, "config"))
		return 1;
	r = hf_git(&git, err, "var", "GIT_AUTHOR_IDENT", NULL);
	if (r == 0)
		r = hf_git(&git, err, "var", "GIT_COMMITTER_IDENT", NULL);
	return r < 0 ? r : r == 0;
}
