/* lock/lock.c - the public functions: arguments, handles and processes; the rest is the store's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/store.h"
#include "holdfast/name.h"

/* struct hf_lock_opts as it was at first. */
#define OPTS_SIZE_1 offsetof(struct hf_lock_opts, cancel_fd)

struct hf_locks {
	const struct hf_store_ops *ops;
	void *store;
	pid_t process; /* a forked child is refused */
	struct hf_proc_id self;
};

struct hf_lock {
	struct hf_locks *locks;
	uint64_t token;
	char name[HF_NAME_MAX + 1];
};

int hf_locks_open(struct hf_state *state, struct hf_journal *journal, struct hf_locks **ret_locks,
		  struct hf_err *err)
{
	AUTO_FREE struct hf_locks *locks = NULL;
	int r;

	if (!state || !ret_locks)
		return FAIL(err, -EINVAL, "arguments", "hf_locks_open", "NULL");
	locks = calloc(1, sizeof(*locks));
	if (!locks)
		return hf_fail_sys(err, ENOMEM, "memory", "locks");
	locks->process = getpid();
	locks->ops = &hf_local_ops;
	r = hf_proc_self(&locks->self, err);
	if (r < 0)
		return r;
	r = hf_local_open(state, journal, &locks->self, &locks->store, err);
	if (r < 0)
		return r;
	*ret_locks = ptr_take(&locks);
	return 0;
}

void hf_locks_free(struct hf_locks *locks)
{
	if (!locks)
		return;
	locks->ops->free(locks->store);
	free(locks);
}

void hf_locks_set_patience(struct hf_locks *locks, int64_t ns)
{
	locks->ops->set_patience(locks->store, ns);
}

void *hf_locks_store(struct hf_locks *locks)
{
	return locks->store;
}

/* What every call checks first: the context, the process, the name. */
static int check_call(struct hf_locks *locks, const char *name, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r;

	if (!locks)
		return FAIL(err, -EINVAL, "arguments", "lock", "NULL");
	if (locks->process != getpid())
		return FAIL(err, HF_E_FORKED, "lock", name ? name : "lock",
			    "open the locks anew in this process");
	r = hf_name_key(name, name ? strlen(name) : 0, key, err);
	return r < 0 ? r : 0;
}

static int fill_request(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts,
			struct hf_lock_request *ret, struct hf_err *err)
{
	struct hf_lock_opts use = { .size = sizeof(use) };
	char evidence[HF_EVIDENCE_MAX];

	/* A program that was built before a field was added does not have it. */
	if (opts && opts->size < OPTS_SIZE_1)
		return FAIL(err, -EINVAL, "arguments", name, "size is not set");
	if (opts)
		memcpy(&use, opts, opts->size < sizeof(use) ? opts->size : sizeof(use));
	if (use.mode == HF_LOCK_SLOTS ? use.slots < 1 || use.slots > HF_LOCK_SLOTS_MAX
				      : use.slots != 0)
		return FAIL(err, -EINVAL, "arguments", name, "slots go from 1 to %d",
			    HF_LOCK_SLOTS_MAX);
	if (use.ttl_ns < 0 || use.ttl_ns > HF_LOCK_TTL_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "a lease is at most 30 days long");
	if ((unsigned)use.mode > HF_LOCK_SLOTS ||
	    use.flags & ~(unsigned)(HF_LOCK_REENTRANT | HF_LOCK_FREE_ON_EXIT))
		return FAIL(err, -EINVAL, "arguments", name, "unknown mode or flag");
	if (use.cancel_fd < 0)
		return FAIL(err, -EINVAL, "arguments", name, "cancel_fd is not a descriptor");
	if (use.owner && hf_proc_liveness(use.owner, 0, evidence) == HF_DEAD)
		return FAIL(err, HF_E_GONE, "owner", name, "%s", evidence);
	*ret = (struct hf_lock_request){ .name = name,
					 .mode = use.mode,
					 .slots = use.slots,
					 .wait_ns = use.wait_ns,
					 .ttl_ns = use.ttl_ns,
					 .flags = use.flags,
					 .cancel_fd = use.cancel_fd,
					 .owner = use.owner ? *use.owner : locks->self,
					 .thread = use.owner ? 0 : (int32_t)gettid() };
	return 0;
}

