/*
 * run/fleet/agent.h - the process that holds a session's name in a store of several machines.
 *
 *     supervisor ── keeper ── the tree
 *                     │ socket
 *     init ── holdfast-renew (watcher) ── holdfast-renew (worker): libcurl, the lease
 *
 * Keeper and supervisor make no call over the network: the worker acquires the name, renews its lease, says what becomes of the session
 * (lock/board.h) and hears what it is asked for. Both count the lease on their own clock and end the tree before it ends. The agent is no
 * child of theirs, so it is no part of the tree and outlives them: the name is released when the record of the session says that its
 * tree is empty, and not before (L7). If supervisor and keeper are both killed, the agent ends the tree itself, as `reap` does.
 * A worker that is killed is replaced by its watcher, as long as the lease lasts.
 */
#ifndef RUN_FLEET_AGENT_H
#define RUN_FLEET_AGENT_H

#include "hf/base/buf.h"
#include "hf/run/session/record/record.h"

/* Does that URL name a store of several machines? */
int hf_fleet_is_store(const char *url);

/* Starts the agent of a session, before the caller becomes a subreaper. It does nothing until its order comes through the socket. */
int hf_fleet_spawn(const char *name, int *ret_socket, struct hf_err *err);

/* What holdfast-renew does for a session; never returns in the process that was started. The exit status. */
int hf_fleet_main(int socket);

/* What other machines are told about the session: JSON, fleet.h has the fields. */
void hf_fleet_facts(const struct hf_session_record *record, struct hf_buf *out);

#endif
