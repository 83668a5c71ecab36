/*
 * plan/recovery/intent.h - the promise of a commit: every step of it, on disk before the first is taken.
 *
 *   plans/<key>/intent   a commit or an undo is under way, or died
 *   plans/<key>/undo     the intent of the last commit, while its old versions are kept
 *   plans/<key>/gone     the same where they were not kept: only says that it was done
 *   plans/<key>/undone   the intent of an undo that was done
 *
 * An operation moves one entry between a target and a stage, a directory on the same mount that
 * holds the new versions before and the old ones after. Which of the two states holds is seen
 * from the inode numbers, so that an operation can be done or undone any number of times, by
 * any process (L10). The numbers are safe identities: both inodes exist until the commit is over.
 *
 * File, native byte order: struct hf_intent_head; fences, targets and operations behind it, each
 * a packed struct and its strings (a 32-bit length, the bytes, a NUL). The sum is XXH3-64 of all but
 * the head's `phase` and `sum`. `phase` alone is written later, in place.
 */
#ifndef PLAN_RECOVERY_INTENT_H
#define PLAN_RECOVERY_INTENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hf/base/buf.h"
#include "hf/proc/here.h"
#include "hf/plan/registry/registry.h"

#define HF_INTENT         "intent"
#define HF_INTENT_NEW     "intent.new"
#define HF_INTENT_UNDO    "undo"
#define HF_INTENT_GONE    "gone"
#define HF_INTENT_UNDONE  "undone"
#define HF_INTENT_VERSION 2
#define HF_INTENT_OPS_MAX ((uint32_t)8 << 20)
#define HF_FENCES_MAX     16

enum hf_intent_phase {
	HF_INTENT_PREPARED = 0, /* durable, but the fence was not proven: may still be dropped */
	HF_INTENT_APPLY = 1,    /* goes forward, whatever happens */
	HF_INTENT_UNDOING = 2,  /* goes back */
	HF_INTENT_APPLIED = 3,  /* every operation was done */
};

enum hf_intent_purpose {
	HF_INTENT_COMMIT = 1,
	HF_INTENT_TAKE_BACK = 2, /* plan undo: the operations of a commit, reversed */
};

/* The letters stand in the record. */
enum hf_op_kind {
	HF_OP_EXCHANGE = 'X',   /* target/path and stage/slot change places */
	HF_OP_NEW = 'N',        /* stage/slot becomes target/path, which must not exist */
	HF_OP_DELETE = 'D',     /* target/path becomes stage/slot, which must not exist */
	HF_OP_META = 'M',       /* mode, owner and attributes of target/path */
	HF_OP_STAGE_MODE = 'S', /* mode of stage/slot, so that entries can be moved out of it */
	HF_OP_LEAVE = 'L',      /* stage/slot is not committed: it becomes stage/path */
};

enum hf_op_flags {
	HF_OP_GIT_LOCK = 1 << 0, /* git's index.lock, ours for the time of the commit */
	HF_OP_TREE = 1 << 1,     /* the old side is a directory that goes as a whole */
	HF_OP_HIDDEN = 1 << 2,   /* no change of the user's: not counted */
};

struct hf_op {
	uint8_t kind;
	uint8_t flags;
	uint16_t target; /* index */
	uint32_t old_mode, new_mode; /* with the type; 0: there is none */
	uint32_t old_uid, old_gid, new_uid, new_gid; /* HF_OP_META */
	uint64_t old_ino, new_ino;
	uint64_t parent_ino; /* of the directory that target/path is in */
	uint64_t old_size, new_size;
	int64_t old_mtime_ns, new_mtime_ns;
	int64_t old_ctime_ns; /* before it was moved: tells whose T0 the old version is older than */
	const char *path, *slot;
	const void *attrs; /* plan/tree/attrs.h; for what has landed */
	size_t attrs_len;
};

struct hf_intent_target {
	const char *sandbox;
	const char *path; /* of the target */
	uint64_t dev, ino;
	uint64_t stage_ino;
	int in_target; /* the stage is a directory in the target, which is on another mount than ours */
};

struct hf_intent_fence {
	const char *name;
	uint64_t token;
};

struct hf_intent {
	enum hf_intent_purpose purpose;
	enum hf_intent_phase phase;
	uint64_t token; /* of the plan's lock */
	char boot_id[HF_BOOT_ID_LEN + 1];
	struct hf_intent_fence *fences;
	struct hf_intent_target *targets;
	struct hf_op *ops;
	size_t n_fences, n_targets, n_ops;
	void *memory; /* of the strings, when it was decoded */
};

#define HF_INTENT_INIT { .purpose = HF_INTENT_COMMIT }

/* Frees what it holds. Strings of one that was not decoded are the caller's. */
void hf_intent_done(struct hf_intent *intent);

void hf_intent_encode(const struct hf_intent *intent, struct hf_buf *out);

/*
 * Checks everything that later steps rely on: the sum, all numbers, and that no path leaves its
 * directory (L12). Returns 0; HF_E_FORMAT with *ret_why in words; -ENOMEM.
 */
int hf_intent_decode(const char *bytes, size_t len, struct hf_intent *ret, const char **ret_why);

/* -- as a file --------------------------------------------------------------------- */

/* Writes the file `intent`, whole or not at all. Not synced. 0 or -errno. */
int hf_intent_write(int plan_fd, const struct hf_intent *intent);

/* Sets the phase in the file. Not synced. 0 or -errno. */
int hf_intent_set_phase(int plan_fd, enum hf_intent_phase phase);

/* Makes now the time of the file's last change. 0 or -errno. */
int hf_intent_touch(int plan_fd, const char *name);

/*
 * Reads the file `name`. -ENOENT: there is none. HF_E_FORMAT with *ret_why: it is torn or not
 * one of ours. *ret is then empty. -errno.
 */
int hf_intent_load(int plan_fd, const char *name, struct hf_intent *ret, const char **ret_why,
		   struct hf_err *err);

#endif
