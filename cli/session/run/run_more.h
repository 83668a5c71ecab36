/* cli/session/run/run_more.h - options of `run` for limits, signals and the exit status. */
#ifndef CLI_SESSION_RUN_RUN_MORE_H
#define CLI_SESSION_RUN_RUN_MORE_H

#include "cli.h"
#include "holdfast/run.h"

struct run_more {
	uint64_t mem, pids, nice;
	const char *cpus, *signal;
	int preserve_status, foreground, die_with_parent, verbose, end_background;
	char **map_exit; /* "A=B"; the caller frees the list */
	const char *json_fd_word;
	int json_fd; /* -1: none */
};

#define RUN_MORE_SPECS(more)                                                                                                    \
	{ "mem", 0, OPTION_SIZE, &(more).mem, "SIZE", "memory limit of all its processes (cgroup), or of each" },                      \
	{ "cpus", 0, OPTION_TEXT, &(more).cpus, "N", "limit to the CPU time of N CPUs (cgroup), or to N CPUs" },                  \
	{ "pids", 0, OPTION_COUNT, &(more).pids, "N", "limit of its processes (cgroup), or of the user's processes" },                    \
	{ "nice", 0, OPTION_COUNT, &(more).nice, "N", "scheduling priority, 19 is the lowest (1 to 19)" },                       \
	{ "signal", 0, OPTION_TEXT, &(more).signal, "SIG", "first signal when the command is ended (TERM)" },              \
	{ "preserve-status", 0, OPTION_FLAG, &(more).preserve_status, NULL, "after a deadline, exit with the command's status, not 124" }, \
	{ "end-background", 0, OPTION_FLAG, &(more).end_background, NULL, "end the background tasks of a client after its answer" }, \
	{ "foreground", 0, OPTION_FLAG, &(more).foreground, NULL, "stay in the caller's process group without a terminal, too" },    \
	{ "die-with-parent", 0, OPTION_FLAG, &(more).die_with_parent, NULL, "end it when the process that started holdfast ends" },    \
	{ "map-exit", 0, OPTION_LIST, &(more).map_exit, "A=B", "exit with B instead of A" },                              \
	{ "verbose", 'v', OPTION_FLAG, &(more).verbose, NULL, "report the outcome and the resources used" },                            \
	{ "json-fd", 0, OPTION_TEXT, &(more).json_fd_word, "N", "write the output of --json to descriptor N" }

/* Checks the options and stores them in *o. Returns HF_EXIT_DONE, or HF_EXIT_USAGE after reporting why. */
int run_more_check(struct cli *cli, struct run_more *more, int detach, struct hf_run_opts *o);

/* Applies --die-with-parent before the start. Returns HF_EXIT_DONE, or the exit status if the parent is gone already. */
int run_more_begin(struct cli *cli, const struct run_more *more, int32_t parent);

/* With -v, reports the outcome of the session and the resources used. */
void run_more_tell(const struct cli *cli, const struct run_more *more, const char *name, const struct hf_run_report *report);

/* Applies --map-exit to a status. */
int run_more_map(const struct run_more *more, int status);

/* Returns the output of --json with its newline, without a NUL. The caller frees it. */
char *run_dump(json_t *object, size_t *ret_len);

/* Writes the object to --json-fd. Returns HF_EXIT_DONE or HF_EXIT_OS. */
int run_more_json(const struct cli *cli, const struct run_more *more, json_t *object);

#endif
