/* unit/sys/test_io.c - whole reads, whole writes, interrupted calls. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/sys_helper.h"
#include "holdfast/clock.h"
#include "hf/sys/apart.h"
#include "hf/sys/io.h"

/* -- whole reads ---------------------------------------------------------- */

static ssize_t read_one(int fd, void *to, size_t len)
{
	return real_calls.read(fd, to, len > 1 ? 1 : len);
}

static ssize_t pread_one(int fd, void *to, size_t len, off_t at)
{
	return real_calls.pread(fd, to, len > 1 ? 1 : len, at);
}

static void check_read_file(const char *path, const char *content)
{
	const size_t len = strlen(content);
	char to[32];

	for (size_t cap = 0; cap < sizeof(to); cap++) {
		ssize_t n;

		memset(to, '#', sizeof(to));
		n = hf_read_file(AT_FDCWD, path, to, cap);
		ASSERT_ERR(n, cap < len ? -E2BIG : (ssize_t)len);
		assert_memory_equal(to, content, cap < len ? cap : len);
		assert_int_equal(to[cap < len ? cap : len], '#');
	}
}

static void file_larger_than_the_buffer_is_e2big(void **state)
{
	(void)state;
	make_file_of(hf_test_path("full"), "0123456789", 0600);
	make_file_of(hf_test_path("empty"), "", 0600);
	check_read_file(hf_test_path("full"), "0123456789");
	check_read_file(hf_test_path("empty"), "");
	ASSERT_ERR(hf_read_file(AT_FDCWD, hf_test_path("none"), NULL, 0), -ENOENT);
}

static void short_reads_are_continued(void **state)
{
	char to[8];
	int fd;

	(void)state;
	make_file_of(hf_test_path("full"), "0123456789", 0600);
	hf_sys.read = read_one;
	hf_sys.pread = pread_one;
	check_read_file(hf_test_path("full"), "0123456789");
	fd = hf_open_at(AT_FDCWD, hf_test_path("full"), O_RDONLY, 0);
	ASSERT_ERR(hf_pread_all(fd, to, 8, 1), 8);
	assert_memory_equal(to, "12345678", 8);
	hf_sys = real_calls;
	/* Fewer only at the end of the file. */
	ASSERT_ERR(hf_pread_all(fd, to, 8, 7), 3);
	assert_memory_equal(to, "789", 3);
	ASSERT_ERR(hf_pread_all(fd, to, 8, 10), 0);
	ASSERT_ERR(hf_pread_all(fd, to, 0, 0), 0);
	close(fd);
}

static void failing_read_is_reported(void **state)
{
	char to[16];
	int fd;

	(void)state;
	make_file_of(hf_test_path("full"), "0123456789", 0600);
	fd = hf_open_at(AT_FDCWD, hf_test_path("full"), O_RDONLY, 0);
	for (int at = 1; at <= 2; at++) {
		hf_fault_arm(&(struct hf_fault){ .call = "read", .at = at, .error = EIO });
		ASSERT_ERR(hf_read_all(fd, to, sizeof(to)), -EIO);
		hf_fault_disarm();
		assert_true(hf_fault_hit());
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	}
	hf_fault_arm(&(struct hf_fault){ .call = "pread", .at = 1, .error = EIO });
	ASSERT_ERR(hf_pread_all(fd, to, 4, 0), -EIO);
	hf_fault_disarm();
	ASSERT_ERR(hf_read_all(-1, to, sizeof(to)), -EBADF);
	close(fd);
}

/* -- whole writes --------------------------------------------------------- */

static ssize_t pwrite_three(int fd, const void *from, size_t len, off_t at)
{
	return real_calls.pwrite(fd, from, len > 3 ? 3 : len, at);
}

static ssize_t write_three(int fd, const void *from, size_t len)
{
	return real_calls.write(fd, from, len > 3 ? 3 : len);
}

static ssize_t pwrite_nothing(int fd, const void *from, size_t len, off_t at)
{
	(void)fd;
	(void)from;
	(void)len;
	(void)at;
	return 0;
}

static ssize_t write_nothing(int fd, const void *from, size_t len)
{
	return pwrite_nothing(fd, from, len, 0);
}

static int open_new(const char *leaf)
{
	int fd = hf_open_at(AT_FDCWD, hf_test_path(leaf), O_RDWR | O_CREAT | O_EXCL, 0600);

	ASSERT_OK(fd);
	return fd;
}

static void assert_content(int fd, const char *expected)
{
	char to[64];

	assert_int_equal(pread(fd, to, sizeof(to), 0), strlen(expected));
	assert_memory_equal(to, expected, strlen(expected));
}

