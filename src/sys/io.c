/* sys/io.c - careful input and output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

int hf_open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	AUTO_FD fd = -1;
	int lifted;

	do {
		fd = hf_sys.openat(dirfd, path, flags | O_CLOEXEC | O_NOCTTY, mode);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd_take(&fd);
	/* stdio was closed when we were started: stay out of its place. */
	lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return lifted < 0 ? -errno : lifted;
}

int hf_open_noatime(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = hf_open_at(dirfd, path, flags | O_NOATIME, mode);

	return fd == -EPERM ? hf_open_at(dirfd, path, flags, mode) : fd; /* not the owner's */
}

int hf_open_dir(int dirfd, const char *path, DIR **ret_dir)
{
	AUTO_FD fd = hf_open_at(dirfd, path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return fd < 0 ? fd_take(&fd) : -errno;
	(void)fd_take(&fd);
	*ret_dir = dir;
	return 0;
}

int hf_stat_at(int dirfd, const char *name, struct stat *ret)
{
	const unsigned mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_INO |
			      STATX_SIZE;
	struct statx st;

	if (hf_sys.statx(dirfd, name, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH), mask,
			 &st) < 0)
		return -errno;
	*ret = (struct stat){ .st_dev = makedev(st.stx_dev_major, st.stx_dev_minor),
			      .st_ino = st.stx_ino,
			      .st_mode = st.stx_mode,
			      .st_nlink = st.stx_nlink,
			      .st_uid = st.stx_uid,
			      .st_size = (off_t)st.stx_size };
	return 0;
}

int hf_is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

int hf_is_named(int dirfd, const char *name, const struct stat *st)
{
	struct stat named = { 0 }; /* gcc -O3 does not see that it is filled in */

	return hf_stat_at(dirfd, name, &named) == 0 && hf_is_same_file(&named, st);
}

int hf_check_private(const struct stat *st, const char *shown, struct hf_err *err)
{
	if (!S_ISREG(st->st_mode))
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "not a regular file");
	if (st->st_uid != geteuid())
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "owned by uid %u, not by uid %u",
			    (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & 077)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown,
			    "mode %04o lets others in; chmod 600 it if its content is yours",
			    (unsigned)st->st_mode & 07777);
	if (st->st_nlink > 1)
		return FAIL(err, HF_E_UNTRUSTED, "fstat", shown, "has %lu names (hard links)",
			    (unsigned long)st->st_nlink);
	return 0;
}

int hf_fail_open(struct hf_err *err, int r, const char *shown)
{
	if (r == -ELOOP)
		return FAIL(err, HF_E_UNTRUSTED, "openat", shown, "a symbolic link");
	if (r == -EISDIR || r == -ENXIO || r == -ENODEV)
		return FAIL(err, HF_E_UNTRUSTED, "openat", shown, "not a regular file");
	return hf_fail_sys(err, -r, "openat", shown);
}

