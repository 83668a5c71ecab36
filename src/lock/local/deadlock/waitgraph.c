/* lock/local/deadlock/waitgraph.c - from a wait to what it waits for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/deadlock/waitgraph.h"
#include "hf/proc/blocked.h"
#include "hf/proc/judge.h"
#include "hf/proc/stat.h"

/* -- nodes ------------------------------------------------------------------------ */

static int is_same_node(const struct hf_node *a, const struct hf_node *b)
{
	if (a->kind != b->kind || a->lock != b->lock || a->entry != b->entry ||
	    a->token != b->token)
		return 0;
	return (a->kind != HF_NODE_PROCESS && a->kind != HF_NODE_TREE) ||
	       (a->thread == b->thread && hf_proc_equal(&a->id, &b->id));
}

/* The node that is like `wanted`, added if it is new; -1 when there is no room. */
static int find_node(struct hf_graph *g, const struct hf_node *wanted)
{
	for (size_t i = 0; i < g->n_nodes; i++)
		if (is_same_node(&g->nodes[i], wanted))
			return (int)i;
	if (g->n_nodes == HF_GRAPH_NODES_MAX)
		return -1;
	g->nodes[g->n_nodes] = *wanted;
	return (int)g->n_nodes++;
}

/* One more edge of the node that is being expanded. One that lacks an edge is free. */
static void add_edge(struct hf_graph *g, struct hf_node *from, const struct hf_node *wanted)
{
	int to = g->n_edges == HF_GRAPH_EDGES_MAX ? -1 : find_node(g, wanted);

	if (to < 0 || from->first == SIZE_MAX) {
		from->first = SIZE_MAX;
		from->n = 0;
		return;
	}
	g->edges[g->n_edges++] = (uint16_t)to;
	from->n++;
}

static struct hf_node wait_node(const struct hf_waited_lock *lock, const struct hf_lock_entry *entry)
{
	return (struct hf_node){ .kind = HF_NODE_WAIT, .lock = lock, .entry = entry };
}

static struct hf_node hold_node(const struct hf_waited_lock *lock, uint64_t token)
{
	return (struct hf_node){ .kind = HF_NODE_HOLD, .all = 1, .lock = lock, .token = token };
}

/* -- processes ---------------------------------------------------------------------- */

/* Does its pid mean something in our /proc? */
static int is_visible(const struct hf_graph *g, const struct hf_proc_id *id)
{
	return g->sees_proc && id->pid_ns == g->locks->here.pid_ns &&
	       id->time_ns == g->locks->here.time_ns &&
	       strcmp(id->boot_id, g->locks->here.boot_id) == 0;
}

/* Reads what /proc has under its pid. 1 when that is still this process. */
static int read_stat(const struct hf_graph *g, const struct hf_proc_id *id, struct hf_stat *ret)
{
	return is_visible(g, id) && hf_stat_read(id->pid, ret) == 0 &&
	       ret->start_ticks == id->start_ticks && !hf_stat_is_dead(ret);
}

static int is_called(int32_t pid, const char *comm)
{
	char text[HF_COMM_MAX];

	hf_comm_read(pid, text);
	return strcmp(text, comm) == 0;
}

static int is_keeper(int32_t pid)
{
	char text[HF_COMM_MAX];

	hf_comm_read(pid, text);
	return hf_comm_is_keeper(text);
}

static void add_child(struct hf_graph *g, struct hf_node *from, int32_t pid)
{
	struct hf_node child = { .kind = HF_NODE_PROCESS, .id = g->locks->self };
	struct hf_stat st;

	child.id.pid = pid;
	child.id.pidfs_inode = 0;
	/* One that has ended since leads nowhere. */
	child.id.start_ticks = hf_stat_read(pid, &st) == 0 ? st.start_ticks : 0;
	add_edge(g, from, &child);
}

