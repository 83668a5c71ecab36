/*
 * tests/helper/plan_helper.h - plans whose sandboxes are laid out by hand, and trees as text.
 *
 * An upper directory is made as overlayfs leaves it (whiteouts need root or a file with the
 * attribute), so that what a commit does is tested without mounts and in every corner. Header only.
 */
#ifndef TESTS_PLAN_HELPER_H
#define TESTS_PLAN_HELPER_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "helper/journal_events.h"
#include "helper/faults.h"
#include "hf/base/cleanup.h"
#include "helper/test.h"
#include "hf/plan/target/census.h"
#include "hf/plan/recovery/intent.h"
#include "hf/plan/registry/registry.h"
#include "hf/sys/calls.h"
#include "holdfast/plan.h"

static struct hf_journal *journal;
static struct hf_plans *plans;

/* -- files ---------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static inline const char *at(const char *format, ...)
{
	static char paths[8][1024];
	static unsigned turn;
	char *path = paths[turn++ % 8];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(paths[0]), format, args);
	va_end(args);
	return path;
}

static inline void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		print_error("%s: %s\n", path, strerror(errno));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline void make_dir(const char *path)
{
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* As overlayfs marks a deletion for an ordinary mount; as root. */
static inline void whiteout(const char *path)
{
	if (mknod(path, S_IFCHR | 0600, makedev(0, 0)) == 0)
		return;
	/* The other form; the directory is marked for it. */
	put(path, "");
	assert_int_equal(setxattr(path, "user.overlay.whiteout", "y", 1, 0), 0);
	{
		char dir[1024];

		snprintf(dir, sizeof(dir), "%s", path);
		*strrchr(dir, '/') = '\0';
		assert_int_equal(setxattr(dir, "user.overlay.opaque", "x", 1, 0), 0);
	}
}

static inline void mark(const char *path, const char *name, const char *value)
{
	assert_int_equal(setxattr(path, name, value, strlen(value), 0), 0);
}

/* -- trees as text ----------------------------------------------------------------------- */

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void tree_attrs(const char *path, struct hf_buf *out)
{
	char names[4096], value[256];
	ssize_t n = llistxattr(path, names, sizeof(names));

	for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		ssize_t len = lgetxattr(path, name, value, sizeof(value));

		if (strncmp(name, "user.", 5) == 0 && len >= 0)
			hf_buf_add_format(out, " %s=%.*s", name, (int)len, value);
	}
}

/* Every entry with type, mode, attributes and content, sorted. */
static inline void tree_text(const char *path, const char *shown, struct hf_buf *out)
{
	struct dirent **list = NULL;
	struct stat st;
	char text[4096];

	assert_int_equal(lstat(path, &st), 0);
	hf_buf_add_format(out, "%s %06o", shown, (unsigned)st.st_mode);
	tree_attrs(path, out);
	if (S_ISREG(st.st_mode)) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		const char *leaf = strstr(path, "/.git/index");

		close(fd);
		assert_true(n >= 0);
		/* An index that was committed has a second name beside the sandbox, where that could be made. */
		if (leaf && strcmp(leaf, "/.git/index") == 0)
			st.st_nlink = 1;
		hf_buf_add_format(out, " n%u '%.*s'", (unsigned)st.st_nlink, (int)n, text);
	} else if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(path, text, sizeof(text));

		hf_buf_add_format(out, " -> %.*s", (int)n, text);
	}
	hf_buf_add_char(out, '\n');
	if (S_ISDIR(st.st_mode)) {
		int n = scandir(path, &list, NULL, alphasort);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			char below[2048], name[2048];

			if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0) {
				assert_true((size_t)snprintf(below, sizeof(below), "%s/%s", path, list[i]->d_name) < sizeof(below));
				assert_true((size_t)snprintf(name, sizeof(name), "%s/%s", shown, list[i]->d_name) < sizeof(name));
				tree_text(below, name, out);
			}
			free(list[i]);
		}
		free(list);
	}
}

