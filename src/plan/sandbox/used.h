/*
 * plan/sandbox/used.h - a clone or copy that is in use says so on disk.
 *
 *   plans/<key>/s/<skey>/used      the boot in which it was entered
 *
 * Written, and synced, before the command starts. Removed after its last process has ended and everything was
 * synced. So one that names another boot says that power failed meanwhile. An overlay has a marker of the kernel for that
 * (use.h). What is done in a copy without entering its plan is not seen here.
 */
#ifndef PLAN_SANDBOX_USED_H
#define PLAN_SANDBOX_USED_H

#include "hf/proc/here.h"

/* Marks it. Costs a sync unless it is marked already. 0 or -errno. */
int hf_used_mark(int sandbox_fd, const char *boot_id);

/* 1 it is marked, 0 not, -errno. `ret_boot` (may be NULL): the boot, "" when the mark does not say. */
int hf_used_look(int sandbox_fd, char ret_boot[HF_BOOT_ID_LEN + 1]);

/* Syncs one that no process uses and removes the mark. 1 when it was marked, 0 when not, -errno. No memory is allocated. */
int hf_used_settle(int sandbox_fd);

#endif
