/* cli/main.c - the table of commands, and the lookup in it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cli.h"

/* clang-format off */
const struct command cli_commands[] = {
	{ "lock",    "run",      "NAME [-n|-w DUR] [-s|--slots N] [--ttl DUR] [--on-timeout WHAT] [-E N] -- CMD...", "run a command under a lock", cmd_lock_run },
	{ "lock",    "acquire",  "NAME [--pid PID] [--reentrant] [options of run]", "take a lock for your shell; prints the token", cmd_lock_acquire },
	{ "lock",    "release",  "NAME [--pid PID | --token T]", "release a lock; only its owner can", cmd_lock_release },
	{ "lock",    "renew",    "NAME --token T [--ttl DUR]", "extend the lease of a lock", cmd_lock_renew },
	{ "lock",    "check",    "NAME [--token T]", "check whether a lock is held, or a token is current", cmd_lock_check },
	{ "lock",    "list",     "[--all]", "list locks with their holders and waiters", cmd_lock_list },
	{ "lock",    "status",   "[NAME]", "same as list; for one lock same as why", cmd_lock_status },
	{ "lock",    "break",    "NAME --reason TEXT", "take a lock away from its holder; journalled", cmd_lock_break },
	{ "lock",    "fd",       "N [-n|-w DUR] [-s] [--on-timeout WHAT] [-- CMD...] | --unlock", "flock a descriptor of your shell", cmd_lock_fd },
	{ "run",     NULL,       "[NAME] [options] -- CMD... | -c LINE", "run a command as a supervised session of that name", cmd_run },
	{ "ps",      NULL,       "[NAME...] [-a] [--all-hosts] [-o COLUMNS] [--no-trunc] [--watch]", "list sessions; those that need you come first", cmd_ps },
	{ "ls",      NULL,       "[options of ps]", "same as ps", cmd_ps },
	{ "list",    NULL,       "[options of ps]", "same as ps", cmd_ps },
	{ "status",  NULL,       "[NAME...]", "describe a session; without NAME, list the sessions that need you", cmd_status },
	{ "seen",    NULL,       "NAME... [--token T]", "mark a session as read: it no longer needs you", cmd_seen },
	{ "stop",    NULL,       "NAME... | --all [--grace DUR] [--token T]", "end sessions: TERM, a grace period, KILL, by process identity", cmd_stop },
	{ "kill",    NULL,       "NAME... | --all", "same as stop --grace 0", cmd_kill },
	{ "restart", NULL,       "NAME [--token T] [--grace DUR]", "stop a session and start it again unchanged, in the background", cmd_restart },
	{ "wait",    NULL,       "NAME... [-w DUR]", "wait until sessions end; exits with their status", cmd_wait },
	{ "logs",    NULL,       "NAME... [-f] [-t] [-n LINES] [--stderr]", "show the output of sessions", cmd_logs },
	{ "attach",  NULL,       "NAME [--read-only] [--detach-keys KEYS]", "connect to the terminal of a session", cmd_attach },
	{ "reap",    NULL,       "[NAME [--token T]]", "end processes left by sessions whose supervisor and keeper died", cmd_reap },
	{ "rm",      NULL,       "NAME... [--token T] [--discard]", "forget ended sessions and their logs", cmd_rm },
	{ "prune",   NULL,       "[--older-than DUR] [--keep N] [--discard] [--dry-run]", "forget old ended sessions and idle locks", cmd_prune },
	{ "file",    "edit",     "FILE [--create] [--validate CMD] [--backup N] [--fenced] [options] -- CMD...", "replace a file with the output of a command, under its lock", cmd_file_edit },
	{ "file",    "block",    "FILE ID [--text TEXT | --remove] [--start LINE --end LINE] [options of edit]", "replace the text between two marker lines", cmd_file_block },
	{ "file",    "with",     "FILE [-n|-w DUR] [--on-timeout WHAT] [-E N] [--root DIR] -- CMD...", "run a command under a file's lock", cmd_file_with },
	{ "plan",    "new",      "PLAN [--session NAME]", "make a plan: sandboxes that are committed together", cmd_plan_new },
	{ "plan",    "add",      "PLAN SANDBOX DIR [--strategy auto|overlay|clone|copy] [--git-outside] [-w DUR]", "add a sandbox over a directory", cmd_plan_add },
	{ "plan",    "enter",    "PLAN [--in DIR] [--no-rename-helper] [-w DUR] -- CMD...", "run a command inside the sandboxes of a plan", cmd_plan_enter },
	{ "plan",    "path",     "PLAN SANDBOX", "print the path at which a sandbox is used", cmd_plan_path },
	{ "plan",    "show",     "PLAN", "show a plan and its sandboxes", cmd_plan_show },
	{ "plan",    "list",     "[--no-trunc]", "list plans", cmd_plan_list },
	{ "plan",    "rm",       "PLAN [--discard]", "remove a plan and its sandboxes; targets do not change", cmd_plan_rm },
	{ "plan",    "gc",       "[--dry-run] [--age DUR] [--discard]", "remove plans that are over or hold no change", cmd_plan_gc },
	{ "plan",    "diff",     "PLAN [--stat|--patch|--name-only [-z]] [--sandbox NAME] [--ignore GLOB]...", "show the change that a commit would make", cmd_plan_diff },
	{ "plan",    "commit",   "PLAN [-w DUR] [--fence NAME:TOKEN]... [--force [PATH]]... [--depends PATH]... [--strict] [--merge] [--ignore GLOB]...", "apply all changes to their targets, or none", cmd_plan_commit },
	{ "plan",    "rollback", "PLAN [-w DUR]", "drop the changes; targets do not change", cmd_plan_rollback },
	{ "plan",    "undo",     "PLAN [-w DUR] [--force PATH]...", "undo a commit", cmd_plan_undo },
	{ "plan",    "recover",  "[PLAN]", "finish or undo the operation of a process that died", cmd_plan_recover },
	{ "keep",    "on",       "[--goal TEXT] [--until CMD [--until-timeout DUR]] [--ttl DUR] [--max N] [--session ID]", "ask the client to continue whenever it wants to stop", cmd_keep_on },
	{ "keep",    "off",      "[--session ID]", "let the client stop again", cmd_keep_off },
	{ "keep",    "status",   "[--session ID | --all]", "show which sessions are in work mode", cmd_keep_status },
	{ "beat",    NULL,       "[--busy]", "report progress of a command that prints nothing", cmd_beat },
	{ "hook",    "stop",     "[--session ID]", "a client's stop hook: block, or let it stop", cmd_hook_stop },
	{ "hook",    "tool",     "[--session ID]", "a client's tool hook: progress and heartbeat", cmd_hook_tool },
	{ "hook",    "asks",     "", "a client's hook for a question: show it in 'holdfast ps'", cmd_hook_asks },
	{ "hook",    "guard",    "[--targets]", "a client's hook before a tool: refuse to write a file that another process has locked", cmd_hook_guard },
	{ "hook",    "session-start", "", "a client's hook at its start: record its process", cmd_hook_session_start },
	{ "hook",    "session-end", "", "a client's hook at its end", cmd_hook_session_end },
	{ "hook",    "install",  "CLIENT [--user | --project | --local] [--guard] [--fix] [--dry-run]", "add Holdfast's hooks to the settings of claude, codex, copilot or gemini", cmd_hook_install },
	{ "hook",    "uninstall", "CLIENT [--user | --project | --local] [--dry-run]", "remove the hooks; restores the settings byte for byte", cmd_hook_uninstall },
	{ "hook",    "status",   "CLIENT [--user | --project | --local]", "show which settings have Holdfast's hooks", cmd_hook_status },
	{ "land",    "begin",    "NAME DIR [--branch BRANCH] [--base head|worktree]", "begin a candidate: a plan NAME over a git work tree", cmd_land_begin },
	{ "land",    "list",     "", "list candidates and their outcome, by branch", cmd_land_list },
	{ "land",    "show",     "NAME", "show a candidate", cmd_land_show },
	{ "land",    "retry",    "NAME [options of land]", "same as land NAME", cmd_land },
	{ "land",    "drop",     "NAME", "drop a candidate, or the work that it kept, with refs and plan", cmd_land_drop },
	{ "land",    NULL,       "NAME [--merge HOW] [--verify CMD] [--message TEXT] [-w DUR]", "verify a candidate and land it on its branch", cmd_land },
	{ "why",     NULL,       "NAME", "explain who holds a lock, and what led to this", cmd_why },
	{ "journal", "query",    "[--event E] [--name N] [--since WHEN] [--until WHEN] [-n N]", "show records, oldest first", cmd_journal_query },
	{ "journal", "tail",     "[-n N] [options of query]", "show the newest records (10)", cmd_journal_tail },
	{ "journal", "follow",   "[--event E] [--name N] [--since WHEN] [-n N]", "show records as they come", cmd_journal_follow },
	{ "journal", "stats",    "[--since WHEN]", "count events, fail-opens and lost records", cmd_journal_stats },
	{ "journal", "verify",   "", "check all records: checksum, order, gaps", cmd_journal_verify },
	{ "journal", "emit",     "EVENT [--name N] [--durable] [KEY=VALUE]...", "append one record", cmd_journal_emit },
	{ "journal", "events",   "", "list the events and their fields", cmd_journal_events },
	{ "proc",    "id",       "[PID]", "print the identity of a process (default: your shell)", cmd_proc_id },
	{ "proc",    "check",    "ID", "check whether a process is alive; exits 0 yes, 1 dead, 3 unknown", cmd_proc_check },
	{ "proc",    "signal",   "ID [SIGNAL]", "signal exactly that process, or none", cmd_proc_signal },
	{ "name",    "sanitize", "NAME", "print the form of a name for display and storage", cmd_name_sanitize },
	{ "name",    "key",      "NAME", "print the key of a name, for file names", cmd_name_key },
	{ "name",    "unkey",    "KEY", "print the name of a key", cmd_name_unkey },
	{ "doctor",  NULL,       "[--accept-cluster] [--clean-store]", "check the state directory and this machine", cmd_doctor },
	{ "version", NULL,       "", "print the version", cmd_version },
	{ "completion", NULL,    "bash|zsh|fish", "print the completion script of a shell", cmd_completion },
	{ "help",    NULL,       "[COMMAND]", "list all commands, or the options of one", cmd_help },
	{ 0 },
};
/* clang-format on */

