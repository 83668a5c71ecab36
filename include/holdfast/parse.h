/*
 * holdfast/parse.h - parse durations and sizes as the program does.
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
 * Parses a duration: numbers with the units "w", "d", "h", "m" (or "min"), "s" (or "sec") and "ms", larger units
 * first. The last number may have a fraction. A number without a unit means seconds. "inf" is INT64_MAX.
 * Examples: "1h30m", "1.5h", "250ms", "30", ".5". Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_parse_duration(const char *s, size_t len, int64_t *ret_ns) HF_MUST_CHECK;

/*
 * Parses a size in bytes, optionally with "K", "M", "G" or "T" (powers of 1024; lower case is accepted). A size with
 * a unit may have a fraction ("1.5M"), and "B" or "iB" may follow ("4GiB"). Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_parse_size(const char *s, size_t len, uint64_t *ret) HF_MUST_CHECK;

HF_C_END

#endif
