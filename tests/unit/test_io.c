/* tests/unit/test_io.c - opening what is ours, whole reads and whole writes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "holdfast/clock.h"
#include "hf/sys/calls.h"
#include "hf/sys/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/poll.h"
#include "hf/sys/replace.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOBODY       65534

/* The calls as they were, put back even behind a test that failed in the middle. */
static struct hf_sys real_calls;

static int teardown(void **state)
{
	alarm(0);
	hf_fault_disarm();
	hf_sys = real_calls;
	return hf_test_teardown(state);
}

#define TEST(fn) { #fn, fn, hf_test_setup, teardown, NULL }

static void make_file(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int open_private(const char *path, int flags, int *fd)
{
	return hf_open_private(AT_FDCWD, path, flags, path, fd, NULL, ERR);
}

/* Refused in every way of opening, without a descriptor and without waiting. */
static void refuse_private(const char *path)
{
	static const int ways[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT };

	/* A hang would be a failure that never ends: this makes it one that does. */
	alarm(30);
	for (size_t i = 0; i < COUNT(ways); i++) {
		int fd = -77;

		memset(ERR, 0, sizeof(*ERR));
		ASSERT_ERR(open_private(path, ways[i], &fd), HF_E_UNTRUSTED);
		assert_int_equal(fd, -77);
		assert_int_equal(ERR->code, HF_E_UNTRUSTED);
		assert_string_not_equal(ERR->detail, "");
	}
	alarm(0);
}

static void accept_private(const char *path, int flags)
{
	struct stat st = { 0 }, real;
	int fd = -1;

	ASSERT_OK(hf_open_private(AT_FDCWD, path, flags, path, &fd, &st, ERR));
	assert_int_equal(fstat(fd, &real), 0);
	assert_int_equal(st.st_ino, real.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

/* -- what is ours --------------------------------------------------------- */

static void own_closed_file_is_opened(void **state)
{
	static const mode_t modes[] = { 0600, 0400, 0700 };
	char leaf[16];

	(void)state;
	for (size_t i = 0; i < COUNT(modes); i++) {
		snprintf(leaf, sizeof(leaf), "m%o", (unsigned)modes[i]);
		make_file(hf_test_path(leaf), "x", modes[i]);
		accept_private(hf_test_path(leaf), O_RDONLY);
	}
}

static void missing_file_is_enoent_or_made_0600(void **state)
{
	const char *path = hf_test_path("new");
	mode_t before = umask(0);
	struct stat st;
	int fd = -1;

	(void)state;
	ASSERT_ERR(open_private(path, O_RDWR, &fd), -ENOENT);
	assert_int_equal(fd, -1);
	accept_private(path, O_RDWR | O_CREAT);
	umask(before);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
}

static void symlink_is_refused_L12(void **state)
{
	(void)state;
	make_file(hf_test_path("target"), "x", 0600);
	assert_int_equal(symlink(hf_test_path("target"), hf_test_path("link")), 0);
	refuse_private(hf_test_path("link"));
}

static void dangling_symlink_makes_nothing_L12(void **state)
{
	(void)state;
	assert_int_equal(symlink(hf_test_path("target"), hf_test_path("link")), 0);
	refuse_private(hf_test_path("link"));
	assert_int_equal(access(hf_test_path("target"), F_OK), -1);
}

static void fifo_is_refused_and_does_not_block_L12(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(hf_test_path("fifo"), 0600), 0);
	refuse_private(hf_test_path("fifo"));
}

static void directory_is_refused_L12(void **state)
{
	int fd = -77;

	(void)state;
	assert_int_equal(mkdir(hf_test_path("dir"), 0700), 0);
	ASSERT_ERR(open_private(hf_test_path("dir"), O_RDONLY, &fd), HF_E_UNTRUSTED);
	ASSERT_ERR(open_private(hf_test_path("dir"), O_RDWR, &fd), HF_E_UNTRUSTED);
	assert_int_equal(fd, -77);
}

static void socket_is_refused_L12(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(sock >= 0);
	assert_true(strlen(hf_test_path("sock")) < sizeof(at.sun_path));
	memcpy(at.sun_path, hf_test_path("sock"), strlen(hf_test_path("sock")));
	assert_int_equal(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(chmod(hf_test_path("sock"), 0600), 0);
	refuse_private(hf_test_path("sock"));
	close(sock);
}

static void device_is_refused_L12(void **state)
{
	(void)state;
	/* The device of /dev/null, with a private mode, so that only its type speaks against it. */
	if (mknod(hf_test_path("null"), S_IFCHR | 0600, makedev(1, 3)) < 0)
		HF_SKIP("may not make device nodes");
	refuse_private(hf_test_path("null"));
}

static void file_open_to_others_is_refused_L12(void **state)
{
	static const mode_t modes[] = { 0644, 0640, 0604, 0620, 0602, 0610, 0601, 0666, 0777 };

	(void)state;
	make_file(hf_test_path("file"), "x", 0600);
	for (size_t i = 0; i < COUNT(modes); i++) {
		assert_int_equal(chmod(hf_test_path("file"), modes[i]), 0);
		refuse_private(hf_test_path("file"));
	}
	assert_int_equal(chmod(hf_test_path("file"), 0600), 0);
	accept_private(hf_test_path("file"), O_RDWR);
}

static void file_with_two_names_is_refused_L12(void **state)
{
	(void)state;
	make_file(hf_test_path("file"), "x", 0600);
	assert_int_equal(link(hf_test_path("file"), hf_test_path("second")), 0);
	refuse_private(hf_test_path("file"));
	refuse_private(hf_test_path("second"));
	assert_int_equal(unlink(hf_test_path("second")), 0);
	accept_private(hf_test_path("file"), O_RDWR);
}

static void foreign_file_is_refused_L12(void **state)
{
	(void)state;
	if (geteuid() != 0)
		HF_SKIP("only root can give a file away");
	make_file(hf_test_path("file"), "x", 0600);
	assert_int_equal(chown(hf_test_path("file"), NOBODY, NOBODY), 0);
	refuse_private(hf_test_path("file"));
}

/* Also without being root: what fstat tells is what counts. */
static void private_means_all_four_conditions(void **state)
{
	const struct stat good = { .st_mode = S_IFREG | 0600, .st_uid = geteuid(), .st_nlink = 1 };
	static const mode_t types[] = { S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK };
	struct stat st;

	(void)state;
	ASSERT_OK(hf_check_private(&good, "x", ERR));
	for (size_t i = 0; i < COUNT(types); i++) {
		st = good;
		st.st_mode = types[i] | 0600;
		ASSERT_ERR(hf_check_private(&st, "x", ERR), HF_E_UNTRUSTED);
	}
	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		st = good;
		st.st_mode |= bit;
		ASSERT_ERR(hf_check_private(&st, "x", ERR), HF_E_UNTRUSTED);
	}
	st = good;
	st.st_uid++;
	ASSERT_ERR(hf_check_private(&st, "x", ERR), HF_E_UNTRUSTED);
	st = good;
	st.st_nlink = 2;
	ASSERT_ERR(hf_check_private(&st, "x", ERR), HF_E_UNTRUSTED);
	/* Deleted while open: still ours. */
	st.st_nlink = 0;
	ASSERT_OK(hf_check_private(&st, "x", ERR));
}

static void failing_open_leaks_no_descriptor(void **state)
{
	const char *path = hf_test_path("file");
	int before, n;

	(void)state;
	make_file(path, "x", 0600);
	before = hf_test_fd_count();
	for (n = 1; n < 20; n++) {
		int fd = -1, r;

		hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO });
		r = open_private(path, O_RDONLY, &fd);
		hf_fault_disarm();
		if (!hf_fault_hit()) {
			ASSERT_OK(r);
			close(fd);
			break;
		}
		ASSERT_ERR(r, -EIO);
		assert_int_equal(fd, -1);
		assert_int_equal(hf_test_fd_count(), before);
	}
	/* openat and fstat, at least: or nothing was tried. */
	assert_in_range(n, 3, 19);
}