const struct command *cli_find_command(int argc, char **argv, int *ret_words)
{
	for (const struct command *c = cli_commands; c->noun; c++) {
		if (strcmp(argv[0], c->noun) != 0)
			continue;
		if (!c->verb) {
			*ret_words = 1;
			return c;
		}
		if (argc > 1 && strcmp(argv[1], c->verb) == 0) {
			*ret_words = 2;
			return c;
		}
	}
	return NULL;
}

static int is_noun(const char *word)
{
	for (const struct command *c = cli_commands; c->noun; c++)
		if (strcmp(word, c->noun) == 0)
			return 1;
	return 0;
}

/* Returns the noun, or the verb of `noun`, that is most similar to `word`; NULL if none is similar. */
static const char *nearest(const char *noun, const char *word)
{
	const char *near = NULL;
	size_t best = 3;

	for (const struct command *c = cli_commands; c->noun; c++) {
		const char *candidate = noun ? c->verb : c->noun;
		size_t d;

		if (!candidate || (noun && strcmp(noun, c->noun) != 0))
			continue;
		d = cli_distance(word, candidate, 3);
		/* Two changes leave nothing of a short word. */
		if (d < best && d < strlen(word)) {
			best = d;
			near = candidate;
		}
	}
	return near;
}

static int explain_unknown(struct cli *cli, int argc, char **argv)
{
	const char *near;

	if (!is_noun(argv[0])) {
		near = nearest(NULL, argv[0]);
		return cli_usage(cli, "no command '%s'%s%s%s", argv[0], near ? "; did you mean '" : "", near ? near : "",
				 near ? "'?" : "");
	}
	if (argc < 2 && cli->json)
		return cli_usage(cli, "'%s' needs a verb", argv[0]);
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		cli_help(argc < 2 ? stderr : stdout, argv[0]);
		return argc < 2 ? HF_EXIT_USAGE : HF_EXIT_DONE;
	}
	near = nearest(argv[0], argv[1]);
	if (!near && strcmp(argv[0], "lock") == 0)
		return cli_usage(cli, "'lock' has no verb '%s'; 'holdfast lock run NAME -- CMD...' runs a command under a lock", argv[1]);
	return cli_usage(cli, "'%s' has no verb '%s'%s%s%s", argv[0], argv[1], near ? "; did you mean '" : "", near ? near : "",
			 near ? "'?" : "");
}