/* The wait in which that thread of the process sleeps. 1, or 0 none. */
static int add_own_wait(struct hf_graph *g, struct hf_node *from)
{
	struct hf_node wait;
	struct hf_stat st;
	int found = 0;

	for (size_t l = 0; l < g->waits.n; l++)
		for (size_t i = 0; i < g->waits.locks[l]->n_entries; i++) {
			const struct hf_lock_entry *entry = &g->waits.locks[l]->entries[i];

			if (!hf_proc_equal(&entry->waiter, &from->id))
				continue;
			wait = wait_node(g->waits.locks[l], entry);
			found = 1;
			if (from->thread != 0 && entry->waiter_thread == from->thread) {
				add_edge(g, from, &wait);
				return 1;
			}
		}
	/* Another thread of it: that is all of it only if it has no more. */
	if (found && read_stat(g, &from->id, &st) && st.threads == 1)
		add_edge(g, from, &wait);
	return found;
}

static void expand_process(struct hf_graph *g, struct hf_node *node)
{
	struct hf_blocked blocked;
	int32_t pid = node->id.pid;
	struct hf_stat st;

	if (add_own_wait(g, node) || !read_stat(g, &node->id, &st) || st.threads != 1)
		return;
	node->all = 1;
	if (is_keeper(pid) || is_called(pid, HF_COMM_LEASE) || is_called(pid, HF_COMM_EDIT)) {
		if (!hf_blocked_children(pid, &blocked))
			return;
	} else if (hf_blocked_on_children(pid, &blocked)) {
		node->switches = blocked.switches;
	} else {
		/* A supervisor waits for its keeper, whatever else became its child. */
		size_t n = hf_blocked_children(pid, &blocked) ? blocked.n : 0;

		blocked.n = 0;
		for (size_t i = 0; i < n; i++)
			if ((is_keeper(blocked.children[i]) ||
			     is_called(blocked.children[i], HF_COMM_REAPER)) &&
			    hf_same_program(pid, blocked.children[i]))
				blocked.children[blocked.n++] = blocked.children[i];
	}
	for (size_t i = 0; i < blocked.n; i++)
		add_child(g, node, blocked.children[i]);
}

/* -- locks ------------------------------------------------------------------------------ */

/* A lease that nobody renews runs out, and then the hold ends by itself. */
static int is_renewed(const struct hf_graph *g, const struct hf_lock_holder *holder)
{
	struct hf_stat st;

	return read_stat(g, &holder->id, &st) &&
	       (is_keeper(holder->id.pid) || is_called(st.ppid, HF_COMM_LEASE));
}

static void expand_hold(struct hf_graph *g, struct hf_node *node)
{
	const struct hf_lock_record *record = &node->lock->record;
	int renewed = 0;

	for (uint32_t i = 0; i < record->n_holders; i++) {
		const struct hf_lock_holder *h = &record->holders[i];

		if (h->token == node->token)
			renewed |= h->ttl_ms == 0 || is_renewed(g, h);
	}
	for (uint32_t i = 0; i < record->n_holders && renewed; i++) {
		const struct hf_lock_holder *h = &record->holders[i];
		struct hf_node owner = { .kind = HF_NODE_PROCESS, .id = h->id, .thread = h->thread };

		if (h->token == node->token)
			add_edge(g, node, &owner);
	}
}

static void expand_slots(struct hf_graph *g, struct hf_node *node)
{
	const struct hf_lock_record *record = &node->lock->record;

	for (uint32_t i = 0; i < record->n_holders; i++) {
		struct hf_node hold = hold_node(node->lock, record->holders[i].token);

		if (!(record->holders[i].flags & HF_HOLDER_JOINT))
			add_edge(g, node, &hold);
	}
}

/* A process of a session can never be given the session's own name. */
static void add_tree(struct hf_graph *g, struct hf_node *wait, const struct hf_lock_holder *holder)
{
	struct hf_node tree = { .kind = HF_NODE_TREE,
				.lock = wait->lock,
				.entry = wait->entry,
				.id = holder->id };
	struct hf_stat st;

	if (read_stat(g, &holder->id, &st) && is_called(holder->id.pid, HF_COMM_KEEPER) &&
	    is_visible(g, &wait->entry->waiter) &&
	    hf_descends_from(wait->entry->waiter.pid, holder->id.pid))
		add_edge(g, wait, &tree);
}

