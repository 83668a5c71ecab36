/*
 * base/cleanup.h - what a variable owns is given back when it leaves scope.
 *
 * Every AUTO variable is initialised where it is declared. The cleanups keep
 * errno, accept the empty value, and close exactly once: on Linux a close that
 * reports EINTR has closed. A thread is not cancelled in it, nor in the calls of
 * sys/calls.h. Never `goto` in a function that has AUTO variables.
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AUTO(cleanup_fn) __attribute__((cleanup(cleanup_fn), unused))
#define AUTO_FD          AUTO(hf_auto_close) int
#define AUTO_FREE        AUTO(hf_auto_free)
#define AUTO_DIR         AUTO(hf_auto_closedir) DIR *

static inline void hf_auto_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
#ifdef HF_LIBC_CALLS
		(void)close(*fd);
#else
		(void)syscall(SYS_close, *fd);
#endif
		errno = saved;
		*fd = -1;
	}
}

static inline void hf_auto_closedir(DIR **dir)
{
	if (*dir) {
		int saved = errno;

		(void)closedir(*dir);
		errno = saved;
		*dir = NULL;
	}
}

static inline void hf_auto_free(void *pointer_to_pointer)
{
	void **p = pointer_to_pointer;
	free(*p);
	*p = NULL;
}

/* Hands the descriptor over: the variable no longer owns it. */
static inline int fd_take(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

/* Hands the pointer over. */
#define ptr_take(p)                    \
	({                             \
		__auto_type taken_ = *(p); \
		*(p) = NULL;           \
		taken_;                \
	})

#endif
