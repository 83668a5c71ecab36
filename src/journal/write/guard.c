/*
 * journal/write/guard.c - the active segment under our guard: opened, locked, known, and with room.
 *
 * Nothing here may hold up the caller (see journal.h): every wait is bounded by one deadline, and
 * no state on disk is left that the next writer does not put right.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/write/counters.h"
#include "hf/journal/write/journal.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

/* Rotations by others that one opening follows before it gives up. */
#define MAX_REOPENS 16

void hf_journal_close_active(struct hf_journal *journal)
{
	hf_noinherit_unlock_close(&journal->fd); /* and with it the guard, if we hold it */
	journal->known = 0;
}

/*
 * As hf_open_as_it_is, of the active segment. The guard is a flock on it, so no forked child
 * may share it.
 */
static int open_active(struct hf_journal *journal, int flags, struct stat *ret_st,
		       struct hf_err *err)
{
	struct hf_opening opening;
	int r, fd, noted;

	do {
		r = hf_noinherit_begin(&opening);
		if (r < 0)
			return hf_fail_sys(err, -r, "atfork", "journal");
		fd = -EBADF;
		r = hf_open_as_it_is(journal->dirfd, HF_SEGMENT_ACTIVE, flags,
				     "journal/" HF_SEGMENT_ACTIVE, &fd, ret_st, err);
		noted = hf_noinherit_note(&fd, &opening);
	} while (r == 0 && noted == 0);
	if (r < 0)
		return r;
	if (noted < 0)
		return hf_fail_sys(err, -noted, "openat", "journal");
	journal->fd = fd;
	return 0;
}

int hf_journal_open_active(struct hf_journal *journal, struct hf_err *err)
{
	int r = -EACCES;

	for (int i = 0; i < MAX_REOPENS && r == -EACCES; i++) {
		struct stat st;

		journal->read_only = 0;
		r = open_active(journal, O_RDWR | O_CREAT, NULL, err);
		if (r != -EACCES)
			break;
		/*
		 * Not writable: sealed by a rotation that was cut short, or made under a umask
		 * that took the right to write. Readable is enough for both: under the guard
		 * the one is finished and the other mended. One that cannot even be read was
		 * never sealed: it gets both rights here. With the right to read alone it would
		 * look sealed, if its maker has set the mode and written to it meanwhile.
		 */
		r = open_active(journal, O_RDONLY, &st, NULL);
		journal->read_only = 1;
		if (r == 0 && !(st.st_mode & S_IWUSR))
			break;
		if (r == -EACCES)
			(void)hf_mend_mode(journal->dirfd, HF_SEGMENT_ACTIVE, S_IFREG, 0600);
		/* The rotation went on meanwhile: this is the next segment, to be written. */
		if (r == 0)
			hf_noinherit_close(&journal->fd);
		r = -EACCES;
	}
	journal->known = 0;
	journal->generation++;
	return r;
}

/* A writer holds the guard for microseconds, so it is looked for often. */
static const struct hf_backoff backoff = { .yields = 8,
					   .min_ns = 20 * HF_USEC,
					   .max_ns = 200 * HF_USEC };

/* Takes the guard before `deadline`. Returns 0 or -errno (-ETIMEDOUT: a stuck writer). */
static int take_guard(struct hf_journal *journal, struct hf_mono deadline)
{
	const struct hf_mono at_once = { 0 };
	struct stat before = { 0 }, now = { 0 };
	int r = hf_flock_until(journal->fd, LOCK_EX, at_once, &backoff);

	if (r != -ETIMEDOUT)
		return r;
	(void)hf_sys.fstat(journal->fd, &before);
	/* It has moved since we gave up on it. */
	if (before.st_size != journal->stuck_size)
		journal->impatient = 0;
	/* Impatient, it does not even yield: beside busy processes that costs milliseconds. */
	if (!journal->impatient)
		r = hf_flock_until(journal->fd, LOCK_EX, deadline, &backoff);
	if (r != -ETIMEDOUT)
		return r < 0 ? r : 0;
	(void)hf_sys.fstat(journal->fd, &now);
	/* Stuck, or only busy? A busy writer makes the file grow. */
	journal->impatient = now.st_size == before.st_size;
	journal->stuck_size = now.st_size;
	return -ETIMEDOUT;
}

