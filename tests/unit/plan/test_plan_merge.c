/* unit/plan/test_plan_merge.c - files that both sides changed: killed, failing, hostile, huge. */
#include <signal.h>
#include <sys/wait.h>

#include "helper/plan_helper.h"

#define LINES 40

/* Forty lines, of which two may be others. */
static void write_lines(const char *path, int a, const char *a_text, int b, const char *b_text)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	for (int i = 1; i <= LINES; i++)
		hf_buf_add_format(&text, "%s%d\n", i == a ? a_text : i == b ? b_text : "line ", i);
	put(path, text.s);
}

static int has_lines(const char *path, int a, const char *a_text, int b, const char *b_text)
{
	char other[1024];

	snprintf(other, sizeof(other), "%s", hf_test_path("compared"));
	write_lines(other, a, a_text, b, b_text);
	{
		FILE *x = fopen(path, "re"), *y = fopen(other, "re");
		int c = 0, d = 0;

		while (x && y && c == d && c != EOF) {
			c = fgetc(x);
			d = fgetc(y);
		}
		if (x)
			fclose(x);
		if (y)
			fclose(y);
		return x && y && c == d;
	}
}

static int has_git(void)
{
	return system("git version >/dev/null 2>&1") == 0; /* NOLINT(cert-env33-c): a look before the tests */
}

/* f as plan "other" committed it, and as plan "p" would have it. */
static void lay_out(int other_line, int our_line)
{
	struct hf_t0 t0;
	char target[512];

	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	write_lines(at("%s/f", target), 0, "", 0, "");
	put(at("%s/a", target), "old a");
	ASSERT_OK(hf_plan_new(plans, "other", NULL, ERR));
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	take_t0(&t0);
	add_by_hand("other", "s", target, &t0);
	add_by_hand("p", "s", target, &t0);
	write_lines(at("%s/f", upper_of("other", "s")), other_line, "other ", 0, "");
	write_lines(at("%s/f", upper_of("p", "s")), our_line, "ours ", 0, "");
	put(at("%s/a", upper_of("p", "s")), "new a");
	ASSERT_OK(hf_plan_commit(plans, "other", NULL, NULL, ERR));
	assert_true(has_lines(at("%s/f", target), other_line, "other ", 0, ""));
}

static void clear(void)
{
	remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
	remove_tree(at("%s/plans/other", hf_state_path(hf_test_state())));
	remove_tree(hf_test_path("t"));
}

static const struct hf_plan_commit_opts merging = { .size = sizeof(merging), .flags = HF_PLAN_COMMIT_MERGE };

static int is_merged(void)
{
	return has_lines(hf_test_path("t/f"), 3, "other ", 30, "ours ");
}

static int is_before(void)
{
	return has_lines(hf_test_path("t/f"), 3, "other ", 0, "");
}

static void the_report_names_what_was_merged(void **state)
{
	struct hf_plan_report report;

	(void)state;
	lay_out(3, 30);
	ASSERT_OK(hf_plan_commit(plans, "p", &merging, &report, ERR));
	assert_true(is_merged());
	assert_int_equal(report.n_merged, 1);
	assert_string_equal(report.merged[0].path, "f");
	assert_string_equal(report.merged[0].sandbox, "s");
	assert_string_equal(report.merged[0].kind, "kept");
	assert_string_equal(report.merged[0].base, "other");
	assert_int_equal(report.changed, 2);
	hf_plan_report_done(&report);
	ASSERT_OK(hf_plan_undo(plans, "p", NULL, &report, ERR));
	hf_plan_report_done(&report);
	assert_true(is_before());
}

static void what_does_not_merge_changes_nothing_L11(void **state)
{
	struct hf_plan_report report;

	(void)state;
	lay_out(7, 7);
	assert_int_equal(hf_plan_commit(plans, "p", &merging, &report, ERR), HF_E_CONFLICT);
	assert_int_equal(report.n_merged, 0);
	assert_int_equal(report.n_conflicts, 1);
	assert_string_equal(report.conflicts[0].kind, "merge-conflict");
	assert_true(report.conflicts[0].why[0] != '\0');
	hf_plan_report_done(&report);
	assert_true(has_lines(hf_test_path("t/f"), 7, "other ", 0, ""));
	assert_true(has_lines(at("%s/f", upper_of("p", "s")), 7, "ours ", 0, ""));
	assert_int_equal(state_of("p"), HF_PLAN_ACTIVE);
}

