/*
 * run/supervisor/supervise.c - the supervisor: in front of the keeper, with the terminal.
 *
 * It passes signals on, gives the keeper's answer back, and is what remains when the
 * keeper is killed (takeover.c). A keeper that is only stopped cannot renew the lease; that
 * is noticed here too, by looking at the lock once in a lease.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* A shell that puts us in front does not say so when we were running. */
#define LOOK_IN_FRONT_MS 300

/* -- from and to the keeper --------------------------------------------------------- */

static void order(struct hf_supervisor *s, int sig, int from_terminal)
{
	struct hf_link_order order = { .signal = sig, .from_terminal = from_terminal };

	(void)send(s->link, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* 1 and *ret_fd (or -1); 0 when there is none now. */
static int receive(struct hf_supervisor *s, struct hf_link_news *ret, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;

	*ret_fd = -1;
	if (recvmsg(s->link, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(*ret))
		return 0;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 1;
}

static void suspend(struct hf_supervisor *s)
{
	hf_terminal_restore(&s->terminal);
	(void)raise(SIGSTOP);
	/* Continued: the terminal is ours again. */
	hf_terminal_raw(&s->terminal);
	order(s, SIGCONT, 0);
}

static void hear(struct hf_supervisor *s)
{
	struct hf_link_news news;
	int fd;

	while (receive(s, &news, &fd)) {
		switch (news.kind) {
		case HF_LINK_HELD:
			s->token = news.report.token;
			break;
		case HF_LINK_STARTED:
			if (s->started)
				s->started(s->arg, &news);
			s->started = NULL;
			break;
		case HF_LINK_TERMINAL:
			hf_terminal_take(&s->terminal, fd);
			break;
		case HF_LINK_KEEPER:
			s->keeper = news.report.pid;
			s->keeper_fd = fd;
			break;
		case HF_LINK_SUSPENDED:
			suspend(s);
			break;
		case HF_LINK_ENDED:
		default:
			s->last = news;
			break;
		}
	}
}

static void pass_signals(struct hf_supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD)
			continue;
		if (sig == SIGWINCH) {
			hf_terminal_resize(&s->terminal);
			continue;
		}
		/* The keeper is still waiting for the lock, deep in a call: there is nothing
		 * to be stopped but itself. */
		if (s->token == 0 && (sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT)) {
			s->aborted = sig;
			(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGKILL);
			continue;
		}
		order(s, sig, info.ssi_code == SI_KERNEL);
		/* A keeper that is stopped could not act on it. */
		(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGCONT);
	}
}

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
	struct lease lease = { .token = s->token };
	struct hf_locks *locks = NULL;
	int r = -1;

	if (s->token != 0 && hf_locks_open(s->state, NULL, &locks, NULL) == 0)
		r = hf_lock_look(locks, s->name, note_lease, &lease, NULL);
	hf_locks_free(locks);
	if (r < 0 && r != HF_E_NOT_HELD)
		return 0; /* cannot be told: it has the benefit of the doubt */
	return s->token != 0 && (!lease.current || lease.expired);
}

/* -- the poll --------------------------------------------------------------------------- */

static void watch_keeper(struct hf_supervisor *s)
{
	struct pollfd fds[4];
	struct hf_mono look = hf_mono_in(s->o->ttl_ns);
	int neglected = 0;

	for (;;) {
		nfds_t n = 3;
		int64_t ms;

		fds[0] = (struct pollfd){ .fd = s->keeper_fd, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = s->link, .events = POLLIN };
		fds[2] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		hf_terminal_raw(&s->terminal);
		n += hf_terminal_poll(&s->terminal, &fds[3]);
		ms = hf_mono_left(look) / HF_MSEC + 1;
		if (s->terminal.pty >= 0 && !s->terminal.is_raw && ms > LOOK_IN_FRONT_MS)
			ms = LOOK_IN_FRONT_MS;
		(void)hf_sys.poll(fds, n, ms > INT_MAX ? INT_MAX : (int)ms);
		if (fds[2].revents)
			pass_signals(s);
		if (n > 3 && fds[3].revents)
			hf_terminal_copy(&s->terminal);
		hear(s);
		if (s->last.kind == HF_LINK_ENDED && s->last.report.outcome != HF_OUTCOME_NONE)
			return;
		if (fds[0].revents & POLLIN)
			return;
		if (hf_mono_left(look) == 0) {
			/*
			 * Whoever wants the lock has it the moment the lease ends; that is left
			 * to them for a while. Then a keeper that is only stopped is woken, and
			 * one that was and still does nothing has had its time: it is our turn.
			 */
			neglected = is_neglected(s) ? neglected + 1 : 0;
			if (neglected == 2)
				(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGCONT);
			if (neglected == 3)
				return;
			look = hf_mono_in(neglected ? (s->o->grace_ns > 0 ? s->o->grace_ns : 0) + 2 * HF_SEC
						    : s->o->ttl_ns);
		}
	}
}

