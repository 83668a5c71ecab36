/* lock/etcd/grant.c - the step to the lock: the only place where a process begins to hold. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/holder.h"
#include "hf/sys/io.h"

/* After a holder that is not proven dead: time for it to see that it has lost the lock, where its lease was ended early. */
#define SETTLE_MIN_NS HF_SEC
#define SETTLE_MAX_NS (3 * HF_SEC)

static int is_gone(const struct hf_etcd_hold *hold)
{
	return hold->create == 0;
}

static uint64_t next_token(uint64_t given, uint64_t above)
{
	uint64_t clock = (uint64_t)(hf_wall_now().ns / HF_USEC);
	uint64_t last = given > above ? given : above;

	return last + 1 > clock ? last + 1 : clock;
}

static int lease_for_hold(struct hf_etcd_attempt *a, struct hf_err *err)
{
	int64_t want = (a->request->ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC;

	if (a->hold_lease.id && hf_boot_now().ns - a->hold_lease.since.ns < HF_LEASE_FRESH_NS)
		return 0;
	if (a->queued && a->place_lease.id && a->place_lease.ttl_ns >= want &&
	    hf_boot_now().ns - a->place_lease.since.ns < HF_LEASE_FRESH_NS) {
		a->hold_lease = a->place_lease;
		return 0;
	}
	if (a->hold_lease.id && a->hold_lease.id != a->place_lease.id)
		hf_lease_let_go(a->etcd, a->hold_lease.id);
	a->hold_lease.id = 0;
	if (hf_lease_prepared(a->etcd, a->request->ttl_ns, &a->hold_lease))
		return 0;
	return hf_lease_grant(a->etcd, a->request->ttl_ns, &a->hold_lease, err);
}

/* A hold on its way: what is to be stored of it. */
struct draft {
	struct hf_etcd_hold hold;
	char place_key[HF_ETCD_KEY_MAX], hold_key[HF_ETCD_KEY_MAX];
	char *place_text, *hold_text;
};

static void draft_done(struct draft *d)
{
	free(d->place_text);
	free(d->hold_text);
}

/* With a lease, a name for the place where it has none yet, and a token above `given`. */
static int draft_hold(struct hf_etcd_attempt *a, uint64_t given, struct draft *d, struct hf_err *err)
{
	struct hf_place place;
	int r = lease_for_hold(a, err);

	if (r < 0)
		return r;
	if (!a->queued)
		(void)snprintf(a->mine.id, sizeof(a->mine.id), "%016llx", (unsigned long long)a->hold_lease.id);
	place = a->mine;
	place.holds = 1;
	place.token = next_token(given, a->request->above);
	d->hold = (struct hf_etcd_hold){ .token = place.token, .lease = a->hold_lease.id, .mode = a->request->mode,
					 .slots = a->request->slots, .count = 1, .flags = a->request->flags,
					 .ttl_ns = a->hold_lease.ttl_ns, .since_ms = hf_wall_now().ns / HF_MSEC,
					 .n_owners = 1, .owners = { a->mine.owner } };
	memcpy(d->hold.place, a->mine.id, sizeof(d->hold.place));
	hf_etcd_place_key(&a->keys, a->mine.id, d->place_key);
	hf_etcd_hold_key(&a->keys, place.token, d->hold_key);
	d->place_text = hf_place_text(&place);
	d->hold_text = hf_hold_text(&d->hold);
	return d->place_text && d->hold_text ? 0 : hf_fail_sys(err, ENOMEM, "memory", a->request->lock.name);
}

/* Tokens have as many digits as any can have, so that the order of their texts is theirs. */
#define LAST_TOKEN "{\"v\":1,\"token\":\"%020llu\""

static void put_hold(struct hf_txn *txn, const struct hf_etcd_attempt *a, const struct draft *d)
{
	char last[80];

	hf_txn_put(txn, d->place_key, d->place_text, a->hold_lease.id);
	(void)snprintf(last, sizeof(last), LAST_TOKEN ",\"slots\":%u}", (unsigned long long)d->hold.token, d->hold.slots);
	hf_txn_put(txn, a->keys.last, last, 0);
	hf_txn_put(txn, d->hold_key, d->hold_text, 0);
}

static void compare_place(struct hf_txn *txn, const struct hf_etcd_attempt *a, const struct draft *d)
{
	if (a->queued)
		hf_txn_compare(txn, "CREATE", d->place_key, a->mine.create);
	else
		hf_txn_compare_empty(txn, a->keys.queue, a->keys.queue_end);
}

static void write_grant(struct hf_buf *body, const struct hf_etcd_attempt *a, const struct hf_etcd_state *state,
			const struct draft *d)
{
	char old[HF_ETCD_KEY_MAX];
	struct hf_txn txn;

	hf_txn_begin(&txn, body);
	compare_place(&txn, a, d);
	hf_txn_compare(&txn, "MOD", a->keys.last, state->last_mod);
	for (size_t i = 0; i < state->n_holds; i++)
		if (is_gone(&state->holds[i])) {
			hf_etcd_hold_key(&a->keys, state->holds[i].token, old);
			hf_txn_compare(&txn, "MOD", old, state->holds[i].mod);
		}
	hf_txn_then(&txn);
	put_hold(&txn, a, d);
	for (size_t i = 0; i < state->n_holds; i++)
		if (is_gone(&state->holds[i])) {
			hf_etcd_hold_key(&a->keys, state->holds[i].token, old);
			hf_txn_delete(&txn, old);
		}
	hf_txn_else(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = d->place_key });
	hf_txn_end(&txn);
}

