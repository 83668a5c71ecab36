/* exec/marks.c - the marks in a process's environment and in its limits. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/marks.h"
#include "hf/sys/io.h"

#define ENVIRON_MAX ((size_t)8 << 20) /* what the kernel lets arguments and environment have */

/* -- the environment --------------------------------------------------------------- */

size_t hf_mark_prefix(uint64_t dir_inode, const char *name, char out[HF_MARK_MAX])
{
	char key[HF_NAME_KEY_MAX] = "";

	if (hf_name_key(name, strlen(name), key, NULL) < 0)
		key[0] = '\0';
	return (size_t)snprintf(out, HF_MARK_MAX, "%llx.%s.",
				(unsigned long long)dir_inode, key);
}

/* One of the entries of the variable's value? */
static int entry_matches(const char *value, size_t len, const char *prefix, uint64_t only,
			 uint64_t not)
{
	size_t prefix_len = strlen(prefix);

	while (len > 0) {
		const char *colon = memchr(value, ':', len);
		size_t size = colon ? (size_t)(colon - value) : len;
		uint64_t token;

		if (size > prefix_len && memcmp(value, prefix, prefix_len) == 0 &&
		    hf_parse_u64(value + prefix_len, size - prefix_len, UINT64_MAX, &token) == 0 &&
		    token != not && (only == 0 || token == only))
			return 1;
		value += size + (colon != NULL);
		len -= size + (colon != NULL);
	}
	return 0;
}

/* The environment in that file, to be freed; *ret_n is its size, 0 when there is none. */
static char *read_environ(const char *path, ssize_t *ret_n)
{
	char *text = NULL;
	size_t cap = 16384;
	ssize_t n;

	do {
		char *more = realloc(text, cap *= 2);

		if (!more) {
			n = 0;
			break;
		}
		text = more;
		n = hf_read_file(AT_FDCWD, path, text, cap);
	} while (n == -E2BIG && cap < ENVIRON_MAX);
	*ret_n = n > 0 ? n : 0;
	return text;
}

/* The first thread has ended and has no memory any more; those that run have the environment. */
static char *read_environ_of_thread(int32_t pid, ssize_t *ret_n)
{
	char path[64], *text = NULL;
	struct dirent *entry;
	DIR *dir;

	*ret_n = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && *ret_n == 0 && (entry = readdir(dir))) {
		uint64_t tid;

		if (hf_parse_u64(entry->d_name, strlen(entry->d_name), INT32_MAX, &tid) < 0 ||
		    tid == (uint64_t)pid)
			continue;
		free(text);
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/environ", (int)pid, (int)tid);
		text = read_environ(path, ret_n);
	}
	if (dir)
		(void)closedir(dir);
	return text;
}

int hf_mark_found(int32_t pid, const char *prefix, uint64_t only, uint64_t not)
{
	static const char variable[] = HF_MARK_VARIABLE "=";
	char path[40];
	AUTO_FREE char *text = NULL;
	ssize_t n;
	const char *at, *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	text = read_environ(path, &n);
	if (n == 0) {
		free(text);
		text = read_environ_of_thread(pid, &n);
	}
	for (at = text, end = text + n; at < end; at += strnlen(at, (size_t)(end - at)) + 1) {
		size_t len = strnlen(at, (size_t)(end - at));

		if (len >= sizeof(variable) && memcmp(at, variable, sizeof(variable) - 1) == 0)
			return entry_matches(at + sizeof(variable) - 1, len - (sizeof(variable) - 1),
					     prefix, only, not);
	}
	return 0;
}

/* -- the limit ----------------------------------------------------------------------- */

#define IS_MARK     (UINT64_C(1) << 62)
#define DEPTH_SHIFT 54
#define DEPTH_MAX   UINT64_C(255)
#define TOKEN_SHIFT 30
#define TOKEN_BITS  ((UINT64_C(1) << 24) - 1)
#define NAME_BITS   ((UINT64_C(1) << 30) - 1)

uint64_t hf_limit_mark_name(uint64_t dir_device, uint64_t dir_inode, const char *name)
{
	const uint64_t place[] = { dir_device, dir_inode };

	return XXH3_64bits_withSeed(name, strlen(name), XXH3_64bits(place, sizeof(place))) & NAME_BITS;
}

uint64_t hf_limit_mark_name_of(uint64_t mark)
{
	return mark & NAME_BITS;
}

uint64_t hf_limit_mark_in(uint64_t limit)
{
	return limit >> 62 == 1 ? limit : 0;
}

uint64_t hf_limit_mark_make(uint64_t above, uint64_t name, uint64_t token)
{
	uint64_t depth = DEPTH_MAX;

	if (hf_limit_mark_in(above)) {
		depth = above >> DEPTH_SHIFT & DEPTH_MAX;
		if (depth-- == 0)
			return 0;
	} else if (above < IS_MARK) {
		return 0;
	}
	return IS_MARK | depth << DEPTH_SHIFT |
	       (XXH3_64bits(&token, sizeof(token)) & TOKEN_BITS) << TOKEN_SHIFT | (name & NAME_BITS);
}

uint64_t hf_limit_own(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_LOCKS, &limit) < 0 ? 0
	       : limit.rlim_max == RLIM_INFINITY   ? UINT64_MAX
						   : (uint64_t)limit.rlim_max;
}

int hf_limit_mark_set(uint64_t mark)
{
	const struct rlimit limit = { .rlim_cur = (rlim_t)mark, .rlim_max = (rlim_t)mark };

	return setrlimit(RLIMIT_LOCKS, &limit) < 0 ? -errno : 0;
}

int hf_limits_parse(const char *text, size_t len, uint64_t *ret)
{
	static const char label[] = "Max file locks ";
	const char *at = memmem(text, len, label, sizeof(label) - 1), *end = text + len;

	if (!at || (at > text && at[-1] != '\n'))
		return HF_E_FORMAT;
	at += sizeof(label) - 1;
	/* The soft limit, and behind it the hard one. */
	for (int word = 0; word < 2; word++) {
		const char *start;

		while (at < end && *at == ' ')
			at++;
		for (start = at; at < end && *at != ' ' && *at != '\n';)
			at++;
		if (word == 1 && at < end && (size_t)(at - start) == strlen("unlimited") &&
		    memcmp(start, "unlimited", strlen("unlimited")) == 0) {
			*ret = UINT64_MAX;
			return 0;
		}
		if (word == 1 && at < end)
			return hf_parse_u64(start, (size_t)(at - start), UINT64_MAX, ret) < 0 ? HF_E_FORMAT : 0;
	}
	return HF_E_FORMAT;
}

uint64_t hf_limit_mark_of(int32_t pid)
{
	char path[40], text[4096]; /* sixteen lines of about eighty bytes */
	uint64_t limit = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	n = hf_read_file(AT_FDCWD, path, text, sizeof(text));
	if (n < 0 || hf_limits_parse(text, (size_t)n, &limit) < 0)
		return 0;
	return hf_limit_mark_in(limit);
}
