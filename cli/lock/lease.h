/* cli/lock/lease.h - the lease of a command's lock: renewed here, or by another process if the store is on another machine. */
#ifndef CLI_LOCK_LEASE_H
#define CLI_LOCK_LEASE_H

#include "cli.h"
#include "hf/exec/tree.h"
#include "hf/lock/lease/renewal.h"
#include "hf/lock/lease/renewer.h"

struct lease {
	struct hf_lock *lock; /* NULL: the command runs without the lock */
	int elsewhere;        /* the store is on another machine */
	int lost;
	int asked;              /* TERM was sent */
	struct hf_mono kill_at; /* after TERM */
	/* For a local store. */
	struct hf_renewal renewal;
	/* For a store on another machine. */
	struct hf_renewer renewer;
	struct hf_proc_id owner;
	struct hf_mono start_at; /* when to start the renewer: a command that ends at once needs none */
};

#define LEASE_INIT { .renewer = HF_RENEWER_INIT }

/* Begins to keep the lease of a lock just acquired. `elsewhere`: hf_locks_lease() is not 0. Returns 0 or -errno. */
int lease_begin(struct lease *lease, int64_t ttl_ns, int elsewhere, const struct hf_proc_id *owner);

/* Gets two descriptors to poll (-1: none), and the time limit of the poll. */
void lease_poll(const struct lease *lease, int ret_fds[2], struct hf_mono *ret_until);

/* Renews the lease when due, or ends a command whose lease is lost. */
void lease_step(struct cli *cli, struct lease *lease, struct hf_tree *tree);

/*
 * Returns 1 if the lease is lost, or if the command was asked to end because it may soon be lost. Reads the renewer's messages
 * first, because the renewer may have ended the command. If the result is 1, end everything that the command started and ignore
 * its status: agents exit 0 on TERM.
 */
int lease_is_lost(struct cli *cli, struct lease *lease, struct hf_tree *tree);

/* Releases the lock after the command has ended. Reports failures. */
void lease_end(struct cli *cli, struct lease *lease);

/* Leaves a process behind that renews a lock in another machine's store for `owner`. Returns 0 or a negative error. */
int lease_keep_for(struct hf_lock *lock, int64_t ttl_ns, const struct hf_proc_id *owner, struct hf_err *err);

#endif
