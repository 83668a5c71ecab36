/* plan/sandbox/copy.c - a whole tree: one walk that makes directories and links, then files by threads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define THREADS_MAX 8
#define DEPTH_MAX   400

struct item {
	char *path; /* relative to the target */
	struct stat from, to;
	size_t same; /* hard link: index of the first with that inode + 1; 0: none */
};

struct work {
	int from, to;
	int clone;
	struct item *items;
	size_t n, room;
	atomic_size_t next;
	atomic_int error;   /* -errno, the first */
	atomic_size_t where; /* item of it */
};

static void work_done(struct work *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->items[i].path);
	free(w->items);
	hf_auto_close(&w->to);
}

static struct item *add_item(struct work *w, const char *dir, const char *name, const struct stat *st)
{
	struct item *item;

	if (w->n == w->room) {
		size_t room = w->room ? 2 * w->room : 256;
		struct item *grown = reallocarray(w->items, room, sizeof(*grown));

		if (!grown)
			return NULL;
		w->items = grown;
		w->room = room;
	}
	item = &w->items[w->n];
	*item = (struct item){ .from = *st };
	if (asprintf(&item->path, "%s%s%s", dir, dir[0] && name[0] ? "/" : "", name) < 0)
		return NULL;
	w->n++;
	return item;
}

