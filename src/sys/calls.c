/*
 * sys/calls.c - the real entries.
 *
 * Those that may sleep go straight to the kernel. The C library's functions of that name
 * are points where a thread can be cancelled, and one that ends inside a guard leaves it locked for
 * as long as its process lives. It also is a little faster: a release that finds all caches
 * cold pays for every page of code it visits. Some have no function in glibc 2.36 anyway.
 */
#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "hf/sys/calls.h"
#include "hf/sys/clone.h"
#include "hf/sys/fd/noinherit.h"

static int sys_setlk(int fd, struct flock *range)
{
	/* An open file description's lock: threads and handles exclude each other too. */
	return fcntl(fd, F_OFD_SETLK, range);
}

/* The mount calls have functions in glibc from 2.36 on, but not in older ones. */
static int sys_fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static int sys_fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static int sys_fsmount(int fd, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static int sys_move_mount(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	return (int)syscall(SYS_move_mount, fromfd, from, tofd, to, flags);
}

static int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static int sys_mount_setattr(int dirfd, const char *path, unsigned flags, uint64_t set, uint64_t clear, uint64_t propagation)
{
	const uint64_t attributes[] = { set, clear, propagation, 0 }; /* struct mount_attr */

	return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attributes, sizeof(attributes));
}

static int sys_landlock_create_ruleset(const void *attributes, size_t size, unsigned flags)
{
	return (int)syscall(SYS_landlock_create_ruleset, attributes, size, flags);
}

static int sys_landlock_add_rule(int rules, int type, const void *rule, unsigned flags)
{
	return (int)syscall(SYS_landlock_add_rule, rules, type, rule, flags);
}

static int sys_landlock_restrict_self(int rules, unsigned flags)
{
	return (int)syscall(SYS_landlock_restrict_self, rules, flags);
}

/* The whole content of `from` for `to`, sharing its blocks. */
static int sys_clone_range(int to, int from)
{
	return ioctl(to, FICLONE, from);
}

/* A broken lease sends SIGIO, which would end a process that does not expect it (L13); SIGURG is ignored by default. */
static int sys_set_lease(int fd, int type)
{
	if (type != F_UNLCK && fcntl(fd, F_SETSIG, SIGURG) < 0)
		return -1;
	return fcntl(fd, F_SETLEASE, type);
}

static int sys_get_lease(int fd)
{
	return fcntl(fd, F_GETLEASE);
}

static int sys_pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

/* As sigqueue does, to exactly this process. */
static int sys_pidfd_queue(int pidfd, int sig, int value)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = sig;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, &info, 0);
}

/*
 * Forks into a cgroup (-1: our own) with the child's pidfd. The child is for exec: the C
 * library does not know of it, so it must call only what is safe in a signal handler.
 */
static pid_t sys_clone_into(int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args;
	pid_t pid;

	memset(&args, 0, sizeof(args));
	/* A signal that comes before its exec is no business of the caller's handlers. */
	args.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0);
	args.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
	args.exit_signal = SIGCHLD;
	args.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0;
	hf_noinherit_before_fork();
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		hf_noinherit_child();
	else
		hf_noinherit_after_fork();
	return pid;
}

static pid_t sys_clone_sharing(int cgroup_fd, int *ret_pidfd, const struct hf_clone *clone)
{
	return hf_clone_sharing(cgroup_fd, ret_pidfd, clone);
}

/*
 * Starts a program in a new session, with our environment and `stdin_fd` as its standard input. Nothing of ours runs
 * in the child and no memory is copied, so other threads may hold any lock.
 */
static int sys_spawn_session(const char *path, char *const *argv, int stdin_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r == 0) {
		r = posix_spawnattr_init(&attributes);
		if (r == 0) {
			r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
			if (r == 0)
				r = posix_spawn_file_actions_adddup2(&actions, stdin_fd, STDIN_FILENO);
			if (r == 0)
				r = posix_spawn(ret_pid, path, &actions, &attributes, argv, environ);
			(void)posix_spawnattr_destroy(&attributes);
		}
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	errno = r;
	return r == 0 ? 0 : -1;
}

static int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* The group of a child that was not yet waited for, so both numbers are its own. */
static int sys_pidfd_signal_group(int pidfd, pid_t group, int sig)
{
	int r = (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 1U << 2);

	/* Kernels before 6.9 do not know that flag (PIDFD_SIGNAL_PROCESS_GROUP). */
	if (r < 0 && (errno == EINVAL || errno == ENOSYS || errno == EBADF))
		r = (int)syscall(SYS_kill, -group, sig);
	return r;
}

