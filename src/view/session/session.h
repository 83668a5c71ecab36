/* view/session/session.h - a session, as JSON and as a row. */
#ifndef VIEW_SESSION_SESSION_H
#define VIEW_SESSION_SESSION_H

#include "hf/view/columns.h"
#include "hf/view/json.h"
#include "hf/view/session/needs.h"
#include "holdfast/run.h"

/* The shape "session" of docs/JSON.md, with what else is known (NULL: nothing). NULL without memory. */
json_t *hf_view_session(const struct hf_session_info *info, const struct hf_view_facts *facts);

/* What `run` came to: the shape "report". `exit_status` is what the program exits with. */
json_t *hf_view_report(const char *name, const struct hf_run_report *report, int exit_status);

enum hf_view_session_column {
	HF_SESSION_COLUMN_NAME,
	HF_SESSION_COLUMN_STATE, /* it has the tone */
	HF_SESSION_COLUMN_PID,
	HF_SESSION_COLUMN_AGE,
	HF_SESSION_COLUMN_LEFT,
	HF_SESSION_COLUMN_PROCS,
	HF_SESSION_COLUMN_MEM,
	HF_SESSION_COLUMN_CPU,
	HF_SESSION_COLUMN_OUTPUT,
	HF_SESSION_COLUMN_TRY,
	HF_SESSION_COLUMN_TOKEN,
	HF_SESSION_COLUMN_CWD,
	HF_SESSION_COLUMN_PEAK,
	HF_SESSION_COLUMN_BYTES,
	HF_SESSION_COLUMN_NEEDS,
	HF_SESSION_COLUMN_COMMAND,
	HF_VIEW_SESSION_COLUMNS,
};

/* A title is also the column's name, in small letters, for `ps -o`. */
extern const struct hf_view_column hf_view_session_columns[HF_VIEW_SESSION_COLUMNS];

/*
 * Fills the cells, which the caller made with HF_BUF_INIT. The note stands behind the command: why it needs a person and what
 * to do, or how it ended, or when it goes on. `facts` may be NULL. Returns how many bytes at the end of the note say what to type
 * (": resume"); 0: the session needs nobody.
 */
size_t hf_view_session_cells(const struct hf_session_info *info, const struct hf_view_facts *facts,
			   struct hf_buf cells[HF_VIEW_SESSION_COLUMNS], struct hf_buf *note);

/* Where a session stands among others: those that need a person (the oldest first), then what runs, by start; what waits, by its place; what ended, the newest first. */
struct hf_view_rank {
	int group;
	int64_t key;  /* rising within its group */
};

struct hf_view_rank hf_view_session_rank(const struct hf_session_info *info, const struct hf_view_facts *facts);

/* As strcmp: the order of rows, the same everywhere. Inside a group nothing but a start or an end changes it. */
int hf_view_rank_compare(const struct hf_view_rank *a, const struct hf_view_rank *b);

enum hf_view_tone hf_view_session_tone(enum hf_session_state state);

#endif
