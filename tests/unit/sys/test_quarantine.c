/* unit/sys/test_quarantine.c - the quarantine: what it takes, and that nothing is lost. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/state_helper.h"

static struct hf_state *state_with_locks(void)
{
	int fd = -1;

	ASSERT_OK(hf_state_subdir(hf_test_state(), "locks", 1, &fd, ERR));
	close(fd);
	return hf_test_state();
}

static const char *in_quarantine(const char *name)
{
	char leaf[HF_QUARANTINE_NAME_MAX + 32];

	snprintf(leaf, sizeof(leaf), "state/quarantine/%s", name);
	return hf_test_path(leaf);
}

/* Moves locks/`file` away and checks that the same inode arrived. */
static void check_quarantine(const char *file)
{
	char name[HF_QUARANTINE_NAME_MAX] = "", leaf[PATH_MAX];
	struct stat before, after;

	snprintf(leaf, sizeof(leaf), "state/locks/%s", file);
	assert_int_equal(lstat(hf_test_path(leaf), &before), 0);
	ASSERT_OK(hf_state_quarantine(state_with_locks(), "locks", file, name, ERR));
	assert_int_equal(lstat(hf_test_path(leaf), &after), -1);
	assert_int_equal(lstat(in_quarantine(name), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mode, after.st_mode);
}

static void quarantine_moves_the_entry_whatever_it_is_L12(void **state)
{
	(void)state;
	state_with_locks();
	make_file(hf_test_path("outside"), "mine", 4);
	assert_int_equal(mkdir(hf_test_path("outdir"), 0700), 0);
	assert_int_equal(symlink(hf_test_path("outside"), hf_test_path("state/locks/link")), 0);
	assert_int_equal(symlink(hf_test_path("outdir"), hf_test_path("state/locks/dirlink")), 0);
	assert_int_equal(symlink("nowhere", hf_test_path("state/locks/dangling")), 0);
	assert_int_equal(mkfifo(hf_test_path("state/locks/fifo"), 0600), 0);
	assert_int_equal(mkdir(hf_test_path("state/locks/dir"), 0700), 0);
	make_file(hf_test_path("state/locks/file"), "x", 1);
	alarm(30);
	check_quarantine("link");
	check_quarantine("dirlink");
	check_quarantine("dangling");
	check_quarantine("fifo");
	check_quarantine("dir");
	check_quarantine("file");
	alarm(0);
	assert_file(hf_test_path("outside"), "mine");
	assert_int_equal(mode_of(hf_test_path("outdir")), S_IFDIR | 0700);
	assert_int_equal(entries(hf_test_path("outdir")), 0);
	assert_int_equal(entries(hf_test_path("state/locks")), 0);
}

static void quarantine_never_overwrites(void **state)
{
	enum { MANY = 300 };

	(void)state;
	state_with_locks();
	for (int i = 0; i < MANY; i++) {
		make_file(hf_test_path("state/locks/x"), "x", 1);
		check_quarantine("x");
	}
	assert_int_equal(entries(hf_test_path("state/quarantine")), MANY);
}

static int renames_tried, renames_refused;

/* Says that the first names are taken, and that no name is taken without asking. */
static int busy_renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	assert_int_equal(flags, RENAME_NOREPLACE);
	renames_tried++;
	if (renames_tried <= renames_refused) {
		errno = EEXIST;
		return -1;
	}
	return real_calls.renameat2(fromfd, from, tofd, to, flags);
}

static int quarantine_with_names_taken(int taken)
{
	char name[HF_QUARANTINE_NAME_MAX] = "#";
	int r;

	renames_tried = 0;
	renames_refused = taken;
	hf_sys.renameat2 = busy_renameat2;
	alarm(30);
	r = hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR);
	alarm(0);
	hf_sys = real_calls;
	if (r < 0)
		assert_string_equal(name, "#");
	else
		assert_int_equal(mode_of(in_quarantine(name)), S_IFREG | 0600);
	return r;
}

static void quarantine_looks_for_a_free_name_but_not_for_ever(void **state)
{
	(void)state;
	state_with_locks();
	make_file(hf_test_path("state/locks/x"), "x", 1);
	ASSERT_ERR(quarantine_with_names_taken(INT_MAX), -EEXIST);
	assert_file(hf_test_path("state/locks/x"), "x");
	ASSERT_OK(quarantine_with_names_taken(3));
	assert_int_equal(renames_tried, 4);
}

static void longest_file_name_can_be_quarantined(void **state)
{
	char file[NAME_MAX + 1], leaf[NAME_MAX + 32];

	(void)state;
	state_with_locks();
	memset(file, 'x', NAME_MAX);
	file[NAME_MAX] = '\0';
	snprintf(leaf, sizeof(leaf), "state/locks/%s", file);
	/* Twice: what tells the two apart must not be what was cut off. */
	make_file(hf_test_path(leaf), "x", 1);
	check_quarantine(file);
	make_file(hf_test_path(leaf), "x", 1);
	check_quarantine(file);
	assert_int_equal(entries(hf_test_path("state/quarantine")), 2);
}

static void quarantine_of_nothing_is_enoent(void **state)
{
	char name[HF_QUARANTINE_NAME_MAX] = "#";

	(void)state;
	ASSERT_ERR(hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR), -ENOENT);
	state_with_locks();
	ASSERT_ERR(hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR), -ENOENT);
	assert_string_equal(name, "#");
}

static void symlinked_quarantine_takes_nothing_L12(void **state)
{
	char name[HF_QUARANTINE_NAME_MAX];

	(void)state;
	state_with_locks();
	assert_int_equal(mkdir(hf_test_path("outside"), 0700), 0);
	assert_int_equal(symlink("../outside", hf_test_path("state/quarantine")), 0);
	make_file(hf_test_path("state/locks/x"), "x", 1);
	ASSERT_ERR(hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR), HF_E_UNTRUSTED);
	assert_file(hf_test_path("state/locks/x"), "x");
	assert_int_equal(entries(hf_test_path("outside")), 0);
}

static int quarantine_with_failure(int n)
{
	char name[HF_QUARANTINE_NAME_MAX];
	int fds = hf_test_fd_count(), r, here;

	hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO });
	r = hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR);
	hf_fault_disarm();
	assert_int_equal(hf_test_fd_count(), fds);
	here = access(hf_test_path("state/locks/x"), F_OK) == 0;
	/* Success is said only of what was moved, and what was moved is success. */
	assert_int_equal(r == 0, !here);
	if (r == 0) {
		assert_file(in_quarantine(name), "x");
		assert_int_equal(unlink(in_quarantine(name)), 0);
		make_file(hf_test_path("state/locks/x"), "x", 1);
	}
	return hf_fault_hit();
}

static void failing_quarantine_loses_nothing(void **state)
{
	int n = 1;

	(void)state;
	state_with_locks();
	make_file(hf_test_path("state/locks/x"), "x", 1);
	while (quarantine_with_failure(n)) {
		assert_true(n < 100);
		n++;
	}
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(quarantine_moves_the_entry_whatever_it_is_L12),
		SYS_TEST(quarantine_never_overwrites),
		SYS_TEST(quarantine_looks_for_a_free_name_but_not_for_ever),
		SYS_TEST(longest_file_name_can_be_quarantined),
		SYS_TEST(quarantine_of_nothing_is_enoent),
		SYS_TEST(symlinked_quarantine_takes_nothing_L12),
		SYS_TEST(failing_quarantine_loses_nothing),
	};

	sys_test_begin();
	return hf_run_tests("quarantine", tests);
}
