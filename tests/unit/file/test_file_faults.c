/*
 * unit/file/test_file_faults.c - every system call of an edit fails, or is the last one.
 *
 * After a failure: the old file, whole, and no temporary one. After a death: the old or the
 * new file, and nothing left once the next edit is through (L9).
 */
#include <signal.h>
#include <sys/wait.h>

#include "helper/file_helper.h"

#define CALLS_MOST 400

static const int errors[] = { EIO, ENOSPC, EINTR };
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

enum how { EDIT, EDIT_WITH_BACKUP, MAKE, BLOCK, HOWS };

static const char old_text[] = "old\n# holdfast:x:start\nold\n# holdfast:x:end\n";
static const char new_text[] = "new\n";
static const char new_block[] = "old\n# holdfast:x:start\nnew\n# holdfast:x:end\n";

/* The directory as every round finds it. */
static void lay_out(enum how how)
{
	unlink(in_work("f"));
	unlink(in_work("f.~1~"));
	unlink(in_work("f.~2~"));
	if (how != MAKE)
		put(in_work("f"), old_text);
	if (how == EDIT_WITH_BACKUP)
		put(in_work("f.~1~"), "older");
}

static int run(enum how how)
{
	struct hf_file_opts opts = { .size = sizeof(opts), .flags = how == MAKE ? HF_FILE_CREATE : 0,
				     .backups = how == EDIT_WITH_BACKUP ? 2 : 0 };
	struct hf_block b = { .size = sizeof(b), .id = "x", .text = "new", .len = 3 };
	struct hf_file *file;
	int r;

	if (how != BLOCK)
		return edit(in_work("f"), &opts, new_text);
	r = hf_file_open(locks, in_work("f"), &opts, &file, ERR);
	if (r < 0)
		return r;
	r = hf_file_lock(file, 0, NULL, ERR);
	if (r == 0)
		r = hf_file_block(file, &b, ERR);
	if (r > 0)
		r = hf_file_commit(file, ERR);
	(void)hf_file_close(file, NULL);
	return r;
}

static const char *text_after(enum how how)
{
	return how == BLOCK ? new_block : new_text;
}

static const char *text_before(enum how how)
{
	return how == MAKE ? "(none)" : old_text;
}

static void backups_are(enum how how, int landed)
{
	if (how != EDIT_WITH_BACKUP)
		return;
	assert_string_equal(get(in_work("f.~1~")), landed ? old_text : "older");
	assert_string_equal(get(in_work("f.~2~")), landed ? "older" : "(none)");
}

/* A lock whose release was made to fail is still ours: not what is tested here. */
static void free_locks(void)
{
	hf_locks_free(locks);
	ASSERT_OK(hf_locks_open(hf_test_state(), NULL, &locks, ERR));
}

static void break_all(void *arg, const struct hf_lock_info *info)
{
	if (info->n_holders)
		snprintf(arg, HF_NAME_MAX + 1, "%s", info->name);
}

static void free_what_is_held(void)
{
	char name[HF_NAME_MAX + 1] = "";

	ASSERT_OK(hf_lock_list(hf_locks_kind(locks, HF_LOCK_KIND_FILE), break_all, name, ERR));
	if (name[0])
		ASSERT_OK(hf_lock_break(hf_locks_kind(locks, HF_LOCK_KIND_FILE), name, "test", ERR));
}

