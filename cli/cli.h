/*
 * cli/cli.h - types and functions shared by the commands of the CLI.
 *
 * A command is a row of the table in main.c and a function that gets the
 * arguments after the command's words. It reads its options with cli_options(),
 * puts data on stdout and talk on stderr, and returns its exit status. cli_fail()
 * turns an error into the message, the JSON form and the status in one line.
 *
 * Out of memory ends the program here (not in the library): cli_die_oom().
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "hf/base/buf.h"
#include "hf/view/columns.h"
#include "holdfast/err.h"
#include "holdfast/exit.h"
#include "holdfast/state.h"

struct cli {
	const char *dir; /* --dir, or NULL */
	const char *store; /* --store, or NULL */
	int json;        /* --json */
	int quiet;       /* -q */
	int terminal;    /* stdout is a terminal */
	int colour;      /* stdout is a terminal that is not dumb, and NO_COLOR is not set */
	int keep_status; /* cli_keep_status() */
	int around;      /* the command wraps another: a system error is a failure around that command (125) */
	const struct command *command;
	struct hf_state *state; /* opened by cli_state() */
	int dashes; /* set by cli_options(): the number of words before "--"; -1 without "--" */
	struct complete *complete; /* set when a shell asks for completions: cli_options() answers, and the command does nothing */
};

struct command {
	const char *noun;
	const char *verb; /* NULL: the noun is the whole command */
	const char *args; /* "NAME [PID]" */
	const char *help; /* one line */
	int (*run)(struct cli *cli, int argc, char **argv);
};

int cmd_name_sanitize(struct cli *cli, int argc, char **argv);
int cmd_name_key(struct cli *cli, int argc, char **argv);
int cmd_name_unkey(struct cli *cli, int argc, char **argv);
int cmd_proc_id(struct cli *cli, int argc, char **argv);
int cmd_proc_check(struct cli *cli, int argc, char **argv);
int cmd_proc_signal(struct cli *cli, int argc, char **argv);
int cmd_journal_query(struct cli *cli, int argc, char **argv);
int cmd_journal_tail(struct cli *cli, int argc, char **argv);
int cmd_journal_follow(struct cli *cli, int argc, char **argv);
int cmd_journal_stats(struct cli *cli, int argc, char **argv);
int cmd_journal_verify(struct cli *cli, int argc, char **argv);
int cmd_journal_emit(struct cli *cli, int argc, char **argv);
int cmd_journal_events(struct cli *cli, int argc, char **argv);
int cmd_lock_run(struct cli *cli, int argc, char **argv);
int cmd_lock_acquire(struct cli *cli, int argc, char **argv);
int cmd_lock_release(struct cli *cli, int argc, char **argv);
int cmd_lock_renew(struct cli *cli, int argc, char **argv);
int cmd_lock_check(struct cli *cli, int argc, char **argv);
int cmd_lock_status(struct cli *cli, int argc, char **argv);
int cmd_lock_list(struct cli *cli, int argc, char **argv);
int cmd_lock_break(struct cli *cli, int argc, char **argv);
int cmd_lock_fd(struct cli *cli, int argc, char **argv);
int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_ps(struct cli *cli, int argc, char **argv);
int cmd_stop(struct cli *cli, int argc, char **argv);
int cmd_kill(struct cli *cli, int argc, char **argv);
int cmd_restart(struct cli *cli, int argc, char **argv);
int cmd_wait(struct cli *cli, int argc, char **argv);
int cmd_attach(struct cli *cli, int argc, char **argv);
int cmd_logs(struct cli *cli, int argc, char **argv);
int cmd_reap(struct cli *cli, int argc, char **argv);
int cmd_rm(struct cli *cli, int argc, char **argv);
int cmd_prune(struct cli *cli, int argc, char **argv);
int cmd_seen(struct cli *cli, int argc, char **argv);
int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_file_edit(struct cli *cli, int argc, char **argv);
int cmd_file_block(struct cli *cli, int argc, char **argv);
int cmd_file_with(struct cli *cli, int argc, char **argv);
int cmd_plan_new(struct cli *cli, int argc, char **argv);
int cmd_plan_add(struct cli *cli, int argc, char **argv);
int cmd_plan_enter(struct cli *cli, int argc, char **argv);
int cmd_plan_path(struct cli *cli, int argc, char **argv);
int cmd_plan_show(struct cli *cli, int argc, char **argv);
int cmd_plan_list(struct cli *cli, int argc, char **argv);
int cmd_plan_rm(struct cli *cli, int argc, char **argv);
int cmd_plan_gc(struct cli *cli, int argc, char **argv);
int cmd_plan_diff(struct cli *cli, int argc, char **argv);
int cmd_plan_commit(struct cli *cli, int argc, char **argv);
int cmd_plan_rollback(struct cli *cli, int argc, char **argv);
int cmd_plan_undo(struct cli *cli, int argc, char **argv);
int cmd_plan_recover(struct cli *cli, int argc, char **argv);
int cmd_keep_on(struct cli *cli, int argc, char **argv);
int cmd_keep_off(struct cli *cli, int argc, char **argv);
int cmd_keep_status(struct cli *cli, int argc, char **argv);
int cmd_beat(struct cli *cli, int argc, char **argv);
int cmd_hook_stop(struct cli *cli, int argc, char **argv);
int cmd_hook_tool(struct cli *cli, int argc, char **argv);
int cmd_hook_asks(struct cli *cli, int argc, char **argv);
int cmd_hook_guard(struct cli *cli, int argc, char **argv);
int cmd_hook_session_start(struct cli *cli, int argc, char **argv);
int cmd_hook_session_end(struct cli *cli, int argc, char **argv);
int cmd_hook_install(struct cli *cli, int argc, char **argv);
int cmd_hook_uninstall(struct cli *cli, int argc, char **argv);
int cmd_hook_status(struct cli *cli, int argc, char **argv);
int cmd_land(struct cli *cli, int argc, char **argv);
int cmd_land_begin(struct cli *cli, int argc, char **argv);
int cmd_land_drop(struct cli *cli, int argc, char **argv);
int cmd_land_list(struct cli *cli, int argc, char **argv);
int cmd_land_show(struct cli *cli, int argc, char **argv);
int cmd_why(struct cli *cli, int argc, char **argv);
int cmd_doctor(struct cli *cli, int argc, char **argv);
int cmd_version(struct cli *cli, int argc, char **argv);
int cmd_completion(struct cli *cli, int argc, char **argv);
int cmd_help(struct cli *cli, int argc, char **argv);

