/* cli/lock/lease.h - the lease of a command's lock: renewed here, or by another process where the store is elsewhere. */
#ifndef CLI_LOCK_LEASE_H
#define CLI_LOCK_LEASE_H

#include "cli.h"
#include "hf/exec/tree.h"
#include "hf/lock/lease/renewal.h"
#include "hf/lock/lease/renewer.h"

struct lease {
	struct hf_lock *lock; /* NULL: the command runs without */
	int elsewhere;        /* the store is another machine's */
	int lost;
	int asked;              /* TERM was sent */
	struct hf_mono kill_at; /* after TERM */
	/* Here. */
	struct hf_renewal renewal;
	/* Elsewhere. */
	struct hf_renewer renewer;
	struct hf_proc_id owner;
	struct hf_mono start_at; /* the renewer: a command that ends at once needs none */
};

#define LEASE_INIT { .renewer = HF_RENEWER_INIT }

/* Begins with the lock that was acquired just now; `elsewhere` is what hf_locks_lease says. 0 or -errno. */
int lease_begin(struct lease *lease, int64_t ttl_ns, int elsewhere, const struct hf_proc_id *owner);

/* Two descriptors to poll (-1: none), and until when. */
void lease_poll(const struct lease *lease, int ret_fds[2], struct hf_mono *ret_until);

/* What is due: renewing, or ending a command whose lease is lost. */
void lease_step(struct cli *cli, struct lease *lease, struct hf_tree *tree);

/*
 * Is it lost, or was the command asked to end because it soon may be? Hears the renewer first, which may have ended the command.
 * Everything that the command started has to go, and its status counts for nothing: agents exit 0 on TERM.
 */
int lease_is_lost(struct cli *cli, struct lease *lease, struct hf_tree *tree);

/* The command has ended: gives the lock back. Says what went wrong. */
void lease_end(struct cli *cli, struct lease *lease);

/* A lock of a store elsewhere, kept for `owner` by a process that stays behind. 0 or a failure. */
int lease_keep_for(struct hf_lock *lock, int64_t ttl_ns, const struct hf_proc_id *owner, struct hf_err *err);

#endif
