/* plan/sandbox/try.c - trying strategies, and hf_plan_probe. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/try.h"
#include "hf/plan/sandbox/use.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state/state.h"

static void inside_done(struct hf_inside **inside)
{
	free(*inside);
}

static void layer_done(struct hf_layer *layer)
{
	hf_auto_close(&layer->upper);
	hf_auto_close(&layer->work);
}

struct trial {
	struct hf_inside *inside;
	struct hf_inside_fail *fail;
	int told; /* pipe */
};

static void try_main(void *arg)
{
	const struct trial *trial = arg;
	const struct hf_layer *layer = trial->inside->layers;
	const int kept[] = { layer->upper, layer->work, trial->told };
	int r;

	/* Others wait for locks that end with their descriptors. */
	hf_apart_close(kept, 3);
	r = hf_inside_enter(trial->inside, trial->fail);
	if (r < 0)
		(void)hf_write_all(trial->told, (const char *)trial->fail, sizeof(*trial->fail));
	else
		(void)hf_write_all(trial->told, "", 1);
	_exit(0);
}

/* In a child, because it changes the process. Its end unmounts what it mounted. */
static int try_inside(struct hf_inside *inside, struct hf_inside_fail *fail, struct hf_err *err)
{
	struct trial trial = { inside, fail, -1 };
	AUTO_FD from = -1;
	ssize_t n;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", "overlay");
	from = ends[0];
	trial.told = ends[1];
	pid = hf_apart_run(try_main, &trial);
	(void)close(ends[1]);
	if (pid < 0)
		return FAIL_SYS(err, "fork", "overlay");
	do {
		n = hf_sys.read(from, fail, sizeof(*fail));
	} while (n < 0 && errno == EINTR);
	/* How it ended a caller that ignores SIGCHLD cannot tell: what it said counts. */
	(void)hf_apart_reap(pid);
	if (n == sizeof(*fail))
		return 1;
	return n == 1 ? 0 : hf_fail_sys(err, EIO, "try", "overlay");
}

int hf_try_overlay(int sandbox_fd, const char *sandbox_path, const struct hf_target *target, struct hf_inside_fail *fail,
		   struct hf_err *err)
{
	AUTO(layer_done) struct hf_layer layer = { .target = target->path, .sandbox = sandbox_path,
						   .dev = target->dev, .ino = target->ino,
						   .upper = -1, .work = -1, .pins = -1 };
	AUTO(inside_done) struct hf_inside *inside = calloc(1, sizeof(*inside));
	int r;

