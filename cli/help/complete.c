/*
 * cli/help/complete.c - completes a partly typed word, for the shells' scripts: `holdfast __complete WORD...`.
 *
 * The answer has one line for each completion: the word, a tab, its meaning. A line that begins with ':' asks the shell
 * to complete: ":files", ":dirs", or ":command N" if the word belongs to a command that begins at word N. Completion
 * changes nothing. An error gives an empty answer.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/event.h"
#include "holdfast/land.h"
#include "lock/lock.h"
#include "plan/plan.h"
#include "session/session.h"

struct complete {
	const char *word; /* the part typed so far */
	char **before;    /* the words between the command and this word */
	int n_before;
	int offset; /* the index of before[0] among all words */
};

static int begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Omits words that would break the answer or confuse a shell. */
static void offer(const struct complete *c, const char *word, const char *meaning)
{
	if (!begins(word, c->word) || word[0] == ':' || strpbrk(word, "\n\t"))
		return;
	printf("%s\t%s\n", word, meaning);
}

/* "a|b|c" */
static void offer_choices(const struct complete *c, const char *choices)
{
	while (*choices) {
		size_t len = strcspn(choices, "| ]");
		char word[64];

		(void)snprintf(word, sizeof(word), "%.*s", (int)len, choices);
		offer(c, word, "");
		choices += len;
		if (*choices != '|')
			return;
		choices++;
	}
}

/* -- names ------------------------------------------------------------------------ */

static void offer_session(void *arg, const struct hf_session_info *info)
{
	offer(arg, info->name, hf_session_word(info->state));
}

static void offer_lock(void *arg, const struct hf_lock_info *info)
{
	offer(arg, info->name, info->n_holders ? "held" : "free");
}

static void offer_plan(void *arg, const struct hf_plan_info *info)
{
	offer(arg, info->name, hf_plan_state_word(info->state));
}

static void offer_candidate(void *arg, const struct hf_land_info *info)
{
	offer(arg, info->name, hf_land_state_word(info->state));
}

static void offer_events(const struct complete *c)
{
	for (int i = 0; i < HF_EVENT_COUNT; i++)
		offer(c, hf_event_info((enum hf_event)i)->name, "");
}

enum names {
	NAMES_NONE,
	NAMES_SESSIONS,
	NAMES_LOCKS,
	NAMES_PLANS,
	NAMES_CANDIDATES,
	NAMES_EVENTS,
};

static void offer_names(struct cli *cli, enum names names)
{
	struct hf_state *state = cli->state;
	struct complete *c = cli->complete;
	struct hf_sessions *sessions;
	struct hf_landings *landings;
	struct hf_plans *plans = NULL;
	struct hf_locks *locks;

	if (names == NAMES_EVENTS)
		offer_events(c);
	if (names == NAMES_NONE || names == NAMES_EVENTS)
		return;
	if (!state && hf_state_open(cli->dir, HF_STATE_NO_CREATE, &state, NULL) < 0)
		return;
	cli->state = state;
	if (names == NAMES_SESSIONS && hf_sessions_open(state, NULL, &sessions, NULL) == 0) {
		(void)!hf_session_list(sessions, offer_session, c, NULL);
		hf_sessions_free(sessions);
	}
	if (names == NAMES_LOCKS && hf_locks_open(state, NULL, &locks, NULL) == 0) {
		(void)!hf_lock_list(locks, offer_lock, c, NULL);
		hf_locks_free(locks);
	}
	if ((names == NAMES_PLANS || names == NAMES_CANDIDATES) && hf_plans_open(state, NULL, &plans, NULL) < 0)
		return;
	if (names == NAMES_PLANS)
		(void)!hf_plan_list(plans, offer_plan, c, NULL);
	if (names == NAMES_CANDIDATES && hf_landings_open(state, NULL, plans, &landings, NULL) == 0) {
		(void)!hf_land_list(landings, offer_candidate, c, NULL);
		hf_landings_free(landings);
	}
	hf_plans_free(plans);
}

/* Returns the kind of name that a command's NAME argument takes. */
static enum names names_of(const struct command *command)
{
	const char *noun = command->noun;

	if (strcmp(noun, "lock") == 0 || strcmp(noun, "why") == 0)
		return NAMES_LOCKS;
	if (strcmp(noun, "land") == 0)
		return NAMES_CANDIDATES;
	return strstr(command->args, "NAME") ? NAMES_SESSIONS : NAMES_NONE;
}

/* -- words ------------------------------------------------------------------------ */

/* Offers values for an option or an argument, by its name in the help. */
static void offer_meant(struct cli *cli, const char *meant)
{
	const struct complete *c = cli->complete;
	size_t len = strcspn(meant, " ]");

	if (memchr(meant, '|', len))
		offer_choices(c, meant);
	else if (begins(meant, "NAME"))
		offer_names(cli, names_of(cli->command));
	else if (begins(meant, "PLAN"))
		offer_names(cli, NAMES_PLANS);
	else if (begins(meant, "EVENT"))
		offer_names(cli, NAMES_EVENTS);
	else if (begins(meant, "CLIENT"))
		offer_choices(c, "claude|codex|copilot|gemini");
	else if (begins(meant, "KIND"))
		offer_choices(c, "name|group|file|plan|target|land");
	else if (begins(meant, "DIR"))
		puts(":dirs");
	else if (begins(meant, "FILE") || begins(meant, "PATH"))
		puts(":files");
}

