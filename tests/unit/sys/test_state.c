/* unit/sys/test_state.c - how the state directory is made, and when it is trusted. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/state_helper.h"

/* -- making it ------------------------------------------------------------ */

static void check_made_under_umask(mode_t mask)
{
	char top[16], path[64];
	mode_t before = umask(mask);

	snprintf(top, sizeof(top), "u%03o", (unsigned)mask);
	snprintf(path, sizeof(path), "%s/a/b", top);
	open_plainly(hf_test_path(path));
	assert_int_equal(umask(before), mask); /* L13 */
	assert_whole(hf_test_path(path));
	assert_int_equal(mode_of(hf_test_path(top)), S_IFDIR | 0700);
	snprintf(path, sizeof(path), "%s/a", top);
	assert_int_equal(mode_of(hf_test_path(path)), S_IFDIR | 0700);
}

static void made_with_parents_and_mode_0700_whatever_the_umask(void **state)
{
	(void)state;
	check_made_under_umask(0);
	check_made_under_umask(022);
	check_made_under_umask(077);
}

static void handle_tells_its_directory(void **state)
{
	struct hf_state *opened = hf_test_state();
	struct stat a, b;

	(void)state;
	assert_int_equal(fstat(hf_state_dirfd(opened), &a), 0);
	assert_int_equal(lstat(hf_test_path("state"), &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(fcntl(hf_state_dirfd(opened), F_GETFD), FD_CLOEXEC);
	assert_true(hf_state_dirfd(opened) > 2);
	assert_in_range(hf_state_is_shared(opened), 0, 1);
}

static int says_nfs(int fd, struct statfs *st)
{
	(void)fd;
	memset(st, 0, sizeof(*st));
	st->f_type = 0x6969;
	return 0;
}

static int says_ext4(int fd, struct statfs *st)
{
	(void)fd;
	memset(st, 0, sizeof(*st));
	st->f_type = 0xef53;
	return 0;
}

static int says_error(int fd, struct statfs *st)
{
	(void)fd;
	(void)st;
	errno = EIO;
	return -1;
}

static void check_shared(int (*fstatfs_says)(int, struct statfs *), int expected)
{
	struct hf_state *opened = NULL;

	hf_sys.fstatfs = fstatfs_says;
	ASSERT_OK(hf_state_open(hf_test_path("s"), 0, &opened, ERR));
	hf_sys = real_calls;
	assert_int_equal(hf_state_is_shared(opened), expected);
	hf_state_free(opened);
}

static void network_file_system_is_shared_and_so_is_doubt_L4(void **state)
{
	(void)state;
	check_shared(says_nfs, 1);
	check_shared(says_ext4, 0);
	check_shared(says_error, 1);
}

static void second_open_changes_nothing(void **state)
{
	struct stat before, after;

	(void)state;
	open_plainly(hf_test_path("s"));
	assert_int_equal(lstat(hf_test_path("s/FORMAT"), &before), 0);
	open_plainly(hf_test_path("s"));
	open_plainly(hf_test_path("s///"));
	assert_int_equal(lstat(hf_test_path("s/FORMAT"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(entries(hf_test_path("s")), 1);
}

static void no_create_makes_nothing(void **state)
{
	(void)state;
	refuse_to_open(hf_test_path("a/b"), HF_STATE_NO_CREATE, -ENOENT);
	assert_int_equal(entries(hf_test_dir()), 0);
	assert_int_equal(mkdir(hf_test_path("empty"), 0700), 0);
	refuse_to_open(hf_test_path("empty"), HF_STATE_NO_CREATE, -ENOENT);
	assert_int_equal(entries(hf_test_path("empty")), 0);
	open_plainly(hf_test_path("s"));
	{
		struct hf_state *opened = NULL;

		ASSERT_OK(hf_state_open(hf_test_path("s"), HF_STATE_NO_CREATE, &opened, ERR));
		hf_state_free(opened);
	}
}

static void empty_directory_and_leftovers_of_a_crash_are_completed(void **state)
{
	(void)state;
	assert_int_equal(mkdir(hf_test_path("s"), 0700), 0);
	make_file(hf_test_path("s/.FORMAT.4711.1"), "hold", 4);
	make_file(hf_test_path("s/.FORMAT.4712.2"), "", 0);
	open_plainly(hf_test_path("s"));
	assert_whole(hf_test_path("s"));
}

static void process_state_is_left_as_it_was_L13(void **state)
{
	char cwd[PATH_MAX], after[PATH_MAX], name[HF_QUARANTINE_NAME_MAX];
	sigset_t mask, mask_after;
	mode_t umask_before = umask(027);
	int fd;

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	/* The kernel fills in only the part that it has signals for. */
	memset(&mask, 0, sizeof(mask));
	memset(&mask_after, 0, sizeof(mask_after));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	ASSERT_OK(hf_state_subdir(hf_test_state(), "locks", 1, &fd, ERR));
	close(fd);
	make_file(hf_test_path("state/locks/x"), "", 0);
	ASSERT_OK(hf_state_quarantine(hf_test_state(), "locks", "x", name, ERR));
	refuse_to_open(hf_test_dir(), 0, HF_E_UNTRUSTED);
	assert_non_null(getcwd(after, sizeof(after)));
	assert_string_equal(after, cwd);
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask_after), 0);
	assert_memory_equal(&mask, &mask_after, sizeof(mask));
	assert_int_equal(umask(umask_before), 027);
}

/* -- when it is not trusted ----------------------------------------------- */

static void directory_open_to_others_is_refused_L12(void **state)
{
	(void)state;
	open_plainly(hf_test_path("s"));
	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		assert_int_equal(chmod(hf_test_path("s"), 0700 | bit), 0);
		refuse_to_open(hf_test_path("s"), 0, HF_E_UNTRUSTED);
		/* Refused, not repaired behind the user's back. */
		assert_int_equal(mode_of(hf_test_path("s")), S_IFDIR | 0700 | bit);
	}
	assert_int_equal(chmod(hf_test_path("s"), 0700), 0);
	open_plainly(hf_test_path("s"));
}

static void symlinked_directory_is_refused_L12(void **state)
{
	(void)state;
	open_plainly(hf_test_path("real"));
	assert_int_equal(mkdir(hf_test_path("empty"), 0700), 0);
	assert_int_equal(symlink("real", hf_test_path("link")), 0);
	assert_int_equal(symlink("empty", hf_test_path("link2")), 0);
	assert_int_equal(symlink("nowhere", hf_test_path("dangling")), 0);
	refuse_to_open(hf_test_path("link"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("link/"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("link///"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("link2"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("link2/"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("dangling"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("dangling/"), 0, HF_E_UNTRUSTED);
	assert_int_equal(entries(hf_test_path("empty")), 0);
	assert_int_equal(access(hf_test_path("nowhere"), F_OK), -1);
}

static void what_is_no_directory_is_refused_L12(void **state)
{
	(void)state;
	make_file(hf_test_path("file"), "mine", 4);
	assert_int_equal(mkfifo(hf_test_path("fifo"), 0600), 0);
	alarm(30);
	refuse_to_open(hf_test_path("file"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("file/"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("fifo"), 0, HF_E_UNTRUSTED);
	alarm(0);
	assert_file(hf_test_path("file"), "mine");
}

static void foreign_directory_is_refused_L12(void **state)
{
	(void)state;
	if (geteuid() != 0)
		HF_SKIP("only root can give a directory away");
	open_plainly(hf_test_path("s"));
	assert_int_equal(chown(hf_test_path("s"), NOBODY, NOBODY), 0);
	refuse_to_open(hf_test_path("s"), 0, HF_E_UNTRUSTED);
}

/* Also without being root: / belongs to root and is open to all. */
static void directory_of_root_is_refused_for_others_L12(void **state)
{
	(void)state;
	refuse_to_open("/", HF_STATE_NO_CREATE, HF_E_UNTRUSTED);
}

static void directory_with_other_content_is_not_filled_L12(void **state)
{
	static const char *const content[] = { "Makefile", ".git", ".FORMAT", "format", "FORMAT2" };

	(void)state;
	for (size_t i = 0; i < COUNT(content); i++) {
		char leaf[64];

		snprintf(leaf, sizeof(leaf), "d%zu", i);
		assert_int_equal(mkdir(hf_test_path(leaf), 0700), 0);
		snprintf(leaf, sizeof(leaf), "d%zu/%s", i, content[i]);
		make_file(hf_test_path(leaf), "mine", 4);
		snprintf(leaf, sizeof(leaf), "d%zu", i);
		refuse_to_open(hf_test_path(leaf), 0, HF_E_UNTRUSTED);
		assert_int_equal(entries(hf_test_path(leaf)), 1);
	}
}

static void check_format_refused(const char *text, size_t len)
{
	char *format = strdup(hf_test_path("s/FORMAT"));
	struct stat st;

	assert_non_null(format);
	assert_int_equal(mkdir(hf_test_path("s"), 0700), 0);
	make_file(format, text, len);
	refuse_to_open(hf_test_path("s"), 0, HF_E_FORMAT);
	refuse_to_open(hf_test_path("s"), HF_STATE_NO_CREATE, HF_E_FORMAT);
	/* Left as it is, for the version that wrote it. */
	assert_int_equal(lstat(format, &st), 0);
	assert_int_equal(st.st_size, len);
	assert_int_equal(entries(hf_test_path("s")), 1);
	assert_int_equal(unlink(format), 0);
	assert_int_equal(rmdir(hf_test_path("s")), 0);
	free(format);
}

static void newer_format_is_refused_and_named(void **state)
{
	(void)state;
	check_format_refused("holdfast 3\n", 11);
	assert_non_null(strstr(ERR->detail, "version 3"));
	check_format_refused("holdfast 20\n", 12);
	check_format_refused("holdfast 3\nneeds: x\n", 20);
	/* Our version, but with something that we do not know. */
	check_format_refused("holdfast 2\nneeds: x\n", 20);
	check_format_refused("holdfast 2\n\n", 12);
}

static void older_format_is_refused_and_says_what_to_do(void **state)
{
	(void)state;
	check_format_refused("holdfast 1\n", 11);
	assert_non_null(strstr(ERR->detail, "version 1, an older layout"));
	assert_non_null(strstr(ERR->detail, "move the directory away"));
}

static void garbage_format_is_refused(void **state)
{
	static const char *const garbage[] = {
		"", "\n", "holdfast", "holdfast 2", "holdfast 02\n", "holdfast  2\n",
		"holdfast -1\n", "holdfast \n", "Holdfast 2\n", "holdfast 2\r\n",
		"holdfast 4294967296\n", "holdfast 99999999999999999999999\n", " holdfast 2\n",
	};
	char large[4096];

	(void)state;
	for (size_t i = 0; i < COUNT(garbage); i++)
		check_format_refused(garbage[i], strlen(garbage[i]));
	check_format_refused("holdfast 2\0", 11);
	memset(large, 'x', sizeof(large));
	check_format_refused(large, sizeof(large));
	check_format_refused(large, 256);
	memcpy(large, FORMAT_TEXT, strlen(FORMAT_TEXT));
	check_format_refused(large, sizeof(large));
}

static void refuse_format_entry(void)
{
	alarm(30);
	refuse_to_open(hf_test_path("s"), 0, HF_E_UNTRUSTED);
	alarm(0);
	assert_int_equal(remove(hf_test_path("s/FORMAT")), 0);
}

static void format_that_is_no_file_of_ours_is_refused_L12(void **state)
{
	(void)state;
	assert_int_equal(mkdir(hf_test_path("s"), 0700), 0);
	make_file(hf_test_path("good"), FORMAT_TEXT, strlen(FORMAT_TEXT));
	assert_int_equal(symlink("../good", hf_test_path("s/FORMAT")), 0);
	refuse_format_entry();
	assert_int_equal(symlink("nowhere", hf_test_path("s/FORMAT")), 0);
	refuse_format_entry();
	assert_int_equal(access(hf_test_path("s/nowhere"), F_OK), -1);
	assert_int_equal(mkfifo(hf_test_path("s/FORMAT"), 0600), 0);
	refuse_format_entry();
	assert_int_equal(mkdir(hf_test_path("s/FORMAT"), 0700), 0);
	refuse_format_entry();
	assert_int_equal(link(hf_test_path("good"), hf_test_path("s/FORMAT")), 0);
	refuse_format_entry();
	make_file(hf_test_path("s/FORMAT"), FORMAT_TEXT, strlen(FORMAT_TEXT));
	assert_int_equal(chmod(hf_test_path("s/FORMAT"), 0644), 0);
	refuse_format_entry();
}

/* As on vfat, or a casefolded directory of ext4: "format" finds FORMAT. */
static int folding_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return real_calls.fstatat(dirfd, strcmp(path, "format") == 0 ? "FORMAT" : path, st, flags);
}

static void case_folding_directory_is_refused_every_time(void **state)
{
	(void)state;
	hf_sys.fstatat = folding_fstatat;
	refuse_to_open(hf_test_path("s"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("s"), 0, HF_E_UNTRUSTED);
	refuse_to_open(hf_test_path("s"), HF_STATE_NO_CREATE, HF_E_UNTRUSTED);
}

static void replaced_path_does_not_redirect_an_open_handle_L12(void **state)
{
	struct hf_state *opened = hf_test_state();
	int fd = -1;

	(void)state;
	assert_int_equal(rename(hf_test_path("state"), hf_test_path("moved")), 0);
	assert_int_equal(mkdir(hf_test_path("state"), 0700), 0);
	ASSERT_OK(hf_state_subdir(opened, "locks", 1, &fd, ERR));
	close(fd);
	assert_int_equal(entries(hf_test_path("state")), 0);
	assert_int_equal(mode_of(hf_test_path("moved/locks")), S_IFDIR | 0700);
}

/* -- sub-directories ------------------------------------------------------ */

static void sub_directory_follows_the_same_rules_L12(void **state)
{
	struct hf_state *opened = hf_test_state();
	int fd = -77;

	(void)state;
	ASSERT_ERR(hf_state_subdir(opened, "locks", 0, &fd, ERR), -ENOENT);
	assert_int_equal(symlink(hf_test_dir(), hf_test_path("state/locks")), 0);
	ASSERT_ERR(hf_state_subdir(opened, "locks", 1, &fd, ERR), HF_E_UNTRUSTED);
	assert_int_equal(unlink(hf_test_path("state/locks")), 0);
	make_file(hf_test_path("state/locks"), "", 0);
	ASSERT_ERR(hf_state_subdir(opened, "locks", 1, &fd, ERR), HF_E_UNTRUSTED);
	assert_int_equal(unlink(hf_test_path("state/locks")), 0);
	assert_int_equal(mkdir(hf_test_path("state/locks"), 0700), 0);
	assert_int_equal(chmod(hf_test_path("state/locks"), 0750), 0);
	ASSERT_ERR(hf_state_subdir(opened, "locks", 1, &fd, ERR), HF_E_UNTRUSTED);
	assert_int_equal(fd, -77);
	assert_int_equal(rmdir(hf_test_path("state/locks")), 0);
	ASSERT_OK(hf_state_subdir(opened, "locks", 1, &fd, ERR));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(mode_of(hf_test_path("state/locks")), S_IFDIR | 0700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(made_with_parents_and_mode_0700_whatever_the_umask),
		SYS_TEST(handle_tells_its_directory),
		SYS_TEST(network_file_system_is_shared_and_so_is_doubt_L4),
		SYS_TEST(second_open_changes_nothing),
		SYS_TEST(no_create_makes_nothing),
		SYS_TEST(empty_directory_and_leftovers_of_a_crash_are_completed),
		SYS_TEST(process_state_is_left_as_it_was_L13),
		SYS_TEST(directory_open_to_others_is_refused_L12),
		SYS_TEST(symlinked_directory_is_refused_L12),
		SYS_TEST(what_is_no_directory_is_refused_L12),
		SYS_TEST(foreign_directory_is_refused_L12),
		SYS_TEST(directory_of_root_is_refused_for_others_L12),
		SYS_TEST(directory_with_other_content_is_not_filled_L12),
		SYS_TEST(newer_format_is_refused_and_named),
		SYS_TEST(older_format_is_refused_and_says_what_to_do),
		SYS_TEST(garbage_format_is_refused),
		SYS_TEST(format_that_is_no_file_of_ours_is_refused_L12),
		SYS_TEST(case_folding_directory_is_refused_every_time),
		SYS_TEST(replaced_path_does_not_redirect_an_open_handle_L12),
		SYS_TEST(sub_directory_follows_the_same_rules_L12),
	};

	sys_test_begin();
	return hf_run_tests("state", tests);
}
