/* sys/apart.h - processes that go on by themselves: helper and census of a sandbox, notifier of a session. */
#ifndef SYS_APART_H
#define SYS_APART_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Forks without what the C library does at a fork, and without its memory being safe to use: for
 * children that allocate nothing. As fork().
 */
pid_t hf_apart_fork(void);

/* The same without a signal at the child's end: only waitid with __WCLONE or __WALL knows of it. */
pid_t hf_apart_fork_silent(void);

/*
 * Calls `run`, which does not return, in a child, and waits until that has executed a program or ended. The child has our
 * memory, or a copy where the kernel or a sanitizer does not allow that, and all signals blocked. As fork() for the caller,
 * which reaps it.
 */
pid_t hf_apart_run(void (*run)(void *arg), void *arg);

/*
 * Calls `run`, which does not return, in a process that is a child of init, with a copy of our memory and all signals
 * blocked: the caller has no child that it did not make. 0 or -errno.
 */
int hf_apart_start(void (*run)(void *arg), void *arg);

/* Waits for a child that ends at once. Its exit status, or -1. */
int hf_apart_reap(pid_t pid);

/*
 * Closes all descriptors but the `n` of `kept` (negative ones count for nothing) and puts
 * /dev/null in the place of 0, 1 and 2: a pipe of the caller must not wait for this process.
 */
void hf_apart_close(const int *kept, size_t n);

#endif
