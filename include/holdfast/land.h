/*
 * holdfast/land.h - landing on git: a change that was made in a sandbox becomes the branch.
 *
 * Calling sequence:
 *
 *     struct hf_plans *plans;
 *     struct hf_landings *landings;
 *     struct hf_land_place place;
 *     struct hf_land_report report;
 *     struct hf_land_opts opts = { .size = sizeof(opts), .verify = "make test" };
 *
 *     r = hf_plans_open(state, journal, &plans, &err);
 *     r = hf_landings_open(state, journal, plans, &landings, &err);
 *     r = hf_land_find("/home/user/app", NULL, &place, &err);     // 1: a git work tree, 0: not one
 *     r = hf_plan_new(plans, "fix-160", NULL, &err);
 *     r = hf_land_add_targets(plans, "fix-160", &place, &err);
 *     r = hf_land_begin(landings, "fix-160", "fix-160", &place, HF_LAND_BASE_HEAD, &err);
 *     // ... an agent works in the plan "fix-160" (plan.h), and has ended ...
 *     r = hf_land(landings, "fix-160", &opts, &report, &err);
 *     if (r == 0 && report.state == HF_LAND_LANDED)
 *             puts(report.commit);
 *     hf_land_report_done(&report);
 *     hf_land_place_done(&place);
 *     hf_landings_free(landings);
 *     hf_plans_free(plans);
 *
 * Words. A candidate is a named change that should become part of a branch. Its base is the
 * commit with which the agent began, its tip the last commit of its work. Landing verifies it
 * and moves the branch.
 *
 * The steps of hf_land:
 *
 *   1  In the agent's sandbox, uncommitted work is committed (trailers
 *      Holdfast-Session and Holdfast-Token). The new objects are copied into the
 *      real repository and checked, and refs/holdfast/NAME keeps them. From here
 *      on the work cannot be lost. (A run with a verifier, tx.h, commits before
 *      its verifier runs in that sandbox. While HEAD is at that commit,
 *      uncommitted files are the verifier's, and do not land.)
 *   2  The branch's lock is taken: candidates of one branch land first come, first
 *      served.
 *   3  The candidate is rebased or merged onto the current branch as git would do
 *      it, but without a checkout. In that form it is verified in a new sandbox over
 *      the work tree (or was verified so while it waited: hf_land_opts.speculate).
 *      Build output that git ignores is present, so builds are warm. The verifier
 *      sees that commit and files that git ignores, but no other file of the user:
 *      no untracked files, no edits under skip-worktree or assume-unchanged, and
 *      submodules at the recorded commits (a conflict if a checkout fails). It runs again if the user saved a
 *      file that it could see.
 *   4  The branch is moved by compare-and-swap in one ref transaction. If the
 *      branch is checked out, the commit of a plan changes the work tree and its
 *      index, too.
 *   5  The landing is proven by reading the repository: the commit is an ancestor
 *      of the branch. Only then it is `landed` (L14).
 *
 * If the branch moves in the meantime (a user commits), step 3 begins again. If a user removed
 * the candidate's base from the branch, only the candidate's own commits land.
 *
 * Uncommitted edits in the work tree are never changed: a path that the candidate changes,
 * too, is a conflict `dirty`. The sandbox shows edits that a user saves while the agent works.
 * If the agent commits such a file without having changed it ("git commit -a"), the edit does
 * not land: the agent's commits are recreated without that path, which is reported.
 *
 * The marks skip-worktree and assume-unchanged do not hide the agent's work: its edits in such
 * a file land, the user's own edits there do not. git does not report some changes, such as a mode
 * with core.fileMode=false. Files with such a change are listed as `unlanded`: the rest lands,
 * and the plan is kept. If nothing else is left to land, the candidate is REJECTED.
 *
 * Configuration. Hooks of the repository run only in the agent's sandbox. Configuration,
 * attributes and filters that the sandbox changes apply only there. Outside, git runs with the
 * real repository's configuration, without hooks, fsmonitor, pager and prompts.
 *
 * Commits:
 *
 *   - Signed commits stay signed unless they are rebased, which is reported.
 *   - Commits that the landing makes are signed as commit.gpgSign or HF_LAND_SIGN say. No
 *     passphrase is asked for on the terminal.
 *   - A rebase makes merge commits of the agent linear.
 *   - Only HEAD lands. Other new commits, of branches, tags, stashes, linked worktrees
 *     or a detached HEAD, become refs/holdfast/NAME+KIND-LABEL: see hf_land_kept. Only
 *     hf_land_drop removes these refs. If HEAD has nothing new, the candidate is
 *     rejected instead, and the text names that place.
 *   - A clean linked worktree whose commits are part of HEAD is ignored.
 *
 * Refused (HF_E_LAND, with the way out):
 *
 *   - git older than 2.38;
 *   - a bare repository, or one without a commit;
 *   - a detached HEAD without a named branch;
 *   - a change of a submodule, unless it only moves to a commit that its repository or a remote
 *     branch in the sandbox has;
 *   - a file of git LFS whose new content is only in the sandbox's store (a
 *     pointer to content in the repository's store lands).
 *
 * Crash. Each record is replaced as a whole. If the process of a landing died, the next
 * hf_land or hf_land_recover completes or undoes the landing: it reads the ref, which decides.
 * Afterwards the work tree, the index and the branch agree.
 *
 * Lock order: the candidate's lock, the branch's lock, then those of plan.h.
 *
 * Ownership: free a context by hf_landings_free before its plans, journal and state.
 * Threads: several threads may share a context. Only a process with one thread may call
 * hf_land: it forks and reaps, and while it runs, it blocks signals and forwards them to git
 * and the verifier.
 * Fork: a child may only free what it inherited.
 */
