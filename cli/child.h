/*
 * cli/child.h - commands that ours runs or becomes: their exit statuses, what they learn of
 * their lock, and a filter that is watched until it has ended.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "cli.h"

#define STATUS_DEADLINE 124 /* it took too long and was ended */
#define STATUS_AROUND   125 /* Holdfast failed around the command */
#define STATUS_NO_EXEC  126
#define STATUS_NO_FILE  127
#define STATUS_SIGNAL   128

/* For a command that wraps another: the system's failures are failures around it. */
int child_status_around(int status);

/* What the command learns of its lock. Without a token it runs without the lock. */
void child_environment(const struct cli *cli, const char *name, uint64_t token);

/* Becomes the command, or says why not and gives the status. */
int child_become(const struct cli *cli, char **command);

/* Waits for the exit of a child of ours and turns it into our own status. */
int child_reap(pid_t pid);

/* Blocks the signals that a command shall get instead of us, and opens a signalfd of them. */
int child_signals(sigset_t *ret_mask);

struct child_filter {
	char **command;
	int in;          /* its standard input; -1: nothing */
	int out;         /* where its output is written to; -1: to our standard error */
	int64_t limit_ns; /* how long it may take */
};

struct child_result {
	int status;      /* what to exit with for it: its own, 124, 125 to 127, 128+N */
	int timed_out;
	int signal;      /* one that we got, and passed on */
	int write_error; /* -errno of writing to `out` */
};

/*
 * Runs the filter in a process group of its own, until it has exited and its output has
 * ended. On any failure the group is killed: nothing of it is left behind. If we are
 * killed, the kernel kills it.
 */
struct child_result child_run(struct cli *cli, const struct child_filter *filter);

#endif
