/*
 * sys/state.h - what the layers above need of the state directory beyond
 * holdfast/state.h: trusted sub-directories, and the place for what is not
 * trusted.
 */
#ifndef SYS_STATE_H
#define SYS_STATE_H

#include <stddef.h>

#include "holdfast/state.h"

#define HF_QUARANTINE_NAME_MAX 256

/*
 * Opens sub-directory `name` of the layout, making it unless `create` is 0
 * (then -ENOENT). The same trust rules as for the state directory itself.
 */
int hf_state_subdir(const struct hf_state *state, const char *name, int create, int *ret_fd,
		    struct hf_err *err);

/* The same below any directory of ours; `shown` is its path for messages. */
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
