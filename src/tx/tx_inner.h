/*
 * tx/tx_inner.h - a transactional run, as its three processes see it.
 *
 *     tx.c        the public starts; what the supervisor reports
 *     stage.c     the keeper's part: a plan for each attempt, entering it, keeping or dropping it
 *     plan.c      that plan: made, removed, or kept
 *     unlanded.c  work that neither landed nor was dropped
 *     branch.c    the same over a git work tree: the change lands on a branch
 *     landing.c   the commit, in a child of the keeper, and what came of it
 *     settle.c    the same when keeper or supervisor were killed
 *     options.c   options as text
 *
 * The supervisor makes the struct before it forks the keeper, which fills in its part. One page is shared by all of them:
 * the command's child says there why it could not enter, the landing child what it did, and the supervisor reads the report.
 */
#ifndef TX_TX_INNER_H
#define TX_TX_INNER_H

#include <limits.h>
#include <stdatomic.h>

#include "hf/plan/commit/moved.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/enter/enter.h"
#include "hf/run/stage.h"
#include "hf/tx/land/git/search.h"
#include "hf/tx/options.h"
#include "holdfast/land.h"

/* What the landing child came to. */
enum hf_tx_step {
	HF_TX_STEP_NONE = 0,      /* it did not come so far as to say */
	HF_TX_STEP_COMMITTED = 1, /* also when there was nothing to commit */
	HF_TX_STEP_FAILED = 2,    /* `err` says why; nothing was changed */
	HF_TX_STEP_DECLINED = 3,  /* the one that was asked said no */
	HF_TX_STEP_LEFT = 4,      /* HF_TX_COMMIT_NEVER */
	HF_TX_STEP_MOVED = 5,     /* a target changed while it was verified: `moved` */
	HF_TX_STEP_REFUSED = 6,   /* the candidate was rejected: `err` says why; its work is kept */
	HF_TX_STEP_SEALED = 7,    /* what the command made is set apart from what the verifier writes */
};

/* Shared by supervisor, keeper and their children. */
struct hf_tx_shared {
	struct hf_inside_fail fail;  /* of the last child that entered; sys 0: none */
	atomic_int step;             /* enum hf_tx_step; written last */
	int is_agreed;               /* HF_TX_COMMIT_ASK: the answer was yes; it is not asked for twice */
	char moved[HF_PLAN_MOVED_MAX];
	struct hf_err err;
	struct hf_tx_report report;
};

#define HF_TX_BESIDE_MAX (HF_PLAN_SANDBOXES_MAX + 1)

struct hf_tx {
	struct hf_state *state;
	const struct hf_tx_opts *given; /* of the caller, for its callbacks; NULL: none */
	struct hf_tx_shared *shared;

	/* The keeper's. */
	struct hf_tx_options o;
	char name[HF_NAME_MAX + 1];
	char plan[HF_NAME_MAX + 1];
	int lands;                      /* 1: on a branch; 0: it commits files */
	int is_automatic;               /* landing was not asked for */
	char branch[256];               /* that it lands on; "": it commits files, or is resumed */
	struct hf_land_search search;   /* what is dirty in the work tree, as long as that is looked for; then what is to be remembered of it */
	char *verify;                   /* the session's verifier, for a landing; NULL: none */
	int64_t verify_ns;
	char cwd[PATH_MAX];             /* of command and verifier; "": it cannot be told */
	char *const *env;               /* --env of the session; NULL: none */
	char *const *envp;              /* in the landing child: all variables of the command */
	struct hf_verified verified;    /* what the command or the verifier entered last saw, and since when */
	uint64_t token;
	uint32_t attempt;
	enum hf_outcome last;           /* of the previous attempt of this run */
	uint32_t retries;               /* left */
	int is_retried;                 /* the next attempt takes the place of one in conflict, whose work is given up */
	struct hf_journal *journal;
	struct hf_plans *plans;
	struct hf_confine confine;      /* of all that enters, by these plans and those of the landing child */
	int is_made;                    /* the plan is there for the next attempt */
	int has_entered;                /* a command worked in the plan, which is not made anew then */
	int is_tried;                   /* overlay was tried and does not work: a trial decides from now on */
	int is_told;                    /* what is special about the sandbox was said */
	int drop;                       /* the plan goes when the outcome is on disk */
	struct hf_enter *enter;
	struct hf_census_children children;
	int beside[HF_TX_BESIDE_MAX];   /* pidfds of those, and of the one that remembers the work tree */
	size_t n_beside;
};

/* The callbacks (run/stage.h), with `tx` as their argument. */
void hf_tx_fill_stage(struct hf_tx *tx, struct hf_stage *ret);

/* -- plan.c -------------------------------------------------------------------------- */

#define HF_TX_PLAN_NS  (10 * HF_SEC) /* for the plan's lock: another process may be looking at it */
#define HF_TX_LEAVE_NS (15 * HF_SEC) /* for the helper of a sandbox to see that its last process has ended, on a loaded machine */

/* Makes the plan of the next attempt. */
int hf_tx_make_plan(struct hf_tx *tx, struct hf_err *err);

/* Removes it with its changes. 0 also when there is none. */
int hf_tx_remove_plan(struct hf_tx *tx, struct hf_err *err);

/* Handles the sandbox of the previous run: continues in it, refuses, or drops it (HF_TX_DISCARD). */
int hf_tx_settle_kept(struct hf_tx *tx, const struct hf_stage_session *session, struct hf_err *err);

/* Returns 1 if the plan exists. */
int hf_tx_has_plan(struct hf_plans *plans, const char *plan);

/* Drops the sandbox of the previous attempt of this run. HF_E_DIRTY: its work succeeded. */
int hf_tx_replace_plan(struct hf_tx *tx, struct hf_err *err);

/* Returns 1 if it holds no work; 0 also if that cannot be known. */
int hf_tx_plan_is_clean(struct hf_tx *tx);

/* Are there options that only a landing has? */
int hf_tx_has_landing_options(const struct hf_tx_options *o);

/* Opens plans and journal in the calling process. */
int hf_tx_open_plans(struct hf_tx *tx, struct hf_err *err);

/* What enters through `plans` is confined as the options say. */
void hf_tx_confine(struct hf_tx *tx, struct hf_plans *plans);

/* The name of the plan of session `name`. HF_E_NAME: it would be too long. */
int hf_tx_plan_name(const char *name, char out[HF_NAME_MAX + 1], struct hf_err *err);

/* Tells the user, where the caller wants that. */
void hf_tx_say(const struct hf_tx *tx, const char *format, ...) __attribute__((format(printf, 2, 3)));

void hf_tx_event(const struct hf_tx *tx, enum hf_event event, const struct hf_field *fields, size_t n);

/* -- landing.c -------------------------------------------------------------------- */

int hf_tx_is_sealed(void *arg);
void hf_tx_seal(void *arg, char *const *envp);
int hf_tx_sealed(void *arg, enum hf_cause cause, struct hf_result *result);
int hf_tx_is_landing(void *arg);
void hf_tx_land(void *arg, char *const *envp);
int hf_tx_landed(void *arg, enum hf_cause cause, struct hf_result *result);

/* -- settle.c --------------------------------------------------------------------- */

/* The result of an attempt that was committed: `how` is what it came to before, "exit 0, verified". */
struct hf_result hf_tx_committed_result(const struct hf_tx_report *report, const char *how);

#endif
