/* lock/local/inspect.h - going through all locks. */
#ifndef LOCK_LOCAL_INSPECT_H
#define LOCK_LOCAL_INSPECT_H

#include "hf/lock/local/local.h"

/* Calls `fn` with every lock of the kind, until it gives something else than 0. */
int hf_local_each(struct hf_local *locks, enum hf_lock_kind kind,
		  int (*fn)(void *arg, const struct hf_lock_ref *lock), void *arg,
		  struct hf_err *err);

#endif
