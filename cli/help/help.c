/* cli/help/help.c - the help for all commands, for one noun and for one command, 80 columns wide. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

#define WIDTH	  79
#define NAMES	  22 /* columns for the words of a command */
#define OPTIONS	  29 /* columns for an option and its value */

/* The groups of the help, with their manual pages. A noun without a group is in the last one. */
static const struct {
	const char *title, *nouns, *page;
} groups[] = {
	{ "Sessions", " run ps ls list status logs attach stop kill restart wait seen rm prune reap beat ", "holdfast-session" },
	{ "Locks", " lock why ", "holdfast-lock" },
	{ "Shared files", " file ", "holdfast-file" },
	{ "Plans and sandboxes", " plan ", "holdfast-plan" },
	{ "Landing on git", " land ", "holdfast-land" },
	{ "Work mode and hooks", " keep hook ", "holdfast-hook" },
	{ "Journal", " journal ", "holdfast-journal" },
	{ "Processes and names", " proc name ", "holdfast-proc" },
	{ "This program", NULL, "holdfast" },
};

#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))

static size_t group_of(const char *noun)
{
	for (size_t i = 0; i + 1 < N_GROUPS; i++) {
		const char *at = strstr(groups[i].nouns, noun);

		while (at && (at[-1] != ' ' || at[strlen(noun)] != ' '))
			at = strstr(at + 1, noun);
		if (at)
			return i;
	}
	return N_GROUPS - 1;
}

/* `run` has its own page. */
static const char *page_of(const char *noun)
{
	return strcmp(noun, "run") == 0 ? "holdfast-run" : groups[group_of(noun)].page;
}

/* Returns the length of the next unbreakable piece: a word, or a text in brackets if it fits on a line. */
static int piece(const char *text, int room)
{
	size_t word = strcspn(text, " "), bracket = strcspn(text, "]");

	if (*text == '[' && text[bracket]) {
		bracket += strcspn(text + bracket, " ");
		if ((int)bracket < room)
			word = bracket;
	}
	return (int)word;
}

/* Prints `text` from column `column` and breaks it between words; further lines start at `indent`. */
static void print_wrapped(FILE *to, int column, int indent, const char *text)
{
	int first = 1;

	while (*text) {
		int len = piece(text, WIDTH - indent);

		if (!first && column + 1 + len > WIDTH) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', to);
			column++;
		}
		fprintf(to, "%.*s", len, text);
		column += len;
		first = 0;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', to);
}

/* Prints `words` in a column, and `help` next to it or below it. */
static void print_pair(FILE *to, const char *words, int width, const char *help)
{
	int n = fprintf(to, "  %s", words);

	if (n >= width)
		fprintf(to, "\n%*s", width, "");
	else
		fprintf(to, "%*s", width - n, "");
	print_wrapped(to, width, width, help);
}

static void words_of(const struct command *c, char *out, size_t cap)
{
	(void)snprintf(out, cap, "%s%s%s", c->noun, c->verb ? " " : "", c->verb ? c->verb : "");
}

static void print_group(FILE *to, size_t group)
{
	fprintf(to, "%s\n", groups[group].title);
	for (const struct command *c = cli_commands; c->noun; c++) {
		char words[NAMES * 2];

		if (group_of(c->noun) != group)
			continue;
		words_of(c, words, sizeof(words));
		print_pair(to, words, NAMES, c->help);
	}
	fputc('\n', to);
}

/* Prints the verbs of one noun with their arguments. */
static void print_noun(FILE *to, const char *noun)
{
	for (const struct command *c = cli_commands; c->noun; c++) {
		char words[NAMES * 2];

		if (strcmp(noun, c->noun) != 0)
			continue;
		words_of(c, words, sizeof(words));
		print_wrapped(to, fprintf(to, "  %s ", words), 6, c->args);
		print_wrapped(to, fprintf(to, "      "), 6, c->help);
	}
	fputc('\n', to);
}

