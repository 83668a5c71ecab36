/* unit/file/test_file.c - which lock a path means, what a write changes, how the library is used. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "helper/file_helper.h"
#include "hf/sys/calls.h"

static char name_of_last[HF_NAME_MAX + 1];

/* The lock's name of a path, or the error. */
static int name_of(const char *path)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_file *file = NULL;
	int r = hf_file_open(locks, path, &opts, &file, ERR);

	if (r < 0)
		return r;
	snprintf(name_of_last, sizeof(name_of_last), "%s", hf_file_lock_name(file));
	return hf_file_close(file, ERR);
}

static void every_spelling_meets_one_lock(void **state)
{
	char first[HF_NAME_MAX + 1];
	static const char *const spellings[] = { "./f", "sub/../f", "link/f", ".//f" };

	(void)state;
	assert_int_equal(mkdir(in_work("sub"), 0755), 0);
	assert_int_equal(symlink("../work", in_work("link")), 0);
	ASSERT_OK(name_of(in_work("f")));
	snprintf(first, sizeof(first), "%s", name_of_last);
	assert_non_null(strstr(first, ":f"));
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		ASSERT_OK(name_of(in_work(spellings[i])));
		assert_string_equal(name_of_last, first);
	}
	ASSERT_OK(name_of(in_work("sub/f")));
	assert_string_not_equal(name_of_last, first);
	ASSERT_OK(name_of(in_work("F")));
	assert_string_not_equal(name_of_last, first);
}

static void long_names_stay_apart_and_readable(void **state)
{
	char leaf[256], first[HF_NAME_MAX + 1];
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);

	(void)state;
	memset(leaf, 'a', sizeof(leaf));
	leaf[249] = '\0';
	ASSERT_OK(name_of(in_work(leaf)));
	snprintf(first, sizeof(first), "%s", name_of_last);
	assert_int_equal(strlen(first), HF_NAME_MAX);
	assert_non_null(strstr(first, ":aaaa"));
	leaf[248] = 'b';
	ASSERT_OK(name_of(in_work(leaf)));
	assert_string_not_equal(name_of_last, first);
	assert_int_equal(edit(in_work(leaf), &opts, "long"), 1);
	assert_int_equal(edit(in_work(leaf), &opts, "longer"), 1);
	assert_string_equal(get(in_work(leaf)), "longer");
	leaf[249] = 'c';
	leaf[250] = '\0';
	ASSERT_ERR(name_of(in_work(leaf)), -ENAMETOOLONG);
	assert_non_null(strstr(ERR->detail, "249"));
}

static void paths_that_name_no_file_are_refused(void **state)
{
	(void)state;
	ASSERT_ERR(name_of(in_work("")), HF_E_KIND);
	ASSERT_ERR(name_of(in_work("..")), HF_E_KIND);
	ASSERT_ERR(name_of(in_work(".")), HF_E_KIND);
	ASSERT_ERR(name_of("/"), HF_E_KIND);
	ASSERT_ERR(name_of(""), -EINVAL);
	ASSERT_ERR(name_of(in_work("no/f")), -ENOENT);
	put(in_work("f"), "");
	ASSERT_ERR(name_of(in_work("f/g")), -ENOTDIR);
}

static void replaced_as_a_whole_and_nothing_else_changes(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_SIDECAR);
	struct stat before, after;
	char value[16] = "";

	(void)state;
	put(in_work("f"), "old");
	assert_int_equal(chmod(in_work("f"), 0640), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(in_work("f"), 12345, 54321), 0);
	int has_xattr = setxattr(in_work("f"), "user.colour", "blue", 4, 0) == 0;
	assert_int_equal(stat(in_work("f"), &before), 0);
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_string_equal(get(in_work("f")), "new");
	assert_int_equal(stat(in_work("f"), &after), 0);
	assert_int_not_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_gid, before.st_gid);
	if (has_xattr)
		assert_int_equal(getxattr(in_work("f"), "user.colour", value, sizeof(value)), 4);
	/* The lock file beside it, and nothing more. */
	assert_int_equal(entries(".f"), 1);
	assert_int_equal(stat(in_work(".f.lock"), &after), 0);
	assert_int_equal(after.st_mode & 07777, 0600);
	assert_int_equal(after.st_size, 0);
}

