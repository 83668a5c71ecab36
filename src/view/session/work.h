/*
 * view/session/work.h - the members `plan` and `land` of a session: what its sandbox holds, and how far its change is on the way to its branch.
 *
 *     work = hf_view_work_open(state);           once for a look at all sessions
 *     hf_view_work_set(work, info, &object);     for each of them, on what hf_view_session made
 *     hf_view_work_free(work);
 *
 * What cannot be read is not known: both members are null then.
 */
#ifndef VIEW_SESSION_WORK_H
#define VIEW_SESSION_WORK_H

#include "hf/view/json.h"
#include "holdfast/run.h"
#include "holdfast/state.h"

struct hf_view_work;

/* NULL: there are no plans that can be read, or no memory. */
struct hf_view_work *hf_view_work_open(struct hf_state *state);
void hf_view_work_free(struct hf_view_work *work);

/* `work` may be NULL. */
void hf_view_work_set(struct hf_view_work *work, const struct hf_session_info *info, json_t **session);

#endif
