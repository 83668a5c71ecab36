/*
 * tx/land/take/outside.h - a user's edits in the commits of an agent.
 *
 * The sandbox shows what a user saves in the work tree meanwhile, so an agent that commits everything ("git commit -a") commits that as well. It is not its work, and
 * its user has not committed it: the agent's commits are made anew without such a path.
 */
#ifndef TX_LAND_TAKE_OUTSIDE_H
#define TX_LAND_TAKE_OUTSIDE_H

#include "hf/tx/land/candidate/land.h"

/*
 * Leaves out of the commits between base and tip what stands in landing.outside and is not committed in the user's work tree now: landing.tip, .commits and .outside are
 * changed then. What cannot be told, or not be left out (a merge among the commits, more than twenty paths, nothing would remain), stays in landing.outside, and is a conflict when
 * it is to land. 0 or an error.
 */
int hf_land_leave_out(struct hf_land_work *work, struct hf_err *err);

#endif