/* Returns the `n`th argument in a command's help. Optional arguments in brackets are not counted. */
static const char *argument(const char *args, int n)
{
	/* A leading "[NAME...]" or "[COMMAND]" counts, although it is in brackets. */
	if (args[0] == '[' && args[1] >= 'A' && args[1] <= 'Z')
		args++;
	while (*args) {
		size_t len = args[0] == '[' ? strcspn(args, "]") + 1 : strcspn(args, " ]");

		if (args[0] != '[' && (n-- == 0 || (len >= 3 && strncmp(args + len - 3, "...", 3) == 0)))
			return args;
		args += len;
		args += strspn(args, " ].");
	}
	return "";
}

static void offer_specs(const struct complete *c, const struct option_spec *specs)
{
	for (const struct option_spec *s = specs; s && s->name; s++) {
		char word[64];

		(void)snprintf(word, sizeof(word), "--%s", s->name);
		if (s->help)
			offer(c, word, s->help);
	}
}

/* Returns the option whose value follows `word`, or NULL. */
static const struct option_spec *waiting(const struct option_spec *specs, const char *word)
{
	for (const struct option_spec *s = specs; s && s->name; s++)
		if (s->kind != OPTION_FLAG && ((begins(word, "--") && strcmp(word + 2, s->name) == 0) ||
					       (s->letter && word[0] == '-' && word[1] == s->letter && !word[2])))
			return s;
	return NULL;
}

void cli_complete_options(struct cli *cli, const struct option_spec *specs, int then_command)
{
	const struct option_spec global[] = { CLI_GLOBAL_SPECS(cli), { "help", 'h', OPTION_FLAG, NULL, NULL, "its options" }, { 0 } };
	const struct complete *c = cli->complete;
	const struct option_spec *option = NULL;
	int words = 0, over = 0; /* over: after "--" */

	for (int i = 0; i < c->n_before; i++) {
		const char *word = c->before[i];

		if (option) {
			option = NULL;
		} else if (!over && strcmp(word, "--") == 0) {
			over = 1;
		} else if (!over && word[0] == '-' && word[1]) {
			option = waiting(specs, word);
			if (!option)
				option = waiting(global, word);
		} else if (++words == 2 && then_command) {
			printf(":command %d\n", c->offset + i);
			return;
		}
	}
	if (option) {
		offer_meant(cli, option->value);
	} else if (c->word[0] == '-' && !over) {
		offer_specs(c, specs);
		offer_specs(c, global);
	} else if (then_command && words == 1) {
		printf(":command %d\n", c->offset + c->n_before);
	} else {
		offer_meant(cli, argument(cli->command->args, words));
	}
}

/* Offers all nouns, or the verbs of one noun. */
static void offer_commands(const struct complete *c, const char *noun)
{
	const char *before = "";

	for (const struct command *k = cli_commands; k->noun; k++) {
		if (noun ? strcmp(noun, k->noun) != 0 || !k->verb : strcmp(before, k->noun) == 0)
			continue;
		before = k->noun;
		offer(c, noun ? k->verb : k->noun, noun || !k->verb ? k->help : "");
	}
}

int cli_complete(struct cli *cli, int argc, char **argv)
{
	const struct option_spec global[] = { CLI_GLOBAL_SPECS(cli), { 0 } };
	struct complete c = { .word = argc > 0 ? argv[argc - 1] : "" };
	int at = 0, used, words;
	char *none[] = { NULL };

	cli->quiet = 1;
	cli->complete = &c;
	while (at < argc - 1 && argv[at][0] == '-') {
		if (at == argc - 2 && waiting(global, argv[at])) {
			offer_meant(cli, waiting(global, argv[at])->value);
			return HF_EXIT_DONE;
		}
		used = cli_global_option(cli, argc - 1 - at, argv + at);
		if (used <= 0)
			return HF_EXIT_DONE;
		at += used;
	}
	if (argc - at > 1 && strcmp(argv[at], "help") == 0)
		at++;
	if (argc - at <= 1) {
		if (c.word[0] == '-')
			offer_specs(&c, global);
		else
			offer_commands(&c, NULL);
		return HF_EXIT_DONE;
	}
	if (argc - at == 2)
		offer_commands(&c, argv[at]);
	cli->command = cli_find_command(argc - at - 1, argv + at, &words);
	if (!cli->command || cli->command->run == cmd_help)
		return HF_EXIT_DONE;
	c.before = argv + at + words;
	c.n_before = argc - 1 - at - words;
	c.offset = at + words;
	(void)cli->command->run(cli, 0, none);
	hf_state_free(cli->state);
	cli->state = NULL;
	return HF_EXIT_DONE;
}
