/*
 * holdfast/event.h - the closed list of journal events.
 *
 * Every journal record is one of these events, with the fields in the event's
 * table. The journal refuses an unknown event, an unknown field, a missing
 * required field and a field of the wrong type. Otherwise a misspelt event would
 * never be counted.
 *
 * To add an event, add a row to HF_EVENT_LIST and one to src/journal/events.c.
 * The test suite compares both with the table in docs/FORMATS.md.
 *
 * Threads and fork: constant data. Blocks: no.
 */
#ifndef HOLDFAST_EVENT_H
#define HOLDFAST_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"

HF_C_BEGIN

/* X(constant). Append only: the numbers are part of the ABI. */
/* clang-format off */
#define HF_EVENT_LIST(X)            \
	X(NOTE)                     \
	X(JOURNAL_LOST)             \
	X(JOURNAL_ROTATED)          \
	X(JOURNAL_PRUNED)           \
	X(RECORD_QUARANTINED)       \
	X(ID_REJECTED)              \
	X(SIGNAL_SENT)              \
	X(SIGNAL_REFUSED)           \
	X(LOCK_FAIL_OPEN)           \
	X(LOCK_SKIPPED)             \
	X(LOCK_TAKEN_OVER)          \
	X(LOCK_EXPIRED)             \
	X(LOCK_BROKEN)              \
	X(LOCK_REFUSED)             \
	X(LOCK_DEADLOCK)            \
	X(SESSION_STARTED)          \
	X(SESSION_STOPPING)         \
	X(SESSION_KILLED)           \
	X(SESSION_ENDED)            \
	X(SESSION_REAPED)           \
	X(SESSION_REFUSED)          \
	X(SESSION_LEFT_RUNNING)     \
	X(SESSION_NOTIFIED)         \
	X(SESSION_OUTLIVED)         \
	X(SESSION_GAVE_UP)          \
	X(FILE_REFUSED)             \
	X(FILE_ABANDONED)           \
	X(FILE_KEPT)                \
	X(PLAN_ADDED)               \
	X(PLAN_ENTERED)             \
	X(PLAN_REFUSED)             \
	X(PLAN_ERRORED)             \
	X(PLAN_REMOVED)             \
	X(PLAN_CONFLICT)            \
	X(PLAN_COMMITTED)           \
	X(PLAN_ROLLED_BACK)         \
	X(PLAN_UNDONE)              \
	X(PLAN_RECOVERED)           \
	X(LAND_KEPT)                \
	X(LAND_LANDED)              \
	X(LAND_REJECTED)            \
	X(LAND_CONFLICT)            \
	X(LAND_DROPPED)             \
	X(LAND_RECOVERED)           \
	X(RUN_COMMITTED)            \
	X(RUN_CONFLICT)             \
	X(RUN_KEPT)                 \
	X(RUN_MOVED)                \
	X(KEEP_ON)                  \
	X(KEEP_ENDED)               \
	X(STOP_BLOCKED)             \
	X(STOP_ALLOWED)             \
	X(HOOK_FAILED)              \
	X(TOOL_REFUSED)             \
	X(CLIENT_STARTED)           \
	X(CLIENT_ENDED)             \
	X(BACKGROUND_LEFT)          \
	X(QUARANTINE_TRIMMED)
/* clang-format on */

enum hf_event {
#define HF_EVENT_ENUM(constant) HF_EV_##constant,
	HF_EVENT_LIST(HF_EVENT_ENUM)
#undef HF_EVENT_ENUM
	HF_EVENT_COUNT
};

enum hf_type {
	HF_TEXT = 1, /* UTF-8; invalid bytes are replaced, long text is cut and marked */
	HF_INT = 2,  /* 64-bit signed */
	HF_BOOL = 3,
};

#define HF_EVENT_FIELDS_MAX 6

struct hf_event_field {
	const char *key; /* NULL ends the list */
	enum hf_type type;
	int required;
};

struct hf_event_info {
	enum hf_event event;
	const char *name;    /* in the journal */
	const char *summary; /* one line for people */
	int needs_name;      /* 1: the caller must give the name of its subject */
	struct hf_event_field fields[HF_EVENT_FIELDS_MAX + 1];
};

/* A field's value for hf_journal_append. Use the three macros below. */
struct hf_field {
	const char *key;
	enum hf_type type;
	const char *text; /* HF_TEXT; NULL is written as null */
	int64_t number;   /* HF_INT, HF_BOOL */
};

#define HF_FIELD_TEXT(k, value) { (k), HF_TEXT, (value), 0 }
#define HF_FIELD_INT(k, value)  { (k), HF_INT, NULL, (value) }
#define HF_FIELD_BOOL(k, value) { (k), HF_BOOL, NULL, (value) ? 1 : 0 }

/* Returns the row of `event`, or NULL for an unknown number. */
HF_API const struct hf_event_info *hf_event_info(enum hf_event event);

/* Returns the row with that name, or NULL. */
HF_API const struct hf_event_info *hf_event_find(const char *name, size_t len);

HF_C_END

#endif
