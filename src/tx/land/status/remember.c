/*
 * tx/land/status/remember.c - looking at a work tree after git has, and writing down what stands there. No memory is allocated: it runs in a
 * forked child of a process that may have threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/target/base.h"
#include "hf/plan/tree/rows.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/status/remembered.h"

#define ENTRIES_MAX 500000
#define DEPTH_MAX   400               /* each level has a descriptor */
#define ROWS        ((size_t)64 << 20)  /* names that wait for their turn; only touched pages count */
#define BODY        ((size_t)256 << 20)
#define OLD_NS      (60 * 24 * 3600 * HF_SEC)
#define NEW         ".new"

struct walk {
	const struct hf_remember *remember;
	int error;
	const char **ignored; /* in order; with a '/' behind a directory */
	size_t n_ignored;
	struct hf_remembered_head head;
	struct timespec newest; /* ctime of all that was written down */
	char path[4096];        /* of where it is, below the top */
	char *body;
	struct hf_rows rows;
};

void hf_remember_done(struct hf_remember *remember)
{
	hf_auto_close(&remember->dirfd);
	free(remember->top);
	remember->top = NULL;
	hf_buf_done(&remember->said);
}

/* -- what git ignores ------------------------------------------------------------------------------ */

/* The paths behind "! ", in the order that git gives: the one that strcmp has. */
static int note_ignored(struct walk *w, size_t room)
{
	const struct hf_buf *said = &w->remember->said;

	for (const char *at = said->s; at < said->s + said->len; at += strlen(at) + 1) {
		if (strncmp(at, "! ", 2) != 0)
			continue;
		if (w->n_ignored == room || (w->n_ignored > 0 && strcmp(w->ignored[w->n_ignored - 1], at + 2) >= 0))
			return -E2BIG;
		w->ignored[w->n_ignored++] = at + 2;
	}
	return 0;
}

