/*
 * lock/etcd/wire/watch.h - being told when a key changes.
 *
 * A watch has a connection of its own; etcd ends none by itself that it refuses or cannot continue, so that is read
 * from what it says. It is a reason to look again, never a proof.
 */
#ifndef LOCK_ETCD_WIRE_WATCH_H
#define LOCK_ETCD_WIRE_WATCH_H

#include <poll.h>

#include "hf/lock/etcd/record/record.h"

struct hf_watch_aim {
	char key[HF_ETCD_KEY_MAX], end[HF_ETCD_KEY_MAX]; /* end "": the one key */
	int64_t revision; /* from that on */
	int only_deletes;
	char asked[HF_BOARD_ASK_MAX]; /* what the holder of that place was asked for (hf_etcd_place_of) */
};

struct hf_watch {
	struct hf_etcd *etcd;
	struct hf_http_stream *stream;
	unsigned endpoint; /* of the server */
	int freed;         /* the place of an exclusive holder was deleted; of a watch with only_deletes */
};

int hf_watch_open(struct hf_etcd *etcd, const struct hf_watch_aim *aim, struct hf_watch *ret, struct hf_err *err);

/* Sleeps for at most `ns`. 1: an event; -1: the watch has ended, open another; 0: one of `fds`, or the time is over. */
int hf_watch_wait(struct hf_watch *watch, struct pollfd *fds, nfds_t n, int64_t ns);

/* Is it with the server that answers calls? One that does not answer them says nothing to a watch either. */
int hf_watch_is_current(const struct hf_watch *watch);

void hf_watch_close(struct hf_watch *watch);

/* Where the place of the hold of `token` is to be watched. HF_E_STALE when it is not current. */
int hf_etcd_place_of(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_watch_aim *ret,
		     struct hf_err *err);

#endif
