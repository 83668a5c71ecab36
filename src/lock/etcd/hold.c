/* lock/etcd/hold.c - a hold that is there: shown, changed, proven, and taken from the dead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/holder.h"

/* The term moved between the renewal and the read: it is repeated at once, but not for ever. */
#define PROOFS_MAX 3

void hf_etcd_show(struct hf_etcd *etcd, const struct hf_etcd_hold *hold, unsigned index, int ask, struct hf_holder *ret)
{
	const struct hf_etcd_owner *owner = &hold->owners[index];

	*ret = (struct hf_holder){ .id = owner->owner.id, .thread = owner->owner.thread, .token = hold->token,
				   .since = { hold->since_ms * HF_MSEC }, .mode = hold->mode, .count = hold->count };
	hf_copy_text(ret->host, sizeof(ret->host), owner->name[0] ? owner->name : owner->owner.host);
	ret->liveness = hf_holder_liveness(hf_etcd_judge(etcd, &owner->owner, NULL, ret->evidence));
	if (hold->create == 0)
		ret->lease_left_ns = 0;
	else
		ret->lease_left_ns = ask ? hf_lease_left(etcd, hold->lease) : hold->ttl_ns;
	/* The server counts in whole seconds; the place is there, so it has not ended. */
	if (hold->create != 0 && ret->lease_left_ns == 0)
		ret->lease_left_ns = HF_MSEC;
	/* Its lease is over, and the place went with it: nobody has to judge the process. */
	if (hold->create == 0 && ret->liveness == HF_UNKNOWN)
		hf_copy_text(ret->evidence, sizeof(ret->evidence), "its lease has ended without a release");
}

/* A transaction on a hold whose place and record must be as they were read. 1: done; 0: they are not; or a failure. */
static int change(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *from,
		  void (*write)(struct hf_txn *txn, void *arg), void *arg, struct hf_answer *answer, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char place[HF_ETCD_KEY_MAX], key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;
	int r;

	hf_etcd_place_key(keys, from->place, place);
	hf_etcd_hold_key(keys, from->token, key);
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", place, from->create);
	hf_txn_compare(&txn, "MOD", key, from->mod);
	hf_txn_then(&txn);
	write(&txn, arg);
	hf_txn_else(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = key });
	hf_txn_end(&txn);
	r = hf_etcd_call(etcd, "/v3/kv/txn", &body, answer, err);
	if (r == 0 && answer->code == HF_GRPC_NOT_FOUND)
		return 0; /* the new lease has ended already */
	if (r == 0 && answer->code != HF_GRPC_OK)
		r = hf_etcd_refused(answer, "change", "etcd", err);
	return r < 0 ? r : hf_answer_succeeded(answer);
}

struct rewrite {
	char place[HF_ETCD_KEY_MAX], key[HF_ETCD_KEY_MAX];
	const char *text, *place_text; /* place_text: the place gets the lease of `to` */
	int64_t lease;
};

static void write_hold(struct hf_txn *txn, void *arg)
{
	const struct rewrite *rewrite = arg;

	hf_txn_put(txn, rewrite->key, rewrite->text, 0);
	if (rewrite->place_text)
		hf_txn_put(txn, rewrite->place, rewrite->place_text, rewrite->lease);
}

int hf_etcd_hold_rewrite(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *from,
			 const struct hf_etcd_hold *to, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	AUTO_FREE char *text = hf_hold_text(to), *place_text = NULL;
	struct rewrite rewrite = { .text = text, .lease = to->lease };
	int r;

	if (to->lease != from->lease) {
		struct hf_place place = { .holds = 1, .mode = to->mode, .slots = to->slots, .token = to->token,
					  .owner = to->owners[0], .waiter = to->owners[0], .since_ms = to->since_ms };

		place_text = hf_place_text(&place);
		if (!place_text)
			return hf_fail_sys(err, ENOMEM, "memory", "etcd");
		rewrite.place_text = place_text;
	}
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", "etcd");
	hf_etcd_place_key(keys, from->place, rewrite.place);
	hf_etcd_hold_key(keys, from->token, rewrite.key);
	r = change(etcd, keys, from, write_hold, &rewrite, &answer, err);
	/* Of several tries the first may have done it: then what is stored is what we wrote. */
	if (r == 0 && answer.repeated && answer.code == HF_GRPC_OK &&
	    hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &kv) && strcmp(kv.value.s, text) == 0)
		r = 1;
	return r;
}

int hf_etcd_prove(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *hold,
		  struct hf_lease *ret, struct hf_err *err)
{
	struct hf_place place;

	return hf_etcd_prove_place(etcd, keys, hold, &place, ret, err);
}

int hf_etcd_prove_place(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *hold,
			struct hf_place *ret_place, struct hf_lease *ret, struct hf_err *err)
{
	char key[HF_ETCD_KEY_MAX];

