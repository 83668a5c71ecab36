/*
 * exec/command.h - runs a command to its end, with input, output and a limit, and ends
 * everything that it started.
 *
 *     struct hf_command command = { .argv = argv, .envp = environ, .in = old, .out = new,
 *                                   .limit_ns = 30 * HF_SEC, .grace_ns = 2 * HF_SEC };
 *     hf_command_run(&command, &result);
 *
 * The command is over when it has exited and its output has ended. What it left running is then
 * ended, too: TERM, and KILL at the end of the grace. The call returns when no process of it is
 * left, whatever they did (setsid, double fork, another environment): a watcher, a process of its
 * own between the caller and the command, is a subreaper, so that every orphan becomes its
 * child (tree.h). If the caller is killed, the watcher ends all of them. If the watcher is killed, the caller
 * does: it is a subreaper for that time as well, unless it had children before, whose orphans would come to it
 * and could not be told from the command's; then the kernel kills the command alone (PDEATHSIG).
 *
 * For programs with one thread that wait for nothing else meanwhile, such as the CLI: signals
 * are blocked, SIGCHLD gets its default action, and children are reaped; afterwards all is as it
 * was.
 */
#ifndef EXEC_COMMAND_H
#define EXEC_COMMAND_H

#include <signal.h>
#include <stdint.h>

struct hf_command {
	char *const *argv;
	char *const *envp;
	int in;           /* its standard input; -1: nothing */
	int out;          /* its output is written there, to a file from its start, through a pipe; -1: to our standard error */
	uint64_t out_max; /* so much of it is written there, the rest is dropped; 0: all */
	int64_t limit_ns; /* how long it may take, its output included */
	int64_t grace_ns; /* between TERM and KILL */
	int64_t orphan_grace_ns; /* the same when the caller was killed; 0: KILL at once */
	int (*enter)(void *arg); /* as in spawn.h */
	void *enter_arg;
};

struct hf_command_result {
	int error;       /* -errno: it was not started, or (-ECHILD) its watcher was killed; then nothing below is set */
	int exec_error;  /* -errno of exec or `enter`; 0: the command ran */
	int code;        /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
	int status;      /* the exit status, or the signal */
	int timed_out;
	int signal;      /* one that the caller got, and that ended the command; 0: none */
	int write_error; /* -errno of writing to `out`, which ended the command; 0: none */
	unsigned left;   /* processes that outlived it, and were ended */
};

void hf_command_run(const struct hf_command *command, struct hf_command_result *ret);

/* What a process that watches a command changes of its own signals, for a time. */
struct hf_command_signals {
	int fd; /* signalfd of SIGCHLD and of those that are for the command; -1: failed */
	sigset_t mask; /* before, and the command's */
	struct sigaction child;
};

int hf_command_signals_take(struct hf_command_signals *ret);
void hf_command_signals_done(struct hf_command_signals *signals);

/* The next signal but SIGCHLD: 1, or 0 when there is none. */
int hf_command_signals_next(const struct hf_command_signals *signals, int *ret_signal, int *ret_code);

#endif
