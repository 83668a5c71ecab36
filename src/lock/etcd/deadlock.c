/*
 * lock/etcd/deadlock.c - waits that would never end, over all machines.
 *
 * One range over all queues is a picture of every wait and every hold at one moment, which the local store does not have. An owner that
 * waits is stuck while those that it waits for are: for an exclusive or a shared hold each holder and each waiter of another mode
 * before it, for a slot all holders. What is not stuck is taken out until nothing changes; if a way through the rest leads from
 * our wait back to it, we are in a cycle. The wait of the cycle that began last gives up, so exactly one does.
 *
 * Owners are processes (or threads) that wait here; that a process waits for its child is not known of other machines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/scan.h"

struct graph {
	struct hf_etcd_scan scan;
	unsigned char *stuck;  /* of each place: it waits, and that may never end */
	unsigned char *seen;
	size_t *way;
	size_t length;
};

static void graph_done(struct graph *g)
{
	hf_etcd_scan_done(&g->scan);
	free(g->stuck);
	free(g->seen);
	free(g->way);
}

static const struct hf_etcd_scan_item *item(const struct graph *g, size_t i)
{
	return &g->scan.items[i];
}

static int is_same_lock(const struct graph *g, size_t a, size_t b)
{
	return item(g, a)->kind == item(g, b)->kind && strcmp(item(g, a)->name, item(g, b)->name) == 0;
}

/* Is `other` in the way of the waiter `i`: a holder, or a waiter before it that is not to be let in beside it? */
static int is_before(const struct graph *g, size_t i, size_t other)
{
	const struct hf_place *own = &item(g, i)->place, *before = &item(g, other)->place;

	if (i == other || before->create > own->create || !is_same_lock(g, i, other))
		return 0;
	return before->holds || before->mode != own->mode || own->mode == HF_LOCK_EXCLUSIVE;
}

/* A wait of the owner of place `i`, from `from` on; the number of places when there is none. */
static size_t wait_of(const struct graph *g, size_t i, size_t from)
{
	for (size_t k = from; k < g->scan.n; k++)
		if (g->stuck[k] && hf_etcd_owner_equal(&item(g, k)->place.owner.owner, &item(g, i)->place.owner.owner))
			return k;
	return g->scan.n;
}

/* Does what is at place `i` go on? A waiter while its own wait does, a holder while its owner does not wait in vain. */
static int goes_on(const struct graph *g, size_t i)
{
	return item(g, i)->place.holds ? wait_of(g, i, 0) == g->scan.n : !g->stuck[i];
}

static int is_stuck(const struct graph *g, size_t i)
{
	int blockers = 0, free_ones = 0;

	for (size_t k = 0; k < g->scan.n; k++) {
		if (!is_before(g, i, k))
			continue;
		blockers++;
		free_ones += goes_on(g, k);
	}
	/* One slot that becomes free is enough. */
	if (item(g, i)->place.mode == HF_LOCK_SLOTS)
		return blockers > 0 && free_ones == 0;
	return blockers > free_ones;
}

static void find_stuck(struct graph *g)
{
	int changed = 1;

	for (size_t i = 0; i < g->scan.n; i++)
		g->stuck[i] = !item(g, i)->place.holds && item(g, i)->place.readable;
	while (changed) {
		changed = 0;
		for (size_t i = 0; i < g->scan.n; i++)
			if (g->stuck[i] && !is_stuck(g, i)) {
				g->stuck[i] = 0;
				changed = 1;
			}
	}
}

/* From the wait `i` to `target`, through waits that are stuck. The way has each wait on it. */
static int find_way(struct graph *g, size_t i, size_t target)
{
	g->way[g->length++] = i;
	g->seen[i] = 1;
	for (size_t k = 0; k < g->scan.n; k++) {
		size_t next;

		if (!is_before(g, i, k) || goes_on(g, k))
			continue;
		for (next = item(g, k)->place.holds ? wait_of(g, k, 0) : k; next < g->scan.n; next = wait_of(g, k, next + 1)) {
			if (next == target)
				return 1;
			if (!g->seen[next] && find_way(g, next, target))
				return 1;
			if (!item(g, k)->place.holds)
				break;
		}
	}
	g->length--;
	return 0;
}

static void tell_owner(struct hf_buf *text, const struct hf_place *place)
{
	hf_buf_add_format(text, "pid %d on %s", (int)place->owner.owner.id.pid,
			  place->owner.name[0] ? place->owner.name : place->owner.owner.host);
}

/* "pid 7 on a waits for 'x', held by pid 3 on b, which waits for 'y'" */
static void tell_cycle(const struct graph *g, char *out, size_t cap)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	for (size_t i = 0; i < g->length; i++) {
		const struct hf_etcd_scan_item *wait = item(g, g->way[i]);

		if (i > 0)
			hf_buf_add_text(&text, ", before it ");
		tell_owner(&text, &wait->place);
		hf_buf_add_text(&text, " waits for ");
		if (wait->kind != HF_LOCK_KIND_NAME)
			hf_buf_add_format(&text, "%s ", hf_lock_kind_word(wait->kind));
		hf_buf_add_format(&text, "'%s'", wait->name);
	}
	(void)snprintf(out, cap, "%s", text.s);
}

/* No cycle leads through an owner that holds nothing. There are fewer holders than waiters, so that is asked first. */
static int holds_something(struct hf_etcd *etcd, const struct hf_owner *owner)
{
	AUTO(hf_etcd_scan_done) struct hf_etcd_scan scan = { 0 };

	if (hf_etcd_scan_read(etcd, 'h', -1, &scan, NULL) < 0)
		return 0;
	for (size_t i = 0; i < scan.n; i++)
		for (unsigned k = 0; k < scan.items[i].hold.n_owners; k++)
			if (hf_etcd_owner_equal(&scan.items[i].hold.owners[k].owner, owner))
				return 1;
	return 0;
}

int hf_etcd_deadlock(struct hf_etcd *etcd, const struct hf_place *mine, char *ret_cycle, size_t cap)
{
	AUTO(graph_done) struct graph g = { 0 };
	size_t own = SIZE_MAX;

	if (!holds_something(etcd, &mine->owner.owner) || hf_etcd_scan_read(etcd, 'q', -1, &g.scan, NULL) < 0 || g.scan.n == 0)
		return 0;
	g.stuck = calloc(g.scan.n, 1);
	g.seen = calloc(g.scan.n, 1);
	g.way = calloc(g.scan.n + 1, sizeof(*g.way));
	if (!g.stuck || !g.seen || !g.way)
		return 0;
	for (size_t i = 0; i < g.scan.n; i++)
		if (strcmp(item(&g, i)->place.id, mine->id) == 0)
			own = i;
	if (own == SIZE_MAX)
		return 0;
	find_stuck(&g);
	if (!g.stuck[own] || !find_way(&g, own, own))
		return 0;
	for (size_t i = 0; i < g.length; i++)
		if (item(&g, g.way[i])->place.create > mine->create)
			return 0; /* that one is told */
	tell_cycle(&g, ret_cycle, cap);
	return 1;
}
