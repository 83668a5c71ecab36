/* plan/sandbox/strays.c - finding and ending what was left inside by a watcher that was killed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/exec/ptable.h"
#include "hf/plan/sandbox/strays.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"

#define END_NS       (10 * HF_SEC)
#define MOUNTS_MAX   ((size_t)4 << 20)

/* What tells that a process is inside. */
struct signs {
	struct hf_inhabitants inside;
	char mark[HF_MARK_MAX];
	char sources[HF_PLAN_SANDBOXES_MAX][HF_OVERLAY_SOURCE_MAX + 16]; /* " overlay SOURCE " */
	size_t n_sources;
	int has_copy; /* one that is in use */
};

void hf_overlay_source(uint64_t dev, uint64_t ino, char out[HF_OVERLAY_SOURCE_MAX])
{
	(void)snprintf(out, HF_OVERLAY_SOURCE_MAX, "holdfast:%llx.%llx", (unsigned long long)dev, (unsigned long long)ino);
}

/* No name's key has a plus sign, so that it is no session's mark. */
void hf_plan_mark_prefix(const struct hf_plans *plans, const char *plan, char out[HF_MARK_MAX])
{
	char key[HF_NAME_KEY_MAX];
	struct stat st;

	out[0] = '\0';
	if (hf_name_key(plan, strlen(plan), key, NULL) >= 0 && hf_sys.fstat(plans->dirfd, &st) == 0)
		(void)snprintf(out, HF_MARK_MAX, "%llx.plan+%s.", (unsigned long long)st.st_ino, key);
}

static int read_signs(struct hf_plans *plans, int plan_fd, const struct hf_plan_record *record, struct signs *ret)
{
	AUTO_FD in = hf_open_at(plan_fd, HF_PLAN_IN, O_RDONLY | O_NOFOLLOW, 0);

	memset(ret, 0, sizeof(*ret));
	if (in < 0)
		return in == -ENOENT ? 0 : in;
	hf_in_read(in, &ret->inside);
	hf_plan_mark_prefix(plans, record->name, ret->mark);
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &record->sandboxes[i];
		char source[HF_OVERLAY_SOURCE_MAX];
		AUTO_FD fd = -1;
		struct stat st;

		if (hf_sandbox_dir(plan_fd, s->name, 0, &fd, NULL) < 0)
			continue;
		if (s->strategy != HF_STRATEGY_OVERLAY) {
			ret->has_copy |= ret->mark[0] && hf_used_look(fd, NULL) == 1;
		} else if (hf_sys.fstatat(fd, HF_SANDBOX_UPPER, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			hf_overlay_source(st.st_dev, st.st_ino, source);
			(void)snprintf(ret->sources[ret->n_sources++], sizeof(ret->sources[0]), " overlay %s ", source);
		}
	}
	return 0;
}

static int has_mount(int32_t pid, const struct signs *signs)
{
	AUTO_FREE char *text = NULL;
	char path[40];
	size_t cap = 32768;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	do {
		free(text);
		text = malloc(cap *= 2);
		n = text ? hf_read_file(AT_FDCWD, path, text, cap - 1) : 0;
	} while (n == -E2BIG && cap < MOUNTS_MAX);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (size_t i = 0; i < signs->n_sources; i++)
		if (strstr(text, signs->sources[i]))
			return 1;
	return 0;
}

static int is_inside(int32_t pid, const struct signs *signs)
{
	char path[40], text[64], want[64];
	ssize_t n;

	if (signs->inside.mnt_ns) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
		(void)snprintf(want, sizeof(want), "mnt:[%llu]", (unsigned long long)signs->inside.mnt_ns);
		n = hf_sys.readlinkat(AT_FDCWD, path, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		if (strcmp(text, want) == 0 && has_mount(pid, signs))
			return 1;
	}
	return signs->has_copy && hf_mark_found(pid, signs->mark, 0, 0);
}

/* Calls `fn` with each, until it returns other than 0, which is then returned. */
static int each(const struct signs *signs, int (*fn)(void *arg, int32_t pid), void *arg)
{
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (!signs->inside.mnt_ns && !signs->has_copy)
		return 0;
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (r == 0 && (entry = readdir(dir))) {
		uint64_t pid;

		if (hf_parse_u64(entry->d_name, strlen(entry->d_name), INT32_MAX, &pid) == 0 && is_inside((int32_t)pid, signs))
			r = fn(arg, (int32_t)pid);
	}
	(void)closedir(dir);
	return r;
}

static int take_first(void *arg, int32_t pid)
{
	(void)arg;
	return pid;
}

int hf_strays_find(struct hf_plans *plans, int plan_fd, const struct hf_plan_record *record)
{
	AUTO_FREE struct signs *signs = malloc(sizeof(*signs));
	int r = signs ? read_signs(plans, plan_fd, record, signs) : -ENOMEM;

	return r < 0 ? r : each(signs, take_first, NULL);
}

/* -- the end of them ---------------------------------------------------------------- */

struct ending {
	const struct signs *signs;
	struct hf_victims victims;
	int refused; /* one that is not ours to kill */
};

/* The pidfd first, what the number says after, and that it had not exited by then last (L6). */
static int end_one(void *arg, int32_t pid)
{
	struct ending *ending = arg;
	AUTO_FD pidfd = hf_sys.pidfd_open(pid, 0);
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	struct hf_stat st;

	if (pidfd < 0 || !is_inside(pid, ending->signs) || hf_stat_read(pid, &st) < 0 || hf_pidfd_exited(pidfd) != 0)
		return 0;
	if (pid == (int32_t)getpid() || hf_ptable_is_above(pid) || hf_sys.pidfd_send_signal(pidfd, SIGKILL) < 0) {
		ending->refused = 1;
		return 0;
	}
	(void)hf_victims_add(&ending->victims, pid, st.start_ticks);
	(void)hf_poll_until(&fd, 1, hf_mono_in(HF_SEC));
	return 0;
}

int hf_strays_end(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err)
{
	AUTO_FREE struct signs *signs = malloc(sizeof(*signs));
	struct ending ending = { .signs = signs };
	struct hf_mono until = hf_mono_in(END_NS);
	AUTO_FD plan_fd = -1;
	char reason[64];
	struct hf_field fields[] = { HF_FIELD_TEXT("outcome", "ended"), HF_FIELD_TEXT("reason", reason) };
	int count, r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r < 0)
		return r;
	r = signs ? read_signs(plans, plan_fd, record, signs) : -ENOMEM;
	/* Those that were started meanwhile are found by the next look; the last look finds none. */
	while (r == 0 && (r = each(signs, take_first, NULL)) > 0 && !ending.refused && hf_mono_left(until) > 0)
		r = each(signs, end_one, &ending);
	count = (int)ending.victims.n;
	hf_victims_done(&ending.victims);
	if (count > 0) {
		(void)snprintf(reason, sizeof(reason), "%d of its processes had outlived 'plan enter'", count);
		hf_plan_event(plans, HF_EV_PLAN_RECOVERED, record->name, fields, 2);
	}
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "/proc");
	if (r > 0)
		return FAIL(err, HF_E_IN_USE, "plan", record->name, "process %d is inside and cannot be ended from here", r);
	return count;
}
