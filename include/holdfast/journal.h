/*
 * holdfast/journal.h - the record of every decision: append, read, follow, verify.
 *
 * Calling sequence, writing:
 *
 *     struct hf_journal *journal;
 *     hf_journal_open(state, NULL, &journal, &err);
 *     struct hf_field fields[] = { HF_FIELD_TEXT("text", "hello") };
 *     (void)hf_journal_append(journal, HF_EV_NOTE, "fix-160", fields, 1, 0, &err);
 *     hf_journal_free(journal);
 *
 * and reading:
 *
 *     struct hf_journal_reader *reader;
 *     struct hf_record record;
 *     hf_journal_read(state, &reader, &err);
 *     while ((r = hf_journal_next(reader, &record, &err)) > 0)
 *             puts(record.line);
 *     hf_journal_wait(reader, 10 * HF_SEC, &err);     // to follow: then _next again
 *
 * What it is. JSON lines in journal/events.jsonl of the state directory, many
 * processes writing. Each line has a sequence number (rising by one over all
 * writers) and an XXH3-64 checksum. A full segment is sealed (mode 0400) and
 * renamed to events.FIRSTSEQ.jsonl; the oldest are removed beyond a limit.
 * docs/FORMATS.md has every byte.
 *
 * It never holds up the work. An append waits at most 100 ms (`wait_ns`) for its turn, and
 * after one such time-out does not wait again until it got through once or the
 * journal is seen to have grown (then it was only busy). A record that cannot be
 * written (full disk, stuck writer) is dropped, the caller told with HF_E_LOST,
 * and the loss counted: in the counters file at once where that is possible, and
 * by a journal_lost record as soon as this handle can write again. Callers whose
 * work matters more than its record, and that is nearly all, drop the return value.
 *
 * Crash. A record is there when hf_journal_append has returned 0, whatever
 * happens to the process; with HF_JOURNAL_DURABLE also after a power cut. A torn
 * tail (a crash in mid-write) stays behind as one damaged line and never harms
 * the next record.
 *
 * Trust (L12). Anything but a regular file with one name, of our own, closed to others,
 * is refused in place of the journal's files: HF_E_UNTRUSTED.
 *
 * Ownership: the state handle must outlive journals and readers opened from it.
 * Threads: a journal may be shared by threads; a reader may not.
 * Fork: a child may only free what it inherited; append gives HF_E_FORKED. It has no share in
 * the guard (lock.h).
 * Signals: none are used; a limit on file size (RLIMIT_FSIZE) found at opening
 * is kept, so SIGXFSZ is not provoked.
 * Limits: one machine. flock(2) must work on the file system.
 */
#ifndef HOLDFAST_JOURNAL_H
#define HOLDFAST_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/event.h"
#include "holdfast/state.h"

HF_C_BEGIN

#define HF_JOURNAL_WAIT_NS     (100 * HF_MSEC) /* the longest an append waits by default */
#define HF_JOURNAL_TEXT_MAX    1024            /* bytes of one text value; more is cut */
#define HF_JOURNAL_LINE_MAX    65536           /* no line is longer, newline included */
#define HF_JOURNAL_SEGMENT_MIN 4096            /* smaller limits are raised to this */

struct hf_journal;

struct hf_journal_opts {
	size_t size;            /* sizeof(struct hf_journal_opts) */
	uint64_t segment_bytes; /* seal a segment at this size; 0: 8 MiB */
	uint64_t retain_bytes;  /* remove the oldest segments beyond this; 0: 64 MiB */
	int64_t wait_ns;        /* the longest an append waits; 0: HF_JOURNAL_WAIT_NS */
};

enum hf_journal_flags {
	HF_JOURNAL_DURABLE = 1 << 0, /* on disk before it returns; waits for the disk */
};

/*
 * Opens the journal for appending; makes its files as needed. `opts` may be
 * NULL. Where a limit in `opts` is 0, $HOLDFAST_JOURNAL_SEGMENT,
 * $HOLDFAST_JOURNAL_RETAIN ("512K", "8M", "1G") and $HOLDFAST_JOURNAL_WAIT ("5s")
 * are used if they are valid.
 * Returns 0, HF_E_UNTRUSTED, -errno. Blocks: as the file system does.
 */