/* -- at every mutating call ------------------------------------------------------------------- */

/*
 * Commits in a process of its own, with that fault. Returns what became of it: WIFSIGNALED; else its exit
 * status is 0 done, 1 refused or failed, 2 and 3 the same without that the fault was reached.
 */
static int commit_with(const struct hf_fault *fault)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct hf_state *own;
		int r;

		if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 ||
		    hf_plans_open(own, NULL, &plans, NULL) < 0)
			_exit(9);
		hf_fault_arm(fault);
		r = hf_plan_commit(plans, "p", &merging, NULL, NULL);
		_exit((r < 0) + (hf_fault_hit() ? 0 : 2));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_merge_that_is_killed_anywhere_is_all_or_nothing_L10(void **state)
{
	int n, landed = 0;

	(void)state;
	for (n = 1;; n++) {
		int killed;

		lay_out(3, 30);
		killed = WIFSIGNALED(commit_with(&(struct hf_fault){ .at = n, .kill = 1, .mutating = 1 }));
		assert_true(hf_plan_recover(plans, "p", 0, ERR) >= 0);
		if (state_of("p") == HF_PLAN_COMMITTED) {
			landed++;
			assert_true(is_merged());
		} else {
			assert_true(is_before());
			assert_true(has_lines(at("%s/f", upper_of("p", "s")), 30, "ours ", 0, ""));
			ASSERT_OK(hf_plan_commit(plans, "p", &merging, NULL, ERR));
			assert_true(is_merged());
		}
		ASSERT_OK(hf_plan_undo(plans, "p", NULL, NULL, ERR));
		assert_true(is_before());
		clear();
		if (!killed)
			break;
	}
	assert_true(landed > 3 && n > 20);
}

static void a_merge_that_fails_anywhere_is_all_or_nothing_L10(void **state)
{
	int n, hit = 1;

	(void)state;
	for (n = 1; hit; n++) {
		int status, done;

		lay_out(3, 30);
		status = commit_with(&(struct hf_fault){ .at = n, .error = ENOSPC, .mutating = 1 });
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 4);
		hit = WEXITSTATUS(status) < 2;
		assert_true(hf_plan_recover(plans, "p", 0, ERR) >= 0);
		done = state_of("p") == HF_PLAN_COMMITTED;
		assert_true(done ? is_merged() : is_before());
		assert_int_equal(done, WEXITSTATUS(status) % 2 == 0);
		clear();
	}
	assert_true(n > 20);
}

/* -- hostile and odd ------------------------------------------------------------------------------ */

static void an_old_version_that_was_touched_is_no_base(void **state)
{
	struct hf_plan_report report;

	(void)state;
	lay_out(3, 30);
	write_lines(at("%s/f", upper_of("other", "s")), 12, "forged ", 0, "");
	assert_int_equal(hf_plan_commit(plans, "p", &merging, &report, ERR), HF_E_CONFLICT);
	assert_string_equal(report.conflicts[0].kind, "changed");
	hf_plan_report_done(&report);
	assert_true(is_before());
}

static void a_symlink_in_place_of_an_old_version_is_not_followed_L12(void **state)
{
	char slot[1024];

	(void)state;
	lay_out(3, 30);
	snprintf(slot, sizeof(slot), "%s/f", upper_of("other", "s"));
	assert_int_equal(unlink(slot), 0);
	assert_int_equal(symlink("/etc/passwd", slot), 0);
	assert_int_equal(hf_plan_commit(plans, "p", &merging, NULL, ERR), HF_E_CONFLICT);
	assert_true(is_before());
}

