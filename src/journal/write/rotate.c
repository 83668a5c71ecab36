/*
 * journal/write/rotate.c - sealing a full segment, and removing the oldest.
 *
 * Order of a rotation, under the guard of the old segment:
 *   1. seal:   fchmod 0400     from here nothing is appended to it
 *   2. rename: events.jsonl -> events.FIRST.jsonl
 *   3. open (make) a new events.jsonl; its first record tells of the rotation
 * A crash after 1 is finished by the next writer, which finds the seal; after 2
 * the next writer simply makes the new file. No step can lose a record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/journal/write/journal.h"
#include "hf/journal/line.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/*
 * Names the sealed segment by its first number. Where damage or a stray file has
 * taken that place, by the next free one: it must come behind all others, and
 * what is in the way must not stop the journal.
 */
static int rename_sealed(struct hf_journal *journal, uint64_t first, uint64_t last)
{
	AUTO(hf_segment_list_done) struct hf_segment_list list = { 0 };
	int r = hf_segment_list(journal->dirfd, &list);

	if (r < 0)
		return r;
	if (list.count > 0 && list.items[list.count - 1].first >= first)
		first = list.items[list.count - 1].first + 1;
	for (uint64_t i = 0; i < 16; i++) {
		char name[HF_SEGMENT_NAME_MAX];

		hf_segment_name(first + i, name);
		r = hf_rename_new(journal->dirfd, HF_SEGMENT_ACTIVE, journal->dirfd, name);
		if (r == 0) {
			memcpy(journal->rotated_name, name, sizeof(name));
			journal->rotated_last = last;
			return 0;
		}
		if (r != -EEXIST)
			break;
	}
	return r;
}

int hf_journal_rotate(struct hf_journal *journal)
{
	struct hf_tail tail;
	struct stat st;
	uint64_t first;
	int r;

	if (hf_sys.fstat(journal->fd, &st) < 0)
		return -errno;
	if (!hf_is_named(journal->dirfd, HF_SEGMENT_ACTIVE, &st)) {
		/* Renamed or replaced already; only our descriptor was old. */
		hf_journal_close_active(journal);
		return 0;
	}
	if (!hf_segment_sealed(&st) && hf_sys.fchmod(journal->fd, 0400) < 0)
		return -errno;
	r = hf_segment_tail(journal->fd, (uint64_t)st.st_size, &tail);
	if (r == 0)
		r = hf_segment_first(journal->fd, (uint64_t)st.st_size, &first);
	if (r < 0)
		return r;
	/* Without one valid line it still needs a place in the order. */
	if (tail.seq == 0) {
		r = hf_journal_seq_before(journal, &tail.seq);
		if (r < 0)
			return r;
		first = tail.seq + 1;
	}
	r = rename_sealed(journal, first, tail.seq);
	if (r < 0)
		return r;
	hf_journal_close_active(journal);
	return 0;
}

int hf_journal_seq_before(struct hf_journal *journal, uint64_t *ret_seq)
{
	AUTO(hf_segment_list_done) struct hf_segment_list list = { 0 };
	uint64_t seq = 0;
	int r;

	r = hf_segment_list(journal->dirfd, &list);
	if (r < 0)
		return r;
	for (size_t i = list.count; i > 0 && seq == 0; i--) {
		char name[HF_SEGMENT_NAME_MAX];
		struct hf_tail tail = { 0 };
		AUTO_FD fd = -1;

		hf_segment_name(list.items[i - 1].first, name);
		/* One that is damaged or not ours tells nothing; the one before may. */
		if (hf_open_private(journal->dirfd, name, O_RDONLY, name, &fd, NULL, NULL) == 0 &&
		    hf_segment_tail(fd, list.items[i - 1].bytes, &tail) == 0)
			seq = tail.seq;
	}
	*ret_seq = seq;
	return 0;
}

void hf_prune_done(struct hf_prune *prune)
{
	hf_segment_list_done(&prune->list);
}

/*
 * What removing it would give back. One larger than we make them was put there: its holes must not
 * cost the others their place. Of ours, the size; there are file systems that count no blocks.
 */
static uint64_t counted_bytes(const struct hf_journal *journal, const struct hf_segment *segment)
{
	return segment->bytes > journal->segment_bytes + HF_JOURNAL_LINE_MAX ? segment->allocated
									      : segment->bytes;
}

int hf_prune_plan(struct hf_journal *journal, struct hf_prune *ret)
{
	AUTO(hf_prune_done) struct hf_prune prune = { 0 };
	uint64_t total = journal->segment_bytes; /* what the active one may grow to */
	int r;

	r = hf_segment_list(journal->dirfd, &prune.list);
	if (r < 0)
		return r;
	for (size_t i = 0; i < prune.list.count; i++)
		total += counted_bytes(journal, &prune.list.items[i]);
	while (prune.count < prune.list.count && total > journal->retain_bytes)
		total -= counted_bytes(journal, &prune.list.items[prune.count++]);
	if (prune.count > 0 && prune.count < prune.list.count) {
		prune.through = prune.list.items[prune.count].first - 1;
	} else if (prune.count > 0) {
		/* Not rotated_last: others may have rotated since. */
		r = hf_journal_seq_before(journal, &prune.through);
		if (r < 0)
			return r;
	}
	*ret = prune;
	prune = (struct hf_prune){ 0 };
	return 0;
}

void hf_prune_apply(struct hf_journal *journal, const struct hf_prune *prune)
{
	for (size_t i = 0; i < prune->count; i++) {
		char name[HF_SEGMENT_NAME_MAX];

		hf_segment_name(prune->list.items[i].first, name);
		(void)hf_sys.unlinkat(journal->dirfd, name, 0);
	}
}
