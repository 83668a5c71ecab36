/*
 * file/file.h - the handle of a shared file. Each part of the layer has a header of its own:
 *
 *   entry.h     path to (directory, leaf); what kind of thing stands there; root; the name
 *   sidecar.h   the lock file beside it
 *   temp.h      the temporary file, and its names
 *   content.h   version of the content, copying, comparing
 *   meta.h      owner, mode, attributes
 *   lease.h     keeps others from opening the old file for writing during a commit
 *   intent.h    what an exchange is about to do, for the next process after a crash
 *   exchange.h  the exchange, bringing a foreign version back, and recovery
 *   commit.h    the order of all that
 *   backup.h    earlier versions
 *   markers.h   finding marker lines; style.h: writing them; block.h: the new content
 */
#ifndef FILE_FILE_H
#define FILE_FILE_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "holdfast/file.h"
#include "holdfast/name.h"

#define HF_LEAF_MAX 249 /* "." and ".lock" around it must fit into NAME_MAX */

/* What the entry was when it was read; what commit compares. */
struct hf_version {
	int exists;
	int is_symlink;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
	struct timespec ctime;
	int has_hash; /* changed so shortly before that its times alone prove nothing */
	uint64_t hash;
};

/* What a rename keeps of a version: by this it is known again under another name. */
struct hf_stamp {
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* How far a commit has come. */
enum hf_landing {
	HF_NOT_LANDED,
	HF_LANDED_NEW,       /* there was no file */
	HF_LANDED_EXCHANGED, /* the old one has the temporary name */
	HF_LANDED_OVER,      /* the old one is gone */
};

struct hf_file {
	struct hf_locks *locks; /* of files */
	struct hf_journal *journal;
	pid_t process; /* a forked child is refused */
	unsigned flags;
	unsigned backups;
	int64_t writer_wait_ns;
	int64_t writer_left_ns;   /* of that, for the attempts of an update that are still to come */
	int64_t writer_waited_ns; /* in the last commit */
	int dirfd;                /* the resolved parent, pinned */
	int basefd;               /* the working directory at the open, where the paths begin */
	char *given;              /* the path at the open */
	char *root;               /* NULL: none */
	dev_t dir_dev;
	uid_t dir_uid;
	int is_shared;            /* other users may change it: only the lock file is common to their locks and ours */
	int made_sidecar;         /* this handle did */
	mode_t new_mode;          /* of a file that is made; 0: by the umask */
	char leaf[NAME_MAX + 1];
	char *path;               /* for messages: as it was given, or where a symlink led */
	char name[HF_NAME_MAX + 1];

	char fence_name[HF_NAME_MAX + 1]; /* "": none */
	enum hf_lock_kind fence_kind;
	uint64_t fence_token;
	struct hf_locks *fence_locks; /* of another store; NULL: the fence is in ours */
	char held_name[HF_NAME_MAX + 1];
	uint64_t held_token;

	struct hf_lock_opts wait; /* what may end a wait early; the time is hf_file_lock's */
	struct hf_lock *lock; /* the file's; inside "file with", that among those inside; NULL: none */
	uint64_t token;       /* 0: not locked */
	int sidecar;          /* -1: not locked, or held by "file with" around us */

	struct hf_version version;
	int was_read;
	int old_fd;
	int new_fd;
	int slot;                /* which of the temporary names */
	char temp[NAME_MAX + 1]; /* that name while an entry has it; "": none */
	struct hf_stamp made;    /* the new file, complete */
	int has_intent;          /* temp may be something else than what we made */
	int lease_fd;            /* -1: none */
	enum hf_landing landing;
	char kept[NAME_MAX + 1]; /* a foreign version that was given a name of its own; "": none */
};

#endif
