/* plan/git/git_run.h - git as a command: no shell, no input, nothing fetched, no terminal asked. */
#ifndef PLAN_GIT_GIT_RUN_H
#define PLAN_GIT_GIT_RUN_H

/*
 * Runs `argv` ("git", ...) in the directory `cwd`, which may be a place (O_PATH), with its output
 * going to `out` and its complaints to `err` (-1: nowhere). The repository is the one that argv
 * names, whatever the environment says. Any thread may call it; the child is reaped.
 *
 * Returns the exit status, 0 to 255 (255 for a signal); -ENOENT: git is not installed; -ETIMEDOUT: it
 * took a minute and was killed; -ECHILD: the caller ignores SIGCHLD, or reaped it; -errno.
 */
int hf_git_run(int cwd, char *const *argv, int out, int err);

/* The same with more in its environment: "K=V", NULL-ended; NULL: nothing. */
int hf_git_run_with(int cwd, char *const *argv, const char *const *extra, int out, int err);

#endif
