/*
 * run/keeper/poll.c - the keeper's one poll: what may happen while a command runs, between two attempts, and at its end.
 *
 * Each thing that comes in is an event: it changes ending.c's state, whose answer is carried out at
 * once. Records and journal come after the signals, and nothing here waits for the disk: else a
 * slow one would hold up the deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/lock/store.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/beat.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"

/*
 * A reader that takes nothing for so long loses what was left when all had ended. One
 * whose session was ended by force does not hold up the next.
 */
#define DRAIN_NS        (10 * HF_SEC)
#define DRAIN_FORCED_NS HF_SEC

/*
 * While a command is watched, nothing waits longer for the record of the lock: a process that is stopped in
 * the middle of a call on it would hold up the deadline. A renewal is tried again, a note can be missed.
 */
#define RECORD_WAIT_NS (100 * HF_MSEC)

/* What outlives a command in a sandbox is asked to end after so long. */
#define ATTENDANT_NS (50 * HF_MSEC)

/* A supervisor that takes signals and does not pass them on was stopped in the middle of it. */
#define PASSING_NS (2 * HF_SEC)

/* -- ending ------------------------------------------------------------------------ */

/* Carries out what the state machine says. */
static void act(struct hf_keeper *k, enum hf_act what)
{
	switch (what) {
	case HF_ACT_TERM_LEADER:
		/* One that is stopped could not act on TERM alone. */
		if (k->child && !k->tree.leader_exited) {
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, SIGTERM);
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, SIGCONT);
		}
		break;
	case HF_ACT_TERM_REST:
		(void)hf_tree_term(&k->tree, k->tree.leader);
		break;
	case HF_ACT_TERM_TREE:
		(void)hf_tree_term(&k->tree, 0);
		break;
	case HF_ACT_KILL:
		hf_tree_kill(&k->tree);
		break;
	case HF_ACT_NOTHING:
	default:
		break;
	}
}

/* Is it a reason to end the whole session, and not one command? */
static int is_for_session(enum hf_cause cause)
{
	return cause > HF_CAUSE_IDLE;
}

/*
 * Is the session ending now? Not when its outcome is on record already and only the notice still runs,
 * and not by the limit of a command beside the attempt (--until, --notify), which ends that alone.
 */
static int is_session_ending(const struct hf_keeper *k, enum hf_cause cause)
{
	return k->record.phase != HF_PHASE_ENDED && (is_for_session(cause) || !k->beside);
}

/* There is a reason to end. Signals first; then the record and the event, once for each reason that counts (L8). */
static void end(struct hf_keeper *k, enum hf_cause cause, int64_t grace_ns)
{
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_TEXT("cause", hf_cause_text(cause)) };
	int first = is_for_session(cause) && k->over == HF_CAUSE_NONE;

	first |= k->child && k->ending.cause == HF_CAUSE_NONE && !k->ending.leader_gone;
	if (k->child)
		act(k, hf_ending_ask(&k->ending, cause, grace_ns, hf_mono_now()));
	if (is_for_session(cause) && k->over == HF_CAUSE_NONE)
		k->over = cause;
	if (cause == HF_CAUSE_LOST)
		k->lost = 1;
	if (!first || !is_session_ending(k, cause))
		return;
	/* What is being landed is settled by the next run or reap, if we die now: the record goes on saying so. */
	if (k->record.phase != HF_PHASE_LANDING) {
		k->record.phase = HF_PHASE_STOPPING;
		(void)hf_keeper_note(k);
	}
	hf_session_event(k->sessions, HF_EV_SESSION_STOPPING, k->name, fields, 2);
}

/* -- what comes in -------------------------------------------------------------- */

/* To the leader, and to all of its group where that is not the caller's as well. */
static void pass_on(struct hf_keeper *k, int sig)
{
	int own_group = k->group == 0 || k->own_session;

	if (!k->child || k->tree.leader_exited)
		return;
	if (!own_group || hf_sys.pidfd_signal_group(k->child->pidfd, k->child->pid, sig) < 0)
		(void)hf_sys.pidfd_send_signal(k->child->pidfd, sig);
}

/*
 * An attempt that was interrupted is no success, whatever the command makes of it, and is the last
 * one of its loop. `has_it`: the command got it from the terminal.
 */
