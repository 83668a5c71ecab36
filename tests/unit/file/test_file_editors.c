/*
 * unit/file/test_file_editors.c - processes that save the file without its lock, during a commit.
 *
 * Whatever an editor saves, at whatever moment, is in the file afterwards or kept beside it (L9).
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "helper/file_helper.h"
#include "hf/sys/calls.h"

static struct hf_sys real;
static int n_exchanges;

static void keep_calls(void)
{
	real = hf_sys;
	n_exchanges = 0;
}

static int is_exchange(const char *to, unsigned flags)
{
	return flags == RENAME_EXCHANGE && strcmp(to, "f") == 0;
}

/* -- editors that save by rename --------------------------------------------------- */

/* Saves before the exchange, and again before what it saved first is brought back. */
static int editor_that_saves_twice(int fromfd, const char *from, int tofd, const char *to,
				   unsigned flags)
{
	if (is_exchange(to, flags)) {
		n_exchanges++;
		if (n_exchanges == 1)
			put_anew(in_work("f"), "first save");
		if (n_exchanges == 2)
			put_anew(in_work("f"), "second save");
	}
	return renameat2(fromfd, from, tofd, to, flags);
}

static void second_save_during_the_put_back_stands_and_the_first_is_kept_L9(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int r;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	keep_calls();
	hf_sys.renameat2 = editor_that_saves_twice;
	r = hf_file_commit(file, ERR);
	hf_sys = real;
	ASSERT_ERR(r, HF_E_CHANGED);
	assert_string_equal(get(in_work("f")), "second save");
	assert_string_equal(get(in_work("f.~c~")), "first save");
	assert_string_equal(hf_file_kept(file), "f.~c~");
	assert_int_equal(events(HF_EV_FILE_KEPT), 1);
	assert_int_equal(entries(".f."), 0);
	ASSERT_OK(hf_file_close(file, ERR));
	/* A second one does not take the first one's name. */
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	n_exchanges = 0;
	hf_sys.renameat2 = editor_that_saves_twice;
	r = hf_file_commit(file, ERR);
	hf_sys = real;
	ASSERT_ERR(r, HF_E_CHANGED);
	assert_string_equal(get(in_work("f.~c~")), "first save");
	assert_string_equal(get(in_work("f.~c2~")), "first save");
	ASSERT_OK(hf_file_close(file, ERR));
}

static int die_after; /* this exchange */

/* Saves before the first exchange; the process is killed after exchange number `die_after`. */
static int editor_and_a_kill(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	int r, exchange = is_exchange(to, flags);

	if (exchange && n_exchanges++ == 0)
		put_anew(in_work("f"), "editor");
	r = renameat2(fromfd, from, tofd, to, flags);
	if (exchange && n_exchanges == die_after)
		(void)raise(SIGKILL);
	return r;
}

