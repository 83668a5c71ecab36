/*
 * holdfast/clock.h - three clocks, with a type for each so that they cannot be mixed up.
 *
 *   struct hf_mono   CLOCK_MONOTONIC: how long to wait. Stops during suspend.
 *   struct hf_boot   CLOCK_BOOTTIME: leases. Runs during suspend; never set.
 *   struct hf_wall   CLOCK_REALTIME: for people and for ordering across boots.
 *
 * Each holds nanoseconds. A monotonic or boot time is valid in one boot only,
 * so it is always stored together with the boot id.
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

/* Return the current time. They cannot fail on Linux. */
HF_API struct hf_mono hf_mono_now(void);
HF_API struct hf_boot hf_boot_now(void);
HF_API struct hf_wall hf_wall_now(void);

/* Returns the time `ns` from now; on overflow, the largest possible time. */
HF_API struct hf_mono hf_mono_in(int64_t ns);

/* Returns the nanoseconds until `deadline`, or 0 if it has passed. */
HF_API int64_t hf_mono_left(struct hf_mono deadline);

/* Length of "2026-11-15T19:48:32.123456Z" and its NUL. */
#define HF_WALL_TEXT_MAX 28

/*
 * Writes the UTC form above, exactly HF_WALL_TEXT_MAX bytes with NUL. Times
 * outside the years 1970 to 9999 are clamped to that range.
 */
HF_API void hf_wall_format(struct hf_wall wall, char out[HF_WALL_TEXT_MAX]);

/* Parses exactly that form. Returns 0 or HF_E_SYNTAX. */
HF_API int hf_wall_parse(const char *text, size_t len, struct hf_wall *ret) HF_MUST_CHECK;

HF_C_END

#endif
