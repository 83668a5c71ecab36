/*
 * lock/etcd/wait.c - a place in the queue, and sleeping until the place before it may have changed.
 *
 * Each waiter watches the place before it, and nothing else: one release wakes one. Where that place belongs to a process of this
 * machine, its pidfd is watched too, so that a dead owner is replaced at once and not after its lease; and where it does not,
 * those of the holders of this machine are. The lease of our own place is renewed here, after a third; each renewal looks whether the
 * place before us is still there, because a watch can lose an event when the cluster is compacted. What that costs must not grow with the
 * queue: a thousand waiters that read each other would leave the cluster no time for anything else.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/wire/watch.h"
#include "hf/proc/judge.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"

/* -- the place ------------------------------------------------------------------------------- */

/* That of a hold that did not come about, if it is as long as this one has to be. */
static int lease_for_place(struct hf_etcd_attempt *a, int64_t ttl_ns, struct hf_err *err)
{
	struct hf_lease left = a->hold_lease;

	a->hold_lease.id = 0;
	if (left.id && left.ttl_ns == (ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC &&
	    hf_boot_now().ns - left.since.ns < HF_LEASE_FRESH_NS) {
		a->place_lease = left;
		return 0;
	}
	hf_lease_let_go(a->etcd, left.id);
	return hf_lease_grant(a->etcd, ttl_ns, &a->place_lease, err);
}

int hf_attempt_enqueue(struct hf_etcd_attempt *a, int64_t ttl_ns, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	AUTO_FREE char *text = NULL;
	char key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;
	int r = lease_for_place(a, ttl_ns, err);

	if (r < 0)
		return r;
	/* A new place has a new name: what was lost never comes back. */
	(void)snprintf(a->mine.id, sizeof(a->mine.id), "%016llx", (unsigned long long)a->place_lease.id);
	a->mine.holds = 0;
	a->mine.since_ms = hf_wall_now().ns / HF_MSEC;
	text = hf_place_text(&a->mine);
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", a->request->lock.name);
	hf_etcd_place_key(&a->keys, a->mine.id, key);
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", key, 0);
	hf_txn_then(&txn);
	hf_txn_put(&txn, key, text, a->place_lease.id);
	hf_txn_else(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = key });
	hf_txn_end(&txn);
	r = hf_etcd_call(a->etcd, "/v3/kv/txn", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, "wait", a->request->lock.name, err);
	if (r < 0)
		return r;
	if (hf_answer_succeeded(&answer))
		a->mine.create = answer.revision;
	else if (hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &kv))
		a->mine.create = kv.create;
	else
		return FAIL(err, HF_E_STORE, "wait", a->request->lock.name, "the place in the queue has disappeared");
	a->queued = 1;
	a->next_keep = hf_mono_in(a->place_lease.ttl_ns / 3);
	return 0;
}

void hf_attempt_leave(struct hf_etcd_attempt *a)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_etcd_state state = { 0 };
	char key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;

	if (a->mine.id[0]) {
		/* A grant that was not answered may have left its holder: found by our place's name. */
		if (a->hold_lease.id && hf_etcd_state_read(a->etcd, &a->keys, NULL, HF_ETCD_FEW, &state, NULL) < 0)
			state.n_holds = 0;
		hf_etcd_place_key(&a->keys, a->mine.id, key);
		hf_txn_begin(&txn, &body);
		hf_txn_then(&txn);
		hf_txn_delete(&txn, key);
		for (size_t i = 0; i < state.n_holds; i++)
			if (strcmp(state.holds[i].place, a->mine.id) == 0) {
				hf_etcd_hold_key(&a->keys, state.holds[i].token, key);
				hf_txn_delete(&txn, key);
			}
		hf_txn_end(&txn);
		hf_etcd_state_free(&state);
		(void)hf_etcd_call(a->etcd, "/v3/kv/txn", &body, &answer, NULL);
	}
	if (a->place_lease.id != a->hold_lease.id)
		hf_lease_let_go(a->etcd, a->place_lease.id);
	hf_lease_let_go(a->etcd, a->hold_lease.id);
	a->queued = 0;
}

/* -- the wait -------------------------------------------------------------------------------- */

