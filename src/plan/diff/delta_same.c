/* plan/diff/delta_same.c - do both sides have the same entry? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/diff/delta.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHUNK ((size_t)64 << 10)

static int same_content(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	AUTO_FREE char *x = malloc(CHUNK);
	AUTO_FREE char *y = malloc(CHUNK);
	AUTO_FD a = hf_open_noatime(a_dir, a_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	AUTO_FD b = hf_open_noatime(b_dir, b_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	off_t at = 0;

	if (!x || !y)
		return -ENOMEM;
	/* One that may not be read is not known to be the same. */
	if (a < 0 || b < 0)
		return 0;
	for (;;) {
		ssize_t n = hf_pread_all(a, x, CHUNK, at);
		ssize_t m = n < 0 ? n : hf_pread_all(b, y, CHUNK, at);

		if (m < 0)
			return (int)m;
		if (n != m || memcmp(x, y, (size_t)n) != 0)
			return 0;
		if (n < (ssize_t)CHUNK)
			return 1;
		at += n;
	}
}

static int same_link(int a_dir, const char *a_name, int b_dir, const char *b_name)
{
	char x[PATH_MAX], y[PATH_MAX];
	ssize_t n = hf_sys.readlinkat(a_dir, a_name, x, sizeof(x));
	ssize_t m = n < 0 ? -1 : hf_sys.readlinkat(b_dir, b_name, y, sizeof(y));

	if (m < 0)
		return -errno;
	return n == m && memcmp(x, y, (size_t)n) == 0;
}

int hf_same_entry(int a_fd, const char *a_name, const struct stat *a, int b_fd, const char *b_name,
		  const struct stat *b, const char *prefix_of_a)
{
	AUTO(hf_buf_done) struct hf_buf attrs = HF_BUF_INIT;
	int r;

	if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid)
		return 0;
	if (S_ISLNK(a->st_mode))
		return same_link(a_fd, a_name, b_fd, b_name);
	if (!S_ISREG(a->st_mode) || a->st_size != b->st_size)
		return 0;
	r = same_content(a_fd, a_name, b_fd, b_name);
	if (r <= 0)
		return r;
	r = hf_attrs_compare(a_fd, a_name, prefix_of_a, b_fd, b_name, &attrs);
	return r < 0 ? r : attrs.len == 0;
}
