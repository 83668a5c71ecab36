/* view/session.h - a session, as JSON and as a row. */
#ifndef VIEW_SESSION_H
#define VIEW_SESSION_H

#include "hf/view/columns.h"
#include "hf/view/json.h"
#include "holdfast/run.h"

/* The shape "session" of docs/JSON.md. NULL without memory. */
json_t *hf_view_session(const struct hf_session_info *info);

/* What `run` came to: the shape "report". `exit_status` is what the program exits with. */
json_t *hf_view_report(const char *name, const struct hf_run_report *report, int exit_status);

#define HF_VIEW_SESSION_COLUMNS 12
#define HF_VIEW_SESSION_STATE   1 /* the column that has the tone */

extern const struct hf_view_column hf_view_session_columns[HF_VIEW_SESSION_COLUMNS];

/* Fills the cells, which the caller made with HF_BUF_INIT. */
void hf_view_session_cells(const struct hf_session_info *info, struct hf_buf cells[HF_VIEW_SESSION_COLUMNS]);

enum hf_view_tone hf_view_session_tone(enum hf_session_state state);

#endif
