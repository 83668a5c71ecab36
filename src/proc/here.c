/* proc/here.c - boot id, namespaces, and what a pidfd tells. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/proc/here.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

int hf_boot_id_valid(const char *text, size_t len)
{
	if (len != HF_BOOT_ID_LEN)
		return 0;
	for (size_t i = 0; i < len; i++) {
		int dash = i == 8 || i == 13 || i == 18 || i == 23;
		int hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');

		if (dash ? text[i] != '-' : !hex)
			return 0;
	}
	return 1;
}

static int read_ns(const char *path, uint64_t *ret)
{
	struct stat st;

	if (hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

int hf_here_read(struct hf_here *ret, struct hf_err *err)
{
	struct hf_here here = { 0 };
	char text[HF_BOOT_ID_LEN + 2];
	ssize_t n = hf_read_file(AT_FDCWD, BOOT_ID_PATH, text, sizeof(text));
	int r;

	if (n < 0)
		return hf_fail_sys(err, (int)-n, "read", BOOT_ID_PATH);
	if (n != HF_BOOT_ID_LEN + 1 || !hf_boot_id_valid(text, HF_BOOT_ID_LEN))
		return FAIL(err, HF_E_FORMAT, "read", BOOT_ID_PATH, "not a boot id");
	memcpy(here.boot_id, text, HF_BOOT_ID_LEN);
	r = read_ns("/proc/self/ns/pid", &here.pid_ns);
	if (r < 0)
		return hf_fail_sys(err, -r, "stat", "/proc/self/ns/pid");
	r = read_ns("/proc/self/ns/time", &here.time_ns);
	if (r < 0 && r != -ENOENT)
		return hf_fail_sys(err, -r, "stat", "/proc/self/ns/time");
	*ret = here;
	return 0;
}

uint64_t hf_pidfs_inode(int pidfd)
{
	struct statfs fs;
	struct stat st;

	if (hf_sys.fstatfs(pidfd, &fs) < 0 || fs.f_type != PID_FS_MAGIC)
		return 0;
	/* On 32 bit the inode number is cut and may repeat. */
	if (sizeof(st.st_ino) < 8 || hf_sys.fstat(pidfd, &st) < 0)
		return 0;
	return st.st_ino;
}

int hf_pid_is_free(int32_t pid)
{
	return hf_sys.getpgid(pid) < 0 && errno == ESRCH;
}

int hf_pidfd_exited(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n;

	/*
	 * Not the state letter of /proc: a leader that called pthread_exit shows
	 * Z while its other threads run on. The pidfd becomes readable only when
	 * the last thread is gone.
	 */
	do {
		n = hf_sys.poll(&p, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* Anything else (POLLNVAL) is no proof of death. */
	return n == 0 ? 0 : p.revents & POLLIN ? 1 : -EBADF;
}
