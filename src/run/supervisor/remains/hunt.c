/* run/supervisor/remains/hunt.c - finding and killing, by proven identity, what nobody supervises any more. */
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
#include "hf/exec/cgroup/cgroup.h"
#include "hf/exec/marks.h"
#include "hf/exec/ptable.h"
#include "hf/proc/here.h"
#include "hf/run/supervisor/remains/hunt.h"
#include "hf/run/supervisor/remains/hunt_marks.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define PATIENCE_NS  (10 * HF_SEC)      /* for killed processes to be gone */
#define LOOK_AGAIN_NS (5 * HF_MSEC)
#define CHILDREN_MAX  ((size_t)256 << 10) /* bytes of a list of pids */
#define CHASE_NS      (30 * HF_MSEC)
#define CHASE_LOOKS   500 /* on a busy machine that time may pass without a look */
#define CHASE_PIDS    256 /* the newest ones, at most so many at once */

/* A process that was proven: kill it, and remember that it was there. */
static void strike(struct hf_hunt *hunt, int pidfd, int32_t pid)
{
	struct hf_stat st = { 0 };

	hunt->living++;
	hunt->survivor = pid;
	/* Found by its mark, its group and its parent, and again until it is gone: it is one. */
	(void)hf_stat_read(pid, &st);
	if (hf_sys.pidfd_send_signal(pidfd, SIGKILL) == 0)
		hunt->killed += (unsigned)hf_victims_add(&hunt->victims, pid, st.start_ticks);
	else
		hunt->refused += errno == EPERM;
}

/* One of the processes on record, by its identity. */
static void hunt_identity(struct hf_hunt *hunt, const struct hf_proc_id *id)
{
	AUTO_FD pidfd = -1;

	if (id->pid > 1 && id->pid != getpid() &&
	    hf_proc_open(id, hunt->sessions->judge_flags, &pidfd, NULL) == 0)
		strike(hunt, pidfd, id->pid);
}

/* The children of a process of one thread, as text; the length, or -errno. */
static ssize_t read_children(int32_t pid, char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	return hf_read_file(AT_FDCWD, path, text, CHILDREN_MAX);
}

/*
 * Has the process, which is pinned, no child that lives? All that were listed are zombies, and
 * the list is the same after that was seen: then nobody can have come to it meanwhile, as one
 * does that forks and exits faster than the table is read. Such a one is struck here: the
 * newest stands last. 1 also where the kernel has no list.
 */
static int is_childless(struct hf_hunt *hunt, int32_t pid)
{
	AUTO_FREE char *first = malloc(2 * CHILDREN_MAX);
	char *second = first ? first + CHILDREN_MAX : NULL;
	ssize_t n = first ? read_children(pid, first) : -ENOMEM;
	ssize_t end = n;

	if (n < 0)
		return n == -ENOENT;
	while (end > 0) {
		ssize_t at = --end; /* the space behind the last digit */
		struct hf_stat st;
		uint64_t child;
		AUTO_FD pidfd = -1;

		while (at > 0 && first[at - 1] != ' ')
			at--;
		if (hf_parse_u64(first + at, (size_t)(end - at), INT32_MAX, &child) < 0)
			return 0;
		end = at;
		pidfd = hf_sys.pidfd_open((int32_t)child, 0);
		if (hf_stat_read((int32_t)child, &st) < 0)
			return 0;
		if (hf_stat_is_dead(&st))
			continue;
		if (pidfd >= 0 && st.ppid == pid && hf_pidfd_exited(pidfd) == 0)
			strike(hunt, pidfd, (int32_t)child);
		return 0;
	}
	return read_children(pid, second) == n && memcmp(first, second, (size_t)n) == 0;
}

/*
 * All that stands below a keeper that lives (stopped past its lease, or its lock was broken).
 * Its pidfd is open and it has not exited when the table was read, so its number was its own;
 * while it lives, whatever the tree does comes back to it. So it goes last, when nobody is
 * left below it: even one without mark and group cannot be missed.
 */
static int hunt_below(struct hf_hunt *hunt, const struct hf_proc_id *keeper)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	AUTO_FD keeper_fd = -1;
	unsigned before = hunt->living;
	int r;

	if (keeper->pid <= 1 || hf_proc_open(keeper, hunt->sessions->judge_flags, &keeper_fd, NULL) < 0)
		return 0;
	r = hf_ptable_read(&scan);
	if (r < 0)
		return r == -ENOTSUP ? 0 : r;
	hf_ptable_keep_descendants(&scan, keeper->pid, NULL, 0);
	if (hf_pidfd_exited(keeper_fd) != 0)
		return 0;
	for (size_t i = 0; i < scan.n; i++)
		if (scan.stats[i].pid == getpid())
			return HF_E_PROTECTED;
	for (size_t i = 0; i < scan.n; i++) {
		const struct hf_stat *st = &scan.stats[i];
		AUTO_FD pidfd = hf_stat_is_dead(st) ? -1 : hf_sys.pidfd_open(st->pid, 0);
		struct hf_stat now;

		if (pidfd >= 0 && hf_stat_read(st->pid, &now) == 0 &&
		    now.start_ticks == st->start_ticks && hf_pidfd_exited(pidfd) == 0)
			strike(hunt, pidfd, st->pid);
	}
	if (hunt->living > before)
		return 0;
	if (is_childless(hunt, keeper->pid))
		strike(hunt, keeper_fd, keeper->pid);
	else
		hunt->living++;
	return 0;
}

