/* sys/replace.c - temp, write, sync, rename, sync. */
#include <errno.h>
#include <fcntl.h>

#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/replace.h"

static int move_into_place(int dirfd, const char *temp, const char *name, unsigned flags)
{
	if (flags & HF_REPLACE_NEW)
		return hf_rename_new(dirfd, temp, dirfd, name);
	return hf_sys.renameat2(dirfd, temp, dirfd, name, 0) < 0 ? -errno : 0;
}

int hf_replace_file(int dirfd, const char *name, const char *temp, const char *bytes, size_t len,
		    unsigned flags)
{
	AUTO_FD fd = -1;
	int r;

	(void)hf_sys.unlinkat(dirfd, temp, 0);
	fd = hf_create_at(dirfd, temp, O_WRONLY, 0600);
	if (fd < 0)
		return fd_take(&fd);
	r = hf_write_all(fd, bytes, len);
	if (r == 0 && flags & HF_REPLACE_SYNC && hf_sys.fdatasync(fd) < 0)
		r = -errno;
	if (r == 0)
		r = move_into_place(dirfd, temp, name, flags);
	if (r < 0) {
		(void)hf_sys.unlinkat(dirfd, temp, 0);
		return r;
	}
	return flags & HF_REPLACE_SYNC ? hf_sync_dir(dirfd) : 0;
}
