/* run/supervisor/remains.c - ending, by proven identity, what nobody supervises any more. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/proc/here.h"
#include "hf/exec/cgroup.h"
#include "hf/run/supervisor/remains.h"
#include "hf/exec/ptable.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define PATIENCE_NS  (10 * HF_SEC)      /* for killed processes to be gone */
#define LOOK_AGAIN_NS (5 * HF_MSEC)
#define CHILDREN_MAX  ((size_t)256 << 10) /* bytes of a list of pids */

struct hunt {
	struct hf_sessions *sessions;
	struct hf_cgroup group;
	char mark[HF_MARK_MAX];
	uint64_t only;    /* the token of the run that is known to be unfinished; 0: not known */
	uint64_t token;   /* our own */
	struct hf_victims victims; /* were sent SIGKILL */
	unsigned killed;           /* how many of them */
	unsigned living;  /* found in this round */
	int32_t survivor; /* one of them, for the message */
};

/* A process that was proven: kill it, and remember that it was there. */
static void strike(struct hunt *hunt, int pidfd, int32_t pid)
{
	struct hf_stat st = { 0 };

	hunt->living++;
	hunt->survivor = pid;
	/* Found by its mark, its group and its parent, and again until it is gone: it is one. */
	(void)hf_stat_read(pid, &st);
	if (hf_sys.pidfd_send_signal(pidfd, SIGKILL) == 0)
		hunt->killed += (unsigned)hf_victims_add(&hunt->victims, pid, st.start_ticks);
}

/* One of the processes on record, by its identity. */
static void hunt_identity(struct hunt *hunt, const struct hf_proc_id *id)
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
static int is_childless(struct hunt *hunt, int32_t pid)
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
static int hunt_below(struct hunt *hunt, const struct hf_proc_id *keeper)
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
	struct hunt *hunt = arg;
	AUTO_FD pidfd = pid == getpid() ? -1 : hf_sys.pidfd_open(pid, 0);

	if (pidfd >= 0 && hf_cgroup_has(&hunt->group, pid) && hf_pidfd_exited(pidfd) == 0)
		strike(hunt, pidfd, pid);
}

/* Everybody of ours who bears the mark of an earlier run. */
static int hunt_marked(struct hunt *hunt)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	int r = hf_ptable_read(&scan);

	for (size_t i = 0; r == 0 && i < scan.n; i++) {
		int32_t pid = scan.stats[i].pid;
		uint32_t uid;
		AUTO_FD pidfd = -1;

		if (pid <= 1 || pid == getpid() || hf_stat_is_dead(&scan.stats[i]) ||
		    !hf_mark_found(pid, hunt->mark, hunt->only, hunt->token))
			continue;
		/* Seen by number; proven only now. */
		pidfd = hf_sys.pidfd_open(pid, 0);
		if (pidfd >= 0 && hf_mark_found(pid, hunt->mark, hunt->only, hunt->token) &&
		    hf_status_read_uid(pid, &uid) == 0 && uid == geteuid() &&
		    hf_pidfd_exited(pidfd) == 0)
			strike(hunt, pidfd, pid);
	}
	return r == -ENOTSUP ? 0 : r;
}

/* Is the caller itself below what would be killed? */
static int is_inside(const struct hunt *hunt)
{
	return hf_mark_found((int32_t)getpid(), hunt->mark, hunt->only, hunt->token) ||
	       (hunt->group.fd >= 0 && hf_cgroup_has(&hunt->group, (int32_t)getpid()));
}

