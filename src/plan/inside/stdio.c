/*
 * plan/inside/stdio.c - standard input, output and error, in the child, before exec. Allocates nothing.
 *
 * A descriptor keeps the mount that it was opened on. A file that was opened for reading in front of the sandbox
 * can be opened again for writing through /proc/self/fd, behind the sandbox; a directory leads into the whole tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/inside/namespace.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"

static int is_in_target(const struct hf_inside *inside, const char *path)
{
	for (size_t i = 0; i < inside->n; i++)
		if (hf_path_is_in(path, inside->layers[i].target))
			return 1;
	return 0;
}

static int refuse(struct hf_inside_fail *fail, const char *step, const char *path, int sys)
{
	fail->stdio = 1;
	errno = sys;
	return hf_inside_failed(fail, step, path);
}

/* Opens the file again by its path, which leads into the sandbox now, at the same place in it. */
static int open_again(int fd, const struct stat *old, const char *path, int in_target)
{
	struct stat new;
	AUTO_FD again = hf_sys.openat2(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0,
				       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	off_t at;

	if (again < 0 || hf_sys.fstat(again, &new) < 0)
		return -errno;
	if (!S_ISREG(new.st_mode) || (!in_target && (new.st_dev != old->st_dev || new.st_ino != old->st_ino)))
		return -ESTALE;
	at = hf_sys.lseek(fd, 0, SEEK_CUR);
	if (at < 0 || hf_sys.lseek(again, at, SEEK_SET) < 0 || fcntl(again, F_SETFL, 0) < 0 || dup2(again, fd) < 0)
		return -errno;
	return 0;
}

static int make_safe(const struct hf_inside *inside, int fd, struct hf_inside_fail *fail)
{
	int flags = fcntl(fd, F_GETFL), readable_only = (flags & O_ACCMODE) == O_RDONLY, in_target, r;
	char link[32], path[4096];
	struct stat st;
	ssize_t n;

	if (flags < 0 || hf_sys.fstat(fd, &st) < 0)
		return 0; /* it is closed */
	if (S_ISDIR(st.st_mode))
		return refuse(fail, HF_STEP_STDIO_DIRECTORY, "", EISDIR);
	/* One that has no name any more cannot be reached by another way either. */
	if (!S_ISREG(st.st_mode) || st.st_nlink == 0)
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = hf_sys.readlinkat(AT_FDCWD, link, path, sizeof(path) - 1);
	if (n < 0)
		return refuse(fail, HF_STEP_STDIO_AGAIN, link, errno);
	path[n] = '\0';
	in_target = is_in_target(inside, path);
	if (in_target && !readable_only)
		return refuse(fail, HF_STEP_STDIO_WRITABLE, path, EACCES);
	/* With a read-only rest no file of the rest may be opened for writing by this way. */
	if (!readable_only || (!in_target && !(inside->confine & HF_CONFINE_READONLY && !inside->landlocked)))
		return 0;
	r = open_again(fd, &st, path, in_target);
	fail->confine = r < 0 && !in_target;
	return r < 0 ? refuse(fail, HF_STEP_STDIO_AGAIN, path, -r) : 0;
}

int hf_inside_open_stdio(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int r = 0;

	for (int fd = 0; r == 0 && fd <= 2; fd++)
		r = make_safe(inside, fd, fail);
	return r;
}
