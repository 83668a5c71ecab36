/* plan/inside/namespace.c - into the namespaces, before exec. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/inside/namespace.h"
#include "hf/plan/sandbox/strays.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/numbers.h"
#include "hf/sys/io.h"

int hf_inside_failed(struct hf_inside_fail *fail, const char *step, const char *subject)
{
	fail->sys = errno ? errno : EIO;
	hf_copy_text(fail->step, sizeof(fail->step), step);
	hf_copy_text(fail->subject, sizeof(fail->subject), subject);
	return -fail->sys;
}

static int new_namespaces(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (inside->root_only) {
		if (hf_sys.unshare(CLONE_NEWNS) < 0)
			return hf_inside_failed(fail, "unshare", "mount namespace");
		/* Or the overlays would be mounted for everybody. */
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			return hf_inside_failed(fail, "mount", "private /");
		return 0;
	}
	if (inside->uid_map[0]) {
		r = hf_inside_map_all(inside, fail);
		return r == 1 ? hf_inside_map_own(uid, gid, fail) : r;
	}
	if (hf_sys.unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return hf_inside_failed(fail, "unshare", "user namespace");
	return hf_inside_map_own(uid, gid, fail);
}

int hf_inside_new_user(struct hf_inside_fail *fail)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (hf_sys.unshare(CLONE_NEWUSER) < 0)
		return hf_inside_failed(fail, "unshare", "user namespace");
	return hf_inside_map_own(uid, gid, fail);
}

static int join(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	/* Its user namespace first: that gives the right to enter the other. */
	if (inside->join_user >= 0 && hf_sys.setns(inside->join_user, CLONE_NEWUSER) < 0)
		return hf_inside_failed(fail, "setns", "user namespace");
	if (hf_sys.setns(inside->join_mnt, CLONE_NEWNS) < 0)
		return hf_inside_failed(fail, "setns", "mount namespace");
	return 0;
}

/* -- overlays --------------------------------------------------------------------- */

enum { SET_FLAG = 0, SET_STRING = 1, CREATE = 6 }; /* enum fsconfig_command */

