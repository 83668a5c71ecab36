/* sys/state/private_dir.c - directories that must be ours alone. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state/state.h"

static int check_directory(int fd, const char *shown, struct hf_err *err)
{
	struct stat st;

	if (hf_sys.fstat(fd, &st) < 0)
		return FAIL_SYS(err, "fstat", shown);
	if (st.st_uid != geteuid())
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "owned by uid %u, but you are uid %u; use your own directory",
			    (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & 077)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "mode %04o lets others in; chmod 700 it if its content is yours",
			    (unsigned)st.st_mode & 07777);
	/* A umask took the owner's bits. On a read-only file system it can still be read. */
	if ((st.st_mode & 0700) != 0700)
		(void)hf_sys.fchmod(fd, 0700);
	return 0;
}

int hf_private_dir(int dirfd, const char *name, const char *shown, int *ret_fd, struct hf_err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	AUTO_FD fd = hf_open_at(dirfd, name, flags, 0);
	struct stat st;
	int r;

	if (fd == -EACCES && hf_mend_mode(dirfd, name, S_IFDIR, 0700) > 0)
		fd = hf_open_at(dirfd, name, flags, 0);

	/* A symlink gives ENOTDIR here, as a plain file does; a file above it, too. */
	if (fd == -ELOOP || (fd == -ENOTDIR && hf_sys.fstatat(dirfd, name, &st,
							      AT_SYMLINK_NOFOLLOW) == 0))
		return FAIL(err, HF_E_UNTRUSTED, "openat", shown,
			    "not a directory (a symbolic link or a file)");
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", shown);
	r = check_directory(fd, shown, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_private_subdir(int dirfd, const char *name, const char *shown, int create, int *ret_fd,
		      struct hf_err *err)
{
	int r = hf_private_dir(dirfd, name, shown, ret_fd, err);

	if (r != -ENOENT || !create)
		return r;
	r = hf_mkdir_at(dirfd, name, 0700);
	if (r < 0 && r != -EEXIST)
		return hf_fail_sys(err, -r, "mkdir", shown);
	return hf_private_dir(dirfd, name, shown, ret_fd, err);
}