/* -- plans ------------------------------------------------------------------------------------ */

static inline void open_plans(void)
{
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_plans_open(hf_test_state(), journal, &plans, ERR));
}

static inline void close_plans(void)
{
	hf_plans_free(plans);
	hf_journal_free(journal);
	plans = NULL;
	journal = NULL;
}

static struct hf_sys sys_before; /* what a test that fails half-way has not put back */

static inline int plan_test_setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	sys_before = hf_sys;
	open_plans();
	return 0;
}

static inline int plan_test_teardown(void **state)
{
	hf_fault_disarm();
	hf_sys = sys_before;
	close_plans();
	return hf_test_teardown(state);
}

#define PLAN_TEST(fn) { #fn, fn, plan_test_setup, plan_test_teardown, NULL }

static inline const char *upper_of(const char *plan, const char *sandbox)
{
	return at("%s/plans/%s/s/%s/u", hf_state_path(hf_test_state()), plan, sandbox);
}

/* T0 that lies behind everything that was laid out before, on any kernel. */
static inline void take_t0(struct hf_t0 *ret)
{
	struct hf_wall start = hf_wall_now();

	do {
		ASSERT_OK(hf_t0_take(ret, ERR));
	} while (ret->real_ns <= start.ns && poll(NULL, 0, 1) == 0);
}

/* Adds an overlay sandbox that was "entered" at `t0`: its upper is the caller's to fill. */
static inline void add_by_hand(const char *plan, const char *sandbox, const char *target,
			       const struct hf_t0 *t0)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	struct hf_sandbox_record *s;
	AUTO_FD plan_fd = -1;
	AUTO_FD sandbox_fd = -1;
	AUTO_FD target_fd = -1;
	struct statfs fs;
	struct statx st;

	ASSERT_OK(hf_plan_lock(plans, plan, 0, &lock, ERR));
	ASSERT_OK(hf_plan_load(plans, plan, &record, ERR));
	record.sandboxes = reallocarray(record.sandboxes, record.n_sandboxes + 1, sizeof(*s));
	assert_non_null(record.sandboxes);
	s = &record.sandboxes[record.n_sandboxes++];
	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", sandbox);
	s->strategy = HF_STRATEGY_OVERLAY;
	s->target.path = strdup(target);
	assert_int_equal(statx(AT_FDCWD, target, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
	assert_int_equal(statfs(target, &fs), 0);
	s->target.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	s->target.ino = st.stx_ino;
	s->target.mnt_id = st.stx_mnt_id;
	s->target.fs_type = (uint64_t)fs.f_type;
	s->entered = 1;
	s->t0 = *t0;
	snprintf(s->target.boot_id, sizeof(s->target.boot_id), "%s", s->t0.boot_id);
	if (record.state == HF_PLAN_CREATED)
		ASSERT_OK(hf_plan_become(&record, HF_PLAN_ACTIVE, NULL, ERR));
	ASSERT_OK(hf_plan_dir(plans, plan, 0, &plan_fd, ERR));
	ASSERT_OK(hf_sandbox_dir(plan_fd, sandbox, 1, &sandbox_fd, ERR));
	assert_true(mkdirat(sandbox_fd, "u", 0755) == 0);
	target_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(target_fd >= 0);
	ASSERT_OK(hf_census_take(target_fd, sandbox_fd, t0, 100000));
	ASSERT_OK(hf_plan_save(plans, &record, hf_lock_token(lock), 0, ERR));
}

static inline enum hf_plan_state state_of(const char *plan)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;

	ASSERT_OK(hf_plan_load(plans, plan, &record, ERR));
	return record.state;
}

static inline void remove_tree(const char *path)
{
	char copy[1024], *slash;
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	slash = strrchr(copy, '/');
	*slash = '\0';
	fd = open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		ASSERT_OK(hf_tree_remove(fd, slash + 1));
		close(fd);
	}
}

#endif