#ifndef HOLDFAST_LAND_H
#define HOLDFAST_LAND_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/plan.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_LAND_TARGETS_MAX 4
#define HF_LAND_OID_MAX     65 /* hexadecimal digits of an object name, and NUL */
#define HF_LAND_ALSO_MAX    64
#define HF_LAND_VERIFY_NS   (10 * 60 * HF_SEC)

struct hf_landings; /* the landings of one state directory */

/* clang-format off */
#define HF_LAND_STATE_LIST(X) \
	X(WORKING,   1, "working")   /* the agent is working */ \
	X(QUEUED,    2, "queued")    /* refs/holdfast/NAME keeps its work; waits for the branch */ \
	X(REBASING,  3, "rebasing") \
	X(VERIFYING, 4, "verifying") \
	X(LANDING,   5, "landing")   /* branch and work tree are being changed */ \
	X(LANDED,    6, "landed")    /* proven to be part of the branch */ \
	X(REJECTED,  7, "rejected")  /* the verifier failed, or nothing can land */ \
	X(CONFLICT,  8, "conflict")  /* the report lists the paths; can be retried */ \
	X(DROPPED,   9, "dropped")

#define HF_LAND_MERGE_LIST(X) \
	X(MERGE,   1, "merge") \
	X(FF_ONLY, 2, "ff-only") \
	X(REBASE,  3, "rebase")
/* clang-format on */

enum hf_land_state {
#define HF_LAND_STATE_ENUM(name, number, word) HF_LAND_##name = number,
	HF_LAND_STATE_LIST(HF_LAND_STATE_ENUM)
#undef HF_LAND_STATE_ENUM
};

enum hf_land_merge {
	HF_LAND_MERGE_AS_BEFORE = 0, /* in options: the value of the last attempt, or HF_LAND_REBASE
				      * for the first; valid only there */
#define HF_LAND_MERGE_ENUM(name, number, word) HF_LAND_##name = number,
	HF_LAND_MERGE_LIST(HF_LAND_MERGE_ENUM)
#undef HF_LAND_MERGE_ENUM
};

enum hf_land_base {
	HF_LAND_BASE_HEAD = 0,     /* the agent starts from the committed branch */
	HF_LAND_BASE_WORKTREE = 1, /* and with the user's uncommitted edits */
};

/*
 * Return the word of a state ("landed") or of a way to merge ("ff-only"), or "unknown" for an
 * invalid number.
 */
HF_API const char *hf_land_state_word(enum hf_land_state state);
HF_API const char *hf_land_merge_word(enum hf_land_merge merge);

/* Returns the way to merge of a word, or -EINVAL. */
HF_API int hf_land_merge_of(const char *word);

/* Opens the landings of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_landings_open(struct hf_state *state, struct hf_journal *journal, struct hf_plans *plans,
			    struct hf_landings **ret_landings, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_landings_free(struct hf_landings *landings);

/* -- before the agent starts ------------------------------------------------------ */

