/* plan/sandbox/copy.h - the strategies clone and copy: a whole tree, and its manifest. */
#ifndef PLAN_SANDBOX_COPY_H
#define PLAN_SANDBOX_COPY_H

#include <sys/stat.h>

#include "hf/plan/target/manifest.h"

/*
 * Copies the target into the sandbox's directory as HF_SANDBOX_TREE and writes the manifest. With
 * `clone` files of more than 64 KiB share their blocks with the target. Modes, times, symlinks,
 * hard links within the tree, extended attributes, ACLs and holes are kept, owners as far as
 * the caller may; sockets, FIFOs and devices are left out. Several threads. 0 or an error; then the
 * copy is not complete and the caller removes it.
 */
int hf_copy_tree(int target_fd, int sandbox_fd, int clone, const char *shown, struct hf_err *err);

/* -- copy_file.c ------------------------------------------------------------------------ */

/* Content, holes, attributes and times of one regular file, as one version. 0 or -errno. */
int hf_copy_file(int from_dir, int to_dir, const char *path, int clone, struct stat *ret_from,
		 struct stat *ret_to);

/* The first `size` bytes of a file for an empty one; holes stay holes. 0 or -errno. */
int hf_copy_content(int from, int to, off_t size);

/* Owner, mode, attributes, then times. */
int hf_copy_attributes(int from, int to, const struct stat *st);

/* -- manifest.c ------------------------------------------------------------------------- */

/* Writes it whole. 0 or -errno. */
int hf_manifest_save(int sandbox_fd, const struct hf_manifest *manifest);

#endif
