/*
 * lock/local/deadlock/waitgraph.h - which process waits for which, as far as it can be proven.
 *
 * The graph begins with one wait and holds what can be reached from it:
 *
 *   wait      -> the holds that keep it out, one of which is enough; of a lock with slots all of
 *                them; and the first waiter of another mode before it in the queue
 *   hold      -> its owners, all of them: either may release it
 *   process   -> the wait in which its thread sleeps; or the children for whose end it sleeps, all
 *                of them, for any may wake it; or, of ours, the children that it looks after
 *   tree      -> a wait for the name of a session in the session's own tree, which the
 *                keeper ends before it lets go of the name
 *
 * What leads nowhere is free: it may go on by itself. So is everything that is not known, and a wait that
 * began after the first: a deadlock through that one is that one's to find.
 */
#ifndef LOCK_LOCAL_DEADLOCK_WAITGRAPH_H
#define LOCK_LOCAL_DEADLOCK_WAITGRAPH_H

#include "hf/lock/local/deadlock/waits.h"

#define HF_GRAPH_NODES_MAX 1024 /* what is beyond counts as free */
#define HF_GRAPH_EDGES_MAX 8192

enum hf_node_kind { HF_NODE_WAIT, HF_NODE_SLOTS, HF_NODE_HOLD, HF_NODE_PROCESS, HF_NODE_TREE };

struct hf_node {
	enum hf_node_kind kind;
	int all; /* stuck only when all that it leads to is; else one is enough */
	const struct hf_waited_lock *lock; /* all but processes */
	const struct hf_lock_entry *entry; /* waits and trees */
	uint64_t token;                    /* holds */
	struct hf_proc_id id;              /* processes and trees: the keeper */
	int32_t thread;                    /* processes; 0: all of it */
	uint64_t switches;                 /* of one that sleeps until a child ends */
	size_t first, n;                   /* its edges */
	int stuck;
};

struct hf_graph {
	struct hf_local *locks;
	const struct hf_lock_entry *us;
	struct hf_waits waits;
	int sees_proc; /* /proc shows the pids that we know */
	struct hf_node nodes[HF_GRAPH_NODES_MAX];
	size_t n_nodes;
	uint16_t edges[HF_GRAPH_EDGES_MAX];
	size_t n_edges;
};

/*
 * Reads what there is to be known of the wait of `us` for `lock`: node 0. Returns 0; -ESRCH when there is
 * no such wait (any more); -errno. To be freed with hf_graph_free in both cases.
 */
int hf_graph_read(struct hf_local *locks, const struct hf_lock_ref *lock,
		  const struct hf_lock_entry *us, struct hf_graph **ret);
void hf_graph_free(struct hf_graph **graph);

#endif
