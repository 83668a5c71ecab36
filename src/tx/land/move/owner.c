/*
 * tx/land/move/owner.c - gives the files that root creates in another owner's repository to that owner.
 *
 * The owner may replace any directory by a symbolic link, so no path is followed: each component is opened below its parent. A regular file with a
 * second name stays root's, because the owner could have made that name for a foreign file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/move/checkout.h"

/* Gives an entry of root's. Returns its descriptor or -errno. */
static int give(int dirfd, const char *name, uid_t uid, gid_t gid)
{
	AUTO_FD fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid == 0 && (!S_ISREG(st.st_mode) || st.st_nlink == 1) && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
		return -errno;
	return fd_take(&fd);
}

/* Gives each component of the path from `skip` on. Allocates nothing. */
static void give_path(int dirfd, const char *path, size_t skip, uid_t uid, gid_t gid)
{
	char name[NAME_MAX + 1];
	AUTO_FD at = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (const char *from = path, *end; at >= 0 && *from; from = end + (*end == '/')) {
		int next;

		end = from + strcspn(from, "/");
		if ((size_t)(end - from) >= sizeof(name))
			return;
		memcpy(name, from, (size_t)(end - from));
		name[end - from] = '\0';
		next = (size_t)(end - path) > skip ? give(at, name, uid, gid) : openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		hf_auto_close(&at);
		at = next;
	}
}

/* -- the repository -------------------------------------------------------------------------- */

static void give_entries(int dirfd, const struct stat *owner)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (hf_open_dir(dirfd, ".", &dir) < 0)
		return;
	while ((entry = readdir(dir))) {
		AUTO_FD fd = entry->d_name[0] == '.' ? -1 : give(dirfd, entry->d_name, owner->st_uid, owner->st_gid);

		(void)fd;
	}
}

static void give_objects(int common, const struct stat *owner)
{
	char name[16] = "objects/pack";

	for (int i = -1; i < 256; i++) {
		AUTO_FD fd = -1;

		if (i >= 0)
			(void)snprintf(name, sizeof(name), "objects/%02x", (unsigned)i);
		fd = openat(common, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		give_path(common, name, 0, owner->st_uid, owner->st_gid);
		give_entries(fd, owner);
	}
}

void hf_land_give(const struct hf_landing *landing)
{
	static const char *const names[] = { "refs/holdfast", "packed-refs", "logs/HEAD", "index", "ORIG_HEAD" };
	AUTO_FD common = open(landing->common, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD git_dir = open(landing->git_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char log[320], ref[HF_NAME_KEY_MAX + 32];
	struct stat owner;

	if (geteuid() != 0 || common < 0 || fstat(common, &owner) < 0 || owner.st_uid == 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		give_path(common, names[i], 0, owner.st_uid, owner.st_gid);
		if (git_dir >= 0)
			give_path(git_dir, names[i], 0, owner.st_uid, owner.st_gid);
	}
	give_path(common, landing->branch, 0, owner.st_uid, owner.st_gid);
	hf_land_ref(landing->name, ref);
	give_path(common, ref, 0, owner.st_uid, owner.st_gid);
	for (size_t i = 0; i < landing->rest.n; i++)
		give_path(common, landing->rest.list[i].ref, 0, owner.st_uid, owner.st_gid);
	if (snprintf(log, sizeof(log), "logs/%s", landing->branch) < (int)sizeof(log))
		give_path(common, log, 0, owner.st_uid, owner.st_gid);
	give_objects(common, &owner);
}

/* -- the work tree --------------------------------------------------------------------------- */

struct gift {
	char *path;
	size_t skip; /* bytes of the path that exist in the real work tree */
	uid_t uid;
	gid_t gid;
};

struct gifts {
	const char *top;
	struct gift *list;
	size_t n;
};

static void gifts_done(struct gifts *gifts)
{
	for (size_t i = 0; i < gifts->n; i++)
		free(gifts->list[i].path);
	free(gifts->list);
}

/* The owner of a replaced file, otherwise of the nearest directory that exists. */
static int add_gift(struct gifts *gifts, int top, const char *path)
{
	struct gift *grown = reallocarray(gifts->list, gifts->n + 1, sizeof(*grown)), *gift;
	AUTO_FREE char *at = strdup(path);
	struct stat st;
	char *slash;

	if (grown)
		gifts->list = grown;
	if (!grown || !at)
		return -ENOMEM;
	gift = &grown[gifts->n];
	*gift = (struct gift){ strdup(path), 0, 0, 0 };
	if (!gift->path)
		return -ENOMEM;
	gifts->n++;
	if (fstatat(top, at, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		slash = strrchr(at, '/');
		gift->skip = slash ? (size_t)(slash - at) : 0;
	} else {
		while ((slash = strrchr(at, '/'))) {
			*slash = '\0';
			if (fstatat(top, at, &st, AT_SYMLINK_NOFOLLOW) == 0)
				break;
		}
		gift->skip = slash ? strlen(at) : 0;
		if (!slash && fstat(top, &st) < 0)
			return -errno;
	}
	gift->uid = st.st_uid;
	gift->gid = st.st_gid;
	return 0;
}

/* In a child, in the sandbox. */
static int give_all(void *arg)
{
	const struct gifts *gifts = arg;
	AUTO_FD top = open(gifts->top, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; top >= 0 && i < gifts->n; i++)
		give_path(top, gifts->list[i].path, gifts->list[i].skip, gifts->list[i].uid, gifts->list[i].gid);
	return 0;
}

int hf_checkout_give(const struct hf_checkout *checkout, struct hf_err *err)
{
	AUTO(gifts_done) struct gifts gifts = { .top = checkout->top };
	AUTO_FD top = open(checkout->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct hf_git git = hf_checkout_inside(checkout, NULL, NULL);
	struct hf_land_change change;
	const char *at = NULL;
	struct stat st;

	if (geteuid() != 0 || top < 0 || fstat(top, &st) < 0 || st.st_uid == 0)
		return 0;
	while (hf_land_next_change(checkout->work, &at, &change))
		if (change.new_mode != 0 && (change.new_mode & S_IFMT) != 0160000 && add_gift(&gifts, top, change.path) < 0)
			return hf_fail_sys(err, ENOMEM, "memory", change.path);
	git.before = give_all;
	git.before_arg = &gifts;
	return gifts.n ? hf_git_act(&git, "chown in", err) : 0;
}
