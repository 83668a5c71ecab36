/*
 * run/keeper/queue.c - a place among those of its group that may run at once, and the wait for it.
 *
 * It waits with its name: nobody else can start a session of it meanwhile. So the lease is renewed, and whatever ends the session
 * (a stop, a signal, the death of the supervisor) ends the wait. Nothing of the run is on record yet; for those that look, the
 * session's directory has what it is to run (session/notes/queued.h).
 */
#include <errno.h>
#include <sys/epoll.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/notes/queued.h"
#include "hf/run/session/notes/recent.h"
#include "holdfast/exit.h"

/* The lease of the name is renewed at a third of it. */
static int64_t pause_between(const struct hf_keeper *k)
{
	return k->lock && k->o.ttl_ns / 6 < HF_SEC ? k->o.ttl_ns / 6 : HF_SEC;
}

void hf_keeper_note_waiting(void *arg, const struct hf_lock_waiting *waiting)
{
	struct hf_keeper *k = arg;
	struct hf_err err = HF_ERR_INIT;

	if (k->lock && hf_renewal_step(&k->renewal, &err) < 0)
		hf_keeper_end(k, HF_CAUSE_LOST, -1);
	if (waiting->waited_ns < HF_SEC)
		return;
	if (k->detached) {
		struct hf_link_news news = { .kind = HF_LINK_WAITING, .waiting = *waiting };

		hf_keeper_tell(k, &news, -1);
	} else if (k->given.waiting) {
		k->given.waiting(k->given.waiting_arg, waiting);
		k->told_waiting = 1;
	}
}

void hf_keeper_waited(struct hf_keeper *k)
{
	if (k->told_waiting)
		k->given.waiting(k->given.waiting_arg, NULL);
	k->told_waiting = 0;
}

void hf_keeper_wait_options(struct hf_keeper *k, struct hf_lock_opts *opts)
{
	int64_t left = hf_mono_left(k->wait_until);

	/* Not 0, which would be another failure: there was time, and it is over. */
	opts->wait_ns = k->o.wait_ns <= 0 ? k->o.wait_ns : left > 0 ? left : 1;
	opts->waiting = hf_keeper_note_waiting;
	opts->waiting_arg = k;
	opts->waiting_ns = pause_between(k);
}

/* Something came in: does the wait go on? */
int hf_keeper_goes_on(void *arg)
{
	struct hf_keeper *k = arg;

	hf_keeper_listen(k);
	if (hf_keeper_is_orphan(k) && k->over == HF_CAUSE_NONE)
		k->over = HF_CAUSE_SUPERVISOR;
	return k->over == HF_CAUSE_NONE;
}

/* One descriptor for all that can end the wait. */
static int open_ears(const struct hf_keeper *k)
{
	const int fds[] = { k->signals, k->link, k->supervisor_fd };
	AUTO_FD ears = epoll_create1(EPOLL_CLOEXEC);

	for (size_t i = 0; ears >= 0 && i < sizeof(fds) / sizeof(fds[0]); i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (epoll_ctl(ears, EPOLL_CTL_ADD, fds[i], &event) < 0)
			return -errno;
	}
	return ears < 0 ? -errno : fd_take(&ears);
}

static int acquire(struct hf_keeper *k, struct hf_lock_opts *opts, struct hf_err *err)
{
	struct hf_locks *groups = hf_locks_kind(k->sessions->locks, HF_LOCK_KIND_GROUP);
	AUTO_FD ears = -1;
	int r = hf_lock_acquire(groups, k->o.group, opts, &k->slot, NULL, err);

	if (r != HF_E_BUSY || k->o.wait_ns == 0)
		return r;
	ears = open_ears(k);
	if (ears < 0)
		return hf_fail_sys(err, -ears, "epoll", k->name);
	r = hf_recent_add(k->sessions, k->name);
	if (r < 0)
		return hf_fail_sys(err, -r, "recent", k->name);
	r = hf_queued_write(k->sessions, k->name, k->record.token, &k->given, err);
	if (r < 0)
		return r;
	opts->cancel_fd = ears;
	opts->go_on = hf_keeper_goes_on;
	opts->go_on_arg = k;
	opts->priority = k->o.priority;
	hf_keeper_wait_options(k, opts);
	k->queueing = 1;
	r = hf_keeper_goes_on(k) ? hf_lock_acquire(groups, k->o.group, opts, &k->slot, NULL, err)
		       : FAIL(err, HF_E_CANCELLED, "wait", k->name, "%s", "");
	k->queueing = 0;
	hf_keeper_waited(k);
	hf_queued_remove(k->sessions, k->name);
	/* It came in the same moment as the place. */
	if (r == 0 && k->over != HF_CAUSE_NONE)
		r = FAIL(err, HF_E_CANCELLED, "wait", k->name, "%s", "");
	return r;
}

int hf_keeper_take_slot(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts),
				     .mode = HF_LOCK_SLOTS,
				     .slots = k->o.max_active,
				     .ttl_ns = k->o.ttl_ns };
	int r;

	if (k->o.max_active == 0)
		return 0;
	r = acquire(k, &opts, err);
	/* For both of us, as the name is: it is free when the tree is empty. Of more than half of
	 * all slots there can be, some have to do with one. */
	if (r == 0)
		r = hf_lock_add_owner(k->slot, &k->record.supervisor, err);
	if (r == -ENOSPC)
		r = 0;
	if (r == HF_E_MODE)
		(void)FAIL(err, HF_E_LIMIT, "group", k->name,
			   "the group '%s' has another --max-active now", k->o.group);
	else if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
		(void)FAIL(err, HF_E_LIMIT, "group", k->name, "%u of %u sessions of the group '%s' are active (--max-active)%s",
			   k->o.max_active, k->o.max_active, k->o.group,
			   r == HF_E_BUSY ? "; wait for a place with -w" : ", and none ended in time");
	else
		return r;
	return hf_keeper_refuse(k, err);
}

void hf_keeper_report_given_up(const struct hf_keeper *k, struct hf_run_report *report)
{
	int sig = k->interrupted ? k->interrupted : k->over == HF_CAUSE_HANGUP ? SIGHUP : SIGTERM;

	report->outcome = k->interrupted ? HF_OUTCOME_INTERRUPTED : HF_OUTCOME_STOPPED;
	report->exit_status = HF_EXIT_SIGNAL + sig;
	hf_copy_text(report->cause, sizeof(report->cause), "it was stopped while it waited for its turn");
}
