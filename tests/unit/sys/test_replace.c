/* unit/sys/test_replace.c - modes, flock with a time limit, replaced files, poll with a deadline. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/sys_helper.h"
#include "holdfast/clock.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/replace.h"

static mode_t permissions_of(const char *path)
{
	return mode_of(path) & 07777;
}

static void mode_is_given_back_only_to_what_is_ours_and_of_that_kind(void **state)
{
	const char *file = hf_test_path("file");

	(void)state;
	make_file_of(file, "x", 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFDIR, 0700), 0);
	assert_int_equal(permissions_of(file), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 1);
	assert_int_equal(permissions_of(file), 0600);
	/* It has them: worth a second try, nothing to do. */
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 1);
	assert_int_equal(chmod(file, 0400), 0);
	/* A second name may be a trap: another user's choice of which file we open up. */
	assert_int_equal(link(file, hf_test_path("two")), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 0);
	assert_int_equal(symlink("file", hf_test_path("link")), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, hf_test_path("link"), S_IFREG, 0600), 0);
	assert_int_equal(permissions_of(file), 0400);
	assert_int_equal(hf_mend_mode(AT_FDCWD, hf_test_path("none"), S_IFREG, 0600), -ENOENT);
}

static void what_is_made_has_its_mode_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 0177, 0277, 0777 };

	(void)state;
	for (size_t i = 0; i < COUNT(masks); i++) {
		mode_t before = umask(masks[i]);
		int fd = hf_create_at(AT_FDCWD, hf_test_path("new"), O_WRONLY, 0600);
		int r = hf_mkdir_at(AT_FDCWD, hf_test_path("dir"), 0700);

		umask(before);
		assert_true(fd >= 0);
		close(fd);
		ASSERT_OK(r);
		assert_int_equal(permissions_of(hf_test_path("new")), 0600);
		assert_int_equal(permissions_of(hf_test_path("dir")), 0700);
		assert_int_equal(unlink(hf_test_path("new")), 0);
		assert_int_equal(rmdir(hf_test_path("dir")), 0);
	}
}

static void flock_is_had_at_once_after_waiting_or_not_in_time(void **state)
{
	static const struct hf_backoff backoff = { .yields = 2,
						   .min_ns = 1 * HF_MSEC,
						   .max_ns = 2 * HF_MSEC };
	const struct hf_mono passed = { 0 };
	struct hf_mono start;
	int mine, other, told[2];
	pid_t child;

	(void)state;
	make_file_of(hf_test_path("f"), "", 0600);
	mine = open(hf_test_path("f"), O_RDWR | O_CLOEXEC);
	other = open(hf_test_path("f"), O_RDWR | O_CLOEXEC);
	assert_true(mine >= 0 && other >= 0);
	assert_int_equal(hf_flock_until(mine, LOCK_EX, passed, &backoff), 0);
	assert_int_equal(hf_flock_until(other, LOCK_EX, passed, &backoff), -ETIMEDOUT);
	start = hf_mono_now();
	assert_int_equal(hf_flock_until(other, LOCK_EX, hf_mono_in(30 * HF_MSEC), &backoff),
			 -ETIMEDOUT);
	assert_true(hf_mono_now().ns - start.ns >= 30 * HF_MSEC);
	assert_int_equal(hf_flock_until(-1, LOCK_EX, passed, &backoff), -EBADF);
	/* A child has it until we have begun to wait, more or less; both ways to wait end. */
	close(mine);
	for (int forever = 0; forever < 2; forever++) {
		int r;

		assert_int_equal(pipe2(told, O_CLOEXEC), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			int its = open(hf_test_path("f"), O_RDWR | O_CLOEXEC);

			if (flock(its, LOCK_EX) < 0 || write(told[1], "x", 1) != 1)
				_exit(1);
			hf_pause(50 * HF_MSEC);
			_exit(0);
		}
		close(told[1]);
		assert_int_equal(read(told[0], &r, 1), 1);
		close(told[0]);
		r = hf_flock_until(other, LOCK_EX, hf_mono_in(forever ? INT64_MAX : 60 * HF_SEC),
				   &backoff);
		assert_true(r == 0 || r == 1);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(flock(other, LOCK_UN), 0);
	}
	close(other);
}

static void assert_file_is(const char *path, const char *content)
{
	char text[64];
	ssize_t n = hf_read_file(AT_FDCWD, path, text, sizeof(text));

	assert_int_equal(n, strlen(content));
	assert_memory_equal(text, content, (size_t)n);
}

