/* plan/stage/stage.h - what the files that turn deltas into operations share. */
#ifndef PLAN_STAGE_STAGE_H
#define PLAN_STAGE_STAGE_H

#include "hf/plan/commit/work.h"

struct hf_stage {
	struct hf_work *work;
	struct hf_unit *unit;
	uint16_t index; /* of the unit */
	size_t room;    /* of the intent's operations */
	const char *const *ignore;
	struct hf_err *err;
};

/* Reports ENOMEM. */
int hf_stage_no_memory(const struct hf_stage *s);

/* Adds an operation of this unit; NULL: no memory (or a NULL string, which is the same). */
struct hf_op *hf_stage_op(struct hf_stage *s, enum hf_op_kind kind, const char *path, const char *slot);

/* A new name in the stage for what comes out of the target, or is moved aside. */
const char *hf_stage_slot(struct hf_stage *s, const char *dir);

/* 1 when the delta brings something to the target. */
static inline int hf_stage_lands(const struct hf_delta *d)
{
	return !d->same && (d->op == HF_OP_EXCHANGE || d->op == HF_OP_NEW);
}

/* -- stage_bring.c -------------------------------------------------------------------- */

/* Opens the unit's stage, empty: what an attempt before left there came to nothing. */
int hf_stage_open(struct hf_stage *s);

/* Brings each new version to the stage, if it is not there, and gives each delta its slot. */
int hf_stage_bring(struct hf_stage *s);

/* Makes a directory that may be there already. */
int hf_stage_make_dir(int dirfd, const char *name, struct hf_err *err);

/* -- stage_git.c ---------------------------------------------------------------------- */

/* Length of the path of the git directory that `path` is in, or 0. */
size_t hf_git_dir_of(const char *path);

/* Takes git's lock if the delta is below a git directory of the target, once for each. */
int hf_stage_git_lock(struct hf_stage *s, const struct hf_delta *d);

/* The locks come back into the stage, under other names. */
int hf_stage_git_return(struct hf_stage *s);

#endif
