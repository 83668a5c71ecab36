/*
 * plan/commit/work.h - a verb at work on one plan: its locks, its sandboxes, its intent.
 *
 * Order, which every verb keeps: the plan's lock; recovery of what a dead process left; the record;
 * the targets' locks by (device, inode); the targets. All of it is given back by hf_work_done.
 */
#ifndef PLAN_COMMIT_WORK_H
#define PLAN_COMMIT_WORK_H

#include "hf/plan/commit/apply.h"
#include "hf/plan/diff/delta.h"

#define HF_STAGE_OLD  "old"  /* below a sandbox: what was deleted from the target */
#define HF_STAGE_LEFT "left" /* what was not committed */
#define HF_STAGE_MERGED "merged" /* files that both sides changed, merged */

/* In the plan's directory while a stage may stand in a target, so that a crash leaves none behind. */
#define HF_STAGED "staged"

/* How long a verb waits for the commit of another plan to the same target, if the caller did not say. */
#define HF_TARGET_WAIT_NS (30 * HF_SEC)

/* One sandbox and its target, open. */
struct hf_unit {
	struct hf_sandbox_record *sandbox;
	int sandbox_fd, target_fd, stage_fd;
	int merged_fd; /* HF_STAGE_MERGED, while files are merged; -1 */
	int in_target; /* the stage is in the target: it is on another mount than the sandbox */
	struct hf_census_source census;
	struct hf_manifest manifest;
	struct hf_restored restored;
	struct hf_base base;
	struct hf_deltas deltas;
};

struct hf_work {
	struct hf_plans *plans;
	struct hf_plan_record record;
	struct hf_lock *lock;
	uint64_t token;
	int64_t wait_ns; /* how long the caller waits for a lock; 0: it did not say */
	int plan_fd;
	struct hf_lock *target_locks[HF_PLAN_SANDBOXES_MAX];
	size_t n_target_locks;
	struct hf_unit *units;
	size_t n_units;
	struct hf_intent intent;
	struct hf_site *sites; /* one for each target of the intent */
	char **strings;        /* that the intent's operations point to */
	size_t n_strings;
	size_t n_slots;        /* names given away in stages */
};

#define HF_WORK_INIT { .plan_fd = -1, .record = HF_PLAN_RECORD_INIT, .intent = HF_INTENT_INIT }

/* Takes the plan's lock and reads the record, after recovering what was left. */
int hf_work_begin(struct hf_work *work, struct hf_plans *plans, const char *plan, int64_t wait_ns,
		  struct hf_err *err);

/* The same without recovering. */
int hf_work_lock(struct hf_work *work, struct hf_plans *plans, const char *plan, int64_t wait_ns,
		 struct hf_err *err);

/* Takes the locks of all targets of the record. */
int hf_work_lock_targets(struct hf_work *work, struct hf_err *err);

/* Opens sandboxes and targets, and reads what each target was. */
int hf_work_open_units(struct hf_work *work, struct hf_err *err);

/* Finds what each sandbox changed. `flags` as in struct hf_delta_walk. */
int hf_work_find_deltas(struct hf_work *work, const char *const *ignore, unsigned flags,
			struct hf_err *err);

void hf_work_done(struct hf_work *work);

/* The directory of the sandbox that has its entries. */
const char *hf_unit_top(const struct hf_unit *unit);

/* The prefix of overlayfs' attributes in it; NULL: clone or copy. */
const char *hf_unit_prefix(const struct hf_unit *unit);

