/* tx/land/candidate/begin.h - the start of a candidate, in steps. */
#ifndef TX_LAND_CANDIDATE_BEGIN_H
#define TX_LAND_CANDIDATE_BEGIN_H

#include "hf/tx/land/candidate/land.h"

/*
 * HEAD, its branch and the index become the sandbox's own (plan/target/pins.h), so that a landing of another candidate, or a commit of a user, does not
 * move them under the agent's hands: its next commit would undo that. landing->base becomes the commit that HEAD is at. pin.c
 */
int hf_land_pin(struct hf_landings *landings, struct hf_landing *landing, const struct hf_land_place *place, struct hf_err *err);

/* hf_land_begin but for what is dirty. `opts`: the terms on which it is to land; NULL: none yet. */
int hf_land_begin_pinned(struct hf_landings *landings, const char *name, const char *plan, const struct hf_land_place *place,
			 const struct hf_land_opts *opts, struct hf_err *err);

/* In the sandbox: the files that a user changed are as they are committed (is_changed), new ones are gone (has_untracked). */
int hf_land_restore(struct hf_landings *landings, const char *plan, const struct hf_land_place *place, int is_changed, int has_untracked,
		    struct hf_err *err);

#endif
