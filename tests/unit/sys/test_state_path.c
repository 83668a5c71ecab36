/* unit/sys/test_state_path.c - which directory is the state directory. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/state_helper.h"

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

/* NO_CREATE: the home of the password file is a real user's. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(environment_is_asked_in_order),
		SYS_TEST(path_given_comes_before_the_environment),
		SYS_TEST(without_home_the_password_file_is_asked),
		SYS_TEST(relative_home_is_no_place),
		SYS_TEST(wrong_arguments_are_einval),
		SYS_TEST(path_of_a_handle_is_absolute),
	};

	sys_test_begin();
	return hf_run_tests("state_path", tests);
}
