/* cli/session/run/run_in.h - the options of `run` that are about sandboxes, and what is said of their end. */
#ifndef CLI_SESSION_RUN_RUN_IN_H
#define CLI_SESSION_RUN_RUN_IN_H

#include "cli.h"
#include "holdfast/tx.h"

struct run_in {
	char **dirs, **also, **write; /* to be freed */
	const char *strategy, *keep, *commit, *result, *land, *message, *base, *land_merge;
	int ask, merge, readonly_rest, no_network;
	uint64_t retry, speculate;
	const struct cli *cli;
	const char *name;
	int forgotten; /* --rm: there is nothing that could be resumed */
};

#define RUN_IN_SPECS(in)                                                                                                       \
	{ "in", 0, OPTION_LIST, &(in).dirs, "DIR", "work in a sandbox over DIR; commit when it succeeds" },                     \
	{ "strategy", 0, OPTION_TEXT, &(in).strategy, "auto|overlay|clone|copy", "how the sandbox is made (auto)" },             \
	{ "keep", 0, OPTION_TEXT, &(in).keep, "on-failure|always|never", "keep the sandbox (on-failure)" },             \
	{ "commit", 0, OPTION_TEXT, &(in).commit, "on-success|ask|never", "when to commit (on-success)" },                              \
	{ "ask", 0, OPTION_FLAG, &(in).ask, NULL, "show the changes and ask before they are committed" },                       \
	{ "merge", 0, OPTION_FLAG, &(in).merge, NULL, "merge text files that others changed meanwhile, where that is clean" },  \
	{ "retry", 0, OPTION_COUNT, &(in).retry, "N", "after a conflict run it again, at most N times" },                       \
	{ "readonly-rest", 0, OPTION_FLAG, &(in).readonly_rest, NULL, "the command can write nothing but DIR, /tmp and its client's files" }, \
	{ "write", 0, OPTION_LIST, &(in).write, "PATH", "what else stays writable with --readonly-rest" },                          \
	{ "no-network", 0, OPTION_FLAG, &(in).no_network, NULL, "the command has loopback and no other network" },               \
	{ "land", 0, OPTION_TEXT, &(in).land, "BRANCH", "land on this git branch, or off (in a work tree: the one checked out)" },  \
	{ "message", 0, OPTION_TEXT, &(in).message, "TEXT", "of the commit of what the command left uncommitted" },             \
	{ "base", 0, OPTION_TEXT, &(in).base, "head|worktree", "the command sees the branch, or also your uncommitted edits (head)" },   \
	{ "land-merge", 0, OPTION_TEXT, &(in).land_merge, "rebase|merge|ff-only", "onto what came meanwhile (rebase)" }, \
	{ "also", 0, OPTION_LIST, &(in).also, "GLOB", "files that git ignores land too, where they match" },                    \
	{ "speculate", 0, OPTION_COUNT, &(in).speculate, "N", "verify up to N candidates of the branch at once, on top of each other" }, \
	{ "result", 0, OPTION_TEXT, &(in).result, "FILE", "write what --json prints to FILE" }

/* Checks them and fills *ret, which is valid as long as `in`. HF_EXIT_DONE or HF_EXIT_USAGE. */
int run_in_check(struct run_in *in, int detach, struct hf_tx_opts *ret);

/* Says what was committed, or what to do with what was kept. */
void run_in_tell(const struct run_in *in, const struct hf_run_report *report, const struct hf_tx_report *landed);

/* Writes the object to --result FILE, if that was given. HF_EXIT_DONE or HF_EXIT_OS. */
int run_in_result(const struct run_in *in, json_t *object);

#endif
