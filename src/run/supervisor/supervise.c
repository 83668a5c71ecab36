/*
 * run/supervisor/supervise.c - the supervisor: in front of the keeper, with the terminal.
 *
 * It passes signals on (relay.c), gives the keeper's answer back, and is what remains when the
 * keeper is killed (takeover.c). A keeper that is only stopped cannot renew the lease; that
 * is noticed here too, by looking at the lock once in a lease.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/store.h"
#include "hf/run/fleet/agent.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/options.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"

/* A shell that puts us in front does not say so when we were running. */
#define LOOK_IN_FRONT_NS (300 * HF_MSEC)

/* For a look at the lease. */
#define LOOK_NS (100 * HF_MSEC)

/* -- its lease ---------------------------------------------------------------------- */

struct lease {
	uint64_t token;
	int current; /* the token is still one of the lock */
	int expired; /* nobody renewed it, and nobody else wanted the lock yet */
};

static void note_lease(void *arg, const struct hf_lock_info *info)
{
	struct lease *lease = arg;

	for (size_t i = 0; i < info->n_holders; i++)
		if (info->holders[i].token == lease->token) {
			lease->current = 1;
			lease->expired |= info->holders[i].lease_left_ns == 0;
		}
}

/* Once in a lease: does the keeper renew it? 1 when it is lost, or has run out. */
static int is_neglected(struct hf_supervisor *s)
{
	struct lease lease = { .token = atomic_load(&s->gate->token) };
	struct hf_locks *locks = NULL;
	int r = -1;

	if (lease.token != 0 && hf_locks_open(s->state, NULL, &locks, NULL) == 0) {
		/* Signals wait meanwhile. */
		hf_locks_set_patience(locks, LOOK_NS);
		r = hf_lock_look(locks, s->name, note_lease, &lease, NULL);
	}
	hf_locks_free(locks);
	if (r < 0 && r != HF_E_NOT_HELD)
		return 0; /* cannot be told: it has the benefit of the doubt */
	return lease.token != 0 && (!lease.current || lease.expired);
}

/* The keeper acts at the end of the lease in the store; a moment later, and still before another machine can have the name, we do. */
#define FLEET_SLACK_NS (100 * HF_MSEC)

/* Sets the timer to the end of that lease, as it is known now. 1: it is over. On the clock that runs in suspend. */
static int check_fleet(struct hf_supervisor *s)
{
	int64_t at = atomic_load(&s->gate->fleet_end) + FLEET_SLACK_NS;
	struct itimerspec when = { .it_value = { .tv_sec = at / HF_SEC, .tv_nsec = at % HF_SEC + 1 } };

	if (hf_boot_now().ns >= at)
		return 1;
	if (s->fleet_timer < 0)
		s->fleet_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	(void)timerfd_settime(s->fleet_timer, TFD_TIMER_ABSTIME, &when, NULL);
	return 0;
}

/* -- the poll --------------------------------------------------------------------------- */

static void watch_keeper(struct hf_supervisor *s)
{
	struct pollfd fds[5];
	int neglected = 0;

	s->look = hf_mono_in(s->o.ttl_ns);

	for (;;) {
		struct hf_mono until = s->look;
		nfds_t n = 4;

		fds[0] = (struct pollfd){ .fd = s->keeper_fd, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = s->link, .events = POLLIN };
		fds[2] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		fds[3] = (struct pollfd){ .fd = s->fleet_timer, .events = POLLIN };
		hf_terminal_raw(&s->terminal);
		n += hf_terminal_poll(&s->terminal, &fds[4]);
		if (s->terminal.pty >= 0 && !s->terminal.is_raw)
			until = hf_mono_earlier(until, hf_mono_in(LOOK_IN_FRONT_NS));
		(void)hf_poll_until(fds, n, until);
		if (fds[2].revents)
			hf_relay_signals(s);
		if (n > 4 && fds[4].revents)
			hf_relay_keys(s);
		hf_relay_news(s);
		if (s->last.kind == HF_LINK_ENDED && s->last.report.outcome != HF_OUTCOME_NONE)
			return;
		if (fds[0].revents & POLLIN)
			return;
		if (atomic_load(&s->gate->fleet_end) != 0 && (fds[3].revents || s->fleet_timer < 0) && check_fleet(s))
			return;
		if (hf_mono_left(s->look) == 0) {
			/*
			 * The next process that wants the lock has it the moment the lease ends; that is left
			 * to them for a while. Then a keeper that is only stopped is woken, and
			 * one that was and still does nothing has had its time: it is our turn.
			 */
			neglected = is_neglected(s) ? neglected + 1 : 0;
			if (neglected == 2)
				(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGCONT);
			if (neglected == 3)
				return;
			s->look = hf_mono_in(neglected ? (s->o.grace_ns > 0 ? s->o.grace_ns : 0) + 2 * HF_SEC
						    : s->o.ttl_ns);
		}
	}
}

