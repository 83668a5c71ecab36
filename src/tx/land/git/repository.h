/* tx/land/git/repository.h - a repository as its files show it, where that is certain; else git is asked. */
#ifndef TX_LAND_GIT_REPOSITORY_H
#define TX_LAND_GIT_REPOSITORY_H

#include "holdfast/land.h"

/*
 * Finds the work tree that `dir` (absolute, resolved) is in. 1: the directories of *ret are filled in; 0: only git can tell, because of a
 * linked worktree, a submodule, a setting that moves the work tree, or another owner; or an error.
 */
int hf_repository_find(const char *dir, struct hf_land_place *ret, struct hf_err *err);

/* Where HEAD is, and its branch ("": detached). 1; 0: only git can tell. */
int hf_repository_head(const struct hf_land_place *place, char ret_oid[HF_LAND_OID_MAX], char *ret_branch, size_t cap);

#endif
