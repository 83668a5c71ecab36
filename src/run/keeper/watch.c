/*
 * run/keeper/watch.c - the keeper's poll: what may happen while a command runs, and ending its tree.
 *
 * The tree is ended in three steps: TERM to all of it, the grace time, KILL until it is
 * empty. A stronger reason that comes in between shortens the time that is left; it never
 * makes it longer. "Empty" is what hf_tree_reap says, and nothing else ends the watch (L7).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"

/*
 * Between two rounds of KILL. One round is the rule; the next is for who was forked meanwhile.
 * Looking again at every exit would take the processor from those that are ending.
 */
#define KILL_AGAIN_NS (10 * HF_MSEC)

/*
 * A reader that takes nothing for so long loses what was left when all had ended. One
 * whose session was ended by force does not hold up the next.
 */
#define DRAIN_NS        (10 * HF_SEC)
#define DRAIN_FORCED_NS HF_SEC

const char *hf_end_text(enum hf_end end)
{
	static const char *const texts[] = {
		[HF_END_NONE] = "it ended",
		[HF_END_LEFTOVERS] = "the command had exited",
		[HF_END_DEADLINE] = "the deadline was reached",
		[HF_END_IDLE] = "there was no output for too long",
		[HF_END_STOP] = "it was asked to stop",
		[HF_END_HANGUP] = "the terminal was closed",
		[HF_END_LOST] = "the lock was lost",
		[HF_END_SUPERVISOR] = "the supervisor was killed",
	};

	return texts[end];
}

void hf_keeper_end(struct hf_keeper *k, enum hf_end end, int64_t grace_ns)
{
	struct hf_mono at = hf_mono_in(grace_ns < 0 ? 0 : grace_ns);
	int first = k->end == HF_END_NONE;
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_TEXT("cause", hf_end_text(end)) };

	if (!first && at.ns < k->kill_at.ns)
		k->kill_at = at;
	if (!first && end <= k->end)
		return;
	k->end = end;
	if (end == HF_END_LOST)
		k->lost = 1;
	/* That a command left something behind is no decision; all else is told (L8). */
	if (end != HF_END_LEFTOVERS) {
		k->record.phase = HF_PHASE_STOPPING;
		(void)hf_keeper_save(k);
		hf_session_event(k->sessions, HF_EV_SESSION_STOPPING, k->name, fields, 2);
	}
	/* A stop that comes late is a request all the same: whoever was spared gets TERM. */
	if (grace_ns >= 0 && !k->killing)
		(void)hf_tree_term(&k->tree);
	if (first)
		k->kill_at = at;
}

/* -- what comes in -------------------------------------------------------------- */

static void forward(struct hf_keeper *k, const struct hf_child *child, int sig)
{
	if (child && !k->tree.leader_exited)
		(void)hf_sys.pidfd_send_signal(child->pidfd, sig);
}

static void obey(struct hf_keeper *k, const struct hf_child *child, int sig, int from_terminal)
{
	/* What the terminal sent went to the command as well, unless that is in our own session. */
	int has_it = from_terminal && !k->own_session;

	switch (sig) {
	case SIGTERM:
		hf_keeper_end(k, HF_END_STOP, k->o.grace_ns);
		break;
	case SIGHUP:
		/* A closed terminal tells the leader of its session alone; twice does no harm. */
		forward(k, child, SIGHUP);
		hf_keeper_end(k, HF_END_HANGUP, k->o.grace_ns);
		break;
	case SIGCONT:
		/* Ctrl-Z stopped all of the foreground on the pty, not the command alone. */
		hf_tree_signal(&k->tree, SIGCONT);
		break;
	default:
		/* A key is meant for all who would be in front. */
		if (from_terminal && !has_it)
			hf_tree_signal(&k->tree, sig);
		else if (!has_it)
			forward(k, child, sig);
		/* Between two attempts there is nobody who could act on it. */
		if (!child && (sig == SIGINT || sig == SIGQUIT))
			hf_keeper_end(k, HF_END_STOP, k->o.grace_ns);
		break;
	}
}

