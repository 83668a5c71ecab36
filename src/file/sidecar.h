/* file/sidecar.h - the lock file beside a shared file. */
#ifndef FILE_SIDECAR_H
#define FILE_SIDECAR_H

#include "hf/file/file.h"

/* Opens and locks ".<leaf>.lock"; sets file->sidecar. Errors as hf_file_lock. */
int hf_sidecar_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		    struct hf_err *err);

#endif
