/*
 * tx/land/take/touched.h - what was changed inside a sandbox, as opposed to what is only seen through it.
 *
 * A sandbox shows the work tree as it is now: an edit that a user saves, or a landing of another candidate, is seen inside
 * as long as the file was not changed there. Such a change is not the agent's.
 */
#ifndef TX_LAND_TAKE_TOUCHED_H
#define TX_LAND_TAKE_TOUCHED_H

#include <limits.h>
#include <sys/stat.h>

#include "hf/tx/land/candidate/land.h"

#define S_ISGITLINK(mode) (((mode) & S_IFMT) == 0160000) /* as git calls it */

struct hf_touched_path {
	char *path; /* relative to the top of the work tree */
	mode_t old_mode, new_mode; /* 0: it does not exist outside, or inside */
	int is_content; /* 1: the content may differ, 0: only mode, owner or attributes */
};

struct hf_touched {
	struct hf_touched_path *paths; /* sorted */
	size_t n;
	size_t n_changes; /* all of them, those in the git directory counted; 0: the sandbox shows what is there outside */
	int has_refs;   /* 1: refs or reflogs changed in a way that only git can explain, such as a stash, a checkout or a linked worktree */
	char ref_oid[HF_LAND_OID_MAX]; /* the commit of each changed ref; "": none changed */
	int has_worktrees; /* 1: git directories of linked worktrees changed */
	int is_unfinished; /* 1: a merge, rebase, cherry-pick or bisect was begun inside, and not ended */
	char **locks; /* absolute; lock files that a git made inside and did not take away */
	size_t n_locks;
	const struct hf_landing *landing;
	struct hf_touched_sandbox {
		char *name, *target;
	} *sandboxes;
	size_t n_sandboxes;
	const char *skip; /* the one of them that is the work tree's */
};

int hf_touched_read(struct hf_landings *landings, const struct hf_landing *landing, const char *plan,
		    struct hf_touched *ret, struct hf_err *err);

/* Was `path`, or a directory that it is in, changed inside? */
int hf_touched_has(const struct hf_touched *touched, const char *path);

/* The change of exactly this path, or NULL. */
const struct hf_touched_path *hf_touched_find(const struct hf_touched *touched, const char *path);

/* Was anything in the directory changed inside? For a submodule, which git lists as one path. */
int hf_touched_below(const struct hf_touched *touched, const char *dir);
void hf_touched_done(struct hf_touched *touched);

/* Return 1 if a ref or reflog may have a commit that `head` has not. */
int hf_touched_has_refs(const struct hf_touched *touched, const char *head);

/* Does the repository have a store of git LFS now, inside or outside? */
int hf_touched_has_lfs(const struct hf_land_work *work, const struct hf_touched *touched);

/* What the agent left. left.c */
struct hf_left {
	int is_read;               /* 1: it was read; 0: a verifier ran since then */
	char head[HF_LAND_OID_MAX]; /* HEAD, as it was found */
	char tip[HF_LAND_OID_MAX]; /* the same; "" once there is a new commit of what was left */
	int is_staged;             /* 1: the index differs from that */
	struct hf_buf paths;       /* each with a NUL: changed by the agent and not in the index */
	struct hf_buf gone;        /* the same of those that it removed */
	struct hf_buf worktrees;   /* "git worktree list --porcelain -z"; empty: no linked worktree */
	struct hf_buf index;       /* the index before that: rows "TAG MODE OID STAGE", a tab, PATH and NUL */
};

/* For a git that compares files: settings of the user must not make it miss a change. */
#define HF_GIT_COMPARES "-c", "core.checkStat=default", "-c", "core.trustCtime=true"

#define HF_LEFT_INIT { .paths = HF_BUF_INIT, .gone = HF_BUF_INIT, .worktrees = HF_BUF_INIT, .index = HF_BUF_INIT }

/* Another worktree of the repository. */
struct hf_worktree {
	char path[PATH_MAX]; /* relative to the top; absolute if it is not below the top */
	char head[HF_LAND_OID_MAX];
	char branch[256];    /* "": its HEAD is detached */
};

/* Reads the next one of left->worktrees; *at begins as NULL. Return 0 after the last one. left.c */
int hf_worktree_next(const struct hf_land_work *work, const struct hf_buf *list, const char **at, struct hf_worktree *ret);

/*
 * Adds the new commits outside of HEAD to landing.rest, without refs. Call it before a verifier runs. Return 0, 1 after a rejection, or an
 * error. elsewhere.c
 */
int hf_land_find_rest(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_err *err);

/* A row of left->index. */
struct hf_index_row {
	char tag; /* 'H': unmarked; 'S', 's': skip-worktree; a small letter: assume-unchanged */
	unsigned mode;
	char oid[HF_LAND_OID_MAX];
	int stage;
	const char *path;
};

/* Reads the next row; *at begins as NULL. Return 0 after the last one. marks.c */
int hf_index_next(const struct hf_buf *index, const char **at, struct hf_index_row *ret);

/*
 * Removes the marks skip-worktree and assume-unchanged from each path that the agent touched. A user's own edits in a marked file do not land: only the
 * agent's are staged, by a merge, and the mark stays; if that fails the path is added to landing.unlanded. Return 0, 1 if git failed, with its words in
 * *said, or an error. marks.c
 */
int hf_left_unmark(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_buf *said, struct hf_err *err);

/*
 * Adds each file that the agent changed to landing.unlanded, unless its commits have it, git ignores it, or it is equal to theirs. Call it after the commit;
 * it does nothing if a verifier wrote into the sandbox since then. Return 0 or an error. unlanded.c
 */
int hf_left_find_unlanded(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_err *err);

/* In the sandbox, where locks without a holder are removed first. 0; 1 it is rejected; an error. */
int hf_left_read(struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *ret, struct hf_err *err);

/* Adds a path, if the agent changed it; what is only seen through the sandbox is another's. 0; 1 it is rejected; an error. */
int hf_left_add(struct hf_land_work *work, const struct hf_touched *touched, const char *path, struct hf_left *left, struct hf_err *err);

/* The path of a changed or untracked file in a row of "git status --porcelain=v2 -z"; NULL: it is no such row. */
const char *hf_status_path(const char *row);

/* What the agent did not commit is committed: left->tip. 0; 1 it is rejected; an error. collect.c */
int hf_left_commit(struct hf_land_work *work, const struct hf_touched *touched, struct hf_left *left, struct hf_err *err);

/* The commit that was sealed, if that is what lands: 1; 0: look at what was left; or an error. seal.c */
int hf_land_find_sealed(struct hf_land_work *work, char ret_tip[HF_LAND_OID_MAX], struct hf_err *err);

/* Removes locks, and what a user's git has under way and is seen through the sandbox. */
int hf_left_unlock(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err);
void hf_left_done(struct hf_left *left);

/* The landing is rejected, its sandbox kept, with the reason on record. 1, or an error. collect.c */
int hf_land_reject(struct hf_land_work *work, struct hf_err *err, const char *text);
int hf_land_reject_said(struct hf_land_work *work, const char *what, const struct hf_buf *said, struct hf_err *err);

/* A submodule is at another commit, which is brought into its real repository. Returns 0, 1 if the candidate is rejected, or an error. bump.c */
int hf_land_take_bump(struct hf_land_work *work, const struct hf_land_change *change, struct hf_err *err);

/* Is there a change that cannot land? 0; 1 it is rejected; an error. check.c */
int hf_land_check_changes(struct hf_land_work *work, const struct hf_touched *touched, struct hf_err *err);

#endif
