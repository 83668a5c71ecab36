/* plan/inside/confine_child.c - confining, in the child, before exec. Allocates nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/inside/namespace.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"

#define TREE_CLONE  1U          /* OPEN_TREE_CLONE */
#define TREE_ALL    0x8000U     /* AT_RECURSIVE */
#define EMPTY       0x1000U     /* AT_EMPTY_PATH */
#define TO_EMPTY    (0x04 | 0x40) /* MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH */
#define RDONLY      1U          /* MOUNT_ATTR_RDONLY */
#define PRIVATE     (1U << 18)  /* MS_PRIVATE */

static int confine_failed(struct hf_inside_fail *fail, const char *step, const char *subject)
{
	fail->confine = 1;
	return hf_inside_failed(fail, step, subject);
}

/* -- files ------------------------------------------------------------------------- */

static int open_place(const char *path)
{
	return hf_sys.openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hf_auto_close(&fds[i]);
}

/* Copies of the mounts at each place, as they are now, with the overlays that stand below. */
static int copy_places(const struct hf_inside *inside, int *trees, struct hf_inside_fail *fail)
{
	for (size_t i = 0; i < inside->n_places; i++) {
		AUTO_FD place = open_place(inside->places[i]);

		trees[i] = place < 0 ? -1 : hf_sys.open_tree(place, "", TREE_CLONE | TREE_ALL | EMPTY | O_CLOEXEC);
		if (trees[i] < 0) {
			int r = confine_failed(fail, "open_tree", inside->places[i]);

			close_all(trees, i);
			return r;
		}
	}
	return 0;
}

static int put_back(const struct hf_inside *inside, const int *trees, struct hf_inside_fail *fail)
{
	for (size_t i = 0; i < inside->n_places; i++) {
		AUTO_FD place = open_place(inside->places[i]);

		if (place < 0 || hf_sys.move_mount(trees[i], "", place, "", TO_EMPTY) < 0)
			return confine_failed(fail, "move_mount", inside->places[i]);
	}
	for (size_t i = 0; i < inside->n; i++)
		if (hf_sys.mount_setattr(AT_FDCWD, inside->layers[i].target, 0, 0, RDONLY, 0) < 0)
			return confine_failed(fail, "mount_setattr", inside->layers[i].target);
	return 0;
}

/* 0; 1: mounts cannot do it here, nothing was changed; -errno with *fail filled. */
static int confine_mounts(const struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int trees[HF_PLACES_MAX];
	int r;

	/* Copied before: they have the flags that their mounts had, and those that were read-only stay so. */
	r = copy_places(inside, trees, fail);
	if (r < 0)
		return 1;
	/* Private, because a mount that is made outside later would come in writable. */
	if (hf_sys.mount_setattr(AT_FDCWD, "/", TREE_ALL, RDONLY, 0, PRIVATE) < 0) {
		(void)confine_failed(fail, "mount_setattr", "/");
		close_all(trees, inside->n_places);
		return 1;
	}
	r = put_back(inside, trees, fail);
	close_all(trees, inside->n_places);
	return r;
}

int hf_confine_files(struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int r = 1;

	if (!(inside->confine & HF_CONFINE_READONLY))
		return 0;
	if (inside->n > 0)
		r = confine_mounts(inside, fail);
	if (r <= 0)
		return r;
	r = hf_confine_landlock(inside, fail);
	if (r < 0)
		return r;
	*fail = (struct hf_inside_fail){ 0 };
	inside->landlocked = 1;
	return 0;
}

/* -- network ------------------------------------------------------------------------ */

static int loopback_up(struct hf_inside_fail *fail)
{
	AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	/* A kernel without IPv4 has no loopback to bring up this way. */
	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		return confine_failed(fail, "ioctl", "loopback");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? confine_failed(fail, "ioctl", "loopback") : 0;
}

int hf_confine_network(struct hf_inside *inside, struct hf_inside_fail *fail)
{
	int r;

	if (!(inside->confine & HF_CONFINE_NO_NETWORK))
		return 0;
	/* Without overlays there is no user namespace yet. */
	if (hf_sys.unshare(CLONE_NEWNET) < 0) {
		if (errno != EPERM || inside->n > 0)
			return confine_failed(fail, "unshare", "network namespace");
		r = hf_inside_new_user(fail);
		inside->has_user = r == 0;
		if (r == 0 && hf_sys.unshare(CLONE_NEWNET) < 0)
			r = confine_failed(fail, "unshare", "network namespace");
		fail->confine = r < 0;
		if (r < 0)
			return r;
	}
	return loopback_up(fail);
}
