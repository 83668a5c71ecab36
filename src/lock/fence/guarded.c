/*
 * lock/fence/guarded.c - an action that happens only while its tokens are current (L5).
 *
 * For each lock, in one order for all processes (kind, then name), so that two that need the same
 * locks never wait for each other: the store proves the token and, where it can, keeps the lock as it
 * is; then the fence of the lock is taken. It refuses a token below the highest exclusive one
 * that has acted here. When all are proven the fences are raised, and the action runs.
 *
 * Only exclusive tokens raise a fence: shared holders and slots are there together, in any order.
 * They are compared with it all the same, for an exclusive holder came after all that were before it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/context.h"

/* One lock of those that an action needs. */
struct proof {
	struct hf_lock_ref lock;
	uint64_t token;
	struct hf_hold *hold; /* NULL: the store has only checked */
	enum hf_lock_mode mode;
	struct hf_fence fence;
};

struct proofs {
	struct hf_context *context;
	struct proof *list;
	size_t n;
};

static void proofs_done(struct proofs *proofs)
{
	/* In reverse, like any nesting. */
	for (size_t i = proofs->n; i-- > 0;) {
		hf_fence_drop(&proofs->list[i].fence);
		if (proofs->list[i].hold)
			proofs->context->store->ops->let_go(proofs->list[i].hold);
	}
	free(proofs->list);
}

static int by_lock(const void *a, const void *b)
{
	const struct proof *x = a, *y = b;

	return x->lock.kind != y->lock.kind ? (x->lock.kind < y->lock.kind ? -1 : 1)
					    : strcmp(x->lock.name, y->lock.name);
}

static int check_claims(struct hf_locks *locks, const struct hf_lock_claim *claims, size_t n,
			struct hf_err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = hf_locks_check(locks, claims[i].name, err);
		if (r == 0 && (claims[i].token == 0 || (unsigned)claims[i].kind >= HF_LOCK_KINDS))
			r = FAIL(err, -EINVAL, "arguments", claims[i].name, "a kind and a token are needed");
	}
	return r;
}

/* Puts them in order, each lock once. */
static int arrange(struct proofs *proofs, const struct hf_lock_claim *claims, size_t n,
		   struct hf_err *err)
{
	struct proof *list = calloc(n, sizeof(*list));

	if (!list)
		return hf_fail_sys(err, ENOMEM, "memory", "claims");
	proofs->list = list;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct proof){ .lock = { claims[i].kind, claims[i].name },
					  .token = claims[i].token,
					  .fence = HF_FENCE_INIT };
	qsort(list, n, sizeof(*list), by_lock);
	for (size_t i = 0; i < n; i++) {
		const struct proof *last = proofs->n > 0 ? &list[proofs->n - 1] : NULL;

		if (!last || by_lock(last, &list[i]) != 0)
			list[proofs->n++] = list[i];
		else if (last->token != list[i].token)
			return FAIL(err, -EINVAL, "arguments", last->lock.name,
				    "two tokens for one lock");
	}
	return 0;
}

/* The store calls the token current, but this machine has seen a later one act. */
static int refuse(struct hf_context *context, const struct proof *proof, struct hf_err *err)
{
	char why[80];
	struct hf_field fields[] = { HF_FIELD_TEXT("action", "guarded action"),
				     HF_FIELD_TEXT("reason", why) };

	(void)snprintf(why, sizeof(why), "a later token, %llu, has already acted here",
		       (unsigned long long)proof->fence.admitted);
	hf_lock_event(context->journal, HF_EV_LOCK_REFUSED, &proof->lock, fields, 2);
	return FAIL(err, HF_E_STALE, "guarded action", proof->lock.name, "%s", why);
}

static int prove(struct hf_context *context, struct proof *proof, struct hf_err *err)
{
	const struct hf_store_ops *ops = context->store->ops;
	int r;

	if (ops->hold) {
		r = ops->hold(context->store, &proof->lock, proof->token, &proof->hold, err);
		if (r == 0)
			proof->mode = proof->hold->mode;
	} else {
		r = ops->check(context->store, &proof->lock, proof->token, &proof->mode, err);
	}
	if (r == 0)
		r = hf_fence_take(&context->fences, context->journal, &proof->lock,
				  proof->mode == HF_LOCK_EXCLUSIVE, hf_mono_in(context->patience_ns),
				  &proof->fence, err);
	if (r == 0 && proof->token < proof->fence.admitted)
		r = refuse(context, proof, err);
	/* A store that cannot hold it still is asked again: the fence may have been waited for. */
	if (r == 0 && !ops->hold)
		r = ops->check(context->store, &proof->lock, proof->token, NULL, err);
	return r;
}

int hf_lock_guarded_many(struct hf_locks *locks, const struct hf_lock_claim *claims, size_t n,
			 int (*action)(void *arg), void *arg, struct hf_err *err)
{
	AUTO(proofs_done) struct proofs proofs = { 0 };
	int r;

	if (!locks || !action || (n > 0 && !claims) || n > HF_LOCK_CLAIMS_MAX)
		return FAIL(err, -EINVAL, "arguments", "hf_lock_guarded_many",
			    "an action and at most %d claims are needed", HF_LOCK_CLAIMS_MAX);
	proofs.context = locks->context;
	r = check_claims(locks, claims, n, err);
	if (r == 0 && n > 0)
		r = arrange(&proofs, claims, n, err);
	for (size_t i = 0; i < proofs.n && r == 0; i++)
		r = prove(proofs.context, &proofs.list[i], err);
	for (size_t i = 0; i < proofs.n && r == 0; i++)
		if (proofs.list[i].mode == HF_LOCK_EXCLUSIVE)
			r = hf_fence_raise(&proofs.list[i].fence, &proofs.list[i].lock,
					   proofs.list[i].token, err);
	return r < 0 ? r : action(arg);
}

int hf_lock_guarded(struct hf_locks *locks, const char *name, uint64_t token,
		    int (*action)(void *arg), void *arg, struct hf_err *err)
{
	struct hf_lock_claim claim = { .name = name, .token = token };

	if (locks)
		claim.kind = locks->kind;
	return hf_lock_guarded_many(locks, &claim, 1, action, arg, err);
}
