/* unit/file/test_file_lock.c - locks of files: other tools, second holders, stale tokens, nested calls. */
#include <sys/file.h>

#include "helper/file_helper.h"

static void flock_of_another_tool_keeps_us_out_and_ours_keeps_it_out_L1(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_holder blocker = { 0 };
	struct hf_file *file = NULL;
	int fd;

	(void)state;
	put(in_work("f"), "old");
	fd = open(in_work(".f.lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_BUSY);
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_ERR(hf_file_lock(file, 50 * HF_MSEC, &blocker, ERR), HF_E_TIMEOUT);
	assert_int_equal(blocker.id.pid, getpid());
	assert_int_equal(hf_file_token(file), 0);
	assert_int_equal(hf_file_lock_fd(file), -1);
	/* The named lock was given back. */
	ASSERT_ERR(hf_lock_check_token(hf_locks_kind(locks, HF_LOCK_KIND_FILE), hf_file_lock_name(file), 0, ERR), HF_E_NOT_HELD);
	assert_int_equal(flock(fd, LOCK_UN), 0);
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

/* Of two readings the first goes on, the second ends the wait. */
static int go_on_once(void *arg)
{
	int *fd = arg;
	char byte;

	return read(*fd, &byte, 1) == 1 && byte == '1';
}

static void wait_for_a_flock_is_cancelled_and_names_its_holder(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_lock_opts fd_opts = { .size = sizeof(fd_opts), .wait_ns = -1 };
	struct hf_holder blocker = { 0 };
	struct hf_file *file = NULL;
	int fd, other, cancel[2];

	(void)state;
	put(in_work("f"), "old");
	fd = open(in_work(".f.lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	other = open(in_work(".f.lock"), O_RDWR | O_CLOEXEC);
	ASSERT_OK(hf_lock_fd(fd, NULL, NULL, ERR));
	assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
	assert_int_equal(write(cancel[1], "1212", 4), 4);
	opts.cancel_fd = fd_opts.cancel_fd = cancel[0];
	opts.go_on = fd_opts.go_on = go_on_once;
	opts.go_on_arg = fd_opts.go_on_arg = &cancel[0];
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_ERR(hf_file_lock(file, -1, &blocker, ERR), HF_E_CANCELLED);
	assert_int_equal(hf_file_token(file), 0);
	ASSERT_ERR(hf_lock_check_token(hf_locks_kind(locks, HF_LOCK_KIND_FILE), hf_file_lock_name(file), 0, ERR), HF_E_NOT_HELD);
	ASSERT_OK(hf_file_close(file, ERR));
	ASSERT_ERR(hf_lock_fd(other, &fd_opts, &blocker, ERR), HF_E_CANCELLED);
	ASSERT_ERR(hf_lock_fd(other, NULL, &blocker, ERR), HF_E_BUSY);
	assert_int_equal(blocker.id.pid, getpid());
	fd_opts.wait_ns = 20 * HF_MSEC;
	ASSERT_ERR(hf_lock_fd(other, &fd_opts, NULL, ERR), HF_E_TIMEOUT);
	fd_opts.ttl_ns = HF_SEC;
	ASSERT_ERR(hf_lock_fd(other, &fd_opts, NULL, ERR), -EINVAL);
	close(fd);
	fd_opts.ttl_ns = 0;
	fd_opts.mode = HF_LOCK_SHARED;
	ASSERT_OK(hf_lock_fd(other, &fd_opts, NULL, ERR));
	close(other);
	close(cancel[0]);
	close(cancel[1]);
	opts.cancel_fd = -1;
	ASSERT_ERR(hf_file_open(locks, in_work("f"), &opts, &file, ERR), -EINVAL);
}

static void second_holder_of_the_same_file_is_refused_L1(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;

	(void)state;
	put(in_work("f"), "old");
	put(in_work("g"), "old");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	ASSERT_ERR(lock_once(in_work("./f")), HF_E_DEADLOCK);
	ASSERT_OK(lock_once(in_work("g")));
	ASSERT_OK(hf_file_close(file, ERR));
	ASSERT_OK(lock_once(in_work("f")));
}

static void stale_token_is_refused_at_the_rename_L5(void **state)
{
	struct hf_lock_opts lock_opts = { .size = sizeof(lock_opts) };
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	struct hf_lock *fence;

	(void)state;
	put(in_work("f"), "old");
	/* Its own lock is broken between reading and writing. */
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	assert_int_equal(hf_lock_break(hf_locks_kind(locks, HF_LOCK_KIND_FILE), hf_file_lock_name(file), "test", ERR), 1);
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_STALE);
	ASSERT_ERR(hf_file_close(file, ERR), HF_E_STALE);
	/* The fence is lost. */
	ASSERT_OK(hf_lock_acquire(locks, "build", &lock_opts, &fence, NULL, ERR));
	opts.fence_name = "build";
	opts.fence_token = hf_lock_token(fence);
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	assert_int_equal(hf_lock_break(locks, "build", "test", ERR), 1);
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_STALE);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("f")), "old");
	assert_int_equal(entries(".f."), 0);
	/* And from the start. */
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_STALE);
	/* The token of a lock of that name, but of another kind, proves nothing. */
	hf_lock_free(fence);
	ASSERT_OK(hf_lock_acquire(hf_locks_kind(locks, HF_LOCK_KIND_GROUP), "build", &lock_opts, &fence,
				  NULL, ERR));
	opts.fence_token = hf_lock_token(fence);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_STALE);
	ASSERT_OK(hf_lock_release(fence, ERR));
	hf_lock_free(fence);
	ASSERT_OK(hf_lock_acquire(locks, "build", &lock_opts, &fence, NULL, ERR));
	opts.fence_token = hf_lock_token(fence);
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	ASSERT_OK(hf_lock_release(fence, ERR));
	hf_lock_free(fence);
	/* A kind that sorts the other way, so both orders of the guards are taken. */
	ASSERT_OK(hf_lock_acquire(hf_locks_kind(locks, HF_LOCK_KIND_PLAN), "zzz", &lock_opts, &fence,
				  NULL, ERR));
	opts.fence_name = "zzz";
	opts.fence_kind = HF_LOCK_KIND_PLAN;
	opts.fence_token = hf_lock_token(fence);
	assert_int_equal(edit(in_work("f"), &opts, "newer"), 1);
	ASSERT_OK(hf_lock_release(fence, ERR));
	hf_lock_free(fence);
}

