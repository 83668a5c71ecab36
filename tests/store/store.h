/*
 * tests/store/store.h - the tests that every store of locks passes.
 *
 *     store-admission [URL]      store-owners, store-tokens, store-waiting, store-cycles
 *
 * URL is what hf_locks_open_store takes, by default local:. The tests go through lock.h alone, so
 * they know nothing of files, guards or queues. What a store does not have (enum hf_store_caps)
 * is skipped.
 */
#ifndef TESTS_STORE_STORE_H
#define TESTS_STORE_STORE_H

#include "helper/lock_helper.h"
#include "hf/lock/store.h"

static inline void store_begin(int argc, char **argv)
{
	if (argc > 1)
		lock_store_url = argv[1];
	proc_test_begin();
}

/* Skips the test where the store lacks something that it is about. */
#define NEEDS(caps_wanted)                                                          \
	do {                                                                        \
		if ((hf_locks_store(locks)->caps & (caps_wanted)) != (caps_wanted)) \
			skip();                                                     \
	} while (0)

#endif
