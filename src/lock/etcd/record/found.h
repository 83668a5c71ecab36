/*
 * lock/etcd/record/found.h - a lock as a verb finds it, and the refusal of what its token does not allow.
 */
#ifndef LOCK_ETCD_RECORD_FOUND_H
#define LOCK_ETCD_RECORD_FOUND_H

#include "hf/lock/etcd/record/record.h"

struct hf_etcd_found {
	struct hf_etcd *etcd;
	const struct hf_lock_ref *lock;
	struct hf_etcd_keys keys;
	struct hf_etcd_state state;
};

void hf_etcd_found_done(struct hf_etcd_found *found);

int hf_etcd_found_read(struct hf_store *store, const struct hf_lock_ref *lock, struct hf_etcd_found *ret, struct hf_err *err);

/* The hold of that token, or NULL. */
struct hf_etcd_hold *hf_etcd_found_hold(struct hf_etcd_found *found, uint64_t token);

/* The current hold of `token`; refuses otherwise. */
int hf_etcd_found_current(struct hf_etcd_found *found, const char *action, uint64_t token, struct hf_etcd_hold **ret, struct hf_err *err);

/* Both: reads the lock, and finds the current hold of `token` in it. */
int hf_etcd_found_read_current(struct hf_store *store, const struct hf_lock_ref *lock, const char *action, uint64_t token, struct hf_etcd_found *ret,
			       struct hf_etcd_hold **ret_hold, struct hf_err *err);

/* Refuses, names the holder, and leaves one event (L3, L8). Nothing is changed. */
int hf_etcd_found_refuse(struct hf_etcd_found *found, int code, const char *action, const char *why, struct hf_err *err);

/* Deletes the hold and its place; deletes only, which a cluster without space still does. 1: done; 0: it changed; or a failure. */
int hf_etcd_found_remove(struct hf_etcd_found *found, const struct hf_etcd_hold *hold, struct hf_err *err);

/* How often a verb reads again what others change meanwhile. */
#define HF_ETCD_CHANGES_MAX 16

#endif
