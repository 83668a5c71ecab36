/*
 * holdfast/api.h - what every public header needs: linkage and attributes.
 *
 * Nothing here is of use by itself; the other headers include it. Public
 * headers are C99 with the two GNU attributes below, hold no inline functions,
 * bit-fields or unions by value, and so can be read by binding generators.
 */
#ifndef HOLDFAST_API_H
#define HOLDFAST_API_H

#ifdef __cplusplus
#define HF_C_BEGIN extern "C" {
#define HF_C_END   }
#else
#define HF_C_BEGIN
#define HF_C_END
#endif

/* Exported from libholdfast.so; everything without it is hidden. */
#define HF_API __attribute__((visibility("default")))

/* The result says whether it worked; dropping it on purpose is written (void). */
#define HF_MUST_CHECK __attribute__((warn_unused_result))

#endif
