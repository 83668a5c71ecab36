/* file/commit/lease.c - no process opens the old file for writing while it is replaced. */
#include <errno.h>
#include <fcntl.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/lease.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

#define PAUSE_MIN_NS (100 * HF_USEC)
#define PAUSE_MAX_NS (10 * HF_MSEC)

/* A description of its own: the old one is a command's standard input, and would live on there. */
static int open_anew(const struct hf_file *file)
{
	AUTO(hf_noinherit_close) int fd =
		hf_noinherit_open(file->dirfd, file->leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	int r = fd < 0 ? fd : hf_stat_at(fd, "", &st);

	if (r < 0)
		return r;
	if (st.st_ino != file->version.ino || st.st_dev != file->version.dev)
		return -ENOENT;
	return fd_take(&fd);
}

static int is_replaced(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -ENXIO;
}

int hf_lease_take(struct hf_file *file, struct hf_err *err)
{
	struct hf_mono begun = hf_mono_now(), deadline = hf_mono_in(file->writer_left_ns);
	AUTO(hf_noinherit_close) int fd = open_anew(file);

	if (is_replaced(fd))
		return FAIL(err, HF_E_CHANGED, "openat", file->path,
			    "it is no longer the file that was read");
	/* Unreadable by now, or too many open files: without a lease, then. */
	if (fd < 0)
		return 0;
	for (long pause = PAUSE_MIN_NS;; pause = pause < PAUSE_MAX_NS ? pause * 2 : pause) {
		if (hf_sys.set_lease(fd, F_RDLCK) == 0) {
			file->lease_fd = fd_take(&fd);
			return 0;
		}
		if (errno != EAGAIN && errno != EINTR)
			return 0;
		if (hf_mono_left(deadline) == 0)
			return FAIL(err, HF_E_CHANGED, "lease", file->path,
				    "another process has it open for writing");
		hf_pause(pause);
		file->writer_waited_ns = hf_mono_now().ns - begun.ns;
	}
}

int hf_lease_holds(const struct hf_file *file)
{
	return file->lease_fd < 0 || hf_sys.get_lease(file->lease_fd) == F_RDLCK;
}

void hf_lease_drop(struct hf_file *file)
{
	/* Closing is not enough where a process that was forked meanwhile has the descriptor. */
	if (file->lease_fd >= 0)
		(void)hf_sys.set_lease(file->lease_fd, F_UNLCK);
	hf_noinherit_close(&file->lease_fd);
}
