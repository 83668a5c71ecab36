/* plan/sandbox/use.c - is a process inside, and bringing a plan to rest when none is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/plan/sandbox/use.h"
#include "hf/sys/calls.h"
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

int hf_in_find(uint64_t mnt_ns)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir))) {
		char path[64], text[64], want[64];
		uint64_t pid;
		ssize_t n;

		if (hf_parse_u64(entry->d_name, strlen(entry->d_name), INT32_MAX, &pid) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
		n = hf_sys.readlinkat(AT_FDCWD, path, text, sizeof(text) - 1);
		if (n <= 0)
			continue;
		text[n] = '\0';
		(void)snprintf(want, sizeof(want), "mnt:[%llu]", (unsigned long long)mnt_ns);
		if (strcmp(text, want) == 0)
			found = (int)pid;
	}
	(void)closedir(dir);
	return found;
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

/* -- a plan ----------------------------------------------------------------------- */

/* Is an overlay of the plan mounted and not settled? 1, 0, -errno. */
static int any_unsettled(int plan_fd, const struct hf_plan_record *record, struct hf_err *err)
{
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &record->sandboxes[i];
		AUTO_FD fd = -1;
		int r;

		if (s->strategy != HF_STRATEGY_OVERLAY || !s->entered_boot[0])
			continue;
		r = hf_sandbox_dir(plan_fd, s->name, 0, &fd, err);
		if (r < 0)
			return r;
		if (hf_sandbox_is_unsettled(fd))
			return 1;
	}
	return 0;
}

/* 1 when a process is inside. Locks nothing. */
static int look(int plan_fd, const struct hf_plan_record *record, struct hf_err *err)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	AUTO_FD fd = hf_open_at(plan_fd, HF_PLAN_IN, O_RDWR | O_NOFOLLOW, 0);
	struct hf_inhabitants inside;
	int r;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return hf_fail_open(err, fd, HF_PLAN_IN);
	if (fcntl(fd, F_OFD_GETLK, &range) < 0)
		return FAIL_SYS(err, "fcntl", record->name);
	if (range.l_type != F_UNLCK)
		return 1;
	/* The last one out settles. Unsettled and not locked: a helper was killed, or never was. */
	r = any_unsettled(plan_fd, record, err);
	if (r <= 0)
		return r;
	hf_in_read(fd, &inside);
	r = inside.mnt_ns ? hf_in_find(inside.mnt_ns) : 0;
	return r < 0 ? hf_fail_sys(err, -r, "readdir", "/proc") : r > 0;
}

int hf_plan_in_use(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	int r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	return r < 0 ? r : look(plan_fd, record, err);
}

static int become_torn(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		       struct hf_err *err)
{
	static const char reason[] = "it was in use when power failed, so it may be torn; look at 'plan "
				     "diff', then commit with --force or roll back";
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", reason) };
	int r;

	record->torn = 1;
	/* One that failed otherwise before keeps that reason as well as this mark. */
	if (hf_plan_may_become(record->state, HF_PLAN_ERRORED))
		(void)hf_plan_become(record, HF_PLAN_ERRORED, reason, NULL);
	r = hf_plan_save(plans, record, token, HF_PLAN_SAVE_DURABLE, err);
	if (r == 0)
		hf_plan_event(plans, HF_EV_PLAN_ERRORED, record->name, fields, 1);
	return r;
}

/* One pass over the overlays that were entered since they were last settled. */
static int each_entered(struct hf_plan_record *record, int plan_fd, const char *boot_id,
			int (*fn)(struct hf_sandbox_record *s, int fd, const char *boot_id),
			struct hf_err *err)
{
	int found = 0;

	for (size_t i = 0; i < record->n_sandboxes; i++) {
		struct hf_sandbox_record *s = &record->sandboxes[i];
		AUTO_FD fd = -1;
		int r;

		if (s->strategy != HF_STRATEGY_OVERLAY || !s->entered_boot[0])
			continue;
		r = hf_sandbox_dir(plan_fd, s->name, 0, &fd, err);
		if (r < 0)
			return r;
		r = fn(s, fd, boot_id);
		if (r < 0)
			return hf_fail_sys(err, -r, "syncfs", s->name);
		found |= r;
	}
	return found;
}

/* In use when another boot ended: nothing says how much of it reached the disk. */
static int is_torn(struct hf_sandbox_record *s, int fd, const char *boot_id)
{
	return strcmp(s->entered_boot, boot_id) != 0 && hf_sandbox_is_unsettled(fd);
}

enum settled { SETTLED = 1, SYNCED = 2 };

static int settle_one(struct hf_sandbox_record *s, int fd, const char *boot_id)
{
	int r = hf_sandbox_settle(fd);

	(void)boot_id;
	if (r < 0)
		return r;
	s->entered_boot[0] = '\0';
	return r ? SETTLED | SYNCED : SETTLED;
}

int hf_plan_settle(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		   struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	struct hf_here here;
	int r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r == 0)
		r = hf_here_read(&here, err);
	if (r == 0)
		r = look(plan_fd, record, err);
	if (r == 1)
		return FAIL(err, HF_E_IN_USE, "plan", record->name,
			    "its command, or something that it left, still runs");
	if (r == 0)
		r = each_entered(record, plan_fd, here.boot_id, is_torn, err);
	/* First the verdict, then the marker: a crash in between does not lose it. */
	if (r == 1 && !record->torn)
		r = become_torn(plans, record, token, err);
	if (r >= 0)
		r = each_entered(record, plan_fd, here.boot_id, settle_one, err);
	if (r <= 0)
		return r;
	/* The record that says "entered" was there when the sandbox was synced. */
	return hf_plan_save(plans, record, token, r & SYNCED ? HF_PLAN_SAVE_OVER_SYNCED : 0, err);
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
