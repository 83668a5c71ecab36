/* tests/helper/state_helper.h - state directories that are made, opened, refused and compared. */
#ifndef TESTS_STATE_HELPER_H
#define TESTS_STATE_HELPER_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "helper/sys_helper.h"
#include "hf/sys/state/state.h"

#define FORMAT_TEXT "holdfast 2\n"

static inline void make_file(const char *path, const char *content, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), len);
	close(fd);
}

static inline void assert_file(const char *path, const char *content)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(content));
	assert_memory_equal(text, content, strlen(content));
	close(fd);
}

/* Entries of a directory without . and .. */
static inline int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = -2;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void open_plainly(const char *path)
{
	struct hf_state *opened = NULL;

	ASSERT_OK(hf_state_open(path, 0, &opened, ERR));
	assert_non_null(opened);
	hf_state_free(opened);
}

static inline void refuse_to_open(const char *path, unsigned flags, int expected)
{
	struct hf_state *opened = NULL;

	memset(ERR, 0, sizeof(*ERR));
	ASSERT_ERR(hf_state_open(path, flags, &opened, ERR), expected);
	assert_null(opened);
	assert_int_equal(ERR->code, expected);
	assert_string_not_equal(ERR->subject, "");
}

/* A state directory is whole: private, and a FORMAT with one name. */
static inline void assert_whole(const char *path)
{
	char format[PATH_MAX];
	struct stat st;

	snprintf(format, sizeof(format), "%s/FORMAT", path);
	assert_int_equal(mode_of(path), S_IFDIR | 0700);
	assert_int_equal(lstat(format, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_file(format, FORMAT_TEXT);
}

static inline int in_child(int (*fn)(void *arg), void *arg)
{
	int status = -1;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

#endif