static void fail_at(enum how how, int error, int n)
{
	int fds, r;

	lay_out(how);
	fds = hf_test_fd_count();
	hf_fault_arm(&(struct hf_fault){ .at = n, .error = error });
	r = run(how);
	hf_fault_disarm();
	if (!hf_fault_hit())
		return;
	if (hf_test_fd_count() != fds)
		print_error("%s fails with %d: descriptors\n", hf_fault_call(), error);
	assert_int_equal(hf_test_fd_count(), fds);
	if (strcmp(get(in_work("f")), r < 0 ? text_before(how) : text_after(how)) != 0)
		print_error("call %d, %s fails with %d: returned %d, content '%s'\n", n,
			    hf_fault_call(), error, r, get(in_work("f")));
	assert_string_equal(get(in_work("f")), r < 0 ? text_before(how) : text_after(how));
	/* Unless removing it was what failed, or moving the backups: the next one does that. */
	if (strcmp(hf_fault_call(), "unlinkat") != 0 && strcmp(hf_fault_call(), "renameat2") != 0)
		assert_int_equal(entries(".f.holdfast"), 0);
	free_what_is_held();
	/* The next one is not disturbed, and cleans up. */
	assert_true(run(how) >= 0);
	assert_string_equal(get(in_work("f")), text_after(how));
	assert_int_equal(entries(".f.holdfast"), 0);
}

static void any_failing_call_leaves_the_old_file_and_no_other_L9(void **state)
{
	(void)state;
	free_locks();
	for (int how = 0; how < HOWS; how++) {
		for (size_t e = 0; e < ERRORS; e++) {
			int n = 1;

			do
				fail_at((enum how)how, errors[e], n);
			while (hf_fault_hit() && ++n < CALLS_MOST);
			assert_in_range(n, 20, CALLS_MOST - 1);
		}
	}
}

static void a_full_disk_in_mid_write_leaves_the_old_file_L9(void **state)
{
	(void)state;
	free_locks();
	for (int n = 1; n < CALLS_MOST; n++) {
		lay_out(EDIT);
		hf_fault_arm(&(struct hf_fault){ .call = "write", .at = n, .error = ENOSPC,
						 .short_write = 1 });
		int r = run(EDIT);
		hf_fault_disarm();
		if (!hf_fault_hit())
			break;
		ASSERT_ERR(r, -ENOSPC);
		assert_string_equal(get(in_work("f")), old_text);
		assert_int_equal(entries(".f.holdfast"), 0);
	}
}

/* Dies at the Nth call. Returns 1 when it did. */
static int die_at(enum how how, int n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct hf_state *own_state;

		if (hf_state_open(hf_test_path("state"), 0, &own_state, NULL) < 0 ||
		    hf_locks_open(own_state, NULL, &locks, NULL) < 0)
			_exit(2);
		hf_fault_arm(&(struct hf_fault){ .at = n, .kill = 1 });
		_exit(run(how) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 1;
	assert_int_equal(status, 0);
	return 0;
}

static void death_at_any_call_leaves_old_or_new_and_the_next_edit_cleans_up_L9(void **state)
{
	struct hf_file_opts opts = file_opts(0);

	(void)state;
	for (int how = 0; how < HOWS; how++) {
		int n = 1, n_landed = 0;

		for (;; n++) {
			int died, landed;

			lay_out((enum how)how);
			died = die_at((enum how)how, n);
			landed = strcmp(get(in_work("f")), text_after((enum how)how)) == 0;
			if (!landed)
				assert_string_equal(get(in_work("f")), text_before((enum how)how));
			n_landed += landed;
			/* At once: its owner is dead. Without --backup here, and nothing is lost. */
			opts.flags = HF_FILE_CREATE;
			assert_int_equal(edit(in_work("f"), &opts, "next"), 1);
			assert_string_equal(get(in_work("f")), "next");
			assert_int_equal(entries(".f.holdfast"), 0);
			backups_are((enum how)how, landed);
			if (!died)
				break;
			assert_in_range(n, 1, CALLS_MOST);
		}
		/* Before and after the rename, both were seen. */
		assert_in_range(n_landed, 2, n - 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(any_failing_call_leaves_the_old_file_and_no_other_L9),
		FILE_TEST(a_full_disk_in_mid_write_leaves_the_old_file_L9),
		FILE_TEST(death_at_any_call_leaves_old_or_new_and_the_next_edit_cleans_up_L9),
	};

	return hf_run_tests("file_faults", tests);
}
