/* sys/replace.h - a file written whole: under another name first, then renamed into its place. */
#ifndef SYS_REPLACE_H
#define SYS_REPLACE_H

#include <stddef.h>

enum hf_replace_flags {
	HF_REPLACE_SYNC = 1 << 0, /* on disk, with its name, before it returns */
	HF_REPLACE_NEW = 1 << 1,  /* never over something that exists (-EEXIST) */
};

/*
 * Writes `len` bytes to `name` in `dirfd`, mode 0600: readers see the old content or the new, never
 * a part. `temp` is the name it has until then; what a crash left under that name is replaced, so
 * it must be the caller's own (under a guard) or unique. On failure `name` is as before and `temp`
 * is gone. Returns 0 or -errno.
 */
int hf_replace_file(int dirfd, const char *name, const char *temp, const char *bytes, size_t len,
		    unsigned flags);

#endif
