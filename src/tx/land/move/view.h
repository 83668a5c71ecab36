/*
 * tx/land/move/view.h - limits the view of a verifier to the commit that lands, and to files that git ignores.
 *
 * A sandbox shows the user's work tree wherever nothing was changed inside: untracked files, files marked skip-worktree or assume-unchanged, and the
 * checkouts of submodules. None of these lands.
 */
#ifndef TX_LAND_MOVE_VIEW_H
#define TX_LAND_MOVE_VIEW_H

#include "hf/base/buf.h"
#include "hf/tx/land/candidate/land.h"

struct hf_view {
	struct hf_land_work *work;
	const char *plan;
	struct hf_buf others; /* other repositories in the work tree, "PATH/" with a NUL: these stay visible */
};

#define HF_VIEW_INIT(work, plan) { work, plan, HF_BUF_INIT }

void hf_view_done(struct hf_view *view);

/* Removes the marks skip-worktree and assume-unchanged from the sandbox's index. Call it before a checkout. Return 0 or an error. */
int hf_view_unmark(const struct hf_view *view, struct hf_err *err);

/*
 * HEAD is checked out: removes untracked files from the sandbox, and checks submodules out at the recorded commits. Return 0; 1 after a submodule failed,
 * which is recorded as a CONFLICT; or an error.
 */
int hf_view_hide(struct hf_view *view, struct hf_err *err);

/* Call it after the verifier. Return -EAGAIN if the user saved a file since hf_view_hide that the verifier could see, 0, or an error. */
int hf_view_check(struct hf_view *view, const char *commit, struct hf_err *err);

#endif