int cmd_help(struct cli *cli, int argc, char **argv)
{
	char option[] = "--help", *words[] = { option, NULL };
	const struct command *command;
	int n, used;

	n = cli_options(cli, NULL, argc, argv, 0, 2);
	if (n < 0)
		return cli_options_status(n);
	command = n > 0 ? cli_find_command(n, argv, &used) : NULL;
	if (command && used == n) {
		cli->command = command;
		return command->run(cli, 1, words);
	}
	if (n > 1 || (n == 1 && !is_noun(argv[0])))
		return explain_unknown(cli, n, argv);
	cli_help(stdout, n > 0 ? argv[0] : NULL);
	return HF_EXIT_DONE;
}

/*
 * A caller may have closed stdio. The first files that we open must not get these numbers. Writes to a
 * closed standard output must fail, so that finish() can report them.
 */
static void fill_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", (fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC);
}

/* Seeds jansson's hashes from the random bytes of the auxiliary vector. Otherwise jansson reads /dev/urandom. */
static void seed_json(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	size_t seed = 0;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	json_object_seed(seed);
}

/* Lost output is a failure. */
static int finish(const struct cli *cli, int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	cli_say(cli, "cannot write to standard output");
	return status == HF_EXIT_DONE && !cli->keep_status ? HF_EXIT_OS : status;
}

