/*
 * holdfast/parse.h - durations and sizes as people write them, read as the program reads them.
 *
 * Threads and fork: no state. Blocks: no. Async-signal-safe: yes.
 */
#ifndef HOLDFAST_PARSE_H
#define HOLDFAST_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"

HF_C_BEGIN

/*
 * Reads a duration: numbers with the units "w", "d", "h", "m" (or "min"), "s" (or "sec") and "ms", the larger
 * first, the last perhaps with a fraction; a number without a unit means seconds; "inf" is INT64_MAX
 * ("1h30m", "1.5h", "250ms", "30", ".5"). Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_parse_duration(const char *s, size_t len, int64_t *ret_ns) HF_MUST_CHECK;

/*
 * Reads a size in bytes, perhaps with "K", "M", "G" or "T" (powers of 1024, also small letters), then
 * perhaps with a fraction ("1.5M"), and perhaps with "B" or "iB" behind that ("4GiB"). Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_parse_size(const char *s, size_t len, uint64_t *ret) HF_MUST_CHECK;

HF_C_END

#endif
