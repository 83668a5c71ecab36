/*
 * lock/etcd/etcd.h - the store of several machines: etcd through its JSON gateway.
 *
 * Under the prefix P, with NAME = kind "/" key of the name (hf_name_key: no user text reaches a key):
 *
 *     P q/NAME/<id>     leased: a place in the queue; its order is its create revision; waits or holds
 *     P h/NAME/<token>  without lease: the holder; deleted by release, break or the next holder
 *     P n/NAME          last token, slots
 *
 * A hold is both q and h. h without q is a holder whose lease ended; the one that then gets the lock
 * deletes h in the same transaction, and so it alone writes the event (L8). Entries leave ahead of us and
 * join behind us, so "nobody is ahead" stays true once it was. A grant compares its own q and n: so no
 * lock is given to a waiter whose lease has ended, and tokens rise (L2). Token: max(last + 1, wall clock
 * in microseconds), the number space of the local store.
 *
 * What a call could not find out is repeated; every request can be: leases have ids of ours,
 * transactions compare what they change.
 */
#ifndef LOCK_ETCD_ETCD_H
#define LOCK_ETCD_ETCD_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "hf/base/buf.h"
#include "hf/lock/etcd/wire/config.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/store.h"
#include "hf/proc/here.h"

#define HF_ETCD_SERIES_MAX  24
#define HF_ETCD_CLUSTER_MAX 24
#define HF_ETCD_TOKEN_MAX   256

/* A hold that this handle has taken, as it was stored then: its release need not read it. */
struct hf_etcd_taken {
	uint64_t token;
	int64_t create, mod, lease;
	char place[20];
};
#define HF_ETCD_TAKEN_MAX 32

struct hf_lease {
	int64_t id;
	int64_t ttl_ns;       /* as the server gave it, which may be longer */
	struct hf_boot since; /* when the request was sent: it has not begun before */
};

struct hf_etcd {
	struct hf_store base;
	struct hf_etcd_config config;
	const struct hf_http_module *module;
	struct hf_http *http;
	struct hf_state *state;
	struct hf_journal *journal;
	struct hf_proc_id self;
	struct hf_here here;
	char host[HF_HOST_ID_LEN + 1];
	char host_name[HF_HOST_NAME_MAX + 1];
	char series[HF_ETCD_SERIES_MAX];
	pthread_mutex_t mutex;         /* of what follows */
	unsigned endpoint;             /* it answered last; the host's name chooses the first */
	char token[HF_ETCD_TOKEN_MAX]; /* of the user; "": none yet */
	char cluster[HF_ETCD_CLUSTER_MAX]; /* "": not seen yet */
	struct hf_etcd_taken taken[HF_ETCD_TAKEN_MAX];
	unsigned next_taken;
	struct hf_lease prepared; /* id 0: none */
	struct hf_boot until; /* end of the lease that this process renews: its calls leave time for another server; 0: no limit */
	_Atomic int n_taken;           /* locks that this handle acquired: worth looking for a deadlock early */
};

static inline struct hf_etcd *hf_etcd_of(struct hf_store *store)
{
	return (struct hf_etcd *)store; /* its first member */
}

/* The codes of gRPC that mean something here. */
enum hf_grpc {
	HF_GRPC_OK = 0,
	HF_GRPC_UNKNOWN = 2,
	HF_GRPC_ARGUMENT = 3,
	HF_GRPC_LATE = 4,
	HF_GRPC_NOT_FOUND = 5,
	HF_GRPC_DENIED = 7,
	HF_GRPC_EXHAUSTED = 8,
	HF_GRPC_EXISTS = 9, /* FailedPrecondition: a lease of that id is there */
	HF_GRPC_UNAVAILABLE = 14,
	HF_GRPC_UNAUTHENTICATED = 16,
};

struct hf_answer {
	json_t *json;
	int code;        /* enum hf_grpc; what is not 0 was refused and not done */
	int repeated;    /* an earlier try may have been done as well */
	int64_t revision;
	uint64_t term;   /* 0: the answer does not say */
	int64_t date;    /* the server's clock in seconds; 0: not told */
	char text[160];  /* of a refusal */
};

#define HF_ANSWER_INIT { .json = NULL }

void hf_answer_done(struct hf_answer *answer);

