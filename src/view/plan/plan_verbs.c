/* view/plan/plan_verbs.c - what the verbs of a plan say they have done. */
#include <stdio.h>
#include <string.h>

#include "hf/view/plan/plan.h"
#include "holdfast/name.h"

/* Every one of these objects begins with the plan it is about. */
static json_t *about(const char *plan)
{
	char key[HF_NAME_KEY_MAX] = "";
	json_t *object = json_object();

	hf_view_set(&object, "plan", hf_view_text(plan));
	(void)!hf_name_key(plan, strlen(plan), key, NULL);
	hf_view_set(&object, "key", hf_view_text(key[0] ? key : NULL));
	return object;
}

/* A string; null for "". */
static json_t *maybe_text(const char *text)
{
	return hf_view_text(text[0] ? text : NULL);
}

json_t *hf_view_plan_made(const char *plan)
{
	json_t *object = about(plan);

	hf_view_set(&object, "state", json_string(hf_plan_state_word(HF_PLAN_CREATED)));
	return object;
}

json_t *hf_view_plan_added(const char *plan, const char *sandbox, const struct hf_plan_added *added,
			   const char *path)
{
	json_t *object = hf_view_plan_place(plan, sandbox, path);

	hf_view_set(&object, "strategy", json_string(hf_strategy_word(added->strategy)));
	hf_view_set(&object, "why", maybe_text(added->why));
	hf_view_set(&object, "same_path", json_boolean(added->same_path));
	return object;
}

json_t *hf_view_plan_place(const char *plan, const char *sandbox, const char *path)
{
	json_t *object = about(plan);

	hf_view_set(&object, "sandbox", hf_view_text(sandbox));
	hf_view_set(&object, "path", hf_view_text(path));
	return object;
}

json_t *hf_view_plan_recovered(const char *plan, int recovered)
{
	json_t *object = about(plan);

	hf_view_set(&object, "recovered", json_boolean(recovered));
	return object;
}

json_t *hf_view_plan_removed(const char *plan)
{
	json_t *object = about(plan);

	hf_view_set(&object, "removed", json_true());
	return object;
}

json_t *hf_view_plan_collected(const struct hf_plan_gc_item *item)
{
	json_t *object = about(item->name);

	hf_view_set(&object, "removed", json_boolean(item->removed));
	hf_view_set(&object, "why", hf_view_text(item->why));
	return object;
}

/* -- changes and reports ------------------------------------------------------------- */

const char *hf_view_change_word(enum hf_change_kind kind)
{
	static const char *const words[] = {
		[HF_CHANGE_ADDED] = "added", [HF_CHANGE_CHANGED] = "changed",
		[HF_CHANGE_DELETED] = "deleted", [HF_CHANGE_TYPE] = "type",
		[HF_CHANGE_MODE] = "mode", [HF_CHANGE_SKIPPED] = "skipped",
	};

	return words[kind];
}

static json_t *mode_json(mode_t mode)
{
	char text[16];

	if (!mode)
		return json_null();
	(void)snprintf(text, sizeof(text), "%06o", (unsigned)mode);
	return json_string(text);
}

json_t *hf_view_plan_change(const struct hf_change *change)
{
	json_t *object = json_object();

	hf_view_set(&object, "sandbox", hf_view_text(change->sandbox));
	hf_view_set(&object, "path", hf_view_text(change->path));
	hf_view_set(&object, "kind", json_string(hf_view_change_word(change->kind)));
	hf_view_set(&object, "old_mode", mode_json(change->old_mode));
	hf_view_set(&object, "new_mode", mode_json(change->new_mode));
	hf_view_set(&object, "old_bytes", hf_view_number(change->old_bytes, 1));
	hf_view_set(&object, "new_bytes", hf_view_number(change->new_bytes, 1));
	return object;
}

json_t *hf_view_plan_changes(const char *plan, json_t *changes)
{
	json_t *object = about(plan);

	hf_view_set(&object, "changes", changes);
	return object;
}

static json_t *conflict_json(const struct hf_conflict *conflict)
{
	json_t *object = json_object();

	hf_view_set(&object, "sandbox", hf_view_text(conflict->sandbox));
	hf_view_set(&object, "path", hf_view_text(conflict->path));
	hf_view_set(&object, "kind", hf_view_text(conflict->kind));
	hf_view_set(&object, "by", maybe_text(conflict->by));
	hf_view_set(&object, "why", maybe_text(conflict->why));
	return object;
}

static json_t *merged_json(const struct hf_merged *merged)
{
	json_t *object = json_object();

	hf_view_set(&object, "sandbox", hf_view_text(merged->sandbox));
	hf_view_set(&object, "path", hf_view_text(merged->path));
	hf_view_set(&object, "kind", hf_view_text(merged->kind));
	hf_view_set(&object, "base", hf_view_text(merged->base));
	return object;
}

json_t *hf_view_plan_report(const char *plan, const char *outcome, const struct hf_plan_report *report)
{
	json_t *object = about(plan), *conflicts = json_array(), *merged = json_array();

	for (size_t i = 0; i < report->n_conflicts; i++)
		hf_view_add(&conflicts, conflict_json(&report->conflicts[i]));
	for (size_t i = 0; i < report->n_merged; i++)
		hf_view_add(&merged, merged_json(&report->merged[i]));
	hf_view_set(&object, "outcome", json_string(outcome));
	hf_view_set(&object, "added", json_integer((json_int_t)report->added));
	hf_view_set(&object, "changed", json_integer((json_int_t)report->changed));
	hf_view_set(&object, "deleted", json_integer((json_int_t)report->deleted));
	hf_view_set(&object, "same", json_integer((json_int_t)report->same));
	hf_view_set(&object, "bytes", json_integer((json_int_t)report->bytes));
	hf_view_set(&object, "by_other", json_boolean(report->by_other));
	hf_view_set(&object, "merged", merged);
	hf_view_set(&object, "conflicts", conflicts);
	return object;
}
