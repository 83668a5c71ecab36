/* tests/helper/test.c - setup, teardown and assertions of the unit tests. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/test.h"

struct hf_err hf_test_error = HF_ERR_INIT;

static char dir[64];
static struct hf_state *test_state;
static int fds_before;

void hf_test_ok(long long result, const char *call, const char *file, int line)
{
	if (result < 0) {
		char text[HF_ERR_TEXT_MAX] = "";

		hf_err_format(&hf_test_error, text, sizeof(text));
		print_error("%s = %lld\n%s\n", call, result,
			    hf_test_error.code == result ? text : "");
		_fail(file, line);
	}
}

void hf_test_err(long long result, long long expected, const char *call, const char *file,
		 int line)
{
	if (result != expected) {
		const struct hf_err_info *got = hf_err_info((int)result);
		const struct hf_err_info *want = hf_err_info((int)expected);

		print_error("%s = %lld (%s), not %lld (%s)\n", call, result, got ? got->name : "",
			    expected, want ? want->name : "");
		_fail(file, line);
	}
}

int hf_test_fd_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

const char *hf_test_dir(void)
{
	return dir;
}

const char *hf_test_path(const char *leaf)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, leaf);
	return path;
}

struct hf_state *hf_test_state(void)
{
	if (!test_state)
		ASSERT_OK(hf_state_open(hf_test_path("state"), 0, &test_state, ERR));
	return test_state;
}

int hf_test_setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	/* Handles that a test does not open itself: a loaded machine must not cost a record. */
	setenv("HOLDFAST_JOURNAL_WAIT", HF_TEST_PATIENCE, 1);
	memset(&hf_test_error, 0, sizeof(hf_test_error));
	fds_before = hf_test_fd_count();
	snprintf(dir, sizeof(dir), "%s/hf-test-XXXXXX", base && strlen(base) < 40 ? base : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int hf_test_teardown(void **state)
{
	int fds_after;

	(void)state;
	hf_state_free(test_state);
	test_state = NULL;
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	fds_after = hf_test_fd_count();
	if (fds_after != fds_before) {
		print_error("descriptors: %d before the test, %d after\n", fds_before, fds_after);
		return -1;
	}
	return 0;
}
