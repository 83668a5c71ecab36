/* sys/clone.h - a child that shares our memory until it executes its program. */
#ifndef SYS_CLONE_H
#define SYS_CLONE_H

#include <stddef.h>
#include <sys/types.h>

struct hf_clone {
	void (*run)(void *arg); /* does not return */
	void *arg;
	void *stack; /* of 16 bytes' alignment, its size as well; its own until it has executed its program or ended */
	size_t stack_size;
};

/*
 * Makes the child, in a cgroup (-1: our own), with its pidfd. It has its own descriptors, signal mask and limits; memory, and so
 * errno, are ours: it changes none while we run. It has no signal handlers. -1 with errno; ENOSYS where it is not known how.
 */
pid_t hf_clone_sharing(int cgroup_fd, int *ret_pidfd, const struct hf_clone *clone);

/*
 * The same for a child that is waited for: the calling thread sleeps until it has executed its program or ended, and
 * so it has our stack as well, below what is used. Our signals are blocked by the caller. -1 with errno as above.
 */
pid_t hf_clone_waiting(void (*run)(void *arg), void *arg);

#endif
