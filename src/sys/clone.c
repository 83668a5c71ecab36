/*
 * sys/clone.c - a child that shares our memory until it executes its program.
 *
 * What posix_spawn does, with three differences: the child is born in its cgroup, there is a pidfd, and we go on while it
 * waits. The C library has no function for clone3, and its clone() knows no cgroups; so the call is made here, where it is
 * known how. Elsewhere, and for sanitizers, which would not know whose stack it is, it is ENOSYS. vfork() would not do: the parent
 * writes the child's identity to disk while that waits.
 *
 * The child has our thread's memory, so it may call only what uses none but its own stack: system calls, and execvp(), which
 * allocates nothing. errno is one for both: neither looks at it unless its own call has failed, and the parent sleeps from letting the
 * child go to its exec. No signal handler runs in the child, where it would act on our memory: the kernel sets all of them to
 * the default (CLONE_CLEAR_SIGHAND). It also gives the child no rseq area and no robust list, and a shadow stack of its own where there is one.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hf/sys/clone.h"

/* As the kernel returns it; in the child it calls `run` on its new stack. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(HF_LIBC_CALLS)
static long clone_and_run(struct clone_args *args, void (*run)(void *arg), void *arg)
{
	register void (*r8)(void *) __asm__("r8") = run;
	register void *r9 __asm__("r9") = arg;
	long r = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "hlt\n"
			 "1:"
			 : "+a"(r)
			 : "D"(args), "S"(sizeof(*args)), "r"(r8), "r"(r9)
			 : "rcx", "r11", "cc", "memory");
	return r;
}
#elif defined(__aarch64__) && defined(__LP64__) && !defined(HF_LIBC_CALLS)
static long clone_and_run(struct clone_args *args, void (*run)(void *arg), void *arg)
{
	register long x0 __asm__("x0") = (long)(uintptr_t)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register long x8 __asm__("x8") = SYS_clone3;
	register void (*x9)(void *) __asm__("x9") = run;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x30, xzr\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), "r"(x9), "r"(x10)
			 : "cc", "memory");
	return x0;
}
#else
static long clone_and_run(struct clone_args *args, void (*run)(void *arg), void *arg)
{
	(void)args;
	(void)run;
	(void)arg;
	return -ENOSYS;
}
#endif

#define FRAME_MAX  4096 /* more than this function and the call that makes the child have on the stack */
#define STACK_SIZE (64 * 1024)

pid_t hf_clone_waiting(void (*run)(void *arg), void *arg)
{
	struct clone_args args;
	long r;

	memset(&args, 0, sizeof(args));
	args.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND;
	args.exit_signal = SIGCHLD;
	/* Its size is of no consequence: a stack grows. */
	args.stack = (((uint64_t)(uintptr_t)__builtin_frame_address(0) - FRAME_MAX) & ~UINT64_C(15)) - STACK_SIZE;
	args.stack_size = STACK_SIZE;
	r = clone_and_run(&args, run, arg);
	if (r >= 0)
		return (pid_t)r;
	errno = (int)-r;
	return -1;
}

pid_t hf_clone_sharing(int cgroup_fd, int *ret_pidfd, const struct hf_clone *clone)
{
	struct clone_args args;
	long r;

	memset(&args, 0, sizeof(args));
	args.flags = CLONE_VM | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0);
	args.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
	args.exit_signal = SIGCHLD;
	args.stack = (uint64_t)(uintptr_t)clone->stack;
	args.stack_size = clone->stack_size;
	args.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0;
	r = clone_and_run(&args, clone->run, clone->arg);
	if (r >= 0)
		return (pid_t)r;
	errno = (int)-r;
	return -1;
}
