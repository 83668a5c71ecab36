/* tx/land/candidate/lock.h - the locks of candidates and branches. */
#ifndef TX_LAND_CANDIDATE_LOCK_H
#define TX_LAND_CANDIDATE_LOCK_H

#include "hf/tx/land/move/forecast.h"

/* Of a candidate (`opts` NULL: after a moment HF_E_BUSY) or a branch: waits as `opts` says, and asks `alive` meanwhile. */
int hf_land_lock(struct hf_landings *landings, const char *lock_name, const struct hf_land_opts *opts,
		 struct hf_lock **ret_lock, struct hf_err *err);
/* The same of a branch, with a forecast (NULL: none) meanwhile. */
int hf_land_lock_branch(struct hf_landings *landings, const char *lock_name, const struct hf_land_opts *opts,
			struct hf_forecast *forecast, struct hf_lock **ret_lock, struct hf_err *err);
void hf_land_unlock(struct hf_lock **lock);

/* A record for a candidate over the work tree of `place`. */
int hf_land_new_record(const char *name, const char *plan, const struct hf_land_place *place,
		       struct hf_landing *ret, struct hf_err *err);

#endif
