/* lock/etcd/verbs.c - releasing, renewing, checking and breaking: what owners and tokens may do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/found.h"
#include "hf/lock/holder.h"
#include "hf/proc/judge.h"

/* -- release --------------------------------------------------------------------------------- */

/* The hold that `token` (or else `owner`) means; refuses otherwise. */
static int find_hold(struct hf_etcd_found *f, uint64_t token, const struct hf_proc_id *owner, struct hf_etcd_hold **ret,
		     struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX];

	if (token != 0)
		return hf_etcd_found_current(f, "release", token, ret, err);
	for (size_t i = 0; i < f->state.n_holds; i++)
		for (unsigned k = 0; k < f->state.holds[i].n_owners; k++) {
			const struct hf_owner *of = &f->state.holds[i].owners[k].owner;

			if (strcmp(of->host, f->etcd->host) == 0 && hf_proc_equal(&of->id, owner))
				return hf_etcd_found_current(f, "release", f->state.holds[i].token, ret, err);
		}
	for (size_t i = 0; i < f->state.n_holds; i++)
		if (f->state.holds[i].create != 0 && !hf_etcd_hold_is_dead(f->etcd, &f->state.holds[i], evidence))
			return hf_etcd_found_refuse(f, HF_E_NOT_OWNER, "release", "you are not its owner", err);
	return FAIL(err, HF_E_NOT_HELD, "release", f->lock->name, "it has no holder");
}

/* One that this handle took and nobody changed is released without reading it. 1: done; 0: read it; or a failure. */
static int release_known(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, struct hf_err *err)
{
	struct hf_etcd_found f = { .etcd = hf_etcd_of(store), .lock = lock };
	struct hf_etcd_hold hold;
	int r = hf_etcd_recall(f.etcd, token, &hold) ? hf_etcd_keys_of(f.etcd, lock, &f.keys, err) : -ENOENT;

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = hf_etcd_found_remove(&f, &hold, err);
	if (r == 1)
		hf_lease_let_go(f.etcd, hold.lease);
	return r;
}

int hf_etcd_release(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, const struct hf_proc_id *owner,
		    struct hf_err *err)
{
	int known = release_known(store, lock, token, err);

	if (known != 0)
		return known < 0 ? known : 0;
	for (int i = 0; i < HF_ETCD_CHANGES_MAX; i++) {
		AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
		struct hf_etcd_hold *hold = NULL;
		int r = hf_etcd_found_read(store, lock, &f, err);

		if (r == 0)
			r = find_hold(&f, token, owner, &hold, err);
		if (r < 0)
			return r;
		if (hold->count > 1) {
			struct hf_etcd_hold less = *hold;

			less.count--;
			r = hf_etcd_hold_rewrite(f.etcd, &f.keys, hold, &less, err);
		} else {
			r = hf_etcd_found_remove(&f, hold, err);
			if (r == 1)
				hf_lease_let_go(f.etcd, hold->lease);
		}
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return FAIL(err, HF_E_STORE, "release", lock->name, "it keeps changing");
}

/* -- check, add an owner, break ----------------------------------------------------------------- */

int hf_etcd_check(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, enum hf_lock_mode *ret_mode,
		  struct hf_err *err)
{
	AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
	struct hf_etcd_hold *hold = NULL;
	char evidence[HF_EVIDENCE_MAX];
	int r = hf_etcd_found_read(store, lock, &f, err);

