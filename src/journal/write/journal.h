/*
 * journal/write/journal.h - the writing handle, shared by handle.c, guard.c, append.c and rotate.c.
 *
 * The guard is flock(LOCK_EX) on the active segment itself. Under it a writer
 * learns the end of the file from statx: equal to `end` means nobody wrote since,
 * and `seq` is current; else the tail is read. So an undisturbed append costs
 * flock, statx, two writes and the unlock, and reads nothing.
 */
#ifndef JOURNAL_WRITE_JOURNAL_H
#define JOURNAL_WRITE_JOURNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "hf/base/buf.h"
#include "holdfast/journal.h"
#include "hf/journal/segment.h"

struct hf_journal {
	pthread_mutex_t mutex; /* one append at a time within this handle */
	pid_t owner;           /* a forked child is refused */
	int dirfd;             /* journal/ */
	int counters_fd;       /* -1: cannot be opened; the journal works without */
	uint64_t segment_bytes;
	uint64_t retain_bytes;
	int64_t wait_ns;      /* the longest that an append waits for the guard */
	uint64_t fsize_limit; /* RLIMIT_FSIZE at opening */

	/* The active segment as this handle last saw it. */
	int fd;          /* -1: to be opened */
	int read_only;   /* the descriptor cannot write: the mode did not let it */
	uint64_t end;    /* size after our last look */
	uint64_t seq;    /* highest sequence number at `end` */
	int torn;        /* the segment does not end with a newline */
	int known;       /* end, seq and torn are valid */
	uint64_t generation;        /* how many it has opened */
	uint64_t synced_generation; /* the one whose directory entry is on disk */
	uint64_t own_seq; /* the last record that this handle wrote */

	/* Losses that are not yet told: in the journal, and in the counters file. */
	uint64_t lost_untold;
	uint64_t lost_uncounted;
	char lost_cause[64];
	off_t stuck_size; /* of the active segment when a wait timed out */
	int impatient; /* the last wait timed out: do not wait again until through */

	/* A rotation that this handle did and has not yet recorded. */
	char rotated_name[HF_SEGMENT_NAME_MAX];
	uint64_t rotated_last;

	/* Segments that it removed and has not yet recorded. */
	uint64_t pruned_through;
	uint64_t pruned_count;

	struct hf_buf body; /* reused between appends */
	struct hf_buf out;
};

/* Opens events.jsonl (made if missing) as journal->fd. */
int hf_journal_open_active(struct hf_journal *journal, struct hf_err *err);

/*
 * Opens, guards and examines until there is an active segment with room for
 * `len` bytes under our guard. Returns 0, or -errno without the guard.
 */
int hf_journal_guard(struct hf_journal *journal, size_t len, struct hf_mono deadline);

/* Forgets the active segment. */
void hf_journal_close_active(struct hf_journal *journal);

/*
 * The active segment is full, or was found sealed: seals it, gives it its final
 * name, and closes it. Caller holds the guard. Returns 0 (open anew) or -errno.
 */
int hf_journal_rotate(struct hf_journal *journal);

/*
 * Highest sequence number there is before an empty active segment, from the
 * newest sealed one. Returns 0 or -errno.
 */
int hf_journal_seq_before(struct hf_journal *journal, uint64_t *ret_seq);

struct hf_prune {
	uint64_t through;     /* the last sequence number that goes */
	size_t count;         /* segments that go; 0: nothing to do */
	struct hf_segment_list list;
};

/* Plans what has to go to keep the limit. Free with hf_prune_done. */
int hf_prune_plan(struct hf_journal *journal, struct hf_prune *ret);
void hf_prune_apply(struct hf_journal *journal, const struct hf_prune *prune);
void hf_prune_done(struct hf_prune *prune);

#endif
