/*
 * lock/local/deadlock/deadlock.c - would this wait ever end?
 *
 * In the graph of waits (waitgraph.h) everything that may go on by itself is struck out, then what
 * thereby may go on, and so forth. What remains is stuck for good. If our wait is among it, and the
 * way from it leads back to it, it closed a cycle: it is told, and nobody else, for waits
 * that began after ours count as free.
 *
 * The graph is not read in one moment. So it is read twice, and believed only if all that is stuck is the
 * same: the same tickets (given once, so that waiter waited all the time), the same tokens (so
 * that owner held all the time), and sleeping parents that have not run since (blocked.h). Then all
 * of it was so at the moment between the two readings, and a true deadlock does not end.
 */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/lock/local/deadlock/deadlock.h"
#include "hf/lock/local/deadlock/waitgraph.h"

int64_t hf_deadlock_first_ns = 50 * HF_MSEC;

static int leads_to_stuck(const struct hf_graph *g, const struct hf_node *node)
{
	size_t stuck = 0;

	for (size_t i = 0; i < node->n; i++)
		stuck += (size_t)g->nodes[g->edges[node->first + i]].stuck;
	return node->all ? node->n > 0 && stuck == node->n : stuck > 0;
}

/* Strikes out what may go on, until nothing more does. */
static void find_stuck(struct hf_graph *g)
{
	int changed = 1;

	for (size_t i = 0; i < g->n_nodes; i++)
		g->nodes[i].stuck = 1;
	while (changed) {
		changed = 0;
		for (size_t i = 0; i < g->n_nodes; i++)
			if (g->nodes[i].stuck && !leads_to_stuck(g, &g->nodes[i])) {
				g->nodes[i].stuck = 0;
				changed = 1;
			}
	}
}

/* The shortest way from node 0 through what is stuck back to it. Its length, 0: there is none. */
static size_t find_cycle(const struct hf_graph *g, uint16_t way[HF_GRAPH_NODES_MAX])
{
	uint16_t from[HF_GRAPH_NODES_MAX], queue[HF_GRAPH_NODES_MAX];
	uint8_t seen[HF_GRAPH_NODES_MAX] = { 0 };
	size_t n = 0, length = 0;

	if (!g->nodes[0].stuck)
		return 0;
	queue[n++] = 0;
	for (size_t at = 0; at < n; at++) {
		const struct hf_node *node = &g->nodes[queue[at]];

		for (size_t i = 0; i < node->n; i++) {
			uint16_t to = g->edges[node->first + i];

			if (!g->nodes[to].stuck || seen[to])
				continue;
			seen[to] = 1;
			from[to] = queue[at];
			if (to != 0)
				queue[n++] = to;
		}
	}
	if (!seen[0])
		return 0;
	/* Backwards, and then turned round. */
	for (uint16_t at = from[0]; at != 0; at = from[at])
		way[length++] = at;
	way[length++] = 0;
	for (size_t i = 0; i < length / 2; i++) {
		uint16_t other = way[length - 1 - i];

		way[length - 1 - i] = way[i];
		way[i] = other;
	}
	return length;
}

/* A number for all that is stuck, and for what proves that it has not moved. */
static uint64_t print_of(const struct hf_graph *g)
{
	uint64_t print = 0;

	for (size_t i = 0; i < g->n_nodes; i++) {
		const struct hf_node *node = &g->nodes[i];
		uint64_t parts[] = { print,
				     (uint64_t)node->kind,
				     node->lock ? (uint64_t)node->lock->dir->kind : 0,
				     node->entry ? node->entry->ticket : 0,
				     node->token,
				     (uint64_t)node->id.pid,
				     node->id.start_ticks,
				     (uint64_t)node->thread,
				     node->switches,
				     node->n };

		if (node->stuck)
			print = XXH3_64bits(parts, sizeof(parts)) ^
				(node->lock ? XXH3_64bits(node->lock->key, strlen(node->lock->key)) : 0);
	}
	return print;
}

static void tell_wait(struct hf_buf *text, const struct hf_waited_lock *lock)
{
	enum hf_lock_kind kind = lock->dir->kind;

	hf_buf_add_text(text, " waits for ");
	if (kind != HF_LOCK_KIND_NAME)
		hf_buf_add_format(text, "%s ", hf_lock_kind_word(kind));
	hf_buf_add_format(text, "'%s'", lock->name);
}

/* "pid 7 waits for 'a', held by pid 3, which waits for its child 5, which waits for ..." */
static void tell_cycle(const struct hf_graph *g, const uint16_t *way, size_t length, char *out,
		       size_t cap)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	for (size_t i = 0; i < length; i++) {
		const struct hf_node *node = &g->nodes[way[i]];
		enum hf_node_kind before = i > 0 ? g->nodes[way[i - 1]].kind : HF_NODE_WAIT;

		switch (node->kind) {
		case HF_NODE_WAIT:
			if (i > 0 && before != HF_NODE_PROCESS)
				hf_buf_add_format(&text, ", queued after pid %d,",
						  (int)node->entry->waiter.pid);
			if (i == 0)
				hf_buf_add_format(&text, "pid %d", (int)node->entry->waiter.pid);
			else
				hf_buf_add_text(&text, " which");
			tell_wait(&text, node->lock);
			break;
		case HF_NODE_PROCESS:
			hf_buf_add_format(&text,
					  before == HF_NODE_PROCESS ? " which waits for its child %d"
								    : ", held by pid %d",
					  (int)node->id.pid);
			break;
		case HF_NODE_TREE:
			hf_buf_add_format(&text,
					  ", the name of its own session (pid %d), which keeps it "
					  "until pid %d has ended",
					  (int)node->id.pid, (int)node->entry->waiter.pid);
			break;
		case HF_NODE_SLOTS:
		case HF_NODE_HOLD:
			break;
		}
	}
	(void)snprintf(out, cap, "%s", text.s ? text.s : "");
}

int hf_deadlock_check(struct hf_local *locks, const struct hf_lock_ref *lock,
		      const struct hf_lock_entry *entry, char *ret_cycle, size_t cap)
{
	uint64_t print = 0;

	for (int i = 0; i < 2; i++) {
		AUTO(hf_graph_free) struct hf_graph *g = NULL;
		uint16_t way[HF_GRAPH_NODES_MAX];
		size_t length;

		if (hf_graph_read(locks, lock, entry, &g) < 0)
			return 0;
		find_stuck(g);
		length = find_cycle(g, way);
		if (length == 0 || (i > 0 && print_of(g) != print))
			return 0;
		print = print_of(g);
		tell_cycle(g, way, length, ret_cycle, cap);
	}
	return 1;
}
