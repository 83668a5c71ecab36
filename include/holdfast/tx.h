/*
 * holdfast/tx.h - transactional runs: a session whose command works in sandboxes, and whose changes are committed when it succeeds.
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
 * What it is. A session (run.h) and a plan (plan.h) in one. Each attempt has a plan with a sandbox for each directory; command and
 * verifier work in it, at the directories' own paths (or, with clone and copy, in the copy, where its working directory is moved).
 * The verifier sees the targets as they are when it starts, with the attempt's changes on top. Where files are committed, what it writes
 * there is part of the changes: a verifier that leaves files behind writes them elsewhere. A landing is free of that: what the command left uncommitted
 * is committed in the sandbox before the verifier runs, and that commit lands, whatever the verifier writes, removes or commits after it.
 *
 * The end. Success (L14) is exit 0 of the command, exit 0 of the verifier, and the commit of the plan under the session's
 * token (L5): if another holder has the name by then, nothing is committed. After anything else (failure, deadline, stop, kill of the
 * supervisor, lost lock) nothing is committed, and the sandbox is kept or dropped (enum hf_tx_keep). A kept one is the
 * plan HF_PLAN_OF_RUN + name: it can be looked at, committed by hand, resumed or removed, and the next run of the name, or
 * hf_plan_gc after HF_PLAN_KEPT_NS, removes it. Work that succeeded and was not committed (conflict, declined, HF_TX_COMMIT_NEVER)
 * is never removed by the next run: that is refused (HF_E_DIRTY).
 *
 * While it commits, the state is HF_SESSION_LANDING. The lease is renewed. The deadline counts for the command alone. A stop ends
 * the commit where it can still be undone: then nothing is committed, and the outcome says that it was stopped; else it is
 * finished, and the outcome is a success. An interrupt likewise. A landing that ended so is QUEUED (land.h), and hf_land tries again. If supervisor, keeper or both are killed then, the one that is left, the next run of the name
 * or hf_session_reap finishes or undoes the commit, and records what is there.
 *
 * Conflicts. Each attempt sees its own changes only. The second to commit, with a path that was changed meanwhile, gets
 * the conflict list: HF_OUTCOME_CONFLICT, exit status 1, nothing changed, the sandbox kept. With `retry` the command then runs
 * again in a new sandbox.
 *
 * Verified again. If other files of a target changed while the verifier ran, it runs again, in the same sandbox mounted anew, before
 * anything is committed: what lands was verified with what is there. That costs a look at each entry of the target. A target that changes
 * each time (6 times) is a conflict "changed-while-verified" with one such path. Of a git directory HEAD and the refs count, not the index.
 * A clone or copy shows nothing of what others do, and is verified once; so are files that HF_TX_MERGE merges.
 *
 * Landing. Over a git work tree the unit is the change, not the file (land.h), unless hf_tx_opts.land is HF_TX_LAND_OFF: after success the change is rebased onto the branch as it
 * is now, verified in that form, and becomes the branch. What the verifier then refuses, or a textual conflict, is kept as the candidate
 * of the session's name: hf_land tries again, hf_land_drop gives it up, and the next run of the name is refused until then.
 *
 * Without hf_tx_opts.land a run lands when its one directory is in a git work tree that does not ignore it. Plain files are committed,
 * which is said, when an option is for files (several directories, clone or copy, HF_TX_MERGE, HF_TX_KEEP_ALWAYS, HF_TX_COMMIT_ASK or
 * _NEVER), or where the kernel has no overlay for that. A work tree that cannot be landed on (detached HEAD, no commit yet, no git) is
 * refused, with both ways out. A part of a work tree can be a target for files: git inside does not find the repository around it.
 * A linked worktree, from which it would, is refused unless its git directory is a target before it. A resumed run goes on as its sandbox was made.
 *
 * Confined. HF_TX_READONLY_REST holds by mounts: the command cannot remount or unmount them, not in namespaces of its own either,
 * nor get around them by /proc/PID/root, descriptors or hard links. Where the sandbox is a copy it holds by Landlock: then contents and
 * names are safe, but not modes, owners and times, and a target that lies in a writable place is refused. Neither it nor
 * HF_TX_NO_NETWORK is a jail: what another process does when it is asked through a unix socket (a container service, an
 * ssh agent) is not the command's own, and root may write to devices. `--until` and `--notify` commands are not confined.
 *
 * Loops. Each attempt commits its own. A failed attempt's sandbox is replaced by that of the next one.
 */
#ifndef HOLDFAST_TX_H
#define HOLDFAST_TX_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/err.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"
#include "holdfast/run.h"
#include "holdfast/state.h"

HF_C_BEGIN

/* hf_tx_opts.land. A branch that is called so is "refs/heads/off". */
#define HF_TX_LAND_HEAD "HEAD" /* the branch that is checked out */
#define HF_TX_LAND_OFF  "off"  /* none: plain files are committed */

/* clang-format off */
#define HF_TX_KEEP_LIST(X) \
	X(ON_FAILURE, 1, "on-failure") /* the default: kept after anything but success */ \
	X(ALWAYS,     2, "always")     /* after success as well: hf_plan_undo takes the commit back */ \
	X(NEVER,      3, "never")

#define HF_TX_COMMIT_LIST(X) \
	X(ON_SUCCESS, 1, "on-success") /* the default */ \
	X(ASK,        2, "ask")        /* hf_tx_opts.ask decides */ \
	X(NEVER,      3, "never")      /* success leaves the sandbox, to be committed by hand */
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

