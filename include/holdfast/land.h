/*
 * holdfast/land.h - landing on git: the change that was made in a sandbox becomes the branch.
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
 * Words. A candidate is a named change that is to become part of a branch. Its base is the commit
 * that the agent began with, its tip the last commit of its work. A landing is what happens to
 * it: states below.
 *
 * The steps of hf_land:
 *
 *   1  In the agent's sandbox: what is not committed is committed (trailers Holdfast-Session and
 *      Holdfast-Token). The new objects are brought into the real repository, checked, and
 *      refs/holdfast/NAME keeps them. From here on the work cannot be lost. (A run with a verifier, tx.h, commits before its verifier runs in
 *      that sandbox. While HEAD is at that commit, what is uncommitted beside it is the verifier's, and does not land.)
 *   2  The branch's lock is taken: candidates of one branch land first come, first served.
 *   3  In a new sandbox over the work tree: the candidate is rebased or merged onto the branch as it is
 *      now, and verified in that form (or was so while it waited: hf_land_opts.speculate). Build output that git ignores is there, so builds are warm.
 *      The verifier sees that commit and files that git ignores, but no other file of the user: no untracked files, no edits under skip-worktree or
 *      assume-unchanged, and submodules at the recorded commits (a conflict if a checkout fails). It runs again if the user saved a file that it could see.
 *   4  The branch is moved by compare-and-swap in one ref transaction. Where the branch is checked
 *      out, the work tree and its index are changed with it, by the commit of a plan.
 *   5  The landing is proven by reading the repository: the commit is an ancestor of the branch
 *      now. Only then it is `landed` (L14).
 *
 * Uncommitted edits in the work tree are never touched: a path that the candidate changes as well is a
 * conflict `dirty`. An edit that a user saves meanwhile is seen in the sandbox. An agent that commits it without having changed the file ("git commit -a") does
 * not land it: its commits are made anew without that path, which is reported. If the branch moves meanwhile (a user commits), step 3 begins again. If its user
 * took the candidate's base back, only the candidate's own commits are put onto the branch.
 *
 * What runs where. Hooks of the repository run in the agent's sandbox only. Its configuration,
 * attributes and filters take effect there and nowhere else: outside, git runs with the real
 * repository's configuration, without hooks, fsmonitor, pager and prompts.
 *
 * Signed commits stay signed unless they are rebased, which is reported. What the agent left uncommitted is committed without a signature, also
 * with commit.gpgSign: its key may ask for a passphrase. Merge commits of the agent are made straight by a rebase. Only HEAD lands: tags, stashes and other
 * branches that the agent made go with its sandbox. But when HEAD has nothing new, and a branch, a tag, a stash or a reflog of the sandbox has a commit that neither the repository nor a
 * remote has, that is rejected, and the text says where the work is.
 *
 * Refused (HF_E_LAND, with the way out): git older than 2.38; a bare repository; one without a commit; a detached HEAD
 * when no branch is named; a change of a submodule; a file of git LFS whose new content only the sandbox's store has (a pointer to content that the
 * repository's store has lands).
 *
 * Crash. Each record is replaced as a whole. A landing whose process died is finished or undone by the next
 * hf_land or hf_land_recover: the ref is read back and decides. The work tree, the index and the branch
 * agree afterwards.
 *
 * Lock order: the candidate's lock, the branch's lock, then those of plan.h.
 *
 * Ownership: a context is freed by hf_landings_free, before the plans, journal and state it was opened
 * with. Threads: a context may be shared, hf_land itself is for a thread of a process with one
 * thread: it forks, reaps, and blocks signals meanwhile (it passes them on to git and the
 * verifier). Fork: a child may only free what it inherited.
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
#define HF_LAND_OID_MAX     65 /* hexadecimal digits of an object's name, and NUL */
#define HF_LAND_ALSO_MAX    64
#define HF_LAND_VERIFY_NS   (10 * 60 * HF_SEC)

struct hf_landings; /* the landings of one state directory */

