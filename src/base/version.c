/* base/version.c - the library's version. */
#include "holdfast/version.h"

const char *hf_version(void)
{
	return HF_VERSION;
}