/* The table in main.c, which a NULL noun ends. */
extern const struct command cli_commands[];

/* Finds a command by its words, for example "journal verify" or "run"; stores their number in *ret_words. */
const struct command *cli_find_command(int argc, char **argv, int *ret_words);

/*
 * Calls `fn` for each of the last `n` records about `name`, oldest first. `line` is the line that
 * `journal query` prints, with its newline; with --json it is JSON. Records that cannot be read are
 * left out; `journal verify` reports them.
 */
void journal_history(struct cli *cli, const char *name, const char *kind, size_t n,
		     void (*fn)(void *arg, const char *line, size_t len), void *arg);

/*
 * Reports the outcome of the candidate `name`, if it exists, and whether the repository still has it. With --json
 * the report becomes "land" in `object`.
 */
void land_why(struct cli *cli, const char *name, json_t *object);

/* -- options ---------------------------------------------------------------- */

enum option_kind {
	OPTION_FLAG,     /* int, set to 1 */
	OPTION_TEXT,     /* const char * */
	OPTION_DURATION, /* int64_t, nanoseconds */
	OPTION_COUNT,    /* uint64_t */
	OPTION_SIZE,     /* uint64_t, bytes */
	OPTION_WHEN,     /* int64_t, wall clock in nanoseconds: cli_when() */
	OPTION_TOKEN,    /* uint64_t, not 0 */
	OPTION_LIST,     /* char **, NULL-terminated, freed by the caller: the option may be repeated */
};

struct option_spec {
	const char *name; /* without the dashes; NULL ends the list */
	char letter;      /* 0: none */
	enum option_kind kind;
	void *target;
	const char *value; /* "DUR", for the help */
	const char *help; /* NULL: not shown; such an option exists only to be refused with a reason */
};

/*
 * Reads the command's options and the global options, in any order up to "--",
 * and leaves the other words in argv[0..]. Returns their number, which is between
 * `min` and `max`. Returns -1 after it has reported an error (exit with
 * HF_EXIT_USAGE), and -2 after it has shown the help (exit with HF_EXIT_DONE).
 * If `max` is OPTIONS_THEN_COMMAND, the second word begins a command, with or
 * without "--" before it, and all further words belong to that command.
 */
#define OPTIONS_THEN_COMMAND INT_MAX

int cli_options(struct cli *cli, const struct option_spec *specs, int argc, char **argv, int min,
		int max);

/*
 * Reads a point in time: a duration ("5m" means 5 minutes ago), "now", "today", "yesterday", a date ("2026-11-18"), a date
 * and time ("2026-11-18 07:30"; a final "Z" means UTC), a time of today ("07:30"), or a time as the journal prints it.
 * Returns 0, or -1.
 */
int cli_when(const char *text, int64_t *ret_wall_ns);

/* Returns the number of the signal "TERM", "SIGTERM" or "15"; -1 if the word names no signal. */
int cli_signal(const char *word);

