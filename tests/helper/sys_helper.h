/*
 * tests/helper/sys_helper.h - for tests that replace system calls: the process as it was comes back
 * after each test, also after one that failed in the middle.
 */
#ifndef TESTS_SYS_HELPER_H
#define TESTS_SYS_HELPER_H

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/sys/calls.h"

#define NOBODY 65534

static struct hf_sys real_calls;
static mode_t real_umask;

/* Once, at the start of main. */
static inline void sys_test_begin(void)
{
	real_calls = hf_sys;
	real_umask = umask(0);
	umask(real_umask);
}

static inline int sys_test_teardown(void **state)
{
	alarm(0);
	umask(real_umask);
	hf_fault_disarm();
	hf_sys = real_calls;
	return hf_test_teardown(state);
}

#define SYS_TEST(fn) { #fn, fn, hf_test_setup, sys_test_teardown, NULL }

static inline mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

/* A new file of that content and mode. */
static inline void make_file_of(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

#endif
