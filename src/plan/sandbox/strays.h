/*
 * plan/sandbox/strays.h - processes in a sandbox that no watcher or helper looks after any more: it was killed.
 *
 * A process is in an overlay if its mount namespace has that overlay: the file `in` says which namespace, and the mount's
 * source says whose upper directory it is. A process is in a copy if its environment has the mark of the plan
 * (exec/marks.h), which `plan enter` puts there; a process that has cleared its environment is not found then.
 */
#ifndef PLAN_SANDBOX_STRAYS_H
#define PLAN_SANDBOX_STRAYS_H

#include "hf/exec/marks.h"
#include "hf/plan/registry/registry.h"

#define HF_OVERLAY_SOURCE_MAX 48

/* The source of the mount over an upper directory with that device and inode. */
void hf_overlay_source(uint64_t dev, uint64_t ino, char out[HF_OVERLAY_SOURCE_MAX]);

/* The mark of a plan's processes, up to the token of the enter. "": memory, or the name, does not allow it. */
void hf_plan_mark_prefix(const struct hf_plans *plans, const char *plan, char out[HF_MARK_MAX]);

/* A process that is inside, unsupervised or not: its pid, or 0; -errno. Costs a look at every process. */
int hf_strays_find(struct hf_plans *plans, int plan_fd, const struct hf_plan_record *record);

/*
 * Kills all that are inside, with one event, and waits for their exit. The caller holds the plan's lock, and `in` is
 * not locked: no enter looks after them. Returns how many; HF_E_IN_USE when one cannot be ended; -errno.
 */
int hf_strays_end(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err);

#endif
