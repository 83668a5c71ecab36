/*
 * cli/command.h - runs the user's commands: their exit statuses, the environment that describes
 * their lock, and filters.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli.h"
#include "holdfast/lock.h"

/* Returns the status for a command that wraps another: a system error becomes 125. */
int command_status_around(int status);

/* Returns the exit status for the end of a child (`code`: CLD_EXITED and so on). */
int command_status_of(int code, int status);

/* Reports why a command could not be executed (`error`: -errno). Returns 126 or 127. */
int command_not_executed(const struct cli *cli, const char *name, int error);

/* Sets the environment variables that describe the lock. `token` 0: the command runs without the lock. */
void command_environment(const struct cli *cli, enum hf_lock_kind kind, const char *name,
			 uint64_t token);

/* Executes the command in place of this process. Returns only on failure: reports it and returns the status. */
int command_become(const struct cli *cli, char **command);

struct filter {
	char **command;
	int in;           /* its standard input; -1: empty */
	int out;          /* the destination of its output; -1: our standard error */
	int64_t limit_ns; /* time limit */
};

struct filter_result {
	int status;      /* the exit status to use: its own, 124, 125 to 127, 128+N */
	int timed_out;
	int signal;      /* a signal that we received and passed on */
	int write_error; /* -errno of a failed write to `out` */
};

/*
 * Runs the filter until it has exited and its output has ended. Then ends the processes that it left
 * running, and reports them. None of its processes remains (exec/command.h).
 */
struct filter_result command_filter(const struct cli *cli, const struct filter *filter);

#endif
