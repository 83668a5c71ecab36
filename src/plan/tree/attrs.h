/*
 * plan/tree/attrs.h - extended attributes as a list of changes: what overlayfs left is taken away, what
 * it had to rename gets its name back, what a directory's owner changed is carried over.
 *
 * A list is bytes, the form in which it also stands in an intent: for each attribute a struct
 * hf_attr_head, the name, the old and the new value. It is applied forwards or backwards, and
 * either any number of times.
 */
#ifndef PLAN_TREE_ATTRS_H
#define PLAN_TREE_ATTRS_H

#include <stddef.h>
#include <stdint.h>

#include "hf/base/buf.h"

#define HF_ATTR_HAS_OLD 1
#define HF_ATTR_HAS_NEW 2
#define HF_ATTR_MAX     ((size_t)64 << 10) /* the kernel's limit for a value, and for all names */

struct hf_attr_head {
	uint8_t flags;
	uint8_t name_len;
	uint16_t zero;
	uint32_t old_len, new_len;
} __attribute__((packed));

/* What the attributes of overlayfs say of an entry of an upper directory. */
struct hf_overlay_marks {
	int opaque;   /* the directory hides what is below it */
	int origin;   /* it stood in the target when it was first changed */
	int whiteout; /* an empty file that means "deleted" */
	int holds_whiteouts; /* a directory in which such files may be */
	int foreign;  /* redirect or metacopy: not made by a mount of ours */
};

#define HF_OVERLAY_USER    "user.overlay."
#define HF_OVERLAY_TRUSTED "trusted.overlay."

/*
 * Reads the marks of an entry of an upper directory, and adds to `out` (may be NULL) what has to
 * change for the entry to be an ordinary one. `prefix` is one of the two above. 0 or -errno.
 */
int hf_attrs_marks(int dirfd, const char *name, const char *prefix, struct hf_overlay_marks *ret,
		   struct hf_buf *out);

/*
 * Adds what makes the attributes of (to_fd, to_name) those of (from_fd, from_name), which is in
 * an upper directory when `prefix` is not NULL. user.* and ACLs only. 0 or -errno.
 */
int hf_attrs_compare(int from_fd, const char *from_name, const char *prefix, int to_fd,
		     const char *to_name, struct hf_buf *out);

/* Applies a list to an entry, to its new values or (`back`) to its old ones. 0 or -errno. */
int hf_attrs_apply(int dirfd, const char *name, const void *list, size_t len, int back);

/* Adds the list whose new values are the old ones, and the other way round. */
void hf_attrs_reverse(const void *list, size_t len, struct hf_buf *out);

/* 1 when the bytes are a list, 0 when not. For records from disk. */
int hf_attrs_ok(const void *list, size_t len);

#endif
