/* view/plan/plan.c - what is shown of a plan. */
#include <string.h>

#include "hf/view/plan/plan.h"

/* -- JSON -------------------------------------------------------------------------- */

/* A string; null for "". */
static json_t *maybe_text(const char *text)
{
	return hf_view_text(text[0] ? text : NULL);
}

static json_t *maybe_boolean(int value)
{
	return value < 0 ? json_null() : json_boolean(value);
}

static json_t *sandbox_json(const struct hf_sandbox_info *s)
{
	json_t *object = json_object();

	hf_view_set_name(&object, s->name);
	hf_view_set(&object, "target", hf_view_text(s->target));
	hf_view_set(&object, "path", hf_view_text(s->path));
	hf_view_set(&object, "strategy", json_string(hf_strategy_word(s->strategy)));
	hf_view_set(&object, "why", maybe_text(s->why));
	hf_view_set(&object, "since", hf_view_time(s->since));
	hf_view_set(&object, "dirty", maybe_boolean(s->dirty));
	hf_view_set(&object, "in_use", json_boolean(s->in_use));
	hf_view_set(&object, "settled", json_boolean(s->settled));
	hf_view_set(&object, "changed_files", s->files < 0 ? json_null() : json_integer((json_int_t)s->files));
	hf_view_set(&object, "changed_bytes", s->bytes < 0 ? json_null() : json_integer((json_int_t)s->bytes));
	return object;
}

json_t *hf_view_plan(const struct hf_plan_info *info)
{
	json_t *object = json_object(), *sandboxes = json_array();

	for (size_t i = 0; i < info->n_sandboxes; i++)
		hf_view_add(&sandboxes, sandbox_json(&info->sandboxes[i]));
	hf_view_set_name(&object, info->name);
	hf_view_set(&object, "state", json_string(hf_plan_state_word(info->state)));
	hf_view_set(&object, "reason", maybe_text(info->reason));
	hf_view_set(&object, "session", maybe_text(info->session));
	hf_view_set(&object, "token", info->token ? json_integer((json_int_t)info->token) : json_null());
	hf_view_set(&object, "created", hf_view_time(info->created));
	hf_view_set(&object, "age_ms", hf_view_since(info->created));
	hf_view_set(&object, "changed", hf_view_time(info->changed));
	hf_view_set(&object, "dirty", maybe_boolean(info->dirty));
	hf_view_set(&object, "in_use", json_boolean(info->in_use));
	hf_view_set(&object, "sandboxes", sandboxes);
	return object;
}

/* -- columns ----------------------------------------------------------------------- */

const struct hf_view_column hf_view_plan_columns[HF_VIEW_PLAN_COLUMNS] = {
	{ "PLAN", -20 }, { "STATE", -11 }, { "AGE", 7 }, { "WORK", -7 }, { "FILES", 5 }, { "SIZE", 5 }, { "SANDBOXES", 0 },
};

const char *hf_view_work(int dirty)
{
	return dirty < 0 ? "unknown" : dirty ? "dirty" : "clean";
}

static void add_behind(struct hf_buf *out, const char *before, const char *text)
{
	if (!text[0])
		return;
	hf_buf_add_text(out, before);
	hf_buf_add_shown(out, text, strlen(text));
}

/* Of all sandboxes; -1: one of them is not known. */
static void add_up(const struct hf_plan_info *info, int64_t *ret_files, int64_t *ret_bytes)
{
	*ret_files = *ret_bytes = 0;
	for (size_t i = 0; i < info->n_sandboxes; i++) {
		if (info->sandboxes[i].files < 0) {
			*ret_files = *ret_bytes = -1;
			return;
		}
		*ret_files += info->sandboxes[i].files;
		*ret_bytes += info->sandboxes[i].bytes;
	}
}

void hf_view_plan_cells(const struct hf_plan_info *info, struct hf_buf *cells, struct hf_buf *note)
{
	struct hf_buf *rest = &cells[6];
	int64_t files, bytes;

	hf_buf_add_shown(&cells[0], info->name, strlen(info->name));
	hf_buf_add_text(&cells[HF_VIEW_PLAN_STATE], hf_plan_state_word(info->state));
	hf_view_duration(&cells[2], hf_wall_now().ns - info->created.ns);
	hf_buf_add_text(&cells[3], info->in_use ? "in use" : hf_view_work(info->dirty));
	add_up(info, &files, &bytes);
	hf_view_count(&cells[4], files);
	hf_view_size(&cells[5], bytes);
	if (info->n_sandboxes == 0)
		hf_buf_add_text(rest, "-");
	for (size_t i = 0; i < info->n_sandboxes; i++) {
		add_behind(rest, i ? ", " : "", info->sandboxes[i].name);
		hf_buf_add_format(rest, " (%s)", hf_strategy_word(info->sandboxes[i].strategy));
	}
	add_behind(note, "  session ", info->session);
	add_behind(note, "  ", info->reason);
}

enum hf_view_tone hf_view_plan_tone(enum hf_plan_state state)
{
	return state == HF_PLAN_ERRORED	    ? HF_TONE_BAD :
	       state == HF_PLAN_COMMITTED ? HF_TONE_GOOD :
					      HF_TONE_CARE;
}
