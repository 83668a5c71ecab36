/*
 * lock/lock.c - the public functions: arguments, handles and processes; the rest is the store's.
 *
 * Opening is in open.c, actions under a proven token in guarded.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/context.h"
#include "holdfast/name.h"

/* struct hf_lock_opts as it was at first. */
#define OPTS_SIZE_1 offsetof(struct hf_lock_opts, cancel_fd)

#define REF(locks, lock_name) (&(const struct hf_lock_ref){ (locks)->kind, (lock_name) })

struct hf_lock {
	struct hf_locks *locks;
	uint64_t token;
	struct hf_boot since; /* the lease has not begun before; of a store that needs one */
	char name[HF_NAME_MAX + 1];
};

/* The owner that was given, or the calling process and thread. */
static struct hf_owner owner_of(const struct hf_context *context, const struct hf_proc_id *id)
{
	struct hf_owner owner = { .id = id ? *id : context->self, .thread = id ? 0 : (int32_t)gettid() };

	memcpy(owner.host, context->host, sizeof(owner.host));
	return owner;
}

static int check_lives(const struct hf_context *context, const char *name,
		       const struct hf_owner *owner, struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX];

	if (context->store->ops->judge(context->store, owner, evidence) == HF_DEAD)
		return FAIL(err, HF_E_GONE, "owner", name, "%s", evidence);
	return 0;
}

static int fail_short(const struct hf_store *store, const char *name, struct hf_err *err)
{
	return FAIL(err, -EINVAL, "arguments", name, "a lease in this store must last at least %lld ms",
		    (long long)(store->min_ttl_ns / HF_MSEC));
}

/* Can this store do what is asked for? */
static int check_caps(const struct hf_store *store, const char *name, const struct hf_lock_opts *use,
		      struct hf_err *err)
{
	if (use->mode == HF_LOCK_SLOTS && !(store->caps & HF_STORE_HAS_SLOTS))
		return FAIL(err, -ENOTSUP, "acquire", name, "this store has no slots");
	if (use->ttl_ns == 0 && (!(store->caps & HF_STORE_SEES_DEATH) || store->caps & HF_STORE_NEEDS_LEASE))
		return FAIL(err, -EINVAL, "arguments", name,
			    "this store cannot detect the death of every owner, so each lock needs a lease");
	return use->ttl_ns > 0 && use->ttl_ns < store->min_ttl_ns ? fail_short(store, name, err) : 0;
}

static int fill_request(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts,
			struct hf_lock_request *ret, struct hf_err *err)
{
	const struct hf_store *store = locks->context->store;
	struct hf_lock_opts use = { .size = sizeof(use) };
	int r;

	/* A program that was built before a field was added does not have it. */
	if (opts && opts->size < OPTS_SIZE_1)
		return FAIL(err, -EINVAL, "arguments", name, "size is not set");
	if (opts)
		memcpy(&use, opts, opts->size < sizeof(use) ? opts->size : sizeof(use));
	if (use.mode == HF_LOCK_SLOTS ? use.slots < 1 || use.slots > HF_LOCK_SLOTS_MAX
				      : use.slots != 0)
		return FAIL(err, -EINVAL, "arguments", name, "slots must be from 1 to %d",
			    HF_LOCK_SLOTS_MAX);
	if (use.ttl_ns < 0 || use.ttl_ns > HF_LOCK_TTL_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "a lease may last at most 30 days");
	if ((unsigned)use.mode > HF_LOCK_SLOTS ||
	    use.flags & ~(unsigned)(HF_LOCK_REENTRANT | HF_LOCK_FREE_ON_EXIT))
		return FAIL(err, -EINVAL, "arguments", name, "unknown mode or flag");
	if (use.priority > HF_LOCK_PRIORITY_MAX || use.waiting_ns < 0)
		return FAIL(err, -EINVAL, "arguments", name, "a priority must be at most %d, and waiting_ns must not be negative",
			    HF_LOCK_PRIORITY_MAX);
	if (use.cancel_fd < 0)
		return FAIL(err, -EINVAL, "arguments", name, "cancel_fd is not a descriptor");
	r = check_caps(store, name, &use, err);
	if (r < 0)
		return r;
	*ret = (struct hf_lock_request){ .lock = { locks->kind, name },
					 .mode = use.mode,
					 .slots = use.slots,
					 .wait_ns = use.wait_ns,
					 .ttl_ns = use.ttl_ns,
					 .flags = use.flags,
					 .cancel_fd = use.cancel_fd,
					 .go_on = use.go_on,
					 .go_on_arg = use.go_on_arg,
					 .waiting = use.waiting,
					 .waiting_arg = use.waiting_arg,
					 .waiting_ns = use.waiting_ns ? use.waiting_ns : HF_SEC,
					 .priority = use.priority,
					 .owner = owner_of(locks->context, use.owner) };
	return use.owner ? check_lives(locks->context, name, &ret->owner, err) : 0;
}

/* A failure that is about a lock of the user's says so: "lock 'x': …". Those of other kinds are named by the layers that have them. */
static int about(const struct hf_locks *locks, const char *name, int r, struct hf_err *err)
{
	return locks->kind == HF_LOCK_KIND_NAME ? hf_err_wrap(err, r, "lock", name) : r;
}

