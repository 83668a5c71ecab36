/*
 * run/session/notes/says.h - what the program of a session says of itself: sessions/KEY/says, one line of fixed length.
 *
 *     TOKEN BOOTTIME STATE ENDED TEXT\n       in 20, 20, 3 and 3 digits, and HF_SAYS_TEXT_MAX bytes filled with spaces
 *
 * Written by the keeper, from the terminal, and by hooks; the last one counts, and only for the run that has the token.
 */
#ifndef RUN_SESSION_NOTES_SAYS_H
#define RUN_SESSION_NOTES_SAYS_H

#include "hf/run/session/record/store.h"

struct hf_said {
	enum hf_says says;
	int64_t age_ns;
	uint32_t ended; /* how often background tasks were ended in this attempt */
	char text[HF_SAYS_TEXT_MAX + 1];
};

/* 1 when the run `token` said something. */
int hf_said_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_said *ret);

/* Writes it. What is said again keeps its time. 0 or an error. */
int hf_said_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_said *said, struct hf_err *err);

/* A new attempt has said nothing yet. */
void hf_said_forget(struct hf_sessions *sessions, const char *name);

#endif
