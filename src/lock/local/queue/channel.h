/*
 * lock/local/queue/channel.h - the wake-up channel of one waiter.
 *
 * It carries messages of 8 bytes: a token, which is then the waiter's own, or "look again". The
 * message is the lock: it is written once, after the record says so, and the process that reads it
 * has the lock. So a waiter that got its token needs no guard, and one that is stopped before it
 * can read can still be passed over: the next waiter takes the message out of the channel, or finds
 * that it has been read.
 */
#ifndef LOCK_LOCAL_QUEUE_CHANNEL_H
#define LOCK_LOCAL_QUEUE_CHANNEL_H

#include "hf/lock/local/record/guard.h"

/* Messages that are no tokens; both say the same to the waiter. */
#define HF_LOOK_AGAIN      0
#define HF_LOOK_AGAIN_MARK 1 /* as far as this the messages are read that are taken back */

/*
 * Makes and opens a waiter's channel. After the record is written, so that a crash in between
 * leaves a waiter without a channel, which is passed over, and never a stray channel.
 * -EEXIST (without an error filled in): another waiter has that ticket.
 */
int hf_channel_make(struct hf_guard *guard, uint64_t ticket, int *ret_channel, struct hf_err *err);

/*
 * Opens a channel. For writing, success means that its waiter lives (or just died, which
 * the next one sees): a FIFO that no process has open for reading gives -ENXIO, and one that was removed -ENOENT.
 * Other errors are tried again. When descriptors have run out, the spare one is given up for it.
 */
int hf_channel_open(struct hf_guard *guard, uint64_t ticket, int flags);

/*
 * Sends a message. Returns 0; -EPIPE: no process reads it; -errno after some tries: the waiter may
 * live, and is not told. Never raises SIGPIPE (L13).
 */
int hf_channel_send(struct hf_local *locks, int fd, uint64_t token);

/* 1 when a process has it open for reading: its waiter lives and has not given up. Needs no guard. */
int hf_channel_is_open(const struct hf_kind_dir *dir, const char *key, uint64_t ticket);

/* Removes a channel; ticket 0 has none. Needs no guard. */
void hf_channel_remove(const struct hf_kind_dir *dir, const char *key, uint64_t ticket);

/*
 * Makes all that sleep in the queue look again: the record is gone (deleted by hand, or
 * quarantined), and with it their places. With a record, those of its holders are left
 * alone: they do not wait. With `sweep`, channels that nobody has open are removed; only under the
 * guard, for a channel that is just being made is not open yet.
 */
void hf_channel_recall(struct hf_local *locks, const struct hf_kind_dir *dir, const char *key,
		       const struct hf_lock_record *record, int sweep);

#endif
