/*
 * tests/helper/enosys.c - run a program on a kernel that lacks some system calls.
 *
 *     helper-enosys CALL[,CALL...] -- CMD [ARG...]
 *
 * The calls fail with ENOSYS in CMD and in all that it starts. Exits 2 on bad usage,
 * 77 (skip) when this machine has no seccomp filters, 126 or 127 when CMD cannot be run.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define EXIT_SKIP 77
#define MAX_RULES 64

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{ "pidfd_open", SYS_pidfd_open },
	{ "pidfd_send_signal", SYS_pidfd_send_signal },
	{ "openat2", SYS_openat2 },
	{ "renameat2", SYS_renameat2 },
	{ "close_range", SYS_close_range },
	{ "statx", SYS_statx },
	{ "inotify_init1", SYS_inotify_init1 },
	{ "memfd_create", SYS_memfd_create },
	{ "fsopen", SYS_fsopen },
	{ "seccomp", SYS_seccomp },
	{ "unshare", SYS_unshare },
	{ "mount_setattr", SYS_mount_setattr },
	{ "landlock_create_ruleset", SYS_landlock_create_ruleset },
};

static struct sock_filter rules[MAX_RULES];
static unsigned short n_rules;

static void add(struct sock_filter rule)
{
	if (n_rules == MAX_RULES) {
		fprintf(stderr, "helper-enosys: too many calls\n");
		exit(2);
	}
	rules[n_rules++] = rule;
}

static void add_start(void)
{
	/* Numbers mean other calls on another architecture (a 32-bit program): leave those alone. */
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
}

static int add_call(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strlen(calls[i].name) != len || memcmp(calls[i].name, name, len) != 0)
			continue;
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1));
		add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
		return 0;
	}
	fprintf(stderr, "helper-enosys: unknown call: %.*s\n", (int)len, name);
	return -1;
}

static int add_calls(const char *list)
{
	for (;;) {
		size_t len = strcspn(list, ",");

		if (add_call(list, len) < 0)
			return -1;
		if (list[len] == '\0')
			return 0;
		list += len + 1;
	}
}

static int install(void)
{
	struct sock_fprog program = { .len = n_rules, .filter = rules };

	if (ARCH == 0) {
		errno = ENOSYS;
		return -1;
	}
	/* Without it only root may filter; with it setuid programs in CMD stay ordinary. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
	int error;

	if (argc < 4 || strcmp(argv[2], "--") != 0) {
		fprintf(stderr, "usage: helper-enosys CALL[,CALL...] -- CMD [ARG...]\n");
		return 2;
	}
	add_start();
	if (add_calls(argv[1]) < 0)
		return 2;
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	if (install() < 0) {
		fprintf(stderr, "helper-enosys: no seccomp filter: %s\n", strerror(errno));
		return EXIT_SKIP;
	}
	execvp(argv[3], argv + 3);
	error = errno;
	fprintf(stderr, "helper-enosys: %s: %s\n", argv[3], strerror(error));
	return error == ENOENT ? 127 : 126;
}
