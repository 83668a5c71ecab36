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
 * Words. A target is a directory. A sandbox is a private view of one target: what a command
 * changes there does not reach the target. A plan is a named set of sandboxes that are
 * committed together.
 *
 * Strategies. `overlay`: the command runs in a user and a mount namespace in which an overlayfs
 * stands over the target's own path; making it costs the same for one file and for a million.
 * The target stays readable and writable for everybody else, and the command may or may not
 * see what others change there meanwhile; the check of a commit decides. `clone` (files of more
 * than 64 KiB share their blocks) and `copy` give a whole copy at another path, hf_plan_path; the
 * command must be told to work there. HF_STRATEGY_AUTO takes the first that works when it is
 * tried, and says why.
 *
 * States, all on disk, so that any process may go on with a plan, a day and a reboot later:
 *
 *     CREATED      sandboxes may be added and removed; nothing was entered
 *     ACTIVE       a sandbox was entered (or copied); may hold changes
 *     PREPARED     a commit or an undo has frozen the set; the plan is recovered if that died
 *     COMMITTED    the targets have the changes
 *     ROLLED_BACK  the changes were dropped, or a commit was taken back
 *     ERRORED      something must be decided by its owner; the reason says what
 *     CLEANED      being removed
 *
 * Power loss. A sandbox that is in use says so on disk. When the last process in it has ended it is settled: synced
 * as a whole, and then no longer marked. A plan that was in use when power failed is ERRORED, "may be torn", and is committed with force
 * only. That the mark is gone is not synced by itself, so that a power cut in the seconds after the end may make a plan "torn" that is
 * not. A clone or a copy that is worked in without hf_plan_enter is a directory like any other: what was
 * written there in the seconds before a power cut may be lost, and a commit does not know of it; sync it (sync -f) first.
 * A file of it that lost its content and that the sandbox had not touched is left out of the commit.
 * A plan is on disk at the latest when it was settled for the first time, or when a clone or copy was added; a power cut before
 * that may lose a plan that was just made, with what a command wrote in an overlay that it had not left yet. What is left of it is
 * shown by hf_plan_gc, is never committed, and goes by hf_plan_rm with HF_PLAN_RM_DISCARD; until then its name is taken.
 *
 * Killed. Nothing of a command outlives its hf_plan_enter: if the caller is killed, a process that stays inside with the command kills
 * all that it started. If that one is killed as well, the plan is in use as long as one of them lives, every function says so, and
 * hf_plan_recover and hf_plan_rm end them. In a copy they are found by their environment (HOLDFAST_RUNS).
 *
 * What is refused (HF_E_TARGET): a target that contains the state directory or lies in it; one
 * with another mount below it (the overlay would hide that); a part of a git repository whose
 * git directory is in no target of the plan (git would write around the sandbox); a path that
 * is no longer the directory that was added. The kernel refuses more; then the message holds
 * the kernel's own sentence.
 *
 * Inside. Same uid, gid, path, pids and network as outside. An ordinary user has no capability;
 * supplementary groups show as nogroup, and files of such groups or of other users cannot be
 * changed (EOVERFLOW), so that `auto` avoids overlay for them. Root keeps its rights over files
 * and loses those that could undo the sandbox. Locks of the kernel (flock, O_EXCL files) and
 * unix sockets in the target do not reach over its edge. Renaming a directory that came from the
 * target is done by a process that stays in the sandbox, the command's parent (see HF_ENTERED_NO_RENAME).
 * The first write to a large file copies it: 1 GiB takes seconds on ext4, nothing on xfs or btrfs.
 *
 * Not a jail. A command that wants to get out is not stopped from using what its user owns
 * elsewhere; what is stopped are the ways back into the targets: descriptors, /proc/PID/root,
 * unmounting, nested namespaces.
 *
 * Lock order: the plan's lock, then the targets' locks by (device, inode), then the guard of a
 * fence. Nothing that waits for a plan's lock holds a target's.
 *
 * Ownership: a context is freed by hf_plans_free, before the state and journal it was opened
 * with. Threads: a context may be shared. Fork: hf_plan_enter forks and reaps; the process that watches its
 * command and the census of a new sandbox are processes of their own, which belong to init. hf_plan_add tries
 * strategies in a child; a commit that merges runs git, and so does an undo if git's index was rewritten. Nothing else forks. A child may only free what it inherited.
 * Crash: each record is replaced as a whole; a crash leaves the old or the new one.
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
#define HF_PLAN_KEPT_NS       (INT64_C(24) * 3600 * HF_SEC) /* the sandbox of a run that failed is kept for so long */

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