/* One that the group lists: the pidfd first, its group after, not exited last. */
static void hunt_member(void *arg, int32_t pid)
{
	struct hf_hunt *hunt = arg;
	AUTO_FD pidfd = pid == getpid() ? -1 : hf_sys.pidfd_open(pid, 0);

	if (pidfd >= 0 && hf_cgroup_has(&hunt->group, pid) && hf_pidfd_exited(pidfd) == 0)
		strike(hunt, pidfd, pid);
}

/* -- marks ---------------------------------------------------------------------------- */

/*
 * One that bears a mark of an earlier run. Its limit mark is proof whatever its user is, unless another session has the same. Any
 * user can write any environment, so a foreign process with that mark alone is not killed; it
 * may be of the tree all the same.
 */
static int hunt_marked_one(struct hf_hunt *hunt, int32_t pid)
{
	AUTO_FD pidfd = -1;
	uint32_t uid;
	uint64_t mark = hf_limit_mark_of(pid);
	int named, shared, limit = hf_hunt_is_hunted_mark(hunt, mark);

	if (limit < 0 || (!limit && !hf_mark_found(pid, hunt->mark, hunt->only, hunt->token)))
		return limit;
	/* Seen by number; proven only now. */
	pidfd = hf_sys.pidfd_open(pid, 0);
	mark = pidfd < 0 ? 0 : hf_limit_mark_of(pid);
	limit = hf_hunt_is_hunted_mark(hunt, mark);
	shared = limit > 0 ? hf_hunt_is_shared_mark(hunt, mark) : 0;
	if (limit < 0 || shared < 0)
		return limit < 0 ? limit : shared;
	named = pidfd >= 0 && hf_mark_found(pid, hunt->mark, hunt->only, hunt->token);
	if (pidfd < 0 || (!limit && !named) ||
	    hf_status_read_uid(pid, &uid) < 0 || hf_pidfd_exited(pidfd) != 0) {
		/* It was there, and may have forked before it went: nothing is proven. */
		hunt->living++;
		hunt->survivor = pid;
		return 0;
	}
	if ((limit && !shared) || (named && uid == geteuid())) {
		strike(hunt, pidfd, pid);
	} else {
		hunt->living++;
		hunt->refused++;
		hunt->is_shared |= shared;
		hunt->survivor = pid;
	}
	return 0;
}

static int hunt_marked(struct hf_hunt *hunt)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	int r = hf_ptable_read(&scan);

	for (size_t i = 0; r == 0 && i < scan.n; i++)
		if (scan.stats[i].pid > 1 && scan.stats[i].pid != getpid() && !hf_stat_is_dead(&scan.stats[i]))
			r = hunt_marked_one(hunt, scan.stats[i].pid);
	return r == -ENOTSUP ? 0 : r;
}

/* The number that was given last; 0: not known. */
static int32_t newest_pid(void)
{
	char text[128];
	ssize_t n = hf_read_file(AT_FDCWD, "/proc/loadavg", text, sizeof(text) - 1);
	const char *word;
	uint64_t pid;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	word = strrchr(text, ' ');
	return word && hf_parse_u64(word + 1, strlen(word + 1), INT32_MAX, &pid) == 0 ? (int32_t)pid : 0;
}

/*
 * One that forks and exits faster than the table is read is never found in it. But it always has
 * one of the newest numbers, which are few and quickly looked at.
 */
static int chase_newest(struct hf_hunt *hunt)
{
	struct hf_mono end = hf_mono_in(CHASE_NS);
	int32_t seen = newest_pid();
	int r = 0;

	for (int looks = 0; r == 0 && (looks < CHASE_LOOKS || hf_mono_left(end) > 0); looks++) {
		int32_t newest = newest_pid();

		/* The numbers may have begun anew. */
		if (newest < seen || newest - seen > CHASE_PIDS)
			seen = newest > CHASE_PIDS ? newest - CHASE_PIDS : 0;
		while (r == 0 && seen < newest) {
			seen++;
			if (seen > 1 && seen != getpid())
				r = hunt_marked_one(hunt, seen);
		}
	}
	return r;
}

