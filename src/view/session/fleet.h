/* view/session/fleet.h - a session of another machine: its JSON and its row. */
#ifndef VIEW_SESSION_FLEET_H
#define VIEW_SESSION_FLEET_H

#include <jansson.h>

#include "hf/base/buf.h"
#include "hf/view/columns.h"
#include "holdfast/fleet.h"

enum hf_fleet_column {
	HF_FLEET_COLUMN_NAME,
	HF_FLEET_COLUMN_HOST,
	HF_FLEET_COLUMN_STATE,
	HF_FLEET_COLUMN_AGE,
	HF_FLEET_COLUMN_PID,
	HF_FLEET_COLUMN_TRY,
	HF_FLEET_COLUMN_COMMAND,
	HF_VIEW_FLEET_COLUMNS,
};

extern const struct hf_view_column hf_view_fleet_columns[HF_VIEW_FLEET_COLUMNS];

json_t *hf_view_fleet_session(const struct hf_fleet_session *session);
void hf_view_fleet_cells(const struct hf_fleet_session *session, struct hf_buf *cells);

/* "running on h1 for 3m, attempt 1, pid 4711", "succeeded on h1 2h ago: exit 0". */
void hf_view_fleet_line(struct hf_buf *out, const struct hf_fleet_session *session);

#endif
