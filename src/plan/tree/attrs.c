/* plan/tree/attrs.c - reading, comparing and setting extended attributes of (directory, leaf). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"

#define SMALL 1024

/* The names of an entry's attributes, one behind the other. */
struct names {
	char small[SMALL];
	char *s;
	size_t len;
	char *memory;
};

static void names_done(struct names *names)
{
	free(names->memory);
}

static int no_attributes(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS;
}

static int names_read(const char *path, struct names *ret)
{
	ssize_t n = hf_sys.llistxattr(path, ret->small, SMALL);

	ret->memory = NULL;
	ret->s = ret->small;
	if (n < 0 && errno == ERANGE) {
		ret->memory = ret->s = malloc(HF_ATTR_MAX);
		if (!ret->s)
			return -ENOMEM;
		n = hf_sys.llistxattr(path, ret->s, HF_ATTR_MAX);
	}
	if (n < 0 && !no_attributes(errno))
		return -errno;
	ret->len = n < 0 ? 0 : (size_t)n;
	return 0;
}

/* The value behind `out`; its length, or -errno (-ENODATA: there is none). */
static ssize_t value_read(const char *path, const char *name, struct hf_buf *out)
{
	char small[SMALL];
	ssize_t n = hf_sys.lgetxattr(path, name, small, SMALL);

	if (n >= 0) {
		hf_buf_add(out, small, (size_t)n);
		return out->err ? out->err : n;
	}
	if (errno != ERANGE)
		return -errno;
	if (hf_buf_reserve(out, HF_ATTR_MAX) < 0)
		return out->err;
	n = hf_sys.lgetxattr(path, name, out->s + out->len, HF_ATTR_MAX);
	if (n < 0)
		return -errno;
	out->len += (size_t)n;
	out->s[out->len] = '\0';
	return n;
}

/* Either value may be NULL: then there is none. */
static int list_add(struct hf_buf *out, const char *name, const struct hf_buf *old,
		    const struct hf_buf *new)
{
	struct hf_attr_head head = { .flags = (uint8_t)((old ? HF_ATTR_HAS_OLD : 0) |
						       (new ? HF_ATTR_HAS_NEW : 0)),
				     .name_len = (uint8_t)strlen(name),
				     .old_len = old ? (uint32_t)old->len : 0,
				     .new_len = new ? (uint32_t)new->len : 0 };

	hf_buf_add(out, &head, sizeof(head));
	hf_buf_add(out, name, head.name_len);
	if (old)
		hf_buf_add(out, old->s, old->len);
	if (new)
		hf_buf_add(out, new->s, new->len);
	return out->err;
}

/* -- what overlayfs leaves --------------------------------------------------------- */

static void note_mark(const char *mark, const struct hf_buf *value, struct hf_overlay_marks *ret)
{
	char first = value->len ? value->s[0] : '\0';

	if (strcmp(mark, "opaque") == 0) {
		ret->opaque = first == 'y';
		ret->holds_whiteouts = first == 'x';
	} else if (strcmp(mark, "origin") == 0) {
		ret->origin = 1;
	} else if (strcmp(mark, "whiteout") == 0) {
		ret->whiteout = 1;
	} else if (strcmp(mark, "redirect") == 0 || strcmp(mark, "metacopy") == 0) {
		ret->foreign = 1;
	}
}

static int take_mark(const char *path, const char *name, const char *prefix,
		     struct hf_overlay_marks *ret, struct hf_buf *out)
{
	AUTO(hf_buf_done) struct hf_buf value = HF_BUF_INIT;
	const char *mark = name + strlen(prefix);
	char own[NAME_MAX + 1];
	ssize_t n = value_read(path, name, &value);
	int r = 0;

	if (n < 0)
		return n == -ENODATA ? 0 : (int)n;
	/* A program's own "user.overlay.x" is stored as "user.overlay.overlay.x". */
	if (strncmp(mark, "overlay.", 8) == 0) {
		(void)memcpy(own, prefix, strlen(prefix));
		hf_copy_text(own + strlen(prefix), sizeof(own) - strlen(prefix), mark + 8);
		r = out ? list_add(out, own, NULL, &value) : 0;
	} else {
		note_mark(mark, &value, ret);
	}
	return r < 0 || !out ? r : list_add(out, name, &value, NULL);
}

