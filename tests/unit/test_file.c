/*
 * unit/test_file.c - shared files: which lock, what is refused, what survives, who is noticed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
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
	struct hf_file_opts opts = file_opts(0);
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
	assert_int_equal(entries(".f"), 1);
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

/* -- somebody who does not lock ------------------------------------------------- */

enum change { IN_PLACE, SAME_SIZE, BY_RENAME, REMOVED, APPEARED, SYMLINKED };

static void change(enum change how)
{
	switch (how) {
	case IN_PLACE:
		put(in_work("f"), "changed by hand");
		break;
	case SAME_SIZE:
		put(in_work("f"), "OLD");
		break;
	case BY_RENAME:
	case APPEARED:
		put_anew(in_work("f"), "editor");
		break;
	case REMOVED:
		unlink(in_work("f"));
		break;
	case SYMLINKED:
		unlink(in_work("f"));
		assert_int_equal(symlink("victim", in_work("f")), 0);
		break;
	}
}

static void changes_since_reading_are_never_overwritten(void **state)
{
	static const char *const after[] = { [IN_PLACE] = "changed by hand", [SAME_SIZE] = "OLD",
					     [BY_RENAME] = "editor",	     [REMOVED] = "(none)",
					     [APPEARED] = "editor",	     [SYMLINKED] = "victim" };
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);

	(void)state;
	put(in_work("victim"), "victim");
	for (int how = IN_PLACE; how <= SYMLINKED; how++) {
		struct hf_file *file = NULL;

		unlink(in_work("f"));
		if (how != APPEARED)
			put(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		change((enum change)how);
		ASSERT_ERR(hf_file_commit(file, ERR), HF_E_CHANGED);
		assert_string_equal(get(in_work("f")), after[how]);
		assert_int_equal(entries(".f."), 1);
		ASSERT_OK(hf_file_close(file, ERR));
	}
	/* And the next attempt, which reads again, gets through. */
	unlink(in_work("f"));
	put(in_work("f"), "editor");
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
}

static enum change change_at_rename;
static int n_exchanges;

/* A file system without leases: with one, an editor that writes in place waits for the commit. */
static int no_lease(int fd, int type)
{
	(void)fd;
	(void)type;
	errno = EINVAL;
	return -1;
}

/* What an editor does between our last look and the rename. */
static int late_editor(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (n_exchanges++ == 0 && strcmp(to, "f") == 0)
		change(change_at_rename);
	return renameat2(fromfd, from, tofd, to, flags);
}

static void even_a_change_in_the_last_moment_is_put_back(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;
	static const enum change changes[] = { IN_PLACE, BY_RENAME, REMOVED, APPEARED };
	static const char *const after[] = { "changed by hand", "editor", "(none)", "editor" };

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct hf_file *file = NULL;
		int r;

		unlink(in_work("f"));
		if (changes[i] != APPEARED)
			put(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		n_exchanges = 0;
		change_at_rename = changes[i];
		hf_sys.renameat2 = late_editor;
		hf_sys.set_lease = no_lease;
		r = hf_file_commit(file, ERR);
		hf_sys = real;
		ASSERT_ERR(r, HF_E_CHANGED);
		assert_string_equal(get(in_work("f")), after[i]);
		assert_int_equal(entries(".f."), 1);
		ASSERT_OK(hf_file_close(file, ERR));
	}
}

static int no_exchange(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	if (flags) {
		errno = EINVAL;
		return -1;
	}
	return renameat2(fromfd, from, tofd, to, flags);
}

static void file_systems_without_exchange_work_as_well(void **state)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_sys real = hf_sys;
	struct hf_file *file = NULL;

	(void)state;
	opts.backups = 1;
	hf_sys.renameat2 = no_exchange;
	assert_int_equal(edit(in_work("f"), &opts, "one"), 1);
	assert_int_equal(edit(in_work("f"), &opts, "two"), 1);
	opts.backups = 0;
	ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "three", &file));
	put_anew(in_work("f"), "editor");
	ASSERT_ERR(hf_file_commit(file, ERR), HF_E_CHANGED);
	hf_sys = real;
	ASSERT_OK(hf_file_close(file, ERR));
	assert_string_equal(get(in_work("f")), "editor");
	assert_string_equal(get(in_work("f.~1~")), "one");
	assert_int_equal(entries(".f."), 1);
}

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
	ASSERT_ERR(edit(in_work("in/link"), &opts, "new"), -EINVAL);
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

static int holds_two(const char *path)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_file *file = NULL;
	int r = hf_file_open(locks, path, &opts, &file, ERR);

	if (r == 0)
		r = hf_file_lock(file, 0, NULL, ERR);
	(void)hf_file_close(file, NULL);
	return r;
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
	ASSERT_ERR(holds_two(in_work("./f")), HF_E_DEADLOCK);
	ASSERT_OK(holds_two(in_work("g")));
	ASSERT_OK(hf_file_close(file, ERR));
	ASSERT_OK(holds_two(in_work("f")));
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
	assert_int_equal(entries(".f."), 1);
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

