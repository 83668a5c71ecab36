/* cli/output.c - messages, JSON, colours, and the state directory of this call. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "cli.h"

_Noreturn void cli_die_oom(void)
{
	static const char text[] = "holdfast: out of memory\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(EXIT_OS);
}

/* User data may be part of a message: show it, but let it not steer the terminal. */
static void print_shown(FILE *to, const char *text)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

	hf_buf_add_shown(&shown, text, strlen(text));
	if (shown.err)
		cli_die_oom();
	fputs(shown.s, to);
}

void cli_print_shown(const char *text)
{
	print_shown(stdout, text);
}

static void say_args(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void say_args(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		cli_die_oom();
	print_shown(stderr, text);
	free(text);
}

void cli_say(const struct cli *cli, const char *format, ...)
{
	va_list args;

	if (cli->quiet)
		return;
	fputs("holdfast: ", stderr);
	va_start(args, format);
	say_args(format, args);
	va_end(args);
	fputc('\n', stderr);
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
	const struct command *c = cli->command;
	va_list args;

	if (cli->quiet)
		return EXIT_USAGE;
	fprintf(stderr, "holdfast%s%s%s%s: ", c ? " " : "", c ? c->noun : "",
		c && c->verb ? " " : "", c && c->verb ? c->verb : "");
	va_start(args, format);
	say_args(format, args);
	va_end(args);
	if (c)
		fprintf(stderr, "\nusage: holdfast %s%s%s %s\n", c->noun, c->verb ? " " : "",
			c->verb ? c->verb : "", c->args);
	else
		fputs("\nTry 'holdfast --help'.\n", stderr);
	return EXIT_USAGE;
}

void cli_set(json_t *object, const char *key, json_t *value)
{
	/* json_object_set_new takes the value and fails on NULL. */
	if (json_object_set_new(object, key, value) < 0)
		cli_die_oom();
}

json_t *cli_text(const char *text)
{
	AUTO(hf_buf_done) struct hf_buf quoted = HF_BUF_INIT;
	json_t *value;

	(void)hf_buf_add_json(&quoted, text, strlen(text), SIZE_MAX);
	value = quoted.err ? NULL : json_loads(quoted.s, JSON_DECODE_ANY, NULL);
	if (!value)
		cli_die_oom();
	return value;
}

void cli_print_json(json_t *object)
{
	json_t *whole = json_pack("{s:i}", "v", 1);
	char *text;

	if (!whole || !object || json_object_update(whole, object) < 0)
		cli_die_oom();
	text = json_dumps(whole, JSON_COMPACT);
	if (!text)
		cli_die_oom();
	puts(text);
	free(text);
	json_decref(whole);
	json_decref(object);
}

int cli_fail_beside(const struct cli *cli, const struct hf_err *err, json_t *object)
{
	const struct hf_err_info *info = hf_err_info(err->code);
	char text[HF_ERR_TEXT_MAX];
	int status = hf_err_exit_status(err->code);

	(void)hf_err_format(err, text, sizeof(text));
	cli_say(cli, "%s", text);
	if (cli->json) {
		json_t *error = json_object();
		const char *name = info ? info->name : strerrorname_np(-err->code);

		cli_set(error, "code", json_string(name ? name : "UNKNOWN"));
		cli_set(error, "message", cli_text(text));
		cli_set(error, "exit", json_integer(status));
		cli_set(object, "error", error);
		cli_print_json(object);
	}
	return status;
}

int cli_fail(const struct cli *cli, const struct hf_err *err)
{
	return cli_fail_beside(cli, err, cli->json ? json_object() : NULL);
}

void cli_colour(const struct cli *cli, const char *code)
{
	if (cli->colour)
		printf("\033[%sm", code ? code : "0");
}

struct hf_state *cli_state(struct cli *cli, unsigned flags, int *ret_status)
{
	struct hf_err err = HF_ERR_INIT;

	if (!cli->state && hf_state_open(cli->dir, flags, &cli->state, &err) < 0) {
		cli->state = NULL;
		*ret_status = cli_fail(cli, &err);
	}
	return cli->state;
}
