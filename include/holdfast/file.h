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
 *     r = hf_file_commit(file, &err);                              // 1 replaced, 0 was the same
 *     hf_file_close(file, &err);
 *
 * or hf_file_block() in place of read and write, for a block between two marker lines.
 * hf_file_commit() is one attempt; hf_file_update() calls a function that reads and writes,
 * commits, and does it all again when an editor saved meanwhile.
 *
 * What is locked is the directory entry: the resolved parent directory (device and inode)
 * and the last part of the path as it is written, so that all spellings of a path meet. A
 * named lock (lock.h: queue, identity, events), in the state directory, is always taken, and first. Then, with the time
 * that is left, flock(2) on the file ".<leaf>.lock" beside it, by which tools that know nothing of Holdfast lock (PACT,
 * flock(1)): if it is there; else it is made if HF_FILE_SIDECAR asks for it, or if other users may change the file (the file or
 * its directory is another user's, or writable for all, or for a group that is not the process's own), because their locks are
 * in other state directories. It is made 0600 and empty, is never written, and removed by hf_hook_uninstall alone.
 *
 * So all processes with one state directory exclude each other, with HF_FILE_SIDECAR or without; and a tool, or a process with
 * another state directory, whose lock file is there before the lock is taken. A lock file that comes later is taken before the
 * commit: what was saved under it is a change (HF_E_CHANGED), and nothing is overwritten. What remains is a tool that makes the
 * lock file for the first time, and reads, in the microseconds between that and the exchange; HF_FILE_SIDECAR rules that out.
 *
 * What is replaced is the whole file (L9): a temporary file beside it, all bytes, owner,
 * mode, extended attributes and ACL, fsync, then, under the guard of the lock and only if
 * the token is still current (L5) and the file is still the one that was read, one rename;
 * then fsync of the directory. A reader sees the old or the new file.
 *
 * A process that does not lock, an editor for example, is noticed: what it saved since
 * hf_file_read() is never overwritten (HF_E_CHANGED; read again, and write again). The
 * file is exchanged, not overwritten, and what comes out is looked at: a version that an editor saved by
 * rename in the last microsecond is put back. The library removes only what it made
 * and the version that was read. A version that cannot be put back, because a later one
 * stands in its place, becomes "<leaf>.~c~" (then ".~c2~", …), with an event; hf_file_kept()
 * names it.
 *
 * A process that saves in place, without a rename, would write into a file that has lost its
 * name. A commit therefore waits until no process has the file open for writing
 * (opts.writer_wait_ns, then HF_E_CHANGED), and holds a read lease (fcntl(2), F_SETLEASE) for
 * the microseconds until the new file is in place and the directory is synced: a process that opens the
 * old file for writing in that time waits, the commit is taken back, and that process goes on.
 * (With O_NONBLOCK its open fails with EWOULDBLOCK.)
 *
 * What remains. A process that has looked the file up before the exchange, and is not scheduled
 * until after the sync, opens the old file and saves into it unseen. Where there are no leases (some file systems;
 * a file of another user without CAP_LEASE), a save in place between the last look and the exchange
 * is seen and put back, but one that begins before and ends after the commit is not. Where
 * two files cannot be exchanged, the file is looked at immediately before the rename.
 *
 * States of a handle: open; locked; read; writing; back to locked by commit or discard. A
 * commit without hf_file_lock() is the fail-open case: it is as atomic, and notices changes
 * in the same way, but others are not kept out.
 *
 * Refused (L12), with an event each: a path outside opts.root; a symlink as the last part
 * (unless a flag says what to do with it), a directory, FIFO, device or socket, at once
 * and without opening it; a file with several names (hard links), of which only one would
 * be replaced.
 *
 * Ownership: a handle is ended by hf_file_close, before the locks and the journal that it
 * was opened with. Descriptors that it gives out belong to it.
 * Threads: a handle is used by one thread at a time; two threads are two contenders.
 * Fork: a child may only hf_file_close() what it inherited, which there only frees. It has no
 * share in the lock, and the descriptors of the lock file and of the temporary file mean nothing in it (lock.h).
 * Crash: at any instant the file is old or new. A temporary file that a crash leaves
 * (".<leaf>.holdfast-N.tmp") is removed by the next hf_file_read under the lock, when its
 * flock proves that no process writes it. If the crash came after the exchange, a symlink
 * beside it says what the two versions are: a commit that took the version that was read is complete;
 * another version that came out is put back.
 * Signals: a lease that is asked back raises SIGURG, which is ignored unless the program handles it.
 * A write beyond RLIMIT_FSIZE raises SIGXFSZ as everywhere; block or ignore it.
 * Limits: names of at most 249 bytes. Locks of another state directory or user exclude
 * each other through the lock file only. An extended attribute of at most 64 KiB.
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

