/* run/session/control.c - ending and awaiting a session from outside, by the identities on record. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/marks.h"
#include "hf/run/session/inspect.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"

/* On top of the grace time: for the kill, and for the record. */
#define PATIENCE_NS (10 * HF_SEC)
#define EXIT_NS     (2 * HF_SEC)

/* How long a change of the record may take that no process announces. */
#define LOOK_AGAIN_NS (50 * HF_MSEC)

/*
 * A pidfd of the process that looks after the session: the keeper, or else the supervisor.
 * HF_E_GONE when both have ended. Others' answers (recycled, unknown) are the keeper's.
 */
static int open_kept(struct hf_sessions *sessions, const struct hf_session_record *record,
		     int *ret_pidfd, struct hf_err *err)
{
	int r = hf_proc_open(&record->keeper, sessions->judge_flags, ret_pidfd, err);

	return r == HF_E_GONE ? hf_proc_open(&record->supervisor, sessions->judge_flags, ret_pidfd, err)
			      : r;
}

/* How long a caller waits, and what ends it earlier. */
struct patience {
	struct hf_mono deadline;
	int cancel_fd; /* -1: none */
};

/* A grace time as it was given, or as a record says: seventy years at most, so that it can be added to. */
static int64_t bounded(int64_t grace_ns)
{
	return grace_ns < INT64_MAX / 4 ? grace_ns : INT64_MAX / 4;
}

static struct patience patience_of(int64_t ns)
{
	return (struct patience){ .deadline = hf_mono_limit(ns), .cancel_fd = -1 };
}

/* Sleeps until the process (-1: none) has exited. 0, HF_E_TIMEOUT, HF_E_CANCELLED. */
static int await_exit(int pidfd, const struct patience *patience, const char *name,
		      struct hf_err *err)
{
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN },
				{ .fd = patience->cancel_fd, .events = POLLIN } };

	for (;;) {
		int n = hf_poll_until(fds, 2, patience->deadline);

		if (n > 0 && fds[0].revents)
			return 0;
		if (n > 0)
			return FAIL(err, HF_E_CANCELLED, "wait", name, "it has not ended yet");
		if (n == 0)
			return FAIL(err, HF_E_TIMEOUT, "wait", name, "it has not ended yet");
		/* A signal is the caller's business: it has the cancel descriptor for that. */
		if (n != -EINTR)
			return hf_fail_sys(err, -n, "poll", name);
	}
}

/* For a session that cannot be judged: looks at its record again in a moment. 0, or as await_exit. */
static int pause_to_look(const struct patience *patience, const char *name, struct hf_err *err)
{
	struct patience moment = patience_of(LOOK_AGAIN_NS);
	int r;

	moment.cancel_fd = patience->cancel_fd;
	if (hf_mono_left(patience->deadline) == 0)
		return FAIL(err, HF_E_TIMEOUT, "wait", name, "it has not ended yet");
	r = await_exit(-1, &moment, name, err);
	return r == HF_E_TIMEOUT ? 0 : r;
}

/*
 * The record; or, where that is damaged or of a run before, what the lock knows of the keeper
 * that holds the name. Returns 0, 1 for the latter, or as hf_session_load.
 */
static int load_record(struct hf_sessions *sessions, const char *name, struct hf_session_record *ret,
		       struct hf_err *err)
{
	struct hf_session_owner owner;
	int r = hf_session_load_kept(sessions, name, ret, &owner, err);

	if (r <= 0)
		return r;
	*ret = (struct hf_session_record){ .token = owner.token,
					   .phase = HF_PHASE_RUNNING,
					   .supervisor = owner.supervisor,
					   .keeper = owner.keeper,
					   .grace_ns = HF_RUN_GRACE_NS };
	hf_copy_text(ret->name, sizeof(ret->name), name);
	return 1;
}

/* Waits until nobody looks after the session any more; *record is its last. */
static int await_end(struct hf_sessions *sessions, const char *name,
		     const struct patience *patience, struct hf_session_record *record,
		     struct hf_err *err)
{
	for (;;) {
		AUTO_FD pidfd = -1;
		int r = load_record(sessions, name, record, err);

		if (r < 0)
			return r;
		/* Over, and its name is free: a notice may still be on its way. */
		if (record->phase == HF_PHASE_ENDED &&
		    hf_proc_open(&record->keeper, sessions->judge_flags, &pidfd, NULL) < 0)
			return 0;
		if (record->phase == HF_PHASE_ENDED) {
			r = await_exit(pidfd, patience, name, err);
			return r == HF_E_TIMEOUT ? 0 : r;
		}
		r = open_kept(sessions, record, &pidfd, err);
		/* No process will end it: that is its end, for a waiter. (It may have been
		 * written between our reading and its keeper's exit.) */
		if (r == HF_E_GONE || r == HF_E_RECYCLED) {
			if (hf_session_load(sessions, name, record, err) < 0 ||
			    record->phase == HF_PHASE_ENDED ||
			    open_kept(sessions, record, &pidfd, err) != 0)
				return 0;
			continue;
		}
		if (r == HF_E_UNKNOWN)
			r = pause_to_look(patience, name, err);
		else if (r == 0)
			r = await_exit(pidfd, patience, name, err);
		if (r < 0)
			return r;
	}
}