/* A signal that the caller ignores (nohup, a background job) is not ours to act on. */
static int is_ignored(int sig)
{
	struct sigaction action;

	return sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void signal_sets(sigset_t *ret_block, sigset_t *ret_read)
{
	static const int passed[] = { SIGTERM, SIGINT,	SIGHUP,	 SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGCONT, SIGCHLD, SIGWINCH };

	sigemptyset(ret_read);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (passed[i] == SIGCHLD || !is_ignored(passed[i]))
			sigaddset(ret_read, passed[i]);
	*ret_block = *ret_read;
	/* Writing to a reader that is gone, or to a terminal from behind, must not end us. */
	sigaddset(ret_block, SIGPIPE);
	sigaddset(ret_block, SIGTTOU);
}

/* Until who stands between has told which the keeper is; that one may have spoken before. */
static void hear_of_keeper(struct hf_supervisor *s)
{
	struct pollfd fd = { .fd = s->link, .events = POLLIN };

	while (s->keeper_fd < 0 && !(fd.revents & POLLHUP)) {
		(void)hf_sys.poll(&fd, 1, -1);
		hear(s);
	}
}

/* Forks the keeper. Returns 0 or -errno. */
static int start_keeper(struct hf_supervisor *s, int detached, const sigset_t *mask)
{
	struct hf_keeper keeper = { .name = s->name,
				    .o = *s->o,
				    .detached = detached,
				    .supervisor = getpid(),
				    .parent = getpid(),
				    .supervisor_fd = -1,
				    .signals = -1,
				    .not_ours = { s->signals, -1 },
				    .mask = *mask,
				    .group = getpgrp(),
				    .tree = HF_TREE_INIT };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	hf_output_init(&keeper.output);
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

/* The keeper is gone, and whoever it left is left alone: they are ours then, as without a reaper. */
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

int hf_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *o, int detached,
		 hf_started_fn *started, void *arg, struct hf_run_report *ret_report,
		 struct hf_err *err)
{
	struct hf_supervisor s = { .state = state,
				.name = name,
				.o = o,
				.link = -1,
				.keeper_fd = -1,
				.tree = HF_TREE_INIT,
				.terminal = HF_TERMINAL_INIT,
				.started = started,
				.arg = arg };
	/* Where SIGCHLD is ignored, the kernel reaps, and nobody learns how a command ended. */
	struct sigaction wait_for_children = { .sa_handler = SIG_DFL }, children_before;
	sigset_t block, reads, mask;
	int was_subreaper = 0, r = hf_tree_note_others(&s.tree);

	if (r < 0)
		return hf_fail_sys(err, -r, "/proc", name);
	signal_sets(&block, &reads);
	s.signals = signalfd(-1, &reads, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals < 0)
		return FAIL_SYS(err, "signalfd", name);
	(void)sigprocmask(SIG_BLOCK, &block, &mask);
	(void)sigaction(SIGCHLD, &wait_for_children, &children_before);
	(void)prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper);
	r = prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : start_keeper(&s, detached, &mask);
	if (r == 0) {
		watch_keeper(&s);
		hear(&s);
		if (s.last.kind != HF_LINK_ENDED)
			hf_take_over(&s); /* and the keeper is reaped */
		else
			hf_await_keeper(&s);
	}
	end_reaper(&s);
	hf_terminal_restore(&s.terminal);
	hf_terminal_done(&s.terminal);
	hf_tree_done(&s.tree);
	hf_auto_close(&s.keeper_fd);
	hf_auto_close(&s.link);
	hf_auto_close(&s.signals);
	(void)prctl(PR_SET_CHILD_SUBREAPER, was_subreaper);
	(void)sigaction(SIGCHLD, &children_before, NULL);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	if (r < 0)
		return hf_fail_sys(err, -r, "start", name);
	if (s.aborted) {
		s.last.result = 0;
		s.last.report.outcome = HF_OUTCOME_STOPPED;
		s.last.report.exit_status = HF_EXIT_SIGNAL + s.aborted;
		hf_copy_text(s.last.report.cause, sizeof(s.last.report.cause),
			     "it was asked to stop while it waited for its turn");
	}
	*ret_report = s.last.report;
	if (s.last.result < 0 && err)
		*err = s.last.err;
	return s.last.result;
}
