/*
 * holdfast/plan.h - plans: private views of directories, and one commit for all of them.
 *
 * Calling sequence:
 *
 *     struct hf_plans *plans;
 *     struct hf_plan_added added;
 *     struct hf_plan_entered entered;
 *     struct hf_plan_report report;
 *     char *argv[] = { (char *)"make", NULL };
 *     struct hf_plan_enter_opts enter = { .size = sizeof(enter), .argv = argv };
 *
 *     r = hf_plans_open(state, journal, &plans, &err);
 *     r = hf_plan_new(plans, "fix-160", NULL, &err);
 *     r = hf_plan_add(plans, "fix-160", "app", "/home/user/app", NULL, &added, &err);
 *     r = hf_plan_enter(plans, "fix-160", &enter, &entered, &err);  // runs argv inside
 *     r = hf_plan_commit(plans, "fix-160", NULL, &report, &err);    // all of it, or nothing
 *     hf_plan_report_done(&report);
 *     r = hf_plan_rm(plans, "fix-160", 0, &err);
 *     hf_plans_free(plans);
 *
 * Words. A target is a directory. A sandbox is a private view of one target: the changes of a
 * command inside do not reach the target. A plan is a named set of sandboxes that are
 * committed together.
 *
 * Strategies:
 *
 *   - `overlay`: the command runs in a user and a mount namespace with an
 *     overlayfs mounted over the target's own path. Its cost does not depend on
 *     the number of files. Other processes can still read and write the target;
 *     the command may or may not see their changes, and the check of the commit
 *     decides.
 *   - `clone` and `copy`: a complete copy at another path, hf_plan_path; the
 *     command must be made to work there. In a clone, files of more than 64 KiB
 *     share their blocks with the target.
 *   - HF_STRATEGY_AUTO: the first of these that works in a trial, with the
 *     reason.
 *
 * States, all on disk, so that any process can continue a plan a day and a reboot later:
 *
 *     CREATED      sandboxes may be added and removed; none was entered
 *     ACTIVE       a sandbox was entered (or copied); may hold changes
 *     PREPARED     a commit or an undo has frozen the set; recovered if its process died
 *     COMMITTED    the targets have the changes
 *     ROLLED_BACK  the changes were dropped, or a commit was undone
 *     ERRORED      the owner must decide; the reason has details
 *     CLEANED      being removed
 *
 * Power loss:
 *
 *   - A sandbox in use is marked on disk. After its last process it is settled:
 *     synced as a whole, then unmarked. A plan that was in use during a power
 *     failure is ERRORED, "may be torn", and only force commits it. The removal
 *     of the mark is not synced, so a power failure seconds later may leave an
 *     intact plan "torn".
 *   - A clone or copy that is used without hf_plan_enter is an ordinary
 *     directory: a commit does not detect the loss of data written in the
 *     seconds before a power failure. Sync it (sync -f) first. The commit leaves
 *     out a file that lost its content if the sandbox had not changed it.
 *   - A plan is on disk at the latest when it is first settled, or when a clone
 *     or copy is added. An earlier power failure may lose a new plan, with the
 *     output of a command in an overlay that it had not left yet. hf_plan_gc
 *     lists the remains of such a plan. They are never committed, keep the name
 *     in use, and are removed by hf_plan_rm with HF_PLAN_RM_DISCARD.
 *
 * Killed. If the caller of hf_plan_enter is killed, a process inside kills everything that the
 * command started, so no process outlives the caller. If that process is killed, too,
 * the plan is in use while one of the command's processes lives: every function reports this,
 * and hf_plan_recover and hf_plan_rm end them. In a copy they are found by their environment
 * (HOLDFAST_RUNS).
 *
 * Refused (HF_E_TARGET):
 *
 *   - a target that contains the state directory or is inside it;
 *   - a target with another mount below it, which the overlay would hide;
 *   - a part of a git repository whose git directory is in no target of the
 *     plan, because git would write outside the sandbox;
 *   - a path that is no longer the directory that was added.
 *
 * If the kernel refuses more, the message contains the kernel's own text.
 *
 * Inside:
 *
 *   - Uid, gid, path, pids and network are the same as outside.
 *   - An ordinary user has no capability. Supplementary groups appear as
 *     nogroup, and files of such groups or of other users cannot be changed
 *     (EOVERFLOW), so `auto` avoids overlay for them. Root keeps its rights over
 *     files and loses those that could undo the sandbox.
 *   - Kernel locks (flock, O_EXCL files) and unix sockets in the target do not
 *     reach across its edge.
 *   - A process that stays in the sandbox, the command's parent, renames
 *     directories of the target (see HF_ENTERED_NO_RENAME).
 *   - The first write to a large file copies it: 1 GiB takes seconds on ext4, no
 *     time on xfs or btrfs.
 *
 * Not a jail. A command can use everything that its user owns elsewhere. Only the ways back
 * into the targets are closed: descriptors, /proc/PID/root, unmounting, nested namespaces.
 *
 * Lock order: the plan's lock, then the targets' locks by (device, inode), then the guard of a
 * fence. A process that waits for a plan's lock does not hold a target's lock.
 *
 * Ownership: free a context by hf_plans_free before its state and journal.
 * Threads: several threads may share a context.
 * Fork: hf_plan_enter forks and reaps. The watcher of its command and the census of a new
 * sandbox are separate processes that belong to init. hf_plan_add tries strategies in a child.
 * A commit that merges runs git, and so does an undo if git's index was rewritten. No other
 * function forks. A child may only free an inherited context.
 * Crash: each record is replaced as a whole; a crash leaves the old or the new record.
 */
