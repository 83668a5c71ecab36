/*
 * lock/local/record/record.h - the lock file: one record of at most one page.
 *
 * In memory `struct hf_lock_record`; on disk little-endian, 128 bytes of header,
 * then `n_places` places of 32 bytes, `n_holders` holders of 58 and, where it is known
 * and fits, the entry of the first waiter, checksummed as a whole (docs/FORMATS.md). It
 * is read and written only under the guard, by one pread and one pwrite.
 */
#ifndef LOCK_LOCAL_RECORD_RECORD_H
#define LOCK_LOCAL_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/lock.h"

#define HF_LOCK_RECORD_MAX 4096
#define HF_LOCK_START_MAX  ((UINT64_C(1) << 48) - 1) /* start ticks of a holder */
#define HF_LOCK_PLACES_MAX 8
#define HF_LOCK_QUEUE_MAX  16384 /* entries of the ring behind the record */
#define HF_LOCK_FILE_MAX   (HF_LOCK_RECORD_MAX + HF_LOCK_QUEUE_MAX * HF_LOCK_ENTRY_SIZE)

enum hf_lock_holder_flags {
	HF_HOLDER_FREE_ON_EXIT = 1 << 0,
	HF_HOLDER_SHARED = 1 << 1,
	HF_HOLDER_JOINT = 1 << 2, /* second owner of an exclusive hold or of a slot: same token */
};

/* What many holders have in common: where their pid means something. */
struct hf_lock_place {
	char boot_id[HF_BOOT_ID_LEN + 1];
	uint64_t pid_ns;
	uint64_t time_ns;
};

struct hf_lock_holder {
	struct hf_proc_id id;
	int32_t thread;       /* 0: the process as a whole */
	unsigned flags;       /* enum hf_lock_holder_flags */
	unsigned count;       /* reentrant acquisitions; at least 1 */
	uint32_t ttl_ms;      /* 0: no lease */
	int64_t lease_end_ns; /* boot time, of the holder's boot; stored in milliseconds */
	int64_t since_ms;     /* wall clock: when it got the lock. A token is no time */
	uint64_t token;
	uint64_t ticket;      /* its place in the queue before; 0: it did not wait */
};

/* One waiter in the queue file. */
#define HF_LOCK_ENTRY_SIZE 192

enum hf_lock_entry_state {
	HF_ENTRY_WAITING = 1,
	HF_ENTRY_GONE = 2, /* gave up, or died */
};

struct hf_lock_entry {
	enum hf_lock_entry_state state;
	uint64_t ticket;
	enum hf_lock_mode mode;
	struct hf_proc_id waiter; /* the process that sleeps */
	int32_t waiter_thread;
	struct hf_proc_id owner;  /* the one that gets the lock */
	int32_t owner_thread;
	int64_t since_ns;         /* boot time */
	unsigned flags;           /* enum hf_lock_holder_flags, for the holder it becomes */
	uint32_t ttl_ms;
	uint32_t slots;
	uint32_t priority;        /* the highest is let in first */
};

struct hf_lock_record {
	uint64_t token;       /* the last one given, ever */
	uint64_t first;       /* ticket of the next waiter to be let in, if it is still there */
	uint64_t next;        /* the next ticket to be given; first == next: no queue */
	uint32_t slots;       /* 0: not a slots lock */
	uint32_t n_holders;
	int ranked;           /* a waiter that is or was in the queue has a priority: `first` need not be the next */
	int has_front;        /* `front` is the entry of `first`, so that it need not be read */
	struct hf_lock_entry front;
	struct hf_lock_holder holders[HF_LOCK_SLOTS_MAX];
};

/* How many holds there are: two owners of one are one. */
uint32_t hf_record_holds(const struct hf_lock_record *record);

/*
 * Encodes into `out`; returns the length. -E2BIG when the holders come from more
 * places than fit (then nobody new is let in).
 */
int hf_lock_record_encode(const struct hf_lock_record *record, uint8_t out[HF_LOCK_RECORD_MAX]);

/*
 * Decodes and checks everything that can be checked. Returns 0, or HF_E_FORMAT with
 * the reason in *ret_why, and *ret is not to be used: such a record is quarantined,
 * never acted upon. Decodes in place, and only the holders there are: it is large.
 */
int hf_lock_record_decode(const uint8_t *bytes, size_t len, struct hf_lock_record *ret,
			  const char **ret_why);

void hf_lock_entry_encode(const struct hf_lock_entry *entry, uint8_t out[HF_LOCK_ENTRY_SIZE]);

/* The ticket of an entry that waits, by its looks: not yet checked. 0: it does not. */
uint64_t hf_lock_entry_waiting(const uint8_t bytes[HF_LOCK_ENTRY_SIZE]);

/* Returns 0, or HF_E_FORMAT for bytes that are no entry (or one of another ticket). */
int hf_lock_entry_decode(const uint8_t bytes[HF_LOCK_ENTRY_SIZE], uint64_t ticket,
			 struct hf_lock_entry *ret);

#endif
