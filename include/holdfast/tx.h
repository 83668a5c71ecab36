/*
 * holdfast/tx.h - transactional runs: the command works in sandboxes, and its changes are
 * committed if it succeeds.
 *
 * Calling sequence, in a program with one thread that does nothing else:
 *
 *     char *argv[] = { (char *)"claude", (char *)"-p", (char *)"fix it", NULL };
 *     const char *dirs[] = { "/home/user/app", NULL };
 *     struct hf_run_opts run = { .size = sizeof(run), .argv = argv, .verify = "make test" };
 *     struct hf_tx_opts tx = { .size = sizeof(tx), .dirs = dirs };
 *     struct hf_tx_report landed;
 *     struct hf_run_report report;
 *
 *     r = hf_tx_supervise(state, "fix-160", &run, &tx, &report, &landed, &err);
 *     if (r == 0 && report.outcome == HF_OUTCOME_SUCCEEDED)
 *             printf("%s\n", report.cause);
 *
 * A transactional run is a session (run.h) with a plan (plan.h) for each attempt, which has a
 * sandbox for each directory. Command and verifier work in the sandboxes, at the directories'
 * own paths; with clone and copy, they and their working directory are in the copy.
 *
 * The verifier sees the targets as of its start, with the attempt's changes on top. If files
 * are committed, its output in the sandbox is, too, so a verifier that leaves files should
 * write them elsewhere. A landing excludes that output: the command's uncommitted work is
 * committed in the sandbox before the verifier runs, and that commit lands, whatever the
 * verifier writes, removes or commits.
 *
 * The end. Success (L14) is exit status 0 of the command and of the verifier, and the commit
 * of the plan under the session's token (L5). If another holder has the name by then, nothing
 * is committed. After anything else (failure, deadline, stop, kill of the supervisor, lost
 * lock) nothing is committed, and the sandbox is kept or dropped (enum hf_tx_keep). A kept
 * sandbox is the plan HF_PLAN_OF_RUN + name. It can be inspected, landed or committed by hand,
 * resumed or removed. While it holds work, the next run of the name is refused (HF_E_DIRTY)
 * unless it resumes or has HF_TX_DISCARD, hf_plan_gc keeps the sandbox, and the session is not
 * forgotten.
 *
 * During the commit:
 *
 *   - The state is HF_SESSION_LANDING, and the lease is renewed. The deadline
 *     does not apply.
 *   - A stop or an interrupt ends the commit if it can still be undone: nothing
 *     is committed, and the outcome is stopped or interrupted. Such a landing is
 *     QUEUED (land.h), and hf_land retries it. Otherwise the commit is
 *     completed, and the outcome is a success.
 *   - If supervisor, keeper or both are killed, the survivor, the next run of
 *     the name or hf_session_reap completes or undoes the commit, and records
 *     the actual result.
 *
 * Conflicts. Each attempt sees its own changes only. The second to commit a path that was
 * changed in the meantime gets the list of conflicts: HF_OUTCOME_CONFLICT, exit status 1,
 * nothing changed, the sandbox kept. With `retry` the command then runs again in a new
 * sandbox.
 *
 * Verified again. If other files of a target change while the verifier runs, it runs again
 * before the commit, in the same sandbox mounted again, so that it has verified the actual
 * result. This reads each entry of the target. A target that changes each time (6 times) is a
 * conflict "changed-while-verified" with one such path. Of a git directory, HEAD and the refs
 * count, not the index. A clone or copy, and files that HF_TX_MERGE merges, are verified once.
 *
 * Landing. Over a git work tree, the unit is the change, not the file (land.h), unless
 * hf_tx_opts.land is HF_TX_LAND_OFF. After success the change is rebased onto the current
 * branch, verified in that form, and becomes the branch. If the verifier then fails, or on a
 * textual conflict, the change is kept as the candidate of the session's name. hf_land retries
 * it, hf_land_drop abandons it, and until then the next run of the name is refused.
 *
 * Without hf_tx_opts.land:
 *
 *   - A run lands if its only directory is in a git work tree that does not
 *     ignore it.
 *   - Plain files are committed, which `say` reports, if an option applies to
 *     files only (several directories, clone or copy, HF_TX_MERGE,
 *     HF_TX_KEEP_ALWAYS, HF_TX_COMMIT_ASK or _NEVER), or if the kernel has no
 *     suitable overlay.
 *   - A work tree on which nothing can land (detached HEAD, no commit yet, no
 *     git) is refused; the error names both ways out.
 *   - A part of a work tree can be a target for files: git inside does not find
 *     the repository around it. In a linked worktree it would, so that is
 *     refused unless its git directory is an earlier target.
 *   - A resumed run keeps the kind of its sandbox.
 *
 * Confined. HF_TX_READONLY_REST works by mounts. The command cannot remount or unmount them,
 * even in its own namespaces, nor avoid them by /proc/PID/root, descriptors or hard links. In
 * a copy it works by Landlock: contents and names are safe, but modes, owners and times are
 * not, and a target in a writable place is refused. Neither HF_TX_READONLY_REST nor
 * HF_TX_NO_NETWORK is a jail: another process may act for the command through a unix socket (a
 * container service, an ssh agent), and root may write to devices. `--until` and `--notify`
 * commands are not confined.
 *
 * Loops. Each attempt commits its own changes. Its sandbox replaces that of a failed attempt,
 * and this is reported. An attempt does not start while the previous one has left work that
 * succeeded and was not committed (conflict, declined, HF_TX_COMMIT_NEVER).
 */
