/*
 * plan/commit/apply.h - doing and undoing the operations of an intent, each of them once.
 *
 * An operation that is asked for is looked at first: done, not done, or neither, which means
 * that another process changed the target meanwhile. Nothing here syncs or writes a record.
 */
#ifndef PLAN_COMMIT_APPLY_H
#define PLAN_COMMIT_APPLY_H

#include "hf/plan/recovery/intent.h"

/* A directory that was opened for the operation before: the next is often in the same one. */
struct hf_place {
	int fd;
	char *path;
};

/* The open directories of one target of an intent. */
struct hf_site {
	int target_fd, stage_fd;
	struct hf_place target_dir, stage_dir, aside_dir;
};

#define HF_SITE_INIT { -1, -1, { -1, NULL }, { -1, NULL }, { -1, NULL } }

void hf_site_done(struct hf_site *site);

enum hf_op_state {
	HF_OP_OPEN = 0,    /* not done, and can be */
	HF_OP_DONE = 1,
	HF_OP_CHANGED = 2, /* it was done; since then another process changed the entry */
	HF_OP_FOREIGN = 3, /* not done, and the entry is no longer the one of the intent */
};

/* The state of an operation, or -errno. */
int hf_op_look(struct hf_site *site, const struct hf_op *op, enum hf_intent_phase phase);

/*
 * Looks at an old directory that was just taken out, which stands at (dirfd, name) now. Returns
 * 1 when it is what was checked, 0 when not, or -errno.
 */
typedef int hf_op_recheck_fn(void *arg, const struct hf_op *op, int dirfd, const char *name);

struct hf_apply {
	const struct hf_intent *intent;
	struct hf_site *sites;     /* one for each target of the intent */
	hf_op_recheck_fn *recheck; /* may be NULL */
	void *arg;
	const struct hf_op *stuck; /* the operation that failed */
	size_t n_left;             /* operations that could not be undone: their entries are foreign */
};

/*
 * Does what is not done, in order. Returns 0; HF_E_CHANGED: what came out, or stood in the way, is
 * not what the intent says (then this operation was taken back); -errno. `stuck` is set.
 */
int hf_apply_forward(struct hf_apply *apply);

/*
 * Undoes what is done, backwards. Entries that another process changed since are left alone, and
 * counted. Returns 0, or the first -errno, after going on past it.
 */
int hf_apply_back(struct hf_apply *apply);

/* That an operation failed with -errno `r`, as an error about the whole path of its entry. Returns `r`. */
int hf_apply_failed(const struct hf_intent *intent, const struct hf_op *op, int r, struct hf_err *err);

#endif