static void short_writes_are_continued(void **state)
{
	int fd = open_new("file");
	size_t done = 77;

	(void)state;
	hf_sys.pwrite = pwrite_three;
	hf_sys.write = write_three;
	ASSERT_OK(hf_write_all(fd, "0123456789", 10));
	assert_content(fd, "0123456789");
	ASSERT_OK(hf_pwrite_all(fd, "abcdefgh", 8, 4, &done));
	hf_sys = real_calls;
	assert_int_equal(done, 8);
	assert_content(fd, "0123abcdefgh");
	ASSERT_OK(hf_pwrite_all(fd, "", 0, 0, &done));
	assert_int_equal(done, 0);
	close(fd);
}

/* A disk that fills up in mid-write: the caller learns how much must be taken back. */
static void half_written_record_is_counted(void **state)
{
	int fd = open_new("file");
	size_t done = 77;
	char to[16];

	(void)state;
	hf_fault_arm(&(struct hf_fault){
		.call = "pwrite", .at = 1, .error = ENOSPC, .short_write = 1 });
	ASSERT_ERR(hf_pwrite_all(fd, "0123456789", 10, 0, &done), -ENOSPC);
	hf_fault_disarm();
	assert_true(hf_fault_hit());
	assert_in_range(done, 1, 9);
	assert_int_equal(lseek(fd, 0, SEEK_END), done);
	assert_int_equal(pread(fd, to, sizeof(to), 0), done);
	assert_memory_equal(to, "0123456789", done);
	hf_fault_arm(&(struct hf_fault){ .call = "pwrite", .at = 1, .error = ENOSPC });
	ASSERT_ERR(hf_pwrite_all(fd, "0123456789", 10, 0, &done), -ENOSPC);
	hf_fault_disarm();
	assert_int_equal(done, 0);
	hf_fault_arm(&(struct hf_fault){
		.call = "write", .at = 1, .error = ENOSPC, .short_write = 1 });
	ASSERT_ERR(hf_write_all(fd, "0123456789", 10), -ENOSPC);
	hf_fault_disarm();
	close(fd);
}

static void write_that_takes_nothing_is_an_error_not_a_loop(void **state)
{
	int fd = open_new("file");
	size_t done = 77;

	(void)state;
	hf_sys.pwrite = pwrite_nothing;
	hf_sys.write = write_nothing;
	alarm(30);
	ASSERT_ERR(hf_pwrite_all(fd, "x", 1, 0, &done), -EIO);
	ASSERT_ERR(hf_write_all(fd, "x", 1), -EIO);
	alarm(0);
	hf_sys = real_calls;
	assert_int_equal(done, 0);
	close(fd);
}

/* -- signals -------------------------------------------------------------- */

static void arm_eintr(const char *call, int at)
{
	hf_fault_arm(&(struct hf_fault){ .call = call, .at = at, .error = EINTR });
}

static void assert_struck(void)
{
	hf_fault_disarm();
	assert_true(hf_fault_hit());
	/* Once interrupted and once more. */
	assert_true(hf_fault_count() >= 2);
}

static void interrupted_open_is_tried_again(void **state)
{
	int fd;

	(void)state;
	arm_eintr("openat", 1);
	fd = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	assert_struck();
	ASSERT_OK(fd);
	close(fd);
}

static void interrupted_read_is_tried_again(void **state)
{
	char to[16];

	(void)state;
	make_file_of(hf_test_path("file"), "0123456789", 0600);
	for (int at = 1; at <= 2; at++) {
		arm_eintr("read", at);
		ASSERT_ERR(hf_read_file(AT_FDCWD, hf_test_path("file"), to, sizeof(to)), 10);
		assert_struck();
		assert_memory_equal(to, "0123456789", 10);
	}
}

static void interrupted_pread_is_tried_again(void **state)
{
	char to[16];
	int fd;

	(void)state;
	make_file_of(hf_test_path("file"), "0123456789", 0600);
	fd = hf_open_at(AT_FDCWD, hf_test_path("file"), O_RDONLY, 0);
	arm_eintr("pread", 1);
	ASSERT_ERR(hf_pread_all(fd, to, 4, 2), 4);
	assert_struck();
	assert_memory_equal(to, "2345", 4);
	close(fd);
}

static void interrupted_write_is_tried_again_from_where_it_was(void **state)
{
	int fd = open_new("file");
	size_t done;

	(void)state;
	hf_fault_arm(&(struct hf_fault){
		.call = "pwrite", .at = 1, .error = EINTR, .short_write = 1 });
	ASSERT_OK(hf_pwrite_all(fd, "0123456789", 10, 0, &done));
	assert_struck();
	assert_int_equal(done, 10);
	assert_content(fd, "0123456789");
	hf_fault_arm(&(struct hf_fault){
		.call = "write", .at = 1, .error = EINTR, .short_write = 1 });
	ASSERT_OK(hf_write_all(fd, "abcdefghijkl", 12));
	assert_struck();
	assert_content(fd, "abcdefghijkl");
	close(fd);
}

