/* cli/session/run/run_in.h - the options of `run` for sandboxes, and the report of their end. */
#ifndef CLI_SESSION_RUN_RUN_IN_H
#define CLI_SESSION_RUN_RUN_IN_H

#include "cli.h"
#include "holdfast/tx.h"

struct run_in {
	char **dirs, **also, **write; /* the caller frees them */
	const char *strategy, *keep, *commit, *result, *land, *message, *base, *land_merge;
	int ask, merge, readonly_rest, no_network, require_change, sign, discard;
	uint64_t retry, speculate;
	const struct cli *cli;
	const char *name;
};

#define RUN_IN_SPECS(in)                                                                                                       \
	{ "in", 0, OPTION_LIST, &(in).dirs, "DIR", "work in a sandbox of DIR; commit its changes on success" },                     \
	{ "strategy", 0, OPTION_TEXT, &(in).strategy, "auto|overlay|clone|copy", "how to make the sandbox (auto)" },             \
	{ "keep", 0, OPTION_TEXT, &(in).keep, "on-failure|always|never", "when to keep the sandbox (on-failure)" },             \
	{ "commit", 0, OPTION_TEXT, &(in).commit, "on-success|ask|never", "when to commit (on-success)" },                              \
	{ "ask", 0, OPTION_FLAG, &(in).ask, NULL, "show the changes and ask before the commit" },                       \
	{ "merge", 0, OPTION_FLAG, &(in).merge, NULL, "merge text files that others have changed, if this gives no conflict" },  \
	{ "discard", 0, OPTION_FLAG, &(in).discard, NULL, "drop the work that the last run of this name left" }, \
	{ "retry", 0, OPTION_COUNT, &(in).retry, "N", "after a conflict, run it again at most N times" },                       \
	{ "readonly-rest", 0, OPTION_FLAG, &(in).readonly_rest, NULL, "the command can write only DIR, /tmp and its client's files" }, \
	{ "write", 0, OPTION_LIST, &(in).write, "PATH", "with --readonly-rest: PATH stays writable, too" },                          \
	{ "no-network", 0, OPTION_FLAG, &(in).no_network, NULL, "give the command only the loopback network" },               \
	{ "land", 0, OPTION_TEXT, &(in).land, "BRANCH", "land on this git branch, or off (default in a work tree: the branch checked out)" },  \
	{ "message", 0, OPTION_TEXT, &(in).message, "TEXT", "commit message for changes that the command did not commit" },             \
	{ "base", 0, OPTION_TEXT, &(in).base, "head|worktree", "start from the branch, or include your uncommitted edits (head)" },   \
	{ "land-merge", 0, OPTION_TEXT, &(in).land_merge, "rebase|merge|ff-only", "how to land if the branch has moved (rebase)" }, \
	{ "also", 0, OPTION_LIST, &(in).also, "GLOB", "land ignored files that match, too" },                    \
	{ "speculate", 0, OPTION_COUNT, &(in).speculate, "N", "verify up to N candidates at once, stacked on each other" }, \
	{ "sign", 0, OPTION_FLAG, &(in).sign, NULL, "sign the commits that landing makes; refuse to land if that fails" }, \
	{ "require-change", 0, OPTION_FLAG, &(in).require_change, NULL, "fail (exit 1) if the command changed nothing" },       \
	{ "result", 0, OPTION_TEXT, &(in).result, "FILE", "write the output of --json to FILE" }

/* Checks the options and fills *ret, which is valid as long as `in`. Returns HF_EXIT_DONE or HF_EXIT_USAGE. */
int run_in_check(struct run_in *in, int detach, struct hf_tx_opts *ret);

/* Prints which work --discard will drop. */
void run_in_say_discarded(const struct run_in *in, struct hf_state *state);

/* Reports the commit, or the next commands for kept work. */
void run_in_tell(const struct run_in *in, const struct hf_run_report *report, const struct hf_tx_report *landed);

/* Prints the commands for the work that the last run left, because of which this one is refused. */
void run_in_tell_refused(const struct run_in *in, struct hf_state *state);

/* Writes the object to --result FILE, if given. Returns HF_EXIT_DONE or HF_EXIT_OS. */
int run_in_result(const struct run_in *in, json_t *object);

#endif