/*
 * All signals that could end or stop us alone, and leave the command without us. Those of a fault
 * of our own are left as they are, as are KILL and STOP; when one ends us, the keeper ends the tree.
 * Those that the caller ignores are among them, and are dropped when they come (hf_relay_signals).
 */
static void signal_set(sigset_t *ret)
{
	static const int left[] = { SIGKILL, SIGSTOP, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };

	sigfillset(ret);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		sigdelset(ret, left[i]);
}

/* The session is over: what still came for it has nobody to go to, and must not end us instead of its status. */
static void drop_signals(struct hf_supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		continue;
}

/* Until the reaper between has told which the keeper is; that one may have spoken before. */
static void hear_of_keeper(struct hf_supervisor *s)
{
	struct pollfd fd = { .fd = s->link, .events = POLLIN };

	while (s->keeper_fd < 0 && !(fd.revents & POLLHUP)) {
		(void)hf_sys.poll(&fd, 1, -1);
		hf_relay_news(s);
	}
}

/*
 * The process group for the command. On a terminal it is ours: Ctrl-C and Ctrl-Z mean both. Without one
 * it has its own, as with timeout(1): `kill 0` in it does not end our caller.
 */
static pid_t group_for_command(unsigned flags)
{
	AUTO_FD terminal = hf_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY, 0);

	return terminal >= 0 || flags & HF_RUN_FOREGROUND ? getpgrp() : 0;
}

/* Forks the keeper. Returns 0 or -errno. */
static int start_keeper(struct hf_supervisor *s, const struct hf_start *start)
{
	struct hf_keeper keeper = { .name = s->name,
				    .given = *start->given,
				    .o = s->o,
				    .stage = start->stage,
				    .detached = start->detached,
				    .gate = s->gate,
				    .supervisor = getpid(),
				    .parent = getpid(),
				    .supervisor_fd = -1,
				    .signals = -1,
				    .notices = -1,
				    .not_ours = { s->signals, -1 },
				    .mask = s->mask,
				    .group = group_for_command(start->detached ? 0 : start->given->flags),
				    .tree = HF_TREE_INIT };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	hf_output_init(&keeper.output);
	keeper.fleet = (struct hf_renewer)HF_RENEWER_INIT;
	keeper.fleet.fd = s->fleet;
	keeper.viewers = (struct hf_viewers)HF_VIEWERS_INIT;
	hf_copy_text(keeper.record.name, sizeof(keeper.record.name), s->name);
	keeper.link = ends[1];
	s->link = keeper.not_ours[1] = ends[0];
	if (s->tree.n_others > 0) {
		s->tree.reaper = (int32_t)hf_reaper_start(&keeper, s->state);
	} else {
		s->keeper = fork();
		if (s->keeper == 0)
			hf_keeper_main(&keeper, s->state);
	}
	(void)close(ends[1]);
	hf_auto_close(&s->fleet);
	if (s->keeper < 0 || s->tree.reaper < 0)
		return -errno;
	/* Ours and not yet reaped: the number is its own. */
	if (s->tree.reaper == 0)
		s->keeper_fd = hf_sys.pidfd_open(s->keeper, 0);
	else
		hear_of_keeper(s);
	return s->keeper_fd >= 0 ? 0 : s->tree.reaper ? -ECHILD : -errno;
}

