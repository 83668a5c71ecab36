/*
 * holdfast/file.h - shared files: read, change and replace under a lock that others respect.
 *
 * Calling sequence:
 *
 *     struct hf_file_opts opts = { .size = sizeof(opts), .journal = journal };
 *     struct hf_file *file;
 *     struct hf_holder blocker;
 *     int old, new;
 *     hf_file_open(locks, "CLAUDE.md", &opts, &file, &err);        // pins the directory
 *     hf_file_lock(file, 30 * HF_SEC, &blocker, &err);             // waits its turn
 *     hf_file_read(file, &old, &err);                              // a descriptor; -1: no file yet
 *     hf_file_write(file, &new, &err);                             // another; fill it
 *     r = hf_file_commit(file, &err);                              // 1 replaced, 0 unchanged
 *     hf_file_close(file, &err);
 *
 * For a block between two marker lines, call hf_file_block() in place of read and write.
 * hf_file_update() repeats read, write and commit if an editor saved in between;
 * hf_file_commit() is a single attempt.
 *
 * The lock belongs to the directory entry: the resolved parent directory (device and inode)
 * and the last part of the path as written, so all spellings of a path meet. hf_file_lock()
 * takes up to two locks:
 *
 *   - First, always, a named lock in the state directory (lock.h: queue,
 *     identity, events).
 *   - Then, within the remaining time, flock(2) on the file ".<leaf>.lock" in
 *     the same directory. Tools that do not know Holdfast lock by this file
 *     (PACT, flock(1)). It is locked if it exists. It is created for
 *     HF_FILE_SIDECAR, or if other users may change the file (it or its
 *     directory belongs to another user, or is writable for all or for a group
 *     other than the process's own), because their named locks are in other
 *     state directories. It is empty, has mode 0600 and is never written; only
 *     hf_hook_uninstall removes it.
 *
 * So processes with one state directory always exclude each other. They exclude a tool, or a
 * process with another state directory, if its lock file exists before the lock is taken. A
 * lock file that appears later is locked before the commit: a change saved under it gives
 * HF_E_CHANGED, and nothing is overwritten. One gap remains, which HF_FILE_SIDECAR closes: a
 * tool that first creates the lock file, and reads, in the microseconds between that step and
 * the exchange.
 *
 * A commit replaces the whole file (L9):
 *
 *   1. It makes a temporary file in the same directory with all bytes, owner,
 *      mode, extended attributes and ACL, and syncs it.
 *   2. Under the guard of the lock, it checks that the token is current (L5) and
 *      that the file is still the version that was read, and renames once.
 *   3. It syncs the directory.
 *
 * A reader sees the old or the new file.
 *
 * A version that another process, such as an editor, saved without a lock since hf_file_read()
 * is never overwritten (HF_E_CHANGED; read and write again). The two files are exchanged, and
 * the one that comes out is checked. A version that an editor saved by rename in the last
 * microsecond is put back. The library removes only its own files and the version that was
 * read. If a version cannot be put back because a later one has its place, it becomes
 * "<leaf>.~c~" (then ".~c2~", …), with an event; hf_file_kept() returns its name.
 *
 * The directory is pinned, so a directory that another process moves or replaces in the
 * meantime is never half changed. Before and after the exchange the path is followed again: if
 * it leads elsewhere, the commit is undone (HF_E_MOVED).
 *
 * A process that saves in place, without a rename, would write into a file that has lost its
 * name. A commit therefore waits until no process has the file open for writing
 * (opts.writer_wait_ns, then HF_E_CHANGED). It then holds a read lease (fcntl(2), F_SETLEASE)
 * for the microseconds until the new file is in place and the directory is synced. A process
 * that opens the old file for writing in that time waits; the commit is undone, and the
 * process continues. (With O_NONBLOCK its open fails with EWOULDBLOCK.)
 *
 * Limits of this protection:
 *
 *   - A process that has looked up the file before the exchange, and runs again
 *     only after the sync, opens the old file and saves into it undetected.
 *   - Without leases (some file systems; another user's file without CAP_LEASE),
 *     a save in place between the last check and the exchange is detected and
 *     put back. A save that begins before and ends after the commit is not
 *     detected.
 *   - Where two files cannot be exchanged, the file is checked immediately
 *     before the rename.
 *
 * States of a handle: open; locked; read; writing; back to locked by commit or discard. A
 * commit without hf_file_lock() fails open: it is atomic and detects changes, but does not
 * exclude others.
 *
 * Refused (L12), with an event each:
 *
 *   - a path outside opts.root;
 *   - a symlink as the last part, unless a flag allows it;
 *   - a directory, FIFO, device or socket, which is never opened;
 *   - a file with several names (hard links), because only one would be
 *     replaced.
 *
 * Ownership: end a handle by hf_file_close before freeing its locks and journal. The handle
 * owns the descriptors that it returns.
 * Threads: one thread at a time uses a handle; two threads are two contenders.
 * Fork: a child may only hf_file_close() an inherited handle, which only frees it. The child
 * has no share in the lock, and the descriptors of the lock file and the temporary file are
 * invalid in it (lock.h).
 * Crash: at any instant the file is old or new. The next hf_file_read under the lock removes a
 * temporary file (".<leaf>.holdfast-N.tmp") that a crash left, once its flock proves that no
 * process writes it. If the crash came after the exchange, a symlink in the same directory
 * identifies the two versions: if the version that was read came out, the commit is complete;
 * any other version is put back.
 * Signals: a lease that the kernel breaks raises SIGURG, which is ignored unless the program
 * handles it. A write beyond RLIMIT_FSIZE raises SIGXFSZ as usual; block or ignore it.
 * Limits: names of at most 249 bytes. Processes of different state directories or users
 * exclude each other through the lock file only. An extended attribute has at most 64 KiB.
 */
