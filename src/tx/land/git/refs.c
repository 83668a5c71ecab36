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

int hf_git_packed_has(const char *common, const char *ref, const char *oid)
{
	char path[PATH_MAX], line[HF_GIT_REF_MAX + 80];
	int n = snprintf(line, sizeof(line), "\n%s %s\n", oid, ref), found;
	AUTO_FD fd = -1;
	struct stat st;
	void *at;

	/* A file of its own comes first, whatever is in it. */
	if (n >= (int)sizeof(line) || snprintf(path, sizeof(path), "%s/%s", common, ref) >= (int)sizeof(path) ||
	    hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return 0;
	if (snprintf(path, sizeof(path), "%s/packed-refs", common) >= (int)sizeof(path))
		return 0;
	fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return 0;
	/* git replaces the file as a whole: what is mapped does not change. */
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return 0;
	found = memmem(at, (size_t)st.st_size, line, (size_t)n) != NULL;
	(void)munmap(at, (size_t)st.st_size);
	return found;
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