struct shown {
	const char *state;
	uint32_t attempt;
	int32_t pid;
};

static void note_state(void *arg, const struct hf_session_info *info)
{
	*(struct shown *)arg = (struct shown){ hf_session_word(info->state), info->attempt, info->pid };
}

/* The time is over: what it is doing is told. */
static int fail_late(struct hf_sessions *sessions, const char *name, int64_t wait_ns, struct hf_err *err)
{
	struct shown shown = { .state = "unknown" };
	int64_t ms = wait_ns / HF_MSEC;

	if (hf_session_look(sessions, name, note_state, &shown, NULL) < 0)
		return FAIL(err, HF_E_TIMEOUT, "wait", name, "it has not ended yet");
	if (shown.pid > 0)
		return FAIL(err, HF_E_TIMEOUT, "wait", name, "not ended after %lld ms: it is %s, attempt %u, pid %d",
			    (long long)ms, shown.state, shown.attempt, (int)shown.pid);
	return FAIL(err, HF_E_TIMEOUT, "wait", name, "not ended after %lld ms: it is %s, attempt %u", (long long)ms,
		    shown.state, shown.attempt);
}

static int wait_for(struct hf_sessions *sessions, const char *name, const struct hf_wait_opts *opts,
		    hf_session_fn *fn, void *arg, struct hf_err *err)
{
	struct patience patience = patience_of(opts ? opts->wait_ns : -1);
	struct hf_session_record record;
	int r;

	if (!fn || (opts && (opts->size < sizeof(*opts) || opts->cancel_fd < 0)))
		return FAIL(err, -EINVAL, "arguments", "hf_session_wait",
			    fn ? "size or cancel_fd is wrong" : "NULL");
	if (opts && opts->cancel_fd > 0)
		patience.cancel_fd = opts->cancel_fd;
	r = await_end(sessions, name, &patience, &record, err);
	if (r < 0)
		return r == HF_E_TIMEOUT && opts ? fail_late(sessions, name, opts->wait_ns, err) : r;
	hf_session_show(sessions, &record, fn, arg);
	return 0;
}

int hf_session_wait(struct hf_sessions *sessions, const char *name,
		    const struct hf_wait_opts *opts, hf_session_fn *fn, void *arg,
		    struct hf_err *err)
{
	return hf_err_wrap(err, wait_for(sessions, name, opts, fn, arg, err), "session", name);
}

/* Does this process run in that session? By the mark that it has of it; the proof was the keeper, an ancestor. */
static int is_inside(const struct hf_sessions *sessions, const struct hf_session_record *record)
{
	char prefix[HF_MARK_MAX];

	(void)hf_mark_prefix(sessions->dir_inode, record->name, prefix);
	return hf_mark_found((int32_t)getpid(), prefix, record->token, 0);
}

static int refuse(struct hf_sessions *sessions, const char *name, const struct hf_err *err)
{
	char text[HF_ERR_TEXT_MAX];
	struct hf_field fields[] = { HF_FIELD_TEXT("action", "stop"), HF_FIELD_TEXT("reason", text) };

	(void)hf_err_format(err, text, sizeof(text));
	hf_session_event(sessions, HF_EV_SESSION_REFUSED, name, fields, 2);
	return err->code;
}

/* Asks the keeper to end it, through a pidfd whose identity was proven after it was opened (L6). */
static int ask(struct hf_sessions *sessions, const struct hf_session_record *record, int pidfd,
	       int64_t grace_ns, struct hf_err *err)
{
	int64_t ms = grace_ns < 0 ? -1 : (grace_ns + HF_MSEC - 1) / HF_MSEC;
	int r;

	/* Not ourselves, nor those around us. */
	r = hf_proc_signal(&record->keeper, 0, sessions->judge_flags, err);
	/* Said of the session, and not of a pid that nobody has heard of. */
	if (r == HF_E_PROTECTED && is_inside(sessions, record))
		r = FAIL(err, HF_E_PROTECTED, "stop", record->name,
			 "this command runs in that session, which cannot stop itself; let its command exit, or stop it from outside");
	if (r < 0)
		return r;
	if (hf_sys.pidfd_queue(pidfd, SIGTERM, ms > INT_MAX ? INT_MAX : (int)ms) < 0)
		return errno == ESRCH ? HF_E_GONE : FAIL_SYS(err, "pidfd_send_signal", record->name);
	/* One that is stopped could not act on it. */
	(void)hf_sys.pidfd_send_signal(pidfd, SIGCONT);
	return 0;
}

