/* cli/options.c - reads the options of a command from its table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/parse.h"
#include "cli.h"

static void append(char ***list, const char *value)
{
	size_t n = 0;

	while (*list && (*list)[n])
		n++;
	*list = realloc(*list, (n + 2) * sizeof(**list));
	if (!*list)
		cli_die_oom();
	(*list)[n] = (char *)(uintptr_t)value;
	(*list)[n + 1] = NULL;
}

static int store(const struct cli *cli, const struct option_spec *spec, const char *value)
{
	size_t len = strlen(value);

	switch (spec->kind) {
	case OPTION_TEXT:
		*(const char **)spec->target = value;
		return 0;
	case OPTION_DURATION:
		if (hf_parse_duration(value, len, spec->target) == 0)
			return 0;
		(void)cli_usage(cli, "--%s: '%s' is not a duration (500ms 30s 5m 1h30m 2d inf, or seconds)",
				spec->name, value);
		return -1;
	case OPTION_COUNT:
		if (hf_parse_u64(value, len, UINT32_MAX, spec->target) == 0)
			return 0;
		(void)cli_usage(cli, "--%s: '%s' is not a number", spec->name, value);
		return -1;
	case OPTION_SIZE:
		if (hf_parse_size(value, len, spec->target) == 0)
			return 0;
		(void)cli_usage(cli, "--%s: '%s' is not a size (500K 1.5M 2G, or bytes)", spec->name, value);
		return -1;
	case OPTION_WHEN:
		if (cli_when(value, spec->target) == 0)
			return 0;
		(void)cli_usage(cli, "--%s: '%s' is not a time (5m, yesterday, 07:30, 2026-11-18, \"2026-11-18 07:30\")",
				spec->name, value);
		return -1;
	case OPTION_TOKEN:
		if (hf_parse_u64(value, len, INT64_MAX, spec->target) == 0 && *(uint64_t *)spec->target > 0)
			return 0;
		(void)cli_usage(cli, "--%s: '%s' is not a token", spec->name, value);
		return -1;
	case OPTION_LIST:
		append(spec->target, value);
		return 0;
	case OPTION_FLAG:
	default:
		return 0;
	}
}

/* Finds the option that `word` names. *ret_value is its value if that is part of the same word. */
static const struct option_spec *match(const struct option_spec *specs, const char *word,
				       const char **ret_value)
{
	for (const struct option_spec *s = specs; s && s->name; s++) {
		size_t len = strlen(s->name);

		*ret_value = NULL;
		if (word[1] == '-') {
			if (strncmp(word + 2, s->name, len) != 0)
				continue;
			if (word[2 + len] == '\0')
				return s;
			if (word[2 + len] == '=') {
				*ret_value = word + 2 + len + 1;
				return s;
			}
		} else if (s->letter && word[1] == s->letter) {
			if (word[2] != '\0')
				*ret_value = word + 2;
			return s;
		}
	}
	return NULL;
}

static int take(const struct cli *cli, const struct option_spec *specs, int argc, char **argv, int then_command);

/*
 * "--" or a long option of this command: the option before it has no value. Only before a command, which would be lost
 * or become another one; elsewhere a value, such as an id, may be any word.
 */
static int ends_value(const struct option_spec *specs, const char *word)
{
	const char *value;

	return word[0] == '-' && word[1] == '-' && (word[2] == '\0' || match(specs, word, &value));
}

/* "-fn1" is "-f -n1": the text after a flag's letter is another option. */
static int take_joined(const struct cli *cli, const struct option_spec *specs, int argc, char **argv, char *rest, int then_command)
{
	char *whole = argv[0], letter = rest[-1];
	int used;

	rest[-1] = '-';
	argv[0] = rest - 1;
	used = take(cli, specs, argc, argv, then_command);
	rest[-1] = letter;
	argv[0] = whole;
	if (used == 0)
		(void)cli_usage(cli, "'%s': unknown option -%c", whole, rest[0]);
	return used == 0 ? -1 : used;
}

