/* unit/sys/test_private.c - opening a file that is ours alone: every other kind is refused (L12). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/sys_helper.h"
#include "hf/sys/io.h"

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
		make_file_of(hf_test_path(leaf), "x", modes[i]);
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
	make_file_of(hf_test_path("target"), "x", 0600);
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
	make_file_of(hf_test_path("file"), "x", 0600);
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
	make_file_of(hf_test_path("file"), "x", 0600);
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
	make_file_of(hf_test_path("file"), "x", 0600);
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
	make_file_of(path, "x", 0600);
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
	make_file_of(hf_test_path("file"), "x", 0600);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYS_TEST(own_closed_file_is_opened),
		SYS_TEST(missing_file_is_enoent_or_made_0600),
		SYS_TEST(symlink_is_refused_L12),
		SYS_TEST(dangling_symlink_makes_nothing_L12),
		SYS_TEST(fifo_is_refused_and_does_not_block_L12),
		SYS_TEST(directory_is_refused_L12),
		SYS_TEST(socket_is_refused_L12),
		SYS_TEST(device_is_refused_L12),
		SYS_TEST(file_open_to_others_is_refused_L12),
		SYS_TEST(file_with_two_names_is_refused_L12),
		SYS_TEST(foreign_file_is_refused_L12),
		SYS_TEST(private_means_all_four_conditions),
		SYS_TEST(failing_open_leaks_no_descriptor),
		SYS_TEST(no_descriptor_takes_the_place_of_stdio),
	};

	sys_test_begin();
	return hf_run_tests("private", tests);
}