#ifndef HOLDFAST_FILE_H
#define HOLDFAST_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/err.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

HF_C_BEGIN

#define HF_FILE_WAIT_NS     (30 * HF_SEC) /* the CLI's default wait */
#define HF_FILE_BACKUPS_MAX 99
#define HF_FILE_ATTEMPTS    5             /* of hf_file_update */
#define HF_FILE_WRITER_WAIT_NS (2 * HF_SEC) /* for processes that have the file open for writing */
#define HF_BLOCK_ID_MAX     80         /* bytes of a block's id */
#define HF_BLOCK_MARKER_MAX 512        /* bytes of a marker line */
#define HF_BLOCK_TEXT_MAX   (64 << 20) /* bytes of a block's text */

struct hf_file;

enum hf_file_flags {
	HF_FILE_CREATE = 1 << 0,          /* a missing file counts as an empty one */
	HF_FILE_REPLACE_SYMLINK = 1 << 1, /* replace a symlink; its target is not even read */
	HF_FILE_FOLLOW = 1 << 2,          /* follow a symlink, inside `root`, or inside its own directory without `root` */
	HF_FILE_BREAK_LINKS = 1 << 3,     /* replace a hard link; its other names keep the old content */
	HF_FILE_FREE_ON_EXIT = 1 << 4,    /* like HF_LOCK_FREE_ON_EXIT */
	HF_FILE_SIDECAR = 1 << 5,         /* create and lock ".<leaf>.lock", too */
};

