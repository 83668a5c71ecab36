/*
 * journal/segment.h - the journal's files: their names, their order, their state.
 *
 *   events.jsonl                       the one being written
 *   events.00000000000000000042.jsonl  sealed; 42 is its first sequence number
 *   counters                           see journal/write/counters.h
 *
 * A segment is sealed by taking its write permission (mode 0400). Appenders
 * look at the mode under the guard, so nothing is added behind the seal, and a
 * the next writer finishes a rotation that crashed between seal and rename.
 */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include <stdint.h>
#include <sys/stat.h>

#include "holdfast/err.h"
#include "holdfast/journal.h"

#define HF_SEGMENT_ACTIVE   "events.jsonl"
#define HF_SEGMENT_NAME_MAX 40

struct hf_segment {
	uint64_t first; /* from the name */
	uint64_t bytes;
	uint64_t allocated; /* at most `bytes`: without its holes */
};

struct hf_segment_list {
	struct hf_segment *items; /* sealed ones, oldest first */
	size_t count;
};

void hf_segment_name(uint64_t first, char out[HF_SEGMENT_NAME_MAX]);

/* Lists the sealed segments. Returns 0 or -errno. Free with hf_segment_list_done. */
int hf_segment_list(int dirfd, struct hf_segment_list *ret);
void hf_segment_list_done(struct hf_segment_list *list);

/* Only a segment with content is ever sealed: an empty one lost the bit to a umask. */
static inline int hf_segment_sealed(const struct stat *st)
{
	return !(st->st_mode & S_IWUSR) && st->st_size > 0;
}

struct hf_tail {
	uint64_t seq; /* of the last valid line; 0: there is none */
	int torn;     /* the file does not end with a newline */
};

/* Reads the end of a segment of `size` bytes. Returns 0 or -errno. */
int hf_segment_tail(int fd, uint64_t size, struct hf_tail *ret);

/* Sequence number of the first valid line; 0: there is none. Returns 0 or -errno. */
int hf_segment_first(int fd, uint64_t size, uint64_t *ret_seq);

#endif