	if (!inside)
		return hf_fail_sys(err, ENOMEM, "memory", target->path);
	inside->layers = &layer;
	inside->n = 1;
	inside->join_user = inside->join_mnt = -1;
	if ((hf_mkdir_at(sandbox_fd, HF_SANDBOX_UPPER, 0700) < 0 && errno != EEXIST) ||
	    (hf_mkdir_at(sandbox_fd, HF_SANDBOX_WORK, 0700) < 0 && errno != EEXIST))
		return FAIL_SYS(err, "mkdirat", sandbox_path);
	layer.upper = hf_open_at(sandbox_fd, HF_SANDBOX_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	layer.work = hf_open_at(sandbox_fd, HF_SANDBOX_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = layer.upper < 0 || layer.work < 0 ? hf_fail_sys(err, EIO, "openat", sandbox_path) : 0;
	if (r == 0 && geteuid() == 0)
		r = hf_inside_read_maps(inside, err);
	if (r == 0)
		r = try_inside(inside, fail, err);
	if (r == 0 && hf_sandbox_settle(sandbox_fd) < 0)
		r = hf_fail_sys(err, EIO, "settle", sandbox_path);
	/* The upper directory is the change, and its mode is the target's: there is none before it is entered. */
	(void)hf_tree_remove(sandbox_fd, HF_SANDBOX_UPPER);
	if (r != 0)
		(void)hf_tree_remove(sandbox_fd, HF_SANDBOX_WORK);
	return r;
}

int hf_try_clone(int target_fd, int sandbox_fd)
{
	struct statfs from, to;
	AUTO_FD a = -1;
	AUTO_FD b = -1;

	if (hf_sys.fstatfs(target_fd, &from) < 0 || hf_sys.fstatfs(sandbox_fd, &to) < 0)
		return -errno;
	if (from.f_type != to.f_type)
		return -EXDEV;
	/*
	 * Between subvolumes of btrfs, which have ids of their own, only a try tells. A file without a name leaves no
	 * trace in the target. Where none can be made there, the ids decide.
	 */
	a = hf_open_at(target_fd, ".", O_TMPFILE | O_RDWR, 0600);
	if (a < 0 && memcmp(&from.f_fsid, &to.f_fsid, sizeof(to.f_fsid)) != 0)
		return -EXDEV;
	if (a < 0)
		a = hf_open_at(sandbox_fd, ".", O_TMPFILE | O_RDWR, 0600);
	b = hf_open_at(sandbox_fd, ".", O_TMPFILE | O_RDWR, 0600);
	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	if (hf_write_all(a, "holdfast", 8) < 0 || hf_sys.clone_range(b, a) < 0)
		return -errno;
	return 0;
}

/* -- probe -------------------------------------------------------------------------- */

struct room {
	struct hf_plans *plans;
	char name[64];
	char target[64];
	int fd;
};

static void room_done(struct room *room)
{
	hf_auto_close(&room->fd);
	(void)hf_tree_remove(room->plans->dirfd, room->name);
}

int hf_plan_probe(struct hf_plans *plans, const char *dir, enum hf_strategy strategy,
		  struct hf_plan_probe *ret_probe, struct hf_err *err)
{
	AUTO(room_done) struct room room = { .plans = plans, .fd = -1 };
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	struct hf_plan_probe probe = { 0 };
	struct hf_inside_fail fail = { 0 };
	struct hf_target target = { 0 };
	int r = hf_plans_check(plans, "probe", err);

	if (r == 0 && plans->dirfd < 0)
		r = hf_fail_sys(err, EROFS, "mkdir", "plans");
	if (r < 0)
		return r;
	/* A dot makes it no key: no plan is ever called so. */
	(void)snprintf(room.name, sizeof(room.name), ".probe.%d", (int)getpid());
	r = hf_private_subdir(plans->dirfd, room.name, room.name, 1, &room.fd, err);
	if (r < 0)
		return r;
	hf_buf_add_format(&path, "%s/plans/%s", hf_state_path(plans->state), room.name);
	if (!dir) {
		if (hf_mkdir_at(room.fd, "t", 0700) < 0)
			return FAIL_SYS(err, "mkdirat", room.name);
		hf_buf_add_text(&path, "/t");
	}
	r = path.err ? path.err : hf_target_resolve(dir ? dir : path.s, &target, err);
	if (r < 0)
		return r;
	if (!dir)
		path.s[path.len -= 2] = '\0';
	if (strategy == HF_STRATEGY_OVERLAY) {
		r = hf_try_overlay(room.fd, path.s, &target, &fail, err);
		if (r == 1) {
			probe.code = HF_E_NO_OVERLAY;
			probe.sys = fail.sys;
			hf_copy_text(probe.step, sizeof(probe.step), fail.step);
			hf_inside_explain(&fail, probe.why, probe.remedy);
		}
	} else if (strategy == HF_STRATEGY_CLONE) {
		AUTO_FD fd = hf_open_at(AT_FDCWD, target.path, O_PATH | O_DIRECTORY, 0);

		r = fd < 0 ? fd : hf_try_clone(fd, room.fd);
		if (r < 0) {
			probe.code = HF_E_NO_OVERLAY;
			probe.sys = -r;
			hf_copy_text(probe.step, sizeof(probe.step), "ioctl FICLONE");
			hf_copy_text(probe.why, sizeof(probe.why), strerrordesc_np(-r));
			r = 0;
		}
	}
	free(target.path);
	if (r < 0)
		return r;
	*ret_probe = probe;
	return 0;
}
