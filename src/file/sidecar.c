/*
 * file/sidecar.c - ".<leaf>.lock" beside the file: how we and tools that know nothing of
 * Holdfast keep each other out. Always flock(2), always empty, never unlinked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/file/sidecar.h"
#include "hf/sys/calls.h"
#include "hf/sys/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/noinherit.h"

#define REPLACED_MAX   16 /* replaced under us that often: give up */
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

/* Who has the flock, as far as /proc/locks tells. Only for the message. */
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

static int refuse_busy(const struct stat *st, const char *shown, int64_t wait_ns,
		       struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_holder holder = { 0 };
	int code = wait_ns == 0 ? HF_E_BUSY : HF_E_TIMEOUT;

	find_holder(st, &holder);
	if (ret_blocker)
		*ret_blocker = holder;
	if (holder.id.pid > 0)
		return FAIL(err, code, "flock", shown,
			    "pid %d has locked it with flock (%.120s); it is free when that process "
			    "gives it back or ends",
			    (int)holder.id.pid, holder.evidence);
	return FAIL(err, code, "flock", shown,
		    "a process that cannot be seen from here has locked it with flock");
}

/* Ours, or of whoever owns the directory: nobody else has a reason to have made it. */
static int check_sidecar(const struct hf_file *file, const struct stat *st, const char *shown,
			 struct hf_err *err)
{
	if (!S_ISREG(st->st_mode))
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "not a regular file");
	if (st->st_uid != geteuid() && st->st_uid != file->dir_uid && st->st_uid != 0)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "owned by uid %u, who is neither you nor the directory's owner",
			    (unsigned)st->st_uid);
	if (st->st_nlink > 1)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "has %lu names (hard links)",
			    (unsigned long)st->st_nlink);
	return 0;
}

/* Opens the file, or makes it; *made becomes 1 when it did. */
static int open_or_make(const struct hf_file *file, const char *name, int *made)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
	int fd = hf_open_at(file->dirfd, name, flags, 0);

	if (fd == -ENOENT) {
		fd = hf_create_at(file->dirfd, name, flags, 0600);
		*made |= fd >= 0;
		if (fd == -EEXIST) /* another process was faster */
			fd = hf_open_at(file->dirfd, name, flags, 0);
	}
	/* Ours, but made under a umask that took the owner's bits. */
	if (fd == -EACCES && hf_mend_mode(file->dirfd, name, S_IFREG, 0600) > 0)
		fd = hf_open_at(file->dirfd, name, flags, 0);
	return fd;
}

static int open_sidecar(const struct hf_file *file, const char *name, const char *shown,
			struct stat *ret_st, struct hf_err *err)
{
	AUTO_FLOCK_FD fd = -1;
	int r, made = 0;
	struct hf_opening opening;

	do {
		r = hf_noinherit_begin(&opening);
		if (r < 0)
			return hf_fail_sys(err, -r, "atfork", shown);
		fd = open_or_make(file, name, &made);
	} while ((r = hf_noinherit_note(&fd, &opening)) == 0);
	if (r < 0)
		return hf_fail_open(err, r, shown);
	/* Made by root in a user's directory it would lock that user out for ever. */
	if (made && geteuid() == 0 && file->dir_uid != 0)
		(void)hf_sys.fchown(fd, file->dir_uid, (gid_t)-1);
	r = hf_stat_at(fd, "", ret_st);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", shown);
	r = ret_st->st_nlink == 0 ? 0 : check_sidecar(file, ret_st, shown, err);
	return r < 0 ? r : fd_take(&fd);
}

/* Other tools hold it as long as they like. */
static const struct hf_backoff backoff = { .min_ns = 1 * HF_MSEC, .max_ns = 20 * HF_MSEC };

int hf_sidecar_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		    struct hf_err *err)
{
	struct hf_mono deadline = hf_mono_in(wait_ns < 0 ? INT64_MAX : wait_ns);
	char name[NAME_MAX + 1], shown[PATH_MAX];

	(void)snprintf(name, sizeof(name), ".%.*s.lock", HF_LEAF_MAX, file->leaf);
	(void)snprintf(shown, sizeof(shown), "%.*s.%s.lock",
		       (int)(strlen(file->path) - strlen(file->leaf)), file->path, file->leaf);
	for (int i = 0; i < REPLACED_MAX; i++) {
		struct stat st;
		AUTO_FLOCK_FD fd = open_sidecar(file, name, shown, &st, err);
		int r;

		if (fd < 0)
			return fd;
		r = hf_flock_until(fd, LOCK_EX, deadline, &backoff);
		if (r == -ETIMEDOUT)
			return refuse_busy(&st, shown, wait_ns, ret_blocker, err);
		if (r < 0)
			return hf_fail_sys(err, -r, "flock", shown);
		/* Unlinked while we waited, by a tool that does so: that lock is nobody's. */
		if (hf_is_named(file->dirfd, name, &st)) {
			file->sidecar = fd_take(&fd);
			return 0;
		}
	}
	return FAIL(err, -EAGAIN, "flock", shown, "it keeps being replaced");
}
