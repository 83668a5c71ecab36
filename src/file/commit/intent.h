/*
 * file/commit/intent.h - what an exchange is about to do, for the process that comes after a crash.
 *
 * From the exchange on, the temporary name may stand for three things: what we made, the
 * version that was read, or one that an editor saved in the last microsecond. Only the first two
 * may ever be removed. Before the exchange a symlink ".<leaf>.holdfast-N-swap.tmp" is made
 * whose target says which they are, and which process is at work; it goes after the temporary file.
 * (A symlink, because it is made whole by one call, and reaches the disk before the exchange does.)
 */
#ifndef FILE_COMMIT_INTENT_H
#define FILE_COMMIT_INTENT_H

#include "hf/file/file.h"
#include "holdfast/proc.h"

struct hf_intent {
	struct hf_proc_id process;
	struct hf_stamp old;
	struct hf_stamp made;
};

/* Writes that of this handle. Returns 0 or -errno. */
int hf_intent_make(struct hf_file *file);

/* Reads that of a slot. Returns 0; -ENOENT: none; HF_E_FORMAT: not one of ours; -errno. */
int hf_intent_read(const struct hf_file *file, int slot, struct hf_intent *ret);

void hf_intent_remove(const struct hf_file *file, int slot);

#endif
