/*
 * holdfast/state.h - the state directory, which has the locks, sessions and journal.
 *
 * Calling sequence:
 *
 *     struct hf_state *state;
 *     if (hf_state_open(NULL, 0, &state, &err) < 0)
 *             return -1;
 *     hf_state_free(state);                  // after everything that was opened from it
 *
 * Location. The path argument, else $HOLDFAST_DIR, else $XDG_STATE_HOME/holdfast,
 * else ~/.local/state/holdfast. Empty variables and a relative XDG_STATE_HOME count
 * as unset; a relative HOLDFAST_DIR is -EINVAL. A missing directory is created with
 * its parents, mode 0700.
 *
 * Trust (L12). The path must be a directory, not a symlink, that the effective user
 * owns and that is closed to group and others; otherwise HF_E_UNTRUSTED. It is opened
 * once, and all later access is relative to that descriptor, so renaming or replacing
 * the path does not redirect an open handle. A directory with other content and
 * without a FORMAT file is refused, so that a mistyped path is not filled with
 * Holdfast's files.
 *
 * Layout:  FORMAT  locks/  sessions/  plans/  landings/  modes/  journal/  quarantine/
 *
 * Ownership: free a handle with hf_state_free, after everything that was opened from it.
 * Threads: a handle is constant after opening and may be shared.
 * Fork: a child may only hf_state_free() an inherited handle.
 * Crash: FORMAT appears whole or not at all. A crash before that leaves an empty
 * directory, which the next open completes.
 * Limits: names are case-sensitive, so a case-folding directory is refused. On a
 * network file system a process with another boot id is unknown, not dead
 * (hf_state_is_shared).
 */
#ifndef HOLDFAST_STATE_H
#define HOLDFAST_STATE_H

#include "holdfast/api.h"
#include "holdfast/err.h"

HF_C_BEGIN

#define HF_STATE_FORMAT 2 /* the layout of the directory; others are refused (HF_E_FORMAT) */

struct hf_state;

enum hf_state_flags {
	HF_STATE_NO_CREATE = 1 << 0, /* a missing directory is -ENOENT and is not created */
};

/*
 * Opens the state directory, and creates it unless HF_STATE_NO_CREATE is given. `path` may be NULL.
 * Returns 0; HF_E_UNTRUSTED; HF_E_FORMAT (written by a newer version); -errno.
 * Blocks: only as long as the file system does.
 */
HF_API int hf_state_open(const char *path, unsigned flags, struct hf_state **ret_state,
			 struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_state_free(struct hf_state *state);

/* Returns the directory's descriptor, which the handle owns. */
HF_API int hf_state_dirfd(const struct hf_state *state);

/* Returns the directory's absolute path at the time of opening, for messages and children. */
HF_API const char *hf_state_path(const struct hf_state *state);

/* Returns 1 if the directory is on a network or cluster file system, else 0. */
HF_API int hf_state_is_shared(const struct hf_state *state);

HF_C_END

#endif