/* The kernel's own sentence waits in the descriptor: "e overlay: …". */
static int config_failed(struct hf_inside_fail *fail, int fs, const char *step, const char *target)
{
	char text[sizeof(fail->text)];
	int saved = errno;
	ssize_t n;

	while ((n = hf_sys.read(fs, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		hf_copy_text(fail->text, sizeof(fail->text),
			     n > 2 && text[1] == ' ' ? text + 2 : text);
	}
	errno = saved;
	return hf_inside_failed(fail, step, target);
}

static int set_layer(int fs, const char *key, int fd)
{
	char path[32];

	/* By descriptor: no character of a path name can be taken for a separator. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return hf_sys.fsconfig(fs, SET_STRING, key, path, 0);
}

/* `over`: a layer that lies over the target; -1: none. */
static int set_lower(int fs, int over, int target)
{
	char paths[64];

	if (over < 0)
		return set_layer(fs, "lowerdir", target);
	(void)snprintf(paths, sizeof(paths), "/proc/self/fd/%d:/proc/self/fd/%d", over, target);
	return hf_sys.fsconfig(fs, SET_STRING, "lowerdir", paths, 0);
}

static int open_in_place(const char *path)
{
	int fd = hf_sys.openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
				RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 && errno == ENOSYS)
		fd = hf_sys.openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd;
}

static int is_same(int fd, uint64_t dev, uint64_t ino)
{
	struct stat st;

	return hf_sys.fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static int is_same_fd(int fd, int other)
{
	struct stat st;

	return hf_sys.fstat(other, &st) == 0 && is_same(fd, st.st_dev, st.st_ino);
}

static int mount_layer(const struct hf_layer *layer, int lower, struct hf_inside_fail *fail)
{
	AUTO_FD fs = hf_sys.fsopen("overlay", 1 /* FSOPEN_CLOEXEC */);
	AUTO_FD sandbox = hf_sys.openat(AT_FDCWD, layer->sandbox, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	AUTO_FD upper = -1;
	AUTO_FD work = -1;
	AUTO_FD pins = -1;
	AUTO_FD made = -1;
	AUTO_FD over = -1;
	char source[HF_OVERLAY_SOURCE_MAX];
	struct stat st;

	if (fs < 0)
		return hf_inside_failed(fail, "fsopen", "overlay");
	if (sandbox < 0)
		return hf_inside_failed(fail, "openat", layer->sandbox);
	upper = hf_sys.openat(sandbox, HF_SANDBOX_UPPER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			      0);
	work = hf_sys.openat(sandbox, HF_SANDBOX_WORK, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			     0);
	if (upper < 0 || work < 0 || !is_same_fd(upper, layer->upper) || hf_sys.fstat(upper, &st) < 0 ||
	    !is_same_fd(work, layer->work)) {
		errno = upper < 0 || work < 0 ? errno : ESTALE;
		return hf_inside_failed(fail, "openat", layer->sandbox);
	}
	if (layer->pins >= 0) {
		pins = hf_sys.openat(sandbox, HF_SANDBOX_PINS, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (pins < 0 || !is_same_fd(pins, layer->pins)) {
			errno = pins < 0 ? errno : ESTALE;
			return hf_inside_failed(fail, "openat", layer->sandbox);
		}
	}
	hf_overlay_source(st.st_dev, st.st_ino, source);
	if (hf_sys.fsconfig(fs, SET_STRING, "source", source, 0) < 0 ||
	    set_lower(fs, pins, lower) < 0 || set_layer(fs, "upperdir", upper) < 0 ||
	    set_layer(fs, "workdir", work) < 0)
		return config_failed(fail, fs, "fsconfig", layer->target);
	if (hf_sys.fsconfig(fs, SET_FLAG, "userxattr", NULL, 0) < 0)
		return config_failed(fail, fs, "fsconfig userxattr", layer->target);
	if (hf_sys.fsconfig(fs, SET_FLAG, "volatile", NULL, 0) < 0)
		return config_failed(fail, fs, "fsconfig volatile", layer->target);
	if (hf_sys.fsconfig(fs, CREATE, NULL, NULL, 0) < 0)
		return config_failed(fail, fs, "fsconfig create", layer->target);
	made = hf_sys.fsmount(fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	if (made < 0)
		return config_failed(fail, fs, "fsmount", layer->target);
	/* Opened now: for a nested target this is the entry in the outer overlay. */
	over = open_in_place(layer->target);
	if (over < 0)
		return hf_inside_failed(fail, "openat", layer->target);
	if (hf_sys.move_mount(made, "", over, "",
			      0x04 | 0x40 /* F_EMPTY_PATH, T_EMPTY_PATH */) < 0)
		return hf_inside_failed(fail, "move_mount", layer->target);
	return 0;
}

static int mount_all(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int lower[HF_PLAN_SANDBOXES_MAX];
	int r = 0;

	/* All before the first mount, so that an inner target is the real one, not the outer's view. */
	for (size_t i = 0; i < inside->n; i++) {
		lower[i] = open_in_place(inside->layers[i].target);
		if (lower[i] < 0)
			return hf_inside_failed(fail, "openat", inside->layers[i].target);
		if (!is_same(lower[i], inside->layers[i].dev, inside->layers[i].ino)) {
			errno = ESTALE;
			return hf_inside_failed(fail, "openat", inside->layers[i].target);
		}
	}
	for (size_t i = 0; i < inside->n && r == 0; i++)
		r = mount_layer(&inside->layers[i], lower[i], fail);
	for (size_t i = 0; i < inside->n; i++)
		hf_auto_close(&lower[i]);
	return r;
}

static int make_inside(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int r = new_namespaces(inside, fail);

	return r < 0 ? r : mount_all(inside, fail);
}

static int make_or_join(struct hf_inside *inside, struct hf_inside_fail *fail)
{
	struct hf_inside_fail first;
	int r;

	if (inside->join_mnt >= 0)
		return join(inside, fail);
	r = make_inside(inside, fail);
	/* Root where user namespaces are not available: a mount namespace alone. */
	if (r == 0 || geteuid() != 0 || strcmp(fail->step, "unshare") != 0)
		return r;
	first = *fail;
	*fail = (struct hf_inside_fail){ 0 };
	inside->root_only = 1;
	r = make_inside(inside, fail);
	/* The first reason is the one to be mended. */
	if (r < 0 && (strcmp(fail->step, "unshare") == 0 || strcmp(fail->step, "mount") == 0))
		*fail = first;
	return r;
}

int hf_inside_enter(struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int r = 0;

	*fail = (struct hf_inside_fail){ 0 };
	if (inside->n > 0)
		r = make_or_join(inside, fail);
	if (r == 0)
		r = hf_confine_network(inside, fail);
	return r < 0 ? r : hf_confine_files(inside, fail);
}

/* -- what the command may not have -------------------------------------------------- */

/*
 * Root inside goes on being root over files. Gone is what could look behind the overlay: mounting
 * (SYS_ADMIN), other processes' roots and memory (SYS_PTRACE), files by handle
 * (DAC_READ_SEARCH), and the machine itself.
 */
#define CAP(n) (UINT64_C(1) << (n))
static const uint64_t dropped_of_root =
	CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_PTRACE) | CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_SYS_MODULE) |
	CAP(CAP_SYS_RAWIO) | CAP(CAP_SYS_BOOT) | CAP(CAP_SYS_CHROOT) | CAP(CAP_BPF) |
	CAP(CAP_PERFMON) | CAP(CAP_CHECKPOINT_RESTORE) | CAP(CAP_MAC_ADMIN) | CAP(CAP_MAC_OVERRIDE);

int hf_inside_drop(int keep_ptrace, struct hf_inside_fail *fail)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uint64_t keep = geteuid() == 0 ? ~dropped_of_root : 0;
	int error = 0;

	if (keep_ptrace)
		keep |= CAP(CAP_SYS_PTRACE);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* The bounding set, so that neither exec as root nor a file's capabilities bring one back. */
	for (unsigned cap = 0; cap < 64 && !error; cap++)
		if (!(keep & CAP(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL)
				break; /* no kernel has it, nor those above */
			if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
				error = errno;
		}
	if (!error && syscall(SYS_capget, &head, data) < 0)
		error = errno;
	for (int i = 0; !error && i < 2; i++) {
		uint32_t kept = (uint32_t)(keep >> 32 * i);

		data[i].permitted &= kept;
		data[i].effective &= kept;
		data[i].inheritable &= kept;
	}
	if (!error && syscall(SYS_capset, &head, data) < 0)
		error = errno;
	if (!error)
		return 0;
	errno = error;
	return hf_inside_failed(fail, "capset", "capabilities");
}

static int close_at_exec(void *arg, int32_t fd)
{
	(void)arg;
	if (fd > STDERR_FILENO)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

int hf_inside_close_others(void)
{
	if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0)
		return 0;
	return hf_numbers_in("/proc/self/fd", close_at_exec, NULL);
}