/* All zero: an existing file, anywhere, no fence, no backups, no events. */
struct hf_file_opts {
	size_t size;             /* sizeof(struct hf_file_opts) */
	unsigned flags;          /* enum hf_file_flags */
	const char *root;        /* the file must be inside this directory; NULL: anywhere */
	const char *fence_name;  /* another lock, whose token must be current at the rename */
	uint64_t fence_token;
	const char *held_name;   /* a lock that the caller holds already. If it is */
	uint64_t held_token;     /* this file's, and current, hf_file_lock takes only the lock by
				  * which the processes that work under it take turns */
	unsigned backups;        /* the number of earlier versions to keep; leaf.~1~ is the newest */
	struct hf_journal *journal; /* for refusals; NULL: none */
	int64_t writer_wait_ns;  /* how long a commit, or all attempts of an update, wait for
				  * processes that have the file open for writing; 0:
				  * HF_FILE_WRITER_WAIT_NS */
	enum hf_lock_kind fence_kind; /* of fence_name; held_name always means this file's lock */
	int cancel_fd;           /* cancels hf_file_lock, as in struct hf_lock_opts, with the two below; 0: none */
	int (*go_on)(void *arg);
	void *go_on_arg;
	unsigned mode;           /* of a created file (HF_FILE_CREATE), regardless of the umask; 0: by the umask */
	struct hf_locks *fence_locks; /* the store of fence_name if it is another one; free it after
				       * the file; NULL: the store of the file's lock */
};

/*
 * Finds and pins the directory; locks and creates nothing. Blocks as the file system does.
 * Returns 0; HF_E_OUTSIDE; HF_E_KIND; HF_E_STALE (the fence's token is no longer current);
 * -ENOENT (no directory, or no file without HF_FILE_CREATE); -ENAMETOOLONG; -EINVAL; -errno.
 */
HF_API int hf_file_open(struct hf_locks *locks, const char *path, const struct hf_file_opts *opts,
			struct hf_file **ret_file, struct hf_err *err) HF_MUST_CHECK;

/* Returns the name of the file's lock, "DEVICE:INODE:LEAF", of kind HF_LOCK_KIND_FILE. */
HF_API const char *hf_file_lock_name(const struct hf_file *file);

/* Returns the token while the lock is held, otherwise 0. */
HF_API uint64_t hf_file_token(const struct hf_file *file);

/*
 * Returns the descriptor of ".<leaf>.lock" while it is locked, otherwise -1. A program that
 * replaces itself by exec keeps this lock by clearing FD_CLOEXEC.
 */
HF_API int hf_file_lock_fd(const struct hf_file *file);

/*
 * Returns 1 if this handle has created ".<leaf>.lock". The file stays, so a program may make
 * git ignore it.
 */
HF_API int hf_file_made_sidecar(const struct hf_file *file);

/*
 * Takes the lock, or both, and waits at most `wait_ns` in total (0: not at all; negative:
 * without limit). After a failure nothing is locked. Returns 0; HF_E_BUSY, HF_E_TIMEOUT and
 * HF_E_DEADLOCK as hf_lock_acquire, with *ret_blocker (may be NULL; pid 0 if unknown);
 * HF_E_UNTRUSTED if the entry with the lock file's name cannot be trusted or is not a file;
 * HF_E_CANCELLED; -errno.
 */
HF_API int hf_file_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Opens the present version for reading, at its beginning, and remembers it for the commit.
 * Under the lock it also removes temporary files and completes a backup that a crash left.
 *
 * *ret_fd is -1 if no file exists yet (HF_FILE_CREATE), or if a symlink will be replaced. It
 * is valid until the next call of this function or the close. Returns 0; HF_E_KIND; -ENOENT;
 * -errno.
 */
HF_API int hf_file_read(struct hf_file *file, int *ret_fd, struct hf_err *err) HF_MUST_CHECK;

/*
 * Creates the temporary file, open for reading and writing. Requires hf_file_read. *ret_fd is
 * valid until commit or discard. Returns 0 or -errno.
 */
HF_API int hf_file_write(struct hf_file *file, int *ret_fd, struct hf_err *err) HF_MUST_CHECK;

/* Returns that descriptor, also for the output of hf_file_block, or -1. */
HF_API int hf_file_new_fd(const struct hf_file *file);

