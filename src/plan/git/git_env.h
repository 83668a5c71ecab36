/* plan/git/git_env.h - the environment of every git that the library starts. */
#ifndef PLAN_GIT_GIT_ENV_H
#define PLAN_GIT_GIT_ENV_H

/*
 * "K=V" for git and what runs in its place: `extra`, `inside` (both NULL-ended, may be NULL), what keeps git quiet and
 * predictable, then the caller's. Of the caller's GIT_* only names and addresses of author and committer stay: where the repository is and
 * how git behaves is not for the environment to say. Freed with free(), one block; NULL: no memory.
 */
char **hf_git_environment(char *const *inside, const char *const *extra);

#endif
