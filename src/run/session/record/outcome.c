/*
 * run/session/record/outcome.c - how an attempt is brought to its end on record: by its keeper, or by a later process.
 *
 * The event is written first, then the record. A process that comes after a keeper that was killed in
 * between finds the event in the journal, by token and attempt, and brings the record to what that
 * says: there is one event, and record and journal say the same (L8). A keeper that might
 * still write one is dead before anybody looks.
 */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/journal/read/find.h"
#include "hf/base/fail.h"
#include "hf/run/session/record/store.h"
#include "hf/run/stage.h"

/* Counts, compares it with the attempt before, and makes it the outcome on record. */
static void set_ended(struct hf_session_record *record, enum hf_outcome outcome, int exit_status,
		      const char *cause)
{
	char clean[HF_RUN_CAUSE_MAX];

	(void)hf_plain_text(clean, sizeof(clean), cause, strlen(cause));
	/* Notices are not repeated for what is the same again. */
	record->same = record->outcome == outcome && strcmp(record->cause, clean) == 0
			       ? record->same + 1
			       : 1;
	record->outcome = outcome;
	record->exit_status = exit_status;
	memcpy(record->cause, clean, sizeof(clean));
	record->failures = outcome == HF_OUTCOME_SUCCEEDED ? 0 : record->failures + 1;
	memset(&record->leader, 0, sizeof(record->leader));
}

void hf_session_conclude(struct hf_sessions *sessions, struct hf_session_record *record,
			 enum hf_outcome outcome, int exit_status, const char *cause)
{
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)record->token),
				     HF_FIELD_INT("attempt", record->attempt),
				     HF_FIELD_TEXT("outcome", hf_outcome_word(outcome)),
				     HF_FIELD_INT("status", exit_status),
				     HF_FIELD_TEXT("cause", record->cause),
				     HF_FIELD_INT("ran_ms", record->ran_ns / HF_MSEC) };

	set_ended(record, outcome, exit_status, cause);
	hf_session_event(sessions, HF_EV_SESSION_ENDED, record->name, fields, 6);
}

/* -- what the journal says already --------------------------------------------------- */

typedef void found_fn(const struct hf_record *event, struct hf_session_record *record);

/* What is looked for, and what to do with it. */
struct told {
	enum hf_event kind;
	struct hf_session_record *record;
	found_fn *found; /* may be NULL */
};

static int is_about(const struct hf_record *event, const struct told *told)
{
	const struct hf_session_record *record = told->record;
	int64_t token = 0, attempt = record->attempt;

	/* A name that is not UTF-8 is not in the journal as it is. */
	return event->info && event->info->event == told->kind && event->name &&
	       (strcmp(event->name, record->name) == 0 || strstr(event->name, "\xef\xbf\xbd")) &&
	       hf_record_int(event, "token", &token) && (uint64_t)token == record->token &&
	       (told->kind != HF_EV_SESSION_ENDED ||
		(hf_record_int(event, "attempt", &attempt) && attempt == (int64_t)record->attempt));
}

static int take_event(void *arg, const struct hf_record *event)
{
	struct told *told = arg;

	if (!is_about(event, told))
		return 0;
	if (told->found)
		told->found(event, told->record);
	return 1;
}

/* 1 when there is such an event of that attempt; `found` (may be NULL) is called with it. */
static int is_told(const struct hf_sessions *sessions, enum hf_event kind,
		   struct hf_session_record *record, found_fn *found)
{
	struct told told = { .kind = kind, .record = record, .found = found };
	char needle[40];

	(void)snprintf(needle, sizeof(needle), "\"token\":%llu", (unsigned long long)record->token);
	return sessions->journal && hf_journal_find(sessions->state, needle, take_event, &told, NULL) == 1;
}

static void adopt(const struct hf_record *event, struct hf_session_record *record)
{
	const char *word = hf_record_text(event, "outcome"), *cause = hf_record_text(event, "cause");
	enum hf_outcome outcome = word ? hf_outcome_of(word) : HF_OUTCOME_NONE;
	int64_t status = 0, ran_ms = 0;

	(void)hf_record_int(event, "status", &status);
	(void)hf_record_int(event, "ran_ms", &ran_ms);
	record->ended = event->time;
	record->ran_ns = ran_ms * HF_MSEC;
	set_ended(record, outcome == HF_OUTCOME_NONE ? HF_OUTCOME_ABANDONED : outcome, (int)(status & 255),
		  cause ? cause : "");
}

/*
 * A loop that was killed had not come to its end, whatever its last attempt did: that has its event, the
 * record is of the whole (L14).
 */
static void abandon_loop(struct hf_session_record *record, int exit_status, const char *cause)
{
	record->outcome = HF_OUTCOME_ABANDONED;
	record->exit_status = exit_status;
	record->same = 1;
	(void)hf_plain_text(record->cause, sizeof(record->cause), cause, strlen(cause));
	if (record->failures == 0)
		record->failures = 1;
}

/* What it was landing when it was killed is there, or is not: the layer above finds out (L14). */
static int settle_landing(struct hf_sessions *sessions, struct hf_session_record *record, struct hf_result *result,
			  struct hf_err *err)
{
	struct hf_stage_unsettled attempt = { .name = record->name, .token = record->token, .attempt = record->attempt };

	if (record->phase != HF_PHASE_LANDING)
		return 0;
	if (!hf_stage_settle)
		return FAIL(err, HF_E_REMAINS, "session", record->name, "it was killed while it landed; 'holdfast reap' settles that");
	return hf_stage_settle(sessions->state, sessions->journal, &attempt, result, err);
}

int hf_session_complete(struct hf_sessions *sessions, struct hf_session_record *record, int exit_status,
			const char *cause, struct hf_err *err)
{
	/* Between two attempts of a loop the last one has its outcome already. */
	if ((record->phase != HF_PHASE_WAITING || record->outcome == HF_OUTCOME_NONE) &&
	    !is_told(sessions, HF_EV_SESSION_ENDED, record, adopt)) {
		struct hf_result result = hf_result_make(HF_OUTCOME_ABANDONED, exit_status, "%s", cause);
		int r = settle_landing(sessions, record, &result, err);

		if (r < 0)
			return r;
		hf_session_conclude(sessions, record, result.outcome, result.exit_status, result.cause);
	}
	if (record->loop)
		abandon_loop(record, exit_status, cause);
	record->phase = HF_PHASE_ENDED;
	memset(&record->leader, 0, sizeof(record->leader));
	return 0;
}

int hf_session_is_reaped(struct hf_sessions *sessions, struct hf_session_record *record)
{
	return is_told(sessions, HF_EV_SESSION_REAPED, record, NULL);
}
