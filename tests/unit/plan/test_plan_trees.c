/* unit/plan/test_plan_trees.c - T0, census, manifest, copies, and the removal of trees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/plan/target/census.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/use.h"

static const char *make_dir(const char *leaf)
{
	const char *path = hf_test_path(leaf);

	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

static void make_file(const char *leaf, const char *text)
{
	FILE *file = fopen(hf_test_path(leaf), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* -- census -------------------------------------------------------------------------- */

static void t0_after(struct hf_t0 *t0)
{
	struct stat st;

	/* A coarse tick later than all that was made so far. */
	make_file("tick", "");
	assert_int_equal(stat(hf_test_path("tick"), &st), 0);
	do {
		ASSERT_OK(hf_t0_take(t0, ERR));
	} while (t0->real_ns <= st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec);
}

static void a_census_knows_what_stood_there_at_t0_and_nothing_else(void **state)
{
	struct hf_census *census;
	const struct hf_census_dir *dir;
	struct hf_t0 t0, other;
	struct stat st;

	(void)state;
	(void)make_dir("t");
	(void)make_dir("t/a");
	(void)make_dir("t/a/b");
	(void)make_dir("t/changed");
	(void)make_dir("sandbox");
	make_file("t/f", "f");
	make_file("t/a/b/deep\n\xff", "");
	t0_after(&t0);
	make_file("t/changed/late", "x");
	AUTO_FD target = open(hf_test_path("t"), O_PATH | O_DIRECTORY);
	AUTO_FD sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	ASSERT_ERR(hf_census_load(sandbox, &t0, 0, &census, ERR), -ENOENT);
	ASSERT_OK(hf_census_take(target, sandbox, &t0, 1000));
	ASSERT_OK(hf_census_load(sandbox, &t0, 0, &census, ERR));
	dir = hf_census_find(census, "", 0);
	assert_non_null(dir);
	assert_int_equal(dir->n_entries, 3);
	assert_non_null(hf_census_entry(census, dir, "f"));
	assert_null(hf_census_entry(census, dir, "g"));
	assert_int_equal(stat(hf_test_path("t/a"), &st), 0);
	assert_true(hf_census_entry(census, dir, "a")->ino == st.st_ino);
	dir = hf_census_find(census, "a/b", 3);
	assert_non_null(dir);
	assert_non_null(hf_census_entry(census, dir, "deep\n\xff"));
	/* Changed after T0: not known. */
	assert_null(hf_census_find(census, "changed", 7));
	assert_null(hf_census_find(census, "a/", 2));
	hf_census_free(census);
	/* Not of another T0, and not when it is damaged. */
	other = t0;
	other.real_ns++;
	ASSERT_OK(hf_census_take(target, sandbox, &t0, 1000));
	ASSERT_ERR(hf_census_load(sandbox, &other, 0, &census, ERR), -ENOENT);
}