/* Keeps a formatted string as long as the work; NULL: no memory. */
const char *hf_work_string(struct hf_work *work, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ".holdfast-<key>": the stage in a target. */
void hf_stage_name(const char *plan, char out[HF_NAME_KEY_MAX + 16]);

/* -- stage.c ------------------------------------------------------------------------ */

/*
 * Brings what is to land to the targets' mounts and makes the list of operations from the
 * deltas. Nothing of a target changes, but for the stage in one on another mount.
 */
int hf_stage_build(struct hf_work *work, const char *const *ignore, struct hf_err *err);

/* -- stage_clear.c ------------------------------------------------------------------- */

/* Removes what hf_stage_build made in targets, if it did. 0 or the first -errno. */
int hf_stage_clear(int plan_fd, const struct hf_plan_record *record);

/* The same before the plan itself goes: marked or not, and synced. */
int hf_stage_forget(int plan_fd, const struct hf_plan_record *record);

/* -- carry_out.c ---------------------------------------------------------------------- */

/* HF_E_STALE unless every fence of the intent is current. */
int hf_work_prove_fences(const struct hf_work *work, struct hf_err *err);

/*
 * The part of a commit that must be all or nothing: from the intent to the record. On failure
 * everything is as before, or (the plan stays PREPARED) left to recovery. HF_E_CHANGED with the
 * operation in *ret_stuck: a target changed under our hands.
 */
int hf_carry_out(struct hf_work *work, hf_op_recheck_fn *recheck, void *arg,
		 const struct hf_op **ret_stuck, struct hf_err *err);

/* Syncs each file system of the work once: state, stages, targets. 0 or -errno. */
int hf_work_sync(const struct hf_work *work);

/* Opens target and stage of each target of the intent, proven by inode. */
int hf_sites_open(struct hf_work *work, struct hf_err *err);

/* Proves all tokens and sets the phase APPLY, under their guards. HF_E_STALE and the like. */
int hf_work_begin_apply(struct hf_work *work, struct hf_err *err);

/* -- conclude.c ------------------------------------------------------------------------ */

/* The record, the event (unless `told`) and the end of the intent, once every operation is done. */
void hf_work_conclude(struct hf_work *work, int told);

/* The last of these alone. */
void hf_intent_end(struct hf_work *work);

/* Notes with which ctime each entry was left after an undo. 0 or -errno. */
int hf_work_note_restored(struct hf_work *work);

/* All that follows once every operation is undone. `n_left`: entries that could not be. */
int hf_work_withdraw(struct hf_work *work, size_t n_left, struct hf_err *err);

/* Counts the entries that the intent adds, changes and deletes. */
void hf_intent_count(const struct hf_intent *intent, uint64_t *ret_added, uint64_t *ret_changed,
		     uint64_t *ret_deleted, uint64_t *ret_bytes);

/* -- recover.c --------------------------------------------------------------------------- */

/* Finishes or undoes what a dead process left. The caller holds the plan's lock. 1, 0, error. */
int hf_work_recover(struct hf_work *work, struct hf_err *err);

/* -- conflict.c -------------------------------------------------------------------------- */

/* Is a file open for writing anywhere? Adds that verdict to the deltas. */
int hf_conflict_leases(struct hf_work *work, struct hf_err *err);

/* The paths of --depends and, with `strict`, everything else that changed in the targets. */
int hf_conflict_depends(struct hf_work *work, const char *const *depends, int strict,
			struct hf_err *err);

/* Takes the verdict off the deltas that the caller overrules. HF_E_SYNTAX: one is no path of it. */
int hf_conflict_force(struct hf_work *work, const char *const *force, struct hf_err *err);

/* 1 when the target's entry at `path` (or its absence) is as it was at T0, with all below it; 0; -ENOMEM. */
int hf_unit_unchanged(const struct hf_unit *unit, const char *path);

/* 1 when it is open for writing, 0 when not, or when it cannot be told. */
int hf_is_written(int dirfd, const char *name);

/* -- merge.c ------------------------------------------------------------------------------ */

/*
 * Merges text files that both sides changed: takes the verdict off each delta that merges cleanly
 * and notes where the result is. Nothing of the sandbox or the target changes. 0 or an error; a file
 * that cannot be merged keeps its verdict and is no error.
 */
int hf_merge(struct hf_work *work, struct hf_err *err);

/* -- report.c ----------------------------------------------------------------------------- */

/* Puts all verdicts into the report, with what is known of their cause. How many, or -errno. */
int hf_conflict_report(struct hf_work *work, struct hf_plan_report *report, struct hf_err *err);

/* Adds a copy to a report. `by` and `why` may be NULL; `why` and `kind` are kept as they are. 0 or -ENOMEM. */
int hf_report_conflict(struct hf_plan_report *report, const struct hf_conflict *conflict);
int hf_report_merged(struct hf_plan_report *report, const struct hf_merged *merged);

/* The event and the error of a verb whose report has conflicts. Returns HF_E_CONFLICT. */
int hf_report_refuse(struct hf_work *work, const char *verb, const struct hf_plan_report *report,
		     struct hf_err *err);

#endif
