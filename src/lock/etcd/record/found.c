/* lock/etcd/record/found.c - reading a lock for a verb, refusing, and removing a hold. */
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/found.h"
#include "hf/lock/holder.h"

void hf_etcd_found_done(struct hf_etcd_found *f)
{
	hf_etcd_state_free(&f->state);
}

int hf_etcd_found_read(struct hf_store *store, const struct hf_lock_ref *lock, struct hf_etcd_found *ret, struct hf_err *err)
{
	int r;

	*ret = (struct hf_etcd_found){ .etcd = hf_etcd_of(store), .lock = lock };
	r = hf_etcd_keys_of(ret->etcd, lock, &ret->keys, err);
	return r < 0 ? r : hf_etcd_state_read(ret->etcd, &ret->keys, NULL, HF_ETCD_FEW, &ret->state, err);
}

struct hf_etcd_hold *hf_etcd_found_hold(struct hf_etcd_found *f, uint64_t token)
{
	for (size_t i = 0; i < f->state.n_holds; i++)
		if (f->state.holds[i].token == token)
			return &f->state.holds[i];
	return NULL;
}

int hf_etcd_found_refuse(struct hf_etcd_found *f, int code, const char *action, const char *why, struct hf_err *err)
{
	char holder[HF_HOLDER_TEXT_MAX] = "nobody";
	struct hf_holder shown;

	for (size_t i = 0; i < f->state.n_holds; i++) {
		hf_etcd_show(f->etcd, &f->state.holds[i], 0, 0, &shown);
		if (shown.liveness == HF_DEAD || f->state.holds[i].create == 0)
			continue;
		hf_holder_text(&shown, holder, sizeof(holder));
		break;
	}
	hf_lock_event(f->etcd->journal, HF_EV_LOCK_REFUSED, f->lock,
		      (struct hf_field[]){ HF_FIELD_TEXT("action", action), HF_FIELD_TEXT("reason", why),
					   HF_FIELD_TEXT("holder", holder) },
		      3);
	return FAIL(err, code, action, f->lock->name, "%s; it is held by %.180s", why, holder);
}

int hf_etcd_found_current(struct hf_etcd_found *f, const char *action, uint64_t token, struct hf_etcd_hold **ret, struct hf_err *err)
{
	struct hf_etcd_hold *hold = hf_etcd_found_hold(f, token);

	if (!hold)
		return hf_etcd_found_refuse(f, HF_E_STALE, action, "that token is not current", err);
	if (hold->create == 0)
		return hf_etcd_found_refuse(f, HF_E_STALE, action, "its lease has ended", err);
	*ret = hold;
	return 0;
}

int hf_etcd_found_read_current(struct hf_store *store, const struct hf_lock_ref *lock, const char *action, uint64_t token, struct hf_etcd_found *ret,
			       struct hf_etcd_hold **ret_hold, struct hf_err *err)
{
	int r = hf_etcd_found_read(store, lock, ret, err);

	return r < 0 ? r : hf_etcd_found_current(ret, action, token, ret_hold, err);
}

int hf_etcd_found_remove(struct hf_etcd_found *f, const struct hf_etcd_hold *hold, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char place[HF_ETCD_KEY_MAX], key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;
	int r;

	hf_etcd_place_key(&f->keys, hold->place, place);
	hf_etcd_hold_key(&f->keys, hold->token, key);
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", place, hold->create);
	hf_txn_compare(&txn, "MOD", key, hold->mod);
	hf_txn_then(&txn);
	hf_txn_delete(&txn, place);
	hf_txn_delete(&txn, key);
	hf_txn_else(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = key });
	hf_txn_range(&txn, &(struct hf_range){ .key = place });
	hf_txn_end(&txn);
	r = hf_etcd_call(f->etcd, "/v3/kv/txn", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, "release", f->lock->name, err);
	if (r < 0)
		return r;
	if (hf_answer_succeeded(&answer))
		return 1;
	/* An earlier try was not answered, and both are gone: it had done it. */
	return answer.repeated && json_array_size(json_object_get(hf_answer_response(&answer, 0, "response_range"), "kvs")) == 0 &&
	       json_array_size(json_object_get(hf_answer_response(&answer, 1, "response_range"), "kvs")) == 0;
}
