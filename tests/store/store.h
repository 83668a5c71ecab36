/*
 * tests/store/store.h - the tests that every store of locks passes.
 *
 *     store-admission [URL]      store-owners, store-tokens, store-waiting, store-cycles
 *
 * URL is what hf_locks_open_store takes, by default local:; each test has a prefix of its own behind it. The tests go through lock.h alone, so
 * they know nothing of files, guards or queues. What a store does not have (enum hf_store_caps)
 * is skipped.
 */
#ifndef TESTS_STORE_STORE_H
#define TESTS_STORE_STORE_H

#include <stdio.h>
#include <stdlib.h>

#include "helper/lock_helper.h"
#include "hf/lock/store.h"

/* Ends the program with status 2 where there is no such store: no test of it could say anything. */
static inline void store_begin(int argc, char **argv)
{
	char text[HF_ERR_TEXT_MAX];
	struct hf_locks *opened;
	int r;

	if (argc > 1)
		lock_store_url = argv[1];
	proc_test_begin();
	if (argc > 2) {
		fprintf(stderr, "usage: %s [URL]\n", argv[0]);
		exit(2);
	}
	if (hf_test_setup(NULL) < 0)
		exit(2);
	r = hf_locks_open_store(lock_store_url, hf_test_state(), NULL, &opened, ERR);
	if (r == 0)
		hf_locks_free(opened);
	(void)hf_test_teardown(NULL);
	if (r < 0) {
		(void)hf_err_format(ERR, text, sizeof(text));
		printf("Bail out! %s\n", text);
		exit(2);
	}
}

#define HAS(cap) ((hf_locks_store(locks)->caps & (cap)) != 0)

/* What is added to a bound in time where the end of a lease is another machine's to say, and its next holder waits a moment. */
#define LATER (HAS(HF_STORE_ONE_HOST) ? 0 : 15 * HF_SEC)

/* Skips the test where the store lacks something that it is about. */
#define NEEDS(caps_wanted)                                                          \
	do {                                                                        \
		if ((hf_locks_store(locks)->caps & (caps_wanted)) != (caps_wanted)) \
			skip();                                                     \
	} while (0)

#endif