static void commit_in_a_child_that_is_killed(void)
{
	struct hf_file_opts opts = { .size = sizeof(opts) };
	struct hf_file *file = NULL;
	struct hf_state *own_state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (hf_state_open(hf_test_path("state"), 0, &own_state, NULL) < 0 ||
		    hf_locks_open(own_state, NULL, &locks, NULL) < 0 ||
		    edit_up_to_commit(in_work("f"), &opts, "new", &file) < 0)
			_exit(2);
		n_exchanges = 0;
		hf_sys.renameat2 = editor_and_a_kill;
		(void)!hf_file_commit(file, NULL);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static void kill_around_the_put_back_does_not_lose_the_editors_version_L9(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int old;

	(void)state;
	for (die_after = 1; die_after <= 2; die_after++) {
		put_anew(in_work("f"), "old");
		commit_in_a_child_that_is_killed();
		assert_string_equal(get(in_work("f")), die_after == 1 ? "new" : "editor");
		ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
		ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
		ASSERT_OK(hf_file_read(file, &old, ERR));
		assert_string_equal(get(in_work("f")), "editor");
		assert_int_equal(entries(".f.holdfast"), 0);
		assert_int_equal(entries("f.~"), 0);
		ASSERT_OK(hf_file_close(file, ERR));
	}
	/* A later save stands there by now: both stay. */
	die_after = 1;
	put_anew(in_work("f"), "old");
	commit_in_a_child_that_is_killed();
	put_anew(in_work("f"), "later");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	ASSERT_OK(hf_file_read(file, &old, ERR));
	assert_string_equal(get(in_work("f")), "later");
	assert_string_equal(get(in_work("f.~c~")), "editor");
	assert_int_equal(entries(".f.holdfast"), 0);
	assert_int_equal(events(HF_EV_FILE_KEPT), 1);
	ASSERT_OK(hf_file_close(file, ERR));
}

static void living_process_in_mid_commit_is_left_alone(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_proc_id self;
	char id[HF_PROC_TEXT_MAX], intent[400];

	(void)state;
	put(in_work("f"), "old");
	/* One that went on without the lock: what has the temporary name is not flocked. */
	put(in_work(".f.holdfast-0.tmp"), "what it took out");
	ASSERT_OK(hf_proc_identify(getppid(), &self, ERR));
	hf_proc_format(&self, id);
	snprintf(intent, sizeof(intent), "holdfast-1 %s 1 2 3 4 5 6 7 8", id);
	assert_int_equal(symlink(intent, in_work(".f.holdfast-0-swap.tmp")), 0);
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_string_equal(get(in_work(".f.holdfast-0.tmp")), "what it took out");
	assert_int_equal(entries(".f.holdfast-0"), 2);
	/* An intent that says nothing proves nothing: kept. */
	assert_int_equal(unlink(in_work(".f.holdfast-0-swap.tmp")), 0);
	assert_int_equal(symlink("/etc/passwd", in_work(".f.holdfast-0-swap.tmp")), 0);
	assert_int_equal(edit(in_work("f"), &opts, "newer"), 1);
	assert_string_equal(get(in_work("f.~c~")), "what it took out");
	assert_int_equal(entries(".f.holdfast"), 0);
}

static int link_of_a_file_that_was_replaced(int fromfd, const char *from, int tofd, const char *to,
					    int flags)
{
	(void)fromfd, (void)from, (void)tofd, (void)to, (void)flags;
	errno = ENOENT;
	return -1;
}

static void backup_beside_an_editor_that_renames_is_tried_again(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	int r;

	(void)state;
	opts.backups = 1;
	put(in_work("f"), "old");
	keep_calls();
	hf_sys.linkat = link_of_a_file_that_was_replaced;
	r = edit(in_work("f"), &opts, "new");
	hf_sys = real;
	ASSERT_ERR(r, HF_E_CHANGED);
}

/* -- editors that save in place ----------------------------------------------------- */

static int n_missing; /* looks at the file between the two steps of an editor's save */

static int missing_for_a_moment(int dirfd, const char *path, struct stat *st, int flags)
{
	if (strcmp(path, "f") == 0 && n_missing > 0) {
		n_missing--;
		errno = ENOENT;
		return -1;
	}
	return real.fstatat(dirfd, path, st, flags);
}

static void editor_that_renames_to_a_backup_first_is_no_missing_file(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int r;

	(void)state;
	put(in_work("f"), "old");
	keep_calls();
	hf_sys.fstatat = missing_for_a_moment;
	n_missing = 2;
	r = edit_up_to_commit(in_work("f"), &opts, "new", &file);
	hf_sys = real;
	ASSERT_OK(r);
	assert_int_equal(n_missing, 0);
	ASSERT_OK(hf_file_commit(file, ERR));
	assert_string_equal(get(in_work("f")), "new");
	ASSERT_OK(hf_file_close(file, ERR));
}

static void commit_waits_for_a_process_that_has_the_file_open_for_writing(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	int fd;

	(void)state;
	opts.writer_wait_ns = 100 * HF_MSEC;
	put(in_work("f"), "old");
	fd = open(in_work("f"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_CHANGED);
	assert_non_null(strstr(ERR->detail, "open for writing"));
	assert_string_equal(get(in_work("f")), "old");
	assert_int_equal(entries(".f."), 0);
	close(fd);
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
}

static void *save_in_place(void *arg)
{
	(void)arg;
	put(in_work("f"), "saved in place");
	return NULL;
}

static pthread_t editor;

/* Between last look and exchange an editor begins to open the file, and waits for the lease. */
static int editor_that_opens(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct hf_mono limit = hf_mono_in(10 * HF_SEC);

	if (!is_exchange(to, flags) || n_exchanges++ > 0)
		return renameat2(fromfd, from, tofd, to, flags);
	assert_int_equal(pthread_create(&editor, NULL, save_in_place, NULL), 0);
	/* The lease is our only one: look for a descriptor whose lease is asked back. */
	while (hf_mono_left(limit) > 0) {
		for (int fd = 3; fd < 64; fd++) {
			if (fcntl(fd, F_GETLEASE) == F_UNLCK && fcntl(fd, F_GETSIG) == SIGURG)
				return renameat2(fromfd, from, tofd, to, flags);
		}
		hf_pause(HF_MSEC);
	}
	fail_msg("the editor did not come");
	return -1;
}

static void save_in_place_that_begins_during_the_exchange_stands_L9(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int r;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
	if (fcntl(hf_file_new_fd(file), F_SETLEASE, F_RDLCK) < 0 && errno != EAGAIN) {
		ASSERT_OK(hf_file_close(file, ERR));
		skip(); /* no leases here */
	}
	keep_calls();
	hf_sys.renameat2 = editor_that_opens;
	r = hf_file_commit(file, ERR);
	hf_sys = real;
	assert_int_equal(pthread_join(editor, NULL), 0);
	ASSERT_ERR(r, HF_E_CHANGED);
	assert_string_equal(get(in_work("f")), "saved in place");
	assert_int_equal(entries(".f."), 0);
	ASSERT_OK(hf_file_close(file, ERR));
}

/* -- trying again -------------------------------------------------------------------- */

struct making {
	int calls, saves;
};

static int append_x(void *arg, struct hf_file *file, struct hf_err *err)
{
	struct making *making = arg;
	char text[200] = "";
	int old, new, r = hf_file_read(file, &old, err);
	ssize_t n;

	if (r == 0)
		r = hf_file_write(file, &new, err);
	if (r < 0)
		return r;
	n = pread(old, text, sizeof(text) - 2, 0);
	assert_true(n >= 0);
	text[n] = 'x';
	assert_int_equal(hf_write_all(new, text, (size_t)n + 1), 0);
	making->calls++;
	if (making->saves-- > 0) {
		text[n] = 'e';
		put_anew(in_work("f"), text);
	}
	return 1;
}

static void update_reads_again_until_its_change_lands(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct making making = { .saves = 3 };
	struct hf_file *file = NULL;
	unsigned attempts = 0;

	(void)state;
	put(in_work("f"), "-");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	assert_int_equal(hf_file_update(file, append_x, &making, &attempts, ERR), 1);
	assert_string_equal(get(in_work("f")), "-eeex");
	assert_int_equal(attempts, 4);
	making = (struct making){ .saves = 1000 };
	ASSERT_ERR(hf_file_update(file, append_x, &making, &attempts, ERR), HF_E_CHANGED);
	assert_int_equal(attempts, HF_FILE_ATTEMPTS);
	assert_int_equal(making.calls, HF_FILE_ATTEMPTS);
	assert_int_equal(entries(".f."), 0);
	ASSERT_ERR(hf_file_update(file, NULL, NULL, NULL, ERR), -EINVAL);
	ASSERT_OK(hf_file_close(file, ERR));
}

static void edits_inside_one_with_take_turns_L1(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *outer = NULL, *one = NULL, *two = NULL;

	(void)state;
	put(in_work("f"), "old");
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &outer, ERR));
	ASSERT_OK(hf_file_lock(outer, 0, NULL, ERR));
	opts.held_name = hf_file_lock_name(outer);
	opts.held_token = hf_file_token(outer);
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &one, ERR));
	ASSERT_OK(hf_file_open(locks, in_work("f"), &opts, &two, ERR));
	ASSERT_OK(hf_file_lock(one, 0, NULL, ERR));
	assert_true(hf_file_lock(two, 0, NULL, ERR) < 0);
	ASSERT_OK(hf_file_close(one, ERR));
	ASSERT_OK(hf_file_lock(two, 0, NULL, ERR));
	ASSERT_OK(hf_file_close(two, ERR));
	ASSERT_OK(hf_file_close(outer, ERR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(second_save_during_the_put_back_stands_and_the_first_is_kept_L9),
		FILE_TEST(kill_around_the_put_back_does_not_lose_the_editors_version_L9),
		FILE_TEST(living_process_in_mid_commit_is_left_alone),
		FILE_TEST(backup_beside_an_editor_that_renames_is_tried_again),
		FILE_TEST(editor_that_renames_to_a_backup_first_is_no_missing_file),
		FILE_TEST(commit_waits_for_a_process_that_has_the_file_open_for_writing),
		FILE_TEST(save_in_place_that_begins_during_the_exchange_stands_L9),
		FILE_TEST(update_reads_again_until_its_change_lands),
		FILE_TEST(edits_inside_one_with_take_turns_L1),
	};

	return hf_run_tests("file_editors", tests);
}
