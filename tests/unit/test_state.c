/* tests/unit/test_state.c - which directory, how it is made, and when it is trusted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/sys/calls.h"
#include "hf/sys/state.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOBODY       65534
#define FORMAT_TEXT  "holdfast 2\n"

/* -- helpers -------------------------------------------------------------- */

/* The process as it was, put back even behind a test that failed in the middle. */
static struct hf_sys real_calls;
static mode_t real_umask;

static int teardown(void **state)
{
	alarm(0);
	umask(real_umask);
	hf_fault_disarm();
	hf_sys = real_calls;
	return hf_test_teardown(state);
}

#define TEST(fn) { #fn, fn, hf_test_setup, teardown, NULL }

static void make_file(const char *path, const char *content, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), len);
	close(fd);
}

static void assert_file(const char *path, const char *content)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), strlen(content));
	assert_memory_equal(text, content, strlen(content));
	close(fd);
}

/* Entries of a directory without . and .. */
static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = -2;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static void open_plainly(const char *path)
{
	struct hf_state *opened = NULL;

	ASSERT_OK(hf_state_open(path, 0, &opened, ERR));
	assert_non_null(opened);
	hf_state_free(opened);
}

static void refuse_to_open(const char *path, unsigned flags, int expected)
{
	struct hf_state *opened = NULL;

	memset(ERR, 0, sizeof(*ERR));
	ASSERT_ERR(hf_state_open(path, flags, &opened, ERR), expected);
	assert_null(opened);
	assert_int_equal(ERR->code, expected);
	assert_string_not_equal(ERR->subject, "");
}

/* A state directory is whole: private, and a FORMAT with one name. */
static void assert_whole(const char *path)
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

