/* proc/here.c - boot id, namespaces, and what a pidfd tells. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/proc/here.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "holdfast/clock.h"

#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define OFFSETS_PATH "/proc/self/timens_offsets"

/* The namespace that the machine starts with has this inode (PROC_TIME_INIT_INO), and no offsets. */
#define FIRST_TIME_NS 0xEFFFFFFA

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

int hf_ns_read(const char *path, uint64_t *ret)
{
	struct stat st;

	if (hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

static int read_boot(char out[HF_BOOT_ID_LEN + 1], struct hf_err *err)
{
	char text[HF_BOOT_ID_LEN + 2];
	ssize_t n = hf_read_file(AT_FDCWD, BOOT_ID_PATH, text, sizeof(text));

	if (n < 0)
		return hf_fail_sys(err, (int)-n, "read", BOOT_ID_PATH);
	if (n != HF_BOOT_ID_LEN + 1 || !hf_boot_id_valid(text, HF_BOOT_ID_LEN))
		return FAIL(err, HF_E_FORMAT, "read", BOOT_ID_PATH, "not a boot id");
	memcpy(out, text, HF_BOOT_ID_LEN);
	out[HF_BOOT_ID_LEN] = '\0';
	return 0;
}

int hf_here_boot(char out[HF_BOOT_ID_LEN + 1], struct hf_err *err)
{
	enum { UNKNOWN, BEING_WRITTEN, THERE };
	static char known[HF_BOOT_ID_LEN + 1];
	static atomic_int state;
	int unknown = UNKNOWN, r;

	if (atomic_load(&state) == THERE) {
		memcpy(out, known, sizeof(known));
		return 0;
	}
	r = read_boot(out, err);
	/* No lock, which a child forked meanwhile would wait for. */
	if (r == 0 && atomic_compare_exchange_strong(&state, &unknown, BEING_WRITTEN)) {
		memcpy(known, out, sizeof(known));
		atomic_store(&state, THERE);
	}
	return r;
}

int hf_here_read(struct hf_here *ret, struct hf_err *err)
{
	struct hf_here here = { 0 };
	int r = read_boot(here.boot_id, err);

	if (r < 0)
		return r;
	r = hf_ns_read("/proc/self/ns/pid", &here.pid_ns);
	if (r < 0)
		return hf_fail_sys(err, -r, "stat", "/proc/self/ns/pid");
	r = hf_ns_read("/proc/self/ns/time", &here.time_ns);
	if (r < 0 && r != -ENOENT)
		return hf_fail_sys(err, -r, "stat", "/proc/self/ns/time");
	*ret = here;
	return 0;
}

/* The n-th word of the line that begins with `first`, as a number. */
static int number_of(const char *text, const char *first, int n, int64_t *ret)
{
	const char *at = strstr(text, first);

	for (; at && n > 0; n--) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
	}
	return at ? hf_parse_i64(at, strcspn(at, " \n"), ret) : HF_E_SYNTAX;
}

int hf_boot_offset(const struct hf_here *here, int64_t *ret_ns, struct hf_err *err)
{
	int64_t seconds, ns;
	char text[256];
	ssize_t n;

	*ret_ns = 0;
	if (here->time_ns == 0 || here->time_ns == FIRST_TIME_NS)
		return 0;
	n = hf_read_file(AT_FDCWD, OFFSETS_PATH, text, sizeof(text) - 1);
	if (n < 0)
		return hf_fail_sys(err, (int)-n, "read", OFFSETS_PATH);
	text[n] = '\0';
	if (number_of(text, "boottime", 1, &seconds) < 0 || number_of(text, "boottime", 2, &ns) < 0 ||
	    __builtin_mul_overflow(seconds, HF_SEC, &seconds) ||
	    __builtin_add_overflow(seconds, ns, ret_ns))
		return FAIL(err, HF_E_FORMAT, "read", OFFSETS_PATH, "not the offsets of clocks");
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
