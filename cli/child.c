/* cli/child.c - becoming a command, and running one as a filter. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "holdfast/clock.h"

#define GRACE_NS (2 * HF_SEC) /* between TERM and KILL */
#define CHUNK    ((size_t)64 << 10)

int child_status_around(int status)
{
	return status == EXIT_OS ? STATUS_AROUND : status;
}

void child_environment(const struct cli *cli, const char *name, uint64_t token)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)token);
	if (setenv("HOLDFAST_LOCK", name, 1) < 0 ||
	    (token ? setenv("HOLDFAST_TOKEN", text, 1) : unsetenv("HOLDFAST_TOKEN")) < 0 ||
	    setenv("HOLDFAST_DIR", hf_state_path(cli->state), 1) < 0)
		cli_die_oom();
}

int child_become(const struct cli *cli, char **command)
{
	(void)fflush(stdout);
	(void)execvp(command[0], command);
	int sys = errno;
	cli_say(cli, "%s: %s", command[0], strerrordesc_np(sys));
	return sys == ENOENT ? STATUS_NO_FILE : STATUS_NO_EXEC;
}

static int status_of(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? info->si_status : STATUS_SIGNAL + info->si_status;
}

int child_reap(pid_t pid)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return STATUS_AROUND;
	return status_of(&info);
}

int child_signals(sigset_t *ret_mask)
{
	static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;

	/* Whoever started us may ignore it, and then no child could be waited for. */
	(void)sigaction(SIGCHLD, &usual, NULL);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	(void)sigprocmask(SIG_BLOCK, &set, ret_mask);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* -- a filter ------------------------------------------------------------------ */

struct filter {
	const struct child_filter *spec;
	struct child_result *result;
	pid_t pid;
	int pidfd;
	int output;  /* our end of its standard output; -1: has ended */
	int signals;
	int exited;
	struct hf_mono until;  /* the next time something has to happen: TERM, then KILL */
	int told;    /* TERM was sent */
	int killed;  /* KILL was sent */
	char *chunk;
};

static void filter_done(struct filter *f)
{
	hf_auto_close(&f->pidfd);
	hf_auto_close(&f->output);
	hf_auto_close(&f->signals);
	free(f->chunk);
}

static _Noreturn void filter_main(const struct cli *cli, const struct child_filter *spec, int out,
				  pid_t parent, const sigset_t *mask)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	int in = spec->in >= 0 ? spec->in : open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the line above. */
	if (getppid() != parent || in < 0 || dup2(in, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0)
		_exit(STATUS_AROUND);
	(void)sigaction(SIGXFSZ, &usual, NULL);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(child_become(cli, spec->command));
}

/* Everything that is still of its group. It was not waited for, so the number is its own. */
static void signal_filter(struct filter *f, int sig)
{
	(void)hf_sys.pidfd_signal_group(f->pidfd, f->pid, sig);
}

static void kill_filter(struct filter *f)
{
	signal_filter(f, SIGKILL);
	f->killed = 1;
}

static void end_filter(struct filter *f, int sig)
{
	if (f->told)
		return;
	signal_filter(f, sig);
	signal_filter(f, SIGCONT);
	f->told = 1;
	f->until = hf_mono_in(GRACE_NS);
}

static int start_filter(struct cli *cli, struct filter *f, const sigset_t *mask)
{
	pid_t parent = getpid();
	int ends[2];

	f->chunk = malloc(CHUNK);
	if (!f->chunk)
		cli_die_oom();
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	f->output = ends[0];
	(void)fflush(stdout);
	f->pid = fork();
	if (f->pid == 0)
		filter_main(cli, f->spec, f->spec->out >= 0 ? ends[1] : STDERR_FILENO, parent,
			    mask);
	(void)close(ends[1]);
	if (f->pid < 0)
		return -errno;
	(void)setpgid(f->pid, f->pid); /* whoever of the two comes first */
	/* Ours and not yet waited for: the number is its own. */
	f->pidfd = hf_sys.pidfd_open(f->pid, 0);
	return f->pidfd < 0 ? -errno : 0;
}

/* One piece of its output. */
static void pump(struct filter *f)
{
	ssize_t n = read(f->output, f->chunk, CHUNK);
	int r;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		hf_auto_close(&f->output);
		return;
	}
	r = f->result->write_error ? 0 : hf_write_all(f->spec->out, f->chunk, (size_t)n);
	if (r < 0) {
		f->result->write_error = r;
		kill_filter(f);
	}
}

static void pass_signal(struct filter *f)
{
	struct signalfd_siginfo info;

	while (read(f->signals, &info, sizeof(info)) == sizeof(info)) {
		if (f->result->signal == 0)
			f->result->signal = (int)info.ssi_signo;
		end_filter(f, (int)info.ssi_signo);
	}
}

/* It has exited. With a failure, what it left behind does not matter any more. */
static void see_exit(struct filter *f)
{
	siginfo_t info = { 0 };

	f->exited = 1;
	if (waitid(P_PID, (id_t)f->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
	    status_of(&info) != 0)
		hf_auto_close(&f->output);
}

static void watch_filter(struct filter *f)
{
	while (!f->exited || f->output >= 0) {
		struct pollfd fds[] = { { .fd = f->exited ? -1 : f->pidfd, .events = POLLIN },
					{ .fd = f->output, .events = POLLIN },
					{ .fd = f->signals, .events = POLLIN } };
		int64_t left = hf_mono_left(f->until) / HF_MSEC;

		(void)poll(fds, 3, left < INT32_MAX ? (int)left + 1 : INT32_MAX);
		if (fds[2].revents)
			pass_signal(f);
		if (fds[1].revents)
			pump(f);
		if (fds[0].revents)
			see_exit(f);
		if (hf_mono_left(f->until) > 0)
			continue;
		if (!f->told) {
			f->result->timed_out = 1;
			end_filter(f, SIGTERM);
		} else if (!f->killed) {
			kill_filter(f);
		} else if (f->exited) {
			/* Something outside of its group holds the pipe open. */
			hf_auto_close(&f->output);
		}
	}
}

struct child_result child_run(struct cli *cli, const struct child_filter *spec)
{
	struct child_result result = { .status = STATUS_AROUND };
	AUTO(filter_done) struct filter f = { .spec = spec,
					      .result = &result,
					      .pidfd = -1,
					      .output = -1,
					      .until = hf_mono_in(spec->limit_ns) };
	sigset_t mask;
	int r;

	f.signals = child_signals(&mask);
	r = start_filter(cli, &f, &mask);
	if (r < 0)
		cli_say(cli, "cannot start %s: %s", spec->command[0], strerrordesc_np(-r));
	if (r == 0)
		watch_filter(&f);
	else if (f.pid > 0)
		hf_auto_close(&f.output);
	if (f.pid > 0) {
		/* While its number is still its own: nothing of it is left after a failure. */
		siginfo_t info = { 0 };
		int good = r == 0 && !f.told && !f.killed &&
			   waitid(P_PID, (id_t)f.pid, &info, WEXITED | WNOWAIT) == 0 &&
			   status_of(&info) == 0;

		if (!good)
			(void)hf_sys.pidfd_signal_group(f.pidfd, f.pid, SIGKILL);
		result.status = r < 0 ? (child_reap(f.pid), STATUS_AROUND) : child_reap(f.pid);
	}
	if (result.timed_out)
		result.status = STATUS_DEADLINE;
	else if (result.signal)
		result.status = STATUS_SIGNAL + result.signal;
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	return result;
}
