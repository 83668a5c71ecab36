/*
 * journal/append.c - the writing side: handle, guard, append, and counted loss.
 *
 * Nothing here may hold up the caller (see journal.h): every wait is bounded by
 * one deadline, every failure ends in lose(), and no state on disk is left that
 * the next writer does not put right.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/counters.h"
#include "hf/journal/journal.h"
#include "hf/journal/line.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/state.h"

#define DEFAULT_SEGMENT (UINT64_C(8) << 20)
#define DEFAULT_RETAIN  (UINT64_C(64) << 20)

/* Waiting for the guard: give way a few times, then sleep in growing steps. */
#define YIELDS       8
#define PAUSE_MIN_NS (20 * HF_USEC)
#define PAUSE_MAX_NS (200 * HF_USEC)

/* Rotations by others that one append follows before it gives up. */
#define MAX_REOPENS 16

static uint64_t limit_from(uint64_t given, const char *variable, uint64_t otherwise)
{
	const char *text = secure_getenv(variable);
	uint64_t value;

	if (given == 0 && text && hf_parse_size(text, strlen(text), &value) == 0)
		given = value;
	return given ? given : otherwise;
}

static void auto_journal_free(struct hf_journal **journal)
{
	hf_journal_free(*journal);
}

void hf_journal_close_active(struct hf_journal *journal)
{
	hf_auto_close(&journal->fd); /* and with it the guard, if we hold it */
	journal->known = 0;
}

int hf_journal_open_active(struct hf_journal *journal, struct hf_err *err)
{
	const char *shown = "journal/" HF_SEGMENT_ACTIVE;
	int r = -EACCES;

	for (int i = 0; i < MAX_REOPENS && r == -EACCES; i++) {
		struct stat st;

		r = hf_open_private(journal->dirfd, HF_SEGMENT_ACTIVE, O_RDWR | O_CREAT, shown,
				    &journal->fd, NULL, err);
		if (r != -EACCES)
			break;
		/* Sealed by a rotation that was cut short: readable is enough to finish it. */
		r = hf_open_private(journal->dirfd, HF_SEGMENT_ACTIVE, O_RDONLY, shown,
				    &journal->fd, &st, NULL);
		if (r == 0 && hf_segment_sealed(&st))
			break;
		/* The rotation went on meanwhile: this is the next segment, to be written. */
		if (r == 0)
			hf_auto_close(&journal->fd);
		r = -EACCES;
	}
	journal->known = 0;
	journal->generation++;
	return r;
}

int hf_journal_open(struct hf_state *state, const struct hf_journal_opts *opts,
		    struct hf_journal **ret_journal, struct hf_err *err)
{
	AUTO(auto_journal_free) struct hf_journal *journal = NULL;
	struct hf_journal_opts use = { .size = sizeof(use) };
	struct rlimit limit;
	int r;

	if (!state || !ret_journal || (opts && opts->size < sizeof(use)))
		return FAIL(err, -EINVAL, "arguments", "hf_journal_open", "NULL or wrong size");
	if (opts)
		use = *opts;
	journal = calloc(1, sizeof(*journal));
	if (!journal)
		return hf_fail_sys(err, ENOMEM, "memory", "journal");
	(void)pthread_mutex_init(&journal->mutex, NULL);
	journal->owner = getpid();
	journal->dirfd = journal->fd = journal->counters_fd = -1;
	journal->body = journal->out = (struct hf_buf)HF_BUF_INIT;
	journal->segment_bytes =
		limit_from(use.segment_bytes, "HOLDFAST_JOURNAL_SEGMENT", DEFAULT_SEGMENT);
	journal->retain_bytes =
		limit_from(use.retain_bytes, "HOLDFAST_JOURNAL_RETAIN", DEFAULT_RETAIN);
	if (journal->segment_bytes < HF_JOURNAL_SEGMENT_MIN)
		journal->segment_bytes = HF_JOURNAL_SEGMENT_MIN;
	journal->fsize_limit = UINT64_MAX;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		journal->fsize_limit = limit.rlim_cur;

	r = hf_state_subdir(state, "journal", 1, &journal->dirfd, err);
	if (r < 0)
		return r;
	r = hf_journal_open_active(journal, err);
	if (r < 0)
		return r;
	/* A journal without counters is worth more than none; but never trust a trap. */
	if (journal->fsize_limit >= HF_COUNTERS_LEN) {
		r = hf_counters_open(journal->dirfd, 1, &journal->counters_fd, err);
		if (r == HF_E_UNTRUSTED)
			return r;
	}
	*ret_journal = ptr_take(&journal);
	return 0;
}

void hf_journal_free(struct hf_journal *journal)
{
	if (!journal)
		return;
	hf_auto_close(&journal->fd);
	hf_auto_close(&journal->counters_fd);
	hf_auto_close(&journal->dirfd);
	hf_buf_done(&journal->body);
	hf_buf_done(&journal->out);
	/* Not in a child: there the mutex may be held by a thread that does not exist. */
	if (journal->owner == getpid())
		(void)pthread_mutex_destroy(&journal->mutex);
	free(journal);
}

uint64_t hf_journal_last_seq(const struct hf_journal *journal)
{
	return __atomic_load_n(&journal->own_seq, __ATOMIC_RELAXED);
}

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

/* Takes the guard before `deadline`. Returns 0 or -errno (-ETIMEDOUT: a stuck writer). */
static int take_guard(struct hf_journal *journal, struct hf_mono deadline)
{
	long pause = PAUSE_MIN_NS;
	struct stat before = { 0 }, now = { 0 };

	for (int try = 0;; try++) {
		if (hf_sys.flock(journal->fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (try == 0) {
			(void)hf_sys.fstat(journal->fd, &before);
			/* It has moved since we gave up on it. */
			if (before.st_size != journal->stuck_size)
				journal->impatient = 0;
		}
		/* Not even yielding: beside busy processes that costs milliseconds each time. */
		if (journal->impatient || hf_mono_left(deadline) == 0) {
			(void)hf_sys.fstat(journal->fd, &now);
			/* Stuck, or only busy? Who is busy writes. */
			journal->impatient = now.st_size == before.st_size;
			journal->stuck_size = now.st_size;
			return -ETIMEDOUT;
		}
		if (try < YIELDS) {
			(void)sched_yield();
			continue;
		}
		hf_pause(pause);
		pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS;
	}
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
 * Opens, guards and examines until there is an active segment with room for
 * `len` bytes under our guard. Returns 0, or -errno without the guard.
 */
static int ready_segment(struct hf_journal *journal, size_t len, struct hf_mono deadline)
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
	ret->fd = fcntl(journal->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
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
	struct hf_mono deadline = hf_mono_in(HF_JOURNAL_WAIT_NS);
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
	r = ready_segment(journal, journal->body.len + 128, deadline);
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
		return FAIL(err, HF_E_FORKED, "append", "journal", "open it anew in this process");
	r = append_locked(journal, event, name, fields, n_fields,
			  flags & HF_JOURNAL_DURABLE ? &unsynced : NULL, err);
	if (r < 0 || !(flags & HF_JOURNAL_DURABLE))
		return r;
	r = make_durable(journal, &unsynced);
	hf_auto_close(&unsynced.fd);
	/* Written, but its durability was the point: say so, count nothing. */
	return r < 0 ? hf_fail_sys(err, -r, "fdatasync", "journal") : 0;
}
