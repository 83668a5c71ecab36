/* run/supervisor/remains/remains.c - bringing the record of a run that nobody finished to its end. */
#include <string.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/cgroup/cgroup.h"
#include "hf/run/supervisor/remains/hunt.h"
#include "hf/run/supervisor/remains/remains.h"

/* The run that nobody finished: what is known of it becomes its end. */
static int conclude(struct hf_sessions *sessions, struct hf_session_record *old, uint64_t token,
		    struct hf_err *err)
{
	int r;

	/* Nobody saw it end; between two attempts of a loop the last one has its outcome already. */
	if (old->phase != HF_PHASE_WAITING || old->outcome == HF_OUTCOME_NONE) {
		old->ended.ns = 0;
		old->ran_ns = 0;
	}
	r = hf_session_complete(sessions, old, HF_EXIT_AROUND, "its supervisor and keeper were killed", err);

	if (r < 0)
		return r;
	old->cgroup[0] = '\0';
	return hf_session_save(sessions, old, token, err);
}

/* The group of a run that left processes in it on purpose, when they have gone since. */
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
	AUTO_FD dirfd = -1;
	int killed, known, r = hf_session_dir(sessions, name, 0, &dirfd, err);

	memset(ret_old, 0, sizeof(*ret_old));
	*ret_killed = 0;
	if (r == HF_E_NO_SESSION)
		return 0;
	if (r == 0)
		r = hf_session_load(sessions, name, &old, err);
	/* A record that had to be put away, now or by an earlier look, says nothing; the marks still do. */
	known = r == 0;
	if (r < 0 && r != HF_E_FORMAT && r != HF_E_NO_SESSION)
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
						      : "its record could not be read"),
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

static int sweep(void)
{
	struct hf_cgroup own = HF_CGROUP_INIT;
	int removed = hf_cgroup_own(&own) == 0 ? hf_cgroup_sweep(&own) : 0;

	hf_cgroup_done(&own);
	return removed;
}

int hf_sessions_sweep(struct hf_sessions *sessions)
{
	return sessions ? sweep() : 0;
}

/* The record is read again here: the lock is ours now, so no other run can take the name. */
static int check_run(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	struct hf_session_record record;
	int r = token == 0 ? 0 : hf_session_load(sessions, name, &record, err);

	return r < 0 || token == 0 ? r : hf_session_check_run(&record, token, "reap", err);
}

static int reap(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
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
	r = check_run(sessions, name, token, err);
	if (r == 0)
		r = hf_remains_settle(sessions, name, hf_lock_token(lock), &old, &killed, err);
	(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
	(void)sweep();
	return r < 0 ? r : killed;
}

int hf_session_reap_run(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	return hf_err_wrap(err, reap(sessions, name, token, err), "session", name);
}

int hf_session_reap(struct hf_sessions *sessions, const char *name, struct hf_err *err)
{
	return hf_session_reap_run(sessions, name, 0, err);
}
