/* unit/file/test_file_changed.c - a change made without the lock is never overwritten. */
#include "helper/file_helper.h"
#include "hf/sys/calls.h"

/* -- a process that does not lock ------------------------------------------------- */

enum change { IN_PLACE, SAME_SIZE, BY_RENAME, REMOVED, APPEARED, SYMLINKED };

static void change(enum change how)
{
	switch (how) {
	case IN_PLACE:
		put(in_work("f"), "changed by hand");
		break;
	case SAME_SIZE:
		put(in_work("f"), "OLD");
		break;
	case BY_RENAME:
	case APPEARED:
		put_anew(in_work("f"), "editor");
		break;
	case REMOVED:
		unlink(in_work("f"));
		break;
	case SYMLINKED:
		unlink(in_work("f"));
		assert_int_equal(symlink("victim", in_work("f")), 0);
		break;
	}
}

static void changes_since_reading_are_never_overwritten(void **state)
{
	static const char *const after[] = { [IN_PLACE] = "changed by hand", [SAME_SIZE] = "OLD",
					     [BY_RENAME] = "editor",	     [REMOVED] = "(none)",
					     [APPEARED] = "editor",	     [SYMLINKED] = "victim" };
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);

	(void)state;
	put(in_work("victim"), "victim");
	for (int how = IN_PLACE; how <= SYMLINKED; how++) {
		struct hf_file *file = NULL;

		unlink(in_work("f"));
		if (how != APPEARED)
			put(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		change((enum change)how);
		ASSERT_ERR(hf_file_commit(file, ERR), HF_E_CHANGED);
		assert_string_equal(get(in_work("f")), after[how]);
		assert_int_equal(entries(".f."), 0);
		ASSERT_OK(hf_file_close(file, ERR));
	}
	/* And the next attempt, which reads again, gets through. */
	unlink(in_work("f"));
	put(in_work("f"), "editor");
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
}

static enum change change_at_rename;
static int n_exchanges;

/* A file system without leases: with one, an editor that writes in place waits for the commit. */
static int no_lease(int fd, int type)
{
	(void)fd;
	(void)type;
	errno = EINVAL;
	return -1;
}

/* What an editor does between our last look and the rename. */
static int late_editor(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (n_exchanges++ == 0 && strcmp(to, "f") == 0)
		change(change_at_rename);
	return renameat2(fromfd, from, tofd, to, flags);
}

static void even_a_change_in_the_last_moment_is_put_back(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;
	static const enum change changes[] = { IN_PLACE, BY_RENAME, REMOVED, APPEARED };
	static const char *const after[] = { "changed by hand", "editor", "(none)", "editor" };

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct hf_file *file = NULL;
		int r;

		unlink(in_work("f"));
		if (changes[i] != APPEARED)
			put(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		n_exchanges = 0;
		change_at_rename = changes[i];
		hf_sys.renameat2 = late_editor;
		hf_sys.set_lease = no_lease;
		r = hf_file_commit(file, ERR);
		hf_sys = real;
		ASSERT_ERR(r, HF_E_CHANGED);
		assert_string_equal(get(in_work("f")), after[i]);
		assert_int_equal(entries(".f."), 0);
		ASSERT_OK(hf_file_close(file, ERR));
	}
}

static int no_exchange(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (flags) {
		errno = EINVAL;
		return -1;
	}
	return renameat2(fromfd, from, tofd, to, flags);
}

static void file_systems_without_exchange_work_as_well(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;
	struct hf_file *file = NULL;

	(void)state;
	opts.backups = 1;
	hf_sys.renameat2 = no_exchange;
	assert_int_equal(edit(in_work("f"), &opts, "one"), 1);
	assert_int_equal(edit(in_work("f"), &opts, "two"), 1);
	opts.backups = 0;
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "three", &file));
	put_anew(in_work("f"), "editor");
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_CHANGED);
	hf_sys = real;
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("f")), "editor");
	assert_string_equal(get(in_work("f.~1~")), "one");
	assert_int_equal(entries(".f."), 0);
}

/* -- leftovers and backups ------------------------------------------------------- */

/* Writes into the old file right after the exchange's last look at it, with the times kept. */
static int sly_editor(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct stat st;
	int r;

	if (n_exchanges++ > 0 || strcmp(to, "f") != 0)
		return renameat2(fromfd, from, tofd, to, flags);
	assert_int_equal(stat(in_work("f"), &st), 0);
	put(in_work("f"), "OLD");
	r = renameat2(fromfd, from, tofd, to, flags);
	assert_int_equal(utimensat(fromfd, from, (struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
	return r;
}

static void change_within_one_tick_of_the_clock_is_seen_in_the_content(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_sys real = hf_sys;
	struct hf_file *file = NULL;
	int r;

	(void)state;
	/* The look after the exchange sees the same inode, size and mtime. */
	for (int tries = 0; tries < 50; tries++) {
		struct hf_mono start = hf_mono_now();

		put_anew(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		n_exchanges = 0;
		hf_sys.renameat2 = sly_editor;
		hf_sys.set_lease = no_lease;
		r = hf_file_commit(file, ERR);
		hf_sys = real;
		ASSERT_OK(hf_file_close(file, ERR));
		/* On a busy machine the file was not "just changed" when it was read. */
		if (r == HF_E_CHANGED)
			break;
		assert_true(hf_mono_now().ns - start.ns > 15 * HF_MSEC);
	}
	ASSERT_ERR(r, HF_E_CHANGED);
	assert_string_equal(get(in_work("f")), "OLD");
	assert_int_equal(entries(".f."), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(changes_since_reading_are_never_overwritten),
		FILE_TEST(even_a_change_in_the_last_moment_is_put_back),
		FILE_TEST(file_systems_without_exchange_work_as_well),
		FILE_TEST(change_within_one_tick_of_the_clock_is_seen_in_the_content),
	};

	return hf_run_tests("file_changed", tests);
}
