/*
 * tx/land/git/transaction.h - one ref, moved by compare-and-swap: git update-ref --stdin in two steps.
 *
 * Prepared, git holds the ref's lock: no commit of a user can come between. When we die, git sees
 * the end of its input and gives the lock back.
 */
#ifndef TX_LAND_GIT_TRANSACTION_H
#define TX_LAND_GIT_TRANSACTION_H

#include "hf/exec/spawn.h"
#include "hf/tx/land/candidate/land.h"

struct hf_land_transaction {
	struct hf_child child;
	int in, out;
};

#define HF_LAND_TRANSACTION_INIT { HF_CHILD_INIT, -1, -1 }

/* -EAGAIN: the ref is not at landing->from, or another git has its lock. */
int hf_land_transaction_prepare(const struct hf_landing *landing, struct hf_land_transaction *ret,
				struct hf_err *err);
int hf_land_transaction_commit(struct hf_land_transaction *transaction);

/* Ends git: what was not committed is as before. */
void hf_land_transaction_done(struct hf_land_transaction *transaction);

/* Locks of a git that was killed with us go, when their content is ours. */
void hf_land_transaction_sweep(const struct hf_landing *landing);

#endif
