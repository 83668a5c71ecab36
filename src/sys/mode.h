/*
 * sys/mode.h - what we make has its mode, whatever the umask.
 *
 * The umask belongs to the process, so a library must not change it (L13). It takes bits from
 * everything that is made; an odd one (0277) takes the owner's own, and what was made so cannot be
 * opened a second time. Hence everything is made through these calls, which set the mode
 * afterwards, and everything that is opened again gets back what an interrupted call, or an earlier
 * version, left without the owner's bits.
 */
#ifndef SYS_MODE_H
#define SYS_MODE_H

#include <sys/types.h>

/*
 * Makes a new file with exactly `mode` and opens it (as hf_open_at, with O_CREAT, O_EXCL and
 * O_NOFOLLOW added). Returns the descriptor or -errno; on failure nothing stays behind.
 */
int hf_create_at(int dirfd, const char *name, int flags, mode_t mode);

/*
 * Opens the file `name`, or makes it with exactly `mode`. One of ours that lacks the owner's bits gets
 * them. No symlink is followed. Returns the descriptor or -errno.
 */
int hf_open_or_create_at(int dirfd, const char *name, int flags, mode_t mode);

/* Makes a directory with exactly `mode`. Returns 0 or -errno (-EEXIST). */
int hf_mkdir_at(int dirfd, const char *name, mode_t mode);

/*
 * Gives the entry `name` the permission bits `bits` that it lacks, if it is of the kind `type`
 * (S_IFREG, S_IFDIR, S_IFIFO), belongs to the effective user and, unless a directory, has one name.
 * No symlink is followed. Returns 1 when it has them now (perhaps another process was faster): what
 * failed is worth a second try; 0 when it is not ours to mend; or -errno.
 */
int hf_mend_mode(int dirfd, const char *name, mode_t type, mode_t bits);

#endif