int hf_open_as_it_is(int dirfd, const char *name, int flags, const char *shown, int *ret_fd,
		     struct stat *ret_st, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return hf_fail_open(err, fd, shown);
	r = hf_stat_at(fd, "", &st);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", shown);
	r = hf_check_private(&st, shown, err);
	if (r < 0)
		return r;
	if (ret_st)
		*ret_st = st;
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_open_private(int dirfd, const char *name, int flags, const char *shown, int *ret_fd,
		    struct stat *ret_st, struct hf_err *err)
{
	/* No more than is needed: a sealed segment (0400) stays sealed when it is only read. */
	const mode_t needed = (flags & O_ACCMODE) == O_RDONLY ? 0400 : 0600;
	AUTO_FD fd = -1;
	struct stat st;
	int r = hf_open_as_it_is(dirfd, name, flags, shown, &fd, &st, err);

	if (r == -EACCES && hf_mend_mode(dirfd, name, S_IFREG, needed) > 0)
		r = hf_open_as_it_is(dirfd, name, flags, shown, &fd, &st, err);
	if (r < 0)
		return r;
	/* Made just now, and the umask took bits from it. */
	if (flags & O_CREAT && (st.st_mode & 0600) != 0600 && hf_sys.fchmod(fd, 0600) < 0)
		return FAIL_SYS(err, "fchmod", shown);
	if (ret_st)
		*ret_st = st;
	*ret_fd = fd_take(&fd);
	return 0;
}

ssize_t hf_read_all(int fd, char *to, size_t cap)
{
	size_t have = 0;
	char probe;

	for (;;) {
		size_t room = cap - have;
		ssize_t n = hf_sys.read(fd, room ? to + have : &probe, room ? room : 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return (ssize_t)have;
		if (room == 0)
			return -E2BIG;
		have += (size_t)n;
	}
}

ssize_t hf_read_file(int dirfd, const char *path, char *to, size_t cap)
{
	AUTO_FD fd = hf_open_at(dirfd, path, O_RDONLY, 0);

	return fd < 0 ? fd : hf_read_all(fd, to, cap);
}

ssize_t hf_pread_all(int fd, char *to, size_t len, off_t at)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = hf_sys.pread(fd, to + have, len - have, at + (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

int hf_pread_new(int fd, uint64_t size, uint64_t limit, char **ret_bytes, size_t *ret_len)
{
	char *bytes = size > limit ? NULL : malloc((size_t)size + 1);
	ssize_t n = bytes ? hf_pread_all(fd, bytes, (size_t)size, 0) : size > limit ? -E2BIG : -ENOMEM;

	if (n < 0) {
		free(bytes);
		return (int)n;
	}
	bytes[n] = '\0';
	*ret_bytes = bytes;
	*ret_len = (size_t)n;
	return 0;
}

int hf_pwrite_all(int fd, const char *from, size_t len, off_t at, size_t *ret_done)
{
	size_t done = 0;
	int r = 0;

	while (done < len) {
		ssize_t n = hf_sys.pwrite(fd, from + done, len - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			break;
		}
		done += (size_t)n;
	}
	*ret_done = done;
	return r;
}

int hf_write_all(int fd, const char *from, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = hf_sys.write(fd, from + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

int hf_rename_new(int fromfd, const char *from, int tofd, const char *to)
{
	struct stat st;

	if (hf_sys.renameat2(fromfd, from, tofd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (hf_sys.fstatat(tofd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return hf_sys.renameat2(fromfd, from, tofd, to, 0) == 0 ? 0 : -errno;
}

off_t hf_hole_end(int fd, off_t at, off_t size)
{
	off_t data = hf_sys.lseek(fd, at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO && size > at ? size : at;
	return data < size ? data : size;
}

#define PIECES_MAX 4096

off_t hf_data_end(int fd, off_t size)
{
	off_t end = 0, data = 0;

	for (int i = 0; i < PIECES_MAX; i++) {
		data = hf_sys.lseek(fd, end, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? end : size;
		if (data >= size)
			return end;
		end = hf_sys.lseek(fd, data, SEEK_HOLE);
		if (end < 0 || end >= size)
			return size;
	}
	return size;
}

int hf_is_zero(const char *bytes, size_t len)
{
	return len == 0 || (bytes[0] == '\0' && memcmp(bytes, bytes + 1, len - 1) == 0);
}

int hf_sync_dir(int dirfd)
{
	int r;

	do {
		r = hf_sys.fsync(dirfd);
	} while (r < 0 && errno == EINTR);
	return r == 0 || errno == EINVAL ? 0 : -errno;
}

void hf_pause(long ns)
{
	struct timespec ts = { .tv_sec = 0, .tv_nsec = ns < 999999999L ? ns : 999999999L };

#ifdef __LP64__ /* as in sys/calls.c: no thread is cancelled here */
	(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
#else
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
#endif
}
