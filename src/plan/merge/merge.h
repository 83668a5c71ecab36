/*
 * plan/merge/merge.h - what the files of `plan commit --merge` share.
 *
 * A merge needs the version that both sides began with. One that is too young would be worse than none: what
 * the target's side changed before it would look as if the sandbox had taken it back. So a base is only
 * what is proven to have stood in the target at T0:
 *
 *   kept   the old version that another plan's commit left in its stage, if its ctime before that commit was
 *          below our T0 (or the one of our manifest)
 *   git    the file as HEAD had it at T0. HEAD is the one of T0 if its reflog did not change since, or
 *          by the time in the reflog if that commit's object is older than T0. What was changed and not
 *          committed at T0 is then a change of both sides; only where one of them took such a
 *          change back, that is not seen.
 */
#ifndef PLAN_MERGE_MERGE_H
#define PLAN_MERGE_MERGE_H

#include "hf/plan/commit/work.h"

#define HF_OID_MAX 64

/* One file that may be merged. */
struct hf_candidate {
	struct hf_unit *unit;
	struct hf_delta *delta;
	int dir;         /* "merged" of the sandbox, open; the unit's */
	char base[16];   /* name of the base in it; only there if `found` */
	char result[16]; /* name of the merged version */
	int found;
};

/* Copies the base from git to c->base, and sets the delta's base. 1, 0: there is none (the delta says why), or an error. */
int hf_merge_git_base(struct hf_candidate *c, struct hf_err *err);

/* Notes why a delta is not merged. Returns 0. */
int hf_unmerged(struct hf_delta *d, const char *why);

/* What a failure of git to run means, in words. */
const char *hf_merge_git_why(int status);

#endif
