/* cli/session/logs/log_show.c - selects lines of logs, and shows them with time, name and colour. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/json.h"
#include "session/logs/log_show.h"

#define CHUNK    65536
#define TEXT_MAX 65536 /* of a line with --json; longer lines are split */

static const char *const stream_words[] = { "unknown", "stdout", "stderr", "both" };

static int has_filter(const struct log_format *f)
{
	return f->since_ns >= 0 || f->until_ns >= 0 || f->attempt || f->only_err || f->only_out;
}

int log_is_plain(const struct log_format *f)
{
	return !f->times && !f->colour && f->name_width == 0 && !f->cli->json && !has_filter(f);
}

/* Reports output that was dropped before the log was opened, and later output that was dropped before it was read. */
static void report_dropped(const struct log_show *show, struct log_source *source)
{
	AUTO(hf_buf_done) struct hf_buf size = HF_BUF_INIT;
	uint64_t dropped = hf_log_dropped(source->log);

	if (dropped == source->told || show->count_only)
		return;
	hf_view_size(&size, (int64_t)(dropped - source->told));
	cli_say(show->format.cli, "%s %s of the output were dropped (--log-max)",
		source->shown ? "here" : "the first", size.s);
	source->told = dropped;
}

/* -- one line -------------------------------------------------------------------- */

static int is_meant(const struct log_format *f, const struct hf_log_span *span, int *ret_unknown)
{
	*ret_unknown = (f->since_ns >= 0 || f->until_ns >= 0) && span->at.ns == 0;
	*ret_unknown |= f->attempt && span->attempt == 0;
	*ret_unknown |= (f->only_err || f->only_out) && (span->stream == HF_LOG_BOTH || span->stream == HF_LOG_UNKNOWN);
	if (*ret_unknown)
		return 0;
	return (f->since_ns < 0 || span->at.ns >= f->since_ns) && (f->until_ns < 0 || span->at.ns <= f->until_ns) &&
	       (!f->attempt || span->attempt == f->attempt) && (!f->only_err || span->stream == HF_LOG_ERR) &&
	       (!f->only_out || span->stream == HF_LOG_OUT);
}

static int is_red(const struct log_show *show)
{
	return show->format.colour && show->stream == HF_LOG_ERR;
}

static void print_json(struct log_show *show, int partial)
{
	const char *word = stream_words[show->stream <= HF_LOG_BOTH ? show->stream : HF_LOG_UNKNOWN];
	json_t *object = json_object();

	/* A NUL would end the C string, so it is shown like invalid UTF-8. */
	for (char *nul; (nul = memchr(show->text.s, '\0', show->text.len)) != NULL;)
		*nul = '\xff';
	hf_view_set_name(&object, show->open->name);
	hf_view_set(&object, "time", hf_view_time(show->span.at));
	hf_view_set(&object, "attempt", hf_view_number(show->span.attempt ? (int64_t)show->span.attempt : -1, 1));
	hf_view_set(&object, "stream", hf_view_text(word));
	hf_view_set(&object, "text", hf_view_text(show->text.s));
	hf_view_set(&object, "partial", json_boolean(partial));
	if (!object)
		cli_die_oom();
	cli_print_json(object);
	hf_buf_reset(&show->text);
}

static void begin_line(struct log_show *show, struct log_source *source, const struct hf_log_span *span)
{
	const struct log_format *f = &show->format;
	char time[HF_WALL_TEXT_MAX] = "-";
	int unknown;

	show->open = source;
	show->stream = span->stream;
	show->span = *span;
	show->showing = is_meant(f, span, &unknown);
	source->unknown |= unknown;
	if (!show->showing)
		return;
	show->lines++;
	if (show->count_only || show->skip > 0) {
		show->skip -= show->skip > 0;
		show->showing = 0;
		return;
	}
	if (f->cli->json)
		return;
	if (f->times) {
		if (span->at.ns)
			hf_wall_format(span->at, time);
		printf("%-*s ", HF_WALL_TEXT_MAX - 1, time);
	}
	if (f->name_width > 0) {
		cli_print_shown(source->name);
		printf("%*s | ", f->name_width - (int)strlen(source->name), "");
	}
	if (is_red(show))
		fputs("\033[31m", stdout);
}

/* Ends a line whose last byte has been printed. */
static void end_line(struct log_show *show, int has_newline)
{
	if (show->showing && show->format.cli->json) {
		print_json(show, !has_newline);
	} else if (show->showing) {
		if (is_red(show))
			fputs("\033[0m", stdout);
		if (!has_newline && (show->format.times || show->format.name_width > 0))
			putchar('\n');
	}
	show->open = NULL;
}

static void put(struct log_show *show, struct log_source *source, const char *bytes, size_t n)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	if (show->format.cli->json) {
		hf_buf_add(&show->text, bytes, n > 0 && bytes[n - 1] == '\n' ? n - 1 : n);
		if (show->text.err)
			cli_die_oom();
		if (show->text.len > TEXT_MAX)
			print_json(show, 1);
		return;
	}
	if (!show->format.safe) {
		(void)fwrite(bytes, 1, n, stdout);
		return;
	}
	visible_add(&source->visible, bytes, n, &out);
	if (out.err)
		cli_die_oom();
	(void)fwrite(out.s, 1, out.len, stdout);
}

static void show_span(struct log_show *show, struct log_source *source, const char *bytes, size_t n, const struct hf_log_span *span)
{
	while (n > 0) {
		const char *newline = memchr(bytes, '\n', n);
		size_t len = newline ? (size_t)(newline + 1 - bytes) : n;

		if (show->open && (show->open != source || show->stream != span->stream))
			end_line(show, 0);
		if (!show->open)
			begin_line(show, source, span);
		if (show->showing)
			put(show, source, bytes, len);
		if (newline)
			end_line(show, 1);
		bytes += len;
		n -= len;
	}
}

/* -- all of it ------------------------------------------------------------------- */

int log_show_rest(struct log_show *show, struct log_source *source, int *ret_gone)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_log_span span = { .stream = HF_LOG_UNKNOWN };
	int plain = log_is_plain(&show->format), n;
	char chunk[CHUNK];

	*ret_gone = 0;
	for (;;) {
		n = plain ? hf_log_read(source->log, chunk, sizeof(chunk), &err)
			  : hf_log_read_span(source->log, chunk, sizeof(chunk), &span, &err);
		if (n <= 0)
			break;
		report_dropped(show, source);
		source->shown = 1;
		if (plain)
			put(show, source, chunk, (size_t)n);
		else
			show_span(show, source, chunk, (size_t)n, &span);
		if (ferror(stdout)) {
			*ret_gone = 1;
			return HF_EXIT_DONE;
		}
	}
	*ret_gone = fflush(stdout) != 0;
	return n < 0 ? cli_fail(show->format.cli, &err) : HF_EXIT_DONE;
}

void log_show_end(struct log_show *show, struct log_source *source)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	if (show->open == source)
		end_line(show, 0);
	visible_end(&source->visible, &out);
	if (out.err)
		cli_die_oom();
	(void)fwrite(out.s, 1, out.len, stdout);
	if (source->unknown && !show->count_only)
		cli_say(show->format.cli, "session '%s': output with unknown time, attempt or stream is not shown (a terminal is one "
			"stream; older logs lack these data)", source->name);
}

void log_show_done(struct log_show *show)
{
	hf_buf_done(&show->text);
}
