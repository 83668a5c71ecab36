/* plan/recovery/op_look.h - both ends of an operation, for the files that look at it and that do it. */
#ifndef PLAN_RECOVERY_OP_LOOK_H
#define PLAN_RECOVERY_OP_LOOK_H

#include <sys/stat.h>

#include "hf/plan/commit/apply.h"

/* Both ends of an operation: where it takes from and where it puts to. */
struct hf_ends {
	int target_fd, stage_fd;
	const char *target_name, *stage_name;
	struct stat target, stage; /* st_ino 0: there is none */
};

/* Finds them. A directory that is gone leaves its descriptor negative. 0 or -errno. */
int hf_ends_find(struct hf_site *site, const struct hf_op *op, struct hf_ends *ret);

/* Of the operation with these ends: enum hf_op_state. */
int hf_ends_state(const struct hf_op *op, const struct hf_ends *e, enum hf_intent_phase phase);

#endif