static void replaced_file_is_old_or_new_whatever_fails(void **state)
{
	int dirfd = open(hf_test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 1, r;

	(void)state;
	assert_true(dirfd >= 0);
	make_file_of(hf_test_path("f"), "old", 0600);
	assert_int_equal(hf_replace_file(dirfd, "f", "t", "no", 2, HF_REPLACE_NEW), -EEXIST);
	assert_file_is(hf_test_path("f"), "old");
	for (;; n++) {
		hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO });
		r = hf_replace_file(dirfd, "f", "t", "new", 3, HF_REPLACE_SYNC);
		if (!hf_fault_hit())
			break;
		hf_fault_disarm();
		assert_true(access(hf_test_path("t"), F_OK) < 0);
		/* The unlink before, and the sync of the directory behind, may fail over a new one. */
		if (r == -EIO && n < 6)
			assert_file_is(hf_test_path("f"), n == 1 ? "new" : "old");
		assert_int_equal(unlink(hf_test_path("f")), 0);
		make_file_of(hf_test_path("f"), "old", 0600);
	}
	hf_fault_disarm();
	ASSERT_OK(r);
	assert_true(n > 5);
	assert_file_is(hf_test_path("f"), "new");
	close(dirfd);
}

static int asked_ms;

static int note_timeout(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	(void)fds, (void)n;
	asked_ms = timeout_ms;
	return 1;
}

static void poll_ends_when_its_deadline_has_passed_and_not_before(void **state)
{
	struct hf_mono deadline = hf_mono_in(3 * HF_MSEC / 2), far = hf_mono_in(INT64_C(4000000) * HF_SEC);
	struct pollfd none = { .fd = -1 };

	(void)state;
	assert_int_equal(hf_poll_until(&none, 1, deadline), 0);
	assert_int_equal(hf_mono_left(deadline), 0);
	assert_int_equal(hf_poll_until(NULL, 0, deadline), 0);
	hf_fault_arm(&(struct hf_fault){ .call = "poll", .at = 1, .error = EINTR });
	assert_int_equal(hf_poll_until(&none, 1, deadline), -EINTR);
	hf_fault_disarm();
	/* Longer than poll can be told, and without an end. */
	hf_sys.poll = note_timeout;
	assert_int_equal(hf_poll_until(&none, 1, far), 1);
	assert_int_equal(asked_ms, INT_MAX);
	assert_int_equal(hf_poll_until(&none, 1, HF_MONO_NEVER), 1);
	assert_int_equal(asked_ms, -1);
	assert_int_equal(hf_poll_until(&none, 1, hf_mono_limit(-1)), 1);
	assert_int_equal(asked_ms, -1);
	assert_int_equal(hf_poll_until(&none, 1, hf_mono_in(INT64_MAX)), 1);
	assert_int_equal(asked_ms, -1);
	hf_sys = real_calls;
	assert_true(hf_mono_earlier(far, HF_MONO_NEVER).ns == far.ns);
	assert_true(hf_mono_earlier(far, deadline).ns == deadline.ns);
}

static void name_means_the_file_until_it_is_replaced(void **state)
{
	int dir = open(hf_test_path(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dir, "one", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	(void)state;
	assert_true(dir >= 0 && fd >= 0);
	assert_int_equal(hf_stat_at(fd, "", &st), 0);
	assert_int_equal(hf_is_named(dir, "one", &st), 1);
	assert_int_equal(symlinkat("one", dir, "link"), 0);
	assert_int_equal(hf_is_named(dir, "link", &st), 0);
	assert_int_equal(renameat(dir, "one", dir, "two"), 0);
	assert_int_equal(hf_is_named(dir, "one", &st), 0);
	assert_int_equal(hf_is_named(dir, "two", &st), 1);
	(void)close(openat(dir, "one", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(hf_is_named(dir, "one", &st), 0);
	(void)close(fd);
	(void)close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(mode_is_given_back_only_to_what_is_ours_and_of_that_kind),
		SYS_TEST(what_is_made_has_its_mode_whatever_the_umask),
		SYS_TEST(flock_is_had_at_once_after_waiting_or_not_in_time),
		SYS_TEST(replaced_file_is_old_or_new_whatever_fails),
		SYS_TEST(poll_ends_when_its_deadline_has_passed_and_not_before),
		SYS_TEST(name_means_the_file_until_it_is_replaced),
	};

	sys_test_begin();
	return hf_run_tests("replace", tests);
}
