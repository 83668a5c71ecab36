/* cli/session/run/run.h - the options of `run`, and what is said of its end. */
#ifndef CLI_SESSION_RUN_RUN_H
#define CLI_SESSION_RUN_RUN_H

#include "holdfast/name.h"
#include "lock/lock.h"
#include "session/run/run_in.h"
#include "session/run/run_more.h"

struct run {
	struct cli *cli;
	const char *name;
	char made_name[HF_NAME_MAX + 1]; /* where none was given */
	const char *shell;               /* -c: a line for the shell */
	char *shell_command[4];
	struct lock_options lock;
	struct hf_run_opts o;
	/* -1: not given; 0 then says that there is to be none. */
	int64_t deadline_ns, idle_ns, hang_ns, grace_ns, verify_ns, every_ns, backoff_ns, backoff_max_ns;
	uint64_t max_runs, max_depth, max_active, log_max, priority;
	const char *tree_word, *term_word, *stdin_word;
	char **env; /* to be freed, with what env_set has */
	size_t n_set;
	char **env_set; /* "NAME=VALUE" made of --env NAME */
	int detach, resume, leave_running, log, no_log, terminal, hooks, remove;
	char **hooked; /* the command with our hooks */
	struct run_in in;
	struct run_more more;
	struct hf_tx_opts tx;
};

/*
 * Finds the name and the command among the `n` words: "NAME [--] CMD...", "-- CMD..." with a name that is made, or
 * either of them without CMD and with -c LINE. HF_EXIT_DONE, or HF_EXIT_USAGE after saying what is missing.
 */
int run_words(struct run *run, int n, char **argv, char ***ret_command);

/*
 * What the command is to read as its standard input (--stdin): with --detach a pipe or file is read to its end first. The check says what
 * cannot be. HF_EXIT_DONE, or the status after saying why.
 */
int run_stdin_check(const struct run *run);
int run_stdin(struct run *run);

/* It was not run, or not to its end: says why, and what to do. The exit status. */
int run_fail(struct run *run, int r, const struct hf_run_report *report, const struct hf_err *err);

/* Says and prints what it came to. The exit status. */
int run_tell(const struct run *run, const struct hf_run_report *report, const struct hf_tx_report *landed);

#endif
