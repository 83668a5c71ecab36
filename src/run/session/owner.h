/*
 * run/session/owner.h - the keeper that holds a session's lock now, as the lock knows it.
 *
 * For when the record does not tell: it is not written yet, or it is damaged.
 */
#ifndef RUN_SESSION_OWNER_H
#define RUN_SESSION_OWNER_H

#include "hf/run/session/record/store.h"

struct hf_session_owner {
	struct hf_proc_id keeper;
	struct hf_proc_id supervisor; /* pid 0: it is gone */
	uint64_t token;
	struct hf_wall since;
	int has_child; /* it has started something, so it has written its record before */
	char evidence[HF_EVIDENCE_MAX];
};

/* 1 when a keeper that lives holds the lock of `name`; 0 when none does, or none can be proven. */
int hf_session_find_owner(struct hf_sessions *sessions, const char *name,
			  struct hf_session_owner *ret);

/* 1 when a keeper that lives is among the holders of that lock. */
int hf_session_holds_lock(struct hf_sessions *sessions, const struct hf_lock_info *info);

#endif