/*
 * Replaces the file by the new content. Blocks: for the disk. Returns one of:
 *
 *   1             replaced
 *   0             the content is unchanged; nothing was touched
 *   HF_E_CHANGED  the file is no longer the version that was read
 *   HF_E_MOVED    the path of hf_file_open leads to another directory or file now, because
 *                 another process moved or replaced a directory or a symbolic link of it
 *   HF_E_STALE    a token is no longer current, even if it was lost while this
 *                 process was stopped (L5)
 *   -errno        another failure
 *
 * After a failure the old file is in place and the temporary file is gone. The detail reports
 * the only exception, a directory that cannot be synced: on a file system without exchange, or
 * if the lock was lost at that moment.
 */
HF_API int hf_file_commit(struct hf_file *file, struct hf_err *err) HF_MUST_CHECK;

/*
 * Calls `make`, which calls hf_file_read and hf_file_write, or hf_file_block; then commits.
 * Starts again if either returns HF_E_CHANGED, at most HF_FILE_ATTEMPTS times in total. `make`
 * returns 1 to commit, 0 if nothing needs to change, or an error, which ends the update.
 * Returns the result of hf_file_commit or of `make`; *ret_attempts (may be NULL) is the number
 * of calls.
 */
HF_API int hf_file_update(struct hf_file *file,
			  int (*make)(void *arg, struct hf_file *file, struct hf_err *err), void *arg,
			  unsigned *ret_attempts, struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the name (in the file's directory) of the last foreign version that a commit, or the
 * recovery in hf_file_read, took out and kept, or NULL.
 */
HF_API const char *hf_file_kept(const struct hf_file *file);

/* Discards the new content. The file is unchanged. */
HF_API void hf_file_discard(struct hf_file *file);

/*
 * Discards uncommitted content, releases both locks and frees the handle in any case. NULL is
 * allowed. Returns 0 or the result of hf_lock_release. After fork: only frees in the child.
 */
HF_API int hf_file_close(struct hf_file *file, struct hf_err *err);

/* -- managed blocks ------------------------------------------------------------ */

/* The comment style of the marker lines of a new block, "holdfast:ID:start". */
enum hf_block_style {
	HF_STYLE_AUTO = 0, /* by the file's name; otherwise '#' */
	HF_STYLE_HTML = 1, /* <!-- --> */
	HF_STYLE_HASH = 2, /* # */
	HF_STYLE_SLASH = 3, /* // */
	HF_STYLE_DASH = 4, /* -- */
	HF_STYLE_C = 5,    /* slash star, star slash */
};

struct hf_block {
	size_t size;        /* sizeof(struct hf_block) */
	const char *id;     /* letters, digits, '_', '-', '.' */
	const char *text;   /* inserted literally; NULL: remove the block and its markers */
	size_t len;
	const char *start;  /* foreign marker lines, compared without surrounding blanks */
	const char *end;    /* set both or neither */
	enum hf_block_style style;
};

/*
 * Reads the file, and writes it with the block replaced, appended or removed, ready for the
 * commit. Returns 1, or 0 if nothing needs to change (and nothing to commit). Memory: the text
 * and 128 KiB.
 *
 * A marker is alone on its line, indented or not, in any of the styles. In Markdown, lines in
 * fenced code are not markers. Every byte outside the block is kept. A file without a final
 * newline stays one. In a file whose lines mostly end in CR LF, the lines of the text do, too.
 * Inserting a block and removing it gives the original file.
 *
 * HF_E_MARKERS, with line numbers and nothing written:
 *
 *   - a start without an end; an end without a start, or before it;
 *   - two starts or two ends;
 *   - another block's marker inside the block, or the block inside another;
 *   - text that contains a marker or leaves a code fence open;
 *   - before a new block, a code fence that is never closed.
 *
 * HF_E_KIND: the file is not text (NUL bytes, UTF-16). -EINVAL: the id, the markers, or a file
 * type without comments.
 */
HF_API int hf_file_block(struct hf_file *file, const struct hf_block *block,
			 struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
