/* unit/file/test_file_moved.c - an edit whose path leads elsewhere at the commit fails and changes nothing (L14). */
#include <stdlib.h>

#include "helper/file_helper.h"
#include "hf/sys/calls.h"

/* Ways in which the path of the edited file changes its meaning. `in_work("d/f")` is the file, `s` a link to `d`. */
enum move { REPLACED, REMOVED, AWAY, PARENT_REPLACED, BECAME_A_LINK, LINK_TURNED, N_MOVES };

static void new_directory(const char *path, const char *text)
{
	char file[600];

	snprintf(file, sizeof(file), "%s/f", path);
	assert_int_equal(mkdir(path, 0755), 0);
	if (text)
		put(file, text);
}

static const char *path_of(enum move move)
{
	return in_work(move == LINK_TURNED ? "p/s/f" : "p/d/f");
}

static void begin(const char *text)
{
	assert_int_equal(system("rm -rf work"), 0);
	assert_int_equal(mkdir("work", 0755), 0);
	assert_int_equal(mkdir(in_work("p"), 0755), 0);
	new_directory(in_work("p/d"), text);
	assert_int_equal(symlink("d", in_work("p/s")), 0);
	new_directory(in_work("other"), "other");
}

static void move(enum move how)
{
	switch (how) {
	case REPLACED:
		assert_int_equal(renameat2(AT_FDCWD, in_work("p/d"), AT_FDCWD, in_work("other"), RENAME_EXCHANGE), 0);
		break;
	case REMOVED:
	case AWAY:
		assert_int_equal(rename(in_work("p/d"), in_work("gone")), 0);
		if (how == REMOVED)
			put(in_work("p/d"), "a file now");
		break;
	case PARENT_REPLACED:
		assert_int_equal(rename(in_work("p"), in_work("q")), 0);
		assert_int_equal(mkdir(in_work("p"), 0755), 0);
		new_directory(in_work("p/d"), "other");
		break;
	case BECAME_A_LINK:
		assert_int_equal(rename(in_work("p/d"), in_work("gone")), 0);
		assert_int_equal(symlink("../other", in_work("p/d")), 0);
		break;
	case LINK_TURNED:
		assert_int_equal(unlink(in_work("p/s")), 0);
		assert_int_equal(symlink("../other", in_work("p/s")), 0);
		break;
	case N_MOVES:
		break;
	}
}

/* The directory that was edited, wherever it is now, has the old content and nothing else. */
static void assert_untouched(const char *text)
{
	char find[700];

	assert_int_equal(system("! find work -name '.f*' | grep ."), 0);
	assert_int_equal(system("! grep -rlx new work"), 0);
	if (!text)
		return;
	snprintf(find, sizeof(find), "grep -rlxF '%s' work >/dev/null", text);
	assert_int_equal(system(find), 0);
}

static void directory_that_moves_while_the_content_is_made_is_told(void **state)
{
	static const char *const texts[] = { "old", NULL, "new" }; /* NULL: a file that is created */
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);

	(void)state;
	assert_int_equal(chdir(hf_test_dir()), 0);
	for (int how = 0; how < N_MOVES; how++)
		for (size_t i = 0; i < COUNT(texts); i++) {
			const char *text = texts[i];
			struct hf_file *file = NULL;

			begin(text);
			ASSERT_OK(edit_up_to_commit(path_of(how), &opts, "new", &file));
			move(how);
			ASSERT_ERR(hf_file_commit(file, ERR), HF_E_MOVED);
			ASSERT_OK(hf_file_close(file, ERR));
			if (text != texts[2])
				assert_untouched(text);
		}
	assert_int_equal(chdir("/"), 0);
}

static enum move move_at_rename;
static int n_renames;

static int late_mover(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (n_renames++ == 0 && strcmp(to, "f") == 0)
		move(move_at_rename);
	return renameat2(fromfd, from, tofd, to, flags);
}

/* The move happens between the check of the path and the exchange, so the commit is undone. */
static void directory_that_moves_in_the_last_moment_gets_its_old_file_back(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;

	(void)state;
	assert_int_equal(chdir(hf_test_dir()), 0);
	for (int how = 0; how < N_MOVES; how++)
		for (int create = 0; create < 2; create++) {
			struct hf_file *file = NULL;
			int r;

			begin(create ? NULL : "old");
			ASSERT_OK(edit_up_to_commit(path_of(how), &opts, "new", &file));
			n_renames = 0;
			move_at_rename = (enum move)how;
			hf_sys.renameat2 = late_mover;
			r = hf_file_commit(file, ERR);
			hf_sys = real;
			ASSERT_ERR(r, HF_E_MOVED);
			assert_untouched(create ? NULL : "old");
			ASSERT_OK(hf_file_close(file, ERR));
		}
	assert_int_equal(chdir("/"), 0);
}

static void link_that_was_followed_and_turned_is_told(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_FOLLOW);
	struct hf_file *file = NULL;

	(void)state;
	put(in_work("one"), "old");
	put(in_work("two"), "two");
	assert_int_equal(symlink("one", in_work("link")), 0);
	ASSERT_OK(edit_up_to_commit(in_work("link"), &opts, "new", &file));
	put_anew(in_work("one"), "old");
	assert_int_equal(unlink(in_work("link")), 0);
	assert_int_equal(symlink("two", in_work("link")), 0);
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_MOVED);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("one")), "old");
	assert_string_equal(get(in_work("two")), "two");
	assert_int_equal(edit(in_work("link"), &opts, "new"), 1);
	assert_string_equal(get(in_work("two")), "new");
}

static int makes_nothing(void *arg, struct hf_file *file, struct hf_err *err)
{
	int old;

	(void)arg;
	ASSERT_OK(hf_file_read(file, &old, err));
	move(REPLACED);
	return 0;
}

static void block_that_is_there_already_counts_only_at_its_path(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;

	(void)state;
	assert_int_equal(chdir(hf_test_dir()), 0);
	begin("old");
	ASSERT_OK(hf_file_open(locks, in_work("p/d/f"), &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	ASSERT_ERR(hf_file_update(file, makes_nothing, NULL, NULL, ERR), HF_E_MOVED);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_int_equal(chdir("/"), 0);
}

/* The path means the directory that it meant at the open, whatever the program's own directory is now. */
static void relative_path_begins_where_it_was_opened(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;

	(void)state;
	assert_int_equal(chdir(hf_test_dir()), 0);
	begin("old");
	opts.root = "work";
	ASSERT_OK(edit_up_to_commit("work/p/d/f", &opts, "new", &file));
	assert_int_equal(chdir("/"), 0);
	/* Away and back is no move. */
	assert_int_equal(rename(in_work("p"), in_work("q")), 0);
	assert_int_equal(rename(in_work("q"), in_work("p")), 0);
	assert_int_equal(hf_file_commit(file, ERR), 1);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("p/d/f")), "new");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(directory_that_moves_while_the_content_is_made_is_told),
		FILE_TEST(directory_that_moves_in_the_last_moment_gets_its_old_file_back),
		FILE_TEST(link_that_was_followed_and_turned_is_told),
		FILE_TEST(block_that_is_there_already_counts_only_at_its_path),
		FILE_TEST(relative_path_begins_where_it_was_opened),
	};

	return hf_run_tests("file_moved", tests);
}