#ifndef HOLDFAST_PLAN_H
#define HOLDFAST_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"
#include "holdfast/proc.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_PLAN_SANDBOXES_MAX 64
#define HF_PLAN_WHY_MAX       256
#define HF_PLAN_COUNT_MAX     10000

struct hf_plans; /* the plans of one state directory */

/* clang-format off */
#define HF_PLAN_STATE_LIST(X) \
	X(CREATED,     1) \
	X(ACTIVE,      2) \
	X(PREPARED,    3) \
	X(COMMITTED,   4) \
	X(ROLLED_BACK, 5) \
	X(ERRORED,     6) \
	X(CLEANED,     7)

#define HF_STRATEGY_LIST(X) \
	X(AUTO,    0, "auto") \
	X(OVERLAY, 1, "overlay") \
	X(CLONE,   2, "clone") \
	X(COPY,    3, "copy")
/* clang-format on */

enum hf_plan_state {
#define HF_PLAN_STATE_ENUM(name, number) HF_PLAN_##name = number,
	HF_PLAN_STATE_LIST(HF_PLAN_STATE_ENUM)
#undef HF_PLAN_STATE_ENUM
};

enum hf_strategy {
#define HF_STRATEGY_ENUM(name, number, word) HF_STRATEGY_##name = number,
	HF_STRATEGY_LIST(HF_STRATEGY_ENUM)
#undef HF_STRATEGY_ENUM
};

/*
 * Return the word of a state ("ACTIVE") or strategy ("overlay"), or "unknown" for an invalid
 * number.
 */
HF_API const char *hf_plan_state_word(enum hf_plan_state state);
HF_API const char *hf_strategy_word(enum hf_strategy strategy);

/* Returns the strategy of a word, or -EINVAL. */
HF_API int hf_strategy_of(const char *word);

/* Opens the plans of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_plans_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_plans **ret_plans, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_plans_free(struct hf_plans *plans);

/* -- making --------------------------------------------------------------------- */

#define HF_PLAN_OF_RUN "run:" /* prefix of a session's name: the plan of a transactional run (tx.h) */

struct hf_plan_new_opts {
	size_t size;         /* sizeof(struct hf_plan_new_opts) */
	const char *session; /* the session of the plan; NULL: no session */
};

/*
 * Creates an empty plan. A name that begins with HF_PLAN_OF_RUN needs a session. Returns 0;
 * HF_E_PLAN_STATE if the name is in use by a plan or by the remains of a plan whose record is
 * lost; HF_E_NAME; -errno.
 */
