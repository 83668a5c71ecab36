/*
 * sys/state/state.h - what the layers above need of the state directory beyond
 * holdfast/state.h: trusted sub-directories, and the place for what is not
 * trusted.
 */
#ifndef SYS_STATE_STATE_H
#define SYS_STATE_STATE_H

#include <stddef.h>

#include "hf/base/buf.h"
#include "holdfast/state.h"

#define HF_QUARANTINE_NAME_MAX 256

struct hf_state {
	int dirfd;
	int shared;
	char *path;
};

/* -- opening it, in three steps (state.c calls them in this order) ---------------- */

/*
 * Which directory: `given`, else what the environment says; see holdfast/state.h. What stands
 * behind the first `*ret_own` bytes was chosen by us, not named by the user.
 */
int hf_state_choose(const char *given, struct hf_buf *path, size_t *ret_own, struct hf_err *err);

/* Makes it and its parents. */
int hf_state_make(struct hf_buf *path, size_t own, struct hf_err *err);

/* Checks FORMAT; with `create`, a directory that is empty gets one. */
int hf_state_check_format(const struct hf_state *state, int create, struct hf_err *err);

/*
 * Could the directory be made, or if it is there, could anything be made in it? Tries it, and
 * leaves nothing behind. Returns 0 or -errno with what to do.
 */
int hf_state_try(const char *given, struct hf_err *err);

/*
 * A handle of the directory that `fd` is open on, as another process opened it; `path` is its path for messages and children.
 * The handle has a descriptor of its own.
 */
int hf_state_adopt(int fd, const char *path, struct hf_state **ret_state, struct hf_err *err);

/* -- directories of ours ----------------------------------------------------------- */

/*
 * Opens sub-directory `name` of the layout, making it unless `create` is 0
 * (then -ENOENT). The same trust rules as for the state directory itself.
 */
int hf_state_subdir(const struct hf_state *state, const char *name, int create, int *ret_fd,
		    struct hf_err *err);

/*
 * Opens a directory whose own entry is no symlink, and checks that it is ours alone. The owner's
 * bits that a umask took are given back.
 */
int hf_private_dir(int dirfd, const char *name, const char *shown, int *ret_fd, struct hf_err *err);

/* hf_state_subdir below any directory of ours; `shown` is its path for messages. */
int hf_private_subdir(int dirfd, const char *name, const char *shown, int create, int *ret_fd,
		      struct hf_err *err);

/*
 * Moves the entry `file` of sub-directory `subdir` to quarantine/, whatever it
 * is: the entry is renamed, never opened or followed. The new name is written
 * to ret_name. The caller journals it (record_quarantined).
 */
int hf_state_quarantine(const struct hf_state *state, const char *subdir, const char *file,
			char ret_name[HF_QUARANTINE_NAME_MAX], struct hf_err *err);

/* The same for the entry `file` of any directory of ours; `label` says of what it was. */
int hf_state_quarantine_from(const struct hf_state *state, int from, const char *label,
			     const char *file, char ret_name[HF_QUARANTINE_NAME_MAX],
			     struct hf_err *err);

#endif
