/* exec/cgroup/cgroup.c - finding, making, killing and removing a session's cgroup. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/cgroup/cgroup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define NAME_PREFIX "holdfast-"
#define CGROUP2_MAGIC 0x63677270UL /* CGROUP2_SUPER_MAGIC of linux/magic.h */
#define DEPTH_MAX   16 /* of groups that the tree itself made below ours */
#define OWN_PATH_MAX (HF_CGROUP_PATH_MAX - 40) /* leaves room for the name of a group below it */

/* The text of a file of /proc that may be long; to be freed. NULL on any failure. */
static char *slurp(const char *path, size_t cap)
{
	char *text = malloc(cap + 1);
	ssize_t n = text ? hf_read_file(AT_FDCWD, path, text, cap) : -ENOMEM;

	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* A path that needs unescaping (mountinfo writes \040) or cannot be stored is not used. */
static int is_plain_path(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] <= ' ' || (unsigned char)path[i] >= 0x7f || path[i] == '\\' ||
		    path[i] == '"')
			return 0;
	return len > 0 && path[0] == '/';
}

/* Where it nearly always is; asking for it is quicker than reading the mount table. */
static int guess_mount(char *mount, size_t mount_cap, char *root, size_t root_cap)
{
	static const char *const usual[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		struct statfs fs;

		if (statfs(usual[i], &fs) < 0 || (unsigned long)fs.f_type != CGROUP2_MAGIC)
			continue;
		/* Its root need not be the hierarchy's, but then our group is not found below it. */
		(void)snprintf(mount, mount_cap, "%s", usual[i]);
		(void)snprintf(root, root_cap, "/");
		return 0;
	}
	return -ENOTSUP;
}

/* Where cgroup2 is mounted, and which group of it is the root of that mount. */
static int find_mount(char *mount, size_t mount_cap, char *root, size_t root_cap)
{
	AUTO_FREE char *text = slurp("/proc/self/mountinfo", 1 << 20);
	char *save = NULL;

	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *type = strstr(line, " - cgroup2 "), *word = NULL, *words = NULL;
		const char *field[5] = { 0 };

		if (!type)
			continue;
		/* id, parent, device, root, mount point */
		word = strtok_r(line, " ", &words);
		for (int i = 0; i < 5 && word; i++, word = strtok_r(NULL, " ", &words))
			field[i] = word;
		if (!field[4] || !is_plain_path(field[3], strlen(field[3])) ||
		    !is_plain_path(field[4], strlen(field[4])))
			continue;
		if ((size_t)snprintf(mount, mount_cap, "%s", field[4]) < mount_cap &&
		    (size_t)snprintf(root, root_cap, "%s", field[3]) < root_cap)
			return 0;
	}
	return -ENOTSUP;
}