/* -- out of the way of stdio -------------------------------------------------- */

/* In a child: stdio closed in all eight combinations. 0 when all is well. */
static int open_with_stdio_closed(unsigned closed)
{
	int fd, private = -1;

	for (int i = 0; i < 3; i++)
		if (closed & 1u << i)
			close(i);
		else if (fcntl(i, F_GETFD) < 0)
			return 10;
	fd = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	if (fd <= 2 || fcntl(fd, F_GETFD) != FD_CLOEXEC)
		return 11;
	if (hf_open_private(AT_FDCWD, hf_test_path("file"), O_RDONLY, "f", &private, NULL, NULL) <
		    0 ||
	    private <= 2)
		return 12;
	for (int i = 0; i < 3; i++)
		if (closed & 1u << i && fcntl(i, F_GETFD) >= 0)
			return 13;
	return 0;
}

static void no_descriptor_takes_the_place_of_stdio(void **state)
{
	(void)state;
	make_file(hf_test_path("file"), "x", 0600);
	for (unsigned closed = 0; closed < 8; closed++) {
		pid_t child = fork();
		int status = -1;

		assert_true(child >= 0);
		if (child == 0)
			_exit(open_with_stdio_closed(closed));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

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
	make_file(hf_test_path("full"), "0123456789", 0600);
	make_file(hf_test_path("empty"), "", 0600);
	check_read_file(hf_test_path("full"), "0123456789");
	check_read_file(hf_test_path("empty"), "");
	ASSERT_ERR(hf_read_file(AT_FDCWD, hf_test_path("none"), NULL, 0), -ENOENT);
}

static void short_reads_are_continued(void **state)
{
	char to[8];
	int fd;

	(void)state;
	make_file(hf_test_path("full"), "0123456789", 0600);
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
	make_file(hf_test_path("full"), "0123456789", 0600);
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
	make_file(hf_test_path("file"), "0123456789", 0600);
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
	make_file(hf_test_path("file"), "0123456789", 0600);
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

/* -- modes, flock, replacing -------------------------------------------------- */

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void mode_is_given_back_only_to_what_is_ours_and_of_that_kind(void **state)
{
	const char *file = hf_test_path("file");

	(void)state;
	make_file(file, "x", 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFDIR, 0700), 0);
	assert_int_equal(mode_of(file), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 1);
	assert_int_equal(mode_of(file), 0600);
	/* It has them: worth a second try, nothing to do. */
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 1);
	assert_int_equal(chmod(file, 0400), 0);
	/* A second name may be a trap: somebody else's choice of which file we open up. */
	assert_int_equal(link(file, hf_test_path("two")), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, file, S_IFREG, 0600), 0);
	assert_int_equal(symlink("file", hf_test_path("link")), 0);
	assert_int_equal(hf_mend_mode(AT_FDCWD, hf_test_path("link"), S_IFREG, 0600), 0);
	assert_int_equal(mode_of(file), 0400);
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
		assert_int_equal(mode_of(hf_test_path("new")), 0600);
		assert_int_equal(mode_of(hf_test_path("dir")), 0700);
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
	make_file(hf_test_path("f"), "", 0600);
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
	make_file(hf_test_path("f"), "old", 0600);
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
		make_file(hf_test_path("f"), "old", 0600);
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
		TEST(own_closed_file_is_opened),
		TEST(missing_file_is_enoent_or_made_0600),
		TEST(symlink_is_refused_L12),
		TEST(dangling_symlink_makes_nothing_L12),
		TEST(fifo_is_refused_and_does_not_block_L12),
		TEST(directory_is_refused_L12),
		TEST(socket_is_refused_L12),
		TEST(device_is_refused_L12),
		TEST(file_open_to_others_is_refused_L12),
		TEST(file_with_two_names_is_refused_L12),
		TEST(foreign_file_is_refused_L12),
		TEST(private_means_all_four_conditions),
		TEST(failing_open_leaks_no_descriptor),
		TEST(no_descriptor_takes_the_place_of_stdio),
		TEST(file_larger_than_the_buffer_is_e2big),
		TEST(short_reads_are_continued),
		TEST(failing_read_is_reported),
		TEST(short_writes_are_continued),
		TEST(half_written_record_is_counted),
		TEST(write_that_takes_nothing_is_an_error_not_a_loop),
		TEST(interrupted_open_is_tried_again),
		TEST(interrupted_read_is_tried_again),
		TEST(interrupted_pread_is_tried_again),
		TEST(interrupted_write_is_tried_again_from_where_it_was),
		TEST(directory_that_cannot_sync_counts_as_synced),
		TEST(interrupted_sync_of_a_directory_is_tried_again),
		TEST(pause_lasts_as_long_as_asked),
		TEST(mode_is_given_back_only_to_what_is_ours_and_of_that_kind),
		TEST(what_is_made_has_its_mode_whatever_the_umask),
		TEST(flock_is_had_at_once_after_waiting_or_not_in_time),
		TEST(replaced_file_is_old_or_new_whatever_fails),
		TEST(poll_ends_when_its_deadline_has_passed_and_not_before),
		TEST(name_means_the_file_until_it_is_replaced),
	};

	real_calls = hf_sys;
	return hf_run_tests("io", tests);
}