enum { FD_CANCEL, FD_OWNER, FD_OTHERS };
#define ENDED_PAUSE_NS (100 * HF_MSEC)
#define FDS_MAX (FD_OTHERS + 2 * HF_ETCD_HOLDS_MAX + 1)

struct watched {
	struct pollfd fds[FDS_MAX];
	nfds_t n;
};

static void watched_done(struct watched *w)
{
	for (nfds_t i = FD_OWNER; i < w->n; i++)
		hf_auto_close(&w->fds[i].fd);
}

/* 1 when it is already dead. */
static int add_process(struct watched *w, const struct hf_etcd *etcd, const struct hf_owner *owner)
{
	char evidence[HF_EVIDENCE_MAX];
	int fd = -1, verdict;

	if (w->n >= FDS_MAX || strcmp(owner->host, etcd->host) != 0 || hf_proc_equal(&owner->id, &etcd->self))
		return 0;
	verdict = hf_etcd_judge(etcd, owner, &fd, evidence);
	if (verdict == 0 && fd >= 0)
		w->fds[w->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return verdict == HF_E_GONE || verdict == HF_E_RECYCLED;
}

static int add_holders(struct watched *w, const struct hf_etcd *etcd, const struct hf_etcd_state *state)
{
	int dead = 0;

	for (size_t i = 0; i < state->n_holds; i++)
		for (unsigned k = 0; state->holds[i].create != 0 && k < state->holds[i].n_owners; k++)
			dead |= add_process(w, etcd, &state->holds[i].owners[k].owner);
	return dead;
}

/* 1: there is no reason to sleep. */
static int choose(struct watched *w, const struct hf_etcd_attempt *a, const struct hf_etcd_state *state)
{
	const struct hf_place *before = &state->before;
	struct watched owner = { .n = 0 };
	int dead = 0;

	w->fds[FD_CANCEL] = (struct pollfd){ .fd = a->request->cancel_fd > 0 ? a->request->cancel_fd : -1, .events = POLLIN };
	w->fds[FD_OWNER] = (struct pollfd){ .fd = -1, .events = POLLIN };
	w->n = FD_OTHERS;
	dead = add_process(&owner, a->etcd, &a->mine.owner.owner);
	if (owner.n > 0)
		w->fds[FD_OWNER].fd = owner.fds[0].fd;
	if (!before->holds)
		dead |= add_process(w, a->etcd, &before->waiter.owner);
	if (before->holds || strcmp(before->waiter.owner.host, a->etcd->host) != 0)
		dead |= add_holders(w, a->etcd, state);
	return dead;
}

/* What the place before us must do for us to look again. */
static void aim(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_watch_aim *ret)
{
	int behind_holder = state->before.holds;

	*ret = (struct hf_watch_aim){ .revision = state->revision + 1,
				      .only_deletes = behind_holder || a->request->mode == HF_LOCK_EXCLUSIVE };
	/* Any of the slots will do. */
	if (behind_holder && a->request->mode == HF_LOCK_SLOTS && state->before.mode == HF_LOCK_SLOTS) {
		hf_copy_text(ret->key, sizeof(ret->key), a->keys.queue);
		hf_copy_text(ret->end, sizeof(ret->end), a->keys.queue_end);
	} else if (behind_holder && a->request->mode == HF_LOCK_SHARED && state->before.mode == HF_LOCK_SHARED) {
		hf_copy_text(ret->key, sizeof(ret->key), a->keys.queue);
		hf_copy_text(ret->end, sizeof(ret->end), a->keys.queue_end);
	} else {
		hf_etcd_place_key(&a->keys, state->before.id, ret->key);
	}
}

/* The descriptor of the request is readable. 0: it goes on. */
static int cancelled(const struct hf_etcd_attempt *a, struct hf_err *err)
{
	if (a->request->go_on && a->request->go_on(a->request->go_on_arg) == 1)
		return 0;
	return FAIL(err, HF_E_CANCELLED, "wait", a->request->lock.name, "%s", "");
}

/* The owner's time, the wait's, the lease's, the search's. */
static struct hf_mono next_moment(const struct hf_etcd_attempt *a)
{
	struct hf_mono first = hf_mono_earlier(a->deadline, a->next_keep);

	return hf_mono_earlier(first, a->next_search);
}

static int keep_place(struct hf_etcd_attempt *a, struct hf_err *err)
{
	uint64_t term;
	int64_t ttl;
	int r;

	if (hf_mono_left(a->next_keep) > 0)
		return 0;
	r = hf_lease_keep(a->etcd, a->place_lease.id, &ttl, &term, err);
	a->next_keep = hf_mono_in(r == 0 ? ttl / 3 : a->place_lease.ttl_ns / 10);
	/* A lease that is gone took the place with it, which the next look finds. */
	return r == HF_E_STALE ? 0 : r;
}

/* 1: our place and the one before it are as they were read, and nothing else is due. */
static int is_unchanged(const struct hf_etcd_attempt *a, const struct hf_etcd_state *state, const struct hf_watch_aim *target)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv own = HF_KV_INIT, other = HF_KV_INIT;
	struct hf_place before;
	char key[HF_ETCD_KEY_MAX];
	struct hf_txn txn;

	/* Of a watch over all places each of them counts. */
	if (target->end[0] || hf_mono_left(a->deadline) == 0 || hf_mono_left(a->next_search) == 0)
		return 0;
	hf_etcd_place_key(&a->keys, a->mine.id, key);
	hf_txn_begin(&txn, &body);
	hf_txn_then(&txn);
	hf_txn_range(&txn, &(struct hf_range){ .key = key });
	hf_txn_range(&txn, &(struct hf_range){ .key = target->key });
	hf_txn_end(&txn);
	if (hf_etcd_call(a->etcd, "/v3/kv/txn", &body, &answer, NULL) < 0 || answer.code != HF_GRPC_OK ||
	    !hf_kv_read(hf_answer_response(&answer, 0, "response_range"), 0, &own) ||
	    !hf_kv_read(hf_answer_response(&answer, 1, "response_range"), 0, &other))
		return 0;
	hf_place_read(&other, &before);
	return own.create == a->mine.create && before.create == state->before.create && before.holds == state->before.holds;
}