/* -- directories and pauses --------------------------------------------------- */

static int sync_with(int error)
{
	int fd = open(hf_test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	assert_true(fd >= 0);
	if (error)
		hf_fault_arm(&(struct hf_fault){ .call = "fsync", .at = 1, .error = error });
	r = hf_sync_dir(fd);
	hf_fault_disarm();
	close(fd);
	return r;
}

static void directory_that_cannot_sync_counts_as_synced(void **state)
{
	(void)state;
	ASSERT_OK(sync_with(0));
	ASSERT_OK(sync_with(EINVAL));
	ASSERT_ERR(sync_with(EIO), -EIO);
	ASSERT_ERR(sync_with(ENOSPC), -ENOSPC);
}

/* io.h: all retry EINTR. FUSE and network file systems do interrupt fsync. */
static void interrupted_sync_of_a_directory_is_tried_again(void **state)
{
	(void)state;
	ASSERT_OK(sync_with(EINTR));
	assert_true(hf_fault_hit());
}

static void pause_lasts_as_long_as_asked(void **state)
{
	struct hf_mono before = hf_mono_now();

	(void)state;
	hf_pause(2 * HF_MSEC);
	assert_true(hf_mono_now().ns - before.ns >= 2 * HF_MSEC);
}

/* -- processes that go on by themselves -------------------------------------------- */

struct apart {
	int out;
	const char *program;
	volatile int reached;
};

static volatile sig_atomic_t handled;

static void note_signal(int sig)
{
	(void)sig;
	handled++;
}

static void run_program(void *arg)
{
	struct apart *apart = arg;

	apart->reached = 1;
	kill(getpid(), SIGUSR1); /* blocked: no handler of the caller's runs in its memory */
	if (apart->program)
		execl(apart->program, apart->program, (char *)NULL);
	_exit(7);
}

static void child_that_is_waited_for_executes_or_ends_and_leaves_its_maker_alone_L13(void **state)
{
	const struct sigaction action = { .sa_handler = note_signal };
	struct sigaction before;
	struct apart apart = { .program = "/bin/false" };
	sigset_t mask, after;
	pid_t pid;

	(void)state;
	sigaction(SIGUSR1, &action, &before);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	pid = hf_apart_run(run_program, &apart);
	assert_true(pid > 0);
	assert_int_equal(hf_apart_reap(pid), 1);
	apart = (struct apart){ .program = "/no/such/program" };
	pid = hf_apart_run(run_program, &apart);
	assert_true(pid > 0);
	assert_int_equal(hf_apart_reap(pid), 7);
	assert_int_equal(handled, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&mask, sig), sigismember(&after, sig));
	sigaction(SIGUSR1, &before, NULL);
}

static void tell_parent(void *arg)
{
	const struct apart *apart = arg;
	volatile char deep[256 * 1024]; /* its stack is a whole one */
	pid_t parent = getppid();

	for (size_t i = 0; i < sizeof(deep); i += 512)
		deep[i] = 1;
	(void)!write(apart->out, &parent, sizeof(parent));
	_exit(0);
}

static void process_that_is_started_is_no_child_of_its_maker_L13(void **state)
{
	struct apart apart = { 0 };
	int ends[2];
	pid_t parent = 0;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	apart.out = ends[1];
	assert_int_equal(hf_apart_start(tell_parent, &apart), 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &parent, sizeof(parent)), sizeof(parent));
	assert_int_not_equal(parent, getpid());
	assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(file_larger_than_the_buffer_is_e2big),
		SYS_TEST(short_reads_are_continued),
		SYS_TEST(failing_read_is_reported),
		SYS_TEST(short_writes_are_continued),
		SYS_TEST(half_written_record_is_counted),
		SYS_TEST(write_that_takes_nothing_is_an_error_not_a_loop),
		SYS_TEST(interrupted_open_is_tried_again),
		SYS_TEST(interrupted_read_is_tried_again),
		SYS_TEST(interrupted_pread_is_tried_again),
		SYS_TEST(interrupted_write_is_tried_again_from_where_it_was),
		SYS_TEST(directory_that_cannot_sync_counts_as_synced),
		SYS_TEST(interrupted_sync_of_a_directory_is_tried_again),
		SYS_TEST(pause_lasts_as_long_as_asked),
		SYS_TEST(child_that_is_waited_for_executes_or_ends_and_leaves_its_maker_alone_L13),
		SYS_TEST(process_that_is_started_is_no_child_of_its_maker_L13),
	};

	sys_test_begin();
	return hf_run_tests("io", tests);
}
