/* tx/land/take/connected.h - is everything there that a tip needs? */
#ifndef TX_LAND_TAKE_CONNECTED_H
#define TX_LAND_TAKE_CONNECTED_H

#include "hf/tx/land/candidate/land.h"

/* 0 and *came filled; more: git's exit status, and what it said; or an error. `env`: of the quarantine that the new objects are in. */
int hf_land_connected(struct hf_land_work *work, const char *const *env, const char *tip, const char *base, struct hf_land_came *came,
		      struct hf_buf *said, struct hf_err *err);

#endif
