/*
 * lock/fence/fence.h - what this machine remembers of the tokens that it has let act.
 *
 * A store says whether a token is current. The fence says something that does not depend on the
 * store: once an exclusive holder with token T has acted on a resource here, no lower token acts on
 * it again, for ever (L5), even if the store forgets, is restored from an older copy, or answers late.
 *
 * One file per lock, fences/<series>/<kind>.<key>, with the highest token admitted, read and raised
 * under its flock, which is held during the action: so actions on one resource never overlap, and a
 * holder that was slow cannot slip in behind its successor. Not synced: a power cut ends every
 * process that could have had a lower token.
 */
#ifndef LOCK_FENCE_FENCE_H
#define LOCK_FENCE_FENCE_H

#include "hf/lock/store.h"

/* The fences of one series of tokens: one store. For many threads. */
struct hf_fences {
	const struct hf_state *state;
	const char *series;
	_Atomic int dirfd; /* fences/<series>, opened when it is needed first; -1: not yet */
};

/* Closes what it opened. */
void hf_fences_done(struct hf_fences *fences);

/* The fence of one lock, under its flock. */
struct hf_fence {
	int fd; /* -1: not taken, or there is none and none was to be made */
	uint64_t admitted;
};

#define HF_FENCE_INIT { .fd = -1 }

/*
 * Takes the fence of `lock`. Without `create`, a lock for which no exclusive holder has acted yet
 * has none, and that is no error. A file that is damaged is moved to quarantine, with an event, and
 * remembers nothing. Blocks while another action on the resource goes on: until `deadline`, -ETIMEDOUT.
 */
int hf_fence_take(struct hf_fences *fences, struct hf_journal *journal,
		  const struct hf_lock_ref *lock, int create, struct hf_mono deadline,
		  struct hf_fence *ret, struct hf_err *err);

/* Raises it to `token`: from now on lower ones are refused. Returns 0 or -errno. */
int hf_fence_raise(struct hf_fence *fence, const struct hf_lock_ref *lock, uint64_t token,
		   struct hf_err *err);

/* Lets go. Idempotent. */
void hf_fence_drop(struct hf_fence *fence);

#endif
