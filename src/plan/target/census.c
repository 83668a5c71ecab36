/*
 * plan/target/census.c - taking a census: no memory is allocated, for it runs in a forked child of a
 * process that may have threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/plan/target/census.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define ENTRIES_MAX 500000
#define DELAY_NS    (20 * HF_MSEC)
#define LOOK_DIRS 16 /* how often it looks whether its file is still there */
#define DEPTH_MAX   400               /* each level has a descriptor */
#define ARENA       ((size_t)64 << 20) /* names that wait for their turn; only touched pages count */
#define OUT         65536

struct writer {
	int fd;
	int error;
	int64_t t0_ns;
	uint64_t max_entries;
	struct hf_census_head head;
	XXH3_state_t sum;
	char path[4096];
	size_t path_len;
	struct hf_rows rows;
	size_t out_len;
	char out[OUT];
};

static void flush(struct writer *w)
{
	int r = w->error ? 0 : hf_write_all(w->fd, w->out, w->out_len);

	if (r < 0)
		w->error = r;
	(void)XXH3_64bits_update(&w->sum, w->out, w->out_len);
	w->head.bytes += w->out_len;
	w->out_len = 0;
}

static void put(struct writer *w, const void *bytes, size_t len)
{
	if (w->out_len + len > sizeof(w->out))
		flush(w);
	if (len > sizeof(w->out)) { /* a large directory: straight through */
		int r = w->error ? 0 : hf_write_all(w->fd, bytes, len);

		if (r < 0)
			w->error = r;
		(void)XXH3_64bits_update(&w->sum, bytes, len);
		w->head.bytes += len;
		return;
	}
	memcpy(w->out + w->out_len, bytes, len);
	w->out_len += len;
}

static int is_before(const struct stat *st, int64_t t0_ns)
{
	return st->st_ctim.tv_sec * HF_SEC + st->st_ctim.tv_nsec < t0_ns;
}

static void walk(struct writer *w, int fd, int depth);

static void descend(struct writer *w, int fd, const char *name, size_t len, int depth)
{
	size_t before = w->path_len;
	char leaf[256];
	AUTO_FD sub = -1;

	memcpy(leaf, name, len);
	leaf[len] = '\0';
	if (depth >= DEPTH_MAX || before + 1 + len >= sizeof(w->path)) {
		w->head.partial = 1;
		return;
	}
	sub = hf_open_noatime(fd, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sub < 0)
		return; /* gone, or not readable: not known */
	if (before > 0)
		w->path[w->path_len++] = '/';
	memcpy(w->path + w->path_len, leaf, len);
	w->path_len += len;
	walk(w, sub, depth + 1);
	w->path_len = before;
}

static void walk(struct writer *w, int fd, int depth)
{
	struct stat before, after;
	size_t start = w->rows.used, end;
	int64_t count;

	/* A plan that was removed needs none. */
	if (!w->error && w->head.n_dirs % LOOK_DIRS == 1 && hf_sys.fstat(w->fd, &before) == 0 && before.st_nlink == 0)
		w->error = -ENOENT;
	if (w->error || hf_sys.fstat(fd, &before) < 0)
		return;
	count = hf_rows_list(&w->rows, fd);
	end = w->rows.used;
	if (count < 0 || w->head.n_entries + (uint64_t)count > w->max_entries ||
	    hf_sys.fstat(fd, &after) < 0) {
		w->head.partial = 1;
		w->rows.used = start;
		return;
	}
	w->head.n_entries += (uint64_t)count;
	/* Unchanged since T0 before and after it was read: what was read is what was there at T0. */
	if (is_before(&before, w->t0_ns) && is_before(&after, w->t0_ns) && end - start <= UINT32_MAX) {
		struct hf_census_dir dir = { .ino = after.st_ino, .mode = after.st_mode,
					     .n_entries = (uint32_t)count,
					     .bytes = (uint32_t)(end - start),
					     .path_len = (uint16_t)w->path_len };

		put(w, &dir, sizeof(dir));
		put(w, w->path, w->path_len);
		put(w, w->rows.at + start, end - start);
		w->head.n_dirs++;
	}
	for (size_t at = start; at < end;) {
		struct hf_row row;

		memcpy(&row, w->rows.at + at, sizeof(row));
		if (row.type == DT_DIR)
			descend(w, fd, w->rows.at + at + sizeof(row), row.name_len, depth);
		at += sizeof(row) + row.name_len;
	}
	w->rows.used = start;
}

