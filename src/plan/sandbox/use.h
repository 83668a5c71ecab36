/*
 * plan/sandbox/use.h - which processes are inside a plan's sandboxes.
 *
 * Each enter has plans/<key>/in locked (an open file description's read lock) as long as its processes
 * live: the descriptor is the helper's, which the kernel tells when the last of them has ended.
 * The file says which namespaces they are in and a process that is there. It is a hint: what it
 * says is proven before it is used. A helper that was killed leaves the lock free while processes
 * are still inside (strays.h).
 */
#ifndef PLAN_SANDBOX_USE_H
#define PLAN_SANDBOX_USE_H

#include "hf/plan/registry/registry.h"

struct hf_inhabitants {
	uint64_t mnt_ns, user_ns; /* inodes; 0: not known */
	int32_t pid;              /* one of them; proven by the namespaces that it has */
};

/* Opens (and makes) the file of the plan in `plan_fd`. */
int hf_in_open(int plan_fd, int *ret_fd, struct hf_err *err);

/* Locks it for an enter (shared) or for settling (exclusive). 0, -EAGAIN, -errno. */
int hf_in_lock(int fd, int exclusive);
void hf_in_unlock(int fd);

/* Writes the namespaces of the calling process, and `pid`. Allocates nothing. 0 or -errno. */
int hf_in_write(int fd, int32_t pid);
void hf_in_read(int fd, struct hf_inhabitants *ret);

/* Nobody is inside. Allocates nothing. */
void hf_in_clear(int fd);

/* Is another process in our mount namespace? Allocates nothing. */
int hf_in_is_shared(void);

/* 1 when an enter has it locked, 0, -errno. */
int hf_in_is_locked(int fd);

/* 1 when the overlay of that sandbox directory was mounted and not yet settled. */
int hf_sandbox_is_unsettled(int sandbox_fd);

/*
 * Syncs an overlay that no process uses and removes the kernel's marker. No memory is allocated. 1 when it holds
 * work, which was synced, now or when the marker went; 0 when there was nothing to sync; -errno.
 */
int hf_sandbox_settle(int sandbox_fd);

#endif
