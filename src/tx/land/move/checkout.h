/* tx/land/move/checkout.h - the work tree that has the branch checked out, changed in a plan. */
#ifndef TX_LAND_MOVE_CHECKOUT_H
#define TX_LAND_MOVE_CHECKOUT_H

#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/git.h"

struct hf_checkout {
	struct hf_land_work *work;
	struct hf_land_place place;
	const char *top; /* of that; NULL: the branch is checked out nowhere */
	char plan[HF_NAME_MAX + 1];
	char **ignore; /* NULL-ended: what changed in the sandbox and is not to be committed */
	size_t n_ignore;
	int keep; /* 1: the plan stays */
};

#define HF_CHECKOUT_INIT { 0 }

/* Where it is checked out. 1: a CONFLICT that was recorded (it is being rebased). */
int hf_checkout_find(struct hf_land_work *work, struct hf_checkout *ret, struct hf_err *err);

/* The plan, with files and index as of the new commit. 1: a CONFLICT; HF_E_BUSY: git has the index. */
int hf_checkout_prepare(struct hf_land_work *work, struct hf_checkout *checkout, struct hf_err *err);

/* The times in the index are those of before the commit; git would read every file that landed again. */
void hf_checkout_refresh(const struct hf_checkout *checkout);

/* git in that plan, at the top. edits.c */
struct hf_git hf_checkout_inside(const struct hf_checkout *checkout, struct hf_buf *out, struct hf_buf *said);

/*
 * Is there a path that git itself would not refuse to change? A file of the user's in the way of one that is added, also one that git
 * ignores; a file that the user has deleted, or whose directory the user has replaced by a symbolic link.
 */
int hf_checkout_is_in_doubt(const struct hf_checkout *checkout);

/* Notes in landing.paths each path that the landing changes and the user has changed. All of the work tree is looked at. */
int hf_checkout_find_edits(struct hf_checkout *checkout, struct hf_err *err);

/* Gives the files that root writes in the plan to the owner of the work tree. Returns 0 or an error. owner.c */
int hf_checkout_give(const struct hf_checkout *checkout, struct hf_err *err);

int hf_checkout_is_committed(struct hf_land_work *work, const struct hf_checkout *checkout);
void hf_checkout_done(struct hf_checkout *checkout);

#endif
