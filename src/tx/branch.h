/* tx/branch.h - a transactional run over a git work tree that lands on a branch (land.h) instead of committing files. */
#ifndef TX_BRANCH_H
#define TX_BRANCH_H

#include "hf/tx/tx_inner.h"

/* Decides whether the run lands or commits files: tx->lands. */
int hf_tx_branch_choose(struct hf_tx *tx, const struct hf_stage_session *session, struct hf_err *err);

/* Makes the sandboxes of a plan that is new, and the candidate. */
int hf_tx_branch_begin(struct hf_tx *tx, struct hf_err *err);

/* What git was asked for there is not needed any more. */
void hf_tx_branch_stop(struct hf_tx *tx);

/* Before the first command enters: what is dirty in the work tree is told, and hidden from it if its base is HEAD. */
int hf_tx_branch_ready(struct hf_tx *tx, struct hf_err *err);

/* Once it has entered: starts a child that remembers what git said of the work tree (land/status/remembered.h). 1, or 0: there is nothing to remember. */
int hf_tx_branch_remember(struct hf_tx *tx, pid_t *ret_child);

/* The command goes on in the sandbox that the run before left: that is as the command left it, whatever a verifier did there. */
int hf_tx_branch_reopen(struct hf_tx *tx, struct hf_err *err);

/* Before anything of the run before is dropped: HF_E_PLAN_STATE, its work is kept as a candidate. */
int hf_tx_branch_may_begin(struct hf_tx *tx, struct hf_err *err);

/* The attempt failed, and a verifier may have run in its sandbox. */
void hf_tx_branch_refused(struct hf_tx *tx);

/* After its plan was removed, for which the last of its processes is waited: gives up what the run before left, if it never came so far as to be kept in the repository; or, in a retry, is in conflict. */
int hf_tx_branch_forget(struct hf_tx *tx, struct hf_err *err);

/* In the sealing child: what the command left is committed, before the verifier can add to it. */
enum hf_tx_step hf_tx_branch_seal(struct hf_tx *tx, struct hf_plans *plans, struct hf_journal *journal);

/* The sandbox holds no change: 1, with the report filled, when the branch is still where the command began. 0: the landing child decides. */
int hf_tx_branch_nothing(struct hf_tx *tx);

/* In the landing child: lands, and fills the report. */
enum hf_tx_step hf_tx_branch_land(struct hf_tx *tx, struct hf_plans *plans, struct hf_journal *journal);

/*
 * What became of the landing of `name` whose process was killed: 1 landed, with *ret filled, 0 not, or an error. -ENOENT: the plan of
 * the run says that it was to be committed, not landed.
 */
int hf_tx_branch_settled(struct hf_state *state, struct hf_journal *journal, struct hf_plans *plans, const char *name,
			 const char *plan, struct hf_tx_report *ret, struct hf_err *err);

#endif