	hf_etcd_place_key(keys, hold->place, key);
	for (int i = 0; i < PROOFS_MAX; i++) {
		AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
		AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
		AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
		struct hf_boot sent = hf_boot_now();
		int64_t ttl_ns;
		uint64_t term;
		int r = hf_lease_keep(etcd, hold->lease, &ttl_ns, &term, err);

		if (r < 0)
			return r;
		hf_buf_add_range(&body, &(struct hf_range){ .key = key });
		r = hf_etcd_call(etcd, "/v3/kv/range", &body, &answer, err);
		if (r == 0 && answer.code != HF_GRPC_OK)
			r = hf_etcd_refused(&answer, "renew", "etcd", err);
		if (r < 0)
			return r;
		if (!hf_kv_read(answer.json, 0, &kv) || kv.create != hold->create)
			return FAIL(err, HF_E_STALE, "renew", "etcd", "the lock was taken away");
		if (answer.term == term) {
			hf_place_read(&kv, ret_place);
			*ret = (struct hf_lease){ .id = hold->lease, .ttl_ns = ttl_ns, .since = sent };
			return 0;
		}
	}
	return FAIL(err, HF_E_STORE, "renew", "etcd", "the cluster changes its leader; the renewal is not proven");
}

/* -- what this handle has taken ------------------------------------------------------------- */

void hf_etcd_remember(struct hf_etcd *etcd, const struct hf_etcd_hold *hold)
{
	struct hf_etcd_taken *to;

	(void)pthread_mutex_lock(&etcd->mutex);
	to = &etcd->taken[etcd->next_taken++ % HF_ETCD_TAKEN_MAX];
	*to = (struct hf_etcd_taken){ .token = hold->token, .create = hold->create, .mod = hold->mod, .lease = hold->lease };
	hf_copy_text(to->place, sizeof(to->place), hold->place);
	(void)pthread_mutex_unlock(&etcd->mutex);
}

int hf_etcd_recall(struct hf_etcd *etcd, uint64_t token, struct hf_etcd_hold *ret)
{
	int found = 0;

	(void)pthread_mutex_lock(&etcd->mutex);
	for (int i = 0; i < HF_ETCD_TAKEN_MAX && !found; i++) {
		const struct hf_etcd_taken *from = &etcd->taken[i];

		if (token == 0 || from->token != token)
			continue;
		*ret = (struct hf_etcd_hold){ .token = token, .create = from->create, .mod = from->mod, .lease = from->lease, .count = 1 };
		hf_copy_text(ret->place, sizeof(ret->place), from->place);
		found = 1;
	}
	(void)pthread_mutex_unlock(&etcd->mutex);
	return found;
}

/* -- the dead of this machine --------------------------------------------------------------- */

/* Deletes a place, if it is still the same, and its lease. 1: it is gone. */
static int remove_place(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const char *id, int64_t create, int64_t lease)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;

	hf_etcd_place_key(keys, id, key);
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", key, create);
	hf_txn_then(&txn);
	hf_txn_delete(&txn, key);
	hf_txn_end(&txn);
	if (hf_etcd_call(etcd, "/v3/kv/txn", &body, &answer, NULL) < 0 || answer.code != HF_GRPC_OK)
		return 0;
	hf_lease_let_go(etcd, lease);
	return 1;
}

/* Of two owners the first to go loses nothing: the other still has it. */
static int drop_dead_owner(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_etcd_hold *hold)
{
	struct hf_etcd_hold rest = *hold;
	char evidence[HF_EVIDENCE_MAX];

	rest.n_owners = 0;
	for (unsigned i = 0; i < hold->n_owners; i++) {
		int verdict = hf_etcd_judge(etcd, &hold->owners[i].owner, NULL, evidence);

		if (verdict != HF_E_GONE && verdict != HF_E_RECYCLED)
			rest.owners[rest.n_owners++] = hold->owners[i];
	}
	return rest.n_owners > 0 && rest.n_owners < hold->n_owners &&
	       hf_etcd_hold_rewrite(etcd, keys, hold, &rest, NULL) == 1;
}

/* 1: it was that of a waiter of this host that is dead, and is removed. */
static int remove_dead_waiter(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_place *place)
{
	char evidence[HF_EVIDENCE_MAX];
	int verdict;

	if (place->create == 0 || !place->readable || place->holds)
		return 0;
	verdict = hf_etcd_judge(etcd, &place->waiter.owner, NULL, evidence);
	return (verdict == HF_E_GONE || verdict == HF_E_RECYCLED) &&
	       remove_place(etcd, keys, place->id, place->create, place->lease);
}

int hf_attempt_reap(struct hf_etcd_attempt *a, const struct hf_etcd_state *state)
{
	char evidence[HF_EVIDENCE_MAX];
	int n = 0;

	for (size_t i = 0; i < state->n_holds; i++) {
		const struct hf_etcd_hold *hold = &state->holds[i];

		if (hold->create == 0)
			continue;
		if (hf_etcd_hold_is_dead(a->etcd, hold, evidence))
			n += remove_place(a->etcd, &a->keys, hold->place, hold->create, hold->lease);
		else
			n += drop_dead_owner(a->etcd, &a->keys, hold);
	}
	/* Those at the front are in everybody's way, also of one that is not in the queue. */
	for (size_t i = 0; i < state->n_places; i++)
		n += remove_dead_waiter(a->etcd, &a->keys, &state->places[i]);
	return n > 0 ? n : remove_dead_waiter(a->etcd, &a->keys, &state->before);
}
