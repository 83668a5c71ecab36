/*
 * lock/store.h - what a store of locks does; the local files (lock/local) are the first one.
 *
 * The public functions (lock.h) check their arguments, know about processes and handles, and leave
 * the rest to a store through this table. Nothing in it says that tokens, owners or waits are
 * local: a store on several machines implements the same verbs and passes the same tests
 * (tests/store). A store embeds struct hf_store as its first member.
 *
 * A store proves that a token is current. That lower tokens never reach a resource of this machine
 * again is the fence's part (fence.h), whatever the store is.
 */
#ifndef LOCK_STORE_H
#define LOCK_STORE_H

#include "hf/proc/here.h"
#include "holdfast/lock.h"

/* Which lock: a kind and a name are two things, so no name ever reaches into another kind. */
struct hf_lock_ref {
	enum hf_lock_kind kind;
	const char *name;
};

/* The owner of a lock, as every machine that uses the store can tell it from others. */
struct hf_owner {
	char host[HF_HOST_ID_LEN + 1]; /* hf_host_id; "" in a store that has HF_STORE_ONE_HOST */
	struct hf_proc_id id;
	int32_t thread;                /* 0: the process as a whole */
};

/* A request with every default filled in. */
struct hf_lock_request {
	struct hf_lock_ref lock;
	enum hf_lock_mode mode;
	unsigned slots; /* 0 unless mode is HF_LOCK_SLOTS */
	int64_t wait_ns;
	int64_t ttl_ns;
	unsigned flags;
	struct hf_owner owner;
	int cancel_fd;  /* ends the wait when it is readable; 0: none */
	int (*go_on)(void *arg); /* asked first, if not NULL: 1 goes on */
	void *go_on_arg;
	void (*waiting)(void *arg, const struct hf_lock_waiting *waiting); /* NULL: none */
	void *waiting_arg;
	int64_t waiting_ns;
	unsigned priority;
	uint64_t above; /* the token is higher than that; for stores with HF_STORE_NEEDS_LEASE */
	struct hf_boot *ret_since; /* when the lease began at the latest, for stores with HF_STORE_NEEDS_LEASE; may be NULL */
};

typedef void hf_lock_look_fn(void *arg, const struct hf_lock_info *info);

enum hf_store_caps {
	HF_STORE_SEES_DEATH = 1 << 0, /* an owner of this machine that dies is replaced; without it, each hold needs a lease */
	HF_STORE_HAS_SLOTS = 1 << 1,  /* HF_LOCK_SLOTS; without it, only exclusive and shared holds */
	HF_STORE_ONE_HOST = 1 << 2,   /* its owners are processes of this machine, and their host goes without saying */
	HF_STORE_NEEDS_LEASE = 1 << 3, /* each hold needs a lease, because other machines cannot see an owner's death */
	HF_STORE_KEEPS_EXPIRED = 1 << 4, /* a hold whose lease has ended is current until another process wants the lock */
	HF_STORE_GIVES = 1 << 5, /* a release gives the lock to the next waiter, which may not have noticed it yet */
};

struct hf_store;

/* A lock that is kept as it is: its token cannot be lost until let_go. */
struct hf_hold {
	struct hf_store *store;
	enum hf_lock_mode mode;
};

/* How a lock that nobody holds or waits for is forgotten. */
struct hf_forget {
	int (*action)(void *arg); /* runs first, while no process can take the lock; less than 0 ends it. May be NULL */
	void *arg;
	int keep_record;          /* that is all: the record stays */
	int64_t quiet_ns;         /* a record whose last acquisition is not that long ago stays */
};

