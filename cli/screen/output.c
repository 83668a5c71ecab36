/* cli/screen/output.c - messages, JSON, colours, and the state directory. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "cli.h"
#include "holdfast/journal.h"
#include "hf/view/json.h"

#define NEARLY_FULL (UINT64_C(64) << 10) /* bytes */

/*
 * The reader of stderr may be gone. SIGPIPE must not end this process then, because scripts rely on its
 * exit status.
 */
void cli_talk_begin(struct cli_talk *talk)
{
	sigset_t pending, pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	talk->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
	(void)sigprocmask(SIG_BLOCK, &pipe, &talk->mask);
}

void cli_talk_end(const struct cli_talk *talk)
{
	const struct timespec now = { 0 };
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	while (!talk->was_pending && sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
		continue;
	(void)sigprocmask(SIG_SETMASK, &talk->mask, NULL);
}

void cli_keep_status(struct cli *cli)
{
	sigset_t late;

	cli->keep_status = 1;
	sigemptyset(&late);
	/* A second TERM, as timeout(1) sends it, may arrive after the end. */
	for (const int *sig = (const int[]){ SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0 }; *sig; sig++)
		sigaddset(&late, *sig);
	(void)sigprocmask(SIG_BLOCK, &late, NULL);
}

_Noreturn void cli_die_oom(void)
{
	static const char text[] = "holdfast: out of memory\n";
	struct cli_talk talk;

	cli_talk_begin(&talk);
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(HF_EXIT_OS);
}

/* A message may contain user data, which must not control the terminal. */
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
	struct cli_talk talk;
	va_list args;

	if (cli->quiet)
		return;
	cli_talk_begin(&talk);
	fputs("holdfast: ", stderr);
	va_start(args, format);
	say_args(format, args);
	va_end(args);
	fputc('\n', stderr);
	cli_talk_end(&talk);
}

static void print_error_json(const char *code, int status, const char *format, va_list args) __attribute__((format(printf, 3, 0)));

/* Prints an error in the JSON form that all commands use. */
static void print_error_json(const char *code, int status, const char *format, va_list args)
{
	json_t *object = json_object(), *error = json_object();
	char *text;

	if (vasprintf(&text, format, args) < 0)
		cli_die_oom();
	cli_set(error, "code", json_string(code));
	cli_set(error, "message", cli_text(text));
	cli_set(error, "exit", json_integer(status));
	cli_set(object, "error", error);
	cli_print_json(object);
	free(text);
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
	const struct command *c = cli->command;
	struct cli_talk talk;
	va_list args;

	if (cli->json) {
		va_start(args, format);
		print_error_json("usage", HF_EXIT_USAGE, format, args);
		va_end(args);
	}
	if (cli->quiet)
		return HF_EXIT_USAGE;
	cli_talk_begin(&talk);
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
	cli_talk_end(&talk);
	return HF_EXIT_USAGE;
}

void cli_set(json_t *object, const char *key, json_t *value)
{
	/* json_object_set_new takes the value and fails on NULL. */
	if (json_object_set_new(object, key, value) < 0)
		cli_die_oom();
}

json_t *cli_text(const char *text)
{
	json_t *value = hf_view_text(text);

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

static int status_of(const struct cli *cli, const struct hf_err *err)
{
	int status = hf_err_exit_status(err->code);

	return cli->around && status == HF_EXIT_OS ? HF_EXIT_AROUND : status;
}

/* The state directory, if `err` is about a file system without space and the state directory is in one; else NULL. */
static const char *full_directory(const struct cli *cli, const struct hf_err *err)
{
	const char *path = cli->state ? hf_state_path(cli->state) : NULL;
	struct statvfs fs;

	/* The failed step may have freed its last blocks. */
	if (!path || (err->code != -ENOSPC && err->code != -EDQUOT) || statvfs(path, &fs) < 0 ||
	    (err->code == -ENOSPC && fs.f_bavail * fs.f_frsize >= NEARLY_FULL && (fs.f_files == 0 || fs.f_favail > 16)))
		return NULL;
	return path;
}

static int fail(const struct cli *cli, const struct hf_err *err, int status, json_t *object)
{
	const char *full = full_directory(cli, err);
	char text[HF_ERR_TEXT_MAX];

	(void)hf_err_format(err, text, sizeof(text));
	cli_say(cli, "%s%s%s", text, full ? ": the file system of the state directory is full: " : "", full ? full : "");
	if (cli->json) {
		cli_set(object, "error", hf_view_error(err, status));
		cli_print_json(object);
	}
	return status;
}

int cli_fail_beside(const struct cli *cli, const struct hf_err *err, json_t *object)
{
	return fail(cli, err, status_of(cli, err), object);
}

int cli_fail_as(const struct cli *cli, const struct hf_err *err, int status)
{
	return fail(cli, err, status, cli->json ? json_object() : NULL);
}

int cli_fail(const struct cli *cli, const struct hf_err *err)
{
	return cli_fail_as(cli, err, status_of(cli, err));
}

int cli_fail_words(const struct cli *cli, int code, int status, const char *format, ...)
{
	char word[HF_VIEW_CODE_MAX], *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		cli_die_oom();
	va_end(args);
	cli_say(cli, "%s", text);
	free(text);
	if (cli->json) {
		hf_view_error_code(code, word);
		va_start(args, format);
		print_error_json(word, status, format, args);
		va_end(args);
	}
	return status;
}

const char *cli_word(const char *name)
{
	static char words[4][HF_SHELL_WORD_MAX];
	static unsigned n;

	return hf_shell_word(name, words[n++ % 4]);
}

void cli_colour(const struct cli *cli, const char *code)
{
	if (cli->colour)
		printf("\033[%sm", code ? code : "0");
}

void cli_print_head(const struct hf_view_column *columns, int n)
{
	for (int i = 0; i < n; i++)
		printf("%s%*s", i > 0 ? "  " : "", columns[i].width, columns[i].title);
	putchar('\n');
}

void cli_tone(const struct cli *cli, enum hf_view_tone tone)
{
	static const char *const colours[] = { [HF_TONE_GOOD] = "32", [HF_TONE_CARE] = "33", [HF_TONE_BAD] = "31" };

	cli_colour(cli, colours[tone]);
}

void cli_print_row(const struct cli *cli, const struct hf_view_column *columns, struct hf_buf *cells, int n,
		   int toned, enum hf_view_tone tone)
{
	for (int i = 0; i < n; i++) {
		if (cells[i].err)
			cli_die_oom();
		fputs(i > 0 ? "  " : "", stdout);
		if (i == toned)
			cli_tone(cli, tone);
		printf("%*s", columns[i].width, cells[i].s);
		if (i == toned)
			cli_colour(cli, NULL);
	}
	putchar('\n');
	hf_view_cells_done(cells, n);
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

const char *cli_store(const struct cli *cli)
{
	const char *url = cli->store ? cli->store : getenv("HOLDFAST_STORE");

	return url && url[0] && strcmp(url, "local:") != 0 ? url : NULL;
}

struct hf_journal *cli_journal(const struct cli *cli, struct hf_state *state)
{
	struct hf_journal *journal = NULL;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];

	if (hf_journal_open(state, NULL, &journal, &err) == 0)
		return journal;
	(void)hf_err_format(&err, text, sizeof(text));
	cli_say(cli, "no journal: %s", text);
	return NULL;
}
