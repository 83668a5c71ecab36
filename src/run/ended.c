/* run/ended.c - how an attempt is brought to its end on record: by its keeper, or by who comes after. */
#include <stdio.h>
#include <string.h>

#include "hf/run/store.h"

void hf_session_conclude(struct hf_sessions *sessions, struct hf_session_record *record,
			 enum hf_outcome outcome, int exit_status, const char *cause)
{
	struct hf_field fields[] = { HF_FIELD_INT("attempt", record->attempt),
				     HF_FIELD_TEXT("outcome", hf_outcome_word(outcome)),
				     HF_FIELD_INT("status", exit_status),
				     HF_FIELD_TEXT("cause", record->cause),
				     HF_FIELD_INT("ran_ms", record->ran_ns / HF_MSEC) };
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
	hf_session_event(sessions, HF_EV_SESSION_ENDED, record->name, fields, 5);
}
