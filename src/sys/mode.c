/* sys/mode.c - setting modes on what we made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

int hf_create_at(int dirfd, const char *name, int flags, mode_t mode)
{
	AUTO_FD fd = hf_open_at(dirfd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

	if (fd < 0)
		return fd_take(&fd);
	if (hf_sys.fchmod(fd, mode) < 0) {
		int r = -errno;

		(void)hf_sys.unlinkat(dirfd, name, 0);
		return r;
	}
	return fd_take(&fd);
}

int hf_mend_mode(int dirfd, const char *name, mode_t type, mode_t bits)
{
	/* O_PATH needs no permission on the entry itself, and pins what is checked. */
	AUTO_FD fd = hf_open_at(dirfd, name, O_PATH | O_NOFOLLOW, 0);
	char path[40];
	struct stat st;

	if (fd < 0)
		return fd_take(&fd);
	if (hf_sys.fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() ||
	    (type != S_IFDIR && st.st_nlink != 1))
		return 0;
	if ((st.st_mode & bits) == bits)
		return 1;
	/* fchmod refuses such a descriptor; its name in /proc means the very same inode. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return hf_sys.fchmodat(AT_FDCWD, path, (st.st_mode | bits) & 07777) < 0 ? -errno : 1;
}

int hf_open_or_create_at(int dirfd, const char *name, int flags, mode_t mode)
{
	int fd = hf_create_at(dirfd, name, flags, mode);

	if (fd != -EEXIST)
		return fd;
	fd = hf_open_at(dirfd, name, flags | O_NOFOLLOW, 0);
	/* Its maker was killed before it could set the mode, or has yet to. */
	if (fd == -EACCES && hf_mend_mode(dirfd, name, S_IFREG, mode) > 0)
		fd = hf_open_at(dirfd, name, flags | O_NOFOLLOW, 0);
	return fd;
}

int hf_mkdir_at(int dirfd, const char *name, mode_t mode)
{
	int r;

	if (hf_sys.mkdirat(dirfd, name, mode) < 0)
		return -errno;
	r = hf_mend_mode(dirfd, name, S_IFDIR, mode);
	return r < 0 ? r : 0;
}
