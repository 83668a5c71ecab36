/* unit/sys/test_state_races.c - many creators of one state directory, failures and crashes at every call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/state_helper.h"

#define CREATORS 16
#define ROUNDS   40

/* Each child waits for the end of a pipe that all share: they start as one. */
static int create_at_signal(const char *path, int start)
{
	struct hf_state *opened = NULL;
	char byte;

	if (read(start, &byte, 1) != 0)
		return 10;
	if (hf_state_open(path, 0, &opened, ERR) < 0) {
		char text[HF_ERR_TEXT_MAX];

		hf_err_format(ERR, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return 11;
	}
	hf_state_free(opened);
	return 0;
}

static int race_to_create(const char *path)
{
	pid_t children[CREATORS];
	int start[2], failed = 0, status;

	assert_int_equal(pipe2(start, O_CLOEXEC), 0);
	for (size_t i = 0; i < CREATORS; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			close(start[1]);
			_exit(create_at_signal(path, start[0]));
		}
	}
	close(start[0]);
	close(start[1]);
	for (size_t i = 0; i < CREATORS; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		failed += status != 0;
	}
	return failed;
}

static void all_of_many_creators_succeed(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		char leaf[32];

		snprintf(leaf, sizeof(leaf), "r%d/state", round);
		assert_int_equal(race_to_create(hf_test_path(leaf)), 0);
		assert_whole(hf_test_path(leaf));
		assert_int_equal(entries(hf_test_path(leaf)), 1);
	}
}

/* While we write ours, a newer version finishes first. */
static int fdatasync_behind_another(int fd)
{
	if (access(hf_test_path("s/FORMAT"), F_OK) < 0)
		make_file(hf_test_path("s/FORMAT"), "holdfast 3\n", 11);
	return real_calls.fdatasync(fd);
}

static void creator_that_comes_second_replaces_nothing(void **state)
{
	(void)state;
	hf_sys.fdatasync = fdatasync_behind_another;
	refuse_to_open(hf_test_path("s"), 0, HF_E_FORMAT);
	assert_file(hf_test_path("s/FORMAT"), "holdfast 3\n");
	assert_int_equal(entries(hf_test_path("s")), 1);
}

static const char *numbered(const char *what, int error, int n)
{
	static char leaf[64];

	snprintf(leaf, sizeof(leaf), "%s-%d-%d/state", what, error, n);
	return leaf;
}

/* Fails call n of opening. Returns 1 when there was such a call. */
static int open_with_failure(const char *path, const struct hf_fault *fault)
{
	struct hf_state *opened = NULL;
	int fds = hf_test_fd_count(), r, hit;

	memset(ERR, 0, sizeof(*ERR));
	hf_fault_arm(fault);
	r = hf_state_open(path, 0, &opened, ERR);
	hit = hf_fault_hit();
	hf_fault_disarm();
	if (r < 0) {
		assert_null(opened);
		assert_int_equal(ERR->code, r);
	} else {
		assert_non_null(opened);
	}
	hf_state_free(opened);
	assert_int_equal(hf_test_fd_count(), fds);
	return hit;
}

static void open_after_failure(const char *path, int error, int n)
{
	struct hf_state *opened = NULL;
	int r = hf_state_open(path, 0, &opened, ERR);

	if (r < 0)
		print_error("after %s (call %d) failed with errno %d:\n", hf_fault_call(), n,
			    error);
	ASSERT_OK(r);
	hf_state_free(opened);
}

static void check_failures(const char *what, int existing, int error, int persist)
{
	int n = 1, hit;

	do {
		const char *path = hf_test_path(numbered(what, error, n));

		assert_true(n < 200);
		if (existing)
			open_plainly(path);
		hit = open_with_failure(
			path, &(struct hf_fault){.at = n, .error = error, .persist = persist});
		open_after_failure(path, error, n);
		assert_whole(path);
		n++;
	} while (hit);
	/* openat, fstat, readlinkat, openat, fstat, read, fstatfs: or nothing was tried. */
	assert_true(n > 7);
}

static void failure_of_any_call_leaves_what_the_next_open_completes(void **state)
{
	(void)state;
	check_failures("make", 0, EIO, 0);
	check_failures("make", 0, ENOSPC, 0);
	check_failures("make", 0, EACCES, 0);
	check_failures("full", 0, EDQUOT, 1);
}

static void failure_of_any_call_does_not_harm_an_existing_directory(void **state)
{
	(void)state;
	check_failures("have", 1, EIO, 0);
	check_failures("have", 1, ENOSPC, 0);
	check_failures("have", 1, EACCES, 0);
	check_failures("stay", 1, EMFILE, 1);
}

struct killed_open {
	const char *path;
	int at;
};

static int open_and_die(void *arg)
{
	const struct killed_open *k = arg;
	struct hf_state *opened = NULL;

	hf_fault_arm(&(struct hf_fault){ .at = k->at, .kill = 1 });
	return hf_state_open(k->path, 0, &opened, NULL) < 0;
}

static void crash_at_any_call_leaves_what_the_next_open_completes(void **state)
{
	int n, status;

	(void)state;
	for (n = 1; n < 200; n++) {
		struct killed_open k = { hf_test_path(numbered("kill", 0, n)), n };

		status = in_child(open_and_die, &k);
		open_plainly(k.path);
		assert_whole(k.path);
		if (!WIFSIGNALED(status))
			break;
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
	assert_int_equal(status, 0);
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(all_of_many_creators_succeed),
		SYS_TEST(creator_that_comes_second_replaces_nothing),
		SYS_TEST(failure_of_any_call_leaves_what_the_next_open_completes),
		SYS_TEST(failure_of_any_call_does_not_harm_an_existing_directory),
		SYS_TEST(crash_at_any_call_leaves_what_the_next_open_completes),
	};

	sys_test_begin();
	return hf_run_tests("state_races", tests);
}