/* The holders that this grant has removed: one event each (L8). Returns how long to wait before the lock is used. */
static int64_t note_losses(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state)
{
	int64_t settle = 0;

	for (size_t i = 0; i < state->n_holds; i++) {
		const struct hf_etcd_hold *hold = &state->holds[i];
		char evidence[HF_EVIDENCE_MAX], text[HF_HOLDER_TEXT_MAX];
		struct hf_holder shown;
		int64_t tenth = hold->ttl_ns / 10;
		int dead;

		if (!is_gone(hold))
			continue;
		dead = hf_etcd_hold_is_dead(a->etcd, hold, evidence);
		if (!dead) {
			tenth = tenth < SETTLE_MIN_NS ? SETTLE_MIN_NS : tenth > SETTLE_MAX_NS ? SETTLE_MAX_NS : tenth;
			settle = tenth > settle ? tenth : settle;
		} else if (hold->flags & HF_LOCK_FREE_ON_EXIT) {
			continue; /* its exit was its release, as agreed */
		}
		hf_etcd_show(a->etcd, hold, 0, 0, &shown);
		hf_holder_text(&shown, text, sizeof(text));
		hf_lock_event(a->etcd->journal, dead ? HF_EV_LOCK_TAKEN_OVER : HF_EV_LOCK_EXPIRED, &a->request->lock,
			      (struct hf_field[]){ HF_FIELD_TEXT("holder", text),
						   HF_FIELD_TEXT("reason", dead ? evidence
										: "the lease expired, and another process wants the lock") },
			      2);
	}
	return settle;
}

/* Sleeps, and keeps the lease meanwhile. 0, HF_E_STALE or another failure. */
static int settle(struct hf_etcd_attempt *a, const struct hf_etcd_hold *hold, int64_t ns, struct hf_err *err)
{
	struct hf_mono end = hf_mono_in(ns);

	for (;;) {
		int64_t left = hf_mono_left(end), age = hf_boot_now().ns - a->hold_lease.since.ns;
		int r = 0;

		if (age > a->hold_lease.ttl_ns / 3)
			r = hf_etcd_prove(a->etcd, &a->keys, hold, &a->hold_lease, err);
		if (r < 0 || left <= 0)
			return r;
		left = left < a->hold_lease.ttl_ns / 4 ? left : a->hold_lease.ttl_ns / 4;
		hf_pause((long)(left < HF_SEC ? left : HF_SEC));
	}
}