static void a_file_that_is_open_for_writing_is_not_merged(void **state)
{
	struct hf_plan_report report;
	int fd;

	(void)state;
	lay_out(3, 30);
	fd = open(hf_test_path("t/f"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hf_plan_commit(plans, "p", &merging, &report, ERR), HF_E_CONFLICT);
	assert_string_equal(report.conflicts[0].kind, "open-for-writing");
	hf_plan_report_done(&report);
	close(fd);
	assert_true(is_before());
}

static void a_huge_file_is_not_merged(void **state)
{
	struct hf_plan_report report;

	(void)state;
	lay_out(3, 30);
	assert_int_equal(truncate(at("%s/f", upper_of("p", "s")), (off_t)33 << 20), 0);
	assert_int_equal(hf_plan_commit(plans, "p", &merging, &report, ERR), HF_E_CONFLICT);
	assert_string_equal(report.conflicts[0].kind, "changed");
	assert_string_equal(report.conflicts[0].why, "it is larger than 32 MiB");
	hf_plan_report_done(&report);
	assert_true(is_before());
}

/* A megabyte with a change at either end: the merge is exact, and nothing of the caller changes (L13). */
static void a_large_file_is_merged_and_the_caller_keeps_its_signals_L13(void **state)
{
	struct sigaction before, after;
	sigset_t mask, mask_after;
	char target[512];
	struct hf_t0 t0;
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	for (int i = 0; i < 3; i++) {
		AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

		for (int k = 0; k < 60000; k++)
			hf_buf_add_format(&text, "%s %d\n", (i == 1 && k == 0) || (i == 2 && k == 59999) ? "changed" : "a longer line", k);
		if (i == 0) {
			put(at("%s/f", target), text.s);
			ASSERT_OK(hf_plan_new(plans, "other", NULL, ERR));
			ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
			take_t0(&t0);
			add_by_hand("other", "s", target, &t0);
			add_by_hand("p", "s", target, &t0);
		} else {
			put(at("%s/f", upper_of(i == 1 ? "other" : "p", "s")), text.s);
		}
	}
	ASSERT_OK(hf_plan_commit(plans, "other", NULL, NULL, ERR));
	assert_int_equal(sigaction(SIGCHLD, NULL, &before), 0);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	ASSERT_OK(hf_plan_commit(plans, "p", &merging, NULL, ERR));
	assert_int_equal(sigaction(SIGCHLD, NULL, &after), 0);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask_after), 0);
	assert_true(before.sa_handler == after.sa_handler);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&mask, sig), sigismember(&mask_after, sig));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	assert_int_equal(stat(hf_test_path("t/f"), &st), 0);
	/* Both lines are shorter by "a longer line" - "changed". */
	{
		AUTO(hf_buf_done) struct hf_buf all = HF_BUF_INIT;

		for (int k = 0; k < 60000; k++)
			hf_buf_add_format(&all, "%s %d\n", k == 0 || k == 59999 ? "changed" : "a longer line", k);
		assert_int_equal(st.st_size, all.len);
	}
}

static void where_SIGCHLD_is_ignored_that_is_said(void **state)
{
	struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
	struct hf_plan_report report;
	int r;

	(void)state;
	lay_out(3, 30);
	assert_int_equal(sigaction(SIGCHLD, &ignored, &before), 0);
	r = hf_plan_commit(plans, "p", &merging, &report, ERR);
	assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
	assert_int_equal(r, HF_E_CONFLICT);
	assert_string_equal(report.conflicts[0].why, "SIGCHLD is ignored, so git's answer is lost");
	hf_plan_report_done(&report);
	assert_true(is_before());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAN_TEST(the_report_names_what_was_merged),
		PLAN_TEST(what_does_not_merge_changes_nothing_L11),
		PLAN_TEST(a_merge_that_is_killed_anywhere_is_all_or_nothing_L10),
		PLAN_TEST(a_merge_that_fails_anywhere_is_all_or_nothing_L10),
		PLAN_TEST(an_old_version_that_was_touched_is_no_base),
		PLAN_TEST(a_symlink_in_place_of_an_old_version_is_not_followed_L12),
		PLAN_TEST(a_file_that_is_open_for_writing_is_not_merged),
		PLAN_TEST(a_huge_file_is_not_merged),
		PLAN_TEST(a_large_file_is_merged_and_the_caller_keeps_its_signals_L13),
		PLAN_TEST(where_SIGCHLD_is_ignored_that_is_said),
	};

	if (!has_git()) {
		printf("1..0 # SKIP NO GIT HERE: nothing can be merged\n");
		return 0;
	}
	return hf_run_tests("plan_merge", tests);
}