static int in_child(int (*fn)(void *arg), void *arg)
{
	int status = -1;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(fn(arg));
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* -- which directory ------------------------------------------------------ */

struct choice {
	const char *holdfast_dir, *xdg, *home; /* leaf of the test's directory; NULL: unset */
	const char *expected;                  /* leaf of the same */
};

static void set_leaf(const char *name, const char *leaf)
{
	if (!leaf)
		unsetenv(name);
	else
		/* Empty and relative values are passed on as they are. */
		setenv(name, leaf[0] && leaf[0] != '.' ? hf_test_path(leaf) : leaf, 1);
}

static int chosen_is_expected(void *arg)
{
	const struct choice *c = arg;
	struct hf_state *opened = NULL;
	char expected[PATH_MAX];

	set_leaf("HOLDFAST_DIR", c->holdfast_dir);
	set_leaf("XDG_STATE_HOME", c->xdg);
	set_leaf("HOME", c->home);
	if (hf_state_open(NULL, 0, &opened, NULL) < 0)
		return 10;
	if (!realpath(hf_test_path(c->expected), expected))
		return 11;
	if (strcmp(hf_state_path(opened), expected) != 0)
		return 12;
	hf_state_free(opened);
	return 0;
}

static void environment_is_asked_in_order(void **state)
{
	static const struct choice table[] = {
		{ "h", "x", "u", "h" },
		{ "h", NULL, NULL, "h" },
		{ NULL, "x", "u", "x/holdfast" },
		{ "", "x", "u", "x/holdfast" },
		{ NULL, NULL, "u", "u/.local/state/holdfast" },
		{ NULL, "", "u", "u/.local/state/holdfast" },
		{ "", "", "u", "u/.local/state/holdfast" },
		{ NULL, "./rel", "u", "u/.local/state/holdfast" },
		{ NULL, "..", "u", "u/.local/state/holdfast" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		if (in_child(chosen_is_expected, (void *)(uintptr_t)&table[i]) != 0)
			fail_msg("case %zu", i);
}

static int given_path_wins(void *arg)
{
	struct hf_state *opened = NULL;

	setenv("HOLDFAST_DIR", hf_test_path("wrong"), 1);
	if (hf_state_open(arg, 0, &opened, NULL) < 0)
		return 10;
	hf_state_free(opened);
	return access(hf_test_path("wrong"), F_OK) == 0 ? 11 : 0;
}

static void path_given_comes_before_the_environment(void **state)
{
	(void)state;
	assert_int_equal(in_child(given_path_wins, (void *)(uintptr_t)hf_test_path("right")), 0);
	assert_whole(hf_test_path("right"));
}

/* NO_CREATE: the home of the password file is somebody's real one. */
static int home_of_password_file_is_asked(void *arg)
{
	const struct passwd *pw = getpwuid(geteuid());
	struct hf_state *opened = NULL;
	struct hf_err err = HF_ERR_INIT;
	char expected[PATH_MAX];
	int r;

	(void)arg;
	clearenv();
	r = hf_state_open(NULL, HF_STATE_NO_CREATE, &opened, &err);
	if (!pw)
		return r == -ENOENT && strcmp(err.op, "HOME") == 0 ? 0 : 10;
	snprintf(expected, sizeof(expected), "%s/.local/state/holdfast", pw->pw_dir);
	if (r == 0)
		snprintf(err.subject, sizeof(err.subject), "%s", hf_state_path(opened));
	hf_state_free(opened);
	return strcmp(err.subject, expected) == 0 ? 0 : 11;
}

static void without_home_the_password_file_is_asked(void **state)
{
	(void)state;
	assert_int_equal(in_child(home_of_password_file_is_asked, NULL), 0);
}

static int relative_home_is_refused(void *arg)
{
	struct hf_state *opened = NULL;

	(void)arg;
	clearenv();
	setenv("HOME", "relative", 1);
	return hf_state_open(NULL, 0, &opened, NULL) == -ENOENT ? 0 : 10;
}

static void relative_home_is_no_place(void **state)
{
	(void)state;
	assert_int_equal(in_child(relative_home_is_refused, NULL), 0);
}

static void wrong_arguments_are_einval(void **state)
{
	struct hf_state *opened = NULL;

	(void)state;
	refuse_to_open("", 0, -EINVAL);
	ASSERT_ERR(hf_state_open(hf_test_path("s"), 1u << 7, &opened, ERR), -EINVAL);
	ASSERT_ERR(hf_state_open(hf_test_path("s"), 0, NULL, ERR), -EINVAL);
	assert_int_equal(access(hf_test_path("s"), F_OK), -1);
	hf_state_free(NULL);
}

static int relative_path_becomes_absolute(void *arg)
{
	struct hf_state *opened = NULL;
	char expected[PATH_MAX];

	(void)arg;
	if (chdir(hf_test_dir()) < 0 || hf_state_open("rel/state", 0, &opened, NULL) < 0)
		return 10;
	if (!realpath("rel/state", expected) || strcmp(hf_state_path(opened), expected) != 0)
		return 11;
	hf_state_free(opened);
	return 0;
}

static void path_of_a_handle_is_absolute(void **state)
{
	(void)state;
	assert_int_equal(in_child(relative_path_becomes_absolute, NULL), 0);
}

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

/* -- many at once, and crashes ---------------------------------------------- */

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

/* -- quarantine ----------------------------------------------------------- */

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
		TEST(environment_is_asked_in_order),
		TEST(path_given_comes_before_the_environment),
		TEST(without_home_the_password_file_is_asked),
		TEST(relative_home_is_no_place),
		TEST(wrong_arguments_are_einval),
		TEST(path_of_a_handle_is_absolute),
		TEST(made_with_parents_and_mode_0700_whatever_the_umask),
		TEST(handle_tells_its_directory),
		TEST(network_file_system_is_shared_and_so_is_doubt_L4),
		TEST(second_open_changes_nothing),
		TEST(no_create_makes_nothing),
		TEST(empty_directory_and_leftovers_of_a_crash_are_completed),
		TEST(process_state_is_left_as_it_was_L13),
		TEST(directory_open_to_others_is_refused_L12),
		TEST(symlinked_directory_is_refused_L12),
		TEST(what_is_no_directory_is_refused_L12),
		TEST(foreign_directory_is_refused_L12),
		TEST(directory_of_root_is_refused_for_others_L12),
		TEST(directory_with_other_content_is_not_filled_L12),
		TEST(newer_format_is_refused_and_named),
		TEST(older_format_is_refused_and_says_what_to_do),
		TEST(garbage_format_is_refused),
		TEST(format_that_is_no_file_of_ours_is_refused_L12),
		TEST(case_folding_directory_is_refused_every_time),
		TEST(replaced_path_does_not_redirect_an_open_handle_L12),
		TEST(sub_directory_follows_the_same_rules_L12),
		TEST(all_of_many_creators_succeed),
		TEST(creator_that_comes_second_replaces_nothing),
		TEST(failure_of_any_call_leaves_what_the_next_open_completes),
		TEST(failure_of_any_call_does_not_harm_an_existing_directory),
		TEST(crash_at_any_call_leaves_what_the_next_open_completes),
		TEST(quarantine_moves_the_entry_whatever_it_is_L12),
		TEST(quarantine_never_overwrites),
		TEST(quarantine_looks_for_a_free_name_but_not_for_ever),
		TEST(longest_file_name_can_be_quarantined),
		TEST(quarantine_of_nothing_is_enoent),
		TEST(symlinked_quarantine_takes_nothing_L12),
		TEST(failing_quarantine_loses_nothing),
	};

	real_calls = hf_sys;
	real_umask = umask(0);
	umask(real_umask);
	return hf_run_tests("state", tests);
}
