/*
 * lock/board.h - the notice board of a store of several machines: what the holder of a name says about its session, and what it is asked for.
 *
 * One short text for each name, written by its holder as long as its token is current, and kept after the release: so any machine can
 * tell what a session came to. A request is written to the place of the holder that it is meant for, and goes with that place. The
 * board knows nothing of what the texts mean; the sessions' are in run/fleet. A store of one machine has none.
 */
#ifndef LOCK_BOARD_H
#define LOCK_BOARD_H

#include <poll.h>
#include <stdint.h>

#include "holdfast/lock.h"
#include "holdfast/name.h"

#define HF_BOARD_TEXT_MAX 4096
#define HF_BOARD_ASK_MAX  96

struct hf_board_entry {
	char name[HF_NAME_MAX + 1];
	char text[HF_BOARD_TEXT_MAX]; /* "": there is none */
	uint64_t token;               /* of the holder now; 0: nobody holds it */
	char host[HF_HOST_NAME_MAX + 1]; /* of that one */
	char asked[HF_BOARD_ASK_MAX];
	int64_t revision;             /* to wait from */
};

typedef void hf_board_fn(void *arg, const struct hf_board_entry *entry);

/* Is there one? */
int hf_board_is_there(struct hf_locks *locks);

/* Says something, as the holder. HF_E_STALE when the token is not current: nothing is written. */
int hf_board_put(struct hf_locks *locks, const char *name, uint64_t token, const char *text, struct hf_err *err);

/* Asks the holder of `token` for something. HF_E_STALE when it holds no longer. */
int hf_board_ask(struct hf_locks *locks, const char *name, uint64_t token, const char *text, struct hf_err *err);

/* What is there of a name, at one moment. 0 also when nothing is. */
int hf_board_read(struct hf_locks *locks, const char *name, struct hf_board_entry *ret, struct hf_err *err);

/* All names that have a text, at one moment. */
int hf_board_list(struct hf_locks *locks, hf_board_fn *fn, void *arg, struct hf_err *err);

/* Sleeps until the text or the holders of `entry` may have changed, for at most `ns`. A reason to look again, never a proof. */
int hf_board_wait(struct hf_locks *locks, const struct hf_board_entry *entry, int64_t ns, struct hf_err *err);

/* Removes the texts and last tokens of names that nobody holds, and whose last token is at least `quiet_ns` old by the clock. How many. */
int hf_board_clean(struct hf_locks *locks, int64_t quiet_ns, struct hf_err *err);

struct hf_store;

/* What a store does of it. */
struct hf_board_ops {
	int (*put)(struct hf_store *store, const char *name, uint64_t token, const char *text, struct hf_err *err);
	int (*ask)(struct hf_store *store, const char *name, uint64_t token, const char *text, struct hf_err *err);
	int (*read)(struct hf_store *store, const char *name, struct hf_board_entry *ret, struct hf_err *err);
	int (*list)(struct hf_store *store, hf_board_fn *fn, void *arg, struct hf_err *err);
	int (*await)(struct hf_store *store, const struct hf_board_entry *entry, int64_t ns, struct hf_err *err);
	int (*clean)(struct hf_store *store, int64_t quiet_ns, struct hf_err *err);
};

extern const struct hf_board_ops hf_etcd_board;

#endif
