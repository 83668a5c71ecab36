/*
 * holdfast/api.h - what every public header needs: linkage and attributes.
 *
 * The other headers include it. Public headers are C99 with the two GNU
 * attributes below. They have no inline functions, bit-fields or unions by
 * value, so binding generators can read them.
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

/* Exports a function from libholdfast.so; all other symbols are hidden. */
#define HF_API __attribute__((visibility("default")))

/* Requires the caller to use the result, which reports failure; a deliberate (void) drops it. */
#define HF_MUST_CHECK __attribute__((warn_unused_result))

#endif
