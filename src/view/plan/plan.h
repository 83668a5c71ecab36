/* view/plan/plan.h - a plan with its sandboxes, as JSON and as a row. */
#ifndef VIEW_PLAN_PLAN_H
#define VIEW_PLAN_PLAN_H

#include "hf/view/columns.h"
#include "hf/view/json.h"
#include "holdfast/plan.h"

/* The shape "plan" of docs/JSON.md, with its sandboxes. NULL without memory. */
json_t *hf_view_plan(const struct hf_plan_info *info);

/* The shapes that the verbs of a plan have, each with the plan's name and key. NULL without memory. */
json_t *hf_view_plan_made(const char *plan);
json_t *hf_view_plan_added(const char *plan, const char *sandbox, const struct hf_plan_added *added,
			   const char *path);
json_t *hf_view_plan_place(const char *plan, const char *sandbox, const char *path);
json_t *hf_view_plan_recovered(const char *plan, int recovered);
json_t *hf_view_plan_removed(const char *plan);
json_t *hf_view_plan_collected(const struct hf_plan_gc_item *item);

/* Of commit, undo and rollback; `outcome` is "committed", "conflict", ... */
json_t *hf_view_plan_report(const char *plan, const char *outcome, const struct hf_plan_report *report);

/* Of a diff: one change, and the whole, which takes the list. */
json_t *hf_view_plan_change(const struct hf_change *change);
json_t *hf_view_plan_changes(const char *plan, json_t *changes);

/* "added", "changed", ... */
const char *hf_view_change_word(enum hf_change_kind kind);

/* "dirty", "clean", or "unknown" for -1. */
const char *hf_view_work(int dirty);

#define HF_VIEW_PLAN_COLUMNS 7
#define HF_VIEW_PLAN_STATE   1 /* the column that has the tone */

extern const struct hf_view_column hf_view_plan_columns[HF_VIEW_PLAN_COLUMNS];

/* Fills the cells, and what stands behind the last (session, reason); the caller made them with HF_BUF_INIT. */
void hf_view_plan_cells(const struct hf_plan_info *info, struct hf_buf *cells, struct hf_buf *note);

enum hf_view_tone hf_view_plan_tone(enum hf_plan_state state);

#endif
