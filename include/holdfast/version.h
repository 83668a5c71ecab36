/*
 * holdfast/version.h - which version this is, at build time and at run time.
 */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#include "holdfast/api.h"

HF_C_BEGIN

#define HF_VERSION "0.1.0"

/* The version of the library that is running; HF_VERSION is the header's. Constant. */
HF_API const char *hf_version(void);

HF_C_END

#endif
