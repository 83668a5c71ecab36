/* sys/fd/numbers.h - the numbers in a directory of /proc, pids or descriptors, without memory: also for a child that may not allocate. */
#ifndef SYS_FD_NUMBERS_H
#define SYS_FD_NUMBERS_H

#include <stdint.h>

/* Calls `fn` with each until it returns other than 0, and returns that; 0 when none did, or -errno of reading. */
int hf_numbers_in(const char *dir, int (*fn)(void *arg, int32_t number), void *arg);

#endif