/*
 * One call, at one server after the other, for at most twice the time of one try, and not beyond `until`; then a try
 * takes at most a third of the rest. Returns 0 when
 * there is an answer, also one that refuses; HF_E_STORE when there is none, and then it is not known
 * whether it was done.
 */
int hf_etcd_call(struct hf_etcd *etcd, const char *path, const struct hf_buf *body, struct hf_answer *ret,
		 struct hf_err *err);

/* The same at one server, once: for doctor. */
int hf_etcd_call_at(struct hf_etcd *etcd, unsigned endpoint, const char *path, const struct hf_buf *body,
		    struct hf_answer *ret, struct hf_err *err);

/* Sends it to the server that answered last, and does not wait for the answer where that can be left open. */
void hf_etcd_tell(struct hf_etcd *etcd, const char *path, const struct hf_buf *body);

/* The same, only where the answer can be left open. 0: it is on its way; -1: it is not. */
int hf_etcd_try_tell(struct hf_etcd *etcd, const char *path, const struct hf_buf *body);

/* Reports a refusal that the caller has no other use for. */
int hf_etcd_refused(const struct hf_answer *answer, const char *op, const char *subject, struct hf_err *err);

/* A number that stands there as a string or a number; 0 when it is absent. */
int64_t hf_json_number(const json_t *object, const char *key);

/* Did the compares of a transaction hold? Absent means no. */
int hf_answer_succeeded(const struct hf_answer *answer);

/* The answer to the nth operation of a transaction, or NULL. */
json_t *hf_answer_response(const struct hf_answer *answer, size_t n, const char *kind);

/* -- leases (lease.c) ----------------------------------------------------------------- */

/* A new lease of that many whole seconds, rounded up. */
int hf_lease_grant(struct hf_etcd *etcd, int64_t ttl_ns, struct hf_lease *ret, struct hf_err *err);

/* Asks for a lease and does not wait for the answer. 1: it was sent; 0: this way of asking does not work here. */
int hf_lease_prepare(struct hf_etcd *etcd, int64_t ttl_ns);

/* A lease that was given just now is as good as a new one. */
#define HF_LEASE_FRESH_NS (HF_SEC / 2)

/*
 * The lease that hf_lease_prepare has asked for, 1, or 0. Nobody has read the answer: if it was not given, what is put with it is refused. A
 * server may give more time than it was asked for, never less.
 */
int hf_lease_prepared(struct hf_etcd *etcd, int64_t ttl_ns, struct hf_lease *ret);

/* 0, with the term in which it was renewed; HF_E_STALE when there is no such lease. */
int hf_lease_keep(struct hf_etcd *etcd, int64_t id, int64_t *ret_ttl_ns, uint64_t *ret_term, struct hf_err *err);

/* Ends it and deletes its keys. Its failure is of no consequence: it ends by itself. */
void hf_lease_revoke(struct hf_etcd *etcd, int64_t id);

/* The same without waiting for the answer: of a lease that has no keys any more. */
void hf_lease_let_go(struct hf_etcd *etcd, int64_t id);

/* How long it lasts; 0: it has ended; -1: not known. */
int64_t hf_lease_left(struct hf_etcd *etcd, int64_t id);

/* -- the parts of the table (store.h) --------------------------------------------------- */

int hf_etcd_acquire(struct hf_store *store, const struct hf_lock_request *request, uint64_t *ret_token,
		    struct hf_holder *ret_blocker, struct hf_err *err);
int hf_etcd_renew(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, int64_t ttl_ns,
		  struct hf_err *err);
int hf_etcd_release(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		    const struct hf_proc_id *owner, struct hf_err *err);
int hf_etcd_add_owner(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		      const struct hf_owner *owner, struct hf_err *err);
int hf_etcd_check(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		  enum hf_lock_mode *ret_mode, struct hf_err *err);
int hf_etcd_take_away(struct hf_store *store, const struct hf_lock_ref *lock, const char *reason,
		      struct hf_err *err);
int hf_etcd_look(struct hf_store *store, const struct hf_lock_ref *lock, hf_lock_look_fn *fn, void *arg,
		 struct hf_err *err);
int hf_etcd_list(struct hf_store *store, enum hf_lock_kind kind, hf_lock_look_fn *fn, void *arg,
		 struct hf_err *err);
int hf_etcd_list_waited(struct hf_store *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err);

#endif
