/* lock/local/ops.h - the verbs of the local store, as they stand in its table (store.h). */
#ifndef LOCK_LOCAL_OPS_H
#define LOCK_LOCAL_OPS_H

#include "hf/lock/store.h"

int hf_local_acquire(void *store, const struct hf_lock_request *request, uint64_t *ret_token,
		     struct hf_holder *ret_blocker, struct hf_err *err);
int hf_local_renew(void *store, const char *name, uint64_t token, int64_t ttl_ns,
		   struct hf_err *err);
int hf_local_release(void *store, const char *name, uint64_t token,
		     const struct hf_proc_id *owner, struct hf_err *err);
int hf_local_add_owner(void *store, const char *name, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err);
int hf_local_check(void *store, const char *name, uint64_t token, struct hf_err *err);
int hf_local_guarded(void *store, const char *name, uint64_t token, int (*action)(void *arg),
		     void *arg, struct hf_err *err);
int hf_local_take_away(void *store, const char *name, const char *reason, struct hf_err *err);
int hf_local_look(void *store, const char *name, hf_lock_look_fn *fn, void *arg,
		  struct hf_err *err);
int hf_local_list(void *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err);

#endif