#ifndef HOLDFAST_TX_H
#define HOLDFAST_TX_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"
#include "holdfast/run.h"
#include "holdfast/state.h"

HF_C_BEGIN

/* hf_tx_opts.land. For a branch named "off", write "refs/heads/off". */
#define HF_TX_LAND_HEAD "HEAD" /* the branch that is checked out */
#define HF_TX_LAND_OFF  "off"  /* no branch: commit plain files */

/* clang-format off */
#define HF_TX_KEEP_LIST(X) \
	X(ON_FAILURE, 1, "on-failure") /* the default: keep it after anything but success */ \
	X(ALWAYS,     2, "always")     /* also after success: hf_plan_undo reverts the commit */ \
	X(NEVER,      3, "never")

#define HF_TX_COMMIT_LIST(X) \
	X(ON_SUCCESS, 1, "on-success") /* the default */ \
	X(ASK,        2, "ask")        /* hf_tx_opts.ask decides */ \
	X(NEVER,      3, "never")      /* success leaves the sandbox, for a commit by hand */
/* clang-format on */

enum hf_tx_keep {
	HF_TX_KEEP_DEFAULT = 0,
#define HF_TX_KEEP_ENUM(name, number, word) HF_TX_KEEP_##name = number,
	HF_TX_KEEP_LIST(HF_TX_KEEP_ENUM)
#undef HF_TX_KEEP_ENUM
};

enum hf_tx_commit {
	HF_TX_COMMIT_DEFAULT = 0,
#define HF_TX_COMMIT_ENUM(name, number, word) HF_TX_COMMIT_##name = number,
	HF_TX_COMMIT_LIST(HF_TX_COMMIT_ENUM)
#undef HF_TX_COMMIT_ENUM
};

/* Return the value of a word, or 0 (the default) for an unknown word. */
HF_API enum hf_tx_keep hf_tx_keep_of(const char *word);
HF_API enum hf_tx_commit hf_tx_commit_of(const char *word);

enum hf_tx_flags {
	/*
	 * HF_PLAN_COMMIT_MERGE; also keeps the old versions of committed files for others to
	 * merge with (as HF_TX_KEEP_ALWAYS).
	 */
	HF_TX_MERGE = 1 << 0,
	/*
	 * Command and verifier may write only to the targets, hf_tx_opts.write, /proc,
	 * /dev/pts, /dev/shm, /tmp, the state directory, and the existing directories of the
	 * known clients below $HOME (~/.claude, ~/.codex, …). If neither mounts nor Landlock
	 * can enforce that, the attempt does not start (HF_E_NO_CONFINE). See "Confined"
	 * above.
	 */
	HF_TX_READONLY_REST = 1 << 1,
	/*
	 * Command and verifier have only a loopback network; if that is impossible, the
	 * attempt does not start.
	 */
	HF_TX_NO_NETWORK = 1 << 2,
	/* An attempt that changes nothing fails: HF_OUTCOME_FAILED, exit status 1, no_change of the report. */
	HF_TX_REQUIRE_CHANGE = 1 << 3,
	HF_TX_SIGN = 1 << 4, /* HF_LAND_SIGN */
	/*
	 * Drop the work that the previous run left, its sandbox and its candidate. Without it such
	 * a run is refused. A resumed run ignores it.
	 */
	HF_TX_DISCARD = 1 << 5,
};

/* All zero: no sandbox, an ordinary session. With HF_RUN_RESUME a zero keeps the previous value. */
struct hf_tx_opts {
	size_t size;             /* sizeof(struct hf_tx_opts) */
	const char *const *dirs; /* NULL-ended: the targets, duplicates count once; NULL: none */
	enum hf_strategy strategy;
	enum hf_tx_keep keep;
	enum hf_tx_commit commit;
	unsigned flags;          /* enum hf_tx_flags; a resume can only add them */
	const char *const *write; /* NULL-ended: files and directories that stay writable with
				   * HF_TX_READONLY_REST; NULL: none */
	uint32_t retry;          /* after a conflict, run again at most this many times */
	/*
	 * Land on this branch ("main", or HF_TX_LAND_HEAD for the checked-out branch) in place
	 * of committing files. The only directory is then in a git work tree, and the whole
	 * work tree is the target. NULL: HF_TX_LAND_HEAD if possible, see above.
	 */
	const char *land;
	const char *message;     /* of the commit of uncommitted work; NULL: made from the name */
	const char *const *also; /* hf_land_opts.also; NULL: none */
	enum hf_land_merge land_merge; /* 0: the previous value if resumed, otherwise HF_LAND_REBASE */
	enum hf_land_base base;
	uint32_t speculate; /* hf_land_opts.speculate */
	/*
	 * HF_TX_COMMIT_ASK: called before the commit, in its own process in the foreground of
	 * the caller's terminal, with plans that it may inspect. Returns 1 to commit, 0 to
	 * decline. Without it such a session is refused (-EINVAL).
	 */
	int (*ask)(void *arg, struct hf_plans *plans, const char *plan);
	/*
	 * Called in the keeper with notes for the user before the command starts: a copy
	 * instead of an overlay, … NULL: no notes.
	 */
	void (*say)(void *arg, const char *text);
	void *arg;
};

