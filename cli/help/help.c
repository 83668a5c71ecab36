/* cli/help/help.c - the help of all commands, of a noun, and of one command, within 80 columns. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

#define WIDTH	  79
#define NAMES	  22 /* columns for the words of a command */
#define OPTIONS	  29 /* columns for an option with its value */

/* What stands together, and its page of the manual; a noun that no group names comes last. */
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

/* `run` has a page of its own. */
static const char *page_of(const char *noun)
{
	return strcmp(noun, "run") == 0 ? "holdfast-run" : groups[group_of(noun)].page;
}

/* The length of the next piece that is not broken: a word, or what stands in brackets if that fits in a line. */
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

/* Prints `text` from column `column` on and breaks it between words; further lines begin at `indent`. */
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

/* `words` in a column of their own, `help` beside or below it. */
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

/* The verbs of one noun, with their arguments. */
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

/* The name of the program alone: the first things, on one screen of 80 x 24. */
void cli_overview(void)
{
	struct cli_talk talk;

	cli_talk_begin(&talk);
	fputs("usage: holdfast [--dir DIR] [--store URL] [--json] [-q] COMMAND ...\n\n"
	      "  run NAME -- CMD...        run a command, once at a time, with all it starts\n"
	      "      --deadline 1h         end it then, with everything that it started\n"
	      "      --verify 'make test'  it succeeded only if this does, too\n"
	      "      --in .                in a sandbox; only what succeeded is kept\n"
	      "      -d                    in the background\n"
	      "  ps                        what the sessions are doing, and which needs you\n"
	      "  logs NAME -f              the output of a session\n"
	      "  attach NAME               the terminal of one that was started with -d -t\n"
	      "  wait NAME, stop NAME      until it has ended; end it\n"
	      "  why NAME                  why is it held, and what led to this?\n"
	      "  lock run NAME -- CMD...   run a command under a lock\n"
	      "  file edit FILE -- CMD...  change a file that other processes change, too\n"
	      "  doctor                    what this machine offers\n\n"
	      "all commands: holdfast help; options of one: holdfast run --help; man holdfast\n",
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
	fputs("  --dir DIR   state directory ($HOLDFAST_DIR, else ~/.local/state/holdfast)\n"
	      "  --store URL where locks and names of sessions are kept ($HOLDFAST_STORE, else\n"
	      "              here): etcd://HOST:PORT,.../PREFIX, or etcds:// with TLS\n"
	      "  --json      machine-readable output, versioned (\"v\":1)\n"
	      "  -q          no talk on stderr\n"
	      "  --help      behind a command: its options; also 'holdfast help COMMAND'\n\n"
	      "exit status: 0 done or yes, 1 no, 2 usage, 3 refused for safety, 4 system error\n",
	      to);
	if (to == stderr)
		cli_talk_end(&talk);
}

/* `run` has so many options that they need titles: what stands above which of them. */
static const char *title_above(const struct command *c, const char *option)
{
	static const struct {
		const char *option, *title;
	} titles[] = {
		{ "deadline", "How long, and what is a success" },
		{ "detach", "In the background; input and log" },
		{ "command", "What is run, where, and once more" },
		{ "every", "Again and again; notices" },
		{ "max-depth", "How many at once" },
		{ "tree", "Its processes, and their limits" },
		{ "signal", "Signals and the exit status" },
		{ "in", "In a sandbox; landing on git" },
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
	print_wrapped(stdout, printf("usage: holdfast %s ", words), 8, c->args);
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
