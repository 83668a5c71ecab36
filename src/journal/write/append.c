/*
 * journal/write/append.c - one record appended, or its loss counted.
 *
 * Nothing here may hold up the caller (see journal.h): every wait is bounded by
 * one deadline, every failure ends in lose(), and no state on disk is left that
 * the next writer does not put right.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/write/counters.h"
#include "hf/journal/write/journal.h"
#include "hf/journal/line.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

/* Counts the loss, remembers its cause, and tells the caller. */
static int lose(struct hf_journal *journal, int sys, const char *op, struct hf_err *err)
{
	journal->lost_untold++;
	journal->lost_uncounted++;
	hf_copy_text(journal->lost_cause, sizeof(journal->lost_cause),
		     sys == ETIMEDOUT ? "another writer is stuck" : strerrordesc_np(sys));
	if (journal->counters_fd >= 0 &&
	    hf_counters_add_lost(journal->counters_fd, journal->lost_uncounted) == 0)
		journal->lost_uncounted = 0;
	if (err) {
		(void)FAIL(err, HF_E_LOST, op, "journal", "%s", journal->lost_cause);
		err->sys = sys;
	}
	return HF_E_LOST;
}

/* Adds one line to the batch, with the next number. */
static void put_line(struct hf_journal *journal, struct hf_wall now, const struct hf_buf *body)
{
	hf_line_finish(&journal->out, ++journal->seq, now, journal->owner, body);
}

static void put_own(struct hf_journal *journal, struct hf_wall now, enum hf_event event,
		    const struct hf_field *fields, size_t n)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;

	if (hf_line_body(&body, event, NULL, fields, n, NULL) == 0)
		put_line(journal, now, &body);
}

/* What this handle owes the journal before the caller's record. */
static void put_debts(struct hf_journal *journal, struct hf_wall now)
{
	if (journal->rotated_name[0]) {
		struct hf_field fields[] = { HF_FIELD_TEXT("segment", journal->rotated_name),
					     HF_FIELD_INT("last", (int64_t)journal->rotated_last) };

		put_own(journal, now, HF_EV_JOURNAL_ROTATED, fields, 2);
	}
	if (journal->pruned_count > 0) {
		struct hf_field fields[] = {
			HF_FIELD_INT("through", (int64_t)journal->pruned_through),
			HF_FIELD_INT("segments", (int64_t)journal->pruned_count)
		};

		put_own(journal, now, HF_EV_JOURNAL_PRUNED, fields, 2);
	}
	if (journal->lost_untold > 0) {
		struct hf_field fields[] = { HF_FIELD_INT("count", (int64_t)journal->lost_untold),
					     HF_FIELD_TEXT("cause", journal->lost_cause) };

		put_own(journal, now, HF_EV_JOURNAL_LOST, fields, 2);
	}
}

/*
 * Writes the batch at the end. On failure takes back what was written, so that
 * the file is as before; where even that fails the torn tail rule covers it.
 */
static int write_batch(struct hf_journal *journal)
{
	size_t done;
	int r;

	if (journal->end + journal->out.len > journal->fsize_limit)
		return -EFBIG;
	r = hf_pwrite_all(journal->fd, journal->out.s, journal->out.len, (off_t)journal->end,
			  &done);
	if (r < 0 && done > 0)
		(void)hf_sys.ftruncate(journal->fd, (off_t)journal->end);
	return r;
}

static int append_guarded(struct hf_journal *journal)
{
	AUTO(hf_prune_done) struct hf_prune prune = { 0 };
	uint64_t seq_before = journal->seq;
	struct hf_wall now;
	int r;

	hf_buf_reset(&journal->out);
	/* The torn tail becomes a damaged line of its own; ours starts on a new one. */
	if (journal->torn)
		hf_buf_add(&journal->out, HF_TORN_END "\n", sizeof(HF_TORN_END));
	if (journal->rotated_name[0] && hf_prune_plan(journal, &prune) == 0 && prune.count > 0) {
		journal->pruned_through = prune.through;
		journal->pruned_count += prune.count;
	}
	if (journal->seq > HF_SEQ_MAX - 4) /* only damage gets it there; see the four below */
		return -EOVERFLOW;
	now = hf_wall_now();
	put_debts(journal, now);
	put_line(journal, now, &journal->body);
	r = journal->out.err ? journal->out.err : write_batch(journal);
	/* On a full disk the segments that have to go anyway make the room. */
	if ((r == -ENOSPC || r == -EDQUOT) && prune.count > 0) {
		hf_prune_apply(journal, &prune);
		r = write_batch(journal);
	} else if (r < 0) {
		journal->pruned_count -= prune.count; /* not done: planned anew next time */
	}
	if (r < 0) {
		journal->seq = seq_before;
		journal->known = 0;
		return r;
	}
	journal->end += journal->out.len;
	journal->torn = 0;
	__atomic_store_n(&journal->own_seq, journal->seq, __ATOMIC_RELAXED);
	journal->lost_untold = 0;
	journal->pruned_count = 0;
	journal->rotated_name[0] = '\0';
	if (journal->counters_fd >= 0)
		(void)hf_counters_set_seq(journal->counters_fd, journal->seq);
	hf_prune_apply(journal, &prune);
	return 0;
}