static int sys_openat2(int dirfd, const char *path, int flags, mode_t mode, unsigned resolve)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)flags, .mode = mode, .resolve = resolve };

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

static ssize_t sys_getdents64(int fd, void *to, size_t len)
{
	return syscall(SYS_getdents64, fd, to, len);
}

static int sys_syncfs(int fd)
{
	return (int)syscall(SYS_syncfs, fd);
}

/* A write that does not raise SIGPIPE. Kernels before 6.18 say EOPNOTSUPP. */
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

/*
 * Where a long has 64 bits an offset is one argument. Sanitizers look into what the functions
 * of the C library are given, so for them it is those.
 */
#if defined(__LP64__) && !defined(HF_LIBC_CALLS)
static ssize_t sys_write_quiet(int fd, const void *from, size_t len)
{
	struct iovec part = { (void *)(uintptr_t)from, len };

	return syscall(SYS_pwritev2, fd, &part, 1UL, -1L, -1L, RWF_NOSIGNAL);
}

static int sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

static ssize_t sys_read(int fd, void *to, size_t len)
{
	return syscall(SYS_read, fd, to, len);
}

static ssize_t sys_pread(int fd, void *to, size_t len, off_t at)
{
	return syscall(SYS_pread64, fd, to, len, at);
}

static ssize_t sys_write(int fd, const void *from, size_t len)
{
	return syscall(SYS_write, fd, from, len);
}

static ssize_t sys_pwrite(int fd, const void *from, size_t len, off_t at)
{
	return syscall(SYS_pwrite64, fd, from, len, at);
}

static int sys_fsync(int fd)
{
	return (int)syscall(SYS_fsync, fd);
}

static int sys_fdatasync(int fd)
{
	return (int)syscall(SYS_fdatasync, fd);
}

static int sys_flock(int fd, int operation)
{
	return (int)syscall(SYS_flock, fd, operation);
}

static int sys_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec wait = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	return (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &wait, NULL, 0);
}
#else
static ssize_t sys_write_quiet(int fd, const void *from, size_t len)
{
	struct iovec part = { (void *)(uintptr_t)from, len };

	return pwritev2(fd, &part, 1, -1, RWF_NOSIGNAL);
}

static int sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat(dirfd, path, flags, mode);
}

#define sys_read      read
#define sys_pread     pread
#define sys_write     write
#define sys_pwrite    pwrite
#define sys_fsync     fsync
#define sys_fdatasync fdatasync
#define sys_flock     flock
#define sys_poll      poll
#endif

static int sys_fchmodat(int dirfd, const char *path, mode_t mode)
{
	return fchmodat(dirfd, path, mode, 0);
}

#define sys_fstat             fstat
#define sys_unshare           unshare
#define sys_setns             setns
#define sys_statx             statx
#define sys_fstatat           fstatat
#define sys_fstatfs           fstatfs
#define sys_lseek             lseek
#define sys_ftruncate         ftruncate
#define sys_fchmod            fchmod
#define sys_mkdirat           mkdirat
#define sys_mkfifoat          mkfifoat
#define sys_renameat2         renameat2
#define sys_unlinkat          unlinkat
#define sys_symlinkat         symlinkat
#define sys_readlinkat        readlinkat
#define sys_getpgid           getpgid
#define sys_inotify_init1     inotify_init1
#define sys_inotify_add_watch inotify_add_watch
#define sys_fchown            fchown
#define sys_linkat            linkat
#define sys_copy_file_range   copy_file_range
#define sys_flistxattr        flistxattr
#define sys_fgetxattr         fgetxattr
#define sys_fsetxattr         fsetxattr
#define sys_fremovexattr      fremovexattr
#define sys_fchownat          fchownat
#define sys_utimensat         utimensat
#define sys_chmod             chmod
#define sys_llistxattr        llistxattr
#define sys_lgetxattr         lgetxattr
#define sys_lsetxattr         lsetxattr
#define sys_lremovexattr      lremovexattr

struct hf_sys hf_sys = {
#define HF_SYS_CALL(result, name, params, args) .name = sys_##name,
#include "hf/sys/calls.def"
#undef HF_SYS_CALL
};