/* clang-format off */
#define HF_LAND_STATE_LIST(X) \
	X(WORKING,   1, "working")   /* the agent is at work */ \
	X(QUEUED,    2, "queued")    /* its work is kept in refs/holdfast/NAME; waits for the branch */ \
	X(REBASING,  3, "rebasing") \
	X(VERIFYING, 4, "verifying") \
	X(LANDING,   5, "landing")   /* branch and work tree are being changed */ \
	X(LANDED,    6, "landed")    /* seen to be part of the branch */ \
	X(REJECTED,  7, "rejected")  /* the verifier said no, or there is nothing that can land */ \
	X(CONFLICT,  8, "conflict")  /* the paths say where; to be tried again */ \
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
	HF_LAND_MERGE_AS_BEFORE = 0, /* in options: as the candidate was last landed; HF_LAND_REBASE for one that never was. Nothing else has it */
#define HF_LAND_MERGE_ENUM(name, number, word) HF_LAND_##name = number,
	HF_LAND_MERGE_LIST(HF_LAND_MERGE_ENUM)
#undef HF_LAND_MERGE_ENUM
};

enum hf_land_base {
	HF_LAND_BASE_HEAD = 0,     /* the agent begins with the branch as it is committed */
	HF_LAND_BASE_WORKTREE = 1, /* and with the uncommitted edits of its user */
};

/* The word of a state ("landed") or of a way to merge ("ff-only"); "unknown" for a number that is none. */
HF_API const char *hf_land_state_word(enum hf_land_state state);
HF_API const char *hf_land_merge_word(enum hf_land_merge merge);

/* The way to merge of a word, or -EINVAL. */
HF_API int hf_land_merge_of(const char *word);