/* Makes the file under its other name, locked as long as it is written. */
static int make_file(int sandbox_fd)
{
	AUTO_FD fd = -1;

	(void)hf_sys.unlinkat(sandbox_fd, HF_CENSUS_NEW, 0);
	fd = hf_create_at(sandbox_fd, HF_CENSUS_NEW, O_RDWR, 0600);
	if (fd < 0)
		return fd;
	return hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : fd_take(&fd);
}

static int take(int target_fd, int sandbox_fd, int file, const struct hf_t0 *t0, uint64_t max)
{
	struct writer *w = mmap(NULL, sizeof(*w) + ARENA, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	AUTO_FD root = hf_open_at(target_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int r;

	if (w == MAP_FAILED)
		return -errno;
	w->fd = file;
	w->t0_ns = t0->real_ns;
	w->max_entries = max;
	w->rows.at = (char *)(w + 1);
	w->rows.room = ARENA;
	memcpy(w->head.magic, "hfcensus", sizeof(w->head.magic));
	w->head.version = 1;
	w->head.t0_ns = t0->real_ns;
	XXH3_INITSTATE(&w->sum);
	(void)XXH3_64bits_reset(&w->sum);
	if (root < 0 || lseek(file, sizeof(w->head), SEEK_SET) < 0)
		w->error = root < 0 ? root : -errno;
	else
		walk(w, root, 0);
	flush(w);
	w->head.sum = XXH3_64bits_digest(&w->sum);
	r = w->error;
	if (r == 0)
		r = hf_pwrite_all(file, (const char *)&w->head, sizeof(w->head), 0, &(size_t){ 0 });
	if (r == 0 && hf_sys.renameat2(sandbox_fd, HF_CENSUS_NEW, sandbox_fd, HF_CENSUS, 0) < 0)
		r = -errno;
	if (r < 0)
		(void)hf_sys.unlinkat(sandbox_fd, HF_CENSUS_NEW, 0);
	(void)munmap(w, sizeof(*w) + ARENA);
	return r;
}

int hf_census_take(int target_fd, int sandbox_fd, const struct hf_t0 *t0, uint64_t max_entries)
{
	AUTO_FD file = make_file(sandbox_fd);

	return file < 0 ? file : take(target_fd, sandbox_fd, file, t0, max_entries);
}

struct census {
	int target_fd, sandbox_fd, file;
	const struct hf_t0 *t0;
	long delay_ns;
};

static void census_process(void *arg)
{
	const struct census *census = arg;
	const int kept[] = { census->target_fd, census->sandbox_fd, census->file };
	sigset_t none;

	hf_apart_close(kept, 3);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	(void)setpriority(PRIO_PROCESS, 0, 19);
	if (census->delay_ns > 0)
		hf_pause(census->delay_ns);
	_exit(take(census->target_fd, census->sandbox_fd, census->file, census->t0, ENTRIES_MAX) < 0);
}

int hf_census_start(int target_fd, int sandbox_fd, const struct hf_t0 *t0, pid_t *ret_child)
{
	AUTO_FD file = make_file(sandbox_fd);
	struct census census = { target_fd, sandbox_fd, file, t0, 0 };

	if (file < 0)
		return file;
	if (!ret_child)
		return hf_apart_start(census_process, &census);
	/* A session commits as soon as its command is over. One that is over by then needs none, and does not share a processor with one. */
	census.delay_ns = DELAY_NS;
	*ret_child = hf_apart_fork_silent();
	if (*ret_child == 0)
		census_process(&census);
	return *ret_child < 0 ? -errno : 0;
}
