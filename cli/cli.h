/*
 * cli/cli.h - what the commands of the CLI share.
 *
 * A command is a row of the table in main.c and a function that gets what
 * stands behind its words. It reads its options with cli_options(), puts data on
 * stdout and talk on stderr, and returns its exit status. cli_fail() turns an
 * error into the message, the JSON form and the status in one line.
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
	int terminal;    /* stdout is one */
	int colour;      /* stdout is a terminal that is not dumb, and NO_COLOR is not set */
	int keep_status; /* cli_keep_status() */
	int around;      /* it wraps another command: the system's failures are failures around that (125) */
	const struct command *command;
	struct hf_state *state; /* opened by cli_state() */
	int dashes; /* by cli_options(): how many words stood before "--"; -1: there was none */
	struct complete *complete; /* a shell asks what could follow: cli_options() answers, nothing is done */
};

struct command {
	const char *noun;
	const char *verb; /* NULL: the noun stands alone */
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

/* The table in main.c; a noun of NULL ends it. */
extern const struct command cli_commands[];

/* "journal verify", or a noun that stands alone; *ret_words is how many words it took. */
const struct command *cli_find_command(int argc, char **argv, int *ret_words);

/*
 * The last `n` records about `name`, oldest first, as `journal query` prints them: each a line
 * with its newline, JSON with --json. What cannot be read is left out: `journal verify` tells.
 */
void journal_history(struct cli *cli, const char *name, const char *kind, size_t n,
		     void (*fn)(void *arg, const char *line, size_t len), void *arg);

/* Says what became of the candidate `name`, if there is one, and whether the repository still has it; with --json as "land" of `object`. */
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
	OPTION_LIST,     /* char **, NULL-ended and to be freed: may be given again and again */
};

struct option_spec {
	const char *name; /* without the dashes; NULL ends the list */
	char letter;      /* 0: none */
	enum option_kind kind;
	void *target;
	const char *value; /* "DUR", for the help */
	const char *help; /* NULL: not shown; an option that is only there to be refused with a reason */
};

/*
 * Reads options, ours and the global ones, in any order up to "--", and leaves
 * the other words in argv[0..]. Returns how many there are, between `min` and
 * `max`; or -1 after it has said what is wrong (exit with HF_EXIT_USAGE); or -2
 * after it has shown the help (exit with HF_EXIT_DONE). With OPTIONS_THEN_COMMAND as
 * `max`, the second word begins a command, with or without "--" before it, and what
 * follows is the command's.
 */
#define OPTIONS_THEN_COMMAND INT_MAX

int cli_options(struct cli *cli, const struct option_spec *specs, int argc, char **argv, int min,
		int max);

/*
 * Reads a moment: a duration ("5m": so long ago), "now", "today", "yesterday", a date ("2026-11-18"), a date and time
 * ("2026-11-18 07:30", in UTC with a "Z" behind it), a time of today ("07:30"), or what the journal prints. 0, or -1.
 */
int cli_when(const char *text, int64_t *ret_wall_ns);

/* The signal "TERM", "SIGTERM" or "15"; -1 when there is none. */
int cli_signal(const char *word);

/* How many single changes lead from one word to the other, up to `limit`. */
size_t cli_distance(const char *a, const char *b, size_t limit);

#define CLI_GLOBAL_SPECS(cli)                                                                                          \
	{ "dir", 0, OPTION_TEXT, &(cli)->dir, "DIR", "state directory" },                                              \
	{ "store", 0, OPTION_TEXT, &(cli)->store, "URL", "where locks and names of sessions are kept" },                \
	{ "json", 0, OPTION_FLAG, &(cli)->json, NULL, "machine-readable output" },                                     \
	{ "quiet", 'q', OPTION_FLAG, &(cli)->quiet, NULL, "no talk on stderr" }

/* The store that --store or $HOLDFAST_STORE names; NULL: the local one. */
const char *cli_store(const struct cli *cli);

/* -- help and completion ------------------------------------------------------ */

/* All commands, or those of one noun. */
void cli_help(FILE *to, const char *noun);

/* The first things, on stderr, within a screen. */
void cli_overview(void);

/* The usage and the options of the command that runs, on stdout. */
void cli_command_help(const struct cli *cli, const struct option_spec *specs);

/* Prints what could stand for the last of `argv`, a line each: the word, a tab, what it means. */
int cli_complete(struct cli *cli, int argc, char **argv);

/* The part of it that knows the options of the command. */
void cli_complete_options(struct cli *cli, const struct option_spec *specs, int then_command);

/* The status to exit with after cli_options() gave -1 or -2. */
int cli_options_status(int result);

/* Reads one option that stands before the command. Returns words used, 0 none, -1 wrong. */
int cli_global_option(struct cli *cli, int argc, char **argv);

/* -- output ----------------------------------------------------------------- */

/* Around every write to stderr: a reader that is gone does not end us. */
struct cli_talk {
	sigset_t mask;
	int was_pending;
};

void cli_talk_begin(struct cli_talk *talk);
void cli_talk_end(const struct cli_talk *talk);

/*
 * From here on the exit status is that of a command or session, and what is printed about it
 * does not change it, even when standard output cannot be written; nor does a signal that comes late.
 * To be called when nothing is left to wait for.
 */
void cli_keep_status(struct cli *cli);

/* "holdfast: …" on stderr, unless -q. */
void cli_say(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message on stderr, the JSON form on stdout with --json; returns the status. */
int cli_fail(const struct cli *cli, const struct hf_err *err);

/* The same with a status that is not the one of the error's code. */
int cli_fail_as(const struct cli *cli, const struct hf_err *err, int status);

/* The same beside what was found all the same: with --json the error becomes part of `object`. */
int cli_fail_beside(const struct cli *cli, const struct hf_err *err, json_t *object);

/* The same in other words: the message as it is, `code` (HF_E_… or -errno) for the JSON form. */
int cli_fail_words(const struct cli *cli, int code, int status, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "holdfast NOUN VERB: …" and where the help is; returns HF_EXIT_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a JSON object as one line with "v":1 in front, and drops the reference. */
void cli_print_json(json_t *object);

/* Prints text from outside on stdout: what would steer a terminal is shown as "\x1b". */
void cli_print_shown(const char *text);

/* Adds to an object; ends the program when there is no memory. */
void cli_set(json_t *object, const char *key, json_t *value);

/* A JSON string of text that may not be UTF-8 (what is not becomes U+FFFD). */
json_t *cli_text(const char *text);

/* Switches a colour on ("1;32", NULL off) when stdout is a coloured terminal. */
void cli_colour(const struct cli *cli, const char *code);

/* Colours what follows as the tone says, where colours are shown; cli_colour(cli, NULL) ends it. */
void cli_tone(const struct cli *cli, enum hf_view_tone tone);

/* A table: its head, and a row of it, whose cells are freed; the cell `toned` (-1: none) is coloured. */
void cli_print_head(const struct hf_view_column *columns, int n);
void cli_print_row(const struct cli *cli, const struct hf_view_column *columns, struct hf_buf *cells, int n,
		   int toned, enum hf_view_tone tone);

/* Opens the state directory once. Returns NULL after saying why, status in *ret_status. */
struct hf_state *cli_state(struct cli *cli, unsigned flags, int *ret_status);

/* The journal; NULL when there is none, which is said: everything works without it. */
struct hf_journal *cli_journal(const struct cli *cli, struct hf_state *state);

_Noreturn void cli_die_oom(void);

#endif