/* Opens the landings of `state`. `journal` may be NULL: then no events are written. */
HF_API int hf_landings_open(struct hf_state *state, struct hf_journal *journal, struct hf_plans *plans,
			    struct hf_landings **ret_landings, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_landings_free(struct hf_landings *landings);

/* -- before the agent starts ------------------------------------------------------ */

/* A git work tree, as found from a directory. */
struct hf_land_place {
	char *top;    /* of the work tree; it is to be the target, not the directory that was given */
	int moved_up; /* 1: `top` is a parent of that directory, which is to be said */
	char *git_dir; /* of that work tree */
	char *common; /* the repository's directory: objects, refs */
	char *branch; /* "refs/heads/main" */
	char base[HF_LAND_OID_MAX]; /* the commit that HEAD is at */
	size_t n_dirty; /* paths with uncommitted changes, untracked ones counted, but no other repository in the work tree: sandboxes show that */
	/* What a plan must have as targets, in this order: git directories outside of `top` (of a linked
	 * worktree, of a submodule), then `top` itself. */
	char *targets[HF_LAND_TARGETS_MAX];
	size_t n_targets;
	uint64_t dev, ino; /* of the repository's common directory */
};

/*
 * Is `dir` in a git work tree? 1 with *ret_place filled (hf_land_place_done), 0 when it is in none. `branch`: where
 * to land ("main"); NULL: the branch that is checked out. HF_E_LAND when it is one that cannot be landed on; -errno.
 */
HF_API int hf_land_find(const char *dir, const char *branch, struct hf_land_place *ret_place,
			struct hf_err *err) HF_MUST_CHECK;

/* Frees what a place holds; the place itself is the caller's. */
HF_API void hf_land_place_done(struct hf_land_place *place);

/*
 * Adds a sandbox for each target of the place to `plan`, which exists and has none; each is an overlay, because git finds its
 * directories by their paths. When one of them cannot be made, the plan is removed as a whole. HF_E_LAND, errors of hf_plan_add.
 */
HF_API int hf_land_add_targets(struct hf_plans *plans, const char *plan, const struct hf_land_place *place,
			       struct hf_err *err) HF_MUST_CHECK;

/*
 * Writes down that the agent of `plan` begins work on candidate `name`. The plan exists, has the targets of
 * the place (hf_land_add_targets), and was not entered. HEAD, its branch and the index become the sandbox's own. With HF_LAND_BASE_HEAD, when the work tree is dirty: its changed files are restored
 * and its untracked ones (but for ignored ones, and for other repositories in the work tree) removed, inside the sandbox. Returns 0; HF_E_BUSY when the candidate is being
 * landed; HF_E_PLAN_STATE when there is one of that name that has neither landed nor been dropped (hf_land_drop); errors of
 * hf_plan_enter; -errno.
 */
HF_API int hf_land_begin(struct hf_landings *landings, const char *name, const char *plan,
			 const struct hf_land_place *place, enum hf_land_base base,
			 struct hf_err *err) HF_MUST_CHECK;

/* -- landing ---------------------------------------------------------------------- */

enum hf_land_flags {
	HF_LAND_KEEP_PLAN = 1 << 0, /* the agent's plan stays when it has landed; else it is removed */
};

/* What is to be said of a landing while it goes on. */
typedef void hf_land_step_fn(void *arg, enum hf_land_state step, const char *text);

/*
 * merge, verify, verify_ns, message, also, dir and env are part of the candidate: what is 0 or NULL here is as in the try before, or as in the run that made it
 * (tx.h). So are the limits of a run that was confined (HF_TX_READONLY_REST, HF_TX_NO_NETWORK): its candidate is never verified without them.
 */
struct hf_land_opts {
	size_t size; /* sizeof(struct hf_land_opts) */
	unsigned flags;      /* enum hf_land_flags */
	enum hf_land_merge merge;
	const char *verify;  /* run by sh -c, in the sandbox; "": none */
	int64_t verify_ns;   /* 0: HF_LAND_VERIFY_NS */
	const char *message; /* of the commit of what the agent left uncommitted; by default made from the name */
	const char *session; /* a lock whose token must be current when the branch moves (L5); NULL: none */
	uint64_t token;
	/*
	 * NULL-ended globs, at most HF_LAND_ALSO_MAX: files that git ignores and the agent made or changed are committed with the
	 * rest when one matches their path from the top, as in .gitignore ("dist" with all in it, "dist/x*"). Where the
	 * work tree has such a file with other content, that is a conflict `dirty`.
	 */
	const char *const *also;
	/*
	 * While it waits for the branch, it is verified ahead of its turn, on top of the candidate before it, if its place in the queue is at most this
	 * (so many are verified at once). If that one lands as it stands, this verdict counts; else it is thrown away. 0, 1: not.
	 */
	unsigned speculate;
	int64_t wait_ns;     /* for the branch; 0: do not wait; negative: for ever */
	int cancel_fd;       /* ends the wait when it is readable; 0: none */
	int out_fd;          /* where the verifier's output goes; 0: standard error */
	hf_land_step_fn *step; /* NULL: not wanted */
	/*
	 * Called between steps: less than 0 ends the landing with that value. NULL: not wanted. A step can take as long as
	 * the verifier, and the wait for the branch as long as those of others: a lease needs a thread that renews it.
	 */
	int (*alive)(void *arg);
	void *arg;
	const char *dir;        /* where the verifier runs, absolute; by default the top of the work tree */
	const char *const *env; /* NULL-ended "K=V" for the verifier, besides the caller's environment */
};

struct hf_land_path {
	const char *path; /* relative to the top of the work tree, any bytes but NUL */
	/* "content": both changed it; "dirty": it has uncommitted edits in the work tree; "outside": the agent has committed a path that it did not
	 * change, and it cannot be told that this is a user's edit, or it cannot be left out */
	const char *kind;
};

struct hf_land_report {
	enum hf_land_state state; /* LANDED, REJECTED or CONFLICT */
	char branch[256];         /* "main" */
	char commit[HF_LAND_OID_MAX]; /* LANDED: what is the branch's now, or part of it; else the tip that is kept */
	char text[256];           /* in words: why, what was done */
	unsigned commits;         /* that landed; LANDED and 0: there was nothing to land, and `commit` is what it began with */
	unsigned files;           /* that they change; of a candidate that has landed: what the branch got */
	unsigned added, deleted;  /* of those */
	int rebased;              /* 1: onto commits that came meanwhile; 0: not, or merged with them */
	unsigned unsigned_commits; /* that were signed, and lost that by being rebased */
	unsigned left_out;        /* paths that the agent committed, that it had not changed and a user was editing: they were left out of its commits */
	char first_left_out[256]; /* one of them; "": there is none */
	int64_t verify_ns;        /* what the last verification took; -1: there was none */
	size_t n_paths;
	const struct hf_land_path *paths; /* of a conflict; freed by hf_land_report_done */
	void *memory;
};

/* Frees what a report holds; the report itself is the caller's. */
HF_API void hf_land_report_done(struct hf_land_report *report);

/*
 * Lands a candidate. Returns 0 with *ret_report filled when it came to an end: landed, rejected, or in conflict. Else
 * nothing has landed, and the candidate is as it was or QUEUED, its work kept:
 *   HF_E_NO_LANDING  there is none of that name
 *   HF_E_FINISHED    it has landed, or was dropped
 *   HF_E_LAND        the repository cannot be landed on; the detail says why
 *   HF_E_IN_USE      processes are still in the agent's sandbox
 *   HF_E_STALE       the session's token is no longer current (L5)
 *   HF_E_BUSY, HF_E_TIMEOUT, HF_E_CANCELLED  waiting for the candidate or the branch; HF_E_TIMEOUT also for a lock file of git
 *                    that did not go within some seconds: it is the subject, and is for people to remove if no git runs; HF_E_CANCELLED
 *                    also when a signal ended git or the verifier
 *   -errno, and errors of plan.h
 */
HF_API int hf_land(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts,
		   struct hf_land_report *ret_report, struct hf_err *err) HF_MUST_CHECK;

/*
 * Finishes or undoes a landing whose process died. 1 when there was something to do, 0 when not. Also run by hf_land.
 * With `name` NULL: of all candidates.
 */
HF_API int hf_land_recover(struct hf_landings *landings, const char *name, struct hf_err *err) HF_MUST_CHECK;

/* Gives a candidate up: refs/holdfast/NAME and the agent's plan are removed. HF_E_NO_LANDING, HF_E_BUSY, HF_E_IN_USE. */
HF_API int hf_land_drop(struct hf_landings *landings, const char *name, struct hf_err *err) HF_MUST_CHECK;

/* -- looking ---------------------------------------------------------------------- */

struct hf_land_info {
	const char *name;
	enum hf_land_state state;
	const char *top;    /* of the work tree */
	const char *branch; /* "main" */
	const char *base, *tip, *commit; /* "" where there is none yet */
	/* "" where there is none. A plan that was removed is none; without a tip, nothing is left to land then: hf_land_drop. */
	const char *plan, *session, *verify, *text;
	enum hf_land_merge merge;
	uint64_t dev, ino;  /* of the repository: with the branch, the queue it is in */
	int alive;          /* 1: a process works on it; 0 of one that is QUEUED, REBASING, VERIFYING or LANDING: it was interrupted */
	int place;          /* in the queue: 1 is next or under way; 0: not in it */
	unsigned commits, files, added, deleted; /* as in hf_land_report */
	int rebased;
	int64_t verify_ns;  /* -1 */
	struct hf_wall since, changed;
	const struct hf_land_path *paths;
	size_t n_paths;
	uint64_t token;     /* of the session's run that it is the work of; 0: of none */
};

typedef void hf_land_fn(void *arg, const struct hf_land_info *info);

/* Calls `fn` with the candidate. HF_E_NO_LANDING; HF_E_FORMAT: its record was put away. */
HF_API int hf_land_look(struct hf_landings *landings, const char *name, hf_land_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* The same for each there is, in the order of their names; the first error is returned at the end. */
HF_API int hf_land_list(struct hf_landings *landings, hf_land_fn *fn, void *arg,
			struct hf_err *err) HF_MUST_CHECK;

/* The commit that the branch of a candidate is at now, read from its repository. HF_E_LAND, -errno. */
HF_API int hf_land_head(const struct hf_land_info *info, char ret_oid[HF_LAND_OID_MAX],
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Is the commit of a candidate that has landed part of its branch now? Read from its repository: 1, or 0 when the branch was
 * rewritten since. -EINVAL: it has not landed; HF_E_LAND, -errno.
 */
HF_API int hf_land_proven(const struct hf_land_info *info, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