static void add_holds(struct hf_graph *g, struct hf_node *wait)
{
	const struct hf_lock_record *record = &wait->lock->record;

	if (wait->entry->mode == HF_LOCK_SLOTS && record->slots > 0) {
		struct hf_node slots = { .kind = HF_NODE_SLOTS, .all = 1, .lock = wait->lock };

		if (!hf_record_admits(record, HF_LOCK_SLOTS))
			add_edge(g, wait, &slots);
		return;
	}
	for (uint32_t i = 0; i < record->n_holders; i++) {
		const struct hf_lock_holder *holder = &record->holders[i];
		struct hf_node hold = hold_node(wait->lock, holder->token);

		if (wait->entry->mode == HF_LOCK_SHARED && holder->flags & HF_HOLDER_SHARED)
			continue;
		add_tree(g, wait, holder);
		if (!(holder->flags & HF_HOLDER_JOINT))
			add_edge(g, wait, &hold);
	}
}

static int is_live(const struct hf_waited_lock *lock, const struct hf_lock_entry *entry)
{
	return hf_channel_is_open(lock->dir, lock->key, entry->ticket);
}

/* Of two waits, the one that closed a cycle is the later one. */
static int is_later(const struct hf_lock_entry *a, const struct hf_lock_entry *b)
{
	if (a->since_ns != b->since_ns)
		return a->since_ns > b->since_ns;
	if (a->waiter.pid != b->waiter.pid)
		return a->waiter.pid > b->waiter.pid;
	return a->waiter_thread > b->waiter_thread;
}

static void expand_wait(struct hf_graph *g, struct hf_node *node)
{
	const struct hf_waited_lock *lock = node->lock;

	if (is_later(node->entry, g->us) || !is_live(lock, node->entry))
		return;
	add_holds(g, node);
	/* One that could enter beside the holders waits for those before it, in their turn. An
	 * exclusive wait already has an edge to each hold. */
	for (size_t i = 0; i < lock->n_entries && node->entry->mode != HF_LOCK_EXCLUSIVE; i++) {
		const struct hf_lock_entry *before = &lock->entries[i];
		struct hf_node wait = wait_node(lock, before);

		if (before->ticket >= node->entry->ticket)
			break;
		if (before->mode == node->entry->mode || !is_live(lock, before))
			continue;
		add_edge(g, node, &wait);
		break;
	}
}

static void expand(struct hf_graph *g, struct hf_node *node)
{
	node->first = g->n_edges;
	switch (node->kind) {
	case HF_NODE_WAIT:
		expand_wait(g, node);
		break;
	case HF_NODE_SLOTS:
		expand_slots(g, node);
		break;
	case HF_NODE_HOLD:
		expand_hold(g, node);
		break;
	case HF_NODE_PROCESS:
		expand_process(g, node);
		break;
	case HF_NODE_TREE: {
		struct hf_node wait = wait_node(node->lock, node->entry);

		add_edge(g, node, &wait);
		break;
	}
	}
}

/* Our own wait: node 0. */
static int add_first(struct hf_graph *g, const struct hf_lock_ref *wanted)
{
	for (size_t l = 0; l < g->waits.n; l++) {
		const struct hf_waited_lock *lock = g->waits.locks[l];

		if (lock->dir->kind != wanted->kind || strcmp(lock->name, wanted->name) != 0)
			continue;
		for (size_t i = 0; i < lock->n_entries; i++)
			if (lock->entries[i].ticket == g->us->ticket &&
			    hf_proc_equal(&lock->entries[i].waiter, &g->us->waiter)) {
				g->nodes[g->n_nodes++] = wait_node(lock, &lock->entries[i]);
				return 0;
			}
	}
	return -ESRCH;
}

int hf_graph_read(struct hf_local *locks, const struct hf_lock_ref *lock,
		  const struct hf_lock_entry *us, struct hf_graph **ret)
{
	struct hf_graph *g = calloc(1, sizeof(*g));
	int r;

	*ret = g;
	if (!g)
		return -ENOMEM;
	g->locks = locks;
	g->us = us;
	g->sees_proc = hf_proc_is_ours();
	r = hf_waits_read(locks, &g->waits);
	if (r == 0)
		r = add_first(g, lock);
	for (size_t i = 0; r == 0 && i < g->n_nodes; i++)
		expand(g, &g->nodes[i]);
	return r;
}

void hf_graph_free(struct hf_graph **graph)
{
	if (*graph)
		hf_waits_done(&(*graph)->waits);
	free(*graph);
}