struct hf_store_ops {
	/* Another process does what is to be done for a while: what it keeps open may be closed. NULL: nothing is. */
	void (*rest)(struct hf_store *store);
	int (*acquire)(struct hf_store *store, const struct hf_lock_request *request,
		       uint64_t *ret_token, struct hf_holder *ret_blocker, struct hf_err *err);
	int (*renew)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		     int64_t ttl_ns, struct hf_err *err);
	int (*release)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		       const struct hf_proc_id *owner, struct hf_err *err);
	int (*add_owner)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
			 const struct hf_owner *owner, struct hf_err *err);
	/* Gives the hold of `token` the higher token `to`, before it was used. NULL in a store whose tokens are the highest there are. */
	int (*raise)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token, uint64_t to, struct hf_err *err);
	/* Is the token current? With its mode (may be NULL). Token 0: is the lock held at all? */
	int (*check)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		     enum hf_lock_mode *ret_mode, struct hf_err *err);
	/*
	 * The same, and nobody can take the lock before let_go. Both NULL in a store that cannot
	 * stop the others: there a check and the fence have to do.
	 */
	int (*hold)(struct hf_store *store, const struct hf_lock_ref *lock, uint64_t token,
		    struct hf_hold **ret_hold, struct hf_err *err);
	void (*let_go)(struct hf_hold *hold);
	/* Does the owner live, as far as this store can tell? The evidence says why. */
	enum hf_liveness (*judge)(struct hf_store *store, const struct hf_owner *owner,
				  char evidence[HF_EVIDENCE_MAX]);
	int (*take_away)(struct hf_store *store, const struct hf_lock_ref *lock, const char *reason,
			 struct hf_err *err);
	int (*look)(struct hf_store *store, const struct hf_lock_ref *lock, hf_lock_look_fn *fn,
		    void *arg, struct hf_err *err);
	int (*list)(struct hf_store *store, enum hf_lock_kind kind, hf_lock_look_fn *fn, void *arg,
		    struct hf_err *err);
	/* The same for the locks, of every kind, that are waited for. NULL in a store that cannot find them. */
	int (*list_waited)(struct hf_store *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err);
	/* 1: its record is gone; 0: it stays, for tokens to rise; HF_E_BUSY: held or waited for; what the action gave. NULL: a store that needs no such thing. */
	int (*forget)(struct hf_store *store, const struct hf_lock_ref *lock, const struct hf_forget *how, struct hf_err *err);
	/* All of that kind, for at most `limit_ns`; how many. */
	int (*forget_idle)(struct hf_store *store, enum hf_lock_kind kind, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err);
	/* How long a call without a deadline of its own waits for another process in the middle of one. */
	void (*set_patience)(struct hf_store *store, int64_t ns);
	void (*free)(struct hf_store *store);
};

#define HF_STORE_PATIENCE_NS (10 * HF_SEC) /* the default of set_patience */

/* What every store begins with. */
struct hf_store {
	const struct hf_store_ops *ops;
	unsigned caps;      /* enum hf_store_caps */
	int64_t min_ttl_ns; /* shorter leases are refused; 0: any */
	int64_t (*margin)(int64_t ttl_ns); /* how long before the end of a lease its holder must have ended its work; NULL: not at all */
	int64_t default_ttl_ns; /* of a lock whose lease was not said, where one is needed; else 0 */
	const struct hf_board_ops *board; /* board.h; NULL: it has none */
	const char *series; /* names its tokens among those of other stores; a file name (fence.h) */
};

/* What a store is opened with. The journal may be NULL. */
struct hf_store_args {
	const char *url; /* behind the scheme and its colon */
	struct hf_state *state;
	struct hf_journal *journal;
	const struct hf_proc_id *self;
};

/* Opens the local store, "local:". */
int hf_local_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err);

/* Opens a cluster of etcd, "etcd:" (lock/etcd), with TLS "etcds:". */
int hf_etcd_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err);
int hf_etcds_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err);

/* hf_locks_expect for "etcd:". */
int hf_etcd_expect(const char *url, int64_t ttl_ns);

/*
 * That store will be opened, and a lock with that lease (0: the usual one) acquired, at once: it may ask for the lease while the caller does
 * something else. For a process that acquires one lock. 1: it has asked, and is a store of several machines; else 0.
 */
int hf_locks_expect(const char *url, int64_t ttl_ns);

/*
 * How long a call without a deadline of its own waits for the record of a lock, which a process that is
 * stopped in the middle of a call may hold for long; then it fails with -ETIMEDOUT. 0: the default. For a
 * process with one thread that has its own clock to keep.
 */
void hf_locks_set_patience(struct hf_locks *locks, int64_t ns);

/* As the operation of the store. -ENOTSUP: it has none. */
int hf_lock_forget_as(struct hf_locks *locks, const char *name, const struct hf_forget *how, struct hf_err *err);

/*
 * hf_lock_acquire in a store of several machines with a token higher than `above`; then hf_lock_raise gives that token to a local lock, the
 * same process's. So a session has one token: the fleet's, which is higher than all that its machine has given for the name.
 */
int hf_lock_acquire_above(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts, uint64_t above,
			  struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err);
int hf_lock_raise(struct hf_lock *lock, uint64_t to, struct hf_err *err);

/* When the lease of a lock that was just acquired began, at the latest that is certain; its locks; its name. */
struct hf_boot hf_lock_since(const struct hf_lock *lock);
struct hf_locks *hf_lock_locks(const struct hf_lock *lock);
const char *hf_lock_name(const struct hf_lock *lock);

/* The identity of the calling process, as it was read when the locks were opened. */
const struct hf_proc_id *hf_locks_self(const struct hf_locks *locks);

/* The store behind the public handle, so that tests can set its bounds. */
struct hf_store *hf_locks_store(struct hf_locks *locks);

/* A context over a store that is open already; hf_locks_free frees it. For tests. */
int hf_locks_open_over(struct hf_store *store, const struct hf_store_args *args,
		       struct hf_locks **ret_locks, struct hf_err *err);

/* Appends an event about a lock; the kind is told where it is not a plain name. */
void hf_lock_event(struct hf_journal *journal, enum hf_event event, const struct hf_lock_ref *lock,
		   const struct hf_field *fields, size_t n);

#endif
