/* plan/sandbox/use.c - is a process inside a sandbox, and bringing one to rest when none is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/plan/sandbox/strays.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/numbers.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define MARKER  "volatile" /* a directory in w/work/incompat, with a file "dirty" */
#define IN_TEXT 51 /* three numbers of 16 digits, two blanks and a newline */

/* -- the file -------------------------------------------------------------------- */

int hf_in_open(int plan_fd, int *ret_fd, struct hf_err *err)
{
	AUTO_FD fd = hf_open_or_create_at(plan_fd, HF_PLAN_IN, O_RDWR, 0600);

	if (fd < 0)
		return hf_fail_open(err, fd, HF_PLAN_IN);
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_in_lock(int fd, int exclusive)
{
	struct flock range = { .l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET };

	return hf_sys.setlk(fd, &range) < 0 ? -errno : 0;
}

void hf_in_unlock(int fd)
{
	struct flock range = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	(void)hf_sys.setlk(fd, &range);
}

static uint64_t own_namespace(const char *path)
{
	struct stat st;

	return hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* Fixed width: one write replaces it whole. */
int hf_in_write(int fd, int32_t pid)
{
	char text[IN_TEXT + 1];

	(void)snprintf(text, sizeof(text), "%016llx %016llx %016llx\n",
		       (unsigned long long)own_namespace("/proc/self/ns/mnt"),
		       (unsigned long long)own_namespace("/proc/self/ns/user"),
		       (unsigned long long)pid);
	return hf_pwrite_all(fd, text, IN_TEXT, 0, &(size_t){ 0 });
}

void hf_in_read(int fd, struct hf_inhabitants *ret)
{
	char text[IN_TEXT];
	uint64_t pid;

	*ret = (struct hf_inhabitants){ 0 };
	if (hf_pread_all(fd, text, IN_TEXT, 0) != IN_TEXT ||
	    hf_parse_hex64(text, 16, &ret->mnt_ns) < 0 ||
	    hf_parse_hex64(text + 17, 16, &ret->user_ns) < 0 ||
	    hf_parse_hex64(text + 34, 16, &pid) < 0 || pid > INT32_MAX)
		*ret = (struct hf_inhabitants){ 0 };
	else
		ret->pid = (int32_t)pid;
}

void hf_in_clear(int fd)
{
	(void)hf_sys.ftruncate(fd, 0);
}

/* Only what may be looked at: that is so of those inside. */
static int is_beside_us(void *our_namespace, int32_t pid)
{
	char path[40], text[64];
	ssize_t n;

	if (pid == (int32_t)getpid())
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	n = hf_sys.readlinkat(AT_FDCWD, path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return strcmp(text, our_namespace) == 0;
}

int hf_in_is_shared(void)
{
	char ours[64];
	ssize_t n = hf_sys.readlinkat(AT_FDCWD, "/proc/self/ns/mnt", ours, sizeof(ours) - 1);

	if (n <= 0)
		return 0;
	ours[n] = '\0';
	return hf_numbers_in("/proc", is_beside_us, ours) == 1;
}

int hf_in_is_locked(int fd)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &range) < 0 ? -errno : range.l_type != F_UNLCK;
}

/* -- one sandbox ------------------------------------------------------------------ */

/* Opens a directory of ours whose mode the kernel has made 000. */
static int open_closed(int dirfd, const char *name)
{
	AUTO_FD fd = hf_open_at(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char path[40];

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (hf_sys.chmod(path, 0700) < 0)
		return -errno;
	return hf_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
}

/* The directory in which the kernel keeps its marker; -ENOENT: never mounted. */
static int open_marks(int sandbox_fd)
{
	AUTO_FD work = hf_open_at(sandbox_fd, HF_SANDBOX_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	AUTO_FD inner = work < 0 ? work : open_closed(work, "work");

	return inner < 0 ? inner : open_closed(inner, "incompat");
}

int hf_sandbox_is_unsettled(int sandbox_fd)
{
	AUTO_FD marks = open_marks(sandbox_fd);
	struct stat st;

	if (marks < 0)
		return marks != -ENOENT;
	return hf_sys.fstatat(marks, MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int is_empty(int fd)
{
	char room[1024] __attribute__((aligned(8)));
	ssize_t n = hf_sys.getdents64(fd, room, sizeof(room));
	int entries = 0;

	if (n < 0)
		return 0;
	for (ssize_t at = 0; at < n; entries++) {
		uint16_t len;

		memcpy(&len, room + at + 16, sizeof(len));
		at += len;
	}
	return entries == 2; /* "." and ".." */
}

int hf_sandbox_settle(int sandbox_fd)
{
	AUTO_FD upper = hf_open_at(sandbox_fd, HF_SANDBOX_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
				   0);
	AUTO_FD marks = open_marks(sandbox_fd);
	AUTO_FD marker = marks < 0 ? -ENOENT : open_closed(marks, MARKER);

	int holds_work = upper >= 0 && !is_empty(upper);

	if (marks < 0 || marker < 0)
		return marks < 0 && marks != -ENOENT ? marks : marker != -ENOENT ? marker : holds_work;
	if (upper < 0)
		return upper;
	if (holds_work && hf_sys.syncfs(upper) < 0)
		return -errno;
	/* Only now: a marker that is gone says that everything is on disk. */
	if (hf_sys.unlinkat(marker, "dirty", 0) < 0 && errno != ENOENT)
		return -errno;
	return hf_sys.unlinkat(marks, MARKER, AT_REMOVEDIR) < 0 ? -errno : holds_work;
}

enum look { LOOK_LOCKED = 1, LOOK_STRAYS = 2 };

/* -- a plan ----------------------------------------------------------------------- */

/* Is it entered, by what the disk says, and not settled? */
static int is_unsettled(const struct hf_sandbox_record *s, int fd)
{
	if (s->strategy != HF_STRATEGY_OVERLAY)
		return hf_used_look(fd, NULL) != 0;
	return hf_sandbox_is_unsettled(fd);
}

/* Is a sandbox of the plan entered and not settled? 1, 0, -errno. */
static int any_unsettled(int plan_fd, const struct hf_plan_record *record, struct hf_err *err)
{
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &record->sandboxes[i];
		AUTO_FD fd = -1;
		int r;

		if (s->strategy == HF_STRATEGY_OVERLAY && !s->entered_boot[0])
			continue;
		r = hf_sandbox_dir(plan_fd, s->name, 0, &fd, err);
		if (r < 0)
			return r;
		if (is_unsettled(s, fd))
			return 1;
	}
	return 0;
}

/* 0 nobody is inside; LOOK_LOCKED an enter is; LOOK_STRAYS processes are that none looks after. Locks nothing. */
static int look(struct hf_plans *plans, int plan_fd, const struct hf_plan_record *record, int *ret_pid, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(plan_fd, HF_PLAN_IN, O_RDWR | O_NOFOLLOW, 0);
	int r;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return hf_fail_open(err, fd, HF_PLAN_IN);
	r = hf_in_is_locked(fd);
	if (r < 0)
		return hf_fail_sys(err, -r, "fcntl", record->name);
	if (r == 1)
		return LOOK_LOCKED;
	/* The last one out settles. Unsettled and not locked: a watcher was killed, or never was. */
	r = any_unsettled(plan_fd, record, err);
	if (r <= 0)
		return r;
	r = hf_strays_find(plans, plan_fd, record);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "/proc");
	*ret_pid = r;
	return r > 0 ? LOOK_STRAYS : 0;
}

int hf_plan_in_use(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	int pid, r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r == 0)
		r = look(plans, plan_fd, record, &pid, err);
	return r > 0 ? 1 : r;
}

int hf_plan_check_unused(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	char word[HF_SHELL_WORD_MAX];
	int pid = 0, r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r == 0)
		r = look(plans, plan_fd, record, &pid, err);
	if (r == LOOK_LOCKED)
		return FAIL(err, HF_E_IN_USE, "plan", record->name, "its command, or a process that it left, is still running");
	if (r == LOOK_STRAYS)
		return FAIL(err, HF_E_IN_USE, "plan", record->name,
			    "process %d has outlived the 'plan enter' that started it; 'holdfast plan recover %s' ends it", pid, hf_shell_word(record->name, word));
	return r;
}

int hf_plan_end_strays(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	int pid, r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r == 0)
		r = look(plans, plan_fd, record, &pid, err);
	if (r != LOOK_STRAYS)
		return r < 0 ? r : 0;
	/* Those of a session are its own to end. */
	r = hf_plan_check_session(plans, record, NULL, 0, err);
	return r < 0 ? r : hf_strays_end(plans, record, err);
}

/* -- its session ------------------------------------------------------------------ */

static void note_held(void *arg, const struct hf_lock_info *info)
{
	int *held = arg;

	for (size_t i = 0; i < info->n_holders; i++)
		*held |= info->holders[i].liveness != HF_DEAD;
}

int hf_plan_check_session(struct hf_plans *plans, const struct hf_plan_record *record, const struct hf_plan_fence *fences,
			  size_t n_fences, struct hf_err *err)
{
	int held = 0;

	if (!hf_plan_is_of_run(record->name) || !record->session[0])
		return 0;
	for (size_t i = 0; i < n_fences; i++)
		if (strcmp(fences[i].name, record->session) == 0)
			return 0;
	if (hf_lock_look(plans->locks, record->session, note_held, &held, NULL) < 0 || !held)
		return 0;
	return FAIL(err, HF_E_IN_USE, "plan", record->name, "session '%.80s' runs, and commits it when it succeeds", record->session);
}
