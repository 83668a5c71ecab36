/* view/session/session_row.c - a session as a row. */
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/session/session.h"

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
	[HF_SESSION_COLUMN_PEAK] = { "PEAK", 1 },
	[HF_SESSION_COLUMN_BYTES] = { "BYTES", 1 },
	[HF_SESSION_COLUMN_NEEDS] = { "NEEDS", -1 },
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
static void add_cause(struct hf_buf *out, const struct hf_session_info *info)
{
	const char *cause = has_ended(info) ? info->cause : info->pid == 0 ? info->last.cause : "";
	int64_t ran = has_ended(info) ? info->ran_ns : info->last.ran_ns;

	if (!cause[0])
		return;
	hf_buf_add_shown(out, cause, strlen(cause));
	if (ran >= 0) {
		hf_buf_add_text(out, ", ran ");
		hf_view_duration(out, ran);
	}
}

/*
 * "queued (place 2 of 5)": where a session stands that waits. One that failed is told by its outcome: "timed-out" and "abandoned" say
 * more, and are the words that its outcome line had.
 */
static void add_state(struct hf_buf *out, const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	hf_buf_add_text(out, info->state == HF_SESSION_FAILED && has_ended(info) ? hf_outcome_word(info->outcome) :
										   hf_session_word(info->state));
	if (info->state == HF_SESSION_QUEUED && facts && facts->wait.is_known)
		hf_buf_add_format(out, " (place %zu of %zu)", facts->wait.place, facts->wait.of);
}

static void add_wait(struct hf_buf *out, const struct hf_view_wait *wait)
{
	hf_buf_add_text(out, wait->kind == HF_LOCK_KIND_GROUP ? "waits for a place in '" : "waits for '");
	hf_buf_add_shown(out, wait->name, strlen(wait->name));
	hf_buf_add_format(out, "', place %zu, ", wait->place);
	hf_view_duration(out, wait->waited_ns);
}

/*
 * What stands behind the command: why it needs a person, how it ended, or what it waits for. Returns how many bytes at its end say
 * what to type.
 */
static size_t add_note(struct hf_buf *out, const struct hf_session_info *info, const struct hf_view_facts *facts,
		     const struct hf_needs *needs)
{
	AUTO(hf_buf_done) struct hf_buf cause = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf background = HF_BUF_INIT;
	size_t typed = 0;

	add_cause(&cause, info);
	if (needs->n > 0) {
		const struct hf_need *need = &needs->list[0];

		/* An end is told with how long it ran, as that of any other session. */
		const char *why = has_ended(info) && cause.len > 0 ? cause.s : need->brief;

		hf_buf_add_text(out, "  ! ");
		hf_buf_add_shown(out, why, strlen(why));
		hf_buf_add_text(out, ": ");
		hf_buf_add_text(out, need->action);
		typed = strlen(": ") + strlen(need->action);
	} else if (info->next_in_ns >= 0) {
		hf_buf_add_text(out, "  (next in ");
		hf_view_duration(out, info->next_in_ns);
		hf_buf_add_text(out, cause.len > 0 ? "; last: " : "");
		hf_buf_add(out, cause.s, cause.len);
		hf_buf_add_char(out, ')');
	} else if (facts && facts->wait.is_known) {
		hf_buf_add_text(out, "  (");
		add_wait(out, &facts->wait);
		hf_buf_add_char(out, ')');
	} else if (hf_session_add_background(info, &background)) {
		hf_buf_add_text(out, "  (");
		hf_buf_add(out, background.s, background.len);
		hf_buf_add_char(out, ')');
	} else if (cause.len > 0) {
		hf_buf_add_text(out, "  (");
		hf_buf_add(out, cause.s, cause.len);
		hf_buf_add_char(out, ')');
	}
	if (info->log_dropped_bytes > 0) {
		hf_buf_add_text(out, "  [log: the first ");
		hf_view_size(out, info->log_dropped_bytes);
		hf_buf_add_text(out, " dropped]");
		typed = 0;
	}
	return typed;
}

size_t hf_view_session_cells(const struct hf_session_info *info, const struct hf_view_facts *facts,
			   struct hf_buf cells[HF_VIEW_SESSION_COLUMNS], struct hf_buf *note)
{
	const char *cwd = info->cwd && info->cwd[0] ? info->cwd : "-";
	struct hf_needs needs;

	hf_needs_find(info, facts, &needs);
	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_NAME], info->name, strlen(info->name));
	add_state(&cells[HF_SESSION_COLUMN_STATE], info, facts);
	hf_view_count(&cells[HF_SESSION_COLUMN_PID], info->pid ? info->pid : -1);
	add_age(&cells[HF_SESSION_COLUMN_AGE], info);
	hf_view_duration(&cells[HF_SESSION_COLUMN_LEFT], info->deadline_left_ns);
	hf_view_count(&cells[HF_SESSION_COLUMN_PROCS], info->processes);
	hf_view_size(&cells[HF_SESSION_COLUMN_MEM], info->memory_bytes >= 0 ? info->memory_bytes : info->memory_peak_bytes);
	hf_view_duration(&cells[HF_SESSION_COLUMN_CPU], info->cpu_ns);
	hf_view_duration(&cells[HF_SESSION_COLUMN_OUTPUT], info->output_age_ns);
	hf_view_count(&cells[HF_SESSION_COLUMN_TRY], info->attempt ? (int64_t)info->attempt : -1);
	hf_buf_add_u64(&cells[HF_SESSION_COLUMN_TOKEN], info->token);
	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_CWD], cwd, strlen(cwd));
	hf_view_size(&cells[HF_SESSION_COLUMN_PEAK], info->memory_peak_bytes);
	hf_view_size(&cells[HF_SESSION_COLUMN_BYTES], info->output_bytes);
	hf_buf_add_text(&cells[HF_SESSION_COLUMN_NEEDS], needs.n > 0 ? needs.list[0].code : "-");
	hf_buf_add_shown(&cells[HF_SESSION_COLUMN_COMMAND], info->command, strlen(info->command));
	return add_note(note, info, facts, &needs);
}

/* -- order -------------------------------------------------------------------------- */

enum group {
	GROUP_NEEDS,
	GROUP_RUNS,
	GROUP_WAITS,
	GROUP_ENDED,
};

struct hf_view_rank hf_view_session_rank(const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	struct hf_needs needs;

	hf_needs_find(info, facts, &needs);
	if (needs.n > 0) {
		int64_t since = needs.list[0].since.ns;

		for (size_t i = 1; i < needs.n; i++)
			since = needs.list[i].since.ns < since ? needs.list[i].since.ns : since;
		/* What is computed from an age trembles by milliseconds: rows do not jump. */
		return (struct hf_view_rank){ GROUP_NEEDS, since / (2 * HF_SEC) };
	}
	if (has_ended(info))
		return (struct hf_view_rank){ GROUP_ENDED, -info->ended.ns };
	if (info->state == HF_SESSION_QUEUED)
		return (struct hf_view_rank){ GROUP_WAITS, facts && facts->wait.is_known ? (int64_t)facts->wait.place : INT64_MAX };
	return (struct hf_view_rank){ GROUP_RUNS, info->started.ns };
}

int hf_view_rank_compare(const struct hf_view_rank *a, const struct hf_view_rank *b)
{
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
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
	case HF_SESSION_SUSPENDED:
	case HF_SESSION_QUEUED:
	case HF_SESSION_STOPPING:
	case HF_SESSION_STOPPED:
	case HF_SESSION_WAITING:
	default:
		return HF_TONE_CARE;
	}
}