#define HF_FILE_WAIT_NS     (30 * HF_SEC) /* what the CLI waits by default */
#define HF_FILE_BACKUPS_MAX 99
#define HF_FILE_ATTEMPTS    5             /* of hf_file_update */
#define HF_FILE_WRITER_WAIT_NS (2 * HF_SEC) /* for a process that has the file open for writing */
#define HF_BLOCK_ID_MAX     80         /* bytes of a block's id */
#define HF_BLOCK_MARKER_MAX 512        /* bytes of a marker line */
#define HF_BLOCK_TEXT_MAX   (64 << 20) /* bytes of a block's text */

struct hf_file;

enum hf_file_flags {
	HF_FILE_CREATE = 1 << 0,          /* a missing file counts as an empty one */
	HF_FILE_REPLACE_SYMLINK = 1 << 1, /* a symlink is replaced; its target is not even read */
	HF_FILE_FOLLOW = 1 << 2,          /* a symlink is followed, inside `root`; without one, in its own directory */
	HF_FILE_BREAK_LINKS = 1 << 3,     /* a hard link is replaced; its other names keep the old */
	HF_FILE_FREE_ON_EXIT = 1 << 4,    /* as HF_LOCK_FREE_ON_EXIT */
	HF_FILE_SIDECAR = 1 << 5,         /* ".<leaf>.lock" is made and locked, too */
};

/* All zero means: an existing file, anywhere, no fence, no backups, no events. */
struct hf_file_opts {
	size_t size;             /* sizeof(struct hf_file_opts) */
	unsigned flags;          /* enum hf_file_flags */
	const char *root;        /* the file must be inside this directory; NULL: anywhere */
	const char *fence_name;  /* a further lock whose token must be current at the rename */
	uint64_t fence_token;
	const char *held_name;   /* a lock that the caller works under already: if it is */
	uint64_t held_token;     /* this file's, and current, hf_file_lock takes only the lock by
				  * which all those that work under it take turns */
	unsigned backups;        /* keep that many earlier versions, leaf.~1~ the newest */
	struct hf_journal *journal; /* for refusals; NULL: none are written */
	int64_t writer_wait_ns;  /* how long a commit, or an update in all its attempts, waits for
				  * processes that have the file open for writing; 0: HF_FILE_WRITER_WAIT_NS */
	enum hf_lock_kind fence_kind; /* of fence_name; what is held is this file's lock or nothing */
	int cancel_fd;           /* ends hf_file_lock, as in struct hf_lock_opts, with the two below; 0: none */
	int (*go_on)(void *arg);
	void *go_on_arg;
	unsigned mode;           /* of a file that is made (HF_FILE_CREATE), whatever the umask says; 0: by the umask */
	struct hf_locks *fence_locks; /* where fence_name is, when it is in another store; freed after the file; NULL: where the file's lock is */
};

/*
 * Finds the directory and pins it; nothing is locked or made. Returns 0; HF_E_OUTSIDE;
 * HF_E_KIND; HF_E_STALE (the fence's token is lost already); -ENOENT (no directory, or no
 * file and no HF_FILE_CREATE); -ENAMETOOLONG; -EINVAL; -errno. Blocks: as the file system does.
 */
HF_API int hf_file_open(struct hf_locks *locks, const char *path, const struct hf_file_opts *opts,
			struct hf_file **ret_file, struct hf_err *err) HF_MUST_CHECK;

/* Name of the file's lock, "DEVICE:INODE:LEAF", of kind HF_LOCK_KIND_FILE. */
HF_API const char *hf_file_lock_name(const struct hf_file *file);

/* Token of the lock while it is held, else 0. */
HF_API uint64_t hf_file_token(const struct hf_file *file);

/*
 * The descriptor of ".<leaf>.lock" while it is locked, else -1, also when there is none. A program that becomes
 * another by exec keeps the lock by clearing its FD_CLOEXEC.
 */
HF_API int hf_file_lock_fd(const struct hf_file *file);

/* 1 when this handle has made ".<leaf>.lock", which is to stay: a program may tell git to ignore it. */
HF_API int hf_file_made_sidecar(const struct hf_file *file);

/*
 * Takes the lock, or both, waiting `wait_ns` for the two together (0: not at all; negative: for
 * ever). Returns 0; HF_E_BUSY, HF_E_TIMEOUT, HF_E_DEADLOCK as hf_lock_acquire, with
 * *ret_blocker (may be NULL; pid 0 when unknown); HF_E_UNTRUSTED when what stands in the
 * place of the lock file is none; HF_E_CANCELLED; -errno. After a failure nothing is locked.
 */