/* The word of a state ("ACTIVE") or strategy ("overlay"); "unknown" for a number that is none. */
HF_API const char *hf_plan_state_word(enum hf_plan_state state);
HF_API const char *hf_strategy_word(enum hf_strategy strategy);

/* The strategy of a word, or -EINVAL. */
HF_API int hf_strategy_of(const char *word);

/* Opens the plans of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_plans_open(struct hf_state *state, struct hf_journal *journal,
			 struct hf_plans **ret_plans, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_plans_free(struct hf_plans *plans);

/* -- making --------------------------------------------------------------------- */

#define HF_PLAN_OF_RUN "run:" /* before a session's name: the plan of a transactional run (tx.h) */

struct hf_plan_new_opts {
	size_t size;         /* sizeof(struct hf_plan_new_opts) */
	const char *session; /* the session it belongs to; NULL: none */
};

/*
 * Makes an empty plan. A name that begins with HF_PLAN_OF_RUN needs a session. Returns 0; HF_E_PLAN_STATE when there is one of
 * that name, or what is left of one whose record is lost; HF_E_NAME; -errno.
 */
HF_API int hf_plan_new(struct hf_plans *plans, const char *plan,
		       const struct hf_plan_new_opts *opts, struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_add_flags {
	/* Accept a target whose git directory lies in no target: git's writes then go around. */
	HF_PLAN_ADD_GIT_OUTSIDE = 1 << 0,
	/*
	 * Overlay is taken where nothing is known against it, without a trial mount. Entering
	 * it may then fail with HF_E_NO_OVERLAY.
	 */
	HF_PLAN_ADD_UNTRIED = 1 << 1,
};

struct hf_plan_add_opts {
	size_t size; /* sizeof(struct hf_plan_add_opts) */
	enum hf_strategy strategy;
	unsigned flags;  /* enum hf_plan_add_flags */
	int64_t wait_ns; /* for the plan's lock; 0: do not wait; negative: for ever */
};

struct hf_plan_added {
	enum hf_strategy strategy;
	int same_path;             /* 1: the sandbox is seen at the target's own path */
	char why[HF_PLAN_WHY_MAX]; /* why not an earlier one of overlay, clone, copy; "" for the first */
};

/*
 * Adds a sandbox named `sandbox` over the directory `dir` (a symlink is followed, once, now). With clone and copy
 * this copies the tree. Returns 0, or, with nothing changed:
 *   HF_E_NO_PLAN      there is no such plan
 *   HF_E_PLAN_STATE   it is frozen or over, has that sandbox, has that target, or is full
 *   HF_E_TARGET       the directory cannot be a target; the detail says why and the way out
 *   HF_E_NO_OVERLAY   the strategy asked for does not work here; the same
 *   HF_E_BUSY, HF_E_TIMEOUT  another process works on the plan
 *   HF_E_NAME, -EINVAL, -errno
 */
HF_API int hf_plan_add(struct hf_plans *plans, const char *plan, const char *sandbox,
		       const char *dir, const struct hf_plan_add_opts *opts,
		       struct hf_plan_added *ret_added, struct hf_err *err) HF_MUST_CHECK;

/*
 * Where the sandbox is to be worked in: the target's own path inside hf_plan_enter (overlay), or
 * the path of the copy. Free the result with free(). HF_E_NO_PLAN, HF_E_NO_SANDBOX.
 */
HF_API int hf_plan_path(struct hf_plans *plans, const char *plan, const char *sandbox,
			char **ret_path, struct hf_err *err) HF_MUST_CHECK;

/* -- entering ------------------------------------------------------------------- */

enum hf_plan_enter_flags {
	HF_PLAN_ENTER_NO_RENAME = 1 << 0, /* without the helper that renames directories */
	HF_PLAN_ENTER_NO_CENSUS = 1 << 1, /* no list of the target's names (more conflicts) */
};

struct hf_plan_entered;

struct hf_plan_enter_opts {
	size_t size;       /* sizeof(struct hf_plan_enter_opts) */
	char *const *argv; /* NULL-ended; gets HOLDFAST_PLAN and HOLDFAST_DIR in its environment */
	unsigned flags;    /* enum hf_plan_enter_flags */
	int64_t wait_ns;   /* for the plan's lock */
	/* Called when the command runs, with the flags and `why`; NULL: not wanted. */
	void (*started)(void *arg, const struct hf_plan_entered *entered);
	void *arg;
};

enum hf_plan_entered_flags {
	HF_ENTERED_JOINED = 1 << 0,    /* the namespaces of an earlier enter that still runs */
	HF_ENTERED_NO_RENAME = 1 << 1, /* renaming directories of the target gives EXDEV inside */
	HF_ENTERED_LEFT = 1 << 2,      /* processes of the command live on; not settled yet */
	HF_ENTERED_ROOT = 1 << 3,      /* root without a user namespace */
	HF_ENTERED_ELSEWHERE = 1 << 4, /* at least one sandbox is not at its target's path */
	HF_ENTERED_LANDLOCK = 1 << 5,  /* HF_TX_READONLY_REST (tx.h) holds by Landlock, not by mounts */
};

struct hf_plan_entered {
	int exit_status; /* of the command: 0 to 255, 128 + N for signal N; 126, 127: not executed */
	int exec_error;  /* errno of the exec that failed; 0 */
	unsigned flags;  /* enum hf_plan_entered_flags */
	char why[HF_PLAN_WHY_MAX]; /* why HF_ENTERED_NO_RENAME or HF_ENTERED_ROOT */
};

/*
 * Runs a command inside all sandboxes of the plan, waits for it, and settles what it left. While
 * it waits, the calling thread has TERM, HUP, INT, QUIT, USR1 and USR2 blocked and passes them
 * on; what comes from a terminal the command gets by itself.
 * The command has the caller's standard input, output and error, cwd (as seen inside; in a target
 * with clone or copy: the same place in the copy), signal mask and limits, and no other descriptor. A file of a
 * sandboxed target as standard input is opened again in the sandbox, at the same place in it; as
 * output it is refused (HF_E_STDIO), and so is a directory. Returns 0 when the command was started (or could
 * not be executed: exec_error), else:
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
	const char *path;   /* where it is worked in: the same, or the copy */
	enum hf_strategy strategy;
	const char *why;
	struct hf_wall since; /* T0: changes of the target from then on are conflicts */
	int dirty;            /* 1 it holds changes, 0 none, -1 not known */
	int in_use;           /* processes are in it */
	int settled;          /* 1: synced since its last use */
	uint64_t dev, ino;    /* of the target */
	/*
	 * The size of the change: files, links and deletions, and the bytes of those files. Of an overlay with no more
	 * than HF_PLAN_COUNT_MAX entries; -1: not counted (hf_plan_diff does).
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

/* Calls `fn` with the plan. HF_E_NO_PLAN; HF_E_FORMAT: its record was put away. */
HF_API int hf_plan_look(struct hf_plans *plans, const char *plan, hf_plan_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* The same for each there is, in the order of their names; the first error is returned at the end. */
HF_API int hf_plan_list(struct hf_plans *plans, hf_plan_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

enum hf_change_kind {
	HF_CHANGE_ADDED = 1,
	HF_CHANGE_CHANGED = 2, /* content */
	HF_CHANGE_DELETED = 3,
	HF_CHANGE_TYPE = 4,    /* file to directory, and the like */
	HF_CHANGE_MODE = 5,    /* mode, owner or attributes only */
	HF_CHANGE_SKIPPED = 6, /* socket, FIFO, device: listed, never committed */
};

/* One changed entry of one sandbox. */
struct hf_change {
	const char *sandbox;
	const char *path;    /* relative to the target, any bytes but NUL */
	enum hf_change_kind kind;
	mode_t old_mode, new_mode;   /* 0: there is none */
	int64_t old_bytes, new_bytes; /* of regular files; -1: there is none, or another type */
	int old_fd, new_fd;  /* regular files, read only, valid during the call; -1 */
	const char *old_link, *new_link; /* what symbolic links say; NULL: it is none */
};

typedef int hf_change_fn(void *arg, const struct hf_change *change);

struct hf_plan_diff_opts {
	size_t size;               /* sizeof(struct hf_plan_diff_opts) */
	const char *const *ignore; /* NULL-ended globs; NULL: those of the plan */
	int64_t wait_ns;           /* for the plan's lock */
};

/*
 * Calls `fn` with each change, sandboxes in the order of adding, paths sorted, until it returns
 * less than 0, which is then returned. A plan in use is shown as it is at that moment.
 */
HF_API int hf_plan_diff(struct hf_plans *plans, const char *plan,
			const struct hf_plan_diff_opts *opts, hf_change_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* -- the end of a plan ---------------------------------------------------------- */

enum hf_plan_commit_flags {
	HF_PLAN_COMMIT_STRICT = 1 << 0, /* nothing at all may have changed in the targets */
	HF_PLAN_COMMIT_TORN = 1 << 1,   /* commit a plan that may be torn */
	HF_PLAN_COMMIT_MERGE = 1 << 2,  /* merge text files that both sides changed; see below */
};

/*
 * Merging (HF_PLAN_COMMIT_MERGE). A regular file whose content both the sandbox and the target's users changed
 * is merged by `git merge-file`, if a version that both began with is known: the old version that another
 * plan's commit keeps for undo, or the file in the commit that was HEAD when the sandbox began, where
 * the target is the top of a git work tree. Only a clean merge is used. It lands like every other change:
 * all or nothing, recovered, and undone by hf_plan_undo. If one file does not merge, nothing is committed
 * and the report says why. Never merged: files whose mode, owner or attributes differ, symlinks, a file that
 * one side deleted or both added, binary ones, those larger than 32 MiB, and git's own.
 *
 * With a base from git, changes that were not committed when the sandbox began count as made by both
 * sides. If one of the two took such a change back, the merge does not see that. Line ends and other
 * filters of git are not applied to the base: where they matter, the merge finds conflicts.
 */

struct hf_plan_fence {
	const char *name; /* of a lock */
	uint64_t token;   /* that must be current when the targets are changed (L5) */
};

struct hf_plan_commit_opts {
	size_t size; /* sizeof(struct hf_plan_commit_opts) */
	unsigned flags;
	const char *const *force;   /* NULL-ended paths whose conflicts are overruled */
	const char *const *depends; /* NULL-ended paths that must be unchanged as well */
	const char *const *ignore;  /* NULL-ended globs that are not committed */
	const struct hf_plan_fence *fences;
	size_t n_fences;
	int64_t wait_ns; /* for a commit in progress; 0: not for one of this plan, 30 s for those of other plans to the same targets */
};

struct hf_conflict {
	const char *sandbox;
	const char *path;
	const char *kind; /* "changed", "deleted-meanwhile", "parent-unknown", "open-for-writing", "merge-conflict", … */
	const char *by;   /* the plan that changed it, when that is known; "" */
	const char *why;  /* why it was not merged, though that was asked for; "" */
};

/* A file that both sides changed, and that landed merged. */
struct hf_merged {
	const char *sandbox;
	const char *path;
	const char *kind; /* where the common version came from: "kept" or "git" */
	const char *base; /* the plan that kept it, or the commit */
};

struct hf_plan_report {
	uint64_t added, changed, deleted; /* entries that were applied */
	uint64_t same;                    /* dropped because both sides are equal */
	uint64_t bytes;
	size_t n_conflicts;
	const struct hf_conflict *conflicts; /* freed by hf_plan_report_done */
	int by_other; /* 1: another process has committed it */
	size_t n_merged;
	const struct hf_merged *merged; /* also among `changed` */
	void *memory;
};

/* Frees what a report holds; the report itself is the caller's. */
HF_API void hf_plan_report_done(struct hf_plan_report *report);

/*
 * Applies all changes of all sandboxes to their targets, or none. Returns 0 when the targets
 * have them, durably; else, with every target as before and the sandboxes kept:
 *   HF_E_CONFLICT    the targets changed meanwhile; *ret_report has the list
 *   HF_E_IN_USE      processes are still in a sandbox, or it is the plan of a transactional run that goes on
 *   HF_E_TORN        it was in use when power failed
 *   HF_E_STALE       a fence is no longer current (L5)
 *   HF_E_BUSY, HF_E_TIMEOUT  another process is committing it
 *   HF_E_PLAN_STATE  it is not in a state to be committed
 *   -ENOSPC, -EACCES, -EIO, -EDQUOT, ...: undone
 * After an error that also stops the undoing the plan stays PREPARED, to be recovered (L10).
 */
HF_API int hf_plan_commit(struct hf_plans *plans, const char *plan,
			  const struct hf_plan_commit_opts *opts, struct hf_plan_report *ret_report,
			  struct hf_err *err) HF_MUST_CHECK;

/* Drops the changes: ROLLED_BACK. The targets are not touched. Errors as for a commit. */
HF_API int hf_plan_rollback(struct hf_plans *plans, const char *plan, int64_t wait_ns,
			    struct hf_err *err) HF_MUST_CHECK;

/*
 * Takes a commit back, all of it or nothing, as long as its old versions are kept: until the plan is removed
 * (hf_plan_rm, or hf_plan_gc, by default a day later). Those of a target on another mount than the state
 * directory are not kept (HF_E_PLAN_STATE). Each entry must be exactly as the commit left it, else it is a
 * conflict; `force` overrules that. An index of git that `git status` rewrote with the same entries is no conflict. Of two commits to one entry the later one is taken back first. The
 * entry then is the older commit's again, but was moved since, so that taking back the older one needs `force`.
 */
HF_API int hf_plan_undo(struct hf_plans *plans, const char *plan,
			const struct hf_plan_commit_opts *opts, struct hf_plan_report *ret_report,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Finishes or undoes a commit, rollback or undo whose process died. Idempotent, and also run by
 * every function that changes the plan. Also kills what an enter that was killed has left inside, with one event. Returns 1 when there was something to do, 0 when not.
 */
HF_API int hf_plan_recover(struct hf_plans *plans, const char *plan, int64_t wait_ns,
			   struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_rm_flags {
	HF_PLAN_RM_DISCARD = 1 << 0, /* also a plan with uncommitted changes */
};

/*
 * Removes the plan and its sandboxes; the targets are not touched. Returns 0; HF_E_DIRTY (it has
 * uncommitted changes and flags do not allow that); HF_E_IN_USE; HF_E_NO_PLAN; HF_E_BUSY; -errno.
 * A removal that was interrupted is finished by the next one, and by hf_plan_gc.
 */
HF_API int hf_plan_rm(struct hf_plans *plans, const char *plan, unsigned flags,
		      struct hf_err *err) HF_MUST_CHECK;

enum hf_plan_gc_flags {
	HF_PLAN_GC_DRY_RUN = 1 << 0, /* only say */
};

struct hf_plan_gc_opts {
	size_t size;    /* sizeof(struct hf_plan_gc_opts) */
	unsigned flags; /* enum hf_plan_gc_flags */
	int64_t age_ns; /* plans that changed later stay; negative: 24 h */
};

struct hf_plan_gc_item {
	const char *name;  /* of the plan; a directory that is no plan: its key */
	int removed;       /* 1 removed (or would be), 0 kept */
	const char *why;   /* in words, either way */
	uint64_t bytes;    /* that its sandboxes take; 0: not counted */
};

/*
 * Removes plans that are over (COMMITTED, ROLLED_BACK, CLEANED) or hold no change, older than
 * age_ns. Uncommitted work is never removed, but for that of a transactional run (HF_PLAN_OF_RUN) which ended more than
 * HF_PLAN_KEPT_NS ago. Calls `fn` for every plan. Returns how many.
 */
HF_API int hf_plan_gc(struct hf_plans *plans, const struct hf_plan_gc_opts *opts,
		      void (*fn)(void *arg, const struct hf_plan_gc_item *item), void *arg,
		      struct hf_err *err) HF_MUST_CHECK;

/* -- what this machine can do ---------------------------------------------------- */

struct hf_plan_probe {
	int code;                  /* 0 works, else as hf_plan_add would give */
	char step[32];             /* the call that failed: "unshare", "uid_map", "fsconfig create" */
	int sys;                   /* its errno */
	char why[HF_PLAN_WHY_MAX]; /* the kernel's sentence, or ours */
	char remedy[HF_PLAN_WHY_MAX];
};

/*
 * Tries a strategy between `dir` (NULL: an empty directory in the state directory) and the state
 * directory, in a child, and removes what it made. Returns 0 with *ret_probe filled, or -errno
 * when not even that could be tried.
 */
HF_API int hf_plan_probe(struct hf_plans *plans, const char *dir, enum hf_strategy strategy,
			 struct hf_plan_probe *ret_probe, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