static void take_orders(struct hf_keeper *k, const struct hf_child *child)
{
	struct hf_link_order order;
	ssize_t n;

	while ((n = recv(k->link, &order, sizeof(order), MSG_DONTWAIT)) == sizeof(order))
		obey(k, child, order.signal, order.from_terminal);
	if (n == 0)
		hf_keeper_end(k, HF_END_SUPERVISOR, -1);
}

/* On a pty, Ctrl-Z stops the command alone; who started us is to get the terminal back. */
static void tell_suspended(struct hf_keeper *k, const struct hf_child *child)
{
	struct hf_link_news news = { .kind = HF_LINK_SUSPENDED };
	siginfo_t info = { 0 };

	if (child && k->output.on_pty && !k->tree.leader_exited &&
	    waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
		hf_keeper_tell(k, &news, -1);
}

static void take_signals(struct hf_keeper *k, const struct hf_child *child)
{
	struct signalfd_siginfo info;

	while (hf_sys.read(k->signals, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD) {
			tell_suspended(k, child);
			continue;
		}
		/* `stop` says how long to wait, in milliseconds; -1: not at all. */
		if (sig == SIGTERM && info.ssi_code == SI_QUEUE && info.ssi_int != 0)
			hf_keeper_end(k, HF_END_STOP, (int64_t)info.ssi_int * HF_MSEC);
		else
			obey(k, child, sig, 0);
	}
}

/* A renewal that fails is tried again until the lease has run out; then it is lost. */
static void renew(struct hf_keeper *k)
{
	struct hf_mono begun = hf_mono_now();
	int r;

	if (k->lost || hf_mono_left(k->renew_at) > 0)
		return;
	r = hf_lock_renew(k->lock, 0, NULL);
	if (r == 0) {
		k->renew_at = hf_mono_in(k->o.ttl_ns / 3);
		k->lost_at.ns = begun.ns + k->o.ttl_ns;
		/* A place in the group that was lost is not worth a session. */
		if (k->slot && hf_lock_renew(k->slot, 0, NULL) < 0) {
			hf_lock_free(k->slot);
			k->slot = NULL;
		}
		return;
	}
	k->renew_at = hf_mono_in(k->o.ttl_ns / 10);
	if (r == HF_E_STALE || hf_mono_left(k->lost_at) == 0)
		hf_keeper_end(k, HF_END_LOST, k->o.grace_ns);
}

/* -- the poll ------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* One sleep, at most `ns`, and what it brought. */
static void turn(struct hf_keeper *k, const struct hf_child *child, int64_t ns)
{
	struct pollfd fds[7] = { { .fd = k->signals, .events = POLLIN },
				 { .fd = k->end == HF_END_SUPERVISOR ? -1 : k->supervisor_fd,
				   .events = POLLIN },
				 { .fd = k->end == HF_END_SUPERVISOR ? -1 : k->link,
				   .events = POLLIN } };
	nfds_t n = 3 + hf_output_poll(&k->output, fds + 3);

	if (!k->lost)
		ns = smaller(ns, hf_mono_left(k->renew_at));
	/* Rounded up, so that what we wake for is due. */
	(void)hf_sys.poll(fds, n,
			  ns / HF_MSEC >= INT_MAX ? -1 : (int)((ns + HF_MSEC - 1) / HF_MSEC));
	hf_output_pump(&k->output);
	if (fds[0].revents)
		take_signals(k, child);
	if (fds[2].revents)
		take_orders(k, child);
	if (fds[1].revents && k->end != HF_END_SUPERVISOR)
		hf_keeper_end(k, HF_END_SUPERVISOR, -1);
	renew(k);
}

struct limits {
	struct hf_mono deadline;
	int has_deadline;
	int64_t idle_ns;
};

/* How long until a limit is reached; ends the tree when one is. */
static int64_t check_limits(struct hf_keeper *k, const struct limits *limits)
{
	int64_t left = INT64_MAX;

	if (limits->has_deadline) {
		left = hf_mono_left(limits->deadline);
		if (left == 0)
			hf_keeper_end(k, HF_END_DEADLINE, k->o.grace_ns);
	}
	if (limits->idle_ns > 0) {
		int64_t quiet = limits->idle_ns - hf_output_age(&k->output);

		if (quiet <= 0)
			hf_keeper_end(k, HF_END_IDLE, k->o.grace_ns);
		left = smaller(left, quiet > 0 ? quiet : 0);
	}
	return left;
}

static void begin_watch(struct hf_keeper *k, const struct hf_child *child)
{
	k->killing = 0;
	k->kill_again_at = hf_mono_now();
	k->killed_before = k->tree.killed;
	hf_victims_done(&k->tree.victims);
	k->tree.leader = child ? (int32_t)child->pid : 0;
	k->tree.leader_exited = 0;
	/* A stop that came before counts for what is started now, too. */
	if (k->end != HF_END_NONE)
		k->kill_at = hf_mono_in(k->o.grace_ns < 0 ? 0 : k->o.grace_ns);
}

/* SIGKILL was needed, and the end of all was seen: one event (L8). */
static void tell_killed(struct hf_keeper *k)
{
	struct hf_field fields[] = { HF_FIELD_INT("count", k->tree.killed - k->killed_before),
				     HF_FIELD_TEXT("cause", hf_end_text(k->end)) };

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
	enum hf_end end = k->end;
	uint64_t taken, before = 0;

	while (hf_output_is_waiting(&k->output, &taken) && k->end == end && hf_mono_left(limit) > 0) {
		if (taken != before)
			limit = hf_mono_in(patience);
		before = taken;
		turn(k, NULL, hf_mono_left(limit));
	}
	hf_output_drain(&k->output);
}

struct hf_watched hf_keeper_watch(struct hf_keeper *k, const struct hf_child *child,
				  int64_t limit_ns, int64_t idle_ns)
{
	struct limits limits = { .deadline = hf_mono_in(limit_ns),
				 .has_deadline = limit_ns > 0,
				 .idle_ns = idle_ns };
	enum hf_end before = HF_END_NONE; /* the reason when the command itself had ended */
	int exited = 0;

	begin_watch(k, child);
	while (hf_tree_reap(&k->tree)) {
		int64_t ns = INT64_MAX;

		if (k->tree.leader_exited && !exited) {
			exited = 1;
			before = k->end;
			if (k->o.flags & HF_RUN_LEAVE_RUNNING && k->end == HF_END_NONE)
				break;
			hf_keeper_end(k, HF_END_LEFTOVERS, k->o.grace_ns);
		}
		if (!exited)
			ns = check_limits(k, &limits);
		if (k->end != HF_END_NONE && (k->killing || hf_mono_left(k->kill_at) == 0)) {
			k->killing = 1;
			if (hf_mono_left(k->kill_again_at) == 0) {
				hf_tree_kill(&k->tree);
				k->kill_again_at = hf_mono_in(KILL_AGAIN_NS);
			}
			ns = hf_mono_left(k->kill_again_at);
		} else if (k->end != HF_END_NONE) {
			ns = smaller(ns, hf_mono_left(k->kill_at));
		}
		turn(k, child, ns);
	}
	drain(k, k->end > HF_END_LEFTOVERS);
	tell_killed(k);
	/* A reason that came while leftovers were being ended did not end the command. */
	if (exited && before == HF_END_NONE && k->end < HF_END_STOP)
		k->end = HF_END_NONE;
	return (struct hf_watched){ .code = k->tree.leader_code,
				    .status = k->tree.leader_status,
				    .end = exited && before == HF_END_NONE ? HF_END_NONE : k->end };
}

int hf_keeper_sleep(struct hf_keeper *k, int64_t ns)
{
	struct hf_mono until = hf_mono_in(ns);

	begin_watch(k, NULL);
	while (k->end == HF_END_NONE && hf_mono_left(until) > 0) {
		(void)hf_tree_reap(&k->tree);
		turn(k, NULL, hf_mono_left(until));
	}
	return k->end != HF_END_NONE;
}
