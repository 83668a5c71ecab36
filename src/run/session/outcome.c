/*
 * run/session/outcome.c - how an attempt is brought to its end on record: by its keeper, or by who comes after.
 *
 * The event is written first, then the record. Who comes after a keeper that was killed in
 * between finds the event in the journal, by token and attempt, and brings the record to what that
 * says: there is one event, and record and journal say the same (L8). A keeper that might
 * still write one is dead before anybody looks.
 */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/journal/line.h"
#include "hf/journal/scan.h"
#include "hf/run/session/store.h"

/* Counts, compares it with the attempt before, and makes it the outcome on record. */
static void set_ended(struct hf_session_record *record, enum hf_outcome outcome, int exit_status,
		      const char *cause)
{
	char clean[HF_RUN_CAUSE_MAX];

	hf_session_clean_text(clean, sizeof(clean), cause);
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

static int is_about(const struct hf_record *event, enum hf_event kind,
		    const struct hf_session_record *record)
{
	int64_t token = 0, attempt = record->attempt;

	/* A name that is not UTF-8 is not in the journal as it is. */
	return event->info && event->info->event == kind && event->name &&
	       (strcmp(event->name, record->name) == 0 || strstr(event->name, "\xef\xbf\xbd")) &&
	       hf_record_int(event, "token", &token) && (uint64_t)token == record->token &&
	       (kind != HF_EV_SESSION_ENDED ||
		(hf_record_int(event, "attempt", &attempt) && attempt == (int64_t)record->attempt));
}

/* 1 when there is such an event of that attempt; `found` (may be NULL) is called with it. */
static int is_told(const struct hf_sessions *sessions, enum hf_event kind,
		   struct hf_session_record *record, found_fn *found)
{
	AUTO(hf_scan_done) struct hf_scan scan = { .dirfd = -1, .fd = -1, .left_fd = -1 };
	struct hf_scan_line line;
	char needle[40];
	int r, told = 0;

	if (!sessions->journal || hf_scan_open(sessions->state, &scan, NULL) < 0)
		return 0;
	/* Only lines that hold the number are parsed: a journal may be long. */
	(void)snprintf(needle, sizeof(needle), "\"token\":%llu", (unsigned long long)record->token);
	while (!told && (r = hf_scan_next(&scan, &line, NULL)) != HF_SCAN_END && r >= 0) {
		struct hf_record event;
		json_t *root = NULL;

		if (r != HF_SCAN_LINE || !memmem(line.text, line.len, needle, strlen(needle)) ||
		    hf_line_decode(line.text, line.len, &event, &root) < 0)
			continue;
		told = is_about(&event, kind, record);
		if (told && found)
			found(&event, record);
		json_decref(root);
	}
	return told;
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
	hf_session_clean_text(record->cause, sizeof(record->cause), cause);
	if (record->failures == 0)
		record->failures = 1;
}

void hf_session_complete(struct hf_sessions *sessions, struct hf_session_record *record, int exit_status,
			 const char *cause)
{
	/* Between two attempts of a loop the last one has its outcome already. */
	if ((record->phase != HF_PHASE_WAITING || record->outcome == HF_OUTCOME_NONE) &&
	    !is_told(sessions, HF_EV_SESSION_ENDED, record, adopt))
		hf_session_conclude(sessions, record, HF_OUTCOME_ABANDONED, exit_status, cause);
	if (record->loop)
		abandon_loop(record, exit_status, cause);
	record->phase = HF_PHASE_ENDED;
	memset(&record->leader, 0, sizeof(record->leader));
}

int hf_session_is_reaped(struct hf_sessions *sessions, struct hf_session_record *record)
{
	return is_told(sessions, HF_EV_SESSION_REAPED, record, NULL);
}