/* The git work tree of a directory. */
struct hf_land_place {
	char *top;    /* of the work tree; use it as the target, not the directory that was given */
	int moved_up; /* 1: `top` is a parent of that directory; report this to the user */
	char *git_dir; /* of that work tree */
	char *common; /* the repository's directory: objects, refs */
	char *branch; /* "refs/heads/main" */
	char base[HF_LAND_OID_MAX]; /* the commit of HEAD */
	size_t n_dirty; /* paths with uncommitted or untracked changes, without other repositories
			 * in the work tree, which sandboxes show */
	/*
	 * The targets that a plan needs, in this order: git directories outside of `top` (of a
	 * linked worktree, of a submodule), then `top`.
	 */
	char *targets[HF_LAND_TARGETS_MAX];
	size_t n_targets;
	uint64_t dev, ino; /* of the repository's common directory */
};

/*
 * Finds the git work tree of `dir`. `branch` is the target branch ("main"); NULL: the
 * checked-out branch. Returns 1 with *ret_place filled (hf_land_place_done); 0 if `dir` is not
 * in a git work tree; HF_E_LAND if nothing can land there; -errno.
 */
HF_API int hf_land_find(const char *dir, const char *branch, struct hf_land_place *ret_place,
			struct hf_err *err) HF_MUST_CHECK;

/* Frees the content of a place, not the place itself. */
HF_API void hf_land_place_done(struct hf_land_place *place);

/*
 * Adds a sandbox for each target of the place to `plan`, which exists and is empty. Each is an
 * overlay, because git finds its directories by their paths. If one fails, the whole plan is
 * removed. HF_E_LAND, errors of hf_plan_add.
 */
HF_API int hf_land_add_targets(struct hf_plans *plans, const char *plan, const struct hf_land_place *place,
			       struct hf_err *err) HF_MUST_CHECK;

/*
 * Records that the agent of `plan` begins work on candidate `name`. The plan exists, has the
 * targets of the place (hf_land_add_targets), and was not entered. The sandbox gets its own
 * HEAD, branch and index. With HF_LAND_BASE_HEAD and a dirty work tree, changed files are
 * restored and untracked files removed inside the sandbox, except ignored files and other
 * repositories in the work tree.
 *
 * Returns 0; HF_E_BUSY if the candidate is landing; HF_E_PLAN_STATE if a candidate of that
 * name has neither landed nor been dropped (hf_land_drop); errors of hf_plan_enter; -errno.
 */
HF_API int hf_land_begin(struct hf_landings *landings, const char *name, const char *plan,
			 const struct hf_land_place *place, enum hf_land_base base,
			 struct hf_err *err) HF_MUST_CHECK;

/* -- landing ---------------------------------------------------------------------- */

enum hf_land_flags {
	/*
	 * Keep the agent's plan after landing, in this attempt or a later one; by default it is
	 * removed. hf_land then lands the later work in that plan.
	 */
	HF_LAND_KEEP_PLAN = 1 << 0,
	/*
	 * Sign the commits that the landing makes (user.signingKey, gpg.format). If signing fails, the
	 * candidate is rejected. Without the flag, commit.gpgSign has the same effect, but if signing
	 * fails, the commits land unsigned (hf_land_report.is_unsigned).
	 */
	HF_LAND_SIGN = 1 << 1,
};

/* A note about the progress of a landing. */
typedef void hf_land_step_fn(void *arg, enum hf_land_state step, const char *text);

/*
 * Options of a landing. flags, merge, verify, verify_ns, message, also, branch, dir and env are
 * part of the candidate: a 0 or NULL keeps the value of the previous attempt, or of the run that made it
 * (tx.h). The limits of a confined run (HF_TX_READONLY_REST, HF_TX_NO_NETWORK) are part of it,
 * too: its candidate is never verified without them.
 */
