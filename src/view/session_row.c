/* view/session_row.c - a session as a row. */
#include <string.h>

#include "hf/view/session.h"

/* clang-format off */
const struct hf_view_column hf_view_session_columns[HF_VIEW_SESSION_COLUMNS] = {
	[HF_SESSION_COLUMN_NAME] = { "NAME", -1 },
	[HF_SESSION_COLUMN_STATE] = { "STATE", -1 },
	[HF_SESSION_COLUMN_PID] = { "PID", 1 },
	[HF_SESSION_COLUMN_AGE] = { "AGE", 1 },
	[HF_SESSION_COLUMN_LEFT] = { "LEFT", 1 },
	[HF_SESSION_COLUMN_PROCS] = { "PROCS", 1 },
	[HF_SESSION_COLUMN_MEM] = { "MEM", 1 },
	[HF_SESSION_COLUMN_CPU] = { "CPU", 1 },
	[HF_SESSION_COLUMN_OUTPUT] = { "OUTPUT", 1 },
	[HF_SESSION_COLUMN_TRY] = { "TRY", 1 },
	[HF_SESSION_COLUMN_TOKEN] = { "TOKEN", 1 },
	[HF_SESSION_COLUMN_CWD] = { "CWD", -1 },
	[HF_SESSION_COLUMN_COMMAND] = { "COMMAND", -1 },
};
/* clang-format on */

static int has_ended(const struct hf_session_info *info)
{
	return info->outcome != HF_OUTCOME_NONE;
}

/* Of one that ended: how long ago. The clock may have been set back since. */
static void add_age(struct hf_buf *out, const struct hf_session_info *info)
{
	int64_t ago = hf_wall_now().ns - info->ended.ns;

	if (!has_ended(info) || info->ended.ns == 0) {
		hf_view_duration(out, info->age_ns);
		return;
	}
	hf_view_ago(out, ago);
}

/* How it ended, or how the attempt before did while nothing runs: while something runs, that is of no interest. */
static void add_note(struct hf_buf *out, const struct hf_session_info *info)
{
	const char *cause = has_ended(info) ? info->cause : info->pid == 0 ? info->last.cause : "";
	int64_t ran = has_ended(info) ? info->ran_ns : info->last.ran_ns;

	if (cause[0]) {
		hf_buf_add_text(out, "  (");
		hf_buf_add_shown(out, cause, strlen(cause));
		if (ran >= 0) {
			hf_buf_add_text(out, ", ran ");
			hf_view_duration(out, ran);
		}
		hf_buf_add_char(out, ')');
	}
	if (info->log_dropped_bytes > 0) {
		hf_buf_add_text(out, "  [log: the first ");
		hf_view_size(out, info->log_dropped_bytes);
		hf_buf_add_text(out, " dropped]");
	}
}

void hf_view_session_cells(const struct hf_session_info *info, struct hf_buf cells[HF_VIEW_SESSION_COLUMNS],
			   struct hf_buf *note)
{
	const char *cwd = info->cwd && info->cwd[0] ? info->cwd : "-";

	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_NAME], info->name, strlen(info->name));
	hf_buf_add_text(&cells[HF_SESSION_COLUMN_STATE], hf_session_word(info->state));
	hf_view_count(&cells[HF_SESSION_COLUMN_PID], info->pid ? info->pid : -1);
	add_age(&cells[HF_SESSION_COLUMN_AGE], info);
	hf_view_duration(&cells[HF_SESSION_COLUMN_LEFT], info->deadline_left_ns);
	hf_view_count(&cells[HF_SESSION_COLUMN_PROCS], info->processes);
	hf_view_size(&cells[HF_SESSION_COLUMN_MEM], info->memory_bytes);
	hf_view_duration(&cells[HF_SESSION_COLUMN_CPU], info->cpu_ns);
	hf_view_duration(&cells[HF_SESSION_COLUMN_OUTPUT], info->output_age_ns);
	hf_view_count(&cells[HF_SESSION_COLUMN_TRY], info->attempt ? (int64_t)info->attempt : -1);
	hf_buf_add_u64(&cells[HF_SESSION_COLUMN_TOKEN], info->token);
	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_CWD], cwd, strlen(cwd));
	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_COMMAND], info->command, strlen(info->command));
	add_note(note, info);
}

enum hf_view_tone hf_view_session_tone(enum hf_session_state state)
{
	switch (state) {
	case HF_SESSION_RUNNING:
	case HF_SESSION_STARTING:
	case HF_SESSION_VERIFYING:
	case HF_SESSION_LANDING:
	case HF_SESSION_DONE:
		return HF_TONE_GOOD;
	case HF_SESSION_FAILING:
	case HF_SESSION_FAILED:
	case HF_SESSION_VERIFY_FAILED:
	case HF_SESSION_DEAD_UNREAPED:
	case HF_SESSION_UNREADABLE:
		return HF_TONE_BAD;
	case HF_SESSION_HUNG:
	case HF_SESSION_STOPPING:
	case HF_SESSION_STOPPED:
	case HF_SESSION_WAITING:
	default:
		return HF_TONE_CARE;
	}
}
