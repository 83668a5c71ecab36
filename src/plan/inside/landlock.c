/* plan/inside/landlock.c - read-only by Landlock, where mounts cannot do it. In the child, before exec: allocates nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/inside/namespace.h"
#include "hf/sys/calls.h"

/* The first version that keeps a file from being cut to nothing: Linux 6.2. */
#define ENOUGH 3

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* What a file that is no directory can be given. */
#define OF_FILES (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define WRITING                                                                                                             \
	(OF_FILES | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |              \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | \
	 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

static int failed(struct hf_inside_fail *fail, const char *subject)
{
	fail->confine = 1;
	return hf_inside_failed(fail, "landlock", subject);
}

static int allow(int rules, const char *path, uint64_t access, struct hf_inside_fail *fail)
{
	AUTO_FD fd = hf_sys.openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	struct stat st;

	if (fd < 0 || hf_sys.fstat(fd, &st) < 0)
		return failed(fail, path);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	return hf_sys.landlock_add_rule(rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? failed(fail, path) : 0;
}

int hf_confine_landlock(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	struct landlock_ruleset_attr all = { .handled_access_fs = WRITING };
	int version = hf_sys.landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	AUTO_FD rules = -1;
	int r = 0;

	if (version >= 0 && version < ENOUGH)
		errno = EOPNOTSUPP;
	if (version >= ENOUGH)
		rules = hf_sys.landlock_create_ruleset(&all, sizeof(all), 0);
	if (rules < 0)
		return failed(fail, "read-only rest");
	for (size_t i = 0; r == 0 && i < inside->n_places; i++)
		r = allow(rules, inside->places[i], WRITING, fail);
	for (size_t i = 0; r == 0 && i < inside->n; i++)
		r = allow(rules, inside->layers[i].target, WRITING, fail);
	/* /dev/null, the terminal: devices take writes on a read-only mount, too. */
	if (r == 0)
		r = allow(rules, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE, fail);
	if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || hf_sys.landlock_restrict_self(rules, 0) < 0))
		r = failed(fail, "read-only rest");
	return r;
}
