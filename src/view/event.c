/* view/event.c - what is shown of an event. */
#include <string.h>
#include <time.h>

#include "hf/view/event.h"

void hf_view_event_json(const struct hf_record *record, struct hf_buf *out)
{
	hf_buf_add(out, record->line, record->line_len);
	hf_buf_add_char(out, '\n');
}

static void add_field(void *arg, const char *key, const char *text)
{
	struct hf_buf *out = arg;

	hf_buf_add_text(out, "  ");
	hf_buf_add_text(out, key);
	hf_buf_add_char(out, '=');
	/* Quoted where a reader could not tell where the value ends. */
	if (text[0] == '\0' || strpbrk(text, " ="))
		(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
	else
		hf_buf_add_text(out, text);
}

void hf_view_event_line(const struct hf_record *record, struct hf_buf *out)
{
	time_t sec = (time_t)(record->time.ns / HF_SEC);
	struct tm tm = { 0 };
	char when[32];

	(void)localtime_r(&sec, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	hf_buf_add_format(out, "%llu  %s.%03d  %s", (unsigned long long)record->seq, when,
			  (int)(record->time.ns % HF_SEC / HF_MSEC), record->event);
	if (record->name) {
		hf_buf_add_text(out, "  ");
		hf_buf_add_shown(out, record->name, strlen(record->name));
	}
	hf_buf_add_format(out, "  pid=%d", (int)record->pid);
	hf_record_each(record, add_field, out);
	hf_buf_add_char(out, '\n');
}
