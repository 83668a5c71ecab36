/* view/plan/land.h - candidates, what became of them, and the queues they are in, as JSON and as text. */
#ifndef VIEW_PLAN_LAND_H
#define VIEW_PLAN_LAND_H

#include "hf/base/buf.h"
#include "hf/view/json.h"
#include "holdfast/land.h"

/* The shape "candidate" of docs/JSON.md. NULL without memory. */
json_t *hf_view_candidate(const struct hf_land_info *info);

/* What `land begin` made, and what `land` came to. */
json_t *hf_view_land_begun(const char *name, const struct hf_land_place *place);
json_t *hf_view_land_report(const char *name, const struct hf_land_report *report);

/* Adds a candidate to the queue of its branch in the list of queues, which are made as they are met. */
void hf_view_queues_add(json_t **queues, const struct hf_land_info *info);

/* When all are there: says of each candidate which ones are ahead of it. */
void hf_view_queues_finish(json_t **queues);

/* The state of a candidate and what is said of it, for people: one whose run ended without landing is "kept", with what can be done. */
const char *hf_view_candidate_state(const struct hf_land_info *info);
#define HF_VIEW_NOTE_MAX 768
const char *hf_view_candidate_note(const struct hf_land_info *info, char out[HF_VIEW_NOTE_MAX]);

/* A candidate for people, a line for each member. */
void hf_view_candidate_text(const struct hf_land_info *info, struct hf_buf *out);

#endif