/* Brings `end`, `seq` and `torn` up to date. Caller holds the guard. */
static int learn_tail(struct hf_journal *journal, uint64_t size)
{
	struct hf_counters counters = { 0 };
	struct hf_tail tail;
	int r;

	r = hf_segment_tail(journal->fd, size, &tail);
	if (r == 0 && tail.seq == 0)
		r = hf_journal_seq_before(journal, &tail.seq);
	if (r < 0)
		return r;
	/*
	 * A number that was acknowledged is not given again, even if its record is
	 * gone (deleted by hand, or lost with the power): the gap stays visible.
	 */
	if (journal->counters_fd >= 0 && hf_counters_read(journal->counters_fd, &counters) == 0 &&
	    counters.seq > tail.seq)
		tail.seq = counters.seq;
	/* A writer died between its record and this number: only the newest record is ever uncounted. */
	else if (journal->counters_fd >= 0 && counters.seq < tail.seq)
		(void)hf_counters_set_seq(journal->counters_fd, tail.seq);
	journal->end = size;
	journal->seq = tail.seq;
	journal->torn = tail.torn;
	journal->known = 1;
	return 0;
}

/* Is the segment full for a record of `len` bytes? One record always fits. */
static int is_full(const struct hf_journal *journal, size_t len)
{
	return journal->end > 0 && journal->end + len > journal->segment_bytes;
}

/*
 * A segment without a byte that cannot be written was never sealed, which only a full one is: a
 * umask took the right. Under the guard, as sealing is. The descriptor may be for reading only.
 */
static int mend_active(struct hf_journal *journal)
{
	int r = hf_sys.fchmod(journal->fd, 0600) < 0 ? -errno : 0;

	hf_journal_close_active(journal);
	return r;
}

int hf_journal_guard(struct hf_journal *journal, size_t len, struct hf_mono deadline)
{
	/* Others may rotate as often as they like meanwhile: the deadline is the limit. */
	for (;;) {
		struct stat st = { 0 };
		int r;

		if (journal->fd < 0) {
			r = hf_journal_open_active(journal, NULL);
			if (r < 0)
				return r == HF_E_UNTRUSTED ? -EACCES : r;
		}
		r = take_guard(journal, deadline);
		if (r < 0)
			return r;
		r = hf_stat_at(journal->fd, "", &st);
		if (r < 0) {
			hf_journal_close_active(journal);
			return r;
		}
		if (st.st_nlink == 0) { /* deleted by hand */
			hf_journal_close_active(journal);
			continue;
		}
		if (st.st_size == 0 && !(st.st_mode & S_IWUSR)) {
			r = mend_active(journal);
			if (r == 0 && hf_mono_left(deadline) == 0)
				r = -ETIMEDOUT;
			if (r < 0)
				return r;
			continue;
		}
		if (journal->read_only && st.st_mode & S_IWUSR) { /* mended meanwhile */
			hf_journal_close_active(journal);
			continue;
		}
		if (!hf_segment_sealed(&st)) {
			if (!journal->known || (uint64_t)st.st_size != journal->end) {
				r = learn_tail(journal, (uint64_t)st.st_size);
				if (r < 0) {
					hf_journal_close_active(journal);
					return r;
				}
			}
			if (!is_full(journal, len))
				return 0;
		}
		r = hf_journal_rotate(journal);
		if (r < 0) {
			hf_journal_close_active(journal);
			return r;
		}
		if (hf_mono_left(deadline) == 0)
			return -ETIMEDOUT;
	}
}