#define HF_TX_CONFLICTS_MAX 64  /* the number of listed conflicts; the plan's commit lists all */
#define HF_TX_PATH_MAX      512 /* longer paths are cut */

struct hf_tx_conflict {
	char sandbox[HF_NAME_MAX + 1];
	char path[HF_TX_PATH_MAX];
	char kind[32]; /* struct hf_conflict */
	char by[96];
};

/* The result of the last attempt's changes. */
struct hf_tx_report {
	char plan[HF_NAME_MAX + 1]; /* "": no plan */
	int committed;              /* 1: the changes are in the targets */
	int kept;                   /* 1: the plan still exists, with the changes or with the previous content */
	uint64_t added, changed, deleted; /* files; of a landing: in its commits */
	uint64_t bytes;             /* of the files; 0 for a landing, which does not count them */
	uint64_t same;              /* paths that are equal on both sides */
	char branch[256];           /* of a landing; otherwise "" */
	char commit[HF_LAND_OID_MAX]; /* now the branch's tip or part of it; otherwise the tip that is kept; "": none yet */
	unsigned commits;           /* number of landed commits; 0 with `committed`: nothing to land */
	int rebased;                /* 1: onto new commits of the branch */
	unsigned unsigned_commits;  /* signed commits that lost their signature in the rebase */
	unsigned n_kept;            /* refs that keep work which HEAD of the sandbox did not have; hf_land_look lists them */
	unsigned unlanded;          /* files that the command changed and that did not land; with `committed` the plan is kept for them */
	int is_there;               /* 1: a landing whose change the branch had before; `commits` is 0 */
	int is_unsigned;            /* 1: commit.gpgSign is set, but no key could sign the commits of the landing */
	int no_change;              /* 1: HF_TX_REQUIRE_CHANGE, and nothing was changed */
	int refused;                /* 1: the landing was refused, because of the verifier or the
				     * state that the command left; see hf_run_report.cause */
	size_t n_conflicts;         /* all conflicts */
	size_t n_listed;            /* listed here; further elements of the array are undefined */
	struct hf_tx_conflict conflicts[HF_TX_CONFLICTS_MAX];
};

/*
 * Like hf_run_supervise, for sessions with or without a sandbox. *ret_landed (may be NULL) is
 * filled if 0 is returned. Additional errors:
 *
 *   HF_E_TARGET, HF_E_NO_OVERLAY   a directory cannot be a target; the detail has
 *                                  the reason and the way out
 *   HF_E_DIRTY                     the previous run left work that was neither landed
 *                                  nor committed nor dropped (hf_tx_unlanded)
 */
HF_API int hf_tx_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *run,
			   const struct hf_tx_opts *tx, struct hf_run_report *ret_report,
			   struct hf_tx_report *ret_landed, struct hf_err *err) HF_MUST_CHECK;

/*
 * Like hf_run_start, with the same options, except that `ask` is not possible and `say` is not
 * called.
 */
HF_API int hf_tx_start(struct hf_state *state, const char *name, const struct hf_run_opts *run,
		       const struct hf_tx_opts *tx, struct hf_run_report *ret_report,
		       struct hf_err *err) HF_MUST_CHECK;

/* -- what a run left ------------------------------------------------------------------- */

struct hf_tx_unlanded {
	size_t size;                  /* sizeof(struct hf_tx_unlanded), set by the caller */
	char plan[HF_NAME_MAX + 1];   /* the sandbox that holds work; "": none */
	int in_use;                   /* 1: processes are in it */
	int lands;                    /* 1: hf_land lands it; 0: hf_plan_commit commits it, unless it has a candidate */
	enum hf_land_state candidate; /* 0: no candidate */
	char branch[256];
	char text[128];               /* "3 files changed, 2 commits" */
};

/*
 * Finds work that the session `name` left and that was neither landed nor committed nor
 * dropped. Returns 1 with *ret filled; 0: no such work; or an error if it cannot find out. A
 * candidate whose change a user has merged or cherry-picked counts as landed. For a running
 * session the result is its work up to now. Forks: it runs git.
 */
HF_API int hf_tx_unlanded(struct hf_state *state, const char *name, struct hf_tx_unlanded *ret, struct hf_err *err) HF_MUST_CHECK;

/*
 * Drops that work: the candidate with its ref, and the sandbox. `journal` may be NULL. Returns
 * 0, also if nothing is left; HF_E_BUSY, HF_E_IN_USE, -errno.
 */
HF_API int hf_tx_drop(struct hf_state *state, struct hf_journal *journal, const char *name, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
