/* plan/target/census_read.c - reading a census, and looking something up in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/census.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"

#define BYTES_MAX ((uint64_t)1 << 30)

struct hf_census {
	const char *map;
	size_t len;
	const struct hf_census_dir **table; /* open addressing by the hash of the path */
	size_t room;                        /* a power of two */
};

void hf_census_free(struct hf_census *census)
{
	if (!census)
		return;
	if (census->map)
		(void)munmap((void *)(uintptr_t)census->map, census->len);
	free(census->table);
	free(census);
}

static void auto_census_free(struct hf_census **census)
{
	hf_census_free(*census);
}

static const char *path_of(const struct hf_census_dir *dir)
{
	return (const char *)(dir + 1);
}

/* Its entries, and that the bytes hold exactly those. */
static int check_entries(const char *at, const struct hf_census_dir *dir)
{
	size_t left = dir->bytes;
	uint32_t n = 0;

	while (left > 0) {
		struct hf_row row;

		if (left < sizeof(row))
			return 0;
		memcpy(&row, at, sizeof(row));
		if (row.name_len == 0 || left < sizeof(row) + row.name_len)
			return 0;
		left -= sizeof(row) + row.name_len;
		at += sizeof(row) + row.name_len;
		n++;
	}
	return n == dir->n_entries;
}

static void add(struct hf_census *census, const struct hf_census_dir *dir)
{
	size_t at = XXH3_64bits(path_of(dir), dir->path_len) & (census->room - 1);

	while (census->table[at])
		at = (at + 1) & (census->room - 1);
	census->table[at] = dir;
}

/* Fills the table, and checks each length against the size. 0 or HF_E_FORMAT. */
static int index_all(struct hf_census *census, const struct hf_census_head *head)
{
	size_t at = sizeof(*head);
	uint64_t n = 0;

	while (at < census->len) {
		const struct hf_census_dir *dir = (const void *)(census->map + at);
		size_t left = census->len - at;

		if (left < sizeof(*dir) || left - sizeof(*dir) < (size_t)dir->path_len + dir->bytes ||
		    ++n > head->n_dirs || !check_entries(path_of(dir) + dir->path_len, dir))
			return HF_E_FORMAT;
		add(census, dir);
		at += sizeof(*dir) + dir->path_len + dir->bytes;
	}
	return n == head->n_dirs ? 0 : HF_E_FORMAT;
}

static int read_all(int fd, const struct hf_t0 *t0, struct hf_census *census)
{
	struct hf_census_head head;
	struct stat st;
	void *map;

	if (hf_sys.fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > BYTES_MAX || hf_pread_all(fd, (char *)&head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.magic, "hfcensus", sizeof(head.magic)) != 0 || head.version != 1 ||
	    head.t0_ns != t0->real_ns || head.bytes != (uint64_t)st.st_size - sizeof(head) ||
	    head.n_dirs > head.bytes / sizeof(struct hf_census_dir))
		return HF_E_FORMAT;
	census->len = (size_t)st.st_size;
	map = mmap(NULL, census->len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	census->map = map;
	if (XXH3_64bits(census->map + sizeof(head), (size_t)head.bytes) != head.sum)
		return HF_E_FORMAT;
	for (census->room = 16; census->room < 2 * head.n_dirs;)
		census->room *= 2;
	census->table = calloc(census->room, sizeof(*census->table));
	return census->table ? index_all(census, &head) : -ENOMEM;
}

/* One that is being taken is finished when its writer's lock is gone. */
static void wait_for_writer(int sandbox_fd, int64_t wait_ns)
{
	static const struct hf_backoff backoff = { .min_ns = HF_MSEC, .max_ns = 20 * HF_MSEC };
	AUTO_FD fd = hf_open_at(sandbox_fd, HF_CENSUS_NEW, O_RDONLY | O_NOFOLLOW, 0);

	if (fd >= 0)
		(void)hf_flock_until(fd, LOCK_SH, hf_mono_in(wait_ns < 0 ? INT64_MAX : wait_ns), &backoff);
}

int hf_census_load(int sandbox_fd, const struct hf_t0 *t0, int64_t wait_ns,
		   struct hf_census **ret_census, struct hf_err *err)
{
	AUTO(auto_census_free) struct hf_census *census = calloc(1, sizeof(*census));
	AUTO_FD fd = -1;
	int r;

	if (!census)
		return hf_fail_sys(err, ENOMEM, "memory", "census");
	r = hf_open_private(sandbox_fd, HF_CENSUS, O_RDONLY, "census", &fd, NULL, err);
	if (r == -ENOENT) {
		wait_for_writer(sandbox_fd, wait_ns);
		r = hf_open_private(sandbox_fd, HF_CENSUS, O_RDONLY, "census", &fd, NULL, err);
	}
	if (r == 0)
		r = read_all(fd, t0, census);
	if (r == HF_E_FORMAT) {
		/* It is only a help: without it the answers are more careful. */
		(void)hf_sys.unlinkat(sandbox_fd, HF_CENSUS, 0);
		r = -ENOENT;
	}
	if (r < 0)
		return r;
	*ret_census = ptr_take(&census);
	return 0;
}

const struct hf_census *hf_census_ask(struct hf_census_source *source)
{
	if (!source)
		return NULL;
	if (!source->is_read)
		(void)hf_census_load(source->sandbox_fd, source->t0, source->wait_ns, &source->census, NULL);
	source->is_read = 1;
	return source->census;
}

const struct hf_census_dir *hf_census_find(const struct hf_census *census, const char *path,
					   size_t len)
{
	size_t at = XXH3_64bits(path, len) & (census->room - 1);

	for (; census->table[at]; at = (at + 1) & (census->room - 1)) {
		const struct hf_census_dir *dir = census->table[at];

		if (dir->path_len == len && memcmp(path_of(dir), path, len) == 0)
			return dir;
	}
	return NULL;
}

const struct hf_row *hf_census_entry(const struct hf_census *census,
					const struct hf_census_dir *dir, const char *name)
{
	const char *at = path_of(dir) + dir->path_len, *end = at + dir->bytes;
	size_t len = strlen(name);

	(void)census;
	while (at < end) {
		const struct hf_row *row = (const void *)at;

		if (row->name_len == len && memcmp(row + 1, name, len) == 0)
			return row;
		at += sizeof(*row) + row->name_len;
	}
	return NULL;
}