/* Is the caller itself below what would be killed? 1, 0 or -errno. */
static int is_inside(struct hf_hunt *hunt)
{
	if (hf_mark_found((int32_t)getpid(), hunt->mark, hunt->only, hunt->token) ||
	    (hunt->group.fd >= 0 && hf_cgroup_has(&hunt->group, (int32_t)getpid())))
		return 1;
	return hf_hunt_is_hunted_mark(hunt, hf_limit_mark_in(hf_limit_own()));
}

/* -- the whole ------------------------------------------------------------------------- */

/* One round. 0 or what it failed with. */
static int hunt_all(struct hf_hunt *hunt, const struct hf_session_record *old)
{
	int r;

	hunt->living = 0;
	hunt->refused = 0;
	hunt->is_shared = 0;
	hunt->others_read = 0;
	if (old) {
		r = hunt_below(hunt, &old->keeper);
		if (r < 0)
			return r;
		hunt_identity(hunt, &old->leader);
	}
	if (hunt->group.fd >= 0) {
		(void)hf_cgroup_each(&hunt->group, hunt_member, hunt);
		(void)hf_cgroup_kill(&hunt->group);
	}
	r = hunt_marked(hunt);
	if (r == 0 && hunt->living == 0 && hunt->group.fd < 0)
		r = chase_newest(hunt);
	/* Those of a pid namespace that is not shown here are in the group all the same. */
	if (hunt->living == 0 && hunt->group.fd >= 0 && hf_cgroup_populated(&hunt->group) > 0)
		hunt->living++;
	return r;
}

static int hunt_to_the_end(struct hf_hunt *hunt, const struct hf_session_record *old)
{
	struct hf_mono limit = hf_mono_in(PATIENCE_NS);
	int quiet = 0;

	for (;;) {
		int r = hunt_all(hunt, old);

		if (r < 0)
			return r;
		/* One that forked and exited behind the reader's back is seen by the next reader. */
		quiet = hunt->living == 0 ? quiet + 1 : 0;
		if (quiet > (hunt->killed > 0) || hf_mono_left(limit) == 0)
			return 0;
		/* Waiting ends no process that this user may not signal. */
		if (hunt->living > 0 && hunt->refused == hunt->living)
			return 0;
		hf_pause(LOOK_AGAIN_NS);
	}
}

static int say_survivor(const struct hf_hunt *hunt, const char *name, struct hf_err *err)
{
	uint32_t uid = 0;

	if (hunt->is_shared)
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "pid %d may still belong to the previous run, or to another session with the same mark; "
			    "nothing is killed or started until it has ended", (int)hunt->survivor);
	if (hunt->refused > 0 && hf_status_read_uid(hunt->survivor, &uid) == 0)
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "%u processes may still belong to the previous run, and this user cannot end them: "
			    "pid %d of uid %u; nothing is started until they have ended",
			    hunt->living, (int)hunt->survivor, (unsigned)uid);
	return FAIL(err, HF_E_REMAINS, "reap", name, "%u processes did not end, pid %d among them",
		    hunt->living, (int)hunt->survivor);
}

int hf_remains_end(struct hf_sessions *sessions, const char *name,
		   const struct hf_session_record *old, uint64_t token, struct hf_err *err)
{
	struct hf_hunt hunt = { .sessions = sessions,
			     .session = name,
			     .group = HF_CGROUP_INIT,
			     /* What an earlier run was told to leave running is not of this one. */
			     .only = old ? old->token : 0,
			     .token = token,
			     .name = hf_limit_mark_name(sessions->dir_device, sessions->dir_inode, name) };
	int r = hf_here_read(&hunt.here, err);

	if (r < 0)
		return r;
	(void)hf_mark_prefix(sessions->dir_inode, name, hunt.mark);
	if (old && strcmp(old->keeper.boot_id, hunt.here.boot_id) == 0)
		hunt.limit = old->mark;
	if (old && old->cgroup[0])
		(void)hf_cgroup_open(old->cgroup, old->cgroup_inode, &hunt.group);
	r = is_inside(&hunt);
	r = r > 0 ? HF_E_PROTECTED : r < 0 ? r : hunt_to_the_end(&hunt, old);
	if (r == 0 && hunt.group.fd >= 0 && hunt.living == 0)
		hf_cgroup_remove(&hunt.group);
	hf_cgroup_done(&hunt.group);
	hf_victims_done(&hunt.victims);
	free(hunt.others);
	if (r == HF_E_PROTECTED)
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "you are inside that run; do this from outside");
	if (r < 0)
		return hf_fail_sys(err, -r, "/proc", name);
	return hunt.living > 0 ? say_survivor(&hunt, name, err) : (int)hunt.killed;
}
