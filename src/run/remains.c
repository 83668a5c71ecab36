/* run/remains.c - ending, by proven identity, what nobody supervises any more. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/proc/here.h"
#include "hf/run/cgroup.h"
#include "hf/run/remains.h"
#include "hf/run/ptable.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define PATIENCE_NS  (10 * HF_SEC)      /* for killed processes to be gone */
#define LOOK_AGAIN_NS (5 * HF_MSEC)

struct hunt {
	struct hf_sessions *sessions;
	struct hf_cgroup group;
	char mark[HF_MARK_MAX];
	uint64_t token;
	unsigned killed;  /* were sent SIGKILL */
	unsigned living;  /* found in this round */
	int32_t survivor; /* one of them, for the message */
};

/* A process that was proven: kill it, and remember that it was there. */
static void strike(struct hunt *hunt, int pidfd, int32_t pid)
{
	hunt->living++;
	hunt->survivor = pid;
	if (hf_sys.pidfd_send_signal(pidfd, SIGKILL) == 0)
		hunt->killed++;
}

/* One of the processes on record, by its identity. */
static void hunt_identity(struct hunt *hunt, const struct hf_proc_id *id)
{
	AUTO_FD pidfd = -1;

	if (id->pid > 1 && id->pid != getpid() &&
	    hf_proc_open(id, hunt->sessions->judge_flags, &pidfd, NULL) == 0)
		strike(hunt, pidfd, id->pid);
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

		if (pid <= 1 || pid == getpid() ||
		    (scan.stats[i].state == 'Z' && scan.stats[i].threads <= 1) ||
		    !hf_mark_found(pid, hunt->mark, hunt->token))
			continue;
		/* Seen by number; proven only now. */
		pidfd = hf_sys.pidfd_open(pid, 0);
		if (pidfd >= 0 && hf_mark_found(pid, hunt->mark, hunt->token) &&
		    hf_status_read_uid(pid, &uid) == 0 && uid == geteuid() &&
		    hf_pidfd_exited(pidfd) == 0)
			strike(hunt, pidfd, pid);
	}
	return r == -ENOTSUP ? 0 : r;
}

/* Is the caller itself below what would be killed? */
static int is_inside(const struct hunt *hunt)
{
	return hf_mark_found((int32_t)getpid(), hunt->mark, hunt->token) ||
	       (hunt->group.fd >= 0 && hf_cgroup_has(&hunt->group, (int32_t)getpid()));
}

int hf_remains_end(struct hf_sessions *sessions, const char *name,
		   const struct hf_session_record *old, uint64_t token, struct hf_err *err)
{
	struct hunt hunt = { .sessions = sessions, .group = HF_CGROUP_INIT, .token = token };
	struct hf_mono limit = hf_mono_in(PATIENCE_NS);
	int r = 0;

	(void)hf_mark_prefix(sessions, name, hunt.mark);
	if (old && old->cgroup[0])
		(void)hf_cgroup_open(old->cgroup, old->cgroup_inode, &hunt.group);
	if (is_inside(&hunt)) {
		hf_cgroup_done(&hunt.group);
		return FAIL(err, HF_E_REMAINS, "reap", name,
			    "you are part of that run yourself; do it from outside");
	}
	do {
		hunt.living = 0;
		if (old) {
			hunt_identity(&hunt, &old->keeper);
			hunt_identity(&hunt, &old->leader);
		}
		if (hunt.group.fd >= 0) {
			(void)hf_cgroup_each(&hunt.group, hunt_member, &hunt);
			(void)hf_cgroup_kill(&hunt.group);
		}
		r = hunt_marked(&hunt);
		if (r == 0 && hunt.living > 0)
			hf_pause(LOOK_AGAIN_NS);
	} while (r == 0 && hunt.living > 0 && hf_mono_left(limit) > 0);
	if (hunt.group.fd >= 0 && hunt.living == 0)
		hf_cgroup_remove(&hunt.group);
	hf_cgroup_done(&hunt.group);
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
	struct hf_field fields[] = { HF_FIELD_INT("attempt", old->attempt),
				     HF_FIELD_TEXT("outcome", hf_outcome_word(HF_OUTCOME_ABANDONED)),
				     HF_FIELD_INT("status", 125),
				     HF_FIELD_TEXT("cause", old->cause), HF_FIELD_INT("ran_ms", 0) };
	uint64_t its_own = old->token;
	int r;

	/* Between two attempts of a loop the last one has its outcome already. */
	if (old->phase != HF_PHASE_WAITING || old->outcome == HF_OUTCOME_NONE) {
		old->outcome = HF_OUTCOME_ABANDONED;
		old->exit_status = 125;
		old->failures++;
		hf_session_clean_text(old->cause, sizeof(old->cause),
				      "its supervisor and keeper were killed");
		old->ended.ns = 0; /* nobody saw it */
		old->ran_ns = 0;
		hf_session_event(sessions, HF_EV_SESSION_ENDED, old->name, fields, 5);
	}
	old->phase = HF_PHASE_ENDED;
	memset(&old->leader, 0, sizeof(old->leader));
	old->cgroup[0] = '\0';
	r = hf_session_save(sessions, old, token, err);
	old->token = its_own;
	return r;
}

int hf_remains_settle(struct hf_sessions *sessions, const char *name, uint64_t token,
		      struct hf_session_record *ret_old, int *ret_killed, struct hf_err *err)
{
	struct hf_session_record old;
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
	if (known && old.phase == HF_PHASE_ENDED)
		return 0;
	killed = hf_remains_end(sessions, name, known ? &old : NULL, token, err);
	if (killed < 0)
		return killed;
	*ret_killed = killed;
	if (known || killed > 0) {
		struct hf_field fields[] = {
			HF_FIELD_INT("killed", killed),
			HF_FIELD_TEXT("reason", known ? "its supervisor and keeper are gone, or lost the lock"
						      : "its record was not to be read") };

		hf_session_event(sessions, HF_EV_SESSION_REAPED, name, fields, 2);
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
