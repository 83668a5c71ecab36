/*
 * plan/git/index.h - git's index, which git rewrites when it only looks.
 *
 * `git status` stores times and inode numbers of the files that it has compared. A commit of a plan that brought
 * a new index can still be taken back then: the entries are the same, and no user has work in the times.
 * The index as it was committed is kept by a second name in the sandbox, because git replaces the
 * file as a whole.
 */
#ifndef PLAN_GIT_INDEX_H
#define PLAN_GIT_INDEX_H

#include "hf/plan/commit/work.h"

/* Keeps each index that the intent brought to a target. One that cannot be kept is compared as any file is. */
void hf_index_keep(struct hf_work *work);

/*
 * Operation `i` of the intent brought an index that is another file now. 1: with the same entries; 0: it is no
 * index, has other entries, or that is not known. Runs git, twice.
 */
int hf_index_is_same(struct hf_work *work, size_t i);

#endif