HF_API int hf_plan_new(struct hf_plans *plans, const char *plan,
		       const struct hf_plan_new_opts *opts, struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_add_flags {
	/*
	 * Accept a target whose git directory is in no target; git's writes then bypass the
	 * sandbox.
	 */
	HF_PLAN_ADD_GIT_OUTSIDE = 1 << 0,
	/*
	 * Choose overlay without a trial mount if no reason against it is known. Entering may
	 * then fail with HF_E_NO_OVERLAY.
	 */
	HF_PLAN_ADD_UNTRIED = 1 << 1,
};

struct hf_plan_add_opts {
	size_t size; /* sizeof(struct hf_plan_add_opts) */
	enum hf_strategy strategy;
	unsigned flags;  /* enum hf_plan_add_flags */
	int64_t wait_ns; /* for the plan's lock; 0: do not wait; negative: no limit */
};

struct hf_plan_added {
	enum hf_strategy strategy;
	int same_path;             /* 1: the sandbox appears at the target's own path */
	char why[HF_PLAN_WHY_MAX]; /* why not an earlier one of overlay, clone, copy; otherwise "" */
};

/*
 * Adds a sandbox named `sandbox` over the directory `dir`; a symlink is resolved once, now.
 * With clone and copy this copies the tree. Returns 0, or, with nothing changed:
 *
 *   HF_E_NO_PLAN      no such plan
 *   HF_E_PLAN_STATE   it is frozen, over or full, or has that sandbox or target
 *   HF_E_TARGET       the directory cannot be a target; the detail has the reason
 *                     and the way out
 *   HF_E_NO_OVERLAY   the requested strategy does not work here; the same
 *   HF_E_BUSY, HF_E_TIMEOUT  another process works on the plan
 *   HF_E_NAME, -EINVAL, -errno
 */
HF_API int hf_plan_add(struct hf_plans *plans, const char *plan, const char *sandbox,
		       const char *dir, const struct hf_plan_add_opts *opts,
		       struct hf_plan_added *ret_added, struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the path at which a sandbox is used: the target's own path inside hf_plan_enter
 * (overlay), or the path of the copy. Free the result with free(). HF_E_NO_PLAN,
 * HF_E_NO_SANDBOX.
 */
HF_API int hf_plan_path(struct hf_plans *plans, const char *plan, const char *sandbox,
			char **ret_path, struct hf_err *err) HF_MUST_CHECK;

/* -- entering ------------------------------------------------------------------- */

enum hf_plan_enter_flags {
	HF_PLAN_ENTER_NO_RENAME = 1 << 0, /* without the helper that renames directories */
	HF_PLAN_ENTER_NO_CENSUS = 1 << 1, /* do not list the target's names (more conflicts) */
};

struct hf_plan_entered;

struct hf_plan_enter_opts {
	size_t size;       /* sizeof(struct hf_plan_enter_opts) */
	char *const *argv; /* NULL-ended; its environment gets HOLDFAST_PLAN and HOLDFAST_DIR */
	unsigned flags;    /* enum hf_plan_enter_flags */
	int64_t wait_ns;   /* for the plan's lock */
	/* Called when the command runs, with the flags and `why`; NULL: no call. */
	void (*started)(void *arg, const struct hf_plan_entered *entered);
	void *arg;
};

enum hf_plan_entered_flags {
	HF_ENTERED_JOINED = 1 << 0,    /* uses the namespaces of an earlier enter that still runs */
	HF_ENTERED_NO_RENAME = 1 << 1, /* renaming directories of the target fails with EXDEV inside */
	HF_ENTERED_LEFT = 1 << 2,      /* processes of the command still run; not settled yet */
	HF_ENTERED_ROOT = 1 << 3,      /* root without a user namespace */
	HF_ENTERED_ELSEWHERE = 1 << 4, /* at least one sandbox is not at its target's path */
	HF_ENTERED_LANDLOCK = 1 << 5,  /* HF_TX_READONLY_REST (tx.h) works by Landlock, not by mounts */
};

struct hf_plan_entered {
	int exit_status; /* of the command: 0 to 255, 128 + N for signal N; 126, 127: not executed */
	int exec_error;  /* errno of a failed exec; otherwise 0 */
	unsigned flags;  /* enum hf_plan_entered_flags */
	char why[HF_PLAN_WHY_MAX]; /* the reason for HF_ENTERED_NO_RENAME or HF_ENTERED_ROOT */
};

/*
 * Runs a command inside all sandboxes of the plan, waits for it, and settles the sandboxes.
 * While it waits, the calling thread blocks TERM, HUP, INT, QUIT, USR1 and USR2 and forwards
 * them; the command gets signals of the terminal directly.
 *
 * The command inherits the caller's standard input, output and error, signal mask and limits,
 * and no other descriptor. Its cwd is the caller's as seen inside; in a target with clone or
 * copy, the same place in the copy. If standard input is a file of a sandboxed target, the
 * sandbox's file is opened at the same offset. As output such a file is refused (HF_E_STDIO),
 * and so is a directory. Returns 0 if the command was started (or could not be executed:
 * exec_error), otherwise:
 *
 *   HF_E_NO_PLAN, HF_E_PLAN_STATE, HF_E_TARGET, HF_E_NO_OVERLAY, HF_E_STDIO, HF_E_TORN
 *   HF_E_BUSY, HF_E_TIMEOUT, -EINVAL, -errno
 */
HF_API int hf_plan_enter(struct hf_plans *plans, const char *plan,
			 const struct hf_plan_enter_opts *opts, struct hf_plan_entered *ret_entered,
			 struct hf_err *err) HF_MUST_CHECK;

/* -- looking -------------------------------------------------------------------- */

struct hf_sandbox_info {
	const char *name;
	const char *target; /* absolute path, any bytes but NUL */
	const char *path;   /* where the command works: the same path, or the copy */
	enum hf_strategy strategy;
	const char *why;
	struct hf_wall since; /* T0: later changes in the target are conflicts */
	int dirty;            /* 1 holds changes, 0 does not, -1 unknown */
	int in_use;           /* processes are inside */
	int settled;          /* 1: synced since its last use */
	uint64_t dev, ino;    /* of the target */
	/*
	 * The size of the change: files, links and deletions, and the bytes of those files.
	 * -1: not counted, because the sandbox is not an overlay of at most HF_PLAN_COUNT_MAX
	 * entries (hf_plan_diff counts).
	 */
	int64_t files, bytes;
};

struct hf_plan_info {
	const char *name;
	enum hf_plan_state state;
	const char *reason;  /* of ERRORED and ROLLED_BACK; "" */
	const char *session; /* "" */
	struct hf_wall created, changed;
	uint64_t token;      /* of the last change of the plan */
	int dirty;           /* of all sandboxes: 1, 0, -1 */
	int in_use;
	const struct hf_sandbox_info *sandboxes;
	size_t n_sandboxes;
};

typedef void hf_plan_fn(void *arg, const struct hf_plan_info *info);

/* Calls `fn` with the plan. HF_E_NO_PLAN; HF_E_FORMAT: its record was quarantined. */
HF_API int hf_plan_look(struct hf_plans *plans, const char *plan, hf_plan_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* Calls `fn` with each plan, sorted by name; returns the first error at the end. */
HF_API int hf_plan_list(struct hf_plans *plans, hf_plan_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

enum hf_change_kind {
	HF_CHANGE_ADDED = 1,
	HF_CHANGE_CHANGED = 2, /* content */
	HF_CHANGE_DELETED = 3,
	HF_CHANGE_TYPE = 4,    /* for example from file to directory */
	HF_CHANGE_MODE = 5,    /* mode, owner or attributes only */
	HF_CHANGE_SKIPPED = 6, /* socket, FIFO, device: listed, never committed */
};

/* A changed entry of a sandbox. */
struct hf_change {
	const char *sandbox;
	const char *path;    /* relative to the target, any bytes but NUL */
	enum hf_change_kind kind;
	mode_t old_mode, new_mode;   /* 0: missing */
	int64_t old_bytes, new_bytes; /* of regular files; -1: missing, or another type */
	int old_fd, new_fd;  /* regular files, read only, valid during the call; -1 */
	const char *old_link, *new_link; /* targets of symbolic links; NULL: not a link */
};

typedef int hf_change_fn(void *arg, const struct hf_change *change);

struct hf_plan_diff_opts {
	size_t size;               /* sizeof(struct hf_plan_diff_opts) */
	const char *const *ignore; /* NULL-ended globs; NULL: the plan's */
	int64_t wait_ns;           /* for the plan's lock */
};

/*
 * Calls `fn` with each change, sandboxes in the order in which they were added, paths sorted.
 * A negative result of `fn` ends the call and is returned. A plan in use is shown in its
 * present state.
 */
HF_API int hf_plan_diff(struct hf_plans *plans, const char *plan,
			const struct hf_plan_diff_opts *opts, hf_change_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* -- the end of a plan ---------------------------------------------------------- */

enum hf_plan_commit_flags {
	HF_PLAN_COMMIT_STRICT = 1 << 0, /* nothing in the targets may have changed */
	HF_PLAN_COMMIT_TORN = 1 << 1,   /* commit a plan that may be torn */
	HF_PLAN_COMMIT_MERGE = 1 << 2,  /* merge text files that both sides changed; see below */
};

/*
 * Merging (HF_PLAN_COMMIT_MERGE). If both the sandbox and the target's users changed the
 * content of a regular file, `git merge-file` merges it, provided that a common version is
 * known. That is the old version that another plan's commit keeps for undo. In a target that
 * is the top of a git work tree, it may also be the file in the commit that was HEAD when the
 * sandbox began.
 *
 * Only a clean merge is used. It is committed like every other change: all or nothing,
 * recovered, and undone by hf_plan_undo. If one file does not merge, nothing is committed, and
 * the report has the reason. Never merged: files whose mode, owner or attributes differ,
 * symlinks, a file that one side deleted or both added, binary files, files larger than 32
 * MiB, and git's own files.
 *
 * With a base from git, changes that were uncommitted when the sandbox began count as made by
 * both sides. If one side reverted such a change, the merge does not detect that. Git's
 * line-end and other filters are not applied to the base: where they matter, the merge reports
 * conflicts.
 */

struct hf_plan_fence {
	const char *name; /* of a lock */
	uint64_t token;   /* must be current when the targets are changed (L5) */
};

struct hf_plan_commit_opts {
	size_t size; /* sizeof(struct hf_plan_commit_opts) */
	unsigned flags;
	const char *const *force;   /* NULL-ended paths whose conflicts are ignored */
	const char *const *depends; /* NULL-ended paths that must be unchanged, too */
	const char *const *ignore;  /* NULL-ended globs of paths to leave out */
	const struct hf_plan_fence *fences;
	size_t n_fences;
	int64_t wait_ns; /* for a running commit; 0: do not wait for this plan's, and 30 s for other
			  * plans' to the same targets */
};

struct hf_conflict {
	const char *sandbox;
	const char *path;
	const char *kind; /* "changed", "deleted-meanwhile", "parent-unknown", "open-for-writing", "merge-conflict", … */
	const char *by;   /* the plan that changed it, if known; otherwise "" */
	const char *why;  /* why a requested merge failed; otherwise "" */
};

/* A file that both sides changed and that was merged. */
struct hf_merged {
	const char *sandbox;
	const char *path;
	const char *kind; /* origin of the common version: "kept" or "git" */
	const char *base; /* the plan that kept it, or the commit */
};

struct hf_plan_report {
	uint64_t added, changed, deleted; /* entries that were applied */
	uint64_t same;                    /* dropped, because both sides are equal */
	uint64_t bytes;
	size_t n_conflicts;
	const struct hf_conflict *conflicts; /* free it with hf_plan_report_done */
	int by_other; /* 1: another process has committed it */
	size_t n_merged;
	const struct hf_merged *merged; /* counted in `changed`, too */
	void *memory;
};

/* Frees the content of a report, not the report itself. */
HF_API void hf_plan_report_done(struct hf_plan_report *report);

/*
 * Applies all changes of all sandboxes to their targets, or none. Returns 0 when the targets
 * have them durably. After an error every target is unchanged and the sandboxes are kept:
 *
 *   HF_E_CONFLICT    the targets changed in the meantime; *ret_report has the list
 *   HF_E_IN_USE      processes are in a sandbox, or the plan belongs to a
 *                    transactional run that is not over
 *   HF_E_TORN        the plan was in use during a power failure
 *   HF_E_STALE       a fence is no longer current (L5)
 *   HF_E_BUSY, HF_E_TIMEOUT  another process is committing it
 *   HF_E_PLAN_STATE  its state does not allow a commit
 *   -ENOSPC, -EACCES, -EIO, -EDQUOT, ...: undone
 *
 * After an error that prevents the undo, too, the plan stays PREPARED for recovery (L10).
 */
HF_API int hf_plan_commit(struct hf_plans *plans, const char *plan,
			  const struct hf_plan_commit_opts *opts, struct hf_plan_report *ret_report,
			  struct hf_err *err) HF_MUST_CHECK;

/* Drops the changes: ROLLED_BACK. The targets are unchanged. Errors as for a commit. */
HF_API int hf_plan_rollback(struct hf_plans *plans, const char *plan, int64_t wait_ns,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * Undoes a commit, completely or not at all, while its old versions are kept: until the plan
 * is removed (hf_plan_rm, or hf_plan_gc, by default a day later). If a target and the state
 * directory are on different mounts, old versions are not kept (HF_E_PLAN_STATE).
 *
 * Each entry must be exactly as the commit left it; any other entry is a conflict, which
 * `force` ignores. An index of git that `git status` rewrote with the same entries is not a
 * conflict. Of two commits to one entry, undo the later first. The entry then has the older
 * commit's content but was moved since, so undoing the older commit needs `force`.
 */
HF_API int hf_plan_undo(struct hf_plans *plans, const char *plan,
			const struct hf_plan_commit_opts *opts, struct hf_plan_report *ret_report,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Completes or undoes a commit, rollback or undo whose process died, and kills the remains of
 * a killed enter, with one event. Idempotent. Every function that changes the plan does this
 * first. Returns 1 if there was anything to do, otherwise 0.
 */
HF_API int hf_plan_recover(struct hf_plans *plans, const char *plan, int64_t wait_ns,
			   struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_rm_flags {
	HF_PLAN_RM_DISCARD = 1 << 0, /* also remove a plan with uncommitted changes */
};

/*
 * Removes the plan and its sandboxes; the targets are unchanged. Returns 0; HF_E_DIRTY (it has
 * uncommitted changes and the flags do not allow that); HF_E_IN_USE; HF_E_NO_PLAN; HF_E_BUSY;
 * -errno. The next hf_plan_rm, or hf_plan_gc, completes an interrupted removal.
 */
HF_API int hf_plan_rm(struct hf_plans *plans, const char *plan, unsigned flags,
		      struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_gc_flags {
	HF_PLAN_GC_DRY_RUN = 1 << 0, /* only report */
	HF_PLAN_GC_DISCARD = 1 << 1, /* also remove plans with uncommitted changes */
};

struct hf_plan_gc_opts {
	size_t size;    /* sizeof(struct hf_plan_gc_opts) */
	unsigned flags; /* enum hf_plan_gc_flags */
	int64_t age_ns; /* keep plans that changed later; negative: 24 h */
};

struct hf_plan_gc_item {
	const char *name;  /* of the plan; for a directory that is not a plan, its key */
	int removed;       /* 1 removed (or would be), 0 kept */
	const char *why;   /* the reason, in both cases */
	uint64_t bytes;    /* used by its sandboxes; 0: not counted */
};

/*
 * Removes plans that are over (COMMITTED, ROLLED_BACK, CLEANED) or hold no change, and are
 * older than age_ns. Uncommitted work is only removed with HF_PLAN_GC_DISCARD. Calls `fn` for
 * every plan before the plan is removed, and again if the removal fails. Returns the number of
 * removed plans.
 */
HF_API int hf_plan_gc(struct hf_plans *plans, const struct hf_plan_gc_opts *opts,
		      void (*fn)(void *arg, const struct hf_plan_gc_item *item), void *arg,
		      struct hf_err *err) HF_MUST_CHECK;

/* -- what this machine can do ---------------------------------------------------- */

struct hf_plan_probe {
	int code;                  /* 0: works; otherwise the result that hf_plan_add would return */
	char step[32];             /* the call that failed: "unshare", "uid_map", "fsconfig create" */
	int sys;                   /* its errno */
	char why[HF_PLAN_WHY_MAX]; /* the kernel's text, or Holdfast's */
	char remedy[HF_PLAN_WHY_MAX];
};

/*
 * Tries a strategy between `dir` (NULL: an empty directory in the state directory) and the
 * state directory, in a child, and removes its traces. Returns 0 with *ret_probe filled, or
 * -errno if the trial itself is impossible.
 */
HF_API int hf_plan_probe(struct hf_plans *plans, const char *dir, enum hf_strategy strategy,
			 struct hf_plan_probe *ret_probe, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