static void interrupt(struct hf_keeper *k, int sig, int has_it)
{
	if (!k->child) {
		/* Between two attempts there is no process that could act on it. */
		k->interrupted = k->interrupted ? k->interrupted : sig;
		end(k, HF_CAUSE_INTERRUPT, k->o.grace_ns);
		return;
	}
	if (!k->interrupted && k->ending.cause == HF_CAUSE_NONE && (has_it || !k->ending.leader_gone))
		k->interrupted = sig;
	if (k->over == HF_CAUSE_NONE)
		k->over = HF_CAUSE_INTERRUPT;
	if (!has_it)
		pass_on(k, sig);
}

static void obey(struct hf_keeper *k, const struct hf_link_order *order)
{
	/* What the terminal sent went to the command as well, unless that is in our own session. */
	int has_it = order->group != 0 || (order->from_terminal && !k->own_session && k->group != 0);

	/* A key that interrupts a job of the command, and not the command. */
	if (order->group != 0 && (!k->child || order->group != k->child->pid))
		return;
	switch (order->signal) {
	case SIGTERM:
		end(k, HF_CAUSE_STOP, k->o.grace_ns);
		break;
	case SIGHUP:
		/* A closed terminal tells the leader of its session alone; twice does no harm. */
		if (k->child && !k->tree.leader_exited)
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, SIGHUP);
		end(k, HF_CAUSE_HANGUP, k->o.grace_ns);
		break;
	case SIGINT:
	case SIGQUIT:
		interrupt(k, order->signal, has_it);
		break;
	case SIGCONT:
		/* Ctrl-Z stopped all of the foreground on the pty, not the command alone. */
		hf_tree_signal(&k->tree, SIGCONT);
		break;
	default:
		if (!has_it)
			pass_on(k, order->signal);
		break;
	}
}

static void take_orders(struct hf_keeper *k)
{
	struct hf_link_order order;
	ssize_t n;

	while ((n = recv(k->link, &order, sizeof(order), MSG_DONTWAIT)) == sizeof(order))
		obey(k, &order);
	if (n == 0 && k->over != HF_CAUSE_SUPERVISOR) {
		end(k, HF_CAUSE_SUPERVISOR, -1);
		k->over = HF_CAUSE_SUPERVISOR;
	}
}

