/* cli/journal/write.c - journal emit and events. */
#include <stdio.h>
#include <string.h>

#include "hf/base/parse.h"
#include "cli.h"
#include "holdfast/journal.h"

static const char *type_word(enum hf_type type)
{
	return type == HF_TEXT ? "text" : type == HF_INT ? "number" : "true|false";
}

/* Turns KEY=VALUE into a field of the event. Returns 0, or HF_EXIT_USAGE after reporting why. */
static int read_field(const struct cli *cli, const struct hf_event_info *info, char *word,
		      struct hf_field *ret)
{
	char *equals = strchr(word, '=');
	const struct hf_event_field *spec = info->fields;

	if (!equals)
		return cli_usage(cli, "'%s' is not KEY=VALUE", word);
	*equals = '\0';
	while (spec->key && strcmp(spec->key, word) != 0)
		spec++;
	if (!spec->key)
		return cli_usage(cli, "event '%s' has no field '%s'; see 'holdfast journal events'",
				 info->name, word);
	*ret = (struct hf_field){ .key = spec->key, .type = spec->type };
	switch (spec->type) {
	case HF_INT:
		if (hf_parse_i64(equals + 1, strlen(equals + 1), &ret->number) < 0)
			return cli_usage(cli, "%s: '%s' is not a number", word, equals + 1);
		break;
	case HF_BOOL:
		if (strcmp(equals + 1, "true") != 0 && strcmp(equals + 1, "false") != 0)
			return cli_usage(cli, "%s: '%s' is neither true nor false", word,
					 equals + 1);
		ret->number = equals[1] == 't';
		break;
	case HF_TEXT:
	default:
		ret->text = equals + 1;
		break;
	}
	return 0;
}

static int emit(struct cli *cli, const struct hf_event_info *info, const char *name,
		const struct hf_field *fields, size_t n_fields, int durable)
{
	struct hf_journal *journal;
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE, r;
	struct hf_state *state = cli_state(cli, 0, &status);

	if (!state)
		return status;
	if (hf_journal_open(state, NULL, &journal, &err) < 0)
		return cli_fail(cli, &err);
	r = hf_journal_append(journal, info->event, name, fields, n_fields,
			      durable ? HF_JOURNAL_DURABLE : 0, &err);
	if (r < 0) {
		status = cli_fail(cli, &err);
	} else if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "seq", json_integer((json_int_t)hf_journal_last_seq(journal)));
		cli_print_json(object);
	}
	hf_journal_free(journal);
	return status;
}

int cmd_journal_emit(struct cli *cli, int argc, char **argv)
{
	const char *name = NULL;
	int durable = 0;
	const struct option_spec specs[] = {
		{ "name", 0, OPTION_TEXT, &name, "NAME", "the lock, session or plan of the event" },
		{ "durable", 0, OPTION_FLAG, &durable, NULL, "write to disk before the command ends" },
		{ 0 },
	};
	struct hf_field fields[HF_EVENT_FIELDS_MAX];
	const struct hf_event_info *info;
	int n = cli_options(cli, specs, argc, argv, 1, HF_EVENT_FIELDS_MAX + 1);

	if (n < 0)
		return cli_options_status(n);
	info = hf_event_find(argv[0], strlen(argv[0]));
	if (!info)
		return cli_usage(cli, "no event '%s'; see 'holdfast journal events'",
				 argv[0]);
	for (int i = 1; i < n; i++) {
		int status = read_field(cli, info, argv[i], &fields[i - 1]);

		if (status)
			return status;
	}
	return emit(cli, info, name, fields, (size_t)n - 1, durable);
}

static void print_event_json(json_t *list, const struct hf_event_info *info)
{
	json_t *event = json_object(), *fields = json_array();

	for (const struct hf_event_field *f = info->fields; f->key; f++) {
		json_t *field = json_object();

		cli_set(field, "key", json_string(f->key));
		cli_set(field, "type", json_string(type_word(f->type)));
		cli_set(field, "required", json_boolean(f->required));
		if (json_array_append_new(fields, field) < 0)
			cli_die_oom();
	}
	cli_set(event, "event", json_string(info->name));
	cli_set(event, "summary", json_string(info->summary));
	cli_set(event, "needs_name", json_boolean(info->needs_name));
	cli_set(event, "fields", fields);
	if (json_array_append_new(list, event) < 0)
		cli_die_oom();
}

static void print_event(const struct cli *cli, const struct hf_event_info *info)
{
	cli_colour(cli, "1");
	printf("%s", info->name);
	cli_colour(cli, NULL);
	printf("  %s\n   ", info->summary);
	if (info->needs_name)
		printf(" --name NAME");
	for (const struct hf_event_field *f = info->fields; f->key; f++)
		printf(f->required ? " %s=%s" : " [%s=%s]", f->key, type_word(f->type));
	putchar('\n');
}

int cmd_journal_events(struct cli *cli, int argc, char **argv)
{
	int n = cli_options(cli, NULL, argc, argv, 0, 0);
	json_t *list = json_array();

	if (n < 0) {
		json_decref(list);
		return cli_options_status(n);
	}
	for (int i = 0; i < HF_EVENT_COUNT; i++) {
		const struct hf_event_info *info = hf_event_info((enum hf_event)i);

		if (cli->json)
			print_event_json(list, info);
		else
			print_event(cli, info);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "events", list);
		cli_print_json(object);
	} else {
		json_decref(list);
	}
	return HF_EXIT_DONE;
}