struct hf_land_opts {
	size_t size; /* sizeof(struct hf_land_opts) */
	unsigned flags;      /* enum hf_land_flags */
	enum hf_land_merge merge;
	const char *verify;  /* run by sh -c, in the sandbox; "": none */
	int64_t verify_ns;   /* 0: HF_LAND_VERIFY_NS */
	const char *message; /* of the commit of uncommitted work; by default made from the name */
	const char *session; /* a lock whose token must be current when the branch moves (L5); NULL: none */
	uint64_t token;
	/*
	 * NULL-ended globs, at most HF_LAND_ALSO_MAX: ignored files that the agent created or
	 * changed are committed, too, if a glob matches their path from the top, as in
	 * .gitignore ("dist" with its content, "dist/x*"). If the work tree has such a file
	 * with other content, that is a conflict `dirty`.
	 */
	const char *const *also;
	/*
	 * This many candidates at the head of the queue are verified in parallel. A candidate
	 * that waits for the branch is verified on top of the candidate before it. The result
	 * counts if that candidate lands unchanged; otherwise it is discarded. 0, 1: disabled.
	 */
	unsigned speculate;
	int64_t wait_ns;     /* for the branch; 0: do not wait; negative: no limit */
	int cancel_fd;       /* ends the wait when readable; 0: none */
	int out_fd;          /* for the verifier's output; 0: standard error */
	hf_land_step_fn *step; /* NULL: no notes */
	/*
	 * Called between steps: a negative result ends the landing and is returned. NULL: no
	 * call. A step can take as long as the verifier, and the wait for the branch as long
	 * as other landings: a lease needs a thread that renews it.
	 */
	int (*alive)(void *arg);
	void *arg;
	const char *dir;        /* the verifier's directory, absolute; by default the top of the work tree */
	const char *const *env; /* NULL-ended "K=V" for the verifier, added to the caller's environment */
	const char *branch;     /* land on this branch ("main"), not on the one that the candidate was made for */
};

struct hf_land_path {
	const char *path; /* relative to the top of the work tree, any bytes but NUL */
	/*
	 * "content": both changed it; "dirty": the work tree has uncommitted edits in it;
	 * "outside": the agent committed a path that it did not change, and Holdfast cannot
	 * prove that it is a user's edit, or cannot leave it out; "kept": the file is changed
	 * in the sandbox, and did not land
	 */
	const char *kind;
};

/* Work in the sandbox that HEAD did not have, such as a stash or another branch. It does not land: a ref keeps it. */
struct hf_land_kept {
	const char *ref;    /* "refs/holdfast/NAME+stash-1", "refs/holdfast/NAME+branch-BRANCH"; "": only the sandbox has it */
	const char *commit;
	const char *text;   /* in words */
	const char *label;  /* "stash", "branch-BRANCH", "tag-TAG", "ref-REF", "worktree-PATH", "commit" */
	unsigned commits;   /* number of commits that the candidate does not have */
};

struct hf_land_report {
	enum hf_land_state state; /* LANDED, REJECTED or CONFLICT */
	char branch[256];         /* "main" */
	char commit[HF_LAND_OID_MAX]; /* LANDED: now the branch's tip or part of it; otherwise the tip that is kept */
	char text[256];           /* the reason and the result as text */
	unsigned commits;         /* number of landed commits; LANDED and 0: nothing to land, and `commit` is the base */
	unsigned files;           /* changed by the candidate; after landing: on the branch */
	unsigned added, deleted;  /* of those files */
	int rebased;              /* 1: onto new commits of the branch; 0: not rebased, or merged */
	unsigned unsigned_commits; /* signed commits that lost their signature in the rebase */
	unsigned left_out;        /* paths left out of the commits: the agent committed them without
				   * a change, and a user was editing them */
	char first_left_out[256]; /* one of them; "": none */
	int is_there;             /* 1: LANDED, and the branch had the change before: nothing was added */
	int is_unsigned;          /* 1: commit.gpgSign is set, but no key could sign the commits of the landing */
	size_t n_also_unmatched;
	const char *const *also_unmatched; /* globs of hf_land_opts.also that match no file of the change */
	int64_t verify_ns;        /* duration of the last verification; -1: none */
	size_t n_paths;
	const struct hf_land_path *paths; /* of a conflict; free it with hf_land_report_done */
	size_t n_unlanded;
	const struct hf_land_path *unlanded; /* files that the agent changed and that did not land ("kept"): the plan stays for them */
	size_t n_kept;
	const struct hf_land_kept *kept;
	void *memory;
};

/* Frees the content of a report, not the report itself. */
HF_API void hf_land_report_done(struct hf_land_report *report);

