/*
 * tests/helper/file_helper.h - a directory with a shared file, and the whole of an edit.
 *
 * Header only, for the tests of the file layer. The files stand in "work" below the test's
 * own directory, so that what an edit leaves behind is easy to see.
 */
#ifndef TESTS_FILE_HELPER_H
#define TESTS_FILE_HELPER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/journal_events.h"
#include "helper/faults.h"
#include "helper/test.h"
#include "hf/sys/io.h"
#include "holdfast/file.h"
#include "holdfast/name.h"

static struct hf_journal *journal;
static struct hf_locks *locks;

static inline int file_test_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_locks_open(hf_test_state(), journal, &locks, ERR));
	return mkdir(hf_test_path("work"), 0755);
}

static inline int file_test_teardown(void **state)
{
	hf_fault_disarm();
	hf_locks_free(locks);
	hf_journal_free(journal);
	return hf_test_teardown(state);
}

#define FILE_TEST(fn) { #fn, fn, file_test_setup, file_test_teardown, NULL }

/* Path of `leaf` in the working directory of the test. */
static inline const char *in_work(const char *leaf)
{
	char below[300];

	snprintf(below, sizeof(below), "work/%s", leaf);
	return hf_test_path(below);
}

static inline void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* By another file under the same name, as editors save. */
static inline void put_anew(const char *path, const char *text)
{
	char temp[600];

	snprintf(temp, sizeof(temp), "%s.editor", path);
	put(temp, text);
	assert_int_equal(rename(temp, path), 0);
}

/* The content, or "(none)". */
static inline const char *get(const char *path)
{
	static char text[4096];
	ssize_t n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);

	if (n < 0)
		return "(none)";
	text[n] = '\0';
	return text;
}

/* Entries of the working directory that begin with `prefix`. */
static inline int entries(const char *prefix)
{
	DIR *dir = opendir(hf_test_path("work"));
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return n;
}

static inline struct hf_file_opts file_opts(unsigned flags)
{
	return (struct hf_file_opts){ .size = sizeof(struct hf_file_opts),
				      .flags = flags,
				      .journal = journal };
}

/* Open, lock, read, write `text`: all but the commit. */
static inline int edit_up_to_commit(const char *path, const struct hf_file_opts *opts,
				    const char *text, struct hf_file **ret)
{
	struct hf_file *file = NULL;
	int old, new, r = hf_file_open(locks, path, opts, &file, ERR);

	if (r == 0)
		r = hf_file_lock(file, 0, NULL, ERR);
	if (r == 0)
		r = hf_file_read(file, &old, ERR);
	if (r == 0)
		r = hf_file_write(file, &new, ERR);
	if (r == 0)
		r = hf_write_all(new, text, strlen(text));
	if (r < 0)
		(void)hf_file_close(file, NULL);
	else
		*ret = file;
	return r;
}

static inline int edit(const char *path, const struct hf_file_opts *opts, const char *text)
{
	struct hf_file *file;
	int r = edit_up_to_commit(path, opts, text, &file);

	if (r < 0)
		return r;
	r = hf_file_commit(file, ERR);
	(void)hf_file_close(file, NULL);
	return r;
}

/* Whether `path` can be locked by this process, which may hold another. */
static inline int lock_once(const char *path)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int r = hf_file_open(locks, path, &opts, &file, ERR);

	if (r == 0)
		r = hf_file_lock(file, 0, NULL, ERR);
	(void)hf_file_close(file, NULL);
	return r;
}

#endif
