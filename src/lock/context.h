/*
 * lock/context.h - behind struct hf_locks: one store, seen as the locks of one kind.
 *
 * A context has one handle for each kind; they are parts of it, so that hf_locks_kind neither
 * allocates nor fails. What is the same for all of them stands in struct hf_context.
 */
#ifndef LOCK_CONTEXT_H
#define LOCK_CONTEXT_H

#include <sys/types.h>

#include "hf/lock/fence/fence.h"
#include "hf/lock/store.h"

struct hf_locks {
	struct hf_context *context;
	enum hf_lock_kind kind;
};

struct hf_context {
	struct hf_store *store;
	struct hf_journal *journal; /* may be NULL */
	pid_t process;              /* a forked child is refused */
	struct hf_proc_id self;
	char host[HF_HOST_ID_LEN + 1]; /* "": the store does not need it */
	struct hf_fences fences;
	char *url; /* the store's; NULL: the default */
	int64_t patience_ns; /* hf_locks_set_patience, for the fences */
	struct hf_locks kinds[HF_LOCK_KINDS];
};

/* What every call checks first: the context, the process, the name. */
int hf_locks_check(struct hf_locks *locks, const char *name, struct hf_err *err);

#endif