static int copy_symlink(struct work *w, struct item *item, int dirfd, const char *name)
{
	char text[PATH_MAX + 1];
	ssize_t n = hf_sys.readlinkat(dirfd, name, text, sizeof(text) - 1);
	struct timespec times[2] = { item->from.st_atim, item->from.st_mtim };

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (hf_sys.symlinkat(text, w->to, item->path) < 0)
		return -errno;
	(void)hf_sys.fchownat(w->to, item->path, item->from.st_uid, item->from.st_gid,
			      AT_SYMLINK_NOFOLLOW);
	(void)hf_sys.utimensat(w->to, item->path, times, AT_SYMLINK_NOFOLLOW);
	return hf_sys.fstatat(w->to, item->path, &item->to, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int walk(struct work *w, int fd, size_t dir_index, int depth);

static int visit(struct work *w, int dirfd, const char *name, size_t dir_index, int depth)
{
	struct item *item;
	struct stat st;
	AUTO_FD sub = -1;

	if (hf_sys.fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* gone while we walked */
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
		return 0;
	item = add_item(w, w->items[dir_index].path, name, &st);
	if (!item)
		return -ENOMEM;
	if (strlen(item->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (S_ISLNK(st.st_mode))
		return copy_symlink(w, item, dirfd, name);
	if (S_ISREG(st.st_mode))
		return 0;
	if (depth >= DEPTH_MAX)
		return -ELOOP;
	if (hf_mkdir_at(w->to, item->path, 0700) < 0)
		return -errno;
	sub = hf_open_noatime(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return sub < 0 ? sub : walk(w, sub, w->n - 1, depth + 1);
}

static int walk(struct work *w, int fd, size_t dir_index, int depth)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = hf_open_dir(fd, ".", &dir);

	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = visit(w, fd, entry->d_name, dir_index, depth);
	return r;
}

/* -- hard links ---------------------------------------------------------------------- */

static const struct item *sort_base; /* guarded by sort_lock: qsort has no argument */
static pthread_mutex_t sort_lock = PTHREAD_MUTEX_INITIALIZER;

static int by_inode(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	ino_t x = sort_base[i].from.st_ino, y = sort_base[k].from.st_ino;

	return x != y ? (x > y) - (x < y) : (i > k) - (i < k);
}

/* Names of one inode: all but the first are linked, not copied. */
static int find_links(struct work *w)
{
	AUTO_FREE size_t *linked = calloc(w->n + 1, sizeof(*linked));
	size_t n = 0;

	if (!linked)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++)
		if (S_ISREG(w->items[i].from.st_mode) && w->items[i].from.st_nlink > 1)
			linked[n++] = i;
	(void)pthread_mutex_lock(&sort_lock);
	sort_base = w->items;
	qsort(linked, n, sizeof(*linked), by_inode);
	(void)pthread_mutex_unlock(&sort_lock);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (w->items[linked[i]].from.st_ino == w->items[linked[first]].from.st_ino)
			w->items[linked[i]].same = linked[first] + 1;
		else
			first = i;
	}
	return 0;
}

static int make_links(struct work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct item *item = &w->items[i];

		if (!item->same)
			continue;
		if (hf_sys.linkat(w->to, w->items[item->same - 1].path, w->to, item->path, 0) < 0)
			return -errno;
	}
	/* A new name changes the ctime of all of them. */
	for (size_t i = 0; i < w->n; i++)
		if (S_ISREG(w->items[i].from.st_mode) && w->items[i].from.st_nlink > 1 &&
		    hf_sys.fstatat(w->to, w->items[i].path, &w->items[i].to, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	return 0;
}

/* -- files ----------------------------------------------------------------------------- */

static void *copier(void *arg)
{
	struct work *w = arg;

	for (;;) {
		size_t i = atomic_fetch_add(&w->next, 1);
		struct item *item;
		int r, none = 0;

		if (i >= w->n || atomic_load(&w->error) != 0)
			return NULL;
		item = &w->items[i];
		if (!S_ISREG(item->from.st_mode) || item->same)
			continue;
		r = hf_copy_file(w->from, w->to, item->path, w->clone, &item->from, &item->to);
		if (r < 0 && atomic_compare_exchange_strong(&w->error, &none, r))
			atomic_store(&w->where, i);
	}
}

static unsigned processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&set) < THREADS_MAX ? (unsigned)CPU_COUNT(&set) : THREADS_MAX;
}

static int copy_files(struct work *w)
{
	pthread_t threads[THREADS_MAX];
	unsigned n = 0, wanted = processors();
	sigset_t all, mask;

	/* No signal of the caller's is delivered to them (L13). */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	while (n + 1 < wanted && w->n > 64 && pthread_create(&threads[n], NULL, copier, w) == 0)
		n++;
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	(void)copier(w);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	return atomic_load(&w->error);
}

/* Innermost first: filling a directory changes its times. */
static int finish_directories(struct work *w)
{
	for (size_t i = w->n; i-- > 0;) {
		struct item *item = &w->items[i];
		AUTO_FD from = -1;
		AUTO_FD to = -1;
		int r;

		if (!S_ISDIR(item->from.st_mode))
			continue;
		from = hf_open_at(w->from, item->path[0] ? item->path : ".",
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		to = hf_open_at(w->to, item->path[0] ? item->path : ".",
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (from < 0 || to < 0)
			return from < 0 ? from : to;
		r = hf_copy_attributes(from, to, &item->from);
		if (r < 0)
			return r;
		if (hf_sys.fstat(to, &item->to) < 0)
			return -errno;
	}
	return 0;
}

/* -- all of it --------------------------------------------------------------------------- */

static int64_t ns_of(struct timespec time)
{
	return time.tv_sec * HF_SEC + time.tv_nsec;
}

static int save(const struct work *w, int sandbox_fd)
{
	AUTO_FREE struct hf_manifest_entry *entries = calloc(w->n + 1, sizeof(*entries));
	struct hf_manifest manifest = { .entries = entries, .n = w->n };

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		const struct item *item = &w->items[i];

		entries[i].path = item->path;
		entries[i].row = (struct hf_manifest_row){
			.ino = item->from.st_ino,
			.copy_ino = item->to.st_ino,
			.size = (uint64_t)item->from.st_size,
			.mtime_ns = ns_of(item->from.st_mtim),
			.ctime_ns = ns_of(item->from.st_ctim),
			.copy_mtime_ns = ns_of(item->to.st_mtim),
			.copy_ctime_ns = ns_of(item->to.st_ctim),
			.mode = item->from.st_mode,
			.uid = item->from.st_uid,
			.gid = item->from.st_gid,
			.nlink = (uint32_t)item->from.st_nlink,
		};
	}
	return hf_manifest_save(sandbox_fd, &manifest);
}

int hf_copy_tree(int target_fd, int sandbox_fd, int clone, const char *shown, struct hf_err *err)
{
	AUTO(work_done) struct work w = { .from = target_fd, .to = -1, .clone = clone };
	AUTO_FD root = hf_open_at(target_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	int r = root < 0 ? root : 0;

	if (r == 0 && hf_mkdir_at(sandbox_fd, HF_SANDBOX_TREE, 0700) < 0)
		r = -errno;
	if (r == 0) {
		w.from = root;
		w.to = hf_open_at(sandbox_fd, HF_SANDBOX_TREE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		r = w.to < 0 ? w.to : hf_sys.fstat(root, &st) < 0 ? -errno : 0;
	}
	if (r == 0 && !add_item(&w, "", "", &st))
		r = -ENOMEM;
	if (r == 0)
		r = walk(&w, root, 0, 0);
	if (r == 0)
		r = find_links(&w);
	if (r == 0)
		r = copy_files(&w);
	if (r < 0 && atomic_load(&w.error) != 0)
		return hf_fail_sys(err, -r, "copy", w.items[atomic_load(&w.where)].path);
	if (r == 0)
		r = make_links(&w);
	if (r == 0)
		r = finish_directories(&w);
	if (r == 0)
		r = save(&w, sandbox_fd);
	return r < 0 ? hf_fail_sys(err, -r, "copy", shown) : 0;
}
