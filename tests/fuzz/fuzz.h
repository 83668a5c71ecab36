/*
 * tests/fuzz/fuzz.h - what every fuzz target needs.
 *
 * A target is one function, for libFuzzer and for replay_main.c alike. It
 * aborts where a property does not hold, so that both see it.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(property)                                                                 \
	do {                                                                           \
		if (!(property)) {                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #property); \
			abort();                                                       \
		}                                                                      \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
