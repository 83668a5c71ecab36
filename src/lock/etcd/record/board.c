/*
 * lock/etcd/record/board.c - the notice board in etcd: "P s/NAME", without a lease, has what the holder says; "asked" in its place is what it is asked for.
 *
 * A text is written in a transaction that compares the place of the holder: one whose lease has ended writes nothing any more. A request
 * changes the value of that place, which its renewer watches, and is gone with it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/record/scan.h"
#include "hf/lock/etcd/wire/watch.h"
#include "hf/sys/fd/poll.h"

/* A holder is exclusive; one more is enough to see what is behind it. */
#define PLACES 2

#define NAME_REF(lock_name) (&(const struct hf_lock_ref){ HF_LOCK_KIND_NAME, (lock_name) })

/* The place that holds, with the text, at one revision. place->create is 0 when nobody holds it. */
static int look(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, struct hf_place *ret_place, struct hf_buf *ret_text,
		int64_t *ret_revision, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	struct hf_txn txn;
	int r;

	hf_txn_begin(&txn, &body);
	hf_txn_then(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = keys->facts });
	hf_txn_range(&txn, &(struct hf_range){ .key = keys->queue, .end = keys->queue_end, .sorted = 1, .limit = PLACES });
	hf_txn_end(&txn);
	r = hf_etcd_call(etcd, "/v3/kv/txn", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, "read", "etcd", err);
	if (r < 0)
		return r;
	*ret_revision = answer.revision;
	*ret_place = (struct hf_place){ 0 };
	hf_buf_reset(ret_text);
	if (hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &kv))
		hf_buf_add(ret_text, kv.value.s, kv.value.len);
	if (hf_kv_read(hf_answer_response(&answer, 1, "response_range"), 0, &kv))
		hf_place_read(&kv, ret_place);
	if (!ret_place->holds || !ret_place->readable)
		*ret_place = (struct hf_place){ 0 };
	return ret_text->err < 0 ? hf_fail_sys(err, ENOMEM, "memory", "etcd") : 0;
}

static void fill(const struct hf_place *place, const char *text, int64_t revision, struct hf_board_entry *ret)
{
	hf_copy_text(ret->text, sizeof(ret->text), text ? text : "");
	ret->token = place ? place->token : 0;
	ret->revision = revision;
	ret->host[0] = ret->asked[0] = '\0';
	if (place) {
		hf_copy_text(ret->host, sizeof(ret->host), place->owner.name[0] ? place->owner.name : place->owner.owner.host);
		hf_copy_text(ret->asked, sizeof(ret->asked), place->asked);
	}
}

static int board_read(struct hf_store *store, const char *name, struct hf_board_entry *ret, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_etcd_keys keys;
	struct hf_place place;
	int64_t revision;
	int r = hf_etcd_keys_of(etcd, NAME_REF(name), &keys, err);

	if (r == 0)
		r = look(etcd, &keys, &place, &text, &revision, err);
	if (r < 0)
		return r;
	hf_copy_text(ret->name, sizeof(ret->name), name);
	fill(&place, text.s, revision, ret);
	return 0;
}

/* Writes a text, if the place of that token is there; with `ask`, to that place. */
static int write_as(struct hf_store *store, const char *name, uint64_t token, const char *text, int ask, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT, before = HF_BUF_INIT;
	AUTO_FREE char *place_text = NULL;
	char place_key[HF_ETCD_KEY_MAX];
	struct hf_etcd_keys keys;
	struct hf_place place;
	struct hf_txn txn;
	int64_t revision;
	int r = hf_etcd_keys_of(etcd, NAME_REF(name), &keys, err);

	if (r == 0)
		r = look(etcd, &keys, &place, &before, &revision, err);
	if (r < 0)
		return r;
	if (place.create == 0 || place.token != token)
		return FAIL(err, HF_E_STALE, "board", name, "that token is not current");
	hf_etcd_place_key(&keys, place.id, place_key);
	if (ask) {
		hf_copy_text(place.asked, sizeof(place.asked), text);
		place_text = hf_place_text(&place);
		if (!place_text)
			return hf_fail_sys(err, ENOMEM, "memory", name);
	}
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", place_key, place.create);
	hf_txn_then(&txn);
	if (ask)
		hf_txn_put_again(&txn, place_key, place_text);
	else
		hf_txn_put(&txn, keys.facts, text, 0);
	hf_txn_end(&txn);
	r = hf_etcd_call(etcd, "/v3/kv/txn", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, ask ? "ask" : "tell", name, err);
	if (r < 0)
		return r;
	return hf_answer_succeeded(&answer) ? 0 : FAIL(err, HF_E_STALE, "board", name, "that token is not current");
}

static int board_put(struct hf_store *store, const char *name, uint64_t token, const char *text, struct hf_err *err)
{
	return write_as(store, name, token, text, 0, err);
}

