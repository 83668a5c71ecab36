/*
 * view/history.h - the events that a query means, or the last few of them.
 *
 *     struct hf_history what = { .name = "build", .kind = "name", .limit = 5 };
 *     hf_view_history(reader, &what, hf_view_event_line, print, NULL, &err);
 */
#ifndef VIEW_HISTORY_H
#define VIEW_HISTORY_H

#include "hf/view/event.h"

struct hf_history {
	const char *event; /* NULL: any */
	const char *name;  /* as the journal stores it (hf_view_text); NULL: any */
	const char *kind;  /* of the lock that the name is; NULL: any */
	struct hf_wall since, until; /* both included; until 0: no end */
	uint64_t limit;    /* the last so many events; 0: all */
};

/* 1 when the record is meant. `limit` does not matter. */
int hf_history_means(const struct hf_history *what, const struct hf_record *record);

/* hf_view_event_json or hf_view_event_line */
typedef void hf_history_format_fn(const struct hf_record *record, struct hf_buf *out);
/* One event, formatted. It lives for this call. */
typedef void hf_history_fn(void *arg, const char *line, size_t len);

/* Reads to the end and gives each event that is meant to `fn`, oldest first. 0, -ENOMEM, or the reader's error. */
int hf_view_history(struct hf_journal_reader *reader, const struct hf_history *what, hf_history_format_fn *format,
		    hf_history_fn *fn, void *arg, struct hf_err *err);

#endif
