/* plan/target/pins.c - the layer of pinned files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/plan/target/pins.h"
#include "hf/plan/target/target.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define PLAN_NS (10 * HF_SEC) /* for the plan's lock: another process may be looking at it */

void hf_pins_done(struct hf_pins *pins)
{
	hf_plan_unlock(&pins->lock);
	hf_auto_close(&pins->target);
	hf_auto_close(&pins->layer);
}

static int open_layer(struct hf_plans *plans, struct hf_plan_record *record, const char *sandbox, struct hf_pins *pins,
		      struct hf_err *err)
{
	const struct hf_sandbox_record *s = hf_plan_sandbox(record, sandbox);
	AUTO_FD plan_fd = -1;
	AUTO_FD fd = -1;
	int r;

	if (!s)
		return FAIL(err, HF_E_NO_SANDBOX, "sandbox", sandbox, "plan '%.80s' has no sandbox with this name", record->name);
	if (s->strategy != HF_STRATEGY_OVERLAY || s->entered)
		return FAIL(err, HF_E_PLAN_STATE, "sandbox", sandbox, "files can be pinned only in an overlay that was not entered yet");
	r = hf_target_open(&s->target, &pins->target, err);
	if (r == 0)
		r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);
	if (r == 0)
		r = hf_sandbox_dir(plan_fd, s->name, 1, &fd, err);
	if (r < 0)
		return r;
	if (hf_mkdir_at(fd, HF_SANDBOX_PINS, 0700) < 0 && errno != EEXIST)
		return FAIL_SYS(err, "mkdirat", sandbox);
	pins->layer = hf_open_at(fd, HF_SANDBOX_PINS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return pins->layer < 0 ? hf_fail_sys(err, -pins->layer, "openat", sandbox) : 0;
}

int hf_pins_open(struct hf_plans *plans, const char *plan, const char *sandbox, struct hf_pins *ret, struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_pins_done) struct hf_pins pins = HF_PINS_INIT;
	int r = hf_plan_lock(plans, plan, PLAN_NS, &pins.lock, err);

	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	if (r == 0)
		r = open_layer(plans, &record, sandbox, &pins, err);
	if (r < 0)
		return r;
	*ret = pins;
	pins = (struct hf_pins)HF_PINS_INIT;
	return 0;
}

/* -- directories ------------------------------------------------------------------------- */

/* A directory of the layer and the same one of the target (-1: it has none), on the way to a file. */
struct place {
	int layer, target;
	struct stat st; /* of the last directory on the way that the target has */
};

static void place_done(struct place *place)
{
	hf_auto_close(&place->layer);
	hf_auto_close(&place->target);
}

/* One made here looks inside like the target's. */
static int dress(const struct place *place, int fd)
{
	if (place->target >= 0)
		return hf_copy_attributes(place->target, fd, &place->st);
	if (geteuid() == 0 && hf_sys.fchown(fd, place->st.st_uid, place->st.st_gid) < 0)
		return -errno;
	return hf_sys.fchmod(fd, 0755) < 0 ? -errno : 0;
}

static int go_down(struct place *place, const char *name)
{
	AUTO_FD target = place->target < 0 ? -ENOENT : hf_dirtree_open(place->target, name);
	AUTO_FD layer = -1;
	int made;

	if (target < 0 && target != -ENOENT)
		return target;
	hf_auto_close(&place->target);
	place->target = target < 0 ? -1 : fd_take(&target);
	if (place->target >= 0 && hf_sys.fstat(place->target, &place->st) < 0)
		return -errno;
	made = hf_mkdir_at(place->layer, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	layer = hf_open_at(place->layer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layer < 0)
		return layer;
	hf_auto_close(&place->layer);
	place->layer = fd_take(&layer);
	return made ? dress(place, place->layer) : 0;
}

/* The directories of `path`, made in the layer. *ret_leaf is in `path`. */
static int find(const struct hf_pins *pins, const char *path, struct place *ret, const char **ret_leaf)
{
	const char *at = path;
	int r = 0;

	if (!path[0] || !hf_dirtree_path_ok(path, strlen(path)))
		return -EINVAL;
	ret->layer = fcntl(pins->layer, F_DUPFD_CLOEXEC, 3);
	ret->target = fcntl(pins->target, F_DUPFD_CLOEXEC, 3);
	if (ret->layer < 0 || ret->target < 0 || hf_sys.fstat(ret->target, &ret->st) < 0)
		return -errno;
	for (const char *slash; r == 0 && (slash = strchr(at, '/')); at = slash + 1) {
		char name[NAME_MAX + 1];

		if (slash - at > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, (size_t)(slash - at));
		name[slash - at] = '\0';
		r = go_down(ret, name);
	}
	*ret_leaf = at;
	return r;
}

/* -- files ------------------------------------------------------------------------------- */

static int take_back(const struct place *place, const char *leaf)
{
	return hf_sys.unlinkat(place->layer, leaf, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* 1, 0: there is none, -errno. */
static int share(const struct place *place, const char *leaf, struct stat *ret)
{
	struct stat from;
	int r = hf_dirtree_look(place->target, leaf, &from);

	if (r <= 0)
		return r;
	if (!S_ISREG(from.st_mode))
		return -EINVAL;
	if (hf_sys.linkat(place->target, leaf, place->layer, leaf, 0) == 0)
		return hf_sys.fstatat(place->layer, leaf, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 1;
	/* Another file system; or a file of another user, which the kernel lets no one else link. */
	if (errno == ENOENT)
		return 0;
	if (errno != EXDEV && errno != EPERM && errno != EMLINK && errno != EOPNOTSUPP)
		return -errno;
	r = hf_copy_file(place->target, place->layer, leaf, 1, ret, &from);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int hf_pins_share(const struct hf_pins *pins, const char *path, struct stat *ret)
{
	AUTO(place_done) struct place place = { .layer = -1, .target = -1 };
	struct stat st = { 0 };
	const char *leaf;
	int r = find(pins, path, &place, &leaf);

	if (r == 0)
		r = take_back(&place, leaf);
	if (r < 0 || place.target < 0)
		return r;
	r = share(&place, leaf, &st);
	if (r == 1 && !S_ISREG(st.st_mode))
		r = -EINVAL; /* it was replaced between the look and the link */
	if (r == 1 && ret)
		*ret = st;
	return r;
}

int hf_pins_write(const struct hf_pins *pins, const char *path, const char *bytes, size_t len)
{
	AUTO(place_done) struct place place = { .layer = -1, .target = -1 };
	AUTO_FD fd = -1;
	const char *leaf;
	int r = find(pins, path, &place, &leaf);

	if (r == 0)
		r = take_back(&place, leaf);
	if (r < 0)
		return r;
	fd = hf_create_at(place.layer, leaf, O_WRONLY, 0644);
	if (fd < 0)
		return fd;
	if (geteuid() == 0 && hf_sys.fchown(fd, place.st.st_uid, place.st.st_gid) < 0)
		return -errno;
	r = hf_write_all(fd, bytes, len);
	return r < 0 ? r : 0;
}

int hf_pins_hide(const struct hf_pins *pins, const char *path)
{
	AUTO(place_done) struct place place = { .layer = -1, .target = -1 };
	const char *leaf;
	int r = find(pins, path, &place, &leaf);

	if (r == 0)
		r = take_back(&place, leaf);
	/* A whiteout. */
	return r < 0 ? r : mknodat(place.layer, leaf, S_IFCHR, 0) < 0 ? -errno : 0;
}
