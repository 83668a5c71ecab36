/* lock/flocked.c - flock(2) on a descriptor: waiting, cancelling, and the process that has it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/flocked.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"

#define PROC_LOCKS_MAX (256 << 10)

/* "1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF": the pid; 0 when it only waits ("->"). */
static int32_t flock_pid(const char *line)
{
	uint64_t pid;

	line += strcspn(line, " ");
	line += strspn(line, " ");
	if (strncmp(line, "FLOCK ", 6) != 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		line += strcspn(line, " \n");
		line += strspn(line, " ");
	}
	return hf_parse_u64(line, strcspn(line, " \n"), INT32_MAX, &pid) < 0 ? 0 : (int32_t)pid;
}

/* The process that has the flock, as far as /proc/locks tells. Only for the message. */
static void find_holder(const struct stat *st, struct hf_holder *ret)
{
	AUTO_FREE char *text = malloc(PROC_LOCKS_MAX);
	AUTO_FD fd = hf_open_at(AT_FDCWD, "/proc/locks", O_RDONLY, 0);
	char inode[64];
	ssize_t n = text && fd >= 0 ? hf_pread_all(fd, text, PROC_LOCKS_MAX - 1, 0) : -1;

	if (n < 0)
		return;
	text[n] = '\0';
	(void)snprintf(inode, sizeof(inode), " %02x:%02x:%llu ", major(st->st_dev),
		       minor(st->st_dev), (unsigned long long)st->st_ino);
	for (const char *at = strstr(text, inode); at; at = strstr(at + 1, inode)) {
		const char *newline = memrchr(text, '\n', (size_t)(at - text));
		int32_t pid = flock_pid(newline ? newline + 1 : text);

		if (pid <= 0 || hf_proc_identify(pid, &ret->id, NULL) < 0)
			continue;
		ret->liveness = hf_proc_liveness(&ret->id, 0, ret->evidence);
		ret->lease_left_ns = -1;
		return;
	}
}

static int refuse_busy(int fd, const char *shown, int64_t wait_ns,
		       struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_holder holder = { 0 };
	int code = wait_ns == 0 ? HF_E_BUSY : HF_E_TIMEOUT;
	struct stat st;

	if (hf_sys.fstat(fd, &st) == 0)
		find_holder(&st, &holder);
	if (ret_blocker)
		*ret_blocker = holder;
	if (holder.id.pid > 0)
		return FAIL(err, code, "flock", shown,
			    "pid %d has locked it with flock (%.120s); it becomes free when that process "
			    "releases it or ends",
			    (int)holder.id.pid, holder.evidence);
	return FAIL(err, code, "flock", shown,
		    "a process that is invisible from here has locked it with flock");
}

int hf_flocked(int fd, const char *shown, const struct hf_lock_opts *opts,
	       struct hf_holder *ret_blocker, struct hf_err *err)
{
	/* Other tools hold it as long as they like. */
	const struct hf_backoff backoff = { .min_ns = 1 * HF_MSEC,
					    .max_ns = 20 * HF_MSEC,
					    .cancel_fd = opts->cancel_fd,
					    .go_on = opts->go_on,
					    .go_on_arg = opts->go_on_arg };
	int r = hf_flock_until(fd, opts->mode == HF_LOCK_SHARED ? LOCK_SH : LOCK_EX,
			       hf_mono_in(opts->wait_ns < 0 ? INT64_MAX : opts->wait_ns), &backoff);

	if (r == -ETIMEDOUT)
		return refuse_busy(fd, shown, opts->wait_ns, ret_blocker, err);
	if (r == HF_E_CANCELLED)
		return FAIL(err, r, "flock", shown, "%s", "");
	return r < 0 ? hf_fail_sys(err, -r, "flock", shown) : 0;
}

/* The file's path, or the number where it has none. */
static void show_fd(int fd, char *out, size_t cap)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, cap - 1);
	if (n < 0)
		n = snprintf(out, cap, "descriptor %d", fd);
	out[n] = '\0';
}

int hf_lock_fd(int fd, const struct hf_lock_opts *opts, struct hf_holder *ret_blocker,
	       struct hf_err *err)
{
	static const struct hf_lock_opts at_once = { .size = sizeof(at_once) };
	char shown[PATH_MAX];

	show_fd(fd, shown, sizeof(shown));
	if (!opts)
		opts = &at_once;
	if (opts->size < sizeof(*opts) || (unsigned)opts->mode > HF_LOCK_SHARED || opts->slots ||
	    opts->ttl_ns || opts->flags || opts->owner || opts->cancel_fd < 0)
		return FAIL(err, -EINVAL, "arguments", shown,
			    "a flock accepts only size, mode, wait_ns and cancel_fd");
	return hf_flocked(fd, shown, opts, ret_blocker, err);
}