int hf_attrs_marks(int dirfd, const char *name, const char *prefix, struct hf_overlay_marks *ret,
		   struct hf_buf *out)
{
	AUTO(names_done) struct names names = { .memory = NULL };
	char path[HF_ENTRY_PATH_MAX];
	int r;

	memset(ret, 0, sizeof(*ret));
	hf_dirtree_proc_path(dirfd, name, path);
	r = names_read(path, &names);
	for (const char *at = names.s; r == 0 && at < names.s + names.len; at += strlen(at) + 1)
		if (strncmp(at, prefix, strlen(prefix)) == 0)
			r = take_mark(path, at, prefix, ret, out);
	return r;
}

/* -- carrying over ----------------------------------------------------------------- */

/* The others belong to the system, or cannot be set by everyone. */
static int is_carried(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strncmp(name, "system.posix_acl_", 17) == 0;
}

/* The name that an attribute of the sandbox has outside; NULL: it has none there. */
static const char *outside_name(const char *name, const char *prefix, char own[NAME_MAX + 1])
{
	size_t len = prefix ? strlen(prefix) : 0;

	if (!prefix || strncmp(name, prefix, len) != 0)
		return name;
	if (strncmp(name + len, "overlay.", 8) != 0)
		return NULL;
	memcpy(own, prefix, len);
	hf_copy_text(own + len, NAME_MAX + 1 - len, name + len + 8);
	return own;
}

static int compare_one(const char *from, const char *from_name, const char *to, const char *to_name,
		       struct hf_buf *out)
{
	AUTO(hf_buf_done) struct hf_buf new = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf old = HF_BUF_INIT;
	ssize_t n = value_read(from, from_name, &new), m;

	if (n < 0)
		return n == -ENODATA ? 0 : (int)n;
	m = value_read(to, to_name, &old);
	if (m < 0 && m != -ENODATA && m != -EOPNOTSUPP)
		return (int)m;
	if (m == n && memcmp(old.s, new.s, (size_t)n) == 0)
		return 0;
	return list_add(out, to_name, m < 0 ? NULL : &old, &new);
}

/* Has the sandbox's entry an attribute that is called `name` outside? */
static int has_outside_name(const struct names *names, const char *prefix, const char *name)
{
	char own[NAME_MAX + 1];

	for (const char *at = names->s; at < names->s + names->len; at += strlen(at) + 1) {
		const char *outside = outside_name(at, prefix, own);

		if (outside && strcmp(outside, name) == 0)
			return 1;
	}
	return 0;
}

static int compare_removed(const char *to, const struct names *from_names, const char *prefix,
			   struct hf_buf *out)
{
	AUTO(names_done) struct names names = { .memory = NULL };
	int r = names_read(to, &names);

	for (const char *at = names.s; r == 0 && at < names.s + names.len; at += strlen(at) + 1) {
		AUTO(hf_buf_done) struct hf_buf old = HF_BUF_INIT;
		ssize_t n;

		if (!is_carried(at) || has_outside_name(from_names, prefix, at))
			continue;
		n = value_read(to, at, &old);
		if (n >= 0)
			r = list_add(out, at, &old, NULL);
		else if (n != -ENODATA)
			r = (int)n;
	}
	return r;
}

int hf_attrs_compare(int from_fd, const char *from_name, const char *prefix, int to_fd,
		     const char *to_name, struct hf_buf *out)
{
	AUTO(names_done) struct names names = { .memory = NULL };
	char from[HF_ENTRY_PATH_MAX], to[HF_ENTRY_PATH_MAX], own[NAME_MAX + 1];
	int r;

	hf_dirtree_proc_path(from_fd, from_name, from);
	hf_dirtree_proc_path(to_fd, to_name, to);
	r = names_read(from, &names);
	for (const char *at = names.s; r == 0 && at < names.s + names.len; at += strlen(at) + 1) {
		const char *outside = outside_name(at, prefix, own);

		if (outside && is_carried(outside))
			r = compare_one(from, at, to, outside, out);
	}
	return r < 0 ? r : compare_removed(to, &names, prefix, out);
}

