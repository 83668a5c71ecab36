/* view/session/fleet.c - a session of another machine. */
#include <string.h>

#include "hf/view/session/fleet.h"
#include "hf/view/session/session.h"

const struct hf_view_column hf_view_fleet_columns[HF_VIEW_FLEET_COLUMNS] = {
	[HF_FLEET_COLUMN_NAME] = { "NAME", -1 }, [HF_FLEET_COLUMN_HOST] = { "HOST", -1 }, [HF_FLEET_COLUMN_STATE] = { "STATE", -1 },
	[HF_FLEET_COLUMN_AGE] = { "AGE", 1 },    [HF_FLEET_COLUMN_PID] = { "PID", 1 },    [HF_FLEET_COLUMN_TRY] = { "TRY", 1 },
	[HF_FLEET_COLUMN_COMMAND] = { "COMMAND", -1 },
};

static int has_ended(const struct hf_fleet_session *session)
{
	return session->outcome != HF_OUTCOME_NONE;
}

json_t *hf_view_fleet_session(const struct hf_fleet_session *session)
{
	json_t *object = json_object();
	int ended = has_ended(session);

	hf_view_set_name(&object, session->name);
	hf_view_set(&object, "host", hf_view_text(session->host));
	hf_view_set(&object, "state", json_string(hf_session_word(session->state)));
	hf_view_set(&object, "attempt", json_integer(session->attempt));
	hf_view_set(&object, "token", json_integer((json_int_t)session->token));
	hf_view_set(&object, "command", hf_view_text(session->command));
	hf_view_set(&object, "pid", ended ? json_null() : json_integer(session->pid));
	hf_view_set(&object, "started", hf_view_time(session->started));
	hf_view_set(&object, "ended", ended ? hf_view_time(session->ended) : json_null());
	hf_view_set(&object, "outcome", ended ? json_string(hf_outcome_word(session->outcome)) : json_null());
	hf_view_set(&object, "exit", ended ? json_integer(session->exit_status) : json_null());
	hf_view_set(&object, "cause", ended ? hf_view_text(session->cause) : json_null());
	return object;
}

static void add_age(struct hf_buf *out, const struct hf_fleet_session *session)
{
	int64_t now = hf_wall_now().ns;

	if (has_ended(session))
		hf_view_ago(out, now - session->ended.ns);
	else
		hf_view_duration(out, now > session->started.ns ? now - session->started.ns : 0);
}

void hf_view_fleet_cells(const struct hf_fleet_session *session, struct hf_buf *cells)
{
	hf_buf_add_shown(&cells[HF_FLEET_COLUMN_NAME], session->name, strlen(session->name));
	hf_buf_add_shown(&cells[HF_FLEET_COLUMN_HOST], session->host, strlen(session->host));
	hf_buf_add_text(&cells[HF_FLEET_COLUMN_STATE], hf_session_word(session->state));
	add_age(&cells[HF_FLEET_COLUMN_AGE], session);
	if (has_ended(session))
		hf_buf_add_char(&cells[HF_FLEET_COLUMN_PID], '-');
	else
		hf_buf_add_format(&cells[HF_FLEET_COLUMN_PID], "%d", (int)session->pid);
	hf_buf_add_format(&cells[HF_FLEET_COLUMN_TRY], "%u", session->attempt);
	hf_buf_add_shown(&cells[HF_FLEET_COLUMN_COMMAND], session->command, strlen(session->command));
}

void hf_view_fleet_line(struct hf_buf *out, const struct hf_fleet_session *session)
{
	hf_buf_add_format(out, "%s on ", has_ended(session) ? hf_outcome_word(session->outcome) : hf_session_word(session->state));
	hf_buf_add_shown(out, session->host, strlen(session->host));
	hf_buf_add_text(out, has_ended(session) ? " " : " for ");
	add_age(out, session);
	if (has_ended(session)) {
		hf_buf_add_text(out, ": ");
		hf_buf_add_shown(out, session->cause, strlen(session->cause));
	} else {
		hf_buf_add_format(out, ", attempt %u, pid %d there", session->attempt, (int)session->pid);
	}
}