int hf_remains_end(struct hf_sessions *sessions, const char *name,
		   const struct hf_session_record *old, uint64_t token, struct hf_err *err)
{
	struct hunt hunt = { .sessions = sessions,
			     .group = HF_CGROUP_INIT,
			     /* What an earlier run was told to leave running is not of this one. */
			     .only = old ? old->token : 0,
			     .token = token };
	struct hf_mono limit = hf_mono_in(PATIENCE_NS);
	int r = 0;

	(void)hf_mark_prefix(sessions->dir_inode, name, hunt.mark);
	if (old && old->cgroup[0])
		(void)hf_cgroup_open(old->cgroup, old->cgroup_inode, &hunt.group);
	if (is_inside(&hunt))
		r = HF_E_PROTECTED;
	while (r == 0) {
		hunt.living = 0;
		if (old) {
			r = hunt_below(&hunt, &old->keeper);
			if (r < 0)
				break;
			hunt_identity(&hunt, &old->leader);
		}
		if (hunt.group.fd >= 0) {
			(void)hf_cgroup_each(&hunt.group, hunt_member, &hunt);
			(void)hf_cgroup_kill(&hunt.group);
		}
		r = hunt_marked(&hunt);
		/* Those of a pid namespace that is not shown here are in the group all the same. */
		if (hunt.living == 0 && hunt.group.fd >= 0 && hf_cgroup_populated(&hunt.group) > 0)
			hunt.living++;
		if (hunt.living == 0 || hf_mono_left(limit) == 0)
			break;
		hf_pause(LOOK_AGAIN_NS);
	}
	if (r == 0 && hunt.group.fd >= 0 && hunt.living == 0)
		hf_cgroup_remove(&hunt.group);
	hf_cgroup_done(&hunt.group);
	hf_victims_done(&hunt.victims);
	if (r == HF_E_PROTECTED)
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "you are part of that run yourself; do it from outside");
	if (r < 0)
		return hf_fail_sys(err, -r, "/proc", name);
	if (hunt.living > 0)
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "%u processes did not end, pid %d among them", hunt.living,
			    (int)hunt.survivor);
	return (int)hunt.killed;
}

/* The run that nobody finished: what is known of it becomes its end. */
static int conclude(struct hf_sessions *sessions, struct hf_session_record *old, uint64_t token,
		    struct hf_err *err)
{
	/* Nobody saw it end; between two attempts of a loop the last one has its outcome already. */
	if (old->phase != HF_PHASE_WAITING || old->outcome == HF_OUTCOME_NONE) {
		old->ended.ns = 0;
		old->ran_ns = 0;
	}
	hf_session_complete(sessions, old, HF_EXIT_AROUND, "its supervisor and keeper were killed");
	old->cgroup[0] = '\0';
	return hf_session_save(sessions, old, token, err);
}

/* The group of a run that ended with somebody left in it on purpose, when they have gone since. */
static void remove_empty_group(const struct hf_session_record *old)
{
	struct hf_cgroup group = HF_CGROUP_INIT;

	if (!old->cgroup[0] || hf_cgroup_open(old->cgroup, old->cgroup_inode, &group) < 0)
		return;
	if (hf_cgroup_populated(&group) == 0)
		hf_cgroup_remove(&group);
	hf_cgroup_done(&group);
}

int hf_remains_settle(struct hf_sessions *sessions, const char *name, uint64_t token,
		      struct hf_session_record *ret_old, int *ret_killed, struct hf_err *err)
{
	struct hf_session_record old = { 0 };
	int killed, known, r = hf_session_load(sessions, name, &old, err);

	memset(ret_old, 0, sizeof(*ret_old));
	*ret_killed = 0;
	if (r == HF_E_NO_SESSION)
		return 0;
	/* A record that had to be put away says nothing; the marks still do. */
	known = r == 0;
	if (r < 0 && r != HF_E_FORMAT)
		return r;
	if (known)
		*ret_old = old;
	if (known && old.phase == HF_PHASE_ENDED) {
		remove_empty_group(&old);
		return 0;
	}
	killed = hf_remains_end(sessions, name, known ? &old : NULL, token, err);
	if (killed < 0)
		return killed;
	*ret_killed = killed;
	if (killed > 0 || (known && !hf_session_is_reaped(sessions, &old))) {
		struct hf_field fields[] = {
			HF_FIELD_INT("killed", killed),
			HF_FIELD_TEXT("reason", known ? "its supervisor and keeper are gone, or lost the lock"
						      : "its record was not to be read"),
			HF_FIELD_INT("token", (int64_t)old.token) };

		hf_session_event(sessions, HF_EV_SESSION_REAPED, name, fields, known ? 3 : 2);
	}
	if (known) {
		r = conclude(sessions, &old, token, err);
		*ret_old = old;
		return r;
	}
	return 0;
}

int hf_session_reap(struct hf_sessions *sessions, const char *name, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .ttl_ns = HF_RUN_TTL_NS };
	struct hf_session_record old;
	struct hf_lock *lock = NULL;
	int killed = 0, r;
	AUTO_FD dirfd = -1;

	r = hf_session_dir(sessions, name, 0, &dirfd, err);
	if (r == 0)
		r = hf_lock_acquire(sessions->locks, name, &opts, &lock, NULL, err);
	if (r < 0)
		return r;
	r = hf_remains_settle(sessions, name, hf_lock_token(lock), &old, &killed, err);
	(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
	return r < 0 ? r : killed;
}
