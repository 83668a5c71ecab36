/*
 * plan/target/manifest.h - what stood in a target when it was copied, and in the copy afterwards.
 *
 * For clone and copy: an entry of the copy changed when its inode, size, mtime or ctime is not
 * the recorded one, and so for the target's. A file that changed while it was copied was copied
 * again, so each entry is one version.
 *
 * File, native byte order: struct hf_manifest_head, then entries in the order of the walk (a
 * directory before what is in it): struct hf_manifest_row and the path, without NUL. The sum is
 * XXH3-64 of all behind the head.
 */
#ifndef PLAN_TARGET_MANIFEST_H
#define PLAN_TARGET_MANIFEST_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "hf/plan/registry/registry.h"

#define HF_MANIFEST "manifest"

struct hf_manifest_head {
	char magic[8]; /* "hfmanif1" */
	uint64_t n;
	uint64_t bytes; /* behind the head */
	uint64_t sum;
};

struct hf_manifest_row {
	uint64_t ino, copy_ino;
	uint64_t size;
	int64_t mtime_ns, ctime_ns;           /* of the target's entry */
	int64_t copy_mtime_ns, copy_ctime_ns; /* of the copy's */
	uint32_t mode, uid, gid, nlink;
	uint32_t path_len;
} __attribute__((packed));

struct hf_manifest_entry {
	const char *path; /* relative, "" for the target itself; NUL-ended */
	struct hf_manifest_row row;
};

struct hf_manifest {
	struct hf_manifest_entry *entries; /* sorted by path, as strcmp has it */
	size_t n;
	char *memory;
};

/* Reads and checks it. HF_E_FORMAT when it is damaged; -ENOENT; -errno. */
int hf_manifest_load(int sandbox_fd, struct hf_manifest *ret, struct hf_err *err);
void hf_manifest_done(struct hf_manifest *manifest);

/* The entry of that path, or NULL. */
const struct hf_manifest_entry *hf_manifest_find(const struct hf_manifest *manifest,
						 const char *path);

/* Did the sandbox leave this entry of the copy alone? A directory: none of its names came or went either. */
int hf_manifest_untouched(const struct hf_manifest_row *row, const struct stat *copy);

/*
 * After a power cut: did this file of the copy lose content? It is shorter than what was copied, and every change
 * by the sandbox would have made its ctime later. A copy is not synced when it is made.
 */
int hf_manifest_lost(const struct hf_manifest_row *row, const struct stat *copy);

#endif
