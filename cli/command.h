/*
 * cli/command.h - commands that ours becomes or runs: their exit statuses, what they learn of
 * their lock, and filters.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli.h"
#include "holdfast/lock.h"

/* For a command that wraps another: the system's failures are failures around it. */
int command_status_around(int status);

/* The status to exit with for how a child ended (CLD_EXITED and its status, …). */
int command_status_of(int code, int status);

/* Says why a command could not be executed (-errno), and gives the status, 126 or 127. */
int command_not_executed(const struct cli *cli, const char *name, int error);

/* What the command learns of its lock. Without a token it runs without the lock. */
void command_environment(const struct cli *cli, enum hf_lock_kind kind, const char *name,
			 uint64_t token);

/* Becomes the command, or says why not and gives the status. */
int command_become(const struct cli *cli, char **command);

struct filter {
	char **command;
	int in;           /* its standard input; -1: nothing */
	int out;          /* where its output is written to; -1: to our standard error */
	int64_t limit_ns; /* how long it may take */
};

struct filter_result {
	int status;      /* what to exit with for it: its own, 124, 125 to 127, 128+N */
	int timed_out;
	int signal;      /* one that we got, and passed on */
	int write_error; /* -errno of writing to `out` */
};

/*
 * Runs the filter until it has exited and its output has ended; then ends what it has left
 * running, and says so. No process of it is left (exec/command.h).
 */
struct filter_result command_filter(const struct cli *cli, const struct filter *filter);

#endif
