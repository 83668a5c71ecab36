/*
 * tests/helper/lock_helper.h - what the tests of locks share: waiting for a condition, and the
 * locks as a forked process opens them. Header only, on top of proc_helper.h.
 */
#ifndef TESTS_LOCK_HELPER_H
#define TESTS_LOCK_HELPER_H

#include <poll.h>

#include "helper/proc_helper.h"
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
