/* plan/git/git_env.c - the environment that git runs with. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hf/plan/git/git_env.h"

extern char **environ;

static const char *const always[] = { "LC_ALL=C",
				      "GIT_TERMINAL_PROMPT=0",
				      "GIT_OPTIONAL_LOCKS=0",
				      "GIT_NO_REPLACE_OBJECTS=1",
				      "GIT_EDITOR=true",
				      "GIT_SEQUENCE_EDITOR=true",
				      "GIT_PAGER=cat",
				      "GIT_ADVICE=0",
				      /* A key that needs a passphrase fails instead of asking on the terminal. */
				      "GPG_TTY=",
				      "SSH_ASKPASS=false",
				      "SSH_ASKPASS_REQUIRE=force",
				      NULL };

/* The author of a commit is the user's to say; where the repository is, and how git behaves, is not. */
static int is_kept(const char *entry)
{
	static const char *const kept[] = { "GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=",
					    "GIT_COMMITTER_NAME=", "GIT_COMMITTER_EMAIL=" };

	static const char *const replaced[] = { "LC_ALL=", "HOLDFAST_PLAN=", "GPG_TTY=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=" };

	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		if (strncmp(entry, replaced[i], strlen(replaced[i])) == 0)
			return 0;
	if (strncmp(entry, "GIT_", 4) != 0)
		return 1;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
			return 1;
	return 0;
}

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

char **hf_git_environment(char *const *inside, const char *const *extra)
{
	const char *const *sets[] = { extra, (const char *const *)inside, always };
	size_t n = 0, room = count((const char *const *)environ) + 1;
	char **envp;

	for (size_t i = 0; i < 3; i++)
		room += count(sets[i]);
	envp = malloc(room * sizeof(*envp));
	if (!envp)
		return NULL;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; sets[i] && sets[i][k]; k++)
			envp[n++] = (char *)(uintptr_t)sets[i][k];
	for (char **entry = environ; entry && *entry; entry++)
		if (is_kept(*entry))
			envp[n++] = *entry;
	envp[n] = NULL;
	return envp;
}
