/*
 * tx/land/git/transaction.h - the refs of a landing, changed by one git update-ref --stdin.
 *
 * First refs/holdfast/NAME keeps the work; then the branch is moved by compare-and-swap, in two steps, and the other ref goes with it.
 * Prepared, git holds the ref's lock: no commit of a user can come between. When we die, git sees
 * the end of its input and gives the lock back. Between the two git waits, and holds nothing; not while a verifier
 * runs, whose processes can be ended for certain only by a parent without other children (exec/command.h).
 */
#ifndef TX_LAND_GIT_TRANSACTION_H
#define TX_LAND_GIT_TRANSACTION_H

#include "hf/exec/spawn.h"
#include "holdfast/err.h"

struct hf_landing;

struct hf_land_transaction {
	struct hf_child child;
	int in, out, said;
	char words[200]; /* what git said of its own when it ended */
};

#define HF_LAND_TRANSACTION_INIT { HF_CHILD_INIT, -1, -1, -1, "" }

/* refs/holdfast/NAME is at landing->tip: 0. 1: git refused; or an error. */
int hf_land_transaction_keep(const struct hf_landing *landing, struct hf_land_transaction *transaction, struct hf_err *err);

/*
 * -EAGAIN: the branch is not at landing->from any more. Another git that has a lock is waited for, some seconds; then HF_E_TIMEOUT names the lock, with
 * what git said. A git that kept a ref goes on, else one is started.
 */
int hf_land_transaction_prepare(const struct hf_landing *landing, struct hf_land_transaction *transaction,
				struct hf_err *err);

/* The branch is at landing->commit, and refs/holdfast/NAME is gone. -EAGAIN: git did not say so. */
int hf_land_transaction_commit(struct hf_land_transaction *transaction);

/* What became of a commit that was not answered: 0: the branch is at landing->commit; -EAGAIN: it was moved by another; else why it is where it was. */
int hf_land_transaction_failed(const struct hf_landing *landing, struct hf_land_transaction *transaction, struct hf_err *err);

/* Ends git: what was not committed is as before. */
void hf_land_transaction_done(struct hf_land_transaction *transaction);

/* Locks of a git that was killed with us go, when their content is ours. */
void hf_land_transaction_sweep(const struct hf_landing *landing);

#endif