static int board_ask(struct hf_store *store, const char *name, uint64_t token, const char *text, struct hf_err *err)
{
	return write_as(store, name, token, text, 1, err);
}

static int by_name(const void *a, const void *b)
{
	const struct hf_etcd_scan_item *one = a, *other = b;
	int order = strcmp(one->name, other->name);

	return order ? order : (one->place.create > other->place.create) - (one->place.create < other->place.create);
}

static int board_list(struct hf_store *store, hf_board_fn *fn, void *arg, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	AUTO(hf_etcd_scan_done) struct hf_etcd_scan texts = { 0 }, places = { 0 };
	AUTO_FREE struct hf_board_entry *entry = calloc(1, sizeof(*entry));
	size_t at = 0;
	int r = entry ? hf_etcd_scan_read(etcd, 's', HF_LOCK_KIND_NAME, &texts, err) : hf_fail_sys(err, ENOMEM, "memory", "etcd");

	places.revision = texts.revision;
	if (r == 0)
		r = hf_etcd_scan_read(etcd, 'q', HF_LOCK_KIND_NAME, &places, err);
	if (r < 0)
		return r;
	qsort(texts.items, texts.n, sizeof(*texts.items), by_name);
	qsort(places.items, places.n, sizeof(*places.items), by_name);
	for (size_t i = 0; i < texts.n; i++) {
		const struct hf_place *place = NULL;

		while (at < places.n && strcmp(places.items[at].name, texts.items[i].name) < 0)
			at++;
		if (at < places.n && strcmp(places.items[at].name, texts.items[i].name) == 0 && places.items[at].place.holds)
			place = &places.items[at].place;
		hf_copy_text(entry->name, sizeof(entry->name), texts.items[i].name);
		fill(place, texts.items[i].text, texts.revision, entry);
		fn(arg, entry);
	}
	return 0;
}

static int board_wait(struct hf_store *store, const struct hf_board_entry *entry, int64_t ns, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	AUTO(hf_watch_close) struct hf_watch watch = { 0 };
	struct hf_watch_aim aim = { .revision = entry->revision + 1 };
	struct hf_mono end = hf_mono_in(ns);
	struct hf_etcd_keys keys;
	int r = hf_etcd_keys_of(etcd, NAME_REF(entry->name), &keys, err);

	if (r < 0)
		return r;
	hf_copy_text(aim.key, sizeof(aim.key), keys.facts);
	r = hf_watch_open(etcd, &aim, &watch, err);
	while (r == 0 && hf_mono_left(end) > 0)
		r = hf_watch_wait(&watch, NULL, 0, hf_mono_left(end));
	if (r < 0)
		(void)hf_poll_until(NULL, 0, end); /* it has ended: then only the time is waited for */
	return 0;
}

/* 1: gone. A name that was taken meanwhile has changed its last token, or is in the queue. */
static int forget(struct hf_etcd *etcd, const struct hf_etcd_scan_item *item)
{
	const struct hf_lock_ref lock = { item->kind, item->name };
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_etcd_keys keys;
	struct hf_txn txn;

	if (hf_etcd_keys_of(etcd, &lock, &keys, NULL) < 0)
		return 0;
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "MOD", keys.last, item->mod);
	hf_txn_compare_empty(&txn, keys.queue, keys.queue_end);
	hf_txn_compare_empty(&txn, keys.holds, keys.holds_end);
	hf_txn_then(&txn);
	hf_txn_delete(&txn, keys.last);
	hf_txn_delete(&txn, keys.facts);
	hf_txn_delete(&txn, keys.broken);
	hf_txn_end(&txn);
	return hf_etcd_call(etcd, "/v3/kv/txn", &body, &answer, NULL) == 0 && answer.code == HF_GRPC_OK && hf_answer_succeeded(&answer);
}

/*
 * Without its last token a name begins again with the clock (L2). So only a name goes whose last token is older than any two
 * clocks of the fleet can differ.
 */
static int board_clean(struct hf_store *store, int64_t quiet_ns, struct hf_err *err)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	AUTO(hf_etcd_scan_done) struct hf_etcd_scan names = { 0 };
	int64_t oldest = (hf_wall_now().ns - quiet_ns) / HF_USEC;
	int n = 0, r = hf_etcd_scan_read(etcd, 'n', -1, &names, err);

	for (size_t i = 0; r == 0 && i < names.n; i++)
		if ((int64_t)names.items[i].token < oldest)
			n += forget(etcd, &names.items[i]);
	return r < 0 ? r : n;
}

const struct hf_board_ops hf_etcd_board = {
	.put = board_put,
	.ask = board_ask,
	.read = board_read,
	.list = board_list,
	.await = board_wait,
	.clean = board_clean,
};
