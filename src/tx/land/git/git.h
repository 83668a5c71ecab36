/*
 * tx/land/git/git.h - running git, outside and inside of a sandbox.
 *
 * Without a shell, prompts, pager, editor and locale, with the environment of plan/git/git_env.h. Only plumbing is read, and of what git says to people
 * only one line, for a message. Outside, hooks and fsmonitor are off.
 */
#ifndef TX_LAND_GIT_GIT_H
#define TX_LAND_GIT_GIT_H

#include <stdint.h>

#include "hf/base/buf.h"
#include "holdfast/err.h"
#include "holdfast/plan.h"

struct hf_git {
	struct hf_plans *plans; /* with `plan`: run in its sandboxes */
	const char *plan;       /* NULL: outside */
	const char *dir;        /* where it runs */
	const char *const *env; /* NULL-ended "K=V"; NULL: none */
	const char *in;         /* standard input; NULL: nothing */
	size_t in_len;
	int in_fd;              /* instead of `in`; 0: none */
	struct hf_buf *out;     /* standard output; NULL: dropped */
	int out_fd;             /* instead of `out`; 0: none */
	struct hf_buf *said;    /* the last line of standard error; NULL: not wanted */
	int hooks;              /* 1: hooks run; inside only */
	int as_user;            /* 1: with the whole environment of the caller, and `env` on top; for the verifier, never for git */
	int checks_owner;       /* 1: git refuses a repository of another owner without safe.directory; the start of a candidate decides that for its later gits */
	int64_t limit_ns;       /* 0: ten minutes */
	/* Called in the child, in `dir`, before it becomes git. Only what a child of fork() may do. 0 or -errno; NULL: none. */
	int (*before)(void *arg);
	void *before_arg;
};

#define HF_GIT_WORDS_MAX 32
#define HF_GIT_ARGV_MAX  (HF_GIT_WORDS_MAX + 20)
#define HF_GIT_TIMED_OUT 1000 /* as an exit status: the limit was reached, and all of it killed */

/* Runs "git" with these words, NULL-ended. The exit status (128 + N for a signal), or an error. */
int hf_git(const struct hf_git *git, struct hf_err *err, ...) __attribute__((sentinel));

/* The same, with words in a list. */
int hf_git_words(const struct hf_git *git, const char *const *words, struct hf_err *err);

/* Runs another program with the environment that git would get. Without `out`, its output goes where ours goes; `out` gets its standard error, too. */
int hf_git_other(const struct hf_git *git, const char *const *argv, struct hf_err *err);

/* Only `before`, in a process of its own. 0 or an error with `what` as its operation. */
int hf_git_act(const struct hf_git *git, const char *what, struct hf_err *err);

/* HF_E_LAND with what git said; `what` was tried. */
int hf_git_failed(const struct hf_buf *said, const char *dir, const char *what, struct hf_err *err);

/* Runs it and takes its output for one object name. 0; 1 when git says no (exit 1 or 128); or an error. */
int hf_git_oid(const struct hf_git *git, const char *rev, char out[65], struct hf_err *err);

/*
 * Changes a mark of these paths in the index, each with a NUL: `option` is one of git update-index, as "--skip-worktree". Returns the exit status, or an
 * error.
 */
int hf_git_mark(const struct hf_git *git, const char *option, const struct hf_buf *paths, struct hf_err *err);

/* Can this be an object's name? 40 or 64 hexadecimal digits. */
int hf_git_is_oid(const char *text);

/*
 * Is there a git that can be used? HF_E_LAND. `dirfd`: a directory that remembers which program was one (".git" in landings/), so that git is not started
 * to be asked for its version; -1: none.
 */
int hf_git_version(int dirfd, struct hf_err *err);

/*
 * 1 if git knows author and committer of a commit in the work tree `dir` with the repository `common`, 0 or an error. `env`: variables
 * that are set before those of this process, or NULL. Git is started only if no file of settings has [user].
 */
int hf_git_has_identity(const char *dir, const char *common, const char *const *env, struct hf_err *err);

/* In a child that is to become git: an odd umask (0177) would leave it directories that it cannot enter. What it keeps from others stays kept. */
void hf_git_umask(void);

/* -- shared with beside.c ---------------------------------------------------------------- */

/* The whole command line. `dir`: where git goes by itself; NULL: it is started there. -E2BIG. */
int hf_git_argv(const char *dir, int hooks, int checks_owner, const char *const *words, const char *argv[HF_GIT_ARGV_MAX], struct hf_err *err);

/* A file in memory with these bytes, at its beginning. The descriptor or -errno. */
int hf_git_memory(const char *bytes, size_t len);

/* What git wrote into two of them: all of its output, and the line of its standard error that says most. Each may be NULL. 0 or -errno. */
int hf_git_read_back(int out_fd, int said_fd, struct hf_buf *out, struct hf_buf *said);

#endif
