/* lock/etcd/inspect.c - the state of locks for people and programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/scan.h"
#include "hf/lock/holder.h"

#define WAITERS_MAX 20000

/* What is put together of one lock. */
struct picture {
	struct hf_lock_info info;
	struct hf_holder *holders;
	struct hf_waiter *waiters;
};

static void picture_done(struct picture *p)
{
	free(p->holders);
	free(p->waiters);
}

/* Room for that many. */
static int picture_new(struct picture *p, size_t holds, size_t places)
{
	p->holders = calloc(holds * HF_ETCD_OWNERS + 1, sizeof(*p->holders));
	p->waiters = calloc(places + 1, sizeof(*p->waiters));
	p->info.holders = p->holders;
	p->info.waiters = p->waiters;
	return p->holders && p->waiters ? 0 : -ENOMEM;
}

static void add_hold(struct hf_etcd *etcd, struct picture *p, const struct hf_etcd_hold *hold)
{
	for (unsigned i = 0; i < hold->n_owners; i++)
		hf_etcd_show(etcd, hold, i, 1, &p->holders[p->info.n_holders++]);
}

static void add_waiter(struct hf_etcd *etcd, struct picture *p, const struct hf_place *place)
{
	char evidence[HF_EVIDENCE_MAX];
	struct hf_waiter *waiter = &p->waiters[p->info.n_waiters];

	if (place->holds || !place->readable ||
	    hf_holder_liveness(hf_etcd_judge(etcd, &place->waiter.owner, NULL, evidence)) == HF_DEAD)
		return;
	*waiter = (struct hf_waiter){ .id = place->waiter.owner.id, .thread = place->waiter.owner.thread, .mode = place->mode,
				      .waited_ns = hf_wall_now().ns - place->since_ms * HF_MSEC };
	if (waiter->waited_ns < 0)
		waiter->waited_ns = 0; /* another machine's clock */
	hf_copy_text(waiter->host, sizeof(waiter->host), place->waiter.name[0] ? place->waiter.name : place->waiter.owner.host);
	p->info.n_waiters++;
}

int hf_etcd_look(struct hf_store *store, const struct hf_lock_ref *lock, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_etcd_state_free) struct hf_etcd_state state = { 0 };
	AUTO(picture_done) struct picture p = { 0 };
	struct hf_etcd *etcd = hf_etcd_of(store);
	struct hf_etcd_keys keys;
	int r = hf_etcd_keys_of(etcd, lock, &keys, err);

	if (r == 0)
		r = hf_etcd_state_read(etcd, &keys, NULL, WAITERS_MAX, &state, err);
	if (r < 0)
		return r;
	if (state.last_mod == 0 && state.n_places == 0 && state.n_holds == 0)
		return FAIL(err, HF_E_NOT_HELD, "look", lock->name, "no such lock");
	if (picture_new(&p, state.n_holds, state.n_places) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", lock->name);
	p.info.kind = lock->kind;
	p.info.name = lock->name;
	p.info.token = state.token;
	p.info.slots = state.slots;
	for (size_t i = 0; i < state.n_holds; i++)
		add_hold(etcd, &p, &state.holds[i]);
	for (size_t i = 0; i < state.n_places; i++)
		add_waiter(etcd, &p, &state.places[i]);
	fn(arg, &p.info);
	return 0;
}

/* -- all of them --------------------------------------------------------------------------- */

struct all {
	struct hf_etcd_scan places, holds, lasts;
};

static void all_done(struct all *all)
{
	hf_etcd_scan_done(&all->places);
	hf_etcd_scan_done(&all->holds);
	hf_etcd_scan_done(&all->lasts);
}

static int by_order(const void *a, const void *b)
{
	const struct hf_etcd_scan_item *x = a, *y = b;

	return x->place.create < y->place.create ? -1 : x->place.create > y->place.create;
}

static int read_all(struct hf_etcd *etcd, int kind, struct all *ret, struct hf_err *err)
{
	int r = hf_etcd_scan_read(etcd, 'q', kind, &ret->places, err);

	ret->holds.revision = ret->lasts.revision = ret->places.revision;
	if (r == 0)
		r = hf_etcd_scan_read(etcd, 'h', kind, &ret->holds, err);
	if (r == 0)
		r = hf_etcd_scan_read(etcd, 'n', kind, &ret->lasts, err);
	if (r == 0 && ret->places.n > 0)
		qsort(ret->places.items, ret->places.n, sizeof(*ret->places.items), by_order);
	return r;
}

static int is_of(const struct hf_etcd_scan_item *item, const struct hf_etcd_scan_item *lock)
{
	return item->kind == lock->kind && strcmp(item->name, lock->name) == 0;
}

static int show_one(struct hf_etcd *etcd, struct all *all, const struct hf_etcd_scan_item *lock, int waited_only, hf_lock_look_fn *fn,
		    void *arg)
{
	AUTO(picture_done) struct picture p = { 0 };

	if (picture_new(&p, all->holds.n, all->places.n) < 0)
		return -ENOMEM;
	p.info.kind = lock->kind;
	p.info.name = lock->name;
	p.info.token = lock->token;
	p.info.slots = lock->slots;
	for (size_t i = 0; i < all->places.n; i++)
		if (is_of(&all->places.items[i], lock))
			add_waiter(etcd, &p, &all->places.items[i].place);
	if (waited_only && p.info.n_waiters == 0)
		return 0;
	for (size_t i = 0; i < all->holds.n; i++) {
		struct hf_etcd_hold *hold = &all->holds.items[i].hold;

		if (!is_of(&all->holds.items[i], lock))
			continue;
		for (size_t k = 0; k < all->places.n; k++)
			if (is_of(&all->places.items[k], lock) && strcmp(all->places.items[k].place.id, hold->place) == 0)
				hold->create = all->places.items[k].place.create;
		add_hold(etcd, &p, hold);
	}
	fn(arg, &p.info);
	return 0;
}

static int show_all(struct hf_store *store, int kind, int waited_only, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(all_done) struct all all = { 0 };
	struct hf_etcd *etcd = hf_etcd_of(store);
	int r = read_all(etcd, kind, &all, err);

	for (size_t i = 0; i < all.lasts.n && r == 0; i++)
		if (show_one(etcd, &all, &all.lasts.items[i], waited_only, fn, arg) < 0)
			r = hf_fail_sys(err, ENOMEM, "memory", "etcd");
	return r;
}

int hf_etcd_list(struct hf_store *store, enum hf_lock_kind kind, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	return show_all(store, (int)kind, 0, fn, arg, err);
}

int hf_etcd_list_waited(struct hf_store *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	return show_all(store, -1, 1, fn, arg, err);
}
