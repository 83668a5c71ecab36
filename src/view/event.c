/* view/event.c - what is shown of an event. */
#include <string.h>
#include <time.h>

#include "hf/base/cleanup.h"
#include "hf/view/event.h"

void hf_view_event_json(const struct hf_record *record, struct hf_buf *out)
{
	hf_buf_add(out, record->line, record->line_len);
	hf_buf_add_char(out, '\n');
}

/* Neither key nor value steers the terminal: any process of this user can write a record. */
static void add_field(void *arg, const char *key, const char *text)
{
	AUTO(hf_buf_done) struct hf_buf quoted = HF_BUF_INIT;
	struct hf_buf *out = arg;

	hf_buf_add_text(out, "  ");
	hf_buf_add_shown(out, key, strlen(key));
	hf_buf_add_char(out, '=');
	/* Quoted where a reader could not tell where the value ends. */
	if (text[0] == '\0' || strpbrk(text, " =")) {
		(void)hf_buf_add_json(&quoted, text, strlen(text), SIZE_MAX);
		text = quoted.s ? quoted.s : "";
	}
	hf_buf_add_shown(out, text, strlen(text));
}

void hf_view_event_line(const struct hf_record *record, struct hf_buf *out)
{
	time_t sec = (time_t)(record->time.ns / HF_SEC);
	struct tm tm = { 0 };
	char when[32];

	(void)localtime_r(&sec, &tm);
	(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	hf_buf_add_format(out, "%llu  %s.%03d  ", (unsigned long long)record->seq, when,
			  (int)(record->time.ns % HF_SEC / HF_MSEC));
	hf_buf_add_shown(out, record->event, strlen(record->event));
	if (record->name) {
		hf_buf_add_text(out, "  ");
		hf_buf_add_shown(out, record->name, strlen(record->name));
	}
	hf_buf_add_format(out, "  pid=%d", (int)record->pid);
	hf_record_each(record, add_field, out);
	hf_buf_add_char(out, '\n');
}
