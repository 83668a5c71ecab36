/* lock/etcd/renew.c - renewing a hold, and what its renewer does with it. */
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/found.h"
#include "hf/lock/etcd/wire/watch.h"

/* A lease cannot change its length: the place gets another one. 1, 0: it changed, or a failure. */
static int replace_lease(struct hf_etcd_found *f, const struct hf_etcd_hold *hold, int64_t ttl_ns, struct hf_err *err)
{
	struct hf_etcd_hold longer = *hold;
	struct hf_lease lease;
	int r = hf_lease_grant(f->etcd, ttl_ns, &lease, err);

	if (r < 0)
		return r;
	longer.lease = lease.id;
	longer.ttl_ns = lease.ttl_ns;
	r = hf_etcd_hold_rewrite(f->etcd, &f->keys, hold, &longer, err);
	hf_lease_revoke(f->etcd, r == 1 ? hold->lease : lease.id);
	return r;
}

/* Reads the hold of `token`; refuses what is not current. */
static int read_kept(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_etcd_kept *ret, struct hf_err *err)
{
	AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
	struct hf_etcd_hold *hold = NULL;
	int r = hf_etcd_found_read_current(&etcd->base, lock, "renew", token, &f, &hold, err);

	if (r < 0)
		return r;
	ret->keys = f.keys;
	ret->hold = *hold;
	ret->known = 1;
	return 0;
}

/* A proof failed on what was read just now. 0: the hold has another lease by now; else it is lost. */
static int check_lease(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, int64_t lease, struct hf_err *err)
{
	AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
	const struct hf_etcd_hold *hold;
	int r = hf_etcd_found_read(&etcd->base, lock, &f, err);

	if (r < 0)
		return r;
	hold = hf_etcd_found_hold(&f, token);
	if (!hold || hold->create == 0 || hold->lease == lease)
		return hf_etcd_found_refuse(&f, HF_E_STALE, "renew", "its lease has ended, or it was broken", err);
	return 0;
}

int hf_etcd_renew_proven(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_etcd_kept *kept,
			 struct hf_lease *ret, struct hf_err *err)
{
	for (int i = 0; i < HF_ETCD_CHANGES_MAX; i++) {
		int was_known = kept->known;
		int r = was_known ? 0 : read_kept(etcd, lock, token, kept, err);

		if (r < 0)
			return r;
		r = hf_etcd_prove_place(etcd, &kept->keys, &kept->hold, &kept->place, ret, err);
		if (r != HF_E_STALE)
			return r;
		kept->known = 0;
		if (!was_known)
			r = check_lease(etcd, lock, token, kept->hold.lease, err);
		if (!was_known && r < 0)
			return r;
	}
	return FAIL(err, HF_E_STORE, "renew", lock->name, "it keeps changing");
}

int hf_etcd_renew(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, int64_t ttl_ns, struct hf_err *err)
{
	int64_t whole = (ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC;
	struct hf_etcd_kept kept = { 0 };
	struct hf_lease lease;

	for (int i = 0; i < HF_ETCD_CHANGES_MAX && ttl_ns > 0; i++) {
		AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
		struct hf_etcd_hold *hold = NULL;
		int r = hf_etcd_found_read_current(store, lock, "renew", token, &f, &hold, err);

		if (r < 0)
			return r;
		if (whole == hold->ttl_ns)
			break;
		r = replace_lease(&f, hold, ttl_ns, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return hf_etcd_renew_proven(hf_etcd_of(store), lock, token, &kept, &lease, err);
}

int hf_etcd_abandon(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_err *err)
{
	AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
	struct hf_etcd_hold *hold = NULL;
	int r = hf_etcd_found_read_current(&etcd->base, lock, "release", token, &f, &hold, err);

	if (r < 0)
		return r;
	if (hold->flags & HF_LOCK_FREE_ON_EXIT) {
		r = hf_etcd_found_remove(&f, hold, err);
		r = r < 0 ? r : 0;
	}
	hf_lease_revoke(etcd, hold->lease);
	return r;
}

int hf_etcd_place_of(struct hf_etcd *etcd, const struct hf_lock_ref *lock, uint64_t token, struct hf_watch_aim *ret,
		     struct hf_err *err)
{
	AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
	const struct hf_etcd_hold *hold;
	int r = hf_etcd_found_read(&etcd->base, lock, &f, err);

	if (r < 0)
		return r;
	hold = hf_etcd_found_hold(&f, token);
	if (!hold || hold->create == 0)
		return FAIL(err, HF_E_STALE, "watch", lock->name, "that token is not current");
	hf_etcd_place_key(&f.keys, hold->place, ret->key);
	ret->revision = f.state.revision + 1;
	for (size_t i = 0; i < f.state.n_places; i++)
		if (strcmp(f.state.places[i].id, hold->place) == 0)
			hf_copy_text(ret->asked, sizeof(ret->asked), f.state.places[i].asked);
	return 0;
}
