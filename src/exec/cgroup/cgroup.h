/*
 * exec/cgroup/cgroup.h - a cgroup (v2) for the tree of a session, where one may be made.
 *
 * It is made below the caller's own group and named after the session's token, which is
 * never given twice; on record it is known by path and inode. Its maker holds a shared flock on it. Nothing is asked of
 * controllers: it is there to hold the tree together, and to kill it at once.
 */
#ifndef EXEC_CGROUP_CGROUP_H
#define EXEC_CGROUP_CGROUP_H

#include <stdint.h>

#define HF_CGROUP_PATH_MAX 512

struct hf_cgroup {
	int fd;                        /* the group's directory; -1: there is none */
	uint64_t inode;
	char path[HF_CGROUP_PATH_MAX]; /* absolute */
	int is_tried;  /* a process was started in it, and lived */
	/*
	 * 1: processes are moved into it, not started in it. From Linux 6.14 on the kernel kills what is started in a group
	 * (CLONE_INTO_CGROUP) that was killed more or less often than the starter's own group: it compares the two counts.
	 */
	int is_killed;
};

#define HF_CGROUP_INIT { -1, 0, "", 0, 0 }

/* Opens the calling process's own group, below which sessions have theirs. -ENOTSUP, -EACCES, …: there is none here. */
int hf_cgroup_own(struct hf_cgroup *ret);

/* Makes one below it. -EACCES, …: that is not allowed here. */
int hf_cgroup_make(const struct hf_cgroup *own, uint64_t token, struct hf_cgroup *ret);

/*
 * Removes the empty groups below it that hf_cgroup_make made for this user and whose maker is
 * gone: it was killed before the name was on record. Returns how many.
 */
int hf_cgroup_sweep(const struct hf_cgroup *own);

/* Opens the one on record. -ENOENT when it is gone, or another one stands there. */
int hf_cgroup_open(const char *path, uint64_t inode, struct hf_cgroup *ret);

/* Closes; the group stays. */
void hf_cgroup_done(struct hf_cgroup *group);

/* 1 while processes live in it (zombies do not count), 0, or -errno. */
int hf_cgroup_populated(const struct hf_cgroup *group);

/* SIGKILL to all in it, with cgroup.kill. -ENOENT where the kernel has none (before 5.14). */
int hf_cgroup_kill(const struct hf_cgroup *group);

/* Moves a process into it. For kernels that cannot start one there. */
int hf_cgroup_add(const struct hf_cgroup *group, int32_t pid);

/* Calls `fn` with each pid in it and in groups below it, as far as our namespace shows them. */
int hf_cgroup_each(const struct hf_cgroup *group, void (*fn)(void *arg, int32_t pid), void *arg);

/* Is `pid` in it or below it? Only while the pid is pinned does this mean anything. */
int hf_cgroup_has(const struct hf_cgroup *group, int32_t pid);

/* The number that stands behind `key` at the start of a line of one of its files ("": the whole file is one). -1: not known. */
int64_t hf_cgroup_number(const struct hf_cgroup *group, const char *file, const char *key);

/*
 * Bounds what is in it: `value` goes to its file ("memory.max"), for which the controller is asked of the group around, if it is not there
 * yet. 0, or -errno: there is no such controller here.
 */
int hf_cgroup_limit(const struct hf_cgroup *own, const struct hf_cgroup *group, const char *controller, const char *file, const char *value);

/* Removes it with what empty groups were made below it. It must be empty. */
void hf_cgroup_remove(struct hf_cgroup *group);

#endif
