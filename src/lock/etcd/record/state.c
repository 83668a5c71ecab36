/* lock/etcd/record/state.c - a lock as it was at one revision. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/record/record.h"

#define ALL_PLACES (HF_LOCK_SLOTS_MAX + 2)

void hf_etcd_state_free(struct hf_etcd_state *state)
{
	free(state->places);
	state->places = NULL;
	state->n_places = state->n_holds = 0;
}

static void read_last(const json_t *range, struct hf_etcd_state *ret)
{
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	json_t *json;
	int64_t token;

	if (!hf_kv_read(range, 0, &kv))
		return;
	ret->last_mod = kv.mod;
	json = json_loadb(kv.value.s, kv.value.len, 0, NULL);
	token = hf_json_number(json, "token");
	ret->token = token > 0 ? (uint64_t)token : 0;
	ret->slots = (unsigned)hf_json_number(json, "slots");
	json_decref(json);
}

static int read_places(const json_t *range, struct hf_etcd_state *ret)
{
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	size_t n = json_array_size(json_object_get(range, "kvs"));

	ret->places = calloc(n + 1, sizeof(*ret->places));
	if (!ret->places)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (hf_kv_read(range, i, &kv))
			hf_place_read(&kv, &ret->places[ret->n_places++]);
	return 0;
}

/* The holder's place is among the first: those that hold are before all that wait. */
static void read_holds(const json_t *range, struct hf_etcd_state *ret)
{
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;

	for (size_t i = 0; ret->n_holds < HF_ETCD_HOLDS_MAX && hf_kv_read(range, i, &kv); i++) {
		struct hf_etcd_hold *hold = &ret->holds[ret->n_holds];

		if (hf_hold_read(&kv, hold) < 0)
			continue;
		for (size_t k = 0; k < ret->n_places; k++)
			if (strcmp(ret->places[k].id, hold->place) == 0)
				hold->create = ret->places[k].create;
		ret->n_holds++;
	}
}

static void read_one(const json_t *range, struct hf_place *ret)
{
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;

	*ret = (struct hf_place){ 0 };
	if (hf_kv_read(range, 0, &kv))
		hf_place_read(&kv, ret);
}

static void ask(struct hf_buf *body, const struct hf_etcd_keys *keys, const struct hf_place *mine, int64_t limit)
{
	struct hf_range before = { .key = keys->queue, .end = keys->queue_end, .descend = 1, .limit = 1 };
	char own[HF_ETCD_KEY_MAX];
	struct hf_txn txn;

	hf_txn_begin(&txn, body);
	hf_txn_then(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = keys->last });
	hf_txn_range(&txn, &(struct hf_range){ .key = keys->queue, .end = keys->queue_end, .sorted = 1, .limit = limit });
	hf_txn_range(&txn, &(struct hf_range){ .key = keys->holds, .end = keys->holds_end, .limit = HF_ETCD_HOLDS_MAX });
	if (mine)
		before.max_create = mine->create - 1;
	if (mine || limit > HF_ETCD_FEW)
		hf_txn_range(&txn, &before);
	if (mine) {
		hf_etcd_place_key(keys, mine->id, own);
		hf_txn_range(&txn, &(struct hf_range){ .key = own });
	}
	hf_txn_end(&txn);
}

int hf_etcd_state_read(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_place *mine,
		       int64_t limit, struct hf_etcd_state *ret, struct hf_err *err)
{
	for (;;) {
		AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
		AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
		int r;

		ask(&body, keys, mine, limit);
		r = hf_etcd_call(etcd, "/v3/kv/txn", &body, &answer, err);
		if (r == 0 && answer.code != HF_GRPC_OK)
			r = hf_etcd_refused(&answer, "read", "etcd", err);
		if (r < 0)
			return r;
		*ret = (struct hf_etcd_state){ .revision = answer.revision, .term = answer.term };
		read_last(hf_answer_response(&answer, 0, "response_range"), ret);
		if (read_places(hf_answer_response(&answer, 1, "response_range"), ret) < 0)
			return hf_fail_sys(err, ENOMEM, "memory", "etcd");
		read_holds(hf_answer_response(&answer, 2, "response_range"), ret);
		read_one(hf_answer_response(&answer, 3, "response_range"), &ret->before);
		if (mine)
			read_one(hf_answer_response(&answer, 4, "response_range"), &ret->mine);
		/* More holders than places were asked for. */
		if (ret->n_holds < (size_t)limit || limit >= ALL_PLACES)
			return 0;
		hf_etcd_state_free(ret);
		limit = ALL_PLACES;
	}
}