static void process_that_works_under_the_lock_already_is_let_in(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *outer, *inner;
	int new, old;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &outer, ERR));
	ASSERT_OK(hf_file_lock(outer, 0, NULL, ERR));
	opts.held_name = hf_file_lock_name(outer);
	opts.held_token = hf_file_token(outer);
	opts.fence_name = opts.held_name; /* --fenced inside "file with" */
	opts.fence_kind = HF_LOCK_KIND_FILE;
	opts.fence_token = opts.held_token;
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &inner, ERR));
	ASSERT_OK(hf_file_lock(inner, 0, NULL, ERR));
	assert_int_equal(hf_file_token(inner), hf_file_token(outer));
	ASSERT_OK(hf_file_read(inner, &old, ERR));
	ASSERT_OK(hf_file_write(inner, &new, ERR));
	assert_int_equal(write(new, "new", 3), 3);
	assert_int_equal(hf_file_commit(inner, ERR), 1);
	ASSERT_OK(hf_file_close(inner, ERR));
	/* It was borrowed: the outer one has it still. */
	ASSERT_OK(hf_lock_check_token(hf_locks_kind(locks, HF_LOCK_KIND_FILE), hf_file_lock_name(outer), hf_file_token(outer), ERR));
	ASSERT_OK(hf_file_close(outer, ERR));
	/* A token that is no longer current opens nothing, and is no obstacle. */
	opts.fence_name = NULL;
	opts.held_name = "0:0:f";
	assert_int_equal(edit(in_work("f"), &opts, "newer"), 1);
}

static void without_the_lock_it_is_as_atomic_L9(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int old, new;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_OK(hf_file_read(file, &old, ERR));
	ASSERT_OK(hf_file_write(file, &new, ERR));
	assert_int_equal(write(new, "new", 3), 3);
	/* One that has the lock comes in between: it leaves our temporary file alone. */
	assert_int_equal(edit(in_work("f"), &opts, "theirs"), 1);
	assert_int_equal(entries(".f.holdfast"), 1);
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_CHANGED);
	ASSERT_OK(hf_file_read(file, &old, ERR));
	ASSERT_OK(hf_file_write(file, &new, ERR));
	assert_int_equal(write(new, "new", 3), 3);
	assert_int_equal(hf_file_commit(file, ERR), 1);
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("f")), "new");
	assert_int_equal(entries(".f.holdfast"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(flock_of_another_tool_keeps_us_out_and_ours_keeps_it_out_L1),
		FILE_TEST(wait_for_a_flock_is_cancelled_and_names_its_holder),
		FILE_TEST(second_holder_of_the_same_file_is_refused_L1),
		FILE_TEST(stale_token_is_refused_at_the_rename_L5),
		FILE_TEST(process_that_works_under_the_lock_already_is_let_in),
		FILE_TEST(without_the_lock_it_is_as_atomic_L9),
	};

	return hf_run_tests("file_lock", tests);
}
