/* view/event.h - a record of the journal, as JSON and as a line. */
#ifndef VIEW_EVENT_H
#define VIEW_EVENT_H

#include "hf/base/buf.h"
#include "holdfast/journal.h"

/* The shape "event" of docs/JSON.md, which is the stored line, with its newline. */
void hf_view_event_json(const struct hf_record *record, struct hf_buf *out);

/* One line for people, in local time, with its newline. */
void hf_view_event_line(const struct hf_record *record, struct hf_buf *out);

#endif
