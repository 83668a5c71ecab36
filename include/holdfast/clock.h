/*
 * holdfast/clock.h - the three clocks, as three types that cannot be mixed up.
 *
 *   struct hf_mono   CLOCK_MONOTONIC: how long to wait. Stands still in suspend.
 *   struct hf_boot   CLOCK_BOOTTIME: leases. Runs on in suspend; never set.
 *   struct hf_wall   CLOCK_REALTIME: for people and for ordering across boots.
 *
 * Each holds nanoseconds. A monotonic or boot time means nothing in another
 * boot, so neither is ever stored without the boot id beside it.
 *
 * Threads and fork: no state. Blocks: no. Async-signal-safe: yes.
 */
#ifndef HOLDFAST_CLOCK_H
#define HOLDFAST_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"

HF_C_BEGIN

#define HF_USEC INT64_C(1000)
#define HF_MSEC (INT64_C(1000) * HF_USEC)
#define HF_SEC  (INT64_C(1000) * HF_MSEC)

struct hf_mono {
	int64_t ns;
};
struct hf_boot {
	int64_t ns;
};
struct hf_wall {
	int64_t ns;
};

/* The time now. These cannot fail on Linux. */
HF_API struct hf_mono hf_mono_now(void);
HF_API struct hf_boot hf_boot_now(void);
HF_API struct hf_wall hf_wall_now(void);

/* The moment `ns` from now; a sum that would overflow is the end of time. */
HF_API struct hf_mono hf_mono_in(int64_t ns);

/* Nanoseconds until `deadline`; 0 when it has passed. */
HF_API int64_t hf_mono_left(struct hf_mono deadline);

/* Length of "2026-11-15T19:48:32.123456Z" and its NUL. */
#define HF_WALL_TEXT_MAX 28

/*
 * Writes the UTC form above, exactly HF_WALL_TEXT_MAX bytes with NUL. Times
 * outside the years 1970 to 9999 are written as the nearest one inside.
 */
HF_API void hf_wall_format(struct hf_wall wall, char out[HF_WALL_TEXT_MAX]);

/* Reads exactly that form back. Returns 0 or HF_E_SYNTAX. */
HF_API int hf_wall_parse(const char *text, size_t len, struct hf_wall *ret) HF_MUST_CHECK;

HF_C_END

#endif