/* The output of the program without arguments: the most important commands on a screen of 80 x 24. */
void cli_overview(void)
{
	struct cli_talk talk;

	cli_talk_begin(&talk);
	fputs("usage: holdfast [--dir DIR] [--store URL] [--json] [-q] COMMAND ...\n\n"
	      "  run NAME -- CMD...        run a command, supervised, one at a time per name\n"
	      "      --deadline 1h         end it after 1h, with every process it started\n"
	      "      --verify 'make test'  it succeeds only if this command succeeds, too\n"
	      "      --in .                in a sandbox; only a success changes the directory\n"
	      "      -d                    in the background\n"
	      "  ps                        list sessions; those that need you come first\n"
	      "  logs NAME -f              follow the output of a session\n"
	      "  attach NAME               connect to its terminal (if started with -d -t)\n"
	      "  wait NAME, stop NAME      wait until it ends; end it\n"
	      "  why NAME                  explain who holds a lock, and what led to this\n"
	      "  lock run NAME -- CMD...   run a command under a lock\n"
	      "  file edit FILE -- CMD...  change a shared file under its lock\n"
	      "  doctor                    check what this machine offers\n\n"
	      "all commands: holdfast help; one command: holdfast run --help; man holdfast\n",
	      stderr);
	cli_talk_end(&talk);
}

void cli_help(FILE *to, const char *noun)
{
	struct cli_talk talk;

	if (to == stderr)
		cli_talk_begin(&talk);
	fputs("usage: holdfast [--dir DIR] [--store URL] [--json] [-q] COMMAND ...\n\n", to);
	for (size_t i = 0; !noun && i < N_GROUPS; i++)
		print_group(to, i);
	if (noun)
		print_noun(to, noun);
	fputs("  --dir DIR   state directory ($HOLDFAST_DIR, or ~/.local/state/holdfast)\n"
	      "  --store URL store for locks and session names ($HOLDFAST_STORE, or local):\n"
	      "              etcd://HOST:PORT,.../PREFIX, or etcds:// with TLS\n"
	      "  --json      machine-readable output, versioned (\"v\":1)\n"
	      "  -q          no messages on stderr\n"
	      "  --help      after a command: its options; also 'holdfast help COMMAND'\n\n"
	      "exit status: 0 done or yes, 1 no, 2 usage, 3 refused for safety, 4 system error\n",
	      to);
	if (to == stderr)
		cli_talk_end(&talk);
}

/* The options of `run` are grouped under titles. Returns the title above `option`, or NULL. */
static const char *title_above(const struct command *c, const char *option)
{
	static const struct {
		const char *option, *title;
	} titles[] = {
		{ "deadline", "Time limits and success" },
		{ "detach", "Background, input and log" },
		{ "command", "Command, directory and resume" },
		{ "every", "Repetition and notices" },
		{ "max-depth", "Concurrency" },
		{ "tree", "Processes and their limits" },
		{ "signal", "Signals and the exit status" },
		{ "in", "Sandbox and landing on git" },
		{ "nonblock", "If the name is taken" },
	};

	for (size_t i = 0; strcmp(c->noun, "run") == 0 && i < sizeof(titles) / sizeof(titles[0]); i++)
		if (strcmp(titles[i].option, option) == 0)
			return titles[i].title;
	return NULL;
}

void cli_command_help(const struct cli *cli, const struct option_spec *specs)
{
	const struct command *c = cli->command;
	char words[NAMES * 2];

	words_of(c, words, sizeof(words));
	print_wrapped(stdout, printf("usage: holdfast %s%s", words, c->args[0] ? " " : ""), 8, c->args);
	puts("");
	print_wrapped(stdout, 0, 0, c->help);
	if (specs && specs->name)
		puts("");
	for (const struct option_spec *s = specs; s && s->name; s++) {
		const char *title = title_above(c, s->name);
		char option[64], letter[] = "    ";

		if (!s->help)
			continue;
		if (title)
			printf("%s%s\n", s == specs ? "" : "\n", title);
		if (s->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", s->letter);
		(void)snprintf(option, sizeof(option), "%s--%s%s%s", letter, s->name, s->value ? " " : "", s->value ? s->value : "");
		print_pair(stdout, option, OPTIONS, s->help);
	}
	printf("\nmanual: man %s\n", page_of(c->noun));
}