static void who_works_under_the_lock_already_is_let_in(void **state)
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

/* -- leftovers and backups ------------------------------------------------------- */

static void leftovers_go_when_they_are_proven_nobodys(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	int fd;

	(void)state;
	put(in_work("f"), "old");
	put(in_work(".f.holdfast-0.tmp"), "of a crash");
	put(in_work(".f.holdfast-2.tmp"), "of another");
	put(in_work(".f.holdfast-1.tmp"), "somebody writes it");
	fd = open(in_work(".f.holdfast-1.tmp"), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(symlink("f", in_work(".f.holdfast-3.tmp")), 0);
	put(in_work(".f.holdfast-9.tmp"), "not one of ours");
	put(in_work(".g.holdfast-0.tmp"), "another file's");
	assert_int_equal(edit(in_work("f"), &opts, "new"), 1);
	assert_int_equal(entries(".f.holdfast-0"), 0);
	assert_int_equal(entries(".f.holdfast-2"), 0);
	assert_string_equal(get(in_work(".f.holdfast-1.tmp")), "somebody writes it");
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
	assert_int_equal(entries(".f."), 1);
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
	assert_int_equal(entries(".f."), 1);
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

/* Writes into the old file right after the exchange's last look at it, with the times kept. */
static int sly_editor(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	struct stat st;
	int r;

	if (n_exchanges++ > 0 || strcmp(to, "f") != 0)
		return renameat2(fromfd, from, tofd, to, flags);
	assert_int_equal(stat(in_work("f"), &st), 0);
	put(in_work("f"), "OLD");
	r = renameat2(fromfd, from, tofd, to, flags);
	assert_int_equal(utimensat(fromfd, from, (struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
	return r;
}

static void change_within_one_tick_of_the_clock_is_seen_in_the_content(void **state)
{
	struct hf_file_opts opts = file_opts(0);
	struct hf_sys real = hf_sys;
	struct hf_file *file = NULL;
	int r;

	(void)state;
	/* The look after the exchange sees the same inode, size and mtime. */
	for (int tries = 0; tries < 50; tries++) {
		struct hf_mono start = hf_mono_now();

		put_anew(in_work("f"), "old");
		ASSERT_OK(edit_up_to_commit(in_work("f"), &opts, "new", &file));
		n_exchanges = 0;
		hf_sys.renameat2 = sly_editor;
		hf_sys.set_lease = no_lease;
		r = hf_file_commit(file, ERR);
		hf_sys = real;
		ASSERT_OK(hf_file_close(file, ERR));
		/* On a busy machine the file was not "just changed" when it was read. */
		if (r == HF_E_CHANGED)
			break;
		assert_true(hf_mono_now().ns - start.ns > 15 * HF_MSEC);
	}
	ASSERT_ERR(r, HF_E_CHANGED);
	assert_string_equal(get(in_work("f")), "OLD");
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
	assert_int_equal(entries(".f."), 1);
	assert_int_equal(stat(in_work("f"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
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
	ASSERT_ERR(holds_two(in_work("f")), HF_E_DEADLOCK);
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

/* -- blocks ---------------------------------------------------------------------- */

static int block(const char *path, const char *id, const char *text)
{
	struct hf_file_opts opts = file_opts(HF_FILE_CREATE);
	struct hf_block b = { .size = sizeof(b), .id = id, .text = text,
			      .len = text ? strlen(text) : 0 };
	struct hf_file *file = NULL;
	int r;

	ASSERT_OK(hf_file_open(locks, path, &opts, &file, ERR));
	ASSERT_OK(hf_file_lock(file, 0, NULL, ERR));
	r = hf_file_block(file, &b, ERR);
	if (r > 0)
		r = hf_file_commit(file, ERR);
	ASSERT_OK(hf_file_close(file, NULL));
	return r;
}

static void block_put_in_and_taken_out_gives_the_same_file(void **state)
{
	static const char *const files[] = { "",	 "a\n",	  "a",	  "a\r\nb\r\n", "a\r\nb",
					     "\xef\xbb\xbf", "\xef\xbb\xbfz", "\n",   "a\nb\r\n",
					     "a\n\n\n",	 "\r\n" };
	static const char *const texts[] = { "", "t", "t\n", "t\nu", "\n", "t\r\n", "\\g<0> \\n $& %s\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			char with[4096];

			put(in_work("f.md"), files[i]);
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 1);
			snprintf(with, sizeof(with), "%s", get(in_work("f.md")));
			assert_int_equal(strncmp(with, files[i], strlen(files[i])), 0);
			/* Idempotent. */
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 0);
			/* There and back over another text. */
			assert_int_equal(block(in_work("f.md"), "x", "quite another"), 1);
			assert_int_equal(block(in_work("f.md"), "x", texts[k]), 1);
			assert_string_equal(get(in_work("f.md")), with);
			assert_int_equal(block(in_work("f.md"), "x", NULL), 1);
			assert_string_equal(get(in_work("f.md")), files[i]);
			assert_int_equal(block(in_work("f.md"), "x", NULL), 0);
		}
	}
}

static void block_has_the_line_ends_of_its_file(void **state)
{
	(void)state;
	put(in_work("f.sh"), "a\r\nb\r\nc\n");
	assert_int_equal(block(in_work("f.sh"), "x", "t\nu\r\nv"), 1);
	assert_string_equal(get(in_work("f.sh")), "a\r\nb\r\nc\n# holdfast:x:start\r\nt\r\nu\r\nv\r\n"
						  "# holdfast:x:end\r\n");
	put(in_work("g.c"), "a");
	assert_int_equal(block(in_work("g.c"), "x", "t"), 1);
	assert_string_equal(get(in_work("g.c")), "a\n// holdfast:x:start\nt\n// holdfast:x:end");
	/* Markers that stand there stay as they are. */
	put(in_work("h.md"), "  <!--holdfast:x:start-->\nold\n\t# holdfast:x:end\nmine\n");
	assert_int_equal(block(in_work("h.md"), "x", "new"), 1);
	assert_string_equal(get(in_work("h.md")), "  <!--holdfast:x:start-->\nnew\n\t# holdfast:x:end\nmine\n");
}

static void blocks_that_make_no_sense_are_refused_and_nothing_is_written(void **state)
{
	static const char orphan[] = "a\n# holdfast:x:start\n";

	(void)state;
	put(in_work("f.py"), orphan);
	ASSERT_ERR(block(in_work("f.py"), "x", "t"), HF_E_MARKERS);
	ASSERT_ERR(block(in_work("f.py"), "x", NULL), HF_E_MARKERS);
	assert_string_equal(get(in_work("f.py")), orphan);
	assert_int_equal(block(in_work("f.py"), "y", "t"), 1);
	put(in_work("f.md"), "a\n");
	ASSERT_ERR(block(in_work("f.md"), "x", "a\n<!-- holdfast:z:end -->\n"), HF_E_MARKERS);
	assert_non_null(strstr(ERR->detail, "line 2 of the text"));
	ASSERT_ERR(block(in_work("f.md"), "x", "```\ncode\n"), HF_E_MARKERS);
	assert_int_equal(block(in_work("f.md"), "x", "```\n# holdfast:z:end\n```\n"), 1);
	put(in_work("f.md"), "a\n~~~\n");
	ASSERT_ERR(block(in_work("f.md"), "x", "t"), HF_E_MARKERS);
	ASSERT_ERR(block(in_work("f.json"), "x", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "x y", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "", "t"), -EINVAL);
	ASSERT_ERR(block(in_work("f.md"), "x:start", "t"), -EINVAL);
	put(in_work("f.txt"), "\xff\xfe" "a");
	ASSERT_ERR(block(in_work("f.txt"), "x", "t"), HF_E_KIND);
	assert_int_equal(entries(".f.md.holdfast"), 0);
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
		FILE_TEST(changes_since_reading_are_never_overwritten),
		FILE_TEST(even_a_change_in_the_last_moment_is_put_back),
		FILE_TEST(file_systems_without_exchange_work_as_well),
		FILE_TEST(content_is_on_disk_before_the_rename_and_the_rename_before_it_returns_L9),
		FILE_TEST(other_kinds_are_refused_at_once_L12),
		FILE_TEST(symlink_is_refused_replaced_or_followed_inside_the_root_L12),
		FILE_TEST(followed_link_and_its_target_share_the_lock),
		FILE_TEST(escapes_from_the_root_are_refused_L12),
		FILE_TEST(hard_links_are_refused_or_broken_on_purpose),
		FILE_TEST(lock_file_that_is_none_is_refused_L12),
		FILE_TEST(flock_of_another_tool_keeps_us_out_and_ours_keeps_it_out_L1),
		FILE_TEST(second_holder_of_the_same_file_is_refused_L1),
		FILE_TEST(stale_token_is_refused_at_the_rename_L5),
		FILE_TEST(who_works_under_the_lock_already_is_let_in),
		FILE_TEST(without_the_lock_it_is_as_atomic_L9),
		FILE_TEST(leftovers_go_when_they_are_proven_nobodys),
		FILE_TEST(backups_move_up_and_the_oldest_goes),
		FILE_TEST(backups_are_copies_where_a_second_name_is_not_to_be_had),
		FILE_TEST(owner_that_cannot_be_kept_is_a_refusal),
		FILE_TEST(change_within_one_tick_of_the_clock_is_seen_in_the_content),
		FILE_TEST(refused_write_leaves_the_backups_alone),
		FILE_TEST(forked_child_only_frees_L13),
		FILE_TEST(threads_are_contenders_like_processes_L1),
		FILE_TEST(wrong_use_is_refused),
		FILE_TEST(block_put_in_and_taken_out_gives_the_same_file),
		FILE_TEST(block_has_the_line_ends_of_its_file),
		FILE_TEST(blocks_that_make_no_sense_are_refused_and_nothing_is_written),
	};

	return hf_run_tests("file", tests);
}
