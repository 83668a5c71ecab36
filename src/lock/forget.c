/* lock/forget.c - the public functions that forget locks; how it is done safely is the store's. */
#include <errno.h>
#include <unistd.h>

#include "hf/base/fail.h"
#include "hf/lock/context.h"

int hf_lock_forget_as(struct hf_locks *locks, const char *name, const struct hf_forget *how, struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	store = locks->context->store;
	return store->ops->forget ? store->ops->forget(store, &(const struct hf_lock_ref){ locks->kind, name }, how, err)
				  : FAIL(err, -ENOTSUP, "forget", name, "this store forgets locks automatically");
}

int hf_lock_forget(struct hf_locks *locks, const char *name, struct hf_err *err)
{
	return hf_lock_forget_as(locks, name, &(const struct hf_forget){ 0 }, err);
}

int hf_locks_forget_idle(struct hf_locks *locks, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err)
{
	struct hf_store *store;

	if (!locks || locks->context->process != getpid())
		return FAIL(err, locks ? HF_E_FORKED : -EINVAL, "forget", "locks", "open the locks again in this process");
	store = locks->context->store;
	return store->ops->forget_idle ? store->ops->forget_idle(store, locks->kind, quiet_ns, limit_ns, err)
				       : FAIL(err, -ENOTSUP, "forget", "locks", "this store forgets locks automatically");
}
