/*
 * lock/etcd/renewing.h - a hold that is kept by a process of its own, until it is asked to release it, its owner has gone, or it is lost.
 */
#ifndef LOCK_ETCD_RENEWING_H
#define LOCK_ETCD_RENEWING_H

#include "hf/lock/etcd/attempt.h"
#include "hf/lock/lease/renewer.h"

/* What a layer above adds. */
struct hf_renewing_hooks {
	/* Something came through the socket that is not for the renewer. */
	void (*heard)(void *arg, const char *text, size_t len);
	/* The holder was asked for something (board.h). */
	void (*asked)(void *arg, const char *text);
	/* The socket is closed: its starter has gone. 1: nothing of its work is left, release; 0: ask again soon. */
	int (*gone)(void *arg);
};

struct hf_renewing {
	int socket;   /* -1: its starter has gone; the owner, or hooks->gone, is what counts */
	int owner_fd; /* -1: none */
	char name[HF_NAME_MAX + 1];
	struct hf_lock_ref lock;
	uint64_t token, above;
	struct hf_boot since;
	int64_t ttl_ns, margin_ns, wait_ns;
	int kill_owner;
	struct hf_proc_id owner;
	char url[4097], dir[4097];
	struct hf_state *state;
	struct hf_locks *locks;
	struct hf_etcd *etcd;
	struct hf_etcd_kept kept;
	struct hf_mono next; /* renewal */
	int question, answered; /* the last that was heard (hf_renewer_ask); of them, the last before a renewal that is proven */
	const struct hf_renewing_hooks *hooks; /* NULL: none */
	void *arg;
	char asked[HF_BOARD_ASK_MAX]; /* that the hook was told of */
};

#define HF_RENEWING_INIT { .socket = -1, .owner_fd = -1 }

/* Leaves what it has of its starter: terminal, pipes, directory, signals. */
void hf_renewing_stand_alone(void);

/* Reads what it is to do from the socket. 0 or -EINVAL. */
int hf_renewing_read_order(struct hf_renewing *w);

/* Opens state and store. `journal` may be NULL. */
int hf_renewing_open(struct hf_renewing *w, struct hf_journal *journal, struct hf_err *err);
void hf_renewing_close(struct hf_renewing *w);

void hf_renewing_tell(const struct hf_renewing *w, int word, const struct hf_err *err);

/* Keeps the hold of w->token to its end. The exit status. */
int hf_renewing_run(struct hf_renewing *w);

#endif
