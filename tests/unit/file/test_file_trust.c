/* unit/file/test_file_trust.c - symlinks, hard links, other kinds of files, ways out of the root (L12). */
#include <sys/socket.h>
#include <sys/un.h>

#include "helper/file_helper.h"

/* -- what is refused ------------------------------------------------------------ */

static void other_kinds_are_refused_at_once_L12(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct hf_mono start = hf_mono_now();

	(void)state;
	assert_int_equal(mkdir(in_work("dir"), 0755), 0);
	assert_int_equal(mkfifo(in_work("fifo"), 0644), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", in_work("socket"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	ASSERT_ERR(edit(in_work("dir"), &opts, "x"), HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "a directory"));
	ASSERT_ERR(edit(in_work("fifo"), &opts, "x"), HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "a FIFO"));
	ASSERT_ERR(edit(in_work("socket"), &opts, "x"), HF_E_KIND);
	ASSERT_ERR(edit("/dev/null", &opts, "x"), HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "a device"));
	assert_true(hf_mono_now().ns - start.ns < HF_SEC);
	assert_int_equal(events(HF_EV_FILE_REFUSED), 4);
	assert_int_equal(entries("."), 2); /* "." and "..": no lock file was made */
}

static void symlink_is_refused_replaced_or_followed_inside_the_root_L12(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	char root[600];
	struct stat st;

	(void)state;
	snprintf(root, sizeof(root), "%s", in_work("in"));
	assert_int_equal(mkdir(root, 0755), 0);
	put(in_work("in/real"), "real");
	put(in_work("victim"), "victim");
	assert_int_equal(symlink("real", in_work("in/link")), 0);
	assert_int_equal(symlink("link", in_work("in/link2")), 0);
	assert_int_equal(symlink("../victim", in_work("in/out")), 0);
	assert_int_equal(symlink(in_work("victim"), in_work("in/abs")), 0);
	assert_int_equal(symlink("loop", in_work("in/loop")), 0);
	ASSERT_ERR(edit(in_work("in/link"), &opts, "new"), HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "--replace-symlink"));
	opts.flags = HF_FILE_FOLLOW;
	/* Without a root: in its own directory. */
	assert_int_equal(edit(in_work("in/link"), &opts, "in its directory"), 1);
	assert_string_equal(get(in_work("in/real")), "in its directory");
	ASSERT_ERR(edit(in_work("in/out"), &opts, "new"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("in/abs"), &opts, "new"), HF_E_OUTSIDE);
	opts.root = root;
	assert_int_equal(edit(in_work("in/link2"), &opts, "new"), 1);
	assert_string_equal(get(in_work("in/real")), "new");
	assert_int_equal(lstat(in_work("in/link2"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	ASSERT_ERR(edit(in_work("in/out"), &opts, "new"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("in/abs"), &opts, "new"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("in/loop"), &opts, "new"), -ELOOP);
	/* Replaced: the entry; what it pointed to is not even read. */
	opts.flags = HF_FILE_REPLACE_SYMLINK;
	assert_int_equal(edit(in_work("in/out"), &opts, "new"), 1);
	assert_int_equal(lstat(in_work("in/out"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_string_equal(get(in_work("victim")), "victim");
}

static void followed_link_and_its_target_share_the_lock(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_FOLLOW);
	struct hf_file *direct, *linked;
	char root[600];

	(void)state;
	snprintf(root, sizeof(root), "%s", hf_test_path("work"));
	opts.root = root;
	put(in_work("real"), "");
	assert_int_equal(symlink("real", in_work("link")), 0);
	ASSERT_OK(hf_file_open(locks, in_work("real"), &opts, &direct, ERR));
	ASSERT_OK(hf_file_open(locks, in_work("link"), &opts, &linked, ERR));
	assert_string_equal(hf_file_lock_name(direct), hf_file_lock_name(linked));
	ASSERT_OK(hf_file_close(direct, ERR));
	ASSERT_OK(hf_file_close(linked, ERR));
}

static void escapes_from_the_root_are_refused_L12(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	char root[600];

	(void)state;
	snprintf(root, sizeof(root), "%s", in_work("in"));
	opts.root = root;
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(mkdir(in_work("in/deep"), 0755), 0);
	assert_int_equal(mkdir(in_work("inside-not"), 0755), 0);
	assert_int_equal(symlink("../inside-not", in_work("in/way-out")), 0);
	assert_int_equal(symlink("in", in_work("way-in")), 0);
	ASSERT_ERR(edit(in_work("in/../f"), &opts, "x"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("in/way-out/f"), &opts, "x"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("inside-not/f"), &opts, "x"), HF_E_OUTSIDE);
	ASSERT_ERR(edit(in_work("in/way-out/../f"), &opts, "x"), HF_E_OUTSIDE);
	assert_int_equal(entries("f"), 0);
	assert_int_equal(events(HF_EV_FILE_REFUSED), 4);
	assert_int_equal(edit(in_work("in/deep/../f"), &opts, "x"), 1);
	assert_int_equal(edit(in_work("in/deep/f"), &opts, "x"), 1);
	assert_int_equal(edit(in_work("way-in/g"), &opts, "x"), 1);
	opts.root = "/";
	assert_int_equal(edit(in_work("f"), &opts, "x"), 1);
}

static void hard_links_are_refused_or_broken_on_purpose(void **state)
{
	struct hf_file_opts opts = file_opts(0);

	(void)state;
	put(in_work("f"), "old");
	assert_int_equal(link(in_work("f"), in_work("g")), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_KIND);
	assert_non_null(strstr(ERR->detail, "2 names"));
	opts.flags = HF_FILE_BREAK_LINKS;
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_string_equal(get(in_work("f")), "new");
	assert_string_equal(get(in_work("g")), "old");
}

/* -- the locks ------------------------------------------------------------------ */

static void lock_file_that_is_none_is_refused_L12(void **state)
{
	struct hf_file_opts opts = file_opts(0);

	(void)state;
	put(in_work("f"), "old");
	put(in_work("elsewhere"), "");
	assert_int_equal(symlink("elsewhere", in_work(".f.lock")), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_UNTRUSTED);
	unlink(in_work(".f.lock"));
	assert_int_equal(mkfifo(in_work(".f.lock"), 0600), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_UNTRUSTED);
	unlink(in_work(".f.lock"));
	assert_int_equal(mkdir(in_work(".f.lock"), 0700), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_UNTRUSTED);
	rmdir(in_work(".f.lock"));
	assert_int_equal(link(in_work("elsewhere"), in_work(".f.lock")), 0);
	ASSERT_ERR(edit(in_work("f"), &opts, "new"), HF_E_UNTRUSTED);
	unlink(in_work(".f.lock"));
	assert_int_equal(events(HF_EV_FILE_REFUSED), 4);
	/* Nothing stayed locked. */
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(other_kinds_are_refused_at_once_L12),
		FILE_TEST(symlink_is_refused_replaced_or_followed_inside_the_root_L12),
		FILE_TEST(followed_link_and_its_target_share_the_lock),
		FILE_TEST(escapes_from_the_root_are_refused_L12),
		FILE_TEST(hard_links_are_refused_or_broken_on_purpose),
		FILE_TEST(lock_file_that_is_none_is_refused_L12),
	};

	return hf_run_tests("file_trust", tests);
}
