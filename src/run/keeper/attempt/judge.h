/*
 * run/keeper/attempt/judge.h - what an end means: from how a process ended to an outcome, its exit status and its cause.
 *
 * Pure. Only this file makes a success (L14): the command exited 0, nothing asked it to
 * end and nobody interrupted it, and the verifier, where there is one, exited 0 as well.
 */
#ifndef RUN_KEEPER_ATTEMPT_JUDGE_H
#define RUN_KEEPER_ATTEMPT_JUDGE_H

#include "hf/exec/tree.h"
#include "hf/run/keeper/attempt/ending.h"
#include "holdfast/exit.h"
#include "holdfast/run.h"

/* How a command that was watched came to its end. */
struct hf_watched {
	int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: it did not start */
	int status; /* exit status or signal; errno when it did not start */
	enum hf_cause cause; /* why it was ended; HF_CAUSE_NONE: by itself */
	int interrupted;     /* SIGINT or SIGQUIT, when one was passed to it before the cause; 0: none */
	struct hf_tree_names outlived; /* what was there when it had ended by itself, and was ended then */
};

struct hf_result {
	enum hf_outcome outcome;
	int exit_status;
	char cause[HF_RUN_CAUSE_MAX];
};

struct hf_result hf_result_make(enum hf_outcome outcome, int exit_status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The session is to end for `cause`, before or between what could have an end of its own. */
struct hf_result hf_judge_cause(enum hf_cause cause, int interrupted, const char *when);

struct hf_result hf_judge_command(const struct hf_watched *watched);

/* Of a command that succeeded. `why` (code 0: nothing) is what the stage said if it could not be run. */
struct hf_result hf_judge_verifier(const struct hf_watched *watched, const struct hf_err *why);

/*
 * Adds --mem to the cause of a failure. `oom_kills`: processes that the kernel killed at the
 * limit of the cgroup. `is_bounded`: the limit bounds each process, and is named when it died as without memory.
 */
void hf_judge_memory(const struct hf_watched *watched, int64_t oom_kills, int is_bounded, struct hf_result *result);

/* It never ran. `ours`: the error was not the command's exec. `why` (code 0: nothing) is what the stage said of it. */
struct hf_result hf_judge_not_started(const char *word, int error, int ours, const struct hf_err *why);

/* The exit status that a shell would give. */
int hf_shell_status(const struct hf_watched *watched);

#endif
