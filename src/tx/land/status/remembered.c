/* tx/land/status/remembered.c - comparing a work tree with what is remembered of it, by several threads where it is large. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/status/remembered.h"

#define THREADS_MAX 16
#define THREAD_EACH 1000 /* entries, for which a thread is worth its start */
#define STACK       ((size_t)64 << 10)

/* Directories that one thread looks at. */
struct part {
	struct hf_remembered *of;
	const char *from, *to;
	pthread_t thread;
	int is_started;
};

struct hf_remembered {
	char *map;
	size_t len;
	int top;
	const struct hf_remembered_head *head;
	atomic_int is_other; /* 1: something is not as it was, and nobody needs to look on */
	struct part parts[THREADS_MAX];
	size_t n_parts;
};

/* -- reading the file --------------------------------------------------------------------------- */

/* Its path and entries fill its bytes exactly, and end with NULs. */
static int is_whole(const struct hf_remembered_dir *dir, const char *at)
{
	const char *end = at + dir->bytes, *nul = memchr(at, '\0', dir->bytes);
	struct hf_remembered_entry entry;
	uint32_t n = 0;

	if (!nul)
		return 0;
	for (at = nul + 1; at < end; n++) {
		if ((size_t)(end - at) < sizeof(entry))
			return 0;
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		if (entry.name_len == 0 || end - at <= entry.name_len || at[entry.name_len] != '\0')
			return 0;
		at += entry.name_len + 1;
	}
	return n == dir->n_entries;
}

/* Checks each length, and cuts the directories into parts with about as many entries each. */
static int cut(struct hf_remembered *r, size_t n_parts)
{
	const char *at = r->map + sizeof(*r->head), *end = r->map + r->len;
	uint64_t each = r->head->n_entries / n_parts + 1, in_part = 0, entries = 0;
	struct hf_remembered_dir dir;
	uint32_t n = 0;

	r->parts[0].from = at;
	r->n_parts = 1;
	for (; at < end; n++) {
		if ((size_t)(end - at) < sizeof(dir))
			return 0;
		memcpy(&dir, at, sizeof(dir));
		if (dir.bytes == 0 || (size_t)(end - at) - sizeof(dir) < dir.bytes || !is_whole(&dir, at + sizeof(dir)))
			return 0;
		if (in_part >= each && r->n_parts < n_parts) {
			r->parts[r->n_parts - 1].to = at;
			r->parts[r->n_parts++].from = at;
			in_part = 0;
		}
		in_part += dir.n_entries + 1;
		entries += dir.n_entries;
		at += sizeof(dir) + dir.bytes;
	}
	r->parts[r->n_parts - 1].to = end;
	return n == r->head->n_dirs && entries == r->head->n_entries;
}

static int fits(const struct hf_remembered *r, const struct hf_moment *moment)
{
	const struct hf_remembered_head *head = r->head;

	return memcmp(head->magic, "hfstatus", sizeof(head->magic)) == 0 && head->version == 1 && head->dev == moment->dev &&
	       head->ino == moment->ino && head->around == moment->around && head->bytes == r->len - sizeof(*head) &&
	       hf_remembered_sum(head, r->map + sizeof(*head)) == head->sum;
}

static int map_file(struct hf_remembered *r, int dirfd, const struct hf_moment *moment)
{
	char name[HF_REMEMBERED_NAME_MAX];
	AUTO_FD fd = -1;
	struct stat st;
	void *map;

	hf_remembered_name(moment, "", name);
	if (hf_open_private(dirfd, name, O_RDONLY, name, &fd, &st, NULL) < 0 || (size_t)st.st_size < sizeof(*r->head))
		return 0;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 0;
	r->map = map;
	r->len = (size_t)st.st_size;
	r->head = (const void *)r->map;
	return fits(r, moment);
}

/* -- looking at the tree -------------------------------------------------------------------------- */

static int is_same_dir(const struct hf_remembered *r, const struct hf_remembered_dir *dir, const char *at)
{
	const char *end = at + dir->bytes, *path = *at ? at : ".";
	AUTO_FD fd = hf_open_at(r->top, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct hf_remembered_entry entry;
	struct stat st;

	if (fd < 0 || hf_sys.fstat(fd, &st) < 0 || (uint64_t)st.st_dev != r->head->dev || (uint64_t)st.st_ino != dir->ino ||
	    hf_stamp_ns(st.st_ctim) != dir->ctime_ns)
		return 0;
	for (at += strlen(at) + 1; at < end; at += entry.name_len + 1) {
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		if (hf_sys.fstatat(fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0 || (uint64_t)st.st_ino != entry.ino ||
		    hf_stamp_ns(st.st_ctim) != entry.ctime_ns)
			return 0;
	}
	return 1;
}

static void *look(void *arg)
{
	const struct part *part = arg;
	struct hf_remembered_dir dir;

	for (const char *at = part->from; at < part->to; at += sizeof(dir) + dir.bytes) {
		memcpy(&dir, at, sizeof(dir));
		if (atomic_load_explicit(&part->of->is_other, memory_order_relaxed))
			break;
		if (!is_same_dir(part->of, &dir, at + sizeof(dir)))
			atomic_store(&part->of->is_other, 1);
	}
	return NULL;
}

/* A part that gets no thread is looked at by hf_remembered_end. No signal of the caller's is handled by these threads. */
static void start_threads(struct hf_remembered *r)
{
	pthread_attr_t attributes;
	sigset_t all, mask;

	if (r->head->n_entries < THREAD_EACH || pthread_attr_init(&attributes) != 0)
		return;
	(void)pthread_attr_setstacksize(&attributes, STACK);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	for (size_t i = 0; i < r->n_parts; i++)
		r->parts[i].is_started = pthread_create(&r->parts[i].thread, &attributes, look, &r->parts[i]) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	(void)pthread_attr_destroy(&attributes);
}

static size_t count_parts(uint64_t n_entries)
{
	size_t n = (size_t)(n_entries / THREAD_EACH), processors = 1;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		processors = (size_t)CPU_COUNT(&set);
	if (n > processors)
		n = processors;
	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

static void join(struct hf_remembered *r)
{
	for (size_t i = 0; i < r->n_parts; i++)
		if (r->parts[i].is_started)
			(void)pthread_join(r->parts[i].thread, NULL);
		else
			(void)look(&r->parts[i]);
	r->n_parts = 0;
}

static void auto_free(struct hf_remembered **remembered)
{
	hf_remembered_free(*remembered);
}

int hf_remembered_open(int dirfd, const char *top, const struct hf_moment *moment, struct hf_remembered **ret)
{
	AUTO(auto_free) struct hf_remembered *r = calloc(1, sizeof(*r));

	if (!r)
		return 0;
	r->top = hf_open_at(AT_FDCWD, top, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r->top < 0 || !map_file(r, dirfd, moment) || !cut(r, count_parts(r->head->n_entries))) {
		r->n_parts = 0;
		return 0;
	}
	for (size_t i = 0; i < r->n_parts; i++)
		r->parts[i].of = r;
	start_threads(r);
	*ret = ptr_take(&r);
	return 1;
}

int hf_remembered_end(struct hf_remembered *remembered, struct hf_dirty *ret)
{
	join(remembered);
	if (atomic_load(&remembered->is_other))
		return 0;
	*ret = remembered->head->dirty;
	return 1;
}

void hf_remembered_free(struct hf_remembered *remembered)
{
	if (!remembered)
		return;
	atomic_store(&remembered->is_other, 1);
	join(remembered);
	hf_auto_close(&remembered->top);
	if (remembered->map)
		(void)munmap(remembered->map, remembered->len);
	free(remembered);
}