void hf_await_keeper(struct hf_supervisor *s)
{
	struct pollfd exited = { .fd = s->keeper_fd, .events = POLLIN };

	/* The reaper's child: only where that was killed is it for us to reap. */
	if (s->tree.reaper > 0) {
		while (hf_sys.poll(&exited, 1, -1) < 0 && errno == EINTR)
			continue;
		(void)waitid(P_PIDFD, (id_t)s->keeper_fd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
		return;
	}
	while (waitid(P_PID, (id_t)s->keeper, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
}

/* The keeper is gone, and the processes it left are left alone: they are ours then, as without a reaper. */
static void end_reaper(struct hf_supervisor *s)
{
	AUTO_FD pidfd = -1;

	if (s->tree.reaper <= 0)
		return;
	/* Our child, not reaped: the number is its own. */
	pidfd = hf_sys.pidfd_open(s->tree.reaper, 0);
	if (pidfd >= 0)
		(void)hf_sys.pidfd_send_signal(pidfd, SIGKILL);
	while (waitid(P_PID, (id_t)s->tree.reaper, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	s->tree.reaper = 0;
	/* It may not have come to it. */
	if (s->keeper_fd >= 0)
		(void)waitid(P_PIDFD, (id_t)s->keeper_fd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
}

/* It was asked to end while it waited for its turn. */
static void fill_aborted(struct hf_supervisor *s)
{
	struct hf_run_report *report = &s->last.report;
	int interrupted = s->aborted == SIGINT || s->aborted == SIGQUIT;

	s->last.result = 0;
	report->outcome = interrupted ? HF_OUTCOME_INTERRUPTED : HF_OUTCOME_STOPPED;
	report->exit_status = HF_EXIT_SIGNAL + s->aborted;
	hf_copy_text(report->cause, sizeof(report->cause), "it was stopped while it waited for its turn");
}

static int supervise(struct hf_supervisor *s, const struct hf_start *start)
{
	int r = prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : start_keeper(s, start);

	if (r == 0) {
		watch_keeper(s);
		hf_relay_news(s);
		if (s->last.kind != HF_LINK_ENDED) {
			hf_take_over(s); /* and the keeper is reaped */
		} else {
			/* Its tree is empty. The notifier that it may leave (notifier.c) is not to become our child; the end of the link says so. */
			(void)prctl(PR_SET_CHILD_SUBREAPER, s->was_subreaper);
			hf_auto_close(&s->link);
			hf_await_keeper(s);
		}
		drop_signals(s);
	}
	end_reaper(s);
	hf_terminal_restore(&s->terminal);
	hf_terminal_done(&s->terminal);
	return r;
}

int hf_supervise(const struct hf_start *start, struct hf_run_report *ret_report, struct hf_err *err)
{
	struct hf_supervisor s = { .state = start->state,
				   .name = start->name,
				   .o = hf_options_complete(start->given),
				   .detached = start->detached,
				   .link = -1,
				   .fleet = -1,
				   .fleet_timer = -1,
				   .keeper_fd = -1,
				   .tree = HF_TREE_INIT,
				   .terminal = HF_TERMINAL_INIT,
				   .started = start->started,
				   .waiting = start->waiting,
				   .arg = start->arg };
	/* Where SIGCHLD is ignored, the kernel reaps, and nobody learns how a command ended. */
	struct sigaction wait_for_children = { .sa_handler = SIG_DFL }, children_before;
	sigset_t set;
	int r = hf_tree_note_others(&s.tree);

	hf_report_init(&s.last.report);
	if (r < 0)
		return hf_fail_sys(err, -r, "/proc", s.name);
	if (hf_fleet_is_store(s.o.store)) {
		r = hf_fleet_spawn(s.name, &s.fleet, err);
		if (r < 0)
			return r;
	}
	s.gate = mmap(NULL, sizeof(*s.gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.gate == MAP_FAILED)
		return FAIL_SYS(err, "mmap", s.name);
	signal_set(&set);
	s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0) {
		(void)munmap(s.gate, sizeof(*s.gate));
		return FAIL_SYS(err, "signalfd", s.name);
	}
	(void)sigprocmask(SIG_BLOCK, &set, &s.mask);
	(void)sigaction(SIGCHLD, &wait_for_children, &children_before);
	(void)prctl(PR_GET_CHILD_SUBREAPER, &s.was_subreaper);
	r = supervise(&s, start);
	hf_tree_done(&s.tree);
	hf_auto_close(&s.keeper_fd);
	hf_auto_close(&s.link);
	hf_auto_close(&s.fleet);
	hf_auto_close(&s.fleet_timer);
	hf_auto_close(&s.signals);
	(void)munmap(s.gate, sizeof(*s.gate));
	(void)prctl(PR_SET_CHILD_SUBREAPER, s.was_subreaper);
	(void)sigaction(SIGCHLD, &children_before, NULL);
	(void)sigprocmask(SIG_SETMASK, &s.mask, NULL);
	if (r < 0)
		return hf_fail_sys(err, -r, "start", s.name);
	if (s.aborted)
		fill_aborted(&s);
	*ret_report = s.last.report;
	if (s.last.result < 0 && err)
		*err = s.last.err;
	return s.last.result;
}
