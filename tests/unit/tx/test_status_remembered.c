/* unit/tx/test_status_remembered.c - what git said of a work tree: when it is remembered, and when that no longer holds. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/tx/land/status/remembered.h"

#define N_DIRS  30
#define N_FILES 100 /* in each: enough for several threads */

static void make_file(const char *leaf, const char *text)
{
	FILE *file = fopen(hf_test_path(leaf), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void make_dir(const char *leaf)
{
	assert_int_equal(mkdir(hf_test_path(leaf), 0700), 0);
}

/* A work tree as its files show it: nothing here asks git. */
struct tree {
	struct hf_land_place place;
	int landings;
};

static void make_tree(struct tree *tree, int n_dirs)
{
	char leaf[64];

	/* Settings of the machine's user are none of it. */
	assert_int_equal(setenv("HOME", hf_test_dir(), 1), 0);
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
	make_dir("t");
	make_dir("t/.git");
	make_dir("t/.git/refs");
	make_dir("t/.git/refs/heads");
	make_dir("landings");
	make_file("t/.git/HEAD", "ref: refs/heads/main\n");
	make_file("t/.git/refs/heads/main", "0123456789012345678901234567890123456789\n");
	make_file("t/.git/index", "a file of more than thirty-two bytes, which has its own sum at its end");
	for (int i = 0; i < n_dirs; i++) {
		(void)snprintf(leaf, sizeof(leaf), "t/d%d", i);
		make_dir(leaf);
		for (int k = 0; k < N_FILES; k++) {
			(void)snprintf(leaf, sizeof(leaf), "t/d%d/f%d", i, k);
			make_file(leaf, "x");
		}
	}
	*tree = (struct tree){ .landings = open(hf_test_path("landings"), O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	assert_true(tree->landings >= 0);
	tree->place.top = strdup(hf_test_path("t"));
	tree->place.git_dir = strdup(hf_test_path("t/.git"));
	tree->place.common = strdup(hf_test_path("t/.git"));
}

static void tree_done(struct tree *tree)
{
	hf_land_place_done(&tree->place);
	hf_auto_close(&tree->landings);
}

/* A moment that is later than all that was made so far: on older kernels a tick of the clock. */
static void take_moment(const struct tree *tree, struct hf_moment *ret)
{
	struct hf_t0 t0;
	struct stat st;

	make_file("tick", "");
	assert_int_equal(stat(hf_test_path("tick"), &st), 0);
	do {
		ASSERT_OK(hf_t0_take(&t0, ERR));
	} while (t0.real_ns <= st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec);
	assert_int_equal(hf_moment_take(&tree->place, ret), 1);
}

/* As after a git status that said `said`. */
static struct hf_remember order(const struct tree *tree, const struct hf_moment *moment, const char *said, size_t len)
{
	struct hf_remember remember = HF_REMEMBER_INIT;

	remember.dirfd = tree->landings;
	remember.top = tree->place.top;
	remember.moment = *moment;
	remember.dirty = (struct hf_dirty){ 7, 3 };
	hf_buf_add(&remember.said, said, len);
	return remember;
}

static int remember(const struct tree *tree, const struct hf_moment *moment, const char *said, size_t len)
{
	struct hf_remember all = order(tree, moment, said, len);
	int r = hf_remember_now(&all);

	hf_buf_done(&all.said);
	return r;
}

/* Does what is remembered hold now? */
static int holds(const struct tree *tree)
{
	struct hf_remembered *remembered = NULL;
	struct hf_dirty dirty = { 0 };
	struct hf_moment now;
	int r;

	if (hf_moment_take(&tree->place, &now) < 0 || !hf_remembered_open(tree->landings, tree->place.top, &now, &remembered))
		return 0;
	r = hf_remembered_end(remembered, &dirty);
	hf_remembered_free(remembered);
	assert_true(!r || (dirty.n == 7 && dirty.untracked == 3));
	return r;
}

static void a_tree_holds_until_any_entry_of_it_changes(void **state)
{
	struct hf_moment moment;
	struct tree tree;

	(void)state;
	make_tree(&tree, N_DIRS);
	assert_false(holds(&tree));
	/* In many directories: whichever thread looks at them. */
	for (int i = 0; i < N_DIRS; i += 3) {
		char leaf[64];

		take_moment(&tree, &moment);
		ASSERT_OK(remember(&tree, &moment, "", 0));
		assert_true(holds(&tree));
		assert_true(holds(&tree));
		(void)snprintf(leaf, sizeof(leaf), "t/d%d/f%d", i, N_FILES - 1);
		make_file(leaf, "y");
		assert_false(holds(&tree));
		take_moment(&tree, &moment);
		ASSERT_OK(remember(&tree, &moment, "", 0));
		assert_true(holds(&tree));
		(void)snprintf(leaf, sizeof(leaf), "t/d%d/new", i);
		make_file(leaf, "y");
		assert_false(holds(&tree));
	}
	tree_done(&tree);
}

static void what_changed_after_the_moment_is_not_remembered(void **state)
{
	struct hf_moment moment;
	struct tree tree;

	(void)state;
	make_tree(&tree, 2);
	make_dir("t/empty");
	/* git may have looked before or after it. */
	take_moment(&tree, &moment);
	make_file("t/d1/f3", "z");
	assert_int_equal(remember(&tree, &moment, "", 0), -EAGAIN);
	take_moment(&tree, &moment);
	make_file("t/empty/new", "z");
	assert_int_equal(remember(&tree, &moment, "", 0), -EAGAIN);
	take_moment(&tree, &moment);
	assert_int_equal(unlink(hf_test_path("t/d0/f0")), 0);
	assert_int_equal(remember(&tree, &moment, "", 0), -EAGAIN);
	assert_false(holds(&tree));
	/* By a clock that was set back after the moment, a later change may look like an earlier one. */
	take_moment(&tree, &moment);
	moment.t0.real_ns += 3600 * HF_SEC;
	assert_int_equal(remember(&tree, &moment, "", 0), -EAGAIN);
	assert_false(holds(&tree));
	tree_done(&tree);
}

static void an_index_or_setting_that_just_changed_makes_no_moment(void **state)
{
	struct hf_moment moment;
	struct stat st;
	struct tree tree;
	int r;

	(void)state;
	make_tree(&tree, 1);
	take_moment(&tree, &moment);
	/* A time in the future is that of a file which is written to at this very moment, as far as we can tell. */
	assert_int_equal(utimensat(AT_FDCWD, hf_test_path("t/.git/index"), (struct timespec[2]){ { 1LL << 33, 0 }, { 1LL << 33, 0 } }, 0), 0);
	assert_int_equal(hf_moment_take(&tree.place, &moment), 0);
	assert_int_equal(utimensat(AT_FDCWD, hf_test_path("t/.git/index"), (struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0), 0);
	make_file("t/.git/config", "");
	assert_int_equal(stat(hf_test_path("t/.git/config"), &st), 0);
	r = hf_moment_take(&tree.place, &moment);
	assert_int_equal(r, st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec < moment.t0.real_ns);
	tree_done(&tree);
}

static void a_branch_that_moved_or_was_left_is_another_moment(void **state)
{
	struct hf_moment moment;
	struct tree tree;

	(void)state;
	make_tree(&tree, 1);
	take_moment(&tree, &moment);
	ASSERT_OK(remember(&tree, &moment, "", 0));
	assert_true(holds(&tree));
	make_file("t/.git/refs/heads/main", "1123456789012345678901234567890123456789\n");
	assert_false(holds(&tree));
	make_file("t/.git/refs/heads/main", "0123456789012345678901234567890123456789\n");
	assert_true(holds(&tree));
	make_file("t/.git/HEAD", "2123456789012345678901234567890123456789\n");
	assert_false(holds(&tree));
	tree_done(&tree);
}

static void what_git_ignores_may_change(void **state)
{
	static const char said[] = "# branch.oid x\0? untracked\0! .o\0! build/\0! d0/f1\0! x/y.o";
	struct hf_moment moment;
	struct tree tree;

	(void)state;
	make_tree(&tree, 1);
	make_dir("t/build");
	make_file("t/build/o", "");
	make_dir("t/build.d");
	make_file("t/build.d/o", "");
	take_moment(&tree, &moment);
	ASSERT_OK(remember(&tree, &moment, said, sizeof(said)));
	make_file("t/build/o", "1");
	make_file("t/build/new", "1");
	make_file("t/d0/f1", "1");
	assert_true(holds(&tree));
	make_file("t/build.d/o", "1");
	assert_false(holds(&tree));
	/* A list that is not in order is not git's: nothing is concluded from it. */
	take_moment(&tree, &moment);
	assert_int_equal(remember(&tree, &moment, "! b\0! a", 8), -E2BIG);
	tree_done(&tree);
}

static void a_call_that_fails_makes_nothing_hold(void **state)
{
	struct hf_moment moment;
	struct tree tree;
	int is_hit = 1;

	(void)state;
	make_tree(&tree, 2);
	for (int n = 1; is_hit; n += n < 40 ? 1 : 29) {
		int r, held;

		take_moment(&tree, &moment);
		hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO });
		r = remember(&tree, &moment, "", 0);
		is_hit = hf_fault_hit();
		hf_fault_disarm();
		held = holds(&tree);
		assert_true(r < 0 || held);
		if (r < 0)
			ASSERT_OK(remember(&tree, &moment, "", 0));
		assert_true(holds(&tree));
		/* A change is never overlooked. */
		make_file("t/d1/f7", "c");
		hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO });
		held = holds(&tree);
		hf_fault_disarm();
		assert_false(held);
	}
	tree_done(&tree);
}

static void of_two_that_remember_at_once_one_does(void **state)
{
	struct hf_moment moment;
	struct hf_remember all;
	siginfo_t info;
	struct tree tree;
	pid_t pid = 0;

	(void)state;
	make_tree(&tree, 3);
	take_moment(&tree, &moment);
	all = order(&tree, &moment, "", 0);
	ASSERT_OK(hf_remember_start(&all, &pid));
	for (int i = 0; i < 20; i++) {
		int r = hf_remember_now(&all);

		assert_true(r == 0 || r == -EWOULDBLOCK);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | __WCLONE), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
	assert_true(holds(&tree));
	hf_buf_done(&all.said);
	tree_done(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_tree_holds_until_any_entry_of_it_changes),
		HF_TEST(what_changed_after_the_moment_is_not_remembered),
		HF_TEST(an_index_or_setting_that_just_changed_makes_no_moment),
		HF_TEST(a_branch_that_moved_or_was_left_is_another_moment),
		HF_TEST(what_git_ignores_may_change),
		HF_TEST(a_call_that_fails_makes_nothing_hold),
		HF_TEST(of_two_that_remember_at_once_one_does),
	};

	return hf_run_tests("status_remembered", tests);
}