/* What a durable append still has to bring to disk. */
struct unsynced {
	int fd;              /* the segment: a descriptor of our own, or -1 */
	uint64_t generation; /* of the active segment */
	int dir;             /* 1: its directory entry too */
};

static void note_unsynced(struct hf_journal *journal, struct unsynced *ret)
{
	ret->fd = hf_noinherit_dup(journal->fd);
	ret->generation = journal->generation;
	ret->dir = journal->synced_generation != journal->generation;
}

/* Without the mutex: other threads do not wait for the disk. */
static int make_durable(struct hf_journal *journal, const struct unsynced *unsynced)
{
	int r;

	if (unsynced->fd < 0)
		return -EMFILE;
	if (hf_sys.fdatasync(unsynced->fd) < 0)
		return -errno;
	if (!unsynced->dir)
		return 0;
	r = hf_sync_dir(journal->dirfd);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&journal->mutex);
	if (journal->generation == unsynced->generation)
		journal->synced_generation = unsynced->generation;
	(void)pthread_mutex_unlock(&journal->mutex);
	return 0;
}

static void unlock_mutex(pthread_mutex_t **mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

static int append_locked(struct hf_journal *journal, enum hf_event event, const char *name,
			 const struct hf_field *fields, size_t n_fields,
			 struct unsynced *ret_unsynced, struct hf_err *err)
{
	struct hf_mono deadline = hf_mono_in(journal->wait_ns);
	int r;

	(void)pthread_mutex_lock(&journal->mutex);
	AUTO(unlock_mutex) pthread_mutex_t *held = &journal->mutex;

	hf_buf_reset(&journal->body);
	r = hf_line_body(&journal->body, event, name, fields, n_fields, err);
	if (r == HF_E_EVENT)
		return r;
	if (r < 0)
		return lose(journal, -r, "memory", err);
	/* 128 bytes: more than seq, time, pid and checksum take. */
	r = hf_journal_guard(journal, journal->body.len + 128, deadline);
	if (r < 0)
		return lose(journal, -r, "guard", err);
	journal->impatient = 0;
	r = append_guarded(journal);
	(void)hf_sys.flock(journal->fd, LOCK_UN);
	if (r < 0)
		return lose(journal, -r, "write", err);
	if (journal->lost_uncounted > 0 && journal->counters_fd >= 0 &&
	    hf_counters_add_lost(journal->counters_fd, journal->lost_uncounted) == 0)
		journal->lost_uncounted = 0;
	if (ret_unsynced)
		note_unsynced(journal, ret_unsynced);
	return 0;
}

int hf_journal_append(struct hf_journal *journal, enum hf_event event, const char *name,
		      const struct hf_field *fields, size_t n_fields, unsigned flags,
		      struct hf_err *err)
{
	struct unsynced unsynced = { .fd = -1 };
	int r;

	if (!journal || (n_fields > 0 && !fields) || flags & ~(unsigned)HF_JOURNAL_DURABLE)
		return FAIL(err, -EINVAL, "arguments", "hf_journal_append", "NULL or unknown flag");
	if (journal->owner != getpid())
		return FAIL(err, HF_E_FORKED, "append", "journal", "open it again in this process");
	r = append_locked(journal, event, name, fields, n_fields,
			  flags & HF_JOURNAL_DURABLE ? &unsynced : NULL, err);
	if (r < 0 || !(flags & HF_JOURNAL_DURABLE))
		return r;
	r = make_durable(journal, &unsynced);
	/* The next append may have its guard through the same description already. */
	hf_noinherit_close_shared(&unsynced.fd, journal->dirfd);
	/* Written, but its durability was the point: say so, count nothing. */
	return r < 0 ? hf_fail_sys(err, -r, "fdatasync", "journal") : 0;
}