static int is_ignored(const struct walk *w)
{
	size_t low = 0, high = w->n_ignored;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(w->ignored[middle], w->path);

		if (order == 0)
			return 1;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* -- the tree -------------------------------------------------------------------------------------- */

static void put(struct walk *w, const void *bytes, size_t len)
{
	if (w->head.bytes + len > BODY) {
		w->error = -E2BIG;
		return;
	}
	memcpy(w->body + w->head.bytes, bytes, len);
	w->head.bytes += len;
}

/* Not changed since before git looked. */
static int is_as_git_saw(struct walk *w, const struct stat *st)
{
	if (hf_stamp_ns(st->st_ctim) > hf_stamp_ns(w->newest))
		w->newest = st->st_ctim;
	return (uint64_t)st->st_dev == w->remember->moment.dev && hf_stamped_before(st, w->remember->moment.t0.real_ns);
}

/* Says a look at the clock that too? If it was set back, a change from after the moment may look older. */
static int is_older_than_moment(const struct walk *w)
{
	struct stat newest = { .st_ctim = w->newest };
	struct hf_t0 now;

	if (hf_t0_take(&now, NULL) < 0)
		return 0;
	/* In this order: a pause between them makes it later, never earlier. */
	now.boot_ns = hf_boot_now().ns;
	now.real_ns = hf_wall_now().ns;
	return hf_stamped_before(&newest, hf_base_threshold(&w->remember->moment.t0, &now));
}

/* Sets the path to that of an entry; a '/' follows that of a directory, as in git's list. */
static int name_entry(struct walk *w, size_t dir_len, const char *name, size_t len, int is_dir)
{
	size_t at = dir_len;

	if (dir_len + len + 3 > sizeof(w->path)) {
		w->error = -ENAMETOOLONG;
		return 0;
	}
	if (dir_len > 0)
		w->path[at++] = '/';
	memcpy(w->path + at, name, len);
	at += len;
	if (is_dir)
		w->path[at++] = '/';
	w->path[at] = '\0';
	return 1;
}

/* Writes an entry down, unless git ignores it. Returns 1 for a directory to go down into. */
static int take_entry(struct walk *w, int fd, size_t dir_len, const char *name, size_t len)
{
	struct hf_remembered_entry entry = { .name_len = (uint8_t)len };
	char leaf[256];
	struct stat st;

	memcpy(leaf, name, len);
	leaf[len] = '\0';
	if (strcmp(leaf, ".git") == 0)
		return 0;
	if (hf_sys.fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		w->error = -errno;
		return 0;
	}
	if (!name_entry(w, dir_len, name, len, S_ISDIR(st.st_mode)))
		return 0;
	/* Rules count, even if they are ignored themselves. */
	if (is_ignored(w) && strcmp(leaf, ".gitignore") != 0 && strcmp(leaf, ".gitattributes") != 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return 1;
	if (!is_as_git_saw(w, &st) || ++w->head.n_entries > ENTRIES_MAX) {
		w->error = -EAGAIN;
		return 0;
	}
	entry.ino = (uint64_t)st.st_ino;
	entry.ctime_ns = hf_stamp_ns(st.st_ctim);
	put(w, &entry, sizeof(entry));
	put(w, leaf, len + 1);
	return 0;
}

static void walk(struct walk *w, int fd, size_t dir_len, int depth);

static void descend(struct walk *w, int fd, size_t dir_len, const char *name, size_t len, int depth)
{
	char leaf[256];
	AUTO_FD sub = -1;

	memcpy(leaf, name, len);
	leaf[len] = '\0';
	if (depth >= DEPTH_MAX || !name_entry(w, dir_len, name, len, 0)) {
		w->error = -E2BIG;
		return;
	}
	sub = hf_open_noatime(fd, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sub < 0)
		w->error = sub;
	else
		walk(w, sub, strlen(w->path), depth + 1);
}

/* w->path is that of the directory, `dir_len` long; it is put back at the end. */
static void walk(struct walk *w, int fd, size_t dir_len, int depth)
{
	struct hf_remembered_dir dir = { 0 };
	size_t start = w->rows.used, at_dir = w->head.bytes, before_entries;
	struct hf_row row;
	struct stat st;
	int64_t count;

	if (hf_sys.fstat(fd, &st) < 0 || !is_as_git_saw(w, &st)) {
		w->error = -EAGAIN;
		return;
	}
	dir.ino = (uint64_t)st.st_ino;
	dir.ctime_ns = hf_stamp_ns(st.st_ctim);
	put(w, &dir, sizeof(dir));
	put(w, w->path, dir_len);
	put(w, "", 1);
	before_entries = w->head.n_entries;
	count = hf_rows_list(&w->rows, fd);
	if (count < 0)
		w->error = (int)count;
	for (size_t at = start; !w->error && at < w->rows.used; at += sizeof(row) + row.name_len) {
		memcpy(&row, w->rows.at + at, sizeof(row));
		/* From here on the type says whether it is gone down into. */
		row.type = take_entry(w, fd, dir_len, w->rows.at + at + sizeof(row), row.name_len) ? DT_DIR : DT_UNKNOWN;
		memcpy(w->rows.at + at, &row, sizeof(row));
	}
	dir.n_entries = (uint32_t)(w->head.n_entries - before_entries);
	dir.bytes = (uint32_t)(w->head.bytes - at_dir - sizeof(dir));
	if (!w->error)
		memcpy(w->body + at_dir, &dir, sizeof(dir));
	w->head.n_dirs++;
	for (size_t at = start, end = w->rows.used; !w->error && at < end; at += sizeof(row) + row.name_len) {
		memcpy(&row, w->rows.at + at, sizeof(row));
		if (row.type == DT_DIR)
			descend(w, fd, dir_len, w->rows.at + at + sizeof(row), row.name_len, depth);
	}
	w->rows.used = start;
	w->path[dir_len] = '\0';
}

static void walk_all(struct walk *w)
{
	const struct hf_moment *moment = &w->remember->moment;
	AUTO_FD top = hf_open_at(AT_FDCWD, w->remember->top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (top < 0 || hf_sys.fstat(top, &st) < 0 || (uint64_t)st.st_ino != moment->ino) {
		w->error = -EAGAIN;
		return;
	}
	walk(w, top, 0, 0);
	if (!w->error && !is_older_than_moment(w))
		w->error = -EAGAIN;
}

/* -- the file -------------------------------------------------------------------------------------- */

/* Those that were written long ago, whose work trees may be gone, and what a killed landing left (take/outside.c). */
static void remove_old(struct walk *w)
{
	int dirfd = w->remember->dirfd;
	AUTO_FD list = hf_open_at(dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct hf_row row;
	char name[256];
	struct stat st;

	w->rows.used = 0;
	if (list < 0 || hf_rows_list(&w->rows, list) < 0)
		return;
	for (size_t at = 0; at < w->rows.used; at += sizeof(row) + row.name_len) {
		memcpy(&row, w->rows.at + at, sizeof(row));
		memcpy(name, w->rows.at + at + sizeof(row), row.name_len);
		name[row.name_len] = '\0';
		if ((strncmp(name, ".status-", 8) == 0 || strncmp(name, ".index-", 7) == 0) && hf_sys.fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    hf_stamp_ns(st.st_mtim) < w->remember->moment.t0.real_ns - OLD_NS)
			(void)hf_sys.unlinkat(dirfd, name, 0);
	}
}

static int write_file(struct walk *w, int file)
{
	char name[HF_REMEMBERED_NAME_MAX], new[HF_REMEMBERED_NAME_MAX];
	int dirfd = w->remember->dirfd, r;

	hf_remembered_name(&w->remember->moment, "", name);
	hf_remembered_name(&w->remember->moment, NEW, new);
	w->head.sum = hf_remembered_sum(&w->head, w->body);
	r = hf_sys.ftruncate(file, 0) < 0 ? -errno : hf_pwrite_all(file, (const char *)&w->head, sizeof(w->head), 0, &(size_t){ 0 });
	if (r == 0)
		r = hf_pwrite_all(file, w->body, w->head.bytes, sizeof(w->head), &(size_t){ 0 });
	/* Not synced: a file that a power cut tore is not believed. */
	if (r == 0 && hf_sys.renameat2(dirfd, new, dirfd, name, 0) < 0)
		r = -errno;
	return r;
}

static int take(const struct hf_remember *remember, int file)
{
	size_t room = remember->said.len / 4 + 1, bytes = sizeof(struct walk) + room * sizeof(char *) + ROWS + BODY;
	struct walk *w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (w == MAP_FAILED)
		return -errno;
	w->remember = remember;
	w->ignored = (const char **)(w + 1);
	w->rows.at = (char *)(w->ignored + room);
	w->rows.room = ROWS;
	w->body = w->rows.at + ROWS;
	memcpy(w->head.magic, "hfstatus", sizeof(w->head.magic));
	w->head.version = 1;
	w->head.dev = remember->moment.dev;
	w->head.ino = remember->moment.ino;
	w->head.around = remember->moment.around;
	w->head.dirty = remember->dirty;
	w->error = note_ignored(w, room);
	if (!w->error)
		walk_all(w);
	r = w->error ? w->error : write_file(w, file);
	if (r == 0)
		remove_old(w);
	(void)munmap(w, bytes);
	return r;
}

/* Opens the file under its other name, locked as long as it is written. */
static int open_new(const struct hf_remember *remember)
{
	char new[HF_REMEMBERED_NAME_MAX];
	AUTO_FD fd = -1;
	struct stat st;
	int r;

	hf_remembered_name(&remember->moment, NEW, new);
	r = hf_open_private(remember->dirfd, new, O_RDWR | O_CREAT, new, &fd, NULL, NULL);
	if (r < 0)
		return r;
	if (hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	/* The one before may have renamed it meanwhile. */
	if (hf_stat_at(fd, "", &st) < 0 || !hf_is_named(remember->dirfd, new, &st))
		return -EWOULDBLOCK;
	return fd_take(&fd);
}

int hf_remember_now(const struct hf_remember *remember)
{
	AUTO_FD file = open_new(remember);

	return file < 0 ? file : take(remember, file);
}

int hf_remember_start(const struct hf_remember *remember, pid_t *ret_child)
{
	AUTO_FD file = open_new(remember);
	const int kept[] = { remember->dirfd, file };
	sigset_t none;
	pid_t pid;

	if (file < 0)
		return file;
	pid = hf_apart_fork_silent();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		*ret_child = pid;
		return 0;
	}
	hf_apart_close(kept, 2);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	(void)setpriority(PRIO_PROCESS, 0, 19);
	_exit(take(remember, file) < 0);
}