/* Returns the number of words used, 0 if argv[0] is another word, -1 on an error. */
static int take(const struct cli *cli, const struct option_spec *specs, int argc, char **argv, int then_command)
{
	const char *value;
	const struct option_spec *spec = match(specs, argv[0], &value);

	if (!spec)
		return 0;
	if (spec->kind == OPTION_FLAG) {
		*(int *)spec->target = 1;
		if (!value)
			return 1;
		if (argv[0][1] != '-')
			return take_joined(cli, specs, argc, argv, argv[0] + 2, then_command);
		(void)cli_usage(cli, "'%s': --%s takes no value", argv[0], spec->name);
		return -1;
	}
	if (value)
		return store(cli, spec, value) < 0 ? -1 : 1;
	/* An optional value is left out only before an option or at the end: a mistyped value must not become the command. */
	if (spec->value[0] == '[' && (argc < 2 || argv[1][0] == '-')) {
		*(int64_t *)spec->target = -1;
		return 1;
	}
	if (argc < 2 || (then_command && ends_value(specs, argv[1]))) {
		(void)cli_usage(cli, "--%s needs a value (%s)", spec->name, spec->value);
		return -1;
	}
	return store(cli, spec, argv[1]) < 0 ? -1 : 2;
}

int cli_global_option(struct cli *cli, int argc, char **argv)
{
	const struct option_spec specs[] = { CLI_GLOBAL_SPECS(cli), { 0 } };

	return take(cli, specs, argc, argv, 0);
}

size_t cli_distance(const char *a, const char *b, size_t limit)
{
	size_t row[64], n = strlen(b);

	if (n >= 63 || strlen(a) >= 63)
		return limit;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[n] < limit ? row[n] : limit;
}

static void say_unknown(const struct cli *cli, const struct option_spec *specs, const char *word)
{
	const char *near = NULL;
	size_t best = 3;

	for (const struct option_spec *s = specs; s && s->name; s++) {
		size_t d = word[1] == '-' ? cli_distance(word + 2, s->name, 3) : 3;

		if (d < best) {
			best = d;
			near = s->name;
		}
	}
	if (near)
		(void)cli_usage(cli, "unknown option '%s'; did you mean --%s?", word, near);
	else
		(void)cli_usage(cli, "unknown option '%s'", word);
}

int cli_options(struct cli *cli, const struct option_spec *specs, int argc, char **argv, int min,
		int max)
{
	int words = 0, at = 0;

	cli->dashes = -1;
	if (cli->complete) {
		cli_complete_options(cli, specs, max == OPTIONS_THEN_COMMAND);
		return -2;
	}
	while (at < argc) {
		int used;

		if (strcmp(argv[at], "--") == 0) {
			cli->dashes = words;
			at++;
			break;
		}
		if (max == OPTIONS_THEN_COMMAND && words == 2)
			break;
		/* A lone "-" and anything without a dash is a word. */
		if (argv[at][0] != '-' || argv[at][1] == '\0') {
			argv[words++] = argv[at++];
			continue;
		}
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
			cli_command_help(cli, specs);
			return -2;
		}
		used = take(cli, specs, argc - at, argv + at, max == OPTIONS_THEN_COMMAND);
		if (used == 0)
			used = cli_global_option(cli, argc - at, argv + at);
		if (used == 0) {
			say_unknown(cli, specs, argv[at]);
			return -1;
		}
		if (used < 0)
			return -1;
		at += used;
	}
	while (at < argc)
		argv[words++] = argv[at++];
	if (words < min) {
		(void)cli_usage(cli, "missing argument");
		return -1;
	}
	if (words > max) {
		(void)cli_usage(cli, "unexpected argument '%s'", argv[max]);
		return -1;
	}
	return words;
}

int cli_options_status(int result)
{
	return result == -2 ? HF_EXIT_DONE : HF_EXIT_USAGE;
}
