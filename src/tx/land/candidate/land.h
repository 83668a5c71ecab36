/*
 * tx/land/candidate/land.h - landings on disk, and the parts that a landing is made of.
 *
 *   landings/<key>    the record of one candidate, JSON, replaced as a whole
 *
 * The holder of a candidate's lock (kind land, "n:NAME") changes its record. The holder of a branch's
 * lock (kind land, "b:DEV:INO:BRANCH") moves the branch.
 */
#ifndef TX_LAND_CANDIDATE_LAND_H
#define TX_LAND_CANDIDATE_LAND_H

#include <jansson.h>

#include "hf/base/buf.h"
#include "hf/plan/registry/registry.h"
#include "hf/tx/land/git/transaction.h"
#include "holdfast/land.h"
#include "holdfast/lock.h"
#include "holdfast/name.h"

struct hf_landings {
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	struct hf_plans *plans;
	struct hf_locks *locks;
	int dirfd; /* landings/ */
	char *const *envp; /* of the verifier, complete; NULL: the caller's, with those of the candidate */
};

struct hf_forecast_result;

struct hf_land_paths {
	struct hf_land_path *list; /* path is owned, kind is not */
	size_t n;
};

void hf_land_paths_done(struct hf_land_paths *paths);
int hf_land_paths_add(struct hf_land_paths *paths, const char *path, size_t len, const char *kind);

struct hf_land_rest {
	struct hf_land_kept *list; /* its texts are owned */
	size_t n;
};

/* Return 0 or -ENOMEM. */
int hf_land_rest_add(struct hf_land_rest *rest, const char *label, const char *text, const char *commit, const char *ref, unsigned commits);
void hf_land_rest_done(struct hf_land_rest *rest);

/* Removes the rows that no ref keeps. */
void hf_land_rest_forget(struct hf_land_rest *rest);

/* All text is owned, and never NULL after hf_landing_init or a load. */
struct hf_landing {
	char name[HF_NAME_MAX + 1];
	enum hf_land_state state;
	enum hf_land_merge merge;
	char *top;     /* of the work tree that the agent was given */
	char *git_dir; /* of that work tree */
	char *common;  /* the repository's directory: objects, refs */
	char *branch;  /* "refs/heads/main" */
	char *plan, *session, *verify, *message, *text;
	char *checkout; /* LANDING: the work tree that has the branch checked out; "": none */
	char *dir;      /* where the verifier runs; "": top */
	int64_t is_exact;  /* 1: a verifier in the sandbox sees only `sealed` and ignored files of the user */
	int64_t keep_plan; /* 1: HF_LAND_KEEP_PLAN */
	int64_t sign;      /* 1: HF_LAND_SIGN */
	char **also, **env, **write; /* NULL-ended, or NULL: as in hf_land_opts; and of `confine` */
	int64_t is_verified; /* 1: the verifier that ran after `sealed` has ended, and `after` is where it left HEAD */
	int64_t confine; /* enum hf_confine_flags of the run that it is the work of */
	char base[HF_LAND_OID_MAX], tip[HF_LAND_OID_MAX];
	char from[HF_LAND_OID_MAX], commit[HF_LAND_OID_MAX]; /* LANDING: the branch moves from, to */
	char sealed[HF_LAND_OID_MAX]; /* HEAD of the sandbox before a verifier ran there: what it wrote beside that does not land; "": none did */
	char unsealed[HF_LAND_OID_MAX]; /* where HEAD was before what the agent left was committed for that; "": it had left nothing */
	char after[HF_LAND_OID_MAX];  /* HEAD after that verifier, if it said no */
	char landed[HF_LAND_OID_MAX]; /* of a kept plan that lands again: the commit of the previous landing, which holds `base`; "": none */
	char forecast[HF_LAND_OID_MAX]; /* QUEUED: what it will be if those before it land; "": not known */
	struct hf_forecast_result *forecasted; /* not NULL: this is a forecast; its states go there, and not on disk */
	uint64_t token, dev, ino;
	int64_t verify_limit_ns, verify_ns;
	int rebased;
	unsigned commits, files, added, deleted;
	unsigned unsigned_commits; /* whose signatures a rebase took; of this landing, not on disk */
	struct hf_wall since, changed;
	unsigned left_out; /* paths that its commits changed, that a user was editing, and that were left out of them; of this landing, not on disk */
	char first_left_out[256];
	/* Of this landing, not on disk: */
	int is_there;    /* the branch had the change before */
	int is_unsigned; /* commits could not be signed */
	int is_signed;   /* the rebased commits were signed */
	char **unmatched; /* globs of `also` */
	struct hf_land_paths paths;
	struct hf_land_paths unlanded; /* files that the agent changed, and that neither its commits have nor git ignores: its sandbox is kept for them */
	struct hf_land_rest rest; /* work that HEAD of the sandbox does not have */
	struct hf_land_paths outside; /* that its commits change, and its agent did not: they were seen through the sandbox */
};

