/* tests/helper/random.h - random numbers from a fixed seed: a failure of today is a failure of tomorrow. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#endif