static void a_damaged_census_is_no_census(void **state)
{
	struct hf_census *census;
	struct hf_t0 t0;
	struct stat st;

	(void)state;
	(void)make_dir("t");
	(void)make_dir("sandbox");
	make_file("t/f", "f");
	t0_after(&t0);
	AUTO_FD target = open(hf_test_path("t"), O_PATH | O_DIRECTORY);
	AUTO_FD sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	ASSERT_OK(hf_census_take(target, sandbox, &t0, 1000));
	assert_int_equal(stat(hf_test_path("sandbox/census"), &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		char byte;

		ASSERT_OK(hf_census_take(target, sandbox, &t0, 1000));
		AUTO_FD file = open(hf_test_path("sandbox/census"), O_RDWR);
		assert_int_equal(pread(file, &byte, 1, at), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(file, &byte, 1, at), 1);
		if (at >= 12 && at < 16) /* "partial" is a hint */
			continue;
		if (at >= 32 && at < 40) /* so is the number of entries */
			continue;
		ASSERT_ERR(hf_census_load(sandbox, &t0, 0, &census, ERR), -ENOENT);
	}
}

static void a_census_is_capped_and_a_large_directory_is_whole(void **state)
{
	struct hf_census *census;
	struct hf_t0 t0;
	char leaf[32];

	(void)state;
	(void)make_dir("t");
	(void)make_dir("t/sub");
	(void)make_dir("sandbox");
	for (int i = 0; i < 4000; i++) {
		(void)snprintf(leaf, sizeof(leaf), "t/sub/some-name-%d", i);
		make_file(leaf, "");
	}
	t0_after(&t0);
	AUTO_FD target = open(hf_test_path("t"), O_PATH | O_DIRECTORY);
	AUTO_FD sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	ASSERT_OK(hf_census_take(target, sandbox, &t0, 100));
	ASSERT_OK(hf_census_load(sandbox, &t0, 0, &census, ERR));
	assert_non_null(hf_census_find(census, "", 0));
	assert_null(hf_census_find(census, "sub", 3));
	hf_census_free(census);
	/* By a process of its own, which is waited for. */
	ASSERT_OK(unlinkat(sandbox, HF_CENSUS, 0));
	ASSERT_OK(hf_census_start(target, sandbox, &t0, NULL));
	ASSERT_OK(hf_census_load(sandbox, &t0, 30 * HF_SEC, &census, ERR));
	const struct hf_census_dir *dir = hf_census_find(census, "sub", 3);
	assert_non_null(dir);
	assert_int_equal(dir->n_entries, 4000);
	assert_non_null(hf_census_entry(census, dir, "some-name-3999"));
	hf_census_free(census);
}

static void t0_is_never_later_than_a_change_that_follows(void **state)
{
	struct hf_t0 t0;
	struct stat st;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		ASSERT_OK(i % 100 ? 0 : hf_t0_take(&t0, ERR));
		make_file("f", "x");
		assert_int_equal(stat(hf_test_path("f"), &st), 0);
		assert_true(st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec >= t0.real_ns);
	}
}

/* -- copies -------------------------------------------------------------------------- */

