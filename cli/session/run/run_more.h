/* cli/session/run/run_more.h - options of `run` about limits, signals and the exit status. */
#ifndef CLI_SESSION_RUN_RUN_MORE_H
#define CLI_SESSION_RUN_RUN_MORE_H

#include "cli.h"
#include "holdfast/run.h"

struct run_more {
	uint64_t mem, pids, nice;
	const char *cpus, *signal;
	int preserve_status, foreground, die_with_parent, verbose;
	char **map_exit; /* "A=B"; to be freed */
	const char *json_fd_word;
	int json_fd; /* -1: none */
};

#define RUN_MORE_SPECS(more)                                                                                                    \
	{ "mem", 0, OPTION_SIZE, &(more).mem, "SIZE", "memory of all its processes (cgroup), or of each" },                      \
	{ "cpus", 0, OPTION_TEXT, &(more).cpus, "N", "CPU time as of so many CPUs (cgroup), or so many CPUs" },                  \
	{ "pids", 0, OPTION_COUNT, &(more).pids, "N", "so many processes (cgroup), or so many of the user" },                    \
	{ "nice", 0, OPTION_COUNT, &(more).nice, "N", "how much other processes go before it (1 to 19)" },                       \
	{ "signal", 0, OPTION_TEXT, &(more).signal, "SIG", "what the command gets first when it is ended (TERM)" },              \
	{ "preserve-status", 0, OPTION_FLAG, &(more).preserve_status, NULL, "after a deadline: the command's own status, not 124" }, \
	{ "foreground", 0, OPTION_FLAG, &(more).foreground, NULL, "in the caller's process group, also without a terminal" },    \
	{ "die-with-parent", 0, OPTION_FLAG, &(more).die_with_parent, NULL, "end it when the process that started it ends" },    \
	{ "map-exit", 0, OPTION_LIST, &(more).map_exit, "A=B", "exit with B where it would be A" },                              \
	{ "verbose", 'v', OPTION_FLAG, &(more).verbose, NULL, "say how it ended and what it used" },                            \
	{ "json-fd", 0, OPTION_TEXT, &(more).json_fd_word, "N", "write what --json prints to this descriptor" }

/* Checks them and puts them into *o. HF_EXIT_DONE, or HF_EXIT_USAGE after saying why. */
int run_more_check(struct cli *cli, struct run_more *more, int detach, struct hf_run_opts *o);

/* Before it is started: --die-with-parent. HF_EXIT_DONE, or the status when the parent is gone already. */
int run_more_begin(struct cli *cli, const struct run_more *more, int32_t parent);

/* Says how it ended and what it used, with -v. */
void run_more_tell(const struct cli *cli, const struct run_more *more, const char *name, const struct hf_run_report *report);

/* The status that --map-exit makes of it. */
int run_more_map(const struct run_more *more, int status);

/* The object as --json prints it, with its newline and without a NUL; to be freed. */
char *run_dump(json_t *object, size_t *ret_len);

/* Writes the object to --json-fd. HF_EXIT_DONE or HF_EXIT_OS. */
int run_more_json(const struct cli *cli, const struct run_more *more, json_t *object);

#endif
