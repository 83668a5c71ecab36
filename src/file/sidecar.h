/* file/sidecar.h - the lock file beside a shared file. */
#ifndef FILE_SIDECAR_H
#define FILE_SIDECAR_H

#include "hf/file/file.h"

/*
 * Opens and locks ".<leaf>.lock"; sets file->sidecar. It is made only if that was asked for, or if other users may change the
 * file; where it is not to be made and is not there, nothing happens. Errors as hf_file_lock.
 */
int hf_sidecar_lock(struct hf_file *file, int64_t wait_ns, struct hf_holder *ret_blocker,
		    struct hf_err *err);

/*
 * Removes it while it is held, for a file that Holdfast no longer works on. Waiters of Holdfast look for the
 * name again and make a new one. A foreign tool that waits in this moment gets a lock that has no name any more, so
 * this is for files that only clients and Holdfast use. Nothing to do: nothing happens.
 */
void hf_sidecar_remove(struct hf_file *file);

#endif
