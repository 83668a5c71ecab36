/* lock/local/wait.h - one acquisition under way: between acquire.c and wait.c. */
#ifndef LOCK_LOCAL_WAIT_H
#define LOCK_LOCAL_WAIT_H

#include <poll.h>

#include "hf/lock/local/guard.h"

struct hf_attempt {
	struct hf_local *locks;
	const struct hf_lock_request *request;
	struct hf_mono deadline; /* of the wait */
	struct hf_mono suspect;  /* when to look for a deadlock; once */
	int suspected;
	int queued;
	struct hf_lock_entry entry;
	uint64_t token;
	struct pollfd watch[2 + HF_LOCK_SLOTS_MAX]; /* [0] is our channel; owner and holders */
	nfds_t n_watch;
	int64_t clock_ns; /* look again after this; -1: no need */
};

/* Decides what to sleep on. Returns 0 when there is no need to sleep: look again. */
int hf_attempt_watch(struct hf_guard *guard, struct hf_attempt *a);

/* Sleeps until something watched happens. 1 when we were given the lock. */
int hf_attempt_sleep(struct hf_attempt *a);

/* Reads what came through the channel. 1 when our token did. */
int hf_attempt_read_channel(struct hf_attempt *a);

/* Closes what is watched, except for our channel. */
void hf_attempt_stop_watching(struct hf_attempt *a);

#endif
