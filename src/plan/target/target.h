/* plan/target/target.h - may a directory be a target, and is it still the one that was added? */
#ifndef PLAN_TARGET_TARGET_H
#define PLAN_TARGET_TARGET_H

#include "hf/plan/registry/registry.h"

/* Follows `dir` once and fills *ret (path to be freed). */
int hf_target_resolve(const char *dir, struct hf_target *ret, struct hf_err *err);

/*
 * Refuses (HF_E_TARGET) what cannot be a target whatever the strategy: the state directory above or
 * below it, a mount below it.
 */
int hf_target_check(const struct hf_plans *plans, const struct hf_target *target,
		    struct hf_err *err);

/* Is the path of a mount below `path`? Writes it to `out`. 1, 0, -errno. mounts.c */
int hf_mount_below(const char *path, char *out, size_t cap);

/*
 * Why overlay cannot be used for this target although it may be mounted: the file system has no
 * clock that the conflict rule can trust, or files of other owners. 1 with the reason, 0.
 */
int hf_target_unfit(int fd, const struct hf_target *target, char why[HF_PLAN_WHY_MAX]);

/*
 * Refuses a target that is part of a git repository whose git directory lies in none of the
 * plan's targets nor in itself. `record` has the targets so far. git.c
 */
int hf_git_check(const struct hf_plan_record *record, const struct hf_target *target,
		 struct hf_err *err);

/* The git directory that git finds from `dir` upwards, resolved and to be freed; NULL: none. Starts no program. git.c */
char *hf_git_find(const char *dir);

/* 1 when git must be told to look across mounts inside the sandboxes. git.c */
int hf_git_is_across(const struct hf_plan_record *record);

/* 1 when `path` is `base` or below it, by names. */
int hf_path_is_in(const char *path, const char *base);

#endif
