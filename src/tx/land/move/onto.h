/* tx/land/move/onto.h - puts the commits of a candidate onto the branch. */
#ifndef TX_LAND_MOVE_ONTO_H
#define TX_LAND_MOVE_ONTO_H

#include "hf/tx/land/candidate/land.h"

struct hf_onto {
	struct hf_land_work *work; /* its `head` is where the commits go */
	const char *plan;          /* git runs in its sandboxes, and leaves the new commits there */
	const char *since;         /* the commits that are its ancestors do not move */
	const char *const *env;    /* the committer's, or NULL */
	int is_merge;              /* 1: one merge instead of a commit for each of the candidate's */
	int sign;
};

enum hf_onto_end {
	HF_ONTO_DONE,
	HF_ONTO_CONFLICT, /* landing.paths has the paths */
	HF_ONTO_REFUSED,  /* git failed, and said why */
	HF_ONTO_UNSIGNED, /* a commit could not be signed, and git said why */
};

/* The new tip is in *ret; the head itself if all is there already. Returns how it ended, or an error. */
int hf_land_put_onto(const struct hf_onto *onto, char ret[HF_LAND_OID_MAX], struct hf_buf *said, struct hf_err *err);

#endif