void hf_landing_done(struct hf_landing *landing);
int hf_landing_init(struct hf_landing *landing, const char *name);

/* Replaces one of the texts. -ENOMEM. */
int hf_landing_set(char **text, const char *value);

/* HF_E_NO_LANDING; HF_E_FORMAT: it was put away. */
int hf_landing_load(struct hf_landings *landings, const char *name, struct hf_landing *ret,
		    struct hf_err *err);
int hf_landing_save(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err);

/* Writes it without a sync. */
int hf_landing_note(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err);

#define HF_LAND_TEXT_MAX 256

/* Sets and saves a state with its reason, of which HF_LAND_TEXT_MAX - 1 bytes are kept. */
int hf_landing_become(struct hf_landings *landings, struct hf_landing *landing, enum hf_land_state state,
		      struct hf_err *err, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Returns 1 if a user has merged or cherry-picked its change into the branch; 0 also if that is not known. Runs git only if the branch was written since. */
int hf_landing_is_part(const struct hf_landing *landing);

/* QUEUED: its text when the process that landed it ended on the way. */
#define HF_LAND_INTERRUPTED "interrupted"

/* "main" of "refs/heads/main". */
const char *hf_land_short(const char *branch);

/* "refs/holdfast/<key>": what keeps the work. */
void hf_land_ref(const char *name, char out[HF_NAME_KEY_MAX + 32]);

/* Names of the locks and of the plans that a landing makes. */
void hf_land_lock_name(const char *name, char out[HF_NAME_MAX + 1]);
void hf_land_branch_lock_name(const struct hf_landing *landing, char out[HF_NAME_MAX + 1]);
void hf_land_plan_name(const char *name, char what, char out[HF_NAME_MAX + 1]);
#define HF_LAND_PLAN_FORECAST 's'
#define HF_LAND_PLAN_PREFIX   ".land-"

void hf_land_event(const struct hf_landings *landings, enum hf_event event, const char *name,
		   const struct hf_field *fields, size_t n);

/* -- the steps ---------------------------------------------------------------------- */

/* What a landing is carried out with. */
struct hf_land_work {
	struct hf_landings *landings;
	const struct hf_land_opts *opts;
	struct hf_landing landing;
	char head[HF_LAND_OID_MAX]; /* the branch, as it was read under its lock */
	int failures; /* of git in a sandbox, which sees the locks of a user's git through it: tried again */
	struct hf_land_transaction refs;
	int keeps_plan; /* 1: the sandbox holds a commit that does not land, and may be wanted */
	int is_ref_gone; /* 1: refs/holdfast/NAME was removed with the move of the branch */
	/* What diff-tree says of two commits, as last asked for (hf_land_changes). */
	char changes_from[HF_LAND_OID_MAX], changes_to[HF_LAND_OID_MAX];
	struct hf_buf changes;
};

#define HF_LAND_WORK_INIT .refs = HF_LAND_TRANSACTION_INIT, .changes = HF_BUF_INIT

void hf_land_work_done(struct hf_land_work *work);

/* One path that differs between two commits. */
struct hf_land_change {
	const char *path;
	unsigned old_mode, new_mode;     /* 0: it is not there */
	char old_oid[HF_LAND_OID_MAX], new_oid[HF_LAND_OID_MAX];
};

/* Reads what differs between two commits of the repository, once. 0; 1 with what git said; or an error. */
int hf_land_changes(struct hf_land_work *work, const char *from, const char *to, struct hf_buf *said, struct hf_err *err);

/* The next of them; *at begins as NULL. 0: there is none. */
int hf_land_next_change(const struct hf_land_work *work, const char **at, struct hf_land_change *ret);

/* How many files were added and deleted, and all that differ, of what was last read: into work->landing. */
void hf_land_count_changes(struct hf_land_work *work);

#define HF_LAND_TRIES 10

/*
 * Each returns 0 when the next step may follow; 1 when the candidate came to an end (REJECTED, CONFLICT or LANDED,
 * as its record says); less than 0 on an error.
 */
int hf_land_collect(struct hf_land_work *work, struct hf_err *err);

/*
 * The sandbox holds no change, and nothing was sealed. 1: the branch is where the candidate began, which makes it LANDED, with *ret_report filled; 0: hf_land
 * decides, or an error. The plan stays.
 */
int hf_land_nothing(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts, struct hf_land_report *ret_report,
		    struct hf_err *err);

/*
 * What the agent left is committed, in its sandbox, before a verifier runs there, and landing.sealed says where HEAD is. hf_land then takes that.
 * Returns 0 with *ret_report filled: WORKING, or REJECTED; else an error, as hf_land.
 */
int hf_land_seal(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts, struct hf_land_report *ret_report,
		 struct hf_err *err);

/* Its step, as those above. seal.c */
int hf_land_seal_work(struct hf_land_work *work, struct hf_err *err);

/* The verifier in the agent's sandbox said no, or was ended: notes where HEAD is, so that a commit that it made is not taken for the agent's. */
int hf_land_note_after(struct hf_landings *landings, const char *name, struct hf_err *err);

/*
 * The agent goes on in its sandbox: what a verifier wrote there is gone, what the agent had left uncommitted is uncommitted again, and the candidate is WORKING.
 * 0, also when there is no such candidate.
 */
int hf_land_reopen(struct hf_landings *landings, const char *name, struct hf_err *err);

/* The work of an agent in the sandbox of a candidate. */
struct hf_land_held {
	unsigned files; /* changed or new, and not ignored; committed or not */
	int is_nothing; /* 1: the agent changed nothing in the work tree, and HEAD has no commit of the agent */
};

/* Runs git in the sandbox. Returns 0 or an error. held.c */
int hf_land_look_held(struct hf_landings *landings, const char *name, struct hf_land_held *ret, struct hf_err *err);

/* Returns 1 if the candidate has landed and its kept plan holds no later work, 0 or an error. collect.c */
int hf_land_is_all_landed(struct hf_landings *landings, const char *name, struct hf_err *err);

/* Returns 0 if a candidate of that name may begin, or HF_E_PLAN_STATE if the work of another is kept. begin.c */
int hf_land_may_begin(struct hf_landings *landings, const char *name, struct hf_err *err);

/* What the options say becomes part of the candidate, and the limits of these plans as well. -EINVAL, -ENOMEM. terms.c */
int hf_landing_take_terms(struct hf_landing *landing, const struct hf_land_opts *opts, const struct hf_plans *plans, struct hf_err *err);

/* In hf_land_opts.flags: the verifier has accepted `sealed` in the agent's sandbox, in this run. */
#define HF_LAND_VERIFIED (1U << 16)

enum hf_land_sign {
	HF_LAND_SIGN_NONE,
	HF_LAND_SIGN_IF_POSSIBLE, /* commit.gpgSign: unsigned commits are reported */
	HF_LAND_SIGN_ALL,         /* HF_LAND_SIGN: each commit that lands */
};

/* Finds out how to sign the commits of the landing. Returns 0 or an error. terms.c */
int hf_land_ask_sign(const struct hf_landing *landing, enum hf_land_sign *ret, struct hf_err *err);

/* Removes the verifier's files from a kept sandbox after its landing, so that they do not land with later work. seal.c */
void hf_land_settle_kept(struct hf_land_work *work);

/* Gives the files that root has created in another owner's git directory to that owner. owner.c */
void hf_land_give(const struct hf_landing *landing);

/* Counts the signed commits between base and tip. land.c */
unsigned hf_land_count_signed(const struct hf_landing *landing);

/* A list of texts, copied; NULL when it is empty. -ENOMEM. */
int hf_landing_set_list(char ***list, const char *const *value);
void hf_landing_free_list(char ***list);
int hf_land_verify(struct hf_land_work *work, struct hf_err *err);

/* Moves the branch from `head` to `commit`. -EAGAIN: the branch is no longer at `head`. */
int hf_land_swap(struct hf_land_work *work, struct hf_err *err);

/* The landing is there to be seen? Then it is LANDED, with its event: 1. Else 0. */
int hf_land_prove(struct hf_land_work *work, struct hf_err *err);

/* The event of a candidate that was rejected or is in conflict; the other ends have theirs where they are proven. report.c */
void hf_land_tell_end(struct hf_land_work *work);

/* "; ..." with the work that did not land and is kept, or "". report.c */
void hf_land_kept_words(const struct hf_landing *landing, char *out, size_t cap);

/* The paths of a conflict go over to the report. -ENOMEM. */
int hf_land_fill_report(struct hf_land_work *work, struct hf_land_report *ret, struct hf_err *err);

/* What stays behind for people after it has landed goes: ref, plans. */
void hf_land_clean(struct hf_land_work *work);

/* A landing that died is finished or undone. Both locks are held. 1: it has landed; 0: to be landed. */
int hf_land_resume(struct hf_land_work *work, struct hf_err *err);

/* Sets landing.unmatched to the globs of `also` that match no path of the change. check.c */
int hf_land_check_also(struct hf_land_work *work, struct hf_err *err);

/* What came with a tip, as far as the check of what came tells it without more. */
struct hf_land_came {
	int is_known;     /* 1: `base` is an ancestor of the tip, with so many commits between the two */
	unsigned commits;
};

/*
 * Brings `tip` ("": HEAD, which is then filled in) and what it needs from the sandboxes of `plan` into the repository; what is reachable
 * from `base` is there. 1: what git said is in *ret_said (a refusal); 0; or an error. `came` may be NULL.
 */
int hf_land_export(struct hf_land_work *work, const char *plan, const char *base, char tip[HF_LAND_OID_MAX],
		   struct hf_land_came *came, struct hf_buf *ret_said, struct hf_err *err);

/* Brings landing.rest into the repository, as refs next to the candidate's. Return 0, 1 after a rejection, or an error. objects.c */
int hf_land_keep_rest(struct hf_land_work *work, struct hf_err *err);

/* As hf_land_drop, but keeps the refs of landing.rest. inspect.c */
int hf_land_forget(struct hf_landings *landings, const char *name, struct hf_err *err);

/* The place of a work tree whose directories are known. */
int hf_land_place_again(const char *top, const char *git_dir, const char *common, struct hf_land_place *ret, struct hf_err *err);

/* The same, asked of git. HF_E_LAND: it is no work tree. */
int hf_land_find_dirs(const char *dir, int checks_owner, struct hf_land_place *ret, struct hf_err *err);

/* Is the directory (absolute, resolved) part of a git work tree, so that what is made in it can land? 1, 0 or an error. */
int hf_land_is_worktree(const char *dir, struct hf_err *err);

/* The sandbox of the work tree; no other sandbox of a run has a name with this sign in it. */
#define HF_LAND_WORK_TREE   ".worktree"
#define HF_LAND_SANDBOX_MAX 24

/* The name of the sandbox over target `i` of a place. */
void hf_land_sandbox_name(const struct hf_land_place *place, size_t i, char out[HF_LAND_SANDBOX_MAX]);

/* hf_land_add_targets; with `untried` an overlay that cannot be mounted is told by the first command that enters (HF_E_NO_OVERLAY). */
int hf_land_make_targets(struct hf_plans *plans, const char *plan, const struct hf_land_place *place, int untried, struct hf_err *err);

/* A new plan over the targets of the place, instead of one of that name. */
int hf_land_new_plan(struct hf_landings *landings, const char *plan, const struct hf_land_place *place,
		     struct hf_err *err);
void hf_land_remove_plan(struct hf_landings *landings, const char *plan);

/* Removes the plans that a killed landing of the candidate made for itself. The candidate's lock is held. */
void hf_land_remove_made(struct hf_landings *landings, const struct hf_landing *landing);

/* -- fields.c ------------------------------------------------------------------------ */

/* The record as an object. NULL: no memory. */
json_t *hf_landing_encode(struct hf_landing *landing);

/* Fills *ret, which was initialized with the name. NULL, or what is wrong with the object. */
const char *hf_landing_decode(const json_t *root, struct hf_landing *ret);

#endif