	if (r < 0)
		return r;
	if (token != 0) {
		r = hf_etcd_found_current(&f, "check", token, &hold, err);
		if (r == 0 && ret_mode)
			*ret_mode = hold->mode;
		return r;
	}
	for (size_t i = 0; i < f.state.n_holds; i++)
		if (f.state.holds[i].create != 0 && !hf_etcd_hold_is_dead(f.etcd, &f.state.holds[i], evidence))
			return 0;
	return FAIL(err, HF_E_NOT_HELD, "check", lock->name, "it has no holder");
}

/* 1 when a second owner fits: each slot that is still free must be able to have one owner. */
static int has_room(const struct hf_etcd_found *f, const struct hf_etcd_hold *hold)
{
	unsigned owners = 0, holds = 0;

	for (size_t i = 0; i < f->state.n_holds; i++)
		if (f->state.holds[i].create != 0) {
			owners += f->state.holds[i].n_owners;
			holds++;
		}
	return owners + (hold->slots > holds ? hold->slots - holds : 0) < HF_LOCK_SLOTS_MAX;
}

int hf_etcd_add_owner(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, const struct hf_owner *owner,
		      struct hf_err *err)
{
	for (int i = 0; i < HF_ETCD_CHANGES_MAX; i++) {
		AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
		struct hf_etcd_hold *hold = NULL, both;
		struct hf_owner second = *owner;
		int r = hf_etcd_found_read_current(store, lock, "add owner", token, &f, &hold, err);

		if (r < 0)
			return r;
		if (hold->mode == HF_LOCK_SHARED || hold->n_owners != 1)
			return FAIL(err, -EINVAL, "add owner", lock->name,
				    "only an exclusive lock or a slot with one owner accepts a second owner");
		if (!has_room(&f, hold))
			return FAIL(err, -ENOSPC, "add owner", lock->name,
				    "no room for a second owner with that many slots");
		both = *hold;
		second.thread = 0; /* the process as a whole, whichever thread asked */
		both.owners[both.n_owners++] = hf_etcd_owner_here(f.etcd, &second);
		r = hf_etcd_hold_rewrite(f.etcd, &f.keys, hold, &both, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return FAIL(err, HF_E_STORE, "add owner", lock->name, "it keeps changing");
}

/* Deletes only, as a release. 1: done; 0: a holder has changed meanwhile; or a failure. */
static int remove_all(struct hf_etcd_found *f, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;
	int r;

	hf_txn_begin(&txn, &body);
	for (size_t i = 0; i < f->state.n_holds; i++) {
		hf_etcd_hold_key(&f->keys, f->state.holds[i].token, key);
		hf_txn_compare(&txn, "MOD", key, f->state.holds[i].mod);
	}
	hf_txn_then(&txn);
	for (size_t i = 0; i < f->state.n_holds; i++) {
		hf_etcd_place_key(&f->keys, f->state.holds[i].place, key);
		hf_txn_delete(&txn, key);
		hf_etcd_hold_key(&f->keys, f->state.holds[i].token, key);
		hf_txn_delete(&txn, key);
	}
	hf_txn_end(&txn);
	r = hf_etcd_call(f->etcd, "/v3/kv/txn", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, "break", f->lock->name, err);
	return r < 0 ? r : hf_answer_succeeded(&answer);
}

static void note_break(struct hf_etcd_found *f, const char *reason)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT, text = HF_BUF_INIT;

	for (size_t i = 0; i < f->state.n_holds; i++) {
		char holder[HF_HOLDER_TEXT_MAX];
		struct hf_holder shown;

		hf_etcd_show(f->etcd, &f->state.holds[i], 0, 0, &shown);
		hf_holder_text(&shown, holder, sizeof(holder));
		hf_lock_event(f->etcd->journal, HF_EV_LOCK_BROKEN, f->lock,
			      (struct hf_field[]){ HF_FIELD_TEXT("holder", holder), HF_FIELD_TEXT("reason", reason) }, 2);
		hf_lease_revoke(f->etcd, f->state.holds[i].lease);
	}
	/* For the holder, which sees only that its place is gone. */
	hf_buf_add_text(&text, "{\"v\":1,\"host\":");
	(void)hf_buf_add_json(&text, f->etcd->host_name, strlen(f->etcd->host_name), HF_HOST_NAME_MAX);
	hf_buf_add_text(&text, ",\"reason\":");
	(void)hf_buf_add_json(&text, reason, strlen(reason), 512);
	hf_buf_add_char(&text, '}');
	hf_buf_add_text(&body, "{\"key\":\"");
	hf_buf_add_base64(&body, f->keys.broken, strlen(f->keys.broken));
	hf_buf_add_text(&body, "\",\"value\":\"");
	hf_buf_add_base64(&body, text.s, text.len);
	hf_buf_add_text(&body, "\"}");
	(void)hf_etcd_call(f->etcd, "/v3/kv/put", &body, &answer, NULL);
}

int hf_etcd_take_away(struct hf_store *store, const struct hf_lock_ref *lock, const char *reason, struct hf_err *err)
{
	for (int i = 0; i < HF_ETCD_CHANGES_MAX; i++) {
		AUTO(hf_etcd_found_done) struct hf_etcd_found f = { 0 };
		int r = hf_etcd_found_read(store, lock, &f, err);

		if (r == 0 && f.state.n_holds == 0)
			r = FAIL(err, HF_E_NOT_HELD, "break", lock->name, "it has no holder");
		if (r < 0)
			return r;
		r = remove_all(&f, err);
		if (r == 1)
			note_break(&f, reason);
		if (r != 0)
			return r < 0 ? r : (int)f.state.n_holds;
	}
	return FAIL(err, HF_E_STORE, "break", lock->name, "it keeps changing");
}