HF_API int hf_journal_open(struct hf_state *state, const struct hf_journal_opts *opts,
			   struct hf_journal **ret_journal, struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_journal_free(struct hf_journal *journal);

/*
 * Appends one record. `name` is what it is about (a lock, a session), or NULL.
 * Returns 0 when it is written; HF_E_EVENT when it is not one of the table
 * (nothing written, nothing counted); HF_E_LOST when it could not be written in
 * time (counted); HF_E_FORKED.
 * Blocks: at most wait_ns of the options, and the disk with HF_JOURNAL_DURABLE.
 */
HF_API int hf_journal_append(struct hf_journal *journal, enum hf_event event, const char *name,
			     const struct hf_field *fields, size_t n_fields, unsigned flags,
			     struct hf_err *err);

/* Sequence number of the last record that this handle wrote; 0 before the first. */
HF_API uint64_t hf_journal_last_seq(const struct hf_journal *journal);

struct hf_journal_totals {
	uint64_t seq;      /* highest sequence number ever acknowledged */
	uint64_t lost;     /* records that could not be written, ever */
	uint64_t bytes;    /* on disk now */
	uint64_t segments; /* files now, the one being written included */
};

/* The counters of the journal. An unwritten journal is all 0. Returns 0 or an error. */
HF_API int hf_journal_totals(const struct hf_state *state, struct hf_journal_totals *ret_totals,
			     struct hf_err *err) HF_MUST_CHECK;

/* -- reading ---------------------------------------------------------------- */

struct hf_journal_reader;

struct hf_record {
	uint64_t seq;
	struct hf_wall time;
	int32_t pid;                      /* of the writer */
	const char *event;                /* its name in the journal */
	const struct hf_event_info *info; /* NULL: an event of a newer version */
	const char *name;                 /* what it is about, or NULL */
	const char *line;                 /* the whole JSON line, without newline */
	size_t line_len;
	const void *fields;               /* for the three functions below */
};

/* Opens for reading, at the oldest record. A journal that does not exist yet is empty. */
HF_API int hf_journal_read(const struct hf_state *state, struct hf_journal_reader **ret_reader,
			   struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_journal_reader_free(struct hf_journal_reader *reader);

/*
 * The next whole and valid record: 1; 0 when there is none for now; -errno. What
 * it points to lives until the next call. Damaged lines are passed over and
 * counted. Rotation and removal of segments meanwhile are followed.
 */
HF_API int hf_journal_next(struct hf_journal_reader *reader, struct hf_record *ret_record,
			   struct hf_err *err) HF_MUST_CHECK;

/* Damaged or torn lines passed over so far. */
HF_API uint64_t hf_journal_reader_damaged(const struct hf_journal_reader *reader);

/*
 * How often hf_journal_wait found that the journal had been cut short, or put away and made anew.
 * Reading begins again with what stands there then, at its oldest record.
 */
HF_API uint64_t hf_journal_reader_restarts(const struct hf_journal_reader *reader);

/*
 * Sleeps until the journal may have grown (1) or `timeout_ns` has passed (0);
 * negative waits for ever. Returns -EINTR when a signal came: unlike a wait for a lock it has no
 * place to lose, so a caller that wants to go on just calls it again. No polling.
 */
HF_API int hf_journal_wait(struct hf_journal_reader *reader, int64_t timeout_ns,
			   struct hf_err *err) HF_MUST_CHECK;

/*
 * Field values of a record; `key` is one of the event's fields. The text, or
 * NULL when there is none of that key and type.
 */
HF_API const char *hf_record_text(const struct hf_record *record, const char *key);

/* 1 and the number (a truth value is 0 or 1), or 0. */
HF_API int hf_record_int(const struct hf_record *record, const char *key, int64_t *ret_value);

/* Calls `fn` for each field of the event, in the order of the line; `text` is shown form. */
HF_API void hf_record_each(const struct hf_record *record,
			   void (*fn)(void *arg, const char *key, const char *text), void *arg);

/* -- verifying -------------------------------------------------------------- */

enum hf_problem {
	HF_PROBLEM_DAMAGED = 1, /* the line's checksum or form is wrong */
	HF_PROBLEM_TORN = 2,    /* an unfinished line (a crash in mid-write); harmless */
	HF_PROBLEM_GAP = 3,     /* records are missing before this one */
	HF_PROBLEM_REPEAT = 4,  /* a sequence number for the second time, or out of order */
	HF_PROBLEM_EVENT = 5,   /* valid, but not an event of the table */
	HF_PROBLEM_TAIL = 6,    /* records that were acknowledged are missing at the end */
	HF_PROBLEM_FILE = 7,    /* a segment that cannot be read or trusted */
	HF_PROBLEM_COUNTERS = 8, /* the counters are missing, or say less than the records */
};

struct hf_problem_info {
	enum hf_problem problem;
	const char *file; /* in journal/ */
	uint64_t line;    /* from 1; 0: the file as a whole */
	uint64_t offset;  /* of the line in the file */
	uint64_t seq;     /* of the record, where known */
	const char *text; /* in words */
};

struct hf_verify_result {
	uint64_t records;  /* valid ones */
	uint64_t first;    /* sequence numbers */
	uint64_t last;
	uint64_t problems; /* of every kind but HF_PROBLEM_TORN */
	uint64_t torn;     /* unfinished records: harmless, none was acknowledged */
	uint64_t lost;     /* as in struct hf_journal_totals: counted, not a problem */
};

/*
 * Reads everything there is and calls `report` (may be NULL) for each problem.
 * Writers may go on meanwhile. Returns 0 when the whole was read, with or without
 * problems; -errno.
 */
HF_API int hf_journal_verify(const struct hf_state *state,
			     void (*report)(void *arg, const struct hf_problem_info *problem),
			     void *arg, struct hf_verify_result *ret_result,
			     struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