/*
 * Lands a candidate. Returns 0 with *ret_report if it ended: landed, rejected, or in conflict.
 * On an error nothing has landed, and the candidate is unchanged or QUEUED, with its work
 * kept:
 *
 *   HF_E_NO_LANDING  no candidate has that name
 *   HF_E_FINISHED    it has landed, or was dropped
 *   HF_E_LAND        nothing can land on the repository; the detail has the reason
 *   HF_E_IN_USE      processes are still in the agent's sandbox
 *   HF_E_STALE       the session's token is no longer current (L5)
 *   HF_E_BUSY, HF_E_TIMEOUT, HF_E_CANCELLED  while waiting for the candidate or
 *                    the branch
 *   HF_E_TIMEOUT     also if a lock file of git, named as the subject, stayed for
 *                    some seconds; a person may remove it if git does not run
 *   HF_E_CANCELLED   also if a signal ended git or the verifier
 *   -errno, and errors of plan.h
 */
HF_API int hf_land(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts,
		   struct hf_land_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/*
 * Completes or undoes a landing whose process died; `name` NULL: of all candidates. hf_land
 * does this first. Returns 1 if there was anything to do, otherwise 0.
 */
HF_API int hf_land_recover(struct hf_landings *landings, const char *name, struct hf_err *err) HF_MUST_CHECK;

/*
 * Drops a candidate: removes refs/holdfast/NAME, the refs of its kept work (unless they were
 * moved) and the agent's plan. After a landing, removes the kept work and the kept plan. HF_E_NO_LANDING, HF_E_BUSY, HF_E_IN_USE;
 * HF_E_FINISHED: nothing is kept.
 */
HF_API int hf_land_drop(struct hf_landings *landings, const char *name, struct hf_err *err) HF_MUST_CHECK;

/*
 * Removes plans (".land-...") that a landing made for itself and that a kill has left: their
 * candidate is gone, or no process lands it. They never hold the work of an agent. Calls `fn`
 * (may be NULL) before each removal. Returns the number of plans. With `dry_run` it removes
 * nothing.
 */
HF_API int hf_land_sweep(struct hf_landings *landings, int dry_run, void (*fn)(void *arg, const char *plan), void *arg,
			 struct hf_err *err) HF_MUST_CHECK;

/* -- inspecting -------------------------------------------------------------------- */

struct hf_land_info {
	const char *name;
	enum hf_land_state state;
	const char *top;    /* of the work tree */
	const char *branch; /* "main" */
	const char *base, *tip, *commit; /* "": none yet */
	/* "" if missing. A removed plan is missing; without a tip, nothing is left to land then: hf_land_drop. */
	const char *plan, *session, *verify, *text;
	enum hf_land_merge merge;
	uint64_t dev, ino;  /* of the repository: with the branch, it identifies the queue */
	int alive;          /* 1: a process works on it; 0 in the state QUEUED, REBASING, VERIFYING
			     * or LANDING: it was interrupted */
	int place;          /* in the queue: 1 is next or in progress; 0: not queued */
	unsigned commits, files, added, deleted; /* as in hf_land_report */
	int rebased;
	int64_t verify_ns;  /* -1 */
	struct hf_wall since, changed;
	const struct hf_land_path *paths;
	size_t n_paths;
	uint64_t token;     /* of the session's run that made it; 0: no session */
	const struct hf_land_path *unlanded; /* as in hf_land_report */
	size_t n_unlanded;
	const struct hf_land_kept *kept;
	size_t n_kept;
};

typedef void hf_land_fn(void *arg, const struct hf_land_info *info);

/* Calls `fn` with the candidate. HF_E_NO_LANDING; HF_E_FORMAT: its record was quarantined. */
HF_API int hf_land_look(struct hf_landings *landings, const char *name, hf_land_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* Calls `fn` with each candidate, sorted by name; returns the first error at the end. */
HF_API int hf_land_list(struct hf_landings *landings, hf_land_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the present commit of a candidate's branch, read from its repository. HF_E_LAND,
 * -errno.
 */
HF_API int hf_land_head(const struct hf_land_info *info, char ret_oid[HF_LAND_OID_MAX],
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns whether the commit of a landed candidate is part of its branch now, read from its
 * repository: 1, or 0 if the branch was rewritten since. -EINVAL: it has not landed;
 * HF_E_LAND, -errno.
 */
HF_API int hf_land_proven(const struct hf_land_info *info, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