/* Until something happens, or one of our moments has come. 1: look again; 0: only a moment has come; or a failure. */
static int sleep_on(struct hf_etcd_attempt *a, struct watched *w, struct hf_watch *watch, struct hf_err *err)
{
	for (;;) {
		int64_t left = hf_mono_left(next_moment(a));
		int r = left > 0 ? hf_watch_wait(watch, w->fds, w->n, left) : 0;

		if (w->fds[FD_CANCEL].revents) {
			int c = cancelled(a, err);

			if (c < 0)
				return c;
		}
		if (w->fds[FD_OWNER].fd >= 0 && w->fds[FD_OWNER].revents)
			return FAIL(err, HF_E_GONE, "owner", a->request->lock.name, "pid %d has exited",
				    (int)a->mine.owner.owner.id.pid);
		/* A server that ends every watch must not make us ask without a pause. */
		if (r < 0)
			hf_pause(ENDED_PAUSE_NS);
		if (r != 0)
			return 1;
		for (nfds_t i = FD_OTHERS; i < w->n; i++)
			if (w->fds[i].revents)
				return 1;
		if (hf_mono_left(next_moment(a)) == 0)
			return 0;
	}
}

int hf_attempt_wait(struct hf_etcd_attempt *a, const struct hf_etcd_state *state, struct hf_err *err)
{
	AUTO(watched_done) struct watched w = { .n = 0 };
	AUTO(hf_watch_close) struct hf_watch watch = { 0 };
	struct hf_watch_aim target;
	int look, r;

	if (choose(&w, a, state))
		return 0;
	aim(a, state, &target);
	r = hf_watch_open(a->etcd, &target, &watch, err);
	if (r < 0)
		return r;
	do {
		look = sleep_on(a, &w, &watch, err);
		/* An exclusive holder has nobody before it, and we were next. */
		a->direct = watch.freed && !target.end[0];
		/* The hand-off first; what is taken has a lease of its own. */
		r = look < 0 || a->direct ? 0 : keep_place(a, err);
	} while (look == 0 && r == 0 && hf_watch_is_current(&watch) && is_unchanged(a, state, &target));
	return look < 0 ? look : r;
}