/*
 * The keeper was killed, perhaps just now: then the supervisor ends the tree. HF_E_GONE when
 * that has exited as well.
 */
static int await_supervisor(struct hf_sessions *sessions, const struct hf_session_record *record,
			    struct hf_err *err)
{
	struct patience moment = patience_of(EXIT_NS), patience = patience_of(PATIENCE_NS);
	AUTO_FD pidfd = -1;
	int r = hf_proc_open(&record->supervisor, sessions->judge_flags, &pidfd, err);

	if (r < 0)
		return r;
	/* Mostly it exits by itself; a CONT then takes away the stop by which a leak checker looks at it, for ever. */
	r = await_exit(pidfd, &moment, record->name, err);
	if (r != HF_E_TIMEOUT)
		return r;
	/* One that is stopped has to go on first. */
	(void)hf_sys.pidfd_send_signal(pidfd, SIGCONT);
	return await_exit(pidfd, &patience, record->name, err);
}

/* Its keepers are gone: what is left of it is ended, or there is nothing. */
static int stop_remains(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	int killed = hf_session_reap_run(sessions, name, token, err);

	if (killed < 0)
		return killed;
	return killed > 0 ? HF_STOP_KILLED : HF_STOP_ALREADY_GONE;
}

static int stop(struct hf_sessions *sessions, const char *name, uint64_t token, int64_t grace_ns, struct hf_err *err)
{
	struct hf_session_record record, after;
	struct hf_err why = HF_ERR_INIT;
	AUTO_FD pidfd = -1;
	int by_lock, late = 0, r = load_record(sessions, name, &record, err);

	if (r < 0)
		return r;
	grace_ns = bounded(grace_ns);
	by_lock = r;
	r = hf_session_check_run(&record, token, "stop", err);
	if (r < 0)
		return r;
	if (record.phase == HF_PHASE_ENDED)
		return HF_STOP_ALREADY_GONE;
	r = hf_proc_open(&record.keeper, sessions->judge_flags, &pidfd, &why);
	if (r == 0)
		r = ask(sessions, &record, pidfd, grace_ns, &why);
	if (r < 0 && r != HF_E_GONE) {
		if (err)
			*err = why;
		return refuse(sessions, name, &why);
	}
	if (grace_ns == 0)
		grace_ns = bounded(record.grace_ns);
	if (r == 0) {
		struct patience patience = patience_of((grace_ns > 0 ? grace_ns : 0) + PATIENCE_NS);

		late = await_exit(pidfd, &patience, name, &why);
	}
	r = hf_session_load(sessions, name, &after, err);
	/* It ended, and was forgotten then (HF_RUN_REMOVE). */
	if (r == HF_E_NO_SESSION && !by_lock && late == 0)
		return HF_STOP_STOPPED;
	/* Its keeper was killed before it could write the record anew, or it ended before its first. */
	if (by_lock && (r == HF_E_NO_SESSION || r == HF_E_FORMAT || (r == 0 && after.token != record.token))) {
		after = record;
		r = 0;
	}
	/* A keeper that is still busy with a notice has ended the tree all the same. */
	if (r == 0 && late < 0 && after.phase != HF_PHASE_ENDED) {
		if (err)
			*err = why;
		return late;
	}
	/* The keeper was killed, before or while it was at it. */
	if (r == 0 && after.phase != HF_PHASE_ENDED) {
		r = await_supervisor(sessions, &record, &why);
		if (r == HF_E_RECYCLED || r == HF_E_UNKNOWN)
			(void)refuse(sessions, name, &why);
		if (r < 0 && r != HF_E_GONE && err)
			*err = why;
		if (r == 0 && !by_lock)
			r = hf_session_load(sessions, name, &after, err);
		if (r == HF_E_GONE || (r == 0 && after.phase != HF_PHASE_ENDED)) {
			r = stop_remains(sessions, name, token, err);
			/* Not even its directory may be left. */
			return by_lock && (r == HF_STOP_ALREADY_GONE || r == HF_E_NO_SESSION) ? HF_STOP_STOPPED : r;
		}
	}
	if (r < 0)
		return r;
	return after.kills ? HF_STOP_KILLED : HF_STOP_STOPPED;
}

int hf_session_stop_run(struct hf_sessions *sessions, const char *name, uint64_t token, int64_t grace_ns,
			struct hf_err *err)
{
	return hf_err_wrap(err, stop(sessions, name, token, grace_ns, err), "session", name);
}

int hf_session_stop(struct hf_sessions *sessions, const char *name, int64_t grace_ns,
		    struct hf_err *err)
{
	return hf_session_stop_run(sessions, name, 0, grace_ns, err);
}