int main(int argc, char **argv)
{
	int terminal = isatty(STDOUT_FILENO);
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct cli cli = { .terminal = terminal,
			   .colour = terminal && !(no_colour && no_colour[0]) && !(term && strcmp(term, "dumb") == 0) };
	int words, status;

	fill_stdio();
	seed_json();
	argc--;
	argv++;
	while (argc > 0 && argv[0][0] == '-' && argv[0][1] != '\0') {
		int used;

		/* It ends the global options. */
		if (strcmp(argv[0], "--") == 0) {
			argc--;
			argv++;
			break;
		}

		if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
			cli_help(stdout, NULL);
			return finish(&cli, HF_EXIT_DONE);
		}
		if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-V") == 0)
			return finish(&cli, cmd_version(&cli, 0, argv));
		used = cli_global_option(&cli, argc, argv);
		if (used == 0)
			return cli_usage(&cli, "unknown option '%s'", argv[0]);
		if (used < 0)
			return HF_EXIT_USAGE;
		argc -= used;
		argv += used;
	}
	if (argc == 0 && cli.json)
		return finish(&cli, cli_usage(&cli, "missing command"));
	if (argc == 0) {
		cli_overview();
		return HF_EXIT_USAGE;
	}
	if (strcmp(argv[0], "__complete") == 0)
		return finish(&cli, cli_complete(&cli, argc - 1, argv + 1));
	cli.command = cli_find_command(argc, argv, &words);
	if (!cli.command)
		return finish(&cli, explain_unknown(&cli, argc, argv));
	status = cli.command->run(&cli, argc - words, argv + words);
	hf_state_free(cli.state);
	return finish(&cli, status);
}