static void same_content_is_no_write(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct stat before, after;

	(void)state;
	put(in_work("f"), "same");
	assert_int_equal(stat(in_work("f"), &before), 0);
	assert_int_equal(edit(in_work("f"), &opts, "same"), 0);
	assert_int_equal(stat(in_work("f"), &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(entries(".f"), 0);
}

static void missing_file_needs_create_and_follows_the_umask(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	mode_t mask = umask(027);
	struct stat st;

	(void)state;
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), -ENOENT);
	opts.flags = HF_FILE_CREATE;
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_int_equal(umask(mask), 027);
	assert_int_equal(stat(in_work("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	/* An empty file can be made, too. */
	assert_int_equal(edit(in_work("g"), &opts, ""), 1);
	assert_string_equal(get(in_work("g")), "");
}

/* -- a process that does not lock ------------------------------------------------- */

static char order[16];

static void note_call(char call)
{
	size_t n = strlen(order);

	if (n + 1 < sizeof(order))
		order[n] = call;
}

static int noted_fsync(int fd)
{
	struct stat st;

	note_call(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
	return fsync(fd);
}

static int noted_rename(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	note_call('r');
	return renameat2(fromfd, from, tofd, to, flags);
}

static int noted_unlink(int dirfd, const char *path, int flags)
{
	note_call('u');
	return unlinkat(dirfd, path, flags);
}

static int noted_fchmod(int fd, mode_t mode)
{
	note_call('m');
	return fchmod(fd, mode);
}

static void content_is_on_disk_before_the_rename_and_the_rename_before_it_returns_L9(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;
	struct hf_file *file = NULL;
	int r;

	(void)state;
	put(in_work("f"), "old");
	for (int round = 0; round < 2; round++) {
		ASSERT_OK(edit_up_to_commit(in_work(round ? "g" : "f"), &opts, "new", &file));
		memset(order, 0, sizeof(order));
		hf_sys.fsync = noted_fsync;
		hf_sys.renameat2 = noted_rename;
		hf_sys.unlinkat = noted_unlink;
		hf_sys.fchmod = noted_fchmod;
		r = hf_file_commit(file, ERR);
		hf_sys = real;
		assert_int_equal(r, 1);
		/* The old file goes last; a new one has no mode to take over and nothing to remove. */
		assert_string_equal(order, round ? "frd" : "mfrduu");
		ASSERT_OK(hf_file_close(file, ERR));
	}
}

/* -- the process ----------------------------------------------------------------- */

static void forked_child_only_frees_L13(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int status, old;
	pid_t pid;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	pid = fork();
	if (pid == 0) {
		int good = hf_file_read(file, &old, NULL) == HF_E_FORKED &&
			   hf_file_write(file, &old, NULL) == HF_E_FORKED &&
			   hf_file_commit(file, NULL) == HF_E_FORKED &&
			   hf_file_lock(file, 0, NULL, NULL) == HF_E_FORKED;

		hf_file_discard(file);
		_exit(good && hf_file_close(file, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Locks and temporary file are the parent's still. */
	assert_int_equal(entries(".f.holdfast"), 1);
	ASSERT_ERR(lock_once(in_work("f")), HF_E_DEADLOCK);
	assert_int_equal(hf_file_commit(file, ERR), 1);
	ASSERT_OK(hf_file_close(file, ERR));
}

#define THREADS    4
#define INCREMENTS 25

/* Adds one, INCREMENTS times. Returns NULL when each of them was written. */
static void *increment(void *arg)
{
	struct hf_file_opts opts = { .size = sizeof(opts) };

	for (int i = 0; i < INCREMENTS; i++) {
		struct hf_file *file = NULL;
		char text[32] = "";
		int old, new, n;

		if (hf_file_open(locks, arg, &opts, &file, NULL) < 0 ||
		    hf_file_lock(file, 30 * HF_SEC, NULL, NULL) < 0 ||
		    hf_file_read(file, &old, NULL) < 0 || hf_file_write(file, &new, NULL) < 0 ||
		    pread(old, text, sizeof(text) - 1, 0) < 0)
			return arg;
		n = snprintf(text, sizeof(text), "%d", atoi(text) + 1);
		if (write(new, text, (size_t)n) != n || hf_file_commit(file, NULL) != 1 ||
		    hf_file_close(file, NULL) < 0)
			return arg;
	}
	return NULL;
}

static void threads_are_contenders_like_processes_L1(void **state)
{
	pthread_t threads[THREADS];
	char path[600], sum[16];

	(void)state;
	snprintf(path, sizeof(path), "%s", in_work("f"));
	snprintf(sum, sizeof(sum), "%d", THREADS * INCREMENTS);
	put(path, "0");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, increment, path), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_string_equal(get(path), sum);
}

static void wrong_use_is_refused(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int fd;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_ERR(hf_file_open(NULL, in_work("f"), &opts, &file, ERR), -EINVAL);
	ASSERT_ERR(hf_file_open(locks, NULL, &opts, &file, ERR), -EINVAL);
	opts.size = 1;
	ASSERT_ERR(hf_file_open(locks, in_work("f"), &opts, &file, ERR), -EINVAL);
	opts = file_opts(1 << 30);
	ASSERT_ERR(hf_file_open(locks, in_work("f"), &opts, &file, ERR), -EINVAL);
	opts = file_opts(0);
	opts.backups = HF_FILE_BACKUPS_MAX + 1;
	ASSERT_ERR(hf_file_open(locks, in_work("f"), &opts, &file, ERR), -EINVAL);
	opts = file_opts(0);
	opts.fence_name = "x";
	ASSERT_ERR(hf_file_open(locks, in_work("f"), &opts, &file, ERR), -EINVAL);
	ASSERT_OK(hf_file_open(locks, in_work("f"), NULL, &file, ERR));
	ASSERT_ERR(hf_file_write(file, &fd, ERR), -EINVAL);
	ASSERT_ERR(hf_file_commit(file, ERR), -EINVAL);
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	ASSERT_ERR(hf_file_lock(file, 0, NULL, ERR), -EINVAL);
	ASSERT_OK(hf_file_close(file, ERR));
	ASSERT_OK(hf_file_close(NULL, ERR));
	hf_file_discard(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(every_spelling_meets_one_lock),
		FILE_TEST(long_names_stay_apart_and_readable),
		FILE_TEST(paths_that_name_no_file_are_refused),
		FILE_TEST(replaced_as_a_whole_and_nothing_else_changes),
		FILE_TEST(same_content_is_no_write),
		FILE_TEST(missing_file_needs_create_and_follows_the_umask),
		FILE_TEST(content_is_on_disk_before_the_rename_and_the_rename_before_it_returns_L9),
		FILE_TEST(forked_child_only_frees_L13),
		FILE_TEST(threads_are_contenders_like_processes_L1),
		FILE_TEST(wrong_use_is_refused),
	};

	return hf_run_tests("file", tests);
}
