/* lock/local/inspect.h - going through all locks. */
#ifndef LOCK_LOCAL_INSPECT_H
#define LOCK_LOCAL_INSPECT_H

#include "hf/lock/local/local.h"

/* Calls `fn` with the name of every lock there is, until it gives something else than 0. */
int hf_local_each(struct hf_local *locks, int (*fn)(void *arg, const char *name), void *arg,
		  struct hf_err *err);

#endif
