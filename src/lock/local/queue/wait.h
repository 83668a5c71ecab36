/* lock/local/queue/wait.h - one acquisition under way: its place and its sleep, used by acquire.c. */
#ifndef LOCK_LOCAL_QUEUE_WAIT_H
#define LOCK_LOCAL_QUEUE_WAIT_H

#include <poll.h>

#include "hf/lock/local/record/guard.h"

/* The places in `watch` that are always there; a descriptor of -1 is not looked at. */
enum {
	HF_WATCH_CHANNEL,
	HF_WATCH_CANCEL, /* the caller's: never closed */
	HF_WATCH_FIRST,
};

struct hf_attempt {
	struct hf_local *locks;
	const struct hf_lock_request *request;
	struct hf_mono deadline; /* of the wait */
	struct hf_mono suspect;  /* when to look for a deadlock */
	int64_t suspect_pause_ns; /* grows from look to look */
	int queued;
	struct hf_lock_entry entry;
	uint64_t token;
	/* [HF_WATCH_CHANNEL], [HF_WATCH_CANCEL], owner, then the waiter before us or the holders. */
	struct pollfd watch[HF_WATCH_FIRST + 1 + HF_LOCK_SLOTS_MAX];
	nfds_t n_watch;
	uint64_t inodes[HF_WATCH_FIRST + 1 + HF_LOCK_SLOTS_MAX]; /* of the processes there (pidfs) */
	uint64_t died; /* that of one whose end was seen in the last sleep; 0: none */
	int64_t clock_ns;       /* look again after this */
	struct hf_mono look_at; /* when that is */
	int peeks;              /* it only peeks then: there are others before it */
	struct hf_mono tell_at; /* when the caller is told where it stands */
	int cancelled;         /* the caller's descriptor ended the sleep */
	uint64_t unread;       /* the token of a holder that has not noticed it, */
	struct hf_mono unread_until; /* which may be revoked from then on */
	uint64_t claimed;      /* holders up to this token have noticed that they are (peek.c) */
};

/* Decides what to sleep on. Returns 0 when there is no need to sleep: look again. */
int hf_attempt_watch(struct hf_guard *guard, struct hf_attempt *a);

/* Takes a place in the queue and makes its channel. Returns 0 or negative. */
int hf_attempt_join(struct hf_guard *guard, struct hf_attempt *a, struct hf_err *err);

/* Sleeps until something happens. 1 we were given the lock, 0 look again, negative: it would be for ever (HF_E_DEADLOCK). */
int hf_attempt_sleep(struct hf_attempt *a, struct hf_err *err);

/* Reads what came through the channel. 1 when our token did. */
int hf_attempt_read_channel(struct hf_attempt *a);

/* Notes that `token` was not noticed yet, and may be revoked `ns` after this was seen first. */
void hf_attempt_note_unread(struct hf_attempt *a, uint64_t token, int64_t ns);

/* The token of a holder that has had its time to notice, to be revoked; or 0. */
uint64_t hf_attempt_overdue(const struct hf_attempt *a);

/* No longer watches anything but our channel; what that was is closed later. */
void hf_attempt_stop_watching(struct hf_attempt *a);

/* Closes what it watched, but the caller's descriptor. */
void hf_attempt_done(struct hf_attempt *a);

#endif