int hf_lock_acquire(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts,
		    struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err)
{
	AUTO_FREE struct hf_lock *lock = NULL;
	struct hf_lock_request request;
	int r;

	if (!ret_lock)
		return FAIL(err, -EINVAL, "arguments", "hf_lock_acquire", "NULL");
	r = check_call(locks, name, err);
	if (r == 0)
		r = fill_request(locks, name, opts, &request, err);
	if (r < 0)
		return r;
	/* Before the lock is taken: afterwards nothing may fail. */
	lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	lock->locks = locks;
	hf_copy_text(lock->name, sizeof(lock->name), name);
	r = locks->ops->acquire(locks->store, &request, &lock->token, ret_blocker, err);
	if (r < 0)
		return r;
	*ret_lock = ptr_take(&lock);
	return 0;
}

void hf_lock_free(struct hf_lock *lock)
{
	free(lock);
}

uint64_t hf_lock_token(const struct hf_lock *lock)
{
	return lock->token;
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
	int r = check_call(locks, name, err);

	return r < 0 ? r : locks->ops->check(locks->store, name, token, err);
}

int hf_lock_renew_token(struct hf_locks *locks, const char *name, uint64_t token, int64_t ttl_ns,
			struct hf_err *err)
{
	int r = check_call(locks, name, err);

	if (r == 0 && (token == 0 || ttl_ns < 0 || ttl_ns > HF_LOCK_TTL_MAX))
		r = FAIL(err, -EINVAL, "arguments", name, "a token and at most 30 days");
	return r < 0 ? r : locks->ops->renew(locks->store, name, token, ttl_ns, err);
}

int hf_lock_release_as(struct hf_locks *locks, const char *name, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err)
{
	int r = check_call(locks, name, err);

	if (r == 0 && token == 0 && !owner)
		owner = &locks->self;
	return r < 0 ? r : locks->ops->release(locks->store, name, token, owner, err);
}

int hf_lock_add_owner(struct hf_lock *lock, const struct hf_proc_id *owner, struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX];
	int r = check_call(lock->locks, lock->name, err);

	if (r == 0 && !owner)
		r = FAIL(err, -EINVAL, "arguments", lock->name, "no owner");
	if (r == 0 && hf_proc_liveness(owner, 0, evidence) == HF_DEAD)
		r = FAIL(err, HF_E_GONE, "owner", lock->name, "%s", evidence);
	return r < 0 ? r
		     : lock->locks->ops->add_owner(lock->locks->store, lock->name, lock->token, owner,
						   err);
}

int hf_lock_break(struct hf_locks *locks, const char *name, const char *reason, struct hf_err *err)
{
	int r = check_call(locks, name, err);

	if (r == 0 && (!reason || !reason[0]))
		r = FAIL(err, -EINVAL, "arguments", name, "breaking a lock needs a reason");
	return r < 0 ? r : locks->ops->take_away(locks->store, name, reason, err);
}

int hf_lock_guarded(struct hf_locks *locks, const char *name, uint64_t token,
		    int (*action)(void *arg), void *arg, struct hf_err *err)
{
	int r = check_call(locks, name, err);

	if (r == 0 && (token == 0 || !action))
		r = FAIL(err, -EINVAL, "arguments", name, "a token and an action");
	return r < 0 ? r : locks->ops->guarded(locks->store, name, token, action, arg, err);
}

int hf_lock_look(struct hf_locks *locks, const char *name,
		 void (*fn)(void *arg, const struct hf_lock_info *info), void *arg,
		 struct hf_err *err)
{
	int r = check_call(locks, name, err);

	return r < 0 ? r : locks->ops->look(locks->store, name, fn, arg, err);
}

int hf_lock_list(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_lock_info *info),
		 void *arg, struct hf_err *err)
{
	if (!locks || locks->process != getpid())
		return FAIL(err, locks ? HF_E_FORKED : -EINVAL, "list", "locks",
			    "open the locks anew in this process");
	return locks->ops->list(locks->store, fn, arg, err);
}
