/*
 * tx/land/git/refs.h - refs that are files of their own, read without starting a git.
 *
 * The format is git's published one (gitrepository-layout): "ref: NAME\n" in HEAD, "OID\n" in a ref. Whatever is not exactly that (packed,
 * symbolic, a symlink, another way of keeping refs) is left to git. The branch moves by git's compare-and-swap alone; a landing is
 * proven by the ref itself where that is at its commit, else by git. Safe in a child of fork().
 */
#ifndef TX_LAND_GIT_REFS_H
#define TX_LAND_GIT_REFS_H

#include "hf/tx/land/git/git.h"

#define HF_GIT_REF_MAX 512

/* The object name in DIR/REF. 0; 1: not to be read so. */
int hf_git_loose_ref(const char *dir, const char *ref, char out[65]);

/* The same of a ref that may be packed. 0; 1: not to be read so, or there is none. */
int hf_git_read_ref(const char *common, const char *ref, char out[65]);

/* Is the ref one without a file of its own, and at `oid` in the file of packed refs? */
int hf_git_packed_has(const char *common, const char *ref, const char *oid);

/* The branch that the HEAD of a git directory names. 0; 1: not to be read so (detached, another format). */
int hf_git_head_ref(const char *git_dir, char out[HF_GIT_REF_MAX]);

/* The commit that HEAD is at. 0; 1: not to be read so. */
int hf_git_loose_head(const char *git_dir, const char *common, char out[65]);

/* The commit of a ref, by the files (`maybe`: where it was last) or by git, which runs as `git` says. 0; 1: there is none; or an error. */
int hf_git_commit_of(const struct hf_git *git, const char *common, const char *ref, const char *maybe, char out[65], struct hf_err *err);

#endif
