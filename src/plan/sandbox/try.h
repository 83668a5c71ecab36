/* plan/sandbox/try.h - does a strategy work for a target? Found out by doing it. */
#ifndef PLAN_SANDBOX_TRY_H
#define PLAN_SANDBOX_TRY_H

#include "hf/plan/inside/namespace.h"
#include "hf/plan/registry/registry.h"

/*
 * Mounts an overlay for the target with layers in the sandbox's directory, in a child. 0: that works, and the work directory
 * is there to be used again; 1 with *fail filled, or -errno: nothing is left of it.
 */
int hf_try_overlay(int sandbox_fd, const char *sandbox_path, const struct hf_target *target, struct hf_inside_fail *fail,
		   struct hf_err *err);

/* Do files of the target's file system share blocks with copies in the sandbox's directory? 0 yes, -errno. */
int hf_try_clone(int target_fd, int sandbox_fd);

#endif
