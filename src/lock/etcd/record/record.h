/*
 * lock/etcd/record/record.h - what is stored of a lock, and reading it as it was at one moment.
 *
 * Values are JSON with "v":1. A place in the queue that cannot be read counts as an exclusive holder
 * that nobody can judge (L4): it ends with its lease.
 */
#ifndef LOCK_ETCD_RECORD_RECORD_H
#define LOCK_ETCD_RECORD_RECORD_H

#include "hf/lock/board.h"
#include "hf/lock/etcd/etcd.h"
#include "hf/lock/etcd/wire/request.h"
#include "holdfast/name.h"

#define HF_ETCD_KEY_MAX   (HF_ETCD_PREFIX_MAX + HF_NAME_KEY_MAX + 48)
#define HF_ETCD_ID_MAX    17 /* a place: 16 hexadecimal digits */
#define HF_ETCD_OWNERS    2
#define HF_ETCD_HOLDS_MAX (HF_LOCK_SLOTS_MAX + 2)

/* The keys of one lock. */
struct hf_etcd_keys {
	char queue[HF_ETCD_KEY_MAX], queue_end[HF_ETCD_KEY_MAX]; /* "P q/NAME/" and the first key behind */
	char holds[HF_ETCD_KEY_MAX], holds_end[HF_ETCD_KEY_MAX];
	char last[HF_ETCD_KEY_MAX];
	char broken[HF_ETCD_KEY_MAX];
	char facts[HF_ETCD_KEY_MAX]; /* of the session of that name (board.h) */
};

int hf_etcd_keys_of(const struct hf_etcd *etcd, const struct hf_lock_ref *lock, struct hf_etcd_keys *ret, struct hf_err *err);
void hf_etcd_place_key(const struct hf_etcd_keys *keys, const char *id, char out[HF_ETCD_KEY_MAX]);
void hf_etcd_hold_key(const struct hf_etcd_keys *keys, uint64_t token, char out[HF_ETCD_KEY_MAX]);

struct hf_etcd_owner {
	struct hf_owner owner;
	char name[HF_HOST_NAME_MAX + 1]; /* of its host, for people */
};

/* A place in the queue. */
struct hf_place {
	char id[HF_ETCD_ID_MAX];
	int64_t create;  /* its order */
	int64_t lease;
	int holds;
	enum hf_lock_mode mode;
	unsigned slots;
	uint64_t token;  /* of one that holds */
	struct hf_etcd_owner owner, waiter;
	int64_t since_ms;
	char asked[HF_BOARD_ASK_MAX]; /* what its holder was asked for (board.h); "": nothing */
	int readable;
};

/* A holder. */
struct hf_etcd_hold {
	uint64_t token;
	int64_t mod;
	int64_t lease;
	char place[HF_ETCD_ID_MAX];
	int64_t create;  /* of its place; 0: the place is gone, so the lease has ended */
	enum hf_lock_mode mode;
	unsigned slots, count, flags;
	int64_t ttl_ns, since_ms;
	struct hf_etcd_owner owners[HF_ETCD_OWNERS];
	unsigned n_owners;
};

/* A lock at one revision. */
struct hf_etcd_state {
	int64_t revision;
	uint64_t term;
	uint64_t token;  /* the last one given */
	unsigned slots;
	int64_t last_mod; /* of the key n; 0: there is none */
	struct hf_place *places; /* the first ones, in order: all that hold, and at least one more if there is one */
	size_t n_places;
	struct hf_etcd_hold holds[HF_ETCD_HOLDS_MAX];
	size_t n_holds;
	struct hf_place mine, before; /* create is 0 where there is none */
};

void hf_etcd_state_free(struct hf_etcd_state *state);

/*
 * Reads the lock. With `mine`, the id of our own place, also that and the place before it; without it, `before` is the last of
 * all, unless only HF_ETCD_FEW places are asked for: to find it etcd reads the whole queue. `limit`: at least so many places, if there are.
 */
#define HF_ETCD_FEW 4
int hf_etcd_state_read(struct hf_etcd *etcd, const struct hf_etcd_keys *keys, const struct hf_place *mine,
		       int64_t limit, struct hf_etcd_state *ret, struct hf_err *err);

/* One key with its value, of the answer to a range. */
struct hf_kv {
	struct hf_buf key, value;
	int64_t create, mod, lease;
};

#define HF_KV_INIT { .key = HF_BUF_INIT, .value = HF_BUF_INIT }

void hf_kv_done(struct hf_kv *kv);

/* The nth of a range's answer. 1, or 0 when there is none or it is no key with a value. */
int hf_kv_read(const json_t *range, size_t n, struct hf_kv *ret);

/* One such key. */
int hf_kv_of(const json_t *kv, struct hf_kv *ret);

/* Reads a place or a holder; the id is the last part of the key. A place always comes out. */
void hf_place_read(const struct hf_kv *kv, struct hf_place *ret);
int hf_hold_read(const struct hf_kv *kv, struct hf_etcd_hold *ret);

/* The JSON of each. NULL without memory; to be freed. */
char *hf_place_text(const struct hf_place *place);
char *hf_hold_text(const struct hf_etcd_hold *hold);

/* The owner of a request, with the name of this host. */
struct hf_etcd_owner hf_etcd_owner_here(const struct hf_etcd *etcd, const struct hf_owner *owner);

int hf_etcd_owner_equal(const struct hf_owner *a, const struct hf_owner *b);

/* Does it live? Proven dead only on this host (and boot); elsewhere it is unknown. As hf_proc_judge; *ret_pidfd may be NULL. */
int hf_etcd_judge(const struct hf_etcd *etcd, const struct hf_owner *owner, int *ret_pidfd, char evidence[HF_EVIDENCE_MAX]);

/* Are all owners of the hold proven dead? The evidence is that of the last. */
int hf_etcd_hold_is_dead(const struct hf_etcd *etcd, const struct hf_etcd_hold *hold, char evidence[HF_EVIDENCE_MAX]);

#endif