/* Those of a word; 0 (the default) when there is no such one. */
HF_API enum hf_tx_keep hf_tx_keep_of(const char *word);
HF_API enum hf_tx_commit hf_tx_commit_of(const char *word);

enum hf_tx_flags {
	/* HF_PLAN_COMMIT_MERGE; and the old versions of what it commits are kept (as with HF_TX_KEEP_ALWAYS), for others to merge with. */
	HF_TX_MERGE = 1 << 0,
	/*
	 * Command and verifier may write nothing but the targets, hf_tx_opts.write, /proc, /dev/pts, /dev/shm, /tmp, the state
	 * directory, and the directories of the known clients below $HOME that are there (~/.claude, ~/.codex, …). Where neither
	 * mounts nor Landlock can do that, the attempt is not started (HF_E_NO_CONFINE). See "Confined" above.
	 */
	HF_TX_READONLY_REST = 1 << 1,
	/* Command and verifier have a network of their own, with nothing but loopback; or the attempt is not started. */
	HF_TX_NO_NETWORK = 1 << 2,
};

/* All zero means: no sandbox, an ordinary session. With HF_RUN_RESUME what is zero is as it was. */
struct hf_tx_opts {
	size_t size;             /* sizeof(struct hf_tx_opts) */
	const char *const *dirs; /* NULL-ended: the targets; one that is given twice counts once; NULL: none */
	enum hf_strategy strategy;
	enum hf_tx_keep keep;
	enum hf_tx_commit commit;
	unsigned flags;          /* enum hf_tx_flags; a resume can only add them */
	const char *const *write; /* NULL-ended: files and directories that HF_TX_READONLY_REST leaves writable; NULL: none */
	uint32_t retry;          /* run it again, at most so often, after a conflict */
	/*
	 * Land on this branch ("main", or HF_TX_LAND_HEAD for the one that is checked out) instead of committing files: the one
	 * directory is in a git work tree, which is the target as a whole. NULL: HF_TX_LAND_HEAD where that can be, see below.
	 */
	const char *land;
	const char *message;     /* of the commit of what the command left uncommitted; NULL: made from the name */
	const char *const *also; /* hf_land_opts.also; NULL: none */
	enum hf_land_merge land_merge; /* 0: as before when it is resumed, else HF_LAND_REBASE */
	enum hf_land_base base;
	uint32_t speculate; /* hf_land_opts.speculate */
	/*
	 * HF_TX_COMMIT_ASK: called before the commit, in a process of its own in front on the caller's terminal, with
	 * plans that it may look at. 1: commit; 0: do not. Without it such a session is refused (-EINVAL).
	 */
	int (*ask)(void *arg, struct hf_plans *plans, const char *plan);
	/* Called in the keeper with what the user should know before the command starts: a copy instead of an overlay, … NULL: not told. */
	void (*say)(void *arg, const char *text);
	void *arg;
};

#define HF_TX_CONFLICTS_MAX 64  /* of them are listed; the plan's commit lists all */
#define HF_TX_PATH_MAX      512 /* longer ones are cut */

struct hf_tx_conflict {
	char sandbox[HF_NAME_MAX + 1];
	char path[HF_TX_PATH_MAX];
	char kind[32]; /* struct hf_conflict */
	char by[96];
};

/* What became of the changes of the last attempt. */
struct hf_tx_report {
	char plan[HF_NAME_MAX + 1]; /* "": there was none */
	int committed;              /* 1: the targets have them */
	int kept;                   /* 1: the plan is still there, with them or with what was there before */
	uint64_t added, changed, deleted; /* files; of a landing: by its commits */
	uint64_t bytes;             /* of the files; of a landing they are not counted: 0 */
	uint64_t same;              /* paths that were equal on both sides */
	char branch[256];           /* a landing: the branch; "" */
	char commit[HF_LAND_OID_MAX]; /* what is the branch's now, or part of it; else the tip that is kept; "": there is none yet */
	unsigned commits;           /* that landed; committed and 0: there was nothing to land */
	int rebased;                /* 1: onto commits that came meanwhile */
	unsigned unsigned_commits;  /* that were signed, and lost that by being rebased */
	int refused;                /* 1: the landing was refused, for what the verifier said or the command left; hf_run_report.cause says why */
	size_t n_conflicts;         /* all of them */
	size_t n_listed;            /* of them, here; what follows them is undefined */
	struct hf_tx_conflict conflicts[HF_TX_CONFLICTS_MAX];
};

/*
 * As hf_run_supervise; also for sessions without a sandbox. *ret_landed (may be NULL) is filled when 0 is returned. Also:
 *   HF_E_TARGET, HF_E_NO_OVERLAY   a directory cannot be a target; the detail says why and the way out
 *   HF_E_DIRTY                     work of the run before succeeded and was not committed
 */
HF_API int hf_tx_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *run,
			   const struct hf_tx_opts *tx, struct hf_run_report *ret_report,
			   struct hf_tx_report *ret_landed, struct hf_err *err) HF_MUST_CHECK;

/* As hf_run_start, with the same options; `ask` cannot be, and `say` is not called. */
HF_API int hf_tx_start(struct hf_state *state, const char *name, const struct hf_run_opts *run,
		       const struct hf_tx_opts *tx, struct hf_run_report *ret_report,
		       struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