/* The cgroup2 path of a process, from its "0::" line. */
static int read_own(const char *proc_file, char *out, size_t cap)
{
	AUTO_FREE char *text = slurp(proc_file, 1 << 16);
	const char *line = text;

	while (line && strncmp(line, "0::", 3) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return -ENOTSUP;
	line += 3;
	if (!is_plain_path(line, strcspn(line, "\n")) ||
	    (size_t)snprintf(out, cap, "%.*s", (int)strcspn(line, "\n"), line) >= cap)
		return -ENAMETOOLONG;
	return 0;
}

/* Our own group as a path below the mount. */
static int own_path(int (*find)(char *, size_t, char *, size_t), char *out, size_t cap)
{
	char mount[HF_CGROUP_PATH_MAX], root[HF_CGROUP_PATH_MAX], own[HF_CGROUP_PATH_MAX];
	const char *below = own;
	size_t root_len;
	int r = find(mount, sizeof(mount), root, sizeof(root));

	if (r == 0)
		r = read_own("/proc/self/cgroup", own, sizeof(own));
	if (r < 0)
		return r;
	/* A bind mount shows only what is below its root. */
	root_len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (root_len > 0 && strncmp(own, root, root_len) == 0 &&
	    (own[root_len] == '/' || own[root_len] == '\0'))
		below = own + root_len;
	if (strcmp(below, "/") == 0)
		below = "";
	return (size_t)snprintf(out, cap, "%s%s", mount, below) < cap ? 0 : -ENAMETOOLONG;
}

static int open_group(const char *path, struct hf_cgroup *ret)
{
	struct stat st;
	AUTO_FD fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r;

	if (fd < 0)
		return fd;
	r = hf_stat_at(fd, "", &st);
	if (r < 0)
		return r;
	ret->fd = fd_take(&fd);
	ret->inode = (uint64_t)st.st_ino;
	(void)snprintf(ret->path, sizeof(ret->path), "%s", path);
	return 0;
}

int hf_cgroup_own(struct hf_cgroup *ret)
{
	char path[OWN_PATH_MAX];
	int r = own_path(guess_mount, path, sizeof(path));

	if (r == 0)
		r = open_group(path, ret);
	if (r != -ENOTSUP && r != -ENOENT)
		return r;
	r = own_path(find_mount, path, sizeof(path));
	return r < 0 ? r : open_group(path, ret);
}

/*
 * Makes the group and takes its flock, which its keeper holds as long as it lives: a group that
 * is empty and not locked was left behind. -EAGAIN: a sweep removed it before it was locked.
 */
static int make_locked(const char *path, struct hf_cgroup *ret)
{
	struct hf_cgroup group = HF_CGROUP_INIT;
	struct stat st;
	int r = hf_sys.mkdirat(AT_FDCWD, path, 0755) < 0 ? -errno : open_group(path, &group);

	/* What an odd umask took is given back (sys/mode.h): here so that it can be opened, below for what it is used for. */
	if (r == -EACCES && hf_mend_mode(AT_FDCWD, path, S_IFDIR, 0755) > 0)
		r = open_group(path, &group);
	if (r < 0)
		return r == -ENOENT ? -EAGAIN : r;
	if (hf_sys.flock(group.fd, LOCK_SH | LOCK_NB) < 0 || hf_stat_at(AT_FDCWD, path, &st) < 0 ||
	    (uint64_t)st.st_ino != group.inode || ((st.st_mode & 0755) != 0755 && hf_sys.fchmod(group.fd, 0755) < 0)) {
		(void)hf_sys.unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
		hf_cgroup_done(&group);
		return -EAGAIN;
	}
	*ret = group;
	return 0;
}

int hf_cgroup_make(const struct hf_cgroup *own, uint64_t token, struct hf_cgroup *ret)
{
	char path[HF_CGROUP_PATH_MAX];
	int r = -EAGAIN;

	if ((size_t)snprintf(path, sizeof(path), "%s/" NAME_PREFIX "%llu", own->path, (unsigned long long)token) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	for (int try = 0; r == -EAGAIN && try < 3; try++)
		r = make_locked(path, ret);
	return r;
}

/* "holdfast-" and a token. */
static int is_group_name(const char *name)
{
	uint64_t token;

	return strncmp(name, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) == 0 &&
	       hf_parse_u64(name + sizeof(NAME_PREFIX) - 1, strlen(name + sizeof(NAME_PREFIX) - 1), UINT64_MAX,
			    &token) == 0;
}

/* Removes the group of that name in `dirfd` if it is ours, empty, and no keeper has it. */
static int sweep_one(int dirfd, const char *name)
{
	struct hf_cgroup group = HF_CGROUP_INIT;
	struct stat st;
	int removed;

	group.fd = hf_open_at(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	removed = group.fd >= 0 && hf_stat_at(group.fd, "", &st) == 0 && st.st_uid == geteuid() &&
		  hf_cgroup_populated(&group) == 0 && hf_sys.flock(group.fd, LOCK_EX | LOCK_NB) == 0 &&
		  hf_sys.unlinkat(dirfd, name, AT_REMOVEDIR) == 0;
	hf_cgroup_done(&group);
	return removed;
}

int hf_cgroup_sweep(const struct hf_cgroup *own)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	struct statfs fs;
	struct stat st;
	int removed = 0;

	/* Two links and one for each group below: the rule is that there is none. */
	if (hf_sys.fstatfs(own->fd, &fs) < 0 || (unsigned long)fs.f_type != CGROUP2_MAGIC ||
	    hf_stat_at(own->fd, "", &st) < 0 || st.st_nlink == 2)
		return 0;
	(void)hf_open_dir(own->fd, ".", &dir);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && is_group_name(entry->d_name))
			removed += sweep_one(own->fd, entry->d_name);
	return removed;
}

int hf_cgroup_open(const char *path, uint64_t inode, struct hf_cgroup *ret)
{
	const char *leaf = strrchr(path, '/');
	struct hf_cgroup group = HF_CGROUP_INIT;
	struct statfs fs;
	int r;

	/* Whatever a record says: only a group that we made, of cgroup2, is touched (L12). */
	if (!leaf || strncmp(leaf + 1, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0)
		return -ENOENT;
	r = open_group(path, &group);
	if (r < 0)
		return r;
	if (group.inode != inode || hf_sys.fstatfs(group.fd, &fs) < 0 ||
	    (unsigned long)fs.f_type != CGROUP2_MAGIC) {
		hf_cgroup_done(&group);
		return -ENOENT;
	}
	*ret = group;
	return 0;
}

void hf_cgroup_done(struct hf_cgroup *group)
{
	hf_auto_close(&group->fd);
}

int hf_cgroup_populated(const struct hf_cgroup *group)
{
	char text[256];
	ssize_t n = hf_read_file(group->fd, "cgroup.events", text, sizeof(text) - 1);

	if (n < 0)
		return n == -ENODEV || n == -ENOENT ? 0 : (int)n;
	text[n] = '\0';
	return strstr(text, "populated 1") != NULL;
}

static int write_word(int dirfd, const char *file, const char *word)
{
	AUTO_FD fd = hf_open_at(dirfd, file, O_WRONLY, 0);

	return fd < 0 ? fd : hf_write_all(fd, word, strlen(word));
}

int hf_cgroup_kill(const struct hf_cgroup *group)
{
	return write_word(group->fd, "cgroup.kill", "1");
}

int hf_cgroup_add(const struct hf_cgroup *group, int32_t pid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return write_word(group->fd, "cgroup.procs", text);
}

/* Calls `fn` for each group below and last for `dirfd` itself. */
static void each_group(int dirfd, int depth, void (*fn)(void *arg, int dirfd), void *arg)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	(void)hf_open_dir(dirfd, ".", &dir);
	while (dir && depth < DEPTH_MAX && (entry = readdir(dir))) {
		AUTO_FD below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = hf_open_at(dirfd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (below >= 0)
			each_group(below, depth + 1, fn, arg);
	}
	fn(arg, dirfd);
}

struct each {
	void (*fn)(void *arg, int32_t pid);
	void *arg;
	int result;
};

static void each_process(void *arg, int dirfd)
{
	struct each *each = arg;
	char text[16384], *line = text;
	AUTO_FD fd = hf_open_at(dirfd, "cgroup.procs", O_RDONLY, 0);
	size_t have = 0;
	ssize_t n;

	if (fd < 0) {
		each->result = fd;
		return;
	}
	while ((n = hf_sys.read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *end;

		have += (size_t)n;
		text[have] = '\0';
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			uint64_t pid;

			/* 0: of a pid namespace that is not shown here. */
			if (hf_parse_u64(line, (size_t)(end - line), INT32_MAX, &pid) == 0 && pid > 1)
				each->fn(each->arg, (int32_t)pid);
		}
		have = strlen(line);
		memmove(text, line, have + 1);
	}
}

int hf_cgroup_each(const struct hf_cgroup *group, void (*fn)(void *arg, int32_t pid), void *arg)
{
	struct each each = { fn, arg, 0 };

	each_group(group->fd, 0, each_process, &each);
	return each.result;
}

int hf_cgroup_has(const struct hf_cgroup *group, int32_t pid)
{
	char file[40], own[HF_CGROUP_PATH_MAX];
	const char *leaf = strrchr(group->path, '/'), *found;

	(void)snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	if (!leaf || read_own(file, own, sizeof(own)) < 0)
		return 0;
	/* The name holds the token, so it is unique; a namespace may hide what is above it. */
	found = strstr(own, leaf);
	return found && (found[strlen(leaf)] == '\0' || found[strlen(leaf)] == '/');
}

static void remove_below(void *arg, int dirfd)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	(void)arg;
	(void)hf_open_dir(dirfd, ".", &dir);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)hf_sys.unlinkat(dirfd, entry->d_name, AT_REMOVEDIR);
}

void hf_cgroup_remove(struct hf_cgroup *group)
{
	if (group->fd < 0)
		return;
	/* A group that has none below it goes at once, which is the rule. */
	if (hf_sys.unlinkat(AT_FDCWD, group->path, AT_REMOVEDIR) < 0 && errno == EBUSY) {
		each_group(group->fd, 0, remove_below, NULL);
		(void)hf_sys.unlinkat(AT_FDCWD, group->path, AT_REMOVEDIR);
	}
	hf_cgroup_done(group);
}
