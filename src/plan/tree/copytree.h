/*
 * plan/tree/copytree.h - a faithful copy of an entry and all below it: content with its holes, mode,
 * owner where that is allowed, times, symlinks, attributes, ACLs, and hard links within it.
 */
#ifndef PLAN_TREE_COPYTREE_H
#define PLAN_TREE_COPYTREE_H

#include "hf/base/buf.h"

struct hf_copied_link {
	uint64_t ino;
	char *path; /* of the first copy, below `to_root` */
};

struct hf_copytree {
	int to_root;        /* the directory that `to` names are in */
	const char *prefix; /* of overlayfs' attributes, which are not copied; NULL: there are none */
	const char *const *ignore; /* not copied */
	struct hf_copied_link *links; /* files with several names */
	size_t n_links;
	struct hf_buf to;   /* scratch: the path of the copy */
};

#define HF_COPYTREE_INIT { .to_root = -1, .to = HF_BUF_INIT }

void hf_copytree_done(struct hf_copytree *copy);

/*
 * Copies (from_fd, from_name), which stands at `path` for the globs, to the new entry `to` of
 * to_root. Sockets, FIFOs, devices and deletions are left out. 0 or -errno; what was made stays.
 */
int hf_copytree(struct hf_copytree *copy, int from_fd, const char *from_name, const char *path,
		const char *to);

#endif
