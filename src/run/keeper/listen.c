/* run/keeper/listen.c - what the keeper is told: orders of the supervisor and signals, and the ends that they begin. */
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/lock/store.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"

void hf_keeper_act(struct hf_keeper *k, enum hf_act what)
{
	switch (what) {
	case HF_ACT_TERM_LEADER:
		/* One that is stopped could not act on TERM alone. */
		if (k->child && !k->tree.leader_exited) {
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, k->o.stop_signal ? (int)k->o.stop_signal : SIGTERM);
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, SIGCONT);
		}
		break;
	case HF_ACT_TERM_REST:
		(void)hf_tree_term(&k->tree, k->tree.leader);
		break;
	case HF_ACT_TERM_TREE:
		if (k->o.stop_signal) {
			hf_keeper_act(k, HF_ACT_TERM_LEADER);
			(void)hf_tree_term(&k->tree, k->tree.leader);
		} else {
			(void)hf_tree_term(&k->tree, 0);
		}
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
 * and not by the limit of a command beside the attempt (--until), which ends that alone.
 */
static int is_session_ending(const struct hf_keeper *k, enum hf_cause cause)
{
	return k->record.phase != HF_PHASE_ENDED && (is_for_session(cause) || !k->beside);
}

void hf_keeper_end(struct hf_keeper *k, enum hf_cause cause, int64_t grace_ns)
{
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_TEXT("cause", hf_cause_text(cause)) };
	int first = is_for_session(cause) && k->over == HF_CAUSE_NONE;

	first |= k->child && k->ending.cause == HF_CAUSE_NONE && !k->ending.leader_gone;
	if (k->child)
		hf_keeper_act(k, hf_ending_ask(&k->ending, cause, grace_ns, hf_mono_now()));
	if (is_for_session(cause) && k->over == HF_CAUSE_NONE)
		k->over = cause;
	if (cause == HF_CAUSE_LOST)
		k->lost = 1;
	if (!first || !is_session_ending(k, cause) || k->queueing)
		return;
	/* What is being landed is settled by the next run or reap, if we die now: the record goes on saying so. */
	if (k->record.phase != HF_PHASE_LANDING) {
		k->record.phase = HF_PHASE_STOPPING;
		(void)hf_keeper_note(k);
	}
	hf_session_event(k->sessions, HF_EV_SESSION_STOPPING, k->name, fields, 2);
}

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
		hf_keeper_end(k, HF_CAUSE_INTERRUPT, k->o.grace_ns);
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
		hf_keeper_end(k, HF_CAUSE_STOP, k->o.grace_ns);
		break;
	case SIGHUP:
		/* A closed terminal tells the leader of its session alone; twice does no harm. */
		if (k->child && !k->tree.leader_exited)
			(void)hf_sys.pidfd_send_signal(k->child->pidfd, SIGHUP);
		hf_keeper_end(k, HF_CAUSE_HANGUP, k->o.grace_ns);
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

void hf_keeper_take_orders(struct hf_keeper *k)
{
	struct hf_link_order order;
	ssize_t n;

	while ((n = recv(k->link, &order, sizeof(order), MSG_DONTWAIT)) == sizeof(order))
		obey(k, &order);
	if (n == 0 && k->over != HF_CAUSE_SUPERVISOR) {
		hf_keeper_end(k, HF_CAUSE_SUPERVISOR, -1);
		k->over = HF_CAUSE_SUPERVISOR;
	}
}

void hf_keeper_take_typed(struct hf_keeper *k)
{
	pid_t group = 0;
	struct hf_link_order order = { .signal = hf_viewers_take(&k->viewers, &group), .from_terminal = 1 };

	order.group = group;
	if (order.signal)
		obey(k, &order);
	hf_viewers_copy(&k->viewers);
}

/* On a pty, Ctrl-Z stops the command alone; the supervisor's shell is to get the terminal back. */
static void tell_suspended(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_SUSPENDED };
	siginfo_t info = { 0 };

	if (!k->child || !k->output.on_pty || k->tree.leader_exited ||
	    waitid(P_PID, (id_t)k->child->pid, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	/* In the background there is no shell that would let it go on. */
	if (k->detached)
		hf_tree_signal(&k->tree, SIGCONT);
	else
		hf_keeper_tell(k, &news, -1);
}

void hf_keeper_take_signals(struct hf_keeper *k)
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
			hf_keeper_end(k, HF_CAUSE_STOP, (int64_t)info.ssi_int * HF_MSEC);
		else
			obey(k, &order);
	}
}

void hf_keeper_listen(struct hf_keeper *k)
{
	hf_keeper_take_signals(k);
	if (k->over != HF_CAUSE_SUPERVISOR)
		hf_keeper_take_orders(k);
	hf_keeper_fleet_step(k);
}
