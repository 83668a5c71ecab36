/*
 * lock/store.h - what a store of locks does; the local files are the first one.
 *
 * The public functions (lock.h) check their arguments, know about processes and
 * handles, and leave the rest to a store through this table. Nothing in it says
 * that tokens, owners or waits are local: a store on several machines implements
 * the same verbs and passes the same tests (tests/unit/test_lock.c).
 */
#ifndef LOCK_STORE_H
#define LOCK_STORE_H

#include "holdfast/lock.h"

/* A request with every default filled in. */
struct hf_lock_request {
	const char *name;
	enum hf_lock_mode mode;
	unsigned slots; /* 0 unless mode is HF_LOCK_SLOTS */
	int64_t wait_ns;
	int64_t ttl_ns;
	unsigned flags;
	struct hf_proc_id owner;
	int32_t thread; /* 0: the process as a whole */
	int cancel_fd;  /* 0: none */
};

typedef void hf_lock_look_fn(void *arg, const struct hf_lock_info *info);

struct hf_store_ops {
	int (*acquire)(void *store, const struct hf_lock_request *request, uint64_t *ret_token,
		       struct hf_holder *ret_blocker, struct hf_err *err);
	int (*renew)(void *store, const char *name, uint64_t token, int64_t ttl_ns,
		     struct hf_err *err);
	int (*release)(void *store, const char *name, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err);
	int (*add_owner)(void *store, const char *name, uint64_t token,
			 const struct hf_proc_id *owner, struct hf_err *err);
	int (*check)(void *store, const char *name, uint64_t token, struct hf_err *err);
	int (*guarded)(void *store, const char *name, uint64_t token, int (*action)(void *arg),
		       void *arg, struct hf_err *err);
	int (*take_away)(void *store, const char *name, const char *reason, struct hf_err *err);
	int (*look)(void *store, const char *name, hf_lock_look_fn *fn, void *arg,
		    struct hf_err *err);
	int (*list)(void *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err);
	void (*set_patience)(void *store, int64_t ns);
	void (*free)(void *store);
};

extern const struct hf_store_ops hf_local_ops;

/* Opens the local store for the process `self`. The journal may be NULL. */
int hf_local_open(struct hf_state *state, struct hf_journal *journal, const struct hf_proc_id *self,
		  void **ret_store, struct hf_err *err);

/*
 * How long a call without a deadline of its own waits for the record of a lock, which a process that is
 * stopped in the middle of a call may hold for long; then it fails with -ETIMEDOUT. 0: the default. For a
 * process with one thread that has its own clock to keep.
 */
void hf_locks_set_patience(struct hf_locks *locks, int64_t ns);

/* The store behind the public handle, so that tests can set its bounds. */
void *hf_locks_store(struct hf_locks *locks);

#endif
