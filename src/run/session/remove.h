/* run/session/remove.h - what a run does about old sessions when it has ended. */
#ifndef RUN_SESSION_REMOVE_H
#define RUN_SESSION_REMOVE_H

#include "hf/run/session/record/store.h"

/* Prunes as $HOLDFAST_PRUNE says (30d,4G), at most once an hour and for a fifth of a second. */
void hf_sessions_prune_now_and_then(struct hf_sessions *sessions);

/* Returns 1 if it left work that has not landed; 0 also in a program without the layer tx. */
int hf_session_holds_work(struct hf_sessions *sessions, const char *name);

#endif