HF_API int hf_file_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Opens what is there now for reading, at its beginning, and remembers it for the commit.
 * Under the lock it also removes temporary files that a crash has left, and finishes what
 * it left of a backup.
 * *ret_fd is -1 when there is no file yet (HF_FILE_CREATE) or it is a symlink to be
 * replaced. Valid until the next call of this function or the close. Returns 0; HF_E_KIND;
 * -ENOENT; -errno.
 */
HF_API int hf_file_read(struct hf_file *file, int *ret_fd, struct hf_err *err) HF_MUST_CHECK;

/*
 * Makes the temporary file, open for reading and writing. Only after hf_file_read. Valid until commit or discard. Returns 0 or -errno.
 */
HF_API int hf_file_write(struct hf_file *file, int *ret_fd, struct hf_err *err) HF_MUST_CHECK;

/* That descriptor again, or -1; also of what hf_file_block has written. */
HF_API int hf_file_new_fd(const struct hf_file *file);

/*
 * Puts what was written in the file's place. Returns 1; 0 when it is what was there before
 * (then nothing is touched); HF_E_CHANGED when the file is no longer what was read; HF_E_STALE
 * when one of the tokens is lost, also if this process was stopped until now (L5); -errno.
 * After a failure the old file is in place and the temporary one is gone. The one exception
 * is told in the detail: a directory that cannot be synced, on a file system that cannot
 * exchange files, or after the lock was lost in that very moment.
 * Blocks: for the disk.
 */
HF_API int hf_file_commit(struct hf_file *file, struct hf_err *err) HF_MUST_CHECK;

/*
 * Calls `make`, which calls hf_file_read and hf_file_write, or hf_file_block, and commits; again from the beginning when
 * either says HF_E_CHANGED, HF_FILE_ATTEMPTS times at most. `make` returns 1 to commit, 0 when there
 * is nothing to change, or an error, which ends it. Returns as hf_file_commit, or what `make`
 * returned; *ret_attempts (may be NULL) is how often it was called.
 */
HF_API int hf_file_update(struct hf_file *file,
			  int (*make)(void *arg, struct hf_file *file, struct hf_err *err), void *arg,
			  unsigned *ret_attempts, struct hf_err *err) HF_MUST_CHECK;

/*
 * Name (in the file's directory) of the last version of another program that a commit, or the recovery
 * in hf_file_read, took out and kept; NULL: none.
 */
HF_API const char *hf_file_kept(const struct hf_file *file);

/* Forgets what was written. The file is as it was. */
HF_API void hf_file_discard(struct hf_file *file);

/*
 * Discards what was not committed, gives both locks back and frees. NULL is fine. Returns
 * 0, or what hf_lock_release said; the handle is gone in any case.
 * After fork: in the child only frees.
 */
HF_API int hf_file_close(struct hf_file *file, struct hf_err *err);

/* -- managed blocks ------------------------------------------------------------ */

/* How the marker lines of a new block are written, "holdfast:ID:start" in a comment. */
enum hf_block_style {
	HF_STYLE_AUTO = 0, /* by the file's name; '#' where that says nothing */
	HF_STYLE_HTML = 1, /* <!-- --> */
	HF_STYLE_HASH = 2, /* # */
	HF_STYLE_SLASH = 3, /* // */
	HF_STYLE_DASH = 4, /* -- */
	HF_STYLE_C = 5,    /* slash star, star slash */
};

struct hf_block {
	size_t size;        /* sizeof(struct hf_block) */
	const char *id;     /* letters, digits, '_', '-', '.' */
	const char *text;   /* taken literally; NULL: the block goes, with its markers */
	size_t len;
	const char *start;  /* foreign marker lines, compared without the blanks around */
	const char *end;    /* them; both or neither */
	enum hf_block_style style;
};

/*
 * Reads the file and writes it with the block replaced, put at the end, or taken out; to
 * be committed. Returns 1; 0 when there is nothing to change (and nothing to commit).
 *
 * A marker stands alone on its line, indented or not, in any of the styles. In Markdown,
 * lines in fenced code are no markers. Everything outside the block keeps every byte; a
 * file without a final newline stays one; in a file whose lines mostly end with CR LF those
 * of the text do, too. Putting a block in and taking it out again gives the same file.
 *
 * HF_E_MARKERS, with line numbers, and nothing written: a start without end, an end without
 * or before its start, two of a kind, another block's marker inside, the block inside
 * another, text that holds a marker or leaves a code fence open, a fence that is never
 * closed before a new block. HF_E_KIND: the file is not text (NUL bytes, UTF-16). -EINVAL:
 * the id, the markers, or a file type without comments. Memory: the text and 128 KiB.
 */
HF_API int hf_file_block(struct hf_file *file, const struct hf_block *block,
			 struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