/* On a pty, Ctrl-Z stops the command alone; the supervisor's shell is to get the terminal back. */
static void tell_suspended(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_SUSPENDED };
	siginfo_t info = { 0 };

	if (k->child && k->output.on_pty && !k->tree.leader_exited &&
	    waitid(P_PID, (id_t)k->child->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
		hf_keeper_tell(k, &news, -1);
}

static void take_signals(struct hf_keeper *k)
{
	struct signalfd_siginfo info;

	while (hf_sys.read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		struct hf_link_order order = { .signal = (int)info.ssi_signo };

		if (order.signal == SIGCHLD) {
			tell_suspended(k);
			continue;
		}
		/* `stop` says how long to wait, in milliseconds; -1: not at all. */
		if (order.signal == SIGTERM && info.ssi_code == SI_QUEUE && info.ssi_int != 0)
			end(k, HF_CAUSE_STOP, (int64_t)info.ssi_int * HF_MSEC);
		else
			obey(k, &order);
	}
}

void hf_keeper_listen(struct hf_keeper *k)
{
	take_signals(k);
	if (k->over != HF_CAUSE_SUPERVISOR)
		take_orders(k);
}

static void renew(struct hf_keeper *k)
{
	int r = k->lost ? 0 : hf_renewal_step(&k->renewal, NULL);

	/* A place in the group that was lost is not worth a session. */
	if (r > 0 && k->slot && hf_lock_renew(k->slot, 0, NULL) < 0) {
		hf_lock_free(k->slot);
		k->slot = NULL;
	}
	if (r < 0)
		end(k, HF_CAUSE_LOST, k->o.grace_ns);
}

/* -- the poll ------------------------------------------------------------------- */

/* One sleep, at most to `until`, and what it brought. */
static void turn(struct hf_keeper *k, struct hf_mono until)
{
	int alone = k->over == HF_CAUSE_SUPERVISOR;
	struct pollfd fds[7] = { { .fd = k->signals, .events = POLLIN },
				 { .fd = alone ? -1 : k->supervisor_fd, .events = POLLIN },
				 { .fd = alone ? -1 : k->link, .events = POLLIN } };
	nfds_t n = 3 + hf_output_poll(&k->output, fds + 3);

	if (!k->lost)
		until = hf_mono_earlier(until, k->renewal.next);
	(void)hf_poll_until(fds, n, until);
	hf_output_pump(&k->output);
	if (fds[0].revents)
		take_signals(k);
	if (fds[2].revents)
		take_orders(k);
	if (fds[1].revents && k->over != HF_CAUSE_SUPERVISOR) {
		end(k, HF_CAUSE_SUPERVISOR, -1);
		k->over = HF_CAUSE_SUPERVISOR;
	}
	renew(k);
}

/* When the next limit is reached; ends the tree when one is. */
static struct hf_mono check_limits(struct hf_keeper *k, const struct hf_limits *limits)
{
	struct hf_mono next = HF_MONO_NEVER;

	if (k->ending.phase != HF_ENDING_QUIET)
		return next;
	if (limits->has_deadline) {
		next = limits->deadline;
		if (hf_mono_left(next) == 0)
			end(k, HF_CAUSE_DEADLINE, k->o.grace_ns);
	}
	if (limits->idle_ns > 0) {
		int64_t quiet = limits->idle_ns - hf_output_age(&k->output);

		/* A command that prints nothing may still tell that it works. */
		if (quiet <= 0) {
			int64_t beat = hf_beat_age(k->sessions, k->name, k->record.token);

			if (beat >= 0)
				quiet = limits->idle_ns - beat;
		}
		if (quiet <= 0)
			end(k, HF_CAUSE_IDLE, k->o.grace_ns);
		next = hf_mono_earlier(next, hf_mono_in(quiet > 0 ? quiet : 0));
	}
	return next;
}

static void begin_watch(struct hf_keeper *k, const struct hf_child *child)
{
	k->child = child;
	k->ending = (struct hf_ending){ .whole = k->o.term == HF_TERM_TREE };
	k->killed_before = k->tree.killed;
	hf_victims_done(&k->tree.victims);
	k->tree.leader = child ? (int32_t)child->pid : 0;
	k->tree.leader_exited = 0;
}

/* SIGKILL was needed, and the end of all was seen: one event (L8). */
static void tell_killed(struct hf_keeper *k)
{
	struct hf_field fields[] = { HF_FIELD_INT("count", k->tree.killed - k->killed_before),
				     HF_FIELD_TEXT("cause", hf_cause_text(k->ending.cause)) };

	if (k->tree.killed == k->killed_before)
		return;
	k->record.kills = 1;
	hf_session_event(k->sessions, HF_EV_SESSION_KILLED, k->name, fields, 2);
}

/* What is still in the pipes. Its reader may be slow; lease and signals go on meanwhile. */
static void drain(struct hf_keeper *k, int forced)
{
	int64_t patience = forced ? DRAIN_FORCED_NS : DRAIN_NS;
	struct hf_mono limit = hf_mono_in(patience);
	enum hf_cause over = k->over;
	uint64_t taken, before = 0;

	while (hf_output_is_waiting(&k->output, &taken) && k->over == over && hf_mono_left(limit) > 0) {
		if (taken != before)
			limit = hf_mono_in(patience);
		before = taken;
		turn(k, limit);
	}
	hf_output_drain(&k->output);
}

/* Has the supervisor a signal that ends a session, and did not take it yet? */
static int supervisor_has_signal(const struct hf_keeper *k)
{
	const uint64_t wanted = UINT64_C(1) << (SIGINT - 1) | UINT64_C(1) << (SIGQUIT - 1) |
				UINT64_C(1) << (SIGTERM - 1) | UINT64_C(1) << (SIGHUP - 1);
	char path[32], text[4096];
	AUTO_FD fd = -1;
	uint64_t pending, found = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)k->supervisor);
	fd = hf_open_at(AT_FDCWD, path, O_RDONLY, 0);
	n = fd < 0 ? -1 : hf_sys.read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* SigPnd and ShdPnd, of sixteen digits each. */
	for (const char *line = text; (line = strstr(line, "Pnd:\t")) != NULL; line += 5)
		if (strnlen(line + 5, 16) == 16 && hf_parse_hex64(line + 5, 16, &pending) == 0)
			found |= pending & wanted;
	return found != 0;
}

