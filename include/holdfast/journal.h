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
 * The journal is JSON lines in journal/events.jsonl of the state directory, with many writers.
 * Each line has a sequence number (rising by one over all writers) and an XXH3-64 checksum. A
 * full segment is sealed (mode 0400) and renamed to events.FIRSTSEQ.jsonl; the oldest segments
 * are removed beyond a limit. docs/FORMATS.md describes every byte.
 *
 * The journal never blocks the caller's work for long. An append waits at most 100 ms
 * (`wait_ns`) for its turn. After a timeout, later appends do not wait until one succeeds, or
 * the journal has grown (it was only busy). A record that cannot be written (full disk, stuck
 * writer) is dropped: the caller gets HF_E_LOST, and the loss is counted, immediately in the
 * counters file if possible, and by a journal_lost record when this handle can write again.
 * Most callers ignore the return value, because their work matters more than its record.
 *
 * Crash. After hf_journal_append has returned 0, the record survives the end of the process;
 * with HF_JOURNAL_DURABLE it also survives a power failure. A torn tail (a crash during a
 * write) stays as one damaged line and never harms the next record.
 *
 * Trust (L12). HF_E_UNTRUSTED: a file of the journal is not a regular file with one name,
 * owned by this user and closed to others.
 *
 * Ownership: the state handle must outlive journals and readers opened from it.
 * Threads: several threads may share a journal, but not a reader.
 * Fork: a child may only free what it inherited; append returns HF_E_FORKED. The child has no
 * share in the guard (lock.h).
 * Signals: none are used. A file size limit (RLIMIT_FSIZE) found at opening is respected, so
 * SIGXFSZ is not raised.
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

#define HF_JOURNAL_WAIT_NS     (100 * HF_MSEC) /* default limit of an append's wait */
#define HF_JOURNAL_TEXT_MAX    1024            /* bytes of a text value; longer ones are cut */
#define HF_JOURNAL_LINE_MAX    65536           /* maximum length of a line with its newline */
#define HF_JOURNAL_SEGMENT_MIN 4096            /* smaller limits are raised to this value */

struct hf_journal;

struct hf_journal_opts {
	size_t size;            /* sizeof(struct hf_journal_opts) */
	uint64_t segment_bytes; /* seal a segment at this size; 0: 8 MiB */
	uint64_t retain_bytes;  /* remove the oldest segments beyond this; 0: 64 MiB */
	int64_t wait_ns;        /* limit of an append's wait; 0: HF_JOURNAL_WAIT_NS */
};

enum hf_journal_flags {
	HF_JOURNAL_DURABLE = 1 << 0, /* returns after the record is on disk */
};

/*
 * Opens the journal for appending; creates its files as needed. `opts` may be NULL. For a
 * limit of 0 in `opts`, $HOLDFAST_JOURNAL_SEGMENT, $HOLDFAST_JOURNAL_RETAIN ("512K", "8M",
 * "1G") or $HOLDFAST_JOURNAL_WAIT ("5s") is used if it is valid. Blocks as the file system
 * does. Returns 0, HF_E_UNTRUSTED, -errno.
 */
HF_API int hf_journal_open(struct hf_state *state, const struct hf_journal_opts *opts,
			   struct hf_journal **ret_journal, struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_journal_free(struct hf_journal *journal);

/*
 * Appends a record. `name` is its subject (a lock, a session), or NULL. Blocks: at most
 * wait_ns of the options, and for the disk with HF_JOURNAL_DURABLE. Returns 0 when it is
 * written; HF_E_EVENT if the event is not in the table (nothing written or counted); HF_E_LOST
 * if it could not be written in time (counted); HF_E_FORKED.
 */
HF_API int hf_journal_append(struct hf_journal *journal, enum hf_event event, const char *name,
			     const struct hf_field *fields, size_t n_fields, unsigned flags,
			     struct hf_err *err);

/* Returns the sequence number of the last record that this handle wrote; 0 before the first. */
HF_API uint64_t hf_journal_last_seq(const struct hf_journal *journal);

struct hf_journal_totals {
	uint64_t seq;      /* highest acknowledged sequence number */
	uint64_t lost;     /* records that could not be written, in total */
	uint64_t bytes;    /* on disk now */
	uint64_t segments; /* number of files, including the current one */
};

/* Reads the counters of the journal. An unwritten journal is all 0. Returns 0 or an error. */
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
	const char *name;                 /* the subject, or NULL */
	const char *line;                 /* the whole JSON line, without newline */
	size_t line_len;
	const void *fields;               /* for the three functions below */
};

