/*
 * run/keeper/poll.c - the keeper's one poll: what may happen while a command runs, between two attempts, and at its end.
 *
 * Each thing that comes in is an event: it changes ending.c's state, whose answer is carried out at
 * once. Records and journal come after the signals, and nothing here waits for the disk: else a
 * slow one would hold up the deadline.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/lock/store.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"

/*
 * A reader that takes nothing for so long loses what was left when all had ended. One
 * whose session was ended by force does not hold up the next.
 */
#define DRAIN_NS        (10 * HF_SEC)
#define DRAIN_FORCED_NS HF_SEC
#define DRAIN_PASSIVE_NS (INT64_MAX / 4)

/*
 * While a command is watched, nothing waits longer for the record of the lock: a process that is stopped in
 * the middle of a call on it would hold up the deadline. A renewal is tried again, a note can be missed.
 */
#define RECORD_WAIT_NS (100 * HF_MSEC)

/* What outlives a command in a sandbox is asked to end after so long. */
#define ATTENDANT_NS (50 * HF_MSEC)

/* A supervisor that takes signals and does not pass them on was stopped in the middle of it. */
#define PASSING_NS (2 * HF_SEC)

static void renew(struct hf_keeper *k)
{
	int r = k->lost ? 0 : hf_renewal_step(&k->renewal, NULL);

	/* A place in the group that was lost is not worth a session. */
	if (r > 0 && k->slot && hf_lock_renew(k->slot, 0, NULL) < 0) {
		hf_lock_free(k->slot);
		k->slot = NULL;
	}
	if (r < 0)
		hf_keeper_end(k, HF_CAUSE_LOST, k->o.grace_ns);
	hf_keeper_fleet_step(k);
	if (r > 0 && k->child)
		hf_keeper_sample(k);
}

/* -- the poll ------------------------------------------------------------------- */

/* One sleep, at most to `until`, and what it brought. */
static void turn(struct hf_keeper *k, struct hf_mono until)
{
	int alone = k->over == HF_CAUSE_SUPERVISOR;
	struct pollfd fds[8 + HF_VIEWERS_POLL + HF_KEEPER_FLEET_POLL] = { { .fd = k->signals, .events = POLLIN },
				 { .fd = alone ? -1 : k->supervisor_fd, .events = POLLIN },
				 { .fd = alone ? -1 : k->link, .events = POLLIN } };
	nfds_t n = 3 + hf_output_poll(&k->output, fds + 3);

	n += hf_viewers_poll(&k->viewers, fds + n);
	n += hf_keeper_fleet_poll(k, fds + n);
	if (!k->lost)
		until = hf_mono_earlier(until, k->renewal.next);
	(void)hf_poll_until(fds, n, until);
	hf_output_pump(&k->output);
	hf_keeper_take_activity(k);
	hf_keeper_take_typed(k);
	if (fds[0].revents)
		hf_keeper_take_signals(k);
	if (fds[2].revents)
		hf_keeper_take_orders(k);
	if (fds[1].revents && k->over != HF_CAUSE_SUPERVISOR) {
		hf_keeper_end(k, HF_CAUSE_SUPERVISOR, -1);
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
			hf_keeper_end(k, HF_CAUSE_DEADLINE, k->o.grace_ns);
	}
	if (limits->idle_ns > 0) {
		int64_t quiet = limits->idle_ns - hf_keeper_quiet(k);

		if (quiet <= 0)
			hf_keeper_end(k, HF_CAUSE_IDLE, k->o.grace_ns);
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

void hf_keeper_tell_killed(struct hf_keeper *k, unsigned count, enum hf_cause cause)
{
	struct hf_field fields[] = { HF_FIELD_INT("count", count), HF_FIELD_TEXT("cause", hf_cause_text(cause)) };

	k->told_killed = k->over == HF_CAUSE_SUPERVISOR;
	hf_session_event(k->sessions, HF_EV_SESSION_KILLED, k->name, fields, 2);
}

/* What is still in the pipes. Its reader may be slow; lease and signals go on meanwhile. */
static void drain(struct hf_keeper *k, int forced)
{
	/* A reader that the command has to itself would be waited for by that, too, as long as it takes. */
	int64_t patience = forced ? DRAIN_FORCED_NS : k->output.passive ? DRAIN_PASSIVE_NS : DRAIN_NS;
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
	uint64_t pending, found = 0, ignored = 0;
	const char *ignores;
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
	/* What it ignores it drops (hf_relay_signals). */
	ignores = strstr(text, "SigIgn:\t");
	if (ignores && strnlen(ignores + 8, 16) == 16)
		(void)hf_parse_hex64(ignores + 8, 16, &ignored);
	return (found & ~ignored) != 0;
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
		hf_keeper_act(k, hf_ending_leader_exited(&k->ending, k->o.grace_ns, hf_mono_now()));
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
		hf_keeper_act(k, hf_ending_time(&k->ending, hf_mono_now()));
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
	if (k->tree.killed != k->killed_before) {
		k->record.kills = 1;
		hf_keeper_tell_killed(k, k->tree.killed - k->killed_before, k->ending.cause);
	}
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

/* One that was replaced has not heard it. */
#define ASK_AGAIN_NS HF_SEC

int hf_keeper_await_proof(struct hf_keeper *k)
{
	struct hf_mono again = { 0 };
	int first = k->fleet.n_asked + 1;

	if (!k->in_fleet)
		return 0;
	begin_watch(k, NULL);
	while (k->over == HF_CAUSE_NONE && k->fleet.n_proven < first) {
		if (hf_mono_left(again) == 0) {
			hf_renewer_ask(&k->fleet);
			again = hf_mono_in(ASK_AGAIN_NS);
		}
		(void)hf_tree_reap(&k->tree);
		turn(k, again);
	}
	return k->over != HF_CAUSE_NONE;
}