int hf_lock_acquire_above(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts, uint64_t above,
			  struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err)
{
	AUTO_FREE struct hf_lock *lock = NULL;
	struct hf_lock_request request;
	struct hf_store *store;
	int r;

	if (!ret_lock)
		return FAIL(err, -EINVAL, "arguments", "hf_lock_acquire", "NULL");
	r = hf_locks_check(locks, name, err);
	if (r == 0)
		r = fill_request(locks, name, opts, &request, err);
	if (r < 0)
		return r;
	store = locks->context->store;
	/* Before the lock is taken: afterwards nothing may fail. */
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	lock->locks = locks;
	hf_copy_text(lock->name, sizeof(lock->name), name);
	lock->since = hf_boot_now();
	request.ret_since = &lock->since;
	request.above = above;
	r = store->ops->acquire(store, &request, &lock->token, ret_blocker, err);
	if (r < 0)
		return about(locks, name, r, err);
	*ret_lock = ptr_take(&lock);
	return 0;
}

int hf_lock_acquire(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts,
		    struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err)
{
	return hf_lock_acquire_above(locks, name, opts, 0, ret_lock, ret_blocker, err);
}

int hf_lock_raise(struct hf_lock *lock, uint64_t to, struct hf_err *err)
{
	struct hf_store *store = lock->locks->context->store;
	int r = hf_locks_check(lock->locks, lock->name, err);

	if (r == 0)
		r = store->ops->raise ? store->ops->raise(store, REF(lock->locks, lock->name), lock->token, to, err) : -ENOTSUP;
	if (r == 0)
		lock->token = to;
	return r;
}

void hf_lock_free(struct hf_lock *lock)
{
	free(lock);
}

uint64_t hf_lock_token(const struct hf_lock *lock)
{
	return lock->token;
}

struct hf_boot hf_lock_since(const struct hf_lock *lock)
{
	return lock->since;
}

struct hf_locks *hf_lock_locks(const struct hf_lock *lock)
{
	return lock->locks;
}

const char *hf_lock_name(const struct hf_lock *lock)
{
	return lock->name;
}

int hf_lock_check(struct hf_lock *lock, struct hf_err *err)
{
	return hf_lock_check_token(lock->locks, lock->name, lock->token, err);
}

int hf_lock_renew(struct hf_lock *lock, int64_t ttl_ns, struct hf_err *err)
{
	return hf_lock_renew_token(lock->locks, lock->name, lock->token, ttl_ns, err);
}

int hf_lock_release(struct hf_lock *lock, struct hf_err *err)
{
	return hf_lock_release_as(lock->locks, lock->name, lock->token, NULL, err);
}

int hf_lock_check_token(struct hf_locks *locks, const char *name, uint64_t token,
			struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	store = locks->context->store;
	return about(locks, name, store->ops->check(store, REF(locks, name), token, NULL, err), err);
}

int hf_lock_renew_token(struct hf_locks *locks, const char *name, uint64_t token, int64_t ttl_ns,
			struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	store = locks->context->store;
	if (token == 0 || ttl_ns < 0 || ttl_ns > HF_LOCK_TTL_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "a token and a length of at most 30 days are needed");
	if (ttl_ns > 0 && ttl_ns < store->min_ttl_ns)
		return fail_short(store, name, err);
	return about(locks, name, store->ops->renew(store, REF(locks, name), token, ttl_ns, err), err);
}

int hf_lock_release_as(struct hf_locks *locks, const char *name, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	store = locks->context->store;
	if (token == 0 && !owner)
		owner = &locks->context->self;
	return about(locks, name, store->ops->release(store, REF(locks, name), token, owner, err), err);
}

int hf_lock_add_owner(struct hf_lock *lock, const struct hf_proc_id *owner, struct hf_err *err)
{
	const struct hf_context *context = lock->locks->context;
	struct hf_owner second;
	int r = hf_locks_check(lock->locks, lock->name, err);

	if (r == 0 && !owner)
		r = FAIL(err, -EINVAL, "arguments", lock->name, "no owner");
	if (r < 0)
		return r;
	second = owner_of(context, owner);
	r = check_lives(context, lock->name, &second, err);
	return r < 0 ? r
		     : context->store->ops->add_owner(context->store, REF(lock->locks, lock->name),
						      lock->token, &second, err);
}

int hf_lock_break(struct hf_locks *locks, const char *name, const char *reason, struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	if (!reason || !reason[0])
		return FAIL(err, -EINVAL, "arguments", name, "breaking a lock needs a reason");
	store = locks->context->store;
	return about(locks, name, store->ops->take_away(store, REF(locks, name), reason, err), err);
}

int hf_lock_look(struct hf_locks *locks, const char *name,
		 void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
		 struct hf_err *err)
{
	struct hf_store *store;
	int r = hf_locks_check(locks, name, err);

	if (r < 0)
		return r;
	store = locks->context->store;
	return about(locks, name, store->ops->look(store, REF(locks, name), fn, arg, err), err);
}

int hf_lock_list_waited(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
			struct hf_err *err)
{
	struct hf_store *store;

	if (!locks || locks->context->process != getpid())
		return FAIL(err, locks ? HF_E_FORKED : -EINVAL, "list", "locks",
			    "open the locks again in this process");
	store = locks->context->store;
	return store->ops->list_waited ? store->ops->list_waited(store, fn, arg, err)
				       : FAIL(err, -ENOTSUP, "list", "locks", "this store has no such information");
}

int hf_lock_list(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_lock_info *info),
		 void *arg, struct hf_err *err)
{
	struct hf_store *store;

	if (!locks || locks->context->process != getpid())
		return FAIL(err, locks ? HF_E_FORKED : -EINVAL, "list", "locks",
			    "open the locks again in this process");
	store = locks->context->store;
	return store->ops->list(store, locks->kind, fn, arg, err);
}
