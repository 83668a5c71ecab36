/* unit/file/test_file_backup.c - backups, leftovers of a crash, and the owner of the file. */
#include <sys/file.h>

#include "helper/file_helper.h"
#include "hf/sys/calls.h"

static void leftovers_go_when_they_are_proven_nobodys(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	int fd;

	(void)state;
	put(in_work("f"), "old");
	put(in_work(".f.holdfast-0.tmp"), "of a crash");
	put(in_work(".f.holdfast-2.tmp"), "of another");
	put(in_work(".f.holdfast-1.tmp"), "another writes it");
	fd = open(in_work(".f.holdfast-1.tmp"), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(symlink("f", in_work(".f.holdfast-3.tmp")), 0);
	put(in_work(".f.holdfast-9.tmp"), "not one of ours");
	put(in_work(".g.holdfast-0.tmp"), "another file's");
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_int_equal(entries(".f.holdfast-0"), 0);
	assert_int_equal(entries(".f.holdfast-2"), 0);
	assert_string_equal(get(in_work(".f.holdfast-1.tmp")), "another writes it");
	assert_int_equal(entries(".f.holdfast-3"), 1);
	assert_int_equal(entries(".f.holdfast-9"), 1);
	assert_int_equal(entries(".g.holdfast-0"), 1);
	assert_string_equal(get(in_work("f")), "new");
	close(fd);
}

static void backups_move_up_and_the_oldest_goes(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct stat st;

	(void)state;
	opts.backups = 3;
	put(in_work("f"), "1");
	assert_int_equal(chmod(in_work("f"), 0640), 0);
	for (char text[] = "2"; text[0] <= '6'; text[0]++)
		assert_int_equal(edit(in_work("f"), &opts, text), 1);
	assert_string_equal(get(in_work("f")), "6");
	assert_string_equal(get(in_work("f.~1~")), "5");
	assert_string_equal(get(in_work("f.~2~")), "4");
	assert_string_equal(get(in_work("f.~3~")), "3");
	assert_int_equal(entries("f.~"), 3);
	assert_int_equal(stat(in_work("f.~3~"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_nlink, 1);
	/* Nothing changed: no backup. A gap is filled before anything is dropped. */
	assert_int_equal(edit(in_work("f"), &opts, "6"), 0);
	assert_string_equal(get(in_work("f.~1~")), "5");
	unlink(in_work("f.~2~"));
	assert_int_equal(edit(in_work("f"), &opts, "7"), 1);
	assert_string_equal(get(in_work("f.~1~")), "6");
	assert_string_equal(get(in_work("f.~2~")), "5");
	assert_string_equal(get(in_work("f.~3~")), "3");
	/* What is not a file is not moved away. */
	unlink(in_work("f.~1~"));
	assert_int_equal(mkdir(in_work("f.~1~"), 0755), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "8"), HF_E_KIND);
	assert_string_equal(get(in_work("f")), "7");
	assert_int_equal(entries(".f."), 0);
}

static int no_link(int fromfd, const char *from, int tofd, const char *to, int flags)
{
	(void)fromfd, (void)from, (void)tofd, (void)to, (void)flags;
	errno = EPERM;
	return -1;
}

static void backups_are_copies_where_a_second_name_is_not_to_be_had(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_sys real = hf_sys;
	struct stat st;

	(void)state;
	opts.backups = 1;
	put(in_work("f"), "1");
	assert_int_equal(chmod(in_work("f"), 0604), 0);
	hf_sys.linkat = no_link;
	assert_int_equal(edit(in_work("f"), &opts, "2"), 1);
	hf_sys = real;
	assert_string_equal(get(in_work("f.~1~")), "1");
	assert_int_equal(stat(in_work("f.~1~"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_int_equal(entries(".f."), 0);
}

static int forbidden(int fd, uid_t uid, gid_t gid)
{
	(void)fd, (void)uid, (void)gid;
	errno = EPERM;
	return -1;
}

static void owner_that_cannot_be_kept_is_a_refusal(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_sys real = hf_sys;
	int r;

	(void)state;
	if (geteuid() != 0)
		HF_SKIP("only root can make another user's file");
	put(in_work("f"), "old");
	assert_int_equal(chown(in_work("f"), 12345, 54321), 0);
	hf_sys.fchown = forbidden;
	r = edit(in_work("f"), &opts, "new");
	hf_sys = real;
	ASSERT_ERR(r, HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "12345:54321"));
	assert_string_equal(get(in_work("f")), "old");
	assert_int_equal(entries(".f."), 1);
}

static void refused_write_leaves_the_backups_alone(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	struct stat st;

	(void)state;
	opts.backups = 2;
	put(in_work("f"), "1");
	assert_int_equal(edit(in_work("f"), &opts, "2"), 1);
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "3", &file));
	assert_int_equal(hf_lock_break(hf_locks_kind(locks, HF_LOCK_KIND_FILE), hf_file_lock_name(file), "test", ERR), 1);
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_STALE);
	(void)hf_file_close(file, NULL);
	assert_string_equal(get(in_work("f.~1~")), "1");
	assert_int_equal(entries("f.~"), 1);
	assert_int_equal(entries(".f."), 0);
	assert_int_equal(stat(in_work("f"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(leftovers_go_when_they_are_proven_nobodys),
		FILE_TEST(backups_move_up_and_the_oldest_goes),
		FILE_TEST(backups_are_copies_where_a_second_name_is_not_to_be_had),
		FILE_TEST(owner_that_cannot_be_kept_is_a_refusal),
		FILE_TEST(refused_write_leaves_the_backups_alone),
	};

	return hf_run_tests("file_backup", tests);
}
