/* cli/session/run/run.h - the options of `run`, and the report of its end. */
#ifndef CLI_SESSION_RUN_RUN_H
#define CLI_SESSION_RUN_RUN_H

#include "holdfast/name.h"
#include "lock/lock.h"
#include "session/run/run_in.h"
#include "session/run/run_more.h"

struct run {
	struct cli *cli;
	const char *command; /* its first word; NULL: the stored one */
	const char *name;
	char made_name[HF_NAME_MAX + 1]; /* used if the user gave no name */
	const char *shell;               /* -c: a line for the shell */
	char *shell_command[4];
	struct lock_options lock;
	struct hf_run_opts o;
	/* -1: not given; 0: none (grace_ns: kill at once). */
	int64_t deadline_ns, idle_ns, hang_ns, grace_ns, verify_ns, every_ns, backoff_ns, backoff_max_ns;
	uint64_t max_runs, max_depth, max_active, log_max, priority;
	const char *tree_word, *term_word, *stdin_word;
	char **env; /* freed together with the strings of env_set */
	size_t n_set;
	char **env_set; /* "NAME=VALUE" made of --env NAME */
	int detach, resume, leave_running, log, no_log, terminal, hooks, remove;
	char **hooked; /* the command with Holdfast's hooks */
	struct run_in in;
	struct run_more more;
	struct hf_tx_opts tx;
};

/*
 * Finds the name and the command in the `n` words: "NAME [--] CMD...", or "-- CMD..." with a new name. With -c LINE
 * the words have no CMD. Returns HF_EXIT_DONE, or HF_EXIT_USAGE after reporting what is missing.
 */
int run_words(struct run *run, int n, char **argv, char ***ret_command);

/*
 * Provides the command's standard input (--stdin). With --detach a pipe or file is read to its end first. Both return HF_EXIT_DONE, or the
 * exit status after reporting why.
 */
int run_stdin_check(const struct run *run);
int run_stdin(struct run *run);

/* Reports why the command did not run, or did not run to its end, and what to do. Returns the exit status. */
int run_fail(struct run *run, int r, const struct hf_run_report *report, const struct hf_err *err);

/* Reports and prints the outcome. Returns the exit status. */
int run_tell(const struct run *run, const struct hf_run_report *report, const struct hf_tx_report *landed);

#endif
