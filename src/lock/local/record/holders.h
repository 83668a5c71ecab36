/* lock/local/record/holders.h - the holders of a record: which may join them, which have lost the lock. */
#ifndef LOCK_LOCAL_RECORD_HOLDERS_H
#define LOCK_LOCAL_RECORD_HOLDERS_H

#include "hf/lock/holder.h"
#include "hf/lock/local/record/guard.h"

/* Could a request of that mode be let in beside the present holders? */
int hf_record_admits(const struct hf_lock_record *record, enum hf_lock_mode mode);

/*
 * Removes holders that are dead, and with `expired_too` those whose lease has run
 * out; one event each (L8). Returns how many.
 */
int hf_record_reap(struct hf_guard *guard, int expired_too);

/* When a lease that begins now ends, as the record can say it: at the next full millisecond. */
int64_t hf_lease_end(const struct hf_local *locks, uint32_t ttl_ms);

/* Nanoseconds of lease left: -1 none, 0 expired; an absurd end is clamped. */
int64_t hf_holder_lease_left(const struct hf_local *locks, const struct hf_lock_holder *holder);

/* Index of the holder of `token`, or -1. */
int hf_record_find(const struct hf_lock_record *record, uint64_t token);

/* Adds a holder with a new token, which is returned. There must be room. */
uint64_t hf_record_add(struct hf_guard *guard, const struct hf_lock_entry *entry);

void hf_record_remove(struct hf_guard *guard, uint32_t index);

/* Removes the hold of `token`: its owner, or both of them. */
void hf_record_remove_token(struct hf_guard *guard, uint64_t token);

/* 1 when another holder has the same token: the second owner of one hold. */
int hf_record_shares_token(const struct hf_lock_record *record, uint32_t index);

/* Its mode; a record is of slots, shared or exclusive as a whole. */
enum hf_lock_mode hf_holder_mode(const struct hf_lock_record *record,
				 const struct hf_lock_holder *holder);

/* Fills in what others may see of a holder, with its liveness. */
void hf_holder_show(const struct hf_local *locks, const struct hf_lock_record *record,
		    const struct hf_lock_holder *holder, struct hf_holder *ret);

/* The same of one that is known to be dead, by `evidence`. */
void hf_holder_show_dead(const struct hf_local *locks, const struct hf_lock_record *record,
			 const struct hf_lock_holder *holder, const char *evidence,
			 struct hf_holder *ret);

#endif
