/*
 * sys/io.h - opening, reading and writing with the care that each site needs.
 *
 * All return -errno on failure (errno itself is not meaningful afterwards) and
 * retry EINTR. No descriptor made here is ever 0, 1 or 2, and all are CLOEXEC.
 */
#ifndef SYS_IO_H
#define SYS_IO_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "holdfast/err.h"

/*
 * openat with O_CLOEXEC and O_NOCTTY added, lifted above stdio. Returns the
 * descriptor or -errno.
 */
int hf_open_at(int dirfd, const char *path, int flags, mode_t mode);

/*
 * The same with O_NOATIME where it is allowed: else each reading that follows a change
 * writes the inode, for a time that nobody wants.
 */
int hf_open_noatime(int dirfd, const char *path, int flags, mode_t mode);

/* Opens a directory for reading its entries; close with AUTO_DIR. Returns 0 or -errno. */
int hf_open_dir(int dirfd, const char *path, DIR **ret_dir);

/*
 * Reports what opening a file of ours gave (-errno): a symlink, or anything that is no
 * regular file, is HF_E_UNTRUSTED. Returns the code.
 */
int hf_fail_open(struct hf_err *err, int r, const char *shown);

/*
 * Opens a file that must be ours: regular, one link, owned by the effective
 * user, closed to group and others. O_NOFOLLOW and O_NONBLOCK are added, so a
 * symlink is not followed and a FIFO or device does not block (HF_E_UNTRUSTED).
 * With O_CREAT a missing one is made with mode 0600. One that lacks the owner's
 * bits, because of an odd umask, gets them back (see sys/mode.h).
 * `shown` is the path for messages. *ret_st may be NULL.
 */
int hf_open_private(int dirfd, const char *name, int flags, const char *shown, int *ret_fd,
		    struct stat *ret_st, struct hf_err *err);

/* The same, but the mode stays as it is: -EACCES where that does not let us in. */
int hf_open_as_it_is(int dirfd, const char *name, int flags, const char *shown, int *ret_fd,
		     struct stat *ret_st, struct hf_err *err);

/*
 * Device, inode, mode, owner, links and size of `name` in `dirfd` (the entry itself, no
 * symlink is followed), or of `dirfd` itself when `name` is "". Nothing else of *ret is
 * set: above all not the times. On a file whose times were asked for, the next write
 * must store new ones (multigrain timestamps, Linux 6.13), which makes a small write a
 * third dearer on ext4. Returns 0 or -errno.
 */
int hf_stat_at(int dirfd, const char *name, struct stat *ret);

/* Is that the same file: device and inode? */
int hf_is_same_file(const struct stat *a, const struct stat *b);

/* Does `name` (the entry itself) still mean the file that hf_stat_at gave *st of? */
int hf_is_named(int dirfd, const char *name, const struct stat *st);

/* The check of hf_open_private on what hf_stat_at gave. */
int hf_check_private(const struct stat *st, const char *shown, struct hf_err *err);

/*
 * Reads at most `cap` bytes until end of file. Returns the number read; a file
 * that has more gives -E2BIG.
 */
ssize_t hf_read_all(int fd, char *to, size_t cap);

/* Opens, reads as hf_read_all, closes. For /proc and small files. */
ssize_t hf_read_file(int dirfd, const char *path, char *to, size_t cap);

/*
 * Reads the first `size` bytes into new memory with a NUL behind them, to be freed; fewer only at end of file. Returns 0,
 * -E2BIG when `size` is above `limit`, or -errno.
 */
int hf_pread_new(int fd, uint64_t size, uint64_t limit, char **ret_bytes, size_t *ret_len);

/* Reads exactly the bytes there are in [at, at + len); fewer only at end of file. */
ssize_t hf_pread_all(int fd, char *to, size_t len, off_t at);

/*
 * Holes: a file of terabytes that has no blocks is made in a microsecond, and is not to be
 * read byte by byte. Both move the descriptor's own position.
 *
 * hf_hole_end: `at` is followed by a hole: where data begins again, at most `size`. Else `at`.
 * hf_data_end: where the last data before `size` ends; 0 when there is none, `size` where the
 * file system does not tell or there are too many pieces to look at.
 */
off_t hf_hole_end(int fd, off_t at, off_t size);
off_t hf_data_end(int fd, off_t size);

/* Are they all zero? What a hole reads as. */
int hf_is_zero(const char *bytes, size_t len);

/*
 * Writes all at `at`. Returns 0, or -errno with the number of bytes that did
 * get written in *ret_done, for the caller to take back.
 */
int hf_pwrite_all(int fd, const char *from, size_t len, off_t at, size_t *ret_done);

/* Writes all at the descriptor's own position. */
int hf_write_all(int fd, const char *from, size_t len);

/*
 * Renames, but never over something that exists (-EEXIST). Where the file system
 * cannot do that in one step, it looks first; callers there hold a guard or use a
 * name that nobody else makes.
 */
int hf_rename_new(int fromfd, const char *from, int tofd, const char *to);

/* fsync of a directory; file systems that cannot (EINVAL) count as done. */
int hf_sync_dir(int dirfd);

/* Sleeps `ns` (at most one second) without touching any signal state. */
void hf_pause(long ns);

#endif
