/* file/commit/meta.c - what a new file takes over from the old one: owner, mode, attributes, ACL. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/commit/meta.h"
#include "hf/sys/calls.h"

#define ACL      "system.posix_acl_access"
#define ATTR_MAX ((size_t)64 << 10) /* the kernel's own limits for names and for a value */

/* Without these the file would not be the same for its users. Others are tried. */
static int must_survive(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, ACL) == 0;
}

static int carry_attribute(const struct hf_file *file, int from, int to, const char *name,
			   char *value, struct hf_err *err)
{
	ssize_t n = hf_sys.fgetxattr(from, name, value, ATTR_MAX);

	if (n < 0)
		return errno == ENODATA || !must_survive(name)
			       ? 0
			       : FAIL_SYS(err, "fgetxattr", file->path);
	if (hf_sys.fsetxattr(to, name, value, (size_t)n, 0) < 0 && must_survive(name))
		return FAIL_SYS(err, "fsetxattr", file->path);
	return 0;
}

static int carry_attributes(const struct hf_file *file, int from, int to, struct hf_err *err)
{
	AUTO_FREE char *names = malloc(ATTR_MAX);
	AUTO_FREE char *value = malloc(ATTR_MAX);
	int has_acl = 0;
	ssize_t n;

	if (!names || !value)
		return hf_fail_sys(err, ENOMEM, "memory", file->path);
	n = hf_sys.flistxattr(from, names, ATTR_MAX);
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : FAIL_SYS(err, "flistxattr", file->path);
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		int r = carry_attribute(file, from, to, name, value, err);

		if (r < 0)
			return r;
		has_acl |= strcmp(name, ACL) == 0;
	}
	/* A default ACL of the directory gave the new file one that the old did not have. */
	if (!has_acl && hf_sys.fremovexattr(to, ACL) < 0 && errno != ENODATA &&
	    errno != EOPNOTSUPP && errno != EPERM)
		return FAIL_SYS(err, "fremovexattr", file->path);
	return 0;
}

int hf_meta_carry(const struct hf_file *file, int from, int to, struct hf_err *err)
{
	struct stat old, new;
	int r;

	if (hf_sys.fstat(from, &old) < 0 || hf_sys.fstat(to, &new) < 0)
		return FAIL_SYS(err, "fstat", file->path);
	/* Owner first: it takes set-id bits and capabilities away. */
	if ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) &&
	    hf_sys.fchown(to, old.st_uid, old.st_gid) < 0) {
		if (errno != EPERM)
			return FAIL_SYS(err, "fchown", file->path);
		return FAIL(err, HF_E_KIND, "fchown", file->path,
			    "it belongs to %u:%u, and you cannot give a new file that owner",
			    (unsigned)old.st_uid, (unsigned)old.st_gid);
	}
	r = carry_attributes(file, from, to, err);
	if (r < 0)
		return r;
	/* Mode last: what removing an ACL leaves is not what the old file had. */
	if (hf_sys.fchmod(to, old.st_mode & 07777) < 0)
		return FAIL_SYS(err, "fchmod", file->path);
	return 0;
}
