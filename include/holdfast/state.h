/*
 * holdfast/state.h - the state directory: where locks, sessions and the journal live.
 *
 * Calling sequence:
 *
 *     struct hf_state *state;
 *     if (hf_state_open(NULL, 0, &state, &err) < 0)
 *             return -1;
 *     hf_state_free(state);                  // after everything opened from it
 *
 * Which directory. The path given, else $HOLDFAST_DIR, else
 * $XDG_STATE_HOME/holdfast, else ~/.local/state/holdfast. Empty variables and a
 * relative XDG_STATE_HOME count as unset. A missing directory is made, with
 * its parents, mode 0700.
 *
 * Trust (L12). The directory must be a real directory (its own entry no
 * symlink), owned by the effective user and closed to group and others, else
 * HF_E_UNTRUSTED. It is opened once; everything later is relative to that
 * descriptor, so renaming or replacing the path does not redirect an open
 * handle. A directory that has other content and no FORMAT file is refused:
 * a mistyped path is not filled with our files.
 *
 * Layout:  FORMAT  locks/  sessions/  plans/  landings/  modes/  journal/  quarantine/
 *
 * Ownership: a handle is freed by hf_state_free, after all that was opened from it.
 * Threads: a handle is constant after opening and may be shared.
 * Fork: a child may only hf_state_free() what it inherited.
 * Crash: FORMAT appears whole or not at all; a crash before that leaves an empty
 * directory, which the next open completes.
 * Limits: names differ in upper and lower case, so a case-folding directory is
 * refused. On a network file system a process of another boot id counts as
 * unknown, not as dead (hf_state_is_shared).
 */
#ifndef HOLDFAST_STATE_H
#define HOLDFAST_STATE_H

#include "holdfast/api.h"
#include "holdfast/err.h"

HF_C_BEGIN

#define HF_STATE_FORMAT 2 /* the layout of the directory; others are refused (HF_E_FORMAT) */

struct hf_state;

enum hf_state_flags {
	HF_STATE_NO_CREATE = 1 << 0, /* a missing directory is -ENOENT; nothing is made */
};

/*
 * Opens (and unless told not to, makes) the state directory. `path` may be NULL.
 * Returns 0; HF_E_UNTRUSTED; HF_E_FORMAT (written by a newer version); -errno.
 * Blocks: only as long as the file system does.
 */
HF_API int hf_state_open(const char *path, unsigned flags, struct hf_state **ret_state,
			 struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_state_free(struct hf_state *state);

/* The directory's descriptor, owned by the handle. */
HF_API int hf_state_dirfd(const struct hf_state *state);

/* The directory's absolute path as it was when opened, for messages and children. */
HF_API const char *hf_state_path(const struct hf_state *state);

/* 1 when the directory is on a network or cluster file system, else 0. */
HF_API int hf_state_is_shared(const struct hf_state *state);

HF_C_END

#endif
