/*
 * holdfast/version.h - the version, at build time and at run time.
 */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#include "holdfast/api.h"

HF_C_BEGIN

#define HF_VERSION "0.1.0"

/* Returns the version of the running library, a constant; HF_VERSION is the version of the header. */
HF_API const char *hf_version(void);

HF_C_END

#endif
