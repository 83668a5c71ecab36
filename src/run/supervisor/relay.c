/* run/supervisor/relay.c - between the outside and the keeper: signals and keys in, news out. */
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/fdpass.h"

static void order(struct hf_supervisor *s, int sig, int from_terminal, pid_t group)
{
	struct hf_link_order order = { .signal = sig, .from_terminal = from_terminal, .group = group };

	(void)send(s->link, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* 1 and *ret_fd (or -1); 0 when there is none now. */
static int receive(struct hf_supervisor *s, struct hf_link_news *ret, int *ret_fd)
{
	return hf_recv_fd(s->link, ret, sizeof(*ret), MSG_DONTWAIT, ret_fd) == sizeof(*ret);
}

static void suspend(struct hf_supervisor *s)
{
	hf_terminal_restore(&s->terminal);
	(void)raise(SIGSTOP);
	/* Continued: the terminal is ours again. */
	hf_terminal_raw(&s->terminal);
	order(s, SIGCONT, 0, 0);
}

/* The stored options are in force: the lease to watch and the place to free are theirs. */
static void take_terms(struct hf_supervisor *s, const struct hf_link_news *news)
{
	s->terms = news->terms;
	s->o.ttl_ns = s->terms.ttl_ns;
	s->o.grace_ns = s->terms.grace_ns;
	s->o.max_active = s->terms.max_active;
	s->o.group = s->terms.group;
	s->look = hf_mono_in(s->o.ttl_ns);
	memcpy(s->resumed, news->report.resumed, sizeof(s->resumed));
	/* In the background the caller is another process, and is told by hf_run_start. */
	if (s->o.resumed && !s->detached)
		s->o.resumed(s->o.resumed_arg, s->resumed);
}

void hf_relay_news(struct hf_supervisor *s)
{
	struct hf_link_news news;
	int fd;

	while (receive(s, &news, &fd)) {
		switch (news.kind) {
		case HF_LINK_RESUMED:
			take_terms(s, &news);
			break;
		case HF_LINK_STARTED:
			memcpy(news.report.resumed, s->resumed, sizeof(s->resumed));
			if (s->started)
				s->started(s->arg, &news);
			s->started = NULL;
			break;
		case HF_LINK_WAITING:
			if (s->waiting)
				s->waiting(s->arg, &news);
			break;
		case HF_LINK_TERMINAL:
			hf_terminal_take(&s->terminal, fd);
			atomic_store(&s->gate->has_pty, fd >= 0);
			break;
		case HF_LINK_KEEPER:
			s->keeper = news.report.pid;
			s->keeper_fd = fd;
			break;
		case HF_LINK_SUSPENDED:
			suspend(s);
			break;
		case HF_LINK_FLEET: /* watch_keeper looks at the gate */
			break;
		case HF_LINK_ENDED:
		default:
			s->last = news;
			break;
		}
	}
}

/* Only those does a terminal send. */
static int is_of_terminal(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGHUP || sig == SIGTSTP || sig == SIGCONT ||
	       sig == SIGTTIN || sig == SIGTTOU || sig == SIGWINCH;
}

/* Stops us and the command, never the one without the other. */
static void stop_both(struct hf_supervisor *s, int sig, int from_terminal)
{
	sigset_t set;

	atomic_store(&s->gate->passing, 0);
	if (!from_terminal) {
		order(s, SIGTSTP, 0, 0);
		(void)raise(SIGSTOP);
	} else {
		/* The command has it. The kernel knows whether it stops anybody: not without a shell above. */
		sigemptyset(&set);
		sigaddset(&set, sig);
		(void)raise(sig);
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
		(void)sigprocmask(SIG_BLOCK, &set, NULL);
	}
	atomic_store(&s->gate->passing, 1);
}

static void pass_signal(struct hf_supervisor *s, int sig, int from_terminal)
{
	switch (sig) {
	case SIGCHLD:
	case SIGPIPE:
	case SIGXFSZ:
		/* Ours alone: a child, or a write that failed. */
		return;
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		stop_both(s, sig, from_terminal);
		return;
	case SIGWINCH:
		hf_terminal_resize(&s->terminal);
		break;
	case SIGTERM:
	case SIGINT:
	case SIGHUP:
	case SIGQUIT:
		/* The keeper is still waiting for the lock, deep in a call, and will not have it:
		 * there is nothing to be stopped but itself. */
		if (hf_gate_decide(s->gate, HF_GATE_ABORTED)) {
			s->aborted = sig;
			(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGKILL);
		}
		if (s->aborted)
			return;
		break;
	default:
		break;
	}
	order(s, sig, from_terminal, 0);
	/* A keeper that is stopped could not act on it. */
	(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGCONT);
}

/*
 * A signal that the caller ignores (nohup, a background job) is not ours to act on. It comes all the same, because it is
 * blocked. Asked only now: it takes a call for each signal that there is.
 */
static int is_ignored(int sig)
{
	struct sigaction action;

	return sig != SIGCHLD && sig != SIGPIPE && sig != SIGTTOU && sigaction(sig, NULL, &action) == 0 &&
	       action.sa_handler == SIG_IGN;
}

void hf_relay_signals(struct hf_supervisor *s)
{
	struct signalfd_siginfo info;

	/* The keeper waits with its judgement while one is on its way (hear_all in poll.c). */
	atomic_store(&s->gate->passing, 1);
	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (!is_ignored(sig))
			pass_signal(s, sig, info.ssi_code == SI_KERNEL && is_of_terminal(sig));
	}
	atomic_store(&s->gate->passing, 0);
}

/* What was typed; a key that interrupts is told to the keeper before the command can act on it. */
void hf_relay_keys(struct hf_supervisor *s)
{
	pid_t group = 0;
	int sig = hf_terminal_read(&s->terminal, &group);

	if (sig)
		order(s, sig, 1, group);
	hf_terminal_copy(&s->terminal);
}
