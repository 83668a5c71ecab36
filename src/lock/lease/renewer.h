/*
 * lock/lease/renewer.h - a lease of another machine's store, renewed by a process of its own.
 *
 *     hf_renewer_begin(&renewer, lock, ttl_ns);            // right after the lock was acquired
 *     for (;;) {
 *             hf_renewer_start(&renewer, &owner, &err);    // now, or later if the work may be over soon
 *             poll(renewer.fd, renewer.timer, …);
 *             switch (hf_renewer_step(&renewer)) …
 *     }
 *     hf_renewer_end(&renewer, &err);                      // releases the lock
 *
 * A call over the network may hang for seconds, and a holder must stop its work at the end of its lease without the network. So
 * the holder's process makes no call: holdfast-renew does (which has libcurl, too), and tells when a renewal was proven. The holder
 * counts from the moment at which that renewal was sent, on CLOCK_BOOTTIME, which runs in suspend, and ends its work `margin` before
 * the lease.
 *
 * The renewer is bound to the owner of the lock, not to the process that started it: when the owner ends, it releases the lock and ends. So
 * `lock acquire` leaves it behind for a shell.
 */
#ifndef LOCK_LEASE_RENEWER_H
#define LOCK_LEASE_RENEWER_H

#include <stdint.h>
#include <sys/types.h>

#include "hf/lock/store.h"
#include "holdfast/clock.h"
#include "holdfast/lock.h"

#define HF_RENEW_PROGRAM "holdfast-renew"

/* What the renewer says: a fixed size, one message each. */
enum hf_renewer_word {
	HF_RENEWER_PROVEN = 1, /* the lease runs since `since`; `code`: the last question that was heard before that */
	HF_RENEWER_LOST = 2,   /* with why; another may have the lock already */
	HF_RENEWER_RELEASED = 3,
	HF_RENEWER_FAILED = 4, /* it cannot begin, or the release is not known to have worked */
	/* Of a renewer that acquires the lock itself (run/fleet). */
	HF_RENEWER_HELD = 5,   /* it is held: `token` */
	HF_RENEWER_BUSY = 6,   /* it is not: `holder`, `code` and `text` */
	HF_RENEWER_ASKED = 7,  /* its holder is asked for `text` (board.h) */
};

struct hf_renewer_news {
	int32_t word;
	int32_t code; /* of the error, or 0 */
	int64_t since;
	int64_t ttl_ns, margin_ns;
	uint64_t token;
	struct hf_holder holder;
	char text[232];
};

/* What a renewer is to do, through its socket. */
struct hf_renewer_order {
	const char *url, *dir;
	struct hf_lock_ref lock;
	const struct hf_proc_id *owner;
	uint64_t token; /* 0: acquire it first, with a token higher than `above`, within `wait_ns` */
	uint64_t above;
	int64_t wait_ns;
	int64_t since, ttl_ns, margin_ns;
	int kill_owner;
};

struct hf_renewer {
	struct hf_lock *lock; /* NULL: the renewer has acquired it */
	const char *name;
	uint64_t token;       /* of such a one; 0: not yet */
	int fd;    /* to the renewer; -1: it does not run */
	int timer; /* readable when `stop_at` or `end_at` has come; -1: none */
	pid_t pid;
	int64_t ttl_ns, margin_ns, grace_ns;
	struct hf_boot since;   /* the last renewal that is proven */
	struct hf_boot stop_at; /* ask the work to end */
	struct hf_boot end_at;  /* nothing of the work may run any longer */
	int lost, released;
	int n_asked, n_proven; /* questions (hf_renewer_ask), and the last one that was answered */
	int code;              /* of a failure; 0: none */
	struct hf_holder holder; /* of the lock that is busy */
	char why[232];
	char asked[232];       /* "": nothing */
};

#define HF_RENEWER_INIT { .fd = -1, .timer = -1 }

/* Begins with the lease of a lock that was acquired just now. `grace_ns`: how long the work may take to end. Returns 0 or -errno. */
int hf_renewer_begin(struct hf_renewer *renewer, struct hf_lock *lock, int64_t grace_ns, int64_t ttl_ns);

/* Starts holdfast-renew with `argv`; `why` it is needed is said when it is missing. Its standard input is the other end of *ret_socket. */
int hf_renewer_spawn(char *const *argv, const char *why, int *ret_socket, pid_t *ret_pid, struct hf_err *err);

/* Starts the process for a lock whose owner is `owner`; nothing when it runs. With `kill`, it kills the owner at the end of the lease, too. */
int hf_renewer_start(struct hf_renewer *renewer, const struct hf_proc_id *owner, int kill, struct hf_err *err);

/* The same for a process that runs already, behind `fd`, and acquires the lock itself. 0 or -errno; the descriptor is the renewer's from now on. */
int hf_renewer_adopt(struct hf_renewer *renewer, int fd, const char *name, int64_t grace_ns, const struct hf_renewer_order *order);

/* Reads what it said. 1: the lock is held; 0: not yet; or the failure, HF_E_BUSY with renewer->holder. */
int hf_renewer_acquired(struct hf_renewer *renewer, struct hf_err *err);

enum hf_renewer_state {
	HF_RENEWER_HOLDS,
	HF_RENEWER_ENDS, /* the lease may not last: ask the work to end */
	HF_RENEWER_OVER, /* nothing of the work may run any longer */
};

/* Reads what the renewer has said, and the clock. */
enum hf_renewer_state hf_renewer_step(struct hf_renewer *renewer);

/*
 * Asks for a proof that begins after this. It has come when n_proven has reached n_asked; a renewer that was replaced is to be asked again. By
 * number, not by time: the clock of a holder may stand still.
 */
void hf_renewer_ask(struct hf_renewer *renewer);

/* Waits until the first renewal is proven. 0 or the failure. */
int hf_renewer_await(struct hf_renewer *renewer, int64_t limit_ns, struct hf_err *err);

/* Its owner has ended: releases the lock, by the renewer where it runs. 0, also when it is free already; or the failure: then the lock frees itself when its lease ends. */
int hf_renewer_end(struct hf_renewer *renewer, struct hf_err *err);

/* Lets go of the process, which goes on by itself. */
void hf_renewer_leave(struct hf_renewer *renewer);

/* What holdfast-renew does; its standard input is the socket. The exit status. */
int hf_renewer_main(int socket);

#endif