/*
 * Ctrl-C, a terminal that is closed, and timeout(1) signal the supervisor and the command at once, and a
 * command that exits 0 on it may be faster than the supervisor that tells us. So before its end is
 * judged, all that came before is here: not pending there, not being passed on, then taken from the link.
 */
static void hear_all(struct hf_keeper *k)
{
	struct hf_mono limit = hf_mono_in(PASSING_NS);
	int shared = k->group != 0 && !k->own_session && k->over != HF_CAUSE_SUPERVISOR;

	while (shared && (supervisor_has_signal(k) || atomic_load(&k->gate->passing)) &&
	       hf_mono_left(limit) > 0 && hf_pidfd_exited(k->supervisor_fd) == 0)
		(void)hf_sys.poll(NULL, 0, 1);
	/* It is stopped and cannot say. A success that is none would be worse than the reverse. */
	if (shared && hf_mono_left(limit) == 0 && !k->interrupted)
		k->interrupted = SIGINT;
	hf_keeper_listen(k);
}

/*
 * The command has exited: what ended it, and what it left. Everything that was sent before is heard
 * first, else a command that exits 0 on TERM would be a success (L14). Returns 0 when what it left
 * may live on.
 */
static int note_exit(struct hf_keeper *k, struct hf_watched *watched)
{
	int by_itself, is_left;

	hear_all(k);
	watched->interrupted = k->interrupted;
	by_itself = k->ending.phase == HF_ENDING_QUIET;
	is_left = by_itself && k->o.flags & HF_RUN_LEAVE_RUNNING;
	if (by_itself && !is_left)
		hf_tree_describe(&k->tree, &watched->outlived);
	if (is_left)
		k->ending.leader_gone = 1;
	else
		act(k, hf_ending_leader_exited(&k->ending, k->o.grace_ns, hf_mono_now()));
	return !is_left;
}

struct hf_watched hf_keeper_watch(struct hf_keeper *k, const struct hf_child *child,
				  const struct hf_limits *limits)
{
	struct hf_watched watched = { .code = 0 };

	begin_watch(k, child);
	hf_locks_set_patience(k->sessions->locks, RECORD_WAIT_NS);
	while (hf_tree_reap(&k->tree)) {
		struct hf_mono next = HF_MONO_NEVER;

		if (k->tree.leader_exited && !k->ending.leader_gone) {
			/* It ends right after the last process that was in its sandbox: mostly nobody outlives a command. */
			if (k->ending.phase == HF_ENDING_QUIET && hf_tree_await_attendant(&k->tree, ATTENDANT_NS))
				continue;
			if (!note_exit(k, &watched))
				break;
			continue; /* it may have taken the SIGCHLD of the last one */
		}
		if (!k->ending.leader_gone)
			next = check_limits(k, limits);
		act(k, hf_ending_time(&k->ending, hf_mono_now()));
		turn(k, hf_mono_earlier(next, hf_mono_in(hf_ending_due(&k->ending, hf_mono_now()))));
	}
	/* Nothing outlived it. */
	if (!k->ending.leader_gone) {
		hear_all(k);
		watched.interrupted = k->interrupted;
		k->ending.leader_gone = 1;
	}
	k->child = NULL;
	drain(k, k->ending.cause != HF_CAUSE_NONE);
	hf_locks_set_patience(k->sessions->locks, 0);
	tell_killed(k);
	watched.code = k->tree.leader_code;
	watched.status = k->tree.leader_status;
	watched.cause = k->ending.cause;
	return watched;
}

int hf_keeper_sleep(struct hf_keeper *k, int64_t ns)
{
	struct hf_mono until = hf_mono_in(ns);

	begin_watch(k, NULL);
	while (k->over == HF_CAUSE_NONE && hf_mono_left(until) > 0) {
		(void)hf_tree_reap(&k->tree);
		turn(k, until);
	}
	return k->over != HF_CAUSE_NONE;
}