/* Opens the journal for reading, at the oldest record. A missing journal is empty. */
HF_API int hf_journal_read(const struct hf_state *state, struct hf_journal_reader **ret_reader,
			   struct hf_err *err) HF_MUST_CHECK;

/* Closes and frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_journal_reader_free(struct hf_journal_reader *reader);

/*
 * Reads the next complete and valid record. Returns 1; 0 if no record is available now;
 * -errno. The record's pointers are valid until the next call. Damaged lines are skipped and
 * counted. The reader follows the rotation and removal of segments.
 */
HF_API int hf_journal_next(struct hf_journal_reader *reader, struct hf_record *ret_record,
			   struct hf_err *err) HF_MUST_CHECK;

/* Returns the number of damaged or torn lines skipped so far. */
HF_API uint64_t hf_journal_reader_damaged(const struct hf_journal_reader *reader);

/*
 * Returns how many times hf_journal_wait found the journal truncated, or quarantined and
 * recreated. Reading then restarts at the oldest present record.
 */
HF_API uint64_t hf_journal_reader_restarts(const struct hf_journal_reader *reader);

/*
 * Sleeps until the journal may have grown (1) or `timeout_ns` has passed (0); a negative
 * timeout has no limit. Does not poll. Returns -EINTR after a signal: unlike a wait for a lock
 * it has no place to lose, so to continue, call it again.
 */
HF_API int hf_journal_wait(struct hf_journal_reader *reader, int64_t timeout_ns,
			   struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the text of a record's field, or NULL if no field has that key and type. `key` is
 * one of the event's fields.
 */
HF_API const char *hf_record_text(const struct hf_record *record, const char *key);

/* Returns 1 and the number (0 or 1 for a truth value), or 0. */
HF_API int hf_record_int(const struct hf_record *record, const char *key, int64_t *ret_value);

/* Calls `fn` for each field of the event, in the order of the line; `text` is printable. */
HF_API void hf_record_each(const struct hf_record *record,
			   void (*fn)(void *arg, const char *key, const char *text), void *arg);

/* -- verifying -------------------------------------------------------------- */

enum hf_problem {
	HF_PROBLEM_DAMAGED = 1, /* the line's checksum or form is wrong */
	HF_PROBLEM_TORN = 2,    /* an unfinished line (a crash during a write); harmless */
	HF_PROBLEM_GAP = 3,     /* records are missing before this one */
	HF_PROBLEM_REPEAT = 4,  /* a repeated sequence number, or one out of order */
	HF_PROBLEM_EVENT = 5,   /* valid, but not an event of the table */
	HF_PROBLEM_TAIL = 6,    /* acknowledged records are missing at the end */
	HF_PROBLEM_FILE = 7,    /* a segment that is unreadable or untrusted */
	HF_PROBLEM_COUNTERS = 8, /* the counters are missing, or lower than the records */
};

struct hf_problem_info {
	enum hf_problem problem;
	const char *file; /* in journal/ */
	uint64_t line;    /* from 1; 0: the whole file */
	uint64_t offset;  /* of the line in the file */
	uint64_t seq;     /* of the record, if known */
	const char *text; /* in words */
};

struct hf_verify_result {
	uint64_t records;  /* valid ones */
	uint64_t first;    /* sequence numbers */
	uint64_t last;
	uint64_t problems; /* of all kinds except HF_PROBLEM_TORN */
	uint64_t torn;     /* unfinished records: harmless, none was acknowledged */
	uint64_t lost;     /* as in struct hf_journal_totals: counted, not a problem */
};

/*
 * Reads the whole journal and calls `report` (may be NULL) for each problem. Writers may
 * continue. Returns 0 when everything was read, with or without problems, or -errno.
 */
HF_API int hf_journal_verify(const struct hf_state *state,
			     void (*report)(void *arg, const struct hf_problem_info *problem),
			     void *arg, struct hf_verify_result *ret_result,
			     struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
