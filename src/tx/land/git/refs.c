/* tx/land/git/refs.c - reading refs that are files. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/refs.h"

/* One line, its newline taken off. 0; 1: it is none. */
static int read_line(const char *dir, const char *name, char *out, size_t cap)
{
	char path[PATH_MAX];
	AUTO_FD fd = -1;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 1;
	fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	n = fd < 0 ? -1 : hf_read_all(fd, out, cap - 1);
	if (n <= 0 || out[n - 1] != '\n' || memchr(out, '\0', (size_t)n) || memchr(out, '\n', (size_t)n - 1))
		return 1;
	out[n - 1] = '\0';
	return 0;
}

int hf_git_loose_ref(const char *dir, const char *ref, char out[65])
{
	char line[80];

	if (read_line(dir, ref, line, sizeof(line)) || !hf_git_is_oid(line))
		return 1;
	hf_copy_text(out, 65, line);
	return 0;
}

/* A file of its own comes first, whatever is in it. */
static int has_file(const char *common, const char *ref)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", common, ref) >= (int)sizeof(path) ||
	       hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* git replaces the file as a whole: what is mapped does not change. NULL: there is none. */
static char *map_packed(const char *common, size_t *ret_size)
{
	char path[PATH_MAX];
	AUTO_FD fd = -1;
	struct stat st;
	void *at;

	if (snprintf(path, sizeof(path), "%s/packed-refs", common) >= (int)sizeof(path))
		return NULL;
	fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return NULL;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	*ret_size = (size_t)st.st_size;
	return at == MAP_FAILED ? NULL : at;
}

/* "\nOID REF\n": the object name in front of `found`, " REF\n". 0; 1: it is none. */
static int oid_before(const char *text, const char *found, char out[65])
{
	size_t len = 0;

	while (found - len > text && found[-(ssize_t)len - 1] != '\n' && len < 64)
		len++;
	memcpy(out, found - len, len);
	out[len] = '\0';
	return found - len == text || found[-(ssize_t)len - 1] != '\n' || !hf_git_is_oid(out);
}

static int find_packed(const char *common, const char *ref, char out[65])
{
	char end[HF_GIT_REF_MAX + 4], oid[65];
	int n = snprintf(end, sizeof(end), " %s\n", ref), r = 1;
	size_t size = 0;
	char *text = n < (int)sizeof(end) ? map_packed(common, &size) : NULL;
	const char *found = text ? memmem(text, size, end, (size_t)n) : NULL;

	if (found)
		r = oid_before(text, found, oid);
	if (r == 0)
		memcpy(out, oid, sizeof(oid));
	if (text)
		(void)munmap(text, size);
	return r;
}

int hf_git_read_ref(const char *common, const char *ref, char out[65])
{
	if (hf_git_loose_ref(common, ref, out) == 0)
		return 0;
	return has_file(common, ref) ? 1 : find_packed(common, ref, out);
}

int hf_git_packed_has(const char *common, const char *ref, const char *oid)
{
	char packed[65];

	return !has_file(common, ref) && find_packed(common, ref, packed) == 0 && strcmp(packed, oid) == 0;
}

int hf_git_head_ref(const char *git_dir, char out[HF_GIT_REF_MAX])
{
	char line[HF_GIT_REF_MAX];

	if (read_line(git_dir, "HEAD", line, sizeof(line)) || strncmp(line, "ref: refs/heads/", 16) != 0 || strstr(line, ".."))
		return 1;
	hf_copy_text(out, HF_GIT_REF_MAX, line + 5);
	return 0;
}

int hf_git_loose_head(const char *git_dir, const char *common, char out[65])
{
	char ref[HF_GIT_REF_MAX];

	if (hf_git_head_ref(git_dir, ref) == 0)
		return hf_git_loose_ref(common, ref, out);
	return hf_git_loose_ref(git_dir, "HEAD", out);
}

int hf_git_commit_of(const struct hf_git *git, const char *common, const char *ref, const char *maybe, char out[65], struct hf_err *err)
{
	char rev[HF_GIT_REF_MAX + 16];

	if (hf_git_loose_ref(common, ref, out) == 0)
		return 0;
	if (hf_git_packed_has(common, ref, maybe)) {
		hf_copy_text(out, 65, maybe);
		return 0;
	}
	(void)snprintf(rev, sizeof(rev), "%s^{commit}", ref);
	return hf_git_oid(git, rev, out, err);
}
