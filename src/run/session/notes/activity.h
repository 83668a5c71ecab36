/*
 * run/session/notes/activity.h - the activity that the program of a session reports: sessions/KEY/activity, one line of fixed length.
 *
 *     TOKEN BOOTTIME STATE ENDED TEXT\n       in 20, 20, 3 and 3 digits, and HF_ACTIVITY_TEXT_MAX bytes filled with spaces
 *
 * Written by the keeper, from terminal output, and by hooks. Valid for the run with this token.
 */
#ifndef RUN_SESSION_NOTES_ACTIVITY_H
#define RUN_SESSION_NOTES_ACTIVITY_H

#include "hf/run/session/record/store.h"

struct hf_activity_note {
	enum hf_activity activity;
	int64_t age_ns;
	uint32_t ended; /* rounds of ending background tasks in this attempt */
	char text[HF_ACTIVITY_TEXT_MAX + 1];
};

/* Returns 1 if the run `token` has a report. */
int hf_activity_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_activity_note *ret);

/* Writes a report. A repeated report keeps its time. Returns 0 or an error. */
int hf_activity_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_activity_note *said, struct hf_err *err);

/* Removes the report of the previous attempt. */
void hf_activity_forget(struct hf_sessions *sessions, const char *name);

#endif
