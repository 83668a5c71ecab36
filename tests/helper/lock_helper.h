/*
 * tests/helper/lock_helper.h - what the tests of locks share: waiting for a condition, and the
 * locks as a forked process opens them. Header only, on top of proc_helper.h.
 */
#ifndef TESTS_LOCK_HELPER_H
#define TESTS_LOCK_HELPER_H

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper/proc_helper.h"
#include "hf/lock/store.h"
#include "holdfast/lock.h"

/* Until `condition`, or the test fails. The pause only spares the processor. */
#define AWAIT(condition)                                         \
	do {                                                     \
		struct hf_mono until_ = hf_mono_in(20 * HF_SEC); \
		while (!(condition)) {                           \
			MUST(hf_mono_left(until_) > 0);          \
			(void)poll(NULL, 0, 1);                  \
		}                                                \
	} while (0)

/* The store that is tested (hf_locks_open_store). */
static const char *lock_store_url = "local:";

/* A store that all tests share has a prefix for each; called before each test. */
static inline void lock_store_next(void)
{
	static char url[512];
	static const char *base;
	static int n;

	if (strcmp(lock_store_url, "local:") == 0)
		return;
	if (!base)
		base = lock_store_url;
	MUST((size_t)snprintf(url, sizeof(url), "%s/test-%d-%d?call-timeout=1s", base, (int)getpid(), n++) < sizeof(url));
	lock_store_url = url;
}

/* What a lease is at least in the store that is tested, and by how much it may end later than told. */
static inline int64_t store_ttl(struct hf_locks *locks, int64_t ns)
{
	int64_t least = hf_locks_store(locks)->min_ttl_ns;

	return ns > least ? ns : least;
}

/* hf_lock_acquire with a lease where the store wants one and the test did not say any. */
static inline int test_lock_acquire(struct hf_locks *locks, const char *name, const struct hf_lock_opts *opts, struct hf_lock **ret_lock,
				    struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_lock_opts leased = { .size = sizeof(leased) };

	if (!locks || !(hf_locks_store(locks)->caps & HF_STORE_NEEDS_LEASE) ||
	    (opts && (opts->ttl_ns != 0 || opts->size < offsetof(struct hf_lock_opts, cancel_fd))))
		return hf_lock_acquire(locks, name, opts, ret_lock, ret_blocker, err);
	if (opts)
		memcpy(&leased, opts, opts->size < sizeof(leased) ? opts->size : sizeof(leased));
	leased.ttl_ns = 60 * HF_SEC;
	return hf_lock_acquire(locks, name, &leased, ret_lock, ret_blocker, err);
}

#define hf_lock_acquire test_lock_acquire

/* A context of a forked process's own, which ends with it; without a journal if told so. */
static inline struct hf_locks *own_locks(int journalled)
{
	struct hf_journal *own_journal = NULL;
	struct hf_state *own_state;
	struct hf_locks *own;

	MUST(hf_state_open(hf_test_path("state"), 0, &own_state, NULL) == 0);
	MUST(!journalled || hf_journal_open(own_state, NULL, &own_journal, NULL) == 0);
	MUST(hf_locks_open_store(lock_store_url, own_state, own_journal, &own, NULL) == 0);
	return own;
}

#endif
