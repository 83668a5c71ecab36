/* lock/local/ops.h - the verbs of the local store, as they stand in its table (store.h). */
#ifndef LOCK_LOCAL_OPS_H
#define LOCK_LOCAL_OPS_H

#include "hf/lock/store.h"

int hf_local_acquire(struct hf_store *store, const struct hf_lock_request *request,
		     uint64_t *ret_token, struct hf_holder *ret_blocker, struct hf_err *err);
int hf_local_renew(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		   int64_t ttl_ns, struct hf_err *err);
int hf_local_release(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		     const struct hf_proc_id *owner, struct hf_err *err);
int hf_local_add_owner(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		       const struct hf_owner *owner, struct hf_err *err);
int hf_local_raise(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, uint64_t to, struct hf_err *err);
int hf_local_check(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		   enum hf_lock_mode *ret_mode, struct hf_err *err);
int hf_local_hold(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		  struct hf_hold **ret_hold, struct hf_err *err);
void hf_local_let_go(struct hf_hold *hold);
int hf_local_take_away(struct hf_store *store, const struct hf_lock_ref *lock, const char *reason,
		       struct hf_err *err);
int hf_local_look(struct hf_store *store, const struct hf_lock_ref *lock, hf_lock_look_fn *fn,
		  void *arg, struct hf_err *err);
int hf_local_list(struct hf_store *store, enum hf_lock_kind kind, hf_lock_look_fn *fn, void *arg,
		  struct hf_err *err);
int hf_local_forget(struct hf_store *store, const struct hf_lock_ref *lock, const struct hf_forget *how, struct hf_err *err);
int hf_local_forget_idle(struct hf_store *store, enum hf_lock_kind kind, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err);
int hf_local_list_waited(struct hf_store *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err);

#endif