/* `create` of the place, `mod` of what the grant wrote. As hf_attempt_grant. */
static int granted(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_etcd_hold *hold, int64_t create,
		   int64_t mod, struct hf_err *err)
{
	int r;

	hold->create = create;
	hold->mod = mod;
	a->mine.create = create;
	a->queued = 1;
	r = settle(a, hold, note_losses(a, state), err);
	if (r == HF_E_STALE) {
		/* Broken or expired before it was ours to use: from the start. */
		a->queued = 0;
		a->hold_lease.id = 0;
		a->mine.id[0] = '\0';
		return 0;
	}
	if (r < 0)
		return r;
	a->token = hold->token;
	a->place_lease.id = 0;
	hf_etcd_remember(a->etcd, hold);
	return 1;
}

/* Sends the transaction of a grant. 1: there is an answer; 0: the lease has ended, and nothing was done; or a failure. */
static int ask_grant(struct hf_etcd_attempt *a, const struct hf_buf *body, struct hf_answer *answer, struct hf_err *err)
{
	int r = hf_etcd_call(a->etcd, "/v3/kv/txn", body, answer, err);

	if (r < 0)
		return r;
	if (answer->code == HF_GRPC_NOT_FOUND) {
		/* A try that is still on its way must not find a lease that is given later. */
		if (answer->repeated)
			hf_lease_revoke(a->etcd, a->hold_lease.id);
		a->hold_lease.id = 0;
		return 0;
	}
	return answer->code == HF_GRPC_OK ? 1 : hf_etcd_refused(answer, "acquire", a->request->lock.name, err);
}

int hf_attempt_grant(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	AUTO(draft_done) struct draft d = { 0 };
	struct hf_place place;
	int r = draft_hold(a, state->token, &d, err);

	if (r < 0)
		return r;
	write_grant(&body, a, state, &d);
	r = ask_grant(a, &body, &answer, err);
	if (r <= 0)
		return r;
	if (hf_answer_succeeded(&answer))
		return granted(a, state, &d.hold, a->queued ? a->mine.create : answer.revision, answer.revision, err);
	/* A try whose answer was lost had done it already. */
	if (hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &kv)) {
		hf_place_read(&kv, &place);
		if (place.holds && place.readable && place.token == d.hold.token)
			return granted(a, state, &d.hold, place.create, kv.mod, err);
	}
	return 0;
}

/* -- without looking first -------------------------------------------------------------------- */

/* The last token is compared as text, so it need not be known. */
static void write_take(struct hf_buf *body, const struct hf_etcd_attempt *a, const struct draft *d)
{
	char above[64];
	struct hf_txn txn;

	(void)snprintf(above, sizeof(above), LAST_TOKEN, (unsigned long long)d->hold.token);
	hf_txn_begin(&txn, body);
	compare_place(&txn, a, d);
	hf_txn_compare_empty(&txn, a->keys.holds, a->keys.holds_end);
	hf_txn_compare_less(&txn, a->keys.last, above);
	hf_txn_then(&txn);
	put_hold(&txn, a, d);
	hf_txn_else(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = d->hold_key });
	hf_txn_end(&txn);
}

/* It was not free. The lease is good for the next step. */
static void drop_draft(struct hf_etcd_attempt *a, int repeated)
{
	if (a->queued)
		return;
	a->mine.id[0] = '\0';
	/* A try that is still on its way may yet take the lock: its lease must be gone before. */
	if (repeated) {
		hf_lease_revoke(a->etcd, a->hold_lease.id);
		a->hold_lease.id = 0;
	}
}

int hf_attempt_take(struct hf_etcd_attempt *a, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	AUTO(draft_done) struct draft d = { 0 };
	const struct hf_etcd_state nobody = { 0 };
	int r = draft_hold(a, 0, &d, err);

	if (r < 0)
		return r;
	write_take(&body, a, &d);
	r = ask_grant(a, &body, &answer, err);
	if (r <= 0)
		return r;
	if (hf_answer_succeeded(&answer))
		return granted(a, &nobody, &d.hold, a->queued ? a->mine.create : answer.revision, answer.revision, err);
	/* A try whose answer was lost had done it already, with this token; what it wrote it wrote at one revision. */
	if (hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &kv) && strcmp(kv.value.s, d.hold_text) == 0)
		return granted(a, &nobody, &d.hold, a->queued ? a->mine.create : kv.create, kv.mod, err);
	drop_draft(a, answer.repeated);
	return 0;
}