/* Returns the number of single-character edits between two words, at most `limit`. */
size_t cli_distance(const char *a, const char *b, size_t limit);

#define CLI_GLOBAL_SPECS(cli)                                                                                          \
	{ "dir", 0, OPTION_TEXT, &(cli)->dir, "DIR", "state directory" },                                              \
	{ "store", 0, OPTION_TEXT, &(cli)->store, "URL", "where locks and names of sessions are kept" },                \
	{ "json", 0, OPTION_FLAG, &(cli)->json, NULL, "machine-readable output" },                                     \
	{ "quiet", 'q', OPTION_FLAG, &(cli)->quiet, NULL, "no talk on stderr" }

/* Returns the store that --store or $HOLDFAST_STORE names; NULL for the local one. */
const char *cli_store(const struct cli *cli);

/* -- help and completion ------------------------------------------------------ */

/* Prints all commands, or the commands of one noun. */
void cli_help(FILE *to, const char *noun);

/* Prints the most important commands on stderr, on one screen. */
void cli_overview(void);

/* Prints usage and options of the current command on stdout. */
void cli_command_help(const struct cli *cli, const struct option_spec *specs);

/* Prints the completions of the last word of `argv`, one per line: the word, a tab, its meaning. */
int cli_complete(struct cli *cli, int argc, char **argv);

/* Prints the completions that depend on the options of the command. */
void cli_complete_options(struct cli *cli, const struct option_spec *specs, int then_command);

/* Returns the exit status for -1 or -2 from cli_options(). */
int cli_options_status(int result);

/* Reads one option before the command. Returns the number of words used, 0 if it is not a global option, -1 on an error. */
int cli_global_option(struct cli *cli, int argc, char **argv);

/* -- output ----------------------------------------------------------------- */

/* Encloses every write to stderr, so that a closed reader does not kill this process. */
struct cli_talk {
	sigset_t mask;
	int was_pending;
};

void cli_talk_begin(struct cli_talk *talk);
void cli_talk_end(const struct cli_talk *talk);

/*
 * Makes the status of a command or session final. A failed write to standard output does not change
 * it any more, nor does a late signal. Call it when nothing is left to wait for.
 */
void cli_keep_status(struct cli *cli);

/* Prints "holdfast: …" on stderr, unless -q was given. */
void cli_say(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the message on stderr and, with --json, the JSON form on stdout. Returns the exit status. */
int cli_fail(const struct cli *cli, const struct hf_err *err);

/* Like cli_fail(), but returns `status` instead of the status of the error's code. */
int cli_fail_as(const struct cli *cli, const struct hf_err *err, int status);

/* Like cli_fail(), for a command that has a partial result: with --json the error becomes part of `object`. */
int cli_fail_beside(const struct cli *cli, const struct hf_err *err, json_t *object);

/* Like cli_fail(), with this message. `code` (HF_E_… or -errno) is for the JSON form. */
int cli_fail_words(const struct cli *cli, int code, int status, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Prints "holdfast NOUN VERB: …" and how to get help. Returns HF_EXIT_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a JSON object as one line with "v":1 in front, and drops the reference. */
void cli_print_json(json_t *object);

/* Prints untrusted text on stdout. Control characters are shown as "\x1b". */
void cli_print_shown(const char *text);

/* Sets a key of an object. Ends the program if memory runs out. */
void cli_set(json_t *object, const char *key, json_t *value);

/* Makes a JSON string from any bytes. Invalid UTF-8 becomes U+FFFD. */
json_t *cli_text(const char *text);

/* Switches to a colour ("1;32"; NULL resets it) if stdout is a terminal with colours. */
/* A name in a command that a message recommends, as a word of a shell; the last four stay valid. Put it last in the command. */
const char *cli_word(const char *name);

void cli_colour(const struct cli *cli, const char *code);

/* Switches to the colour of a tone. cli_colour(cli, NULL) resets it. */
void cli_tone(const struct cli *cli, enum hf_view_tone tone);

/* Print a table's head, and a row. The cells are freed; the cell `toned` (-1: none) is coloured. */
void cli_print_head(const struct hf_view_column *columns, int n);
void cli_print_row(const struct cli *cli, const struct hf_view_column *columns, struct hf_buf *cells, int n,
		   int toned, enum hf_view_tone tone);

/* Opens the state directory, once. On failure reports it, sets *ret_status and returns NULL. */
struct hf_state *cli_state(struct cli *cli, unsigned flags, int *ret_status);

/* Opens the journal. On failure reports it and returns NULL; everything works without a journal. */
struct hf_journal *cli_journal(const struct cli *cli, struct hf_state *state);

_Noreturn void cli_die_oom(void);

#endif
