/*
 * run/session/notes/beat.h - the heartbeat of a session: sessions/KEY/beat, one line of fixed length.
 *
 *     TOKEN BOOTTIME BUSY\n       in 20, 20 and 1 digits
 *
 * Written by processes of the session, read by its keeper when the idle limit would be reached. It counts
 * only for the run that has the token.
 */
#ifndef RUN_SESSION_NOTES_BEAT_H
#define RUN_SESSION_NOTES_BEAT_H

#include "hf/run/session/record/store.h"

/*
 * How long the run `token` is silent, by its heartbeat: 0 while it is busy (at most HF_RUN_BUSY_NS), -1 when
 * it never had one.
 */
int64_t hf_beat_age(struct hf_sessions *sessions, const char *name, uint64_t token);

#endif
