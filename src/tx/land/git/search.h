/*
 * tx/land/git/search.h - finding the work tree of a directory in two steps, with time for other things between them.
 *
 *     r = hf_land_search_begin(known, dir, branch, &search, err);    1: search.place has all but what is dirty
 *     ... sandboxes are made ...
 *     r = hf_land_search_end(&search, err);                             and that
 *
 * What is dirty is remembered from an earlier search, if nothing has changed since (status/remembered.h), which threads find out meanwhile; else one
 * `git status` tells it, which runs meanwhile. Both look at each file of the work tree. The rest is read from the repository's files where those are certain.
 */
#ifndef TX_LAND_GIT_SEARCH_H
#define TX_LAND_GIT_SEARCH_H

#include "hf/tx/land/git/beside.h"
#include "hf/tx/land/status/remembered.h"
#include "holdfast/land.h"

struct hf_land_search {
	struct hf_land_place place;
	size_t n_untracked; /* of place.n_dirty */
	struct hf_git_beside status;
	int has_moment;                   /* 1: remember.moment was taken */
	struct hf_remembered *remembered; /* NULL: nothing is */
	struct hf_remember remember;      /* after the end: what git said, to be remembered; dirfd -1: nothing is */
};

#define HF_LAND_SEARCH_INIT { .status = HF_GIT_BESIDE_INIT, .remember = HF_REMEMBER_INIT }

/* As hf_land_find: 1, 0 or an error. `known`: of hf_git_version; it also has what is remembered. -1: nothing is. */
int hf_land_search_begin(int known, const char *dir, const char *branch, struct hf_land_search *ret, struct hf_err *err);

/* Fills in place.n_dirty. 0 or an error. */
int hf_land_search_end(struct hf_land_search *search, struct hf_err *err);
/*
 * Has HEAD or the index moved since the search began? What was found may then be of one moment, and what the sandbox has pinned meanwhile of another: a file that a
 * user's git had just staged would be taken for the agent's.
 */
int hf_land_search_has_moved(const struct hf_land_search *search);
void hf_land_search_done(struct hf_land_search *search);

#endif