static void a_copy_keeps_everything_and_its_manifest_says_so(void **state)
{
	AUTO(hf_manifest_done) struct hf_manifest manifest = { 0 };
	const struct hf_manifest_entry *entry;
	struct timespec times[2] = { { 1, 2 }, { 981173106, 7 } };
	struct stat a, b;
	char value[8];

	(void)state;
	(void)make_dir("t");
	(void)make_dir("t/empty");
	(void)make_dir("t/d");
	(void)make_dir("sandbox");
	make_file("t/d/f", "content");
	make_file("t/\xff\n", "odd");
	assert_int_equal(link(hf_test_path("t/d/f"), hf_test_path("t/hard")), 0);
	assert_int_equal(symlink("nowhere", hf_test_path("t/link")), 0);
	assert_int_equal(mkfifo(hf_test_path("t/fifo"), 0600), 0);
	make_file("t/sparse", "begin");
	assert_int_equal(truncate(hf_test_path("t/sparse"), 64 << 20), 0);
	int has_xattr = setxattr(hf_test_path("t/d/f"), "user.note", "kept", 4, 0) == 0;
	assert_int_equal(chmod(hf_test_path("t/d/f"), 04751), 0);
	assert_int_equal(utimensat(AT_FDCWD, hf_test_path("t/d/f"), times, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, hf_test_path("t/link"), times, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(chmod(hf_test_path("t/d"), 0500), 0);
	assert_int_equal(utimensat(AT_FDCWD, hf_test_path("t/d"), times, 0), 0);

	AUTO_FD target = open(hf_test_path("t"), O_PATH | O_DIRECTORY);
	AUTO_FD sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	ASSERT_OK(hf_copy_tree(target, sandbox, 1, "t", ERR));
	ASSERT_OK(hf_manifest_load(sandbox, &manifest, ERR));
	assert_int_equal(manifest.n, 8); /* all but the FIFO */
	assert_int_equal(access(hf_test_path("sandbox/c/fifo"), F_OK), -1);
	assert_int_equal(stat(hf_test_path("sandbox/c/d/f"), &a), 0);
	assert_int_equal(a.st_mode & 07777, 04751);
	assert_int_equal(a.st_mtim.tv_sec, 981173106);
	assert_int_equal(a.st_mtim.tv_nsec, 7);
	assert_int_equal(a.st_nlink, 2);
	assert_int_equal(stat(hf_test_path("sandbox/c/hard"), &b), 0);
	assert_true(a.st_ino == b.st_ino);
	if (has_xattr)
		assert_int_equal(getxattr(hf_test_path("sandbox/c/d/f"), "user.note", value, 8), 4);
	assert_int_equal(stat(hf_test_path("sandbox/c/sparse"), &b), 0);
	assert_int_equal(b.st_size, 64 << 20);
	assert_in_range(b.st_blocks, 0, 2048);
	assert_int_equal(stat(hf_test_path("sandbox/c/d"), &b), 0);
	assert_int_equal(b.st_mode & 07777, 0500);
	assert_int_equal(b.st_mtim.tv_sec, 981173106);
	assert_int_equal(lstat(hf_test_path("sandbox/c/link"), &b), 0);
	assert_true(S_ISLNK(b.st_mode) && b.st_mtim.tv_sec == 981173106);
	assert_int_equal(access(hf_test_path("sandbox/c/empty"), F_OK), 0);
	entry = hf_manifest_find(&manifest, "d/f");
	assert_non_null(entry);
	assert_true(entry->row.copy_ino == a.st_ino && entry->row.size == 7);
	assert_true(entry->row.copy_ctime_ns == a.st_ctim.tv_sec * HF_SEC + a.st_ctim.tv_nsec);
	assert_non_null(hf_manifest_find(&manifest, "\xff\n"));
	assert_null(hf_manifest_find(&manifest, "d/g"));
	assert_int_equal(chmod(hf_test_path("t/d"), 0700), 0);
	ASSERT_OK(hf_tree_remove(sandbox, HF_SANDBOX_TREE));
	assert_int_equal(access(hf_test_path("sandbox/c"), F_OK), -1);
}

static void a_copy_that_fails_anywhere_says_so(void **state)
{
	(void)state;
	(void)make_dir("t");
	(void)make_dir("t/d");
	(void)make_dir("sandbox");
	make_file("t/d/f", "content");
	assert_int_equal(symlink("x", hf_test_path("t/l")), 0);
	AUTO_FD target = open(hf_test_path("t"), O_PATH | O_DIRECTORY);
	AUTO_FD sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	for (int n = 1, hit = 1; hit; n++) {
		AUTO(hf_manifest_done) struct hf_manifest manifest = { 0 };
		int r;

		hf_fault_arm(&(struct hf_fault){ .at = n, .error = ENOSPC });
		r = hf_copy_tree(target, sandbox, 0, "t", ERR);
		hit = hf_fault_hit();
		hf_fault_disarm();
		/* What is ignored on purpose (owner of a symlink, its times) does no harm. */
		if (r == 0)
			ASSERT_OK(hf_manifest_load(sandbox, &manifest, ERR));
		(void)hf_tree_remove(sandbox, HF_SANDBOX_TREE);
		(void)unlinkat(sandbox, HF_MANIFEST, 0);
		assert_in_range(n, 1, 200);
	}
}

static void a_tree_of_any_depth_is_removed(void **state)
{
	AUTO_FD sandbox = -1;

	(void)state;
	(void)make_dir("sandbox");
	sandbox = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	int at = open(hf_test_path("sandbox"), O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 1500; i++) {
		assert_int_equal(mkdirat(at, "deep", 0700), 0);
		int next = openat(at, "deep", O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		assert_int_equal(fchmod(at, i % 7 ? 0700 : i ? 0 : 0700), 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	ASSERT_OK(hf_tree_remove(sandbox, "deep"));
	assert_int_equal(access(hf_test_path("sandbox/deep"), F_OK), -1);
	ASSERT_OK(hf_tree_remove(sandbox, "deep"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_census_knows_what_stood_there_at_t0_and_nothing_else),
		HF_TEST(a_damaged_census_is_no_census),
		HF_TEST(a_census_is_capped_and_a_large_directory_is_whole),
		HF_TEST(t0_is_never_later_than_a_change_that_follows),
		HF_TEST(a_copy_keeps_everything_and_its_manifest_says_so),
		HF_TEST(a_copy_that_fails_anywhere_says_so),
		HF_TEST(a_tree_of_any_depth_is_removed),
	};

	return hf_run_tests("plan_trees", tests);
}
