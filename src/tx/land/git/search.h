/*
 * tx/land/git/search.h - finding the work tree of a directory in two steps, with time for other things between them.
 *
 *     r = hf_land_search_begin(known, dir, branch, &search, err);    1: search.place has all but what is dirty
 *     ... sandboxes are made ...
 *     r = hf_land_search_end(&search, err);                             and that
 *
 * What is dirty is told by one `git status`, which looks at each file of the work tree: it is most of the time that a landing takes to begin over a large
 * one, and runs meanwhile. The rest is read from the repository's files where those are certain.
 */
#ifndef TX_LAND_GIT_SEARCH_H
#define TX_LAND_GIT_SEARCH_H

#include "hf/tx/land/git/beside.h"
#include "holdfast/land.h"

struct hf_land_search {
	struct hf_land_place place;
	size_t n_untracked; /* of place.n_dirty */
	struct hf_git_beside status;
};

#define HF_LAND_SEARCH_INIT { .status = HF_GIT_BESIDE_INIT }

/* As hf_land_find: 1, 0 or an error. `known`: of hf_git_version. */
int hf_land_search_begin(int known, const char *dir, const char *branch, struct hf_land_search *ret, struct hf_err *err);

/* Fills in place.n_dirty. 0 or an error. */
int hf_land_search_end(struct hf_land_search *search, struct hf_err *err);
void hf_land_search_done(struct hf_land_search *search);

#endif
