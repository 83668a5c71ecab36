/*
 * plan/target/pins.h - files of a target that an overlay shows as they were, whatever becomes of them in the target.
 *
 * An overlay shows a file of its target as it is now, until it is changed inside. What is pinned lies in a layer of its own between the upper
 * directory and the target ("p" of the sandbox's directory): a rename in the target does not reach it, and a write inside makes a copy
 * in the upper directory, as of any file below. So it is no change of the sandbox. A file is pinned by a hard link where the state
 * directory is on the target's file system, else by a copy: only for files that are replaced, and never written to in their place.
 *
 *     r = hf_pins_open(plans, plan, sandbox, &pins, err);      not entered yet; the plan's lock is held until hf_pins_done
 *     r = hf_pins_share(&pins, ".git/index");                  as it is now
 *     r = hf_pins_write(&pins, ".git/refs/heads/main", text, len);
 *     r = hf_pins_hide(&pins, ".git/index.lock");              whatever the target will have there
 */
#ifndef PLAN_TARGET_PINS_H
#define PLAN_TARGET_PINS_H

#include <sys/stat.h>

#include "hf/plan/registry/registry.h"

struct hf_pins {
	struct hf_lock *lock;
	int target, layer;
};

#define HF_PINS_INIT { .target = -1, .layer = -1 }

/* HF_E_PLAN_STATE when the sandbox is no overlay, or was entered; HF_E_NO_SANDBOX; errors of the plan. */
int hf_pins_open(struct hf_plans *plans, const char *plan, const char *sandbox, struct hf_pins *ret, struct hf_err *err);
void hf_pins_done(struct hf_pins *pins);

/*
 * The regular file at `path` below the target, as it is now, instead of what was pinned there before. Symlinks are not followed. Returns
 * 1 with its stat in *ret (may be NULL); 0: there is none; -errno.
 */
int hf_pins_share(const struct hf_pins *pins, const char *path, struct stat *ret);

/* A file with this content, mode 0644, whatever the target has there. 0 or -errno. */
int hf_pins_write(const struct hf_pins *pins, const char *path, const char *bytes, size_t len);

/*
 * Nothing is seen there, whatever the target has or will have; what is made there inside is the sandbox's own. 0; -errno, also where the kernel lets
 * only root make what overlayfs takes for that (before Linux 5.8).
 */
int hf_pins_hide(const struct hf_pins *pins, const char *path);

#endif