/* -- setting ----------------------------------------------------------------------- */

/* Step over one; NULL when the bytes are no attribute. */
static const char *step(const char *at, const char *end, struct hf_attr_head *ret)
{
	if ((size_t)(end - at) < sizeof(*ret))
		return NULL;
	memcpy(ret, at, sizeof(*ret));
	at += sizeof(*ret);
	if (ret->name_len == 0 || ret->zero || ret->flags == 0 || ret->flags > 3 ||
	    ret->old_len > HF_ATTR_MAX || ret->new_len > HF_ATTR_MAX ||
	    (size_t)(end - at) < (size_t)ret->name_len + ret->old_len + ret->new_len)
		return NULL;
	if ((!(ret->flags & HF_ATTR_HAS_OLD) && ret->old_len) ||
	    (!(ret->flags & HF_ATTR_HAS_NEW) && ret->new_len))
		return NULL;
	return at + ret->name_len + ret->old_len + ret->new_len;
}

static int begins(const char *name, size_t len, const char *prefix)
{
	return len > strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

int hf_attrs_ok(const void *list, size_t len)
{
	const char *at = list, *end = at + len;
	struct hf_attr_head head;

	while (at < end) {
		const char *name = at + sizeof(head), *next = step(at, end, &head);

		/* Only what this layer itself sets: no record makes us touch another attribute. */
		if (!next || memchr(name, '\0', head.name_len) ||
		    (!begins(name, head.name_len, "user.") &&
		     !begins(name, head.name_len, HF_OVERLAY_TRUSTED) &&
		     !begins(name, head.name_len, "system.posix_acl_")))
			return 0;
		at = next;
	}
	return 1;
}

static int set_one(const char *path, const char *name, const char *value, size_t len)
{
	if (hf_sys.lsetxattr(path, name, value, len, 0) < 0)
		return -errno;
	return 0;
}

static int remove_one(const char *path, const char *name)
{
	if (hf_sys.lremovexattr(path, name) < 0 && errno != ENODATA)
		return -errno;
	return 0;
}

int hf_attrs_apply(int dirfd, const char *name, const void *list, size_t len, int back)
{
	const char *at = list, *end = at + len;
	char path[HF_ENTRY_PATH_MAX], attr[NAME_MAX + 1];
	struct hf_attr_head head;

	hf_dirtree_proc_path(dirfd, name, path);
	while (at < end) {
		const char *next = step(at, end, &head), *old, *new;
		int r;

		if (!next)
			return -EBADMSG;
		old = at + sizeof(head) + head.name_len;
		new = old + head.old_len;
		memcpy(attr, at + sizeof(head), head.name_len);
		attr[head.name_len] = '\0';
		if (back)
			r = head.flags & HF_ATTR_HAS_OLD ? set_one(path, attr, old, head.old_len)
							 : remove_one(path, attr);
		else
			r = head.flags & HF_ATTR_HAS_NEW ? set_one(path, attr, new, head.new_len)
							 : remove_one(path, attr);
		if (r < 0)
			return r;
		at = next;
	}
	return 0;
}

void hf_attrs_reverse(const void *list, size_t len, struct hf_buf *out)
{
	const char *at = list, *end = at + len, *next;
	struct hf_attr_head head;

	for (; at < end && (next = step(at, end, &head)); at = next) {
		const char *name = at + sizeof(head), *old = name + head.name_len;
		struct hf_attr_head back = head;

		back.flags = (uint8_t)((head.flags & HF_ATTR_HAS_OLD ? HF_ATTR_HAS_NEW : 0) |
				       (head.flags & HF_ATTR_HAS_NEW ? HF_ATTR_HAS_OLD : 0));
		back.old_len = head.new_len;
		back.new_len = head.old_len;
		hf_buf_add(out, &back, sizeof(back));
		hf_buf_add(out, name, head.name_len);
		hf_buf_add(out, old + head.old_len, head.new_len);
		hf_buf_add(out, old, head.old_len);
	}
}
